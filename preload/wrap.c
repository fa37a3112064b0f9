/*
 * The wrappers, generated from the table of calls.
 *
 * A wrapper asks whether the call is traced (GATE), begins the pass, makes the
 * real call, and writes the record.  What is odd about an ODD row stands in the
 * BEFORE_, GATE_, AFTER_ and UNTRACED_ macros of its name; the others get their GATE
 * from their class and nothing else.
 */
#include "config.h"

#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>
#include <wchar.h>

#include "preload/record.h"

/* stdio.h may have them as macros */
#undef getc
#undef putc
#undef getchar
#undef putchar
#undef getc_unlocked
#undef putc_unlocked
#undef getchar_unlocked
#undef putchar_unlocked
#undef fread_unlocked
#undef fwrite_unlocked

typedef void *mpi_h; /* a communicator, datatype or file: passed on, never looked into */

static inline int64_t pt_iov_len(const struct iovec *iov, int cnt)
{
    int64_t n = 0;
    for (int i = 0; i < cnt; i++)
        n += (int64_t)iov[i].iov_len;
    return n;
}

/* The flags that an open with fopen's mode would have. */
static inline int pt_fopen_flags(const char *mode)
{
    int both = strchr(mode, '+') != NULL;
    int more = (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
    switch (*mode) {
    case 'r':
        return (both ? O_RDWR : O_RDONLY) | more;
    case 'w':
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC | more;
    default:
        return (both ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND | more;
    }
}

/* How many bytes wide characters are in the file; errno is kept. */
static inline int64_t pt_wide_byte(wint_t c)
{
    char buf[MB_LEN_MAX];
    mbstate_t state = {0};
    int error = errno;
    size_t n = wcrtomb(buf, (wchar_t)c, &state);
    errno = error;
    return n == (size_t)-1 ? 1 : (int64_t)n;
}

static inline int64_t pt_wide_bytes(const wchar_t *s)
{
    int64_t n = 0;
    for (; *s; s++)
        n += pt_wide_byte((wint_t)*s);
    return n;
}

static inline int64_t pt_mpi_bytes(int n, mpi_h type)
{
    static int (*size_of)(mpi_h, int *);
    int size = 0;
    if (!size_of)
        size_of = (int (*)(mpi_h, int *))pt_real_mpi("PMPI_Type_size");
    return size_of && size_of(type, &size) == 0 ? (int64_t)n * size : 0;
}

/* ---- how many words a row's fields take: numbers, then names ------------------------------ */

#define FD(x)         +1
#define FD2(x)        +1
#define LEN(x)        +1
#define OFF(x)        +1
#define OFF2(x)       +1
#define WHENCE(x)     +1
#define FLAGS(x)      +1
#define MODE(x)       +1
#define PEER(x)       +1
#define TAG(x)        +1
#define PEER2(x)      +1
#define TAG2(x)       +1
#define COUNT(x)      +1
#define COMM(x)       +1
#define CMD(x)        +1
#define UID(x)        +1
#define GID(x)        +1
#define ADDR(x)       +1
#define FILEH(x)      +1
#define COPY          +1
#define IDENT         +4
#define PATH(dir, s)  +1
#define PATH2(dir, s) +1
#define TEXT(s)

enum {
#define CALL(name, cls, replay, ret, params, args, fields)        WORDS_##name = 0 fields,
#define RES(name, cls, replay, ret, params, args, result, fields) WORDS_##name = 0 fields,
#define ODD(name, cls, replay, ret, params, args, result, fields) WORDS_##name = 0 fields,
#define MPI(name, cls, replay, params, args, fields)              WORDS_MPI_##name = 0 fields,
#define MPITEST(name, params, args, success, fields)              WORDS_MPI_##name = 0 fields,
#define MPIIO(name, replay, params, args, fields)                 WORDS_MPI_##name = 0 fields,
#include "common/calls.def"
};

#include "preload/no_fields.h"
#define FD(x)
#define FD2(x)
#define LEN(x)
#define OFF(x)
#define OFF2(x)
#define WHENCE(x)
#define FLAGS(x)
#define MODE(x)
#define PEER(x)
#define TAG(x)
#define PEER2(x)
#define TAG2(x)
#define COUNT(x)
#define COMM(x)
#define CMD(x)
#define UID(x)
#define GID(x)
#define ADDR(x)
#define FILEH(x)
#define COPY
#define IDENT
#define PATH(dir, s)  +pt_string_words(s)
#define PATH2(dir, s) +pt_string_words(s)
#define TEXT(s)       +pt_string_words(s)

#define NAMES(name, params, fields)            \
    static inline unsigned names_##name params \
    {                                          \
        return 0 fields;                       \
    }
#define CALL(name, cls, replay, ret, params, args, fields)        NAMES(name, params, fields)
#define RES(name, cls, replay, ret, params, args, result, fields) NAMES(name, params, fields)
#define ODD(name, cls, replay, ret, params, args, result, fields) NAMES(name, params, fields)
#define MPIIO(name, replay, params, args, fields)                 NAMES(MPI_##name, params, fields)
#include "common/calls.def"

#include "preload/no_fields.h"

/* ---- how a field is written --------------------------------------------------------------- */

#define WORD(x)       *w++ = (uint64_t)(int64_t)(x);
#define FD(x)         WORD(pass.fd ? pass.fd : pt_fds_word(x))
#define FD2(x)        WORD(pt_fds_word(x))
#define LEN(x)        WORD(x)
#define OFF(x)        WORD(x)
#define OFF2(x)       WORD(x)
#define WHENCE(x)     WORD(x)
#define FLAGS(x)      WORD(x)
#define MODE(x)       WORD(x)
#define PEER(x)       WORD(x)
#define TAG(x)        WORD(x)
#define PEER2(x)      WORD(x)
#define TAG2(x)       WORD(x)
#define COUNT(x)      WORD(x)
#define CMD(x)        WORD(x)
#define UID(x)        WORD(x)
#define GID(x)        WORD(x)
#define COMM(x)       WORD((uintptr_t)(x))
#define ADDR(x)       WORD((uintptr_t)(x))
#define FILEH(x)      WORD((uintptr_t)(x))
#define PATH(dir, s)  WORD(dir_word(dir)) w = pt_put_string(w, s);
#define PATH2(dir, s) WORD(dir_word(dir)) w = pt_put_string(w, s);
#define TEXT(s)       w = pt_put_string(w, s);
#define COPY          WORD(copy)
#define IDENT \
    WORD(pass.ident.handle) WORD(pass.ident.dev) WORD(pass.ident.ino) WORD(pass.ident.size)

static inline int64_t dir_word(int dir)
{
    return dir == AT_FDCWD ? AT_FDCWD : pt_fds_word(dir);
}

/* ---- which calls are traced: the event's class, or -1 --------------------------------------- */

#define GATE_FDIO   pt_fds_class(t, fd, &pass)
#define GATE_STDIO  pt_fds_class(t, f->_fileno, &pass)
#define GATE_STDOUT pt_fds_class(t, stdout->_fileno, &pass)
#define GATE_STDIN  pt_fds_class(t, stdin->_fileno, &pass)
#define GATE_DIRIO  pt_fds_class(t, dirfd(dir), &pass)
#define GATE_AIO    pt_fds_class(t, cb->aio_fildes, &pass)
#define GATE_IO     (pt_filter_path(path) ? PT_CLASS_IO : -1)
#define GATE_SYNC   PT_CLASS_SYNC
#define GATE_IDLE   PT_CLASS_IDLE
#define GATE_NAME   PT_CLASS_NAME

/* ---- the odd ones ------------------------------------------------------------------------------
 */

#define NOTHING
#define NEEDS_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)
#define MODE_ARGUMENT              \
    mode_t mode = 0;               \
    if (NEEDS_MODE(flags)) {       \
        va_list ap;                \
        va_start(ap, flags);       \
        mode = va_arg(ap, mode_t); \
        va_end(ap);                \
    }
#define OPENED(made) \
    if ((made) >= 0) \
        pt_fds_opened(made, &pass);
/* A descriptor of a file that is not traced is not traced either. */
#define NOT_OPENED(made)            \
    if ((made) >= 0 && !pt_vforked) \
        pt_fds_ignore(made);
#define COPIED    \
    if (ret >= 0) \
        copy = pt_fds_copied(pass.fd, ret);
#define NOT_COPIED               \
    if (ret >= 0 && !pt_vforked) \
        pt_fds_copied(PT_FD_WORD(fd, 0), ret);
#define STREAM_FD (ret ? ret->_fileno : -1)
#define DIR_FD    (ret ? dirfd(ret) : -1)

#define BEFORE_open             MODE_ARGUMENT
#define BEFORE_openat           MODE_ARGUMENT
#define BEFORE___open_2         NOTHING
#define BEFORE___openat_2       NOTHING
#define BEFORE_creat            NOTHING
#define BEFORE_mkstemp          NOTHING
#define BEFORE_mkostemp         NOTHING
#define BEFORE_mkstemps         NOTHING
#define BEFORE_mkostemps        NOTHING
#define BEFORE_close            NOTHING
#define BEFORE_dup              NOTHING
#define BEFORE_dup2             NOTHING
#define BEFORE_dup3             NOTHING
#define BEFORE_opendir          NOTHING
#define BEFORE_closedir         NOTHING
#define BEFORE_fopen            NOTHING
#define BEFORE_freopen          NOTHING
#define BEFORE_tmpfile          NOTHING
#define BEFORE_fclose           NOTHING
#define BEFORE_fflush           NOTHING
#define BEFORE_fflush_unlocked  NOTHING
#define BEFORE___isoc99_vfscanf int64_t from = pt_position(f);

#define GATE_open             GATE_IO
#define GATE_openat           GATE_IO
#define GATE___open_2         GATE_IO
#define GATE___openat_2       GATE_IO
#define GATE_creat            GATE_IO
#define GATE_mkstemp          GATE_IO
#define GATE_mkostemp         GATE_IO
#define GATE_mkstemps         GATE_IO
#define GATE_mkostemps        GATE_IO
#define GATE_close            pt_fds_closing(t, fd, &pass)
#define GATE_dup              GATE_FDIO
#define GATE_dup2             GATE_FDIO
#define GATE_dup3             GATE_FDIO
#define GATE_opendir          GATE_IO
#define GATE_closedir         pt_fds_closing(t, dirfd(dir), &pass)
#define GATE_fopen            GATE_IO
#define GATE_freopen          GATE_IO
#define GATE_tmpfile          PT_CLASS_IO
#define GATE_fclose           pt_fds_closing(t, f->_fileno, &pass)
#define GATE_fflush           (f ? GATE_STDIO : PT_CLASS_IO)
#define GATE_fflush_unlocked  (f ? GATE_STDIO : PT_CLASS_IO)
#define GATE___isoc99_vfscanf GATE_STDIO

#define AFTER_open             OPENED(ret)
#define AFTER_openat           OPENED(ret)
#define AFTER___open_2         OPENED(ret)
#define AFTER___openat_2       OPENED(ret)
#define AFTER_creat            OPENED(ret)
#define AFTER_mkstemp          OPENED(ret)
#define AFTER_mkostemp         OPENED(ret)
#define AFTER_mkstemps         OPENED(ret)
#define AFTER_mkostemps        OPENED(ret)
#define AFTER_close            NOTHING
#define AFTER_dup              COPIED
#define AFTER_dup2             COPIED
#define AFTER_dup3             COPIED
#define AFTER_opendir          OPENED(DIR_FD)
#define AFTER_closedir         NOTHING
#define AFTER_fopen            OPENED(STREAM_FD)
#define AFTER_freopen          OPENED(STREAM_FD)
#define AFTER_tmpfile          OPENED(STREAM_FD)
#define AFTER_fclose           NOTHING
#define AFTER_fflush           NOTHING
#define AFTER_fflush_unlocked  NOTHING
#define AFTER___isoc99_vfscanf NOTHING

/* The same as AFTER, for a call that is not recorded. */
#define UNTRACED_open       NOT_OPENED(ret)
#define UNTRACED_openat     NOT_OPENED(ret)
#define UNTRACED___open_2   NOT_OPENED(ret)
#define UNTRACED___openat_2 NOT_OPENED(ret)
#define UNTRACED_creat      NOT_OPENED(ret)
#define UNTRACED_mkstemp    NOT_OPENED(ret)
#define UNTRACED_mkostemp   NOT_OPENED(ret)
#define UNTRACED_mkstemps   NOT_OPENED(ret)
#define UNTRACED_mkostemps  NOT_OPENED(ret)
#define UNTRACED_close      NOTHING
#define UNTRACED_dup        NOT_COPIED
#define UNTRACED_dup2       NOT_COPIED
#define UNTRACED_dup3       NOT_COPIED
#define UNTRACED_opendir    NOT_OPENED(DIR_FD)
#define UNTRACED_closedir   NOTHING
#define UNTRACED_fopen      NOT_OPENED(STREAM_FD)
#define UNTRACED_freopen      \
    if (path) {               \
        NOT_OPENED(STREAM_FD) \
    }
#define UNTRACED_tmpfile          NOT_OPENED(STREAM_FD)
#define UNTRACED_fclose           NOTHING
#define UNTRACED_fflush           NOTHING
#define UNTRACED_fflush_unlocked  NOTHING
#define UNTRACED___isoc99_vfscanf (void)from;

/* ---- the wrappers -------------------------------------------------------------------------------
 */

#define WRAPPER(name, rtype, params, args, result, fields, before, gate, after, untraced)   \
    static rtype(*real_##name) params;                                                      \
    PT_EXPORT rtype name params;                                                            \
    rtype name params                                                                       \
    {                                                                                       \
        before struct pt_thread *t = &pt_self;                                              \
        struct pt_pass pass;                                                                \
        int64_t copy __attribute__((unused)) = PT_FD_WORD(-1, 0);                           \
        rtype ret;                                                                          \
        if (PT_UNLIKELY(!real_##name))                                                      \
            real_##name = (rtype(*) params)pt_real(#name);                                  \
        pass.fd = 0;                                                                        \
        int cls = pt_thread_traced(t) ? (int)(gate) : -1;                                   \
        if (cls < 0) {                                                                      \
            ret = real_##name args;                                                         \
            untraced return ret;                                                            \
        }                                                                                   \
        pass.cls = (enum pt_class)cls;                                                      \
        pass.flags = 0;                                                                     \
        pass.ident.handle = 0;                                                              \
        pass.ident.dev = pass.ident.ino = pass.ident.size = 0;                              \
        pt_pass_begin(t, &pass, PT_OP_##name);                                              \
        ret = real_##name args;                                                             \
        after int64_t recorded = (int64_t)(result);                                         \
        uint64_t *w = pt_pass_end(t, &pass, PT_OP_##name, WORDS_##name + names_##name args, \
                                  recorded, recorded == -1 ? errno : 0);                    \
        if (PT_LIKELY(w != NULL)) {                                                         \
            fields pt_pass_commit(t);                                                       \
        }                                                                                   \
        pt_pass_done(t, &pass);                                                             \
        return ret;                                                                         \
    }

#define CALL(name, cls, replay, rtype, params, args, fields) \
    WRAPPER(name, rtype, params, args, ret, fields, NOTHING, GATE_##cls, NOTHING, NOTHING)
#define RES(name, cls, replay, rtype, params, args, result, fields) \
    WRAPPER(name, rtype, params, args, result, fields, NOTHING, GATE_##cls, NOTHING, NOTHING)
#define ODD(name, cls, replay, rtype, params, args, result, fields)                              \
    WRAPPER(name, rtype, params, args, result, fields, BEFORE_##name, GATE_##name, AFTER_##name, \
            UNTRACED_##name)

/*
 * MPI_name and PMPI_name.  Below an MPI call everything is the library's own, other MPI
 * calls too; below one of MPI-IO (`depth` is then `inner`) I/O is recorded as inner.
 */
#define MPI_WRAPPER(name, mcls, params, args, depth, names, fields, end)               \
    static int(*real_MPI_##name) params;                                               \
    static inline int wrap_MPI_##name params                                           \
    {                                                                                  \
        struct pt_thread *t = &pt_self;                                                \
        struct pt_pass pass;                                                           \
        if (PT_UNLIKELY(!real_MPI_##name))                                             \
            real_MPI_##name = (int(*) params)pt_real_mpi("PMPI_" #name);               \
        if (!pt_thread_traced(t) || t->inner)                                          \
            return real_MPI_##name args;                                               \
        pass.cls = mcls;                                                               \
        pass.flags = 0;                                                                \
        pass.fd = 0;                                                                   \
        pt_pass_begin(t, &pass, PT_OP_MPI_##name);                                     \
        t->depth++;                                                                    \
        int ret = real_MPI_##name args;                                                \
        t->depth--;                                                                    \
        end uint64_t *w =                                                              \
            pt_pass_end(t, &pass, PT_OP_MPI_##name, WORDS_MPI_##name + names, 0, ret); \
        if (PT_LIKELY(w != NULL)) {                                                    \
            fields pt_pass_commit(t);                                                  \
        }                                                                              \
        pt_pass_done(t, &pass);                                                        \
        return ret;                                                                    \
    }                                                                                  \
    PT_EXPORT int MPI_##name params;                                                   \
    PT_EXPORT int PMPI_##name params;                                                  \
    int MPI_##name params                                                              \
    {                                                                                  \
        return wrap_MPI_##name args;                                                   \
    }                                                                                  \
    int PMPI_##name params                                                             \
    {                                                                                  \
        return wrap_MPI_##name args;                                                   \
    }

/* The first in a row says what is asked for; a success ends the row. */
#define IN_VAIN(name, success, fields)                                \
    if (ret == 0 && !(success)) {                                     \
        if (!t->poll.count) {                                         \
            uint64_t *w __attribute__((unused)) = t->poll.values;     \
            fields                                                    \
        }                                                             \
        pt_poll_failed(t, &pass, PT_OP_MPI_##name, WORDS_MPI_##name); \
        return ret;                                                   \
    }                                                                 \
    if (PT_UNLIKELY(t->poll.count))                                   \
        pt_polls_end(t);

#define MPI(name, mcls, replay, params, args, fields) \
    MPI_WRAPPER(name, PT_CLASS_##mcls, params, args, below_mpi, 0, fields, NOTHING)
#define MPITEST(name, params, args, success, fields)                     \
    MPI_WRAPPER(name, PT_CLASS_SYNC, params, args, below_mpi, 0, fields, \
                IN_VAIN(name, success, fields))
#define MPIIO(name, replay, params, args, fields) \
    MPI_WRAPPER(name, PT_CLASS_IO, params, args, inner, names_MPI_##name args, fields, NOTHING)

#include "common/calls.def"

/* ---- second names
 * ---------------------------------------------------------------------------------- */

#define ALIAS(second, name)                                 \
    extern __typeof__(name) second##_alias __asm__(#second) \
        __attribute__((alias(#name), visibility("default")));
#include "common/calls.def"

/* ---- the real functions ------------------------------------------------------------------- */

/*
 * Those that an allocator may call before anything else, so that looking them up does not
 * need memory at the wrong moment; the others are looked up when they are first called,
 * for most programs use few.
 */
void pt_wrap_resolve(void)
{
#define RESOLVE(name) real_##name = (__typeof__(real_##name))pt_real(#name)
    RESOLVE(open);
    RESOLVE(openat);
    RESOLVE(read);
    RESOLVE(write);
    RESOLVE(close);
    RESOLVE(fstat);
    RESOLVE(readlink);
    RESOLVE(fopen);
    RESOLVE(fgets);
    RESOLVE(fclose);
}
