/*
 * The wrappers, generated from the table of calls.
 *
 * A wrapper asks whether the call is traced (GATE), begins the pass, makes the
 * real call, and writes the record.  What is odd about an ODD row stands in the
 * BEFORE_, GATE_ and AFTER_ macros of its name; a CALL row gets its GATE from its
 * class and nothing else.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/tracer.h"

typedef void *mpi_h; /* a communicator, datatype or operation: passed on, never looked into */

static inline int64_t pt_iov_len(const struct iovec *iov, int cnt)
{
    int64_t n = 0;
    for (int i = 0; i < cnt; i++)
        n += (int64_t)iov[i].iov_len;
    return n;
}

static inline int failed(int64_t ret)
{
    return ret == -1;
}

/* ---- how many words a row's fields take at most ----------------------------------- */

#define FD(x)      +1
#define FD2(x)     +1
#define LEN(x)     +1
#define OFF(x)     +1
#define WHENCE(x)  +1
#define FLAGS(x)   +1
#define MODE(x)    +1
#define PEER(x)    +1
#define TAG(x)     +1
#define PEER2(x)   +1
#define TAG2(x)    +1
#define COUNT(x)   +1
#define COMM(x)    +1
#define IDENT      +4
#define PATH(...)  +2 + PT_STRING_MAX / 8
#define PATH2(...) +1 + PT_STRING_MAX / 8

enum {
#define CALL(name, cls, replay, ret, params, args, fields) WORDS_##name = 0 fields,
#define ODD(name, cls, replay, ret, params, args, fields)  WORDS_##name = 0 fields,
#define MPI(name, cls, replay, params, args, fields)       WORDS_MPI_##name = 0 fields,
#include "common/calls.def"
};

#undef FD
#undef FD2
#undef LEN
#undef OFF
#undef WHENCE
#undef FLAGS
#undef MODE
#undef PEER
#undef TAG
#undef PEER2
#undef TAG2
#undef COUNT
#undef COMM
#undef IDENT
#undef PATH
#undef PATH2

/* ---- how a field is written --------------------------------------------------------- */

#define WORD(x)       *w++ = (uint64_t)(int64_t)(x);
#define FD(x)         WORD(pass.fd ? pass.fd : PT_FD_WORD(x, 0))
#define FD2(x)        WORD(copy)
#define LEN(x)        WORD(x)
#define OFF(x)        WORD(x)
#define WHENCE(x)     WORD(x)
#define FLAGS(x)      WORD(x)
#define MODE(x)       WORD(x)
#define PEER(x)       WORD(x)
#define TAG(x)        WORD(x)
#define PEER2(x)      WORD(x)
#define TAG2(x)       WORD(x)
#define COUNT(x)      WORD(x)
#define COMM(x)       WORD((uintptr_t)(x))
#define PATH(dir, s)  WORD(dir) w = pt_put_string(w, s);
#define PATH2(dir, s) w = pt_put_string(w, s);
#define IDENT \
    WORD(pass.ident.handle) WORD(pass.ident.dev) WORD(pass.ident.ino) WORD(pass.ident.size)

/* ---- which calls are traced: the event's class, or -1 --------------------------------- */

#define GATE_FDIO pt_fds_class(t, fd, &pass)
#define GATE_IO   (pt_filter_path(path) ? PT_CLASS_IO : -1)
#define GATE_SYNC PT_CLASS_SYNC
#define GATE_IDLE PT_CLASS_IDLE
#define GATE_NAME PT_CLASS_NAME

/* ---- the odd ones ------------------------------------------------------------------------ */

#define NEEDS_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)
#define MODE_ARGUMENT              \
    mode_t mode = 0;               \
    if (NEEDS_MODE(flags)) {       \
        va_list ap;                \
        va_start(ap, flags);       \
        mode = va_arg(ap, mode_t); \
        va_end(ap);                \
    }
#define OPENED    \
    if (ret >= 0) \
        pt_fds_opened(ret, &pass);
/* A descriptor of a file that is not traced is not traced either. */
#define NOT_OPENED \
    if (ret >= 0)  \
        pt_fds_ignore(ret);
#define COPIED    \
    if (ret >= 0) \
        copy = pt_fds_copied(pass.fd, ret);
#define NOT_COPIED \
    if (ret >= 0)  \
        pt_fds_copied(PT_FD_WORD(fd, 0), ret);

#define BEFORE_open   MODE_ARGUMENT
#define BEFORE_openat MODE_ARGUMENT
#define BEFORE___open_2
#define BEFORE___openat_2
#define BEFORE_creat
#define BEFORE_close
#define BEFORE_dup
#define BEFORE_dup2
#define BEFORE_dup3

#define GATE_open       GATE_IO
#define GATE_openat     GATE_IO
#define GATE___open_2   GATE_IO
#define GATE___openat_2 GATE_IO
#define GATE_creat      GATE_IO
#define GATE_close      pt_fds_closing(t, fd, &pass)
#define GATE_dup        GATE_FDIO
#define GATE_dup2       GATE_FDIO
#define GATE_dup3       GATE_FDIO

#define AFTER_open       OPENED
#define AFTER_openat     OPENED
#define AFTER___open_2   OPENED
#define AFTER___openat_2 OPENED
#define AFTER_creat      OPENED
#define AFTER_close
#define AFTER_dup  COPIED
#define AFTER_dup2 COPIED
#define AFTER_dup3 COPIED

/* The same for a call that is not recorded. */
#define UNTRACED_open       NOT_OPENED
#define UNTRACED_openat     NOT_OPENED
#define UNTRACED___open_2   NOT_OPENED
#define UNTRACED___openat_2 NOT_OPENED
#define UNTRACED_creat      NOT_OPENED
#define UNTRACED_close
#define UNTRACED_dup  NOT_COPIED
#define UNTRACED_dup2 NOT_COPIED
#define UNTRACED_dup3 NOT_COPIED

/* ---- the wrappers ------------------------------------------------------------------------- */

#define REAL(name) real_##name

#define WRAPPER(name, rtype, params, args, fields, before, gate, after, untraced)           \
    static rtype(*real_##name) params;                                                      \
    PT_EXPORT rtype name params;                                                            \
    rtype name params                                                                       \
    {                                                                                       \
        before struct pt_thread *t = &pt_self;                                              \
        struct pt_pass pass = {0};                                                          \
        int64_t copy __attribute__((unused)) = 0;                                           \
        rtype ret;                                                                          \
        if (PT_UNLIKELY(!real_##name))                                                      \
            real_##name = (rtype(*) params)pt_real(#name);                                  \
        int cls = pt_thread_traced(t) ? (int)(gate) : -1;                                   \
        if (cls < 0) {                                                                      \
            ret = REAL(name) args;                                                          \
            untraced return ret;                                                            \
        }                                                                                   \
        pass.cls = (enum pt_class)cls;                                                      \
        pt_pass_begin(t, &pass, PT_OP_##name);                                              \
        ret = REAL(name) args;                                                              \
        int error = errno;                                                                  \
        after uint64_t *w = pt_pass_end(t, &pass, PT_OP_##name, WORDS_##name, (int64_t)ret, \
                                        failed(ret) ? error : 0, -1);                       \
        if (PT_LIKELY(w != NULL)) {                                                         \
            fields pt_pass_commit(t, w);                                                    \
        }                                                                                   \
        pt_pass_done(t, &pass);                                                             \
        errno = error;                                                                      \
        return ret;                                                                         \
    }

#define CALL(name, cls, replay, rtype, params, args, fields) \
    WRAPPER(name, rtype, params, args, fields, , GATE_##cls, , )
#define ODD(name, cls, replay, rtype, params, args, fields)                              \
    WRAPPER(name, rtype, params, args, fields, BEFORE_##name, GATE_##name, AFTER_##name, \
            UNTRACED_##name)

/* Below an MPI call everything is the library's own, other MPI calls too. */
#define MPI(name, mcls, replay, params, args, fields)                                          \
    static int(*real_MPI_##name) params;                                                       \
    static inline int wrap_MPI_##name params                                                   \
    {                                                                                          \
        struct pt_thread *t = &pt_self;                                                        \
        struct pt_pass pass = {.cls = PT_CLASS_##mcls};                                        \
        if (PT_UNLIKELY(!real_MPI_##name))                                                     \
            real_MPI_##name = (int(*) params)pt_real_mpi("PMPI_" #name);                       \
        if (!pt_thread_traced(t))                                                              \
            return REAL(MPI_##name) args;                                                      \
        pt_pass_begin(t, &pass, PT_OP_MPI_##name);                                             \
        t->below_mpi++;                                                                        \
        int ret = REAL(MPI_##name) args;                                                       \
        int error = errno;                                                                     \
        t->below_mpi--;                                                                        \
        uint64_t *w = pt_pass_end(t, &pass, PT_OP_MPI_##name, WORDS_MPI_##name, ret, ret, -1); \
        if (PT_LIKELY(w != NULL)) {                                                            \
            fields pt_pass_commit(t, w);                                                       \
        }                                                                                      \
        pt_pass_done(t, &pass);                                                                \
        errno = error;                                                                         \
        return ret;                                                                            \
    }                                                                                          \
    PT_EXPORT int MPI_##name params;                                                           \
    PT_EXPORT int PMPI_##name params;                                                          \
    int MPI_##name params                                                                      \
    {                                                                                          \
        return wrap_MPI_##name args;                                                           \
    }                                                                                          \
    int PMPI_##name params                                                                     \
    {                                                                                          \
        return wrap_MPI_##name args;                                                           \
    }

#include "common/calls.def"

/* ---- second names ---------------------------------------------------------------------------- */

#define ALIAS(second, name)                                 \
    extern __typeof__(name) second##_alias __asm__(#second) \
        __attribute__((alias(#name), visibility("default")));
#include "common/calls.def"
