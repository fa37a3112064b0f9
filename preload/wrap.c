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
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
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
#include <threads.h>
#include <unistd.h>
#include <utime.h>
#include <wchar.h>

#include "preload/lineage.h"
#include "preload/mpi.h"
#include "preload/poll.h"
#include "preload/stream.h"

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

/* ---- how many words a row's fields take (PT_SHAPE), and how long its names are -------------- */

#define FD(x)         +1
#define FD2(x)        +1
#define LEN(x)        +PT_SHAPE_LEN
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
#define FREED(x)      +1
#define REQ(x)        +1
#define CMD(x)        +1
#define UID(x)        +1
#define GID(x)        +1
#define ADDR(x)       +1
#define FILEH(x)      +1
#define COPY          +1
#define IDENT         +4
#define PATH(dir, s)  +2
#define PATH2(dir, s) +2
#define TEXT(s)       +1

enum {
#define CALL(name, cls, replay, ret, params, args, fields)        SHAPE_##name = 0 fields,
#define RES(name, cls, replay, ret, params, args, result, fields) SHAPE_##name = 0 fields,
#define ODD(name, cls, replay, ret, params, args, result, fields) SHAPE_##name = 0 fields,
#define ASK(name, cls, replay, ret, params, args, vain, fields)   SHAPE_##name = 0 fields,
#define TRY(name, ret, params, args, vain, fields)                SHAPE_##name = 0 fields,
#define LOCK(name, try, taken, params, args, vain, fields)        SHAPE_##name = 0 fields,
#define NUM(name, cls, replay, params, args, result, fields)      SHAPE_##name = 0 fields,
#define MPI(name, cls, replay, params, args, fields)              SHAPE_MPI_##name = 0 fields,
#define MPIODD(name, cls, params, args, fields)                   SHAPE_MPI_##name = 0 fields,
#define MPICOMM(name, same, params, args, old, made, fields)      SHAPE_MPI_##name = 0 fields,
#define MPITEST(name, params, args, success, fields)              SHAPE_MPI_##name = 0 fields,
#define MPIIO(name, replay, params, args, fields)                 SHAPE_MPI_##name = 0 fields,
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
#define FREED(x)
#define REQ(x)
#define CMD(x)
#define UID(x)
#define GID(x)
#define ADDR(x)
#define FILEH(x)
#define COPY
#define IDENT
#define PATH(dir, s)  length.path = name_length(dir, s);
#define PATH2(dir, s) length.other = name_length(dir, s);
#define TEXT(s)       length.other = pt_string_length(s);

struct lengths {
    size_t path, other; /* a row has no more than a PATH and one other name, PATH2 or TEXT */
};

/* How long it is; and what it is relative to will be known. */
static inline size_t name_length(int dir, const char *s)
{
    size_t n = pt_string_length(s);
    pt_fds_know_dir(&pt_self, dir, s, n);
    return n;
}

#define NAMES(name, params, fields)                      \
    static inline struct lengths lengths_##name params { \
        struct lengths length = {0, 0};                  \
        fields return length;                            \
    }
#define CALL(name, cls, replay, ret, params, args, fields)        NAMES(name, params, fields)
#define RES(name, cls, replay, ret, params, args, result, fields) NAMES(name, params, fields)
#define ODD(name, cls, replay, ret, params, args, result, fields) NAMES(name, params, fields)
#define ASK(name, cls, replay, ret, params, args, vain, fields)   NAMES(name, params, fields)
#define NUM(name, cls, replay, params, args, result, fields)      NAMES(name, params, fields)
#define MPIIO(name, replay, params, args, fields)                 NAMES(MPI_##name, params, fields)
#include "common/calls.def"

#define NO_NAMES ((struct lengths){0, 0})

static inline unsigned text_words(struct lengths length)
{
    return pt_text_words(length.path) + pt_text_words(length.other);
}

/* ---- how many bytes a call of MPI may have to move: fields that say so ----------------------- */

#undef PATH
#undef PATH2
#undef TEXT
#undef LEN
#undef COUNT
#define PATH(dir, s)
#define PATH2(dir, s)
#define TEXT(s)
#define LEN(x)              +(int64_t)(x)
#define COUNT(x)            +8 * (int64_t)(x) /* of what, is not known here */
#define BYTES(n, type)      pt_mpi_bytes(n, type)
#define NONZERO(ns, comm)   0
#define OWN_COUNT(ns, comm) 0
#define ANSWER(x)           0 /* not there before the call */

#define SIZE(name, params, fields)               \
    static inline int64_t size_MPI_##name params \
    {                                            \
        return 0 fields;                         \
    }
#define MPI(name, cls, replay, params, args, fields)         SIZE(name, params, fields)
#define MPIODD(name, cls, params, args, fields)              SIZE(name, params, fields)
#define MPICOMM(name, same, params, args, old, made, fields) SIZE(name, params, fields)
#define MPITEST(name, params, args, success, fields)         SIZE(name, params, fields)
#define MPIIO(name, replay, params, args, fields)            SIZE(name, params, fields)
#include "common/calls.def"
#undef BYTES
#undef NONZERO
#undef OWN_COUNT
#undef ANSWER
#define ANSWER(x) (x)

/* ---- how many bytes a call on a stream will write: its only LEN ------------------------------ */

#define LENGTH_STDPUT(name, params, fields)    \
    static inline int64_t length_##name params \
    {                                          \
        return 0 fields;                       \
    }
#define LENGTH_NO(name, params, fields)
#define LENGTH_STDIO                                              LENGTH_NO
#define LENGTH_STDLINE                                            LENGTH_NO
#define LENGTH_CHARIN                                             LENGTH_NO
#define LENGTH_CHAROUT                                            LENGTH_NO
#define LENGTH_STDOUT                                             LENGTH_NO
#define LENGTH_STDIN                                              LENGTH_NO
#define LENGTH_FDIO                                               LENGTH_NO
#define LENGTH_DIRIO                                              LENGTH_NO
#define LENGTH_AIO                                                LENGTH_NO
#define LENGTH_IO                                                 LENGTH_NO
#define LENGTH_SYNC                                               LENGTH_NO
#define LENGTH_NFDS                                               LENGTH_NO
#define LENGTH_IDLE                                               LENGTH_NO
#define LENGTH_NAME                                               LENGTH_NO
#define RES(name, cls, replay, ret, params, args, result, fields) LENGTH_##cls(name, params, fields)
#include "common/calls.def"

#include "preload/no_fields.h"

/* ---- is it the same look again? Names and flags are compared --------------------------------- */

#define SKIP          &&w++
#define FD(x)         SKIP
#define FD2(x)        SKIP
#define LEN(x)        SKIP
#define OFF(x)        SKIP
#define OFF2(x)       SKIP
#define WHENCE(x)     SKIP
#define FLAGS(x)      &&pt_same_number(&w, (int64_t)(x))
#define MODE(x)       SKIP
#define PEER(x)       SKIP
#define COUNT(x)      SKIP
#define CMD(x)        SKIP
#define UID(x)        SKIP
#define GID(x)        SKIP
#define ADDR(x)       SKIP
#define COPY          SKIP
#define IDENT         SKIP SKIP SKIP SKIP
#define PATH(dir, s)  &&pt_same_number(&w, dir_word(dir)) && pt_same_string(&w, s)
#define PATH2(dir, s) PATH(dir, s)
#define TEXT(s)       &&pt_same_string(&w, s)

static inline int64_t dir_word(int dir)
{
    return dir == AT_FDCWD ? AT_FDCWD : pt_fds_word(dir);
}

#define ALIKE(name, params, fields)                                    \
    static inline __attribute__((cold, unused)) int same_##name params \
    {                                                                  \
        const uint64_t *w __attribute__((unused)) = pt_self.poll.row;  \
        return 1 fields;                                               \
    }
#define CALL(name, cls, replay, ret, params, args, fields)        ALIKE_##cls(name, params, fields)
#define RES(name, cls, replay, ret, params, args, result, fields) ALIKE_##cls(name, params, fields)
#define ODD(name, cls, replay, ret, params, args, result, fields) ALIKE_##cls(name, params, fields)
#define ALIKE_IO                                                  ALIKE
#define ALIKE_NO(name, params, fields)
#define ALIKE_FDIO    ALIKE_NO
#define ALIKE_STDIO   ALIKE_NO
#define ALIKE_CHARIN  ALIKE_NO
#define ALIKE_CHAROUT ALIKE_NO
#define ALIKE_STDPUT  ALIKE_NO
#define ALIKE_STDLINE ALIKE_NO
#define ALIKE_STDOUT  ALIKE_NO
#define ALIKE_STDIN   ALIKE_NO
#define ALIKE_DIRIO   ALIKE_NO
#define ALIKE_AIO     ALIKE_NO
#define ALIKE_SYNC    ALIKE_NO
#define ALIKE_FDLOCK  ALIKE_NO
#define ALIKE_IDLE    ALIKE_NO
#define ALIKE_NAME    ALIKE_NO
#define ALIKE_FDNAME  ALIKE_NO
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
#define COMM(x)       WORD(pt_mpi_comm(x))
#define FREED(x)      WORD(x)
#define REQ(x)        WORD(x)
#define ADDR(x)       WORD((uintptr_t)(x))
#define FILEH(x)      WORD((uintptr_t)(x))
#define PATH(dir, s)  WORD(dir_word(dir)) w = pt_put_string(w, s, length.path);
#define PATH2(dir, s) WORD(dir_word(dir)) w = pt_put_string(w, s, length.other);
#define TEXT(s)       w = pt_put_string(w, s, length.other);
#define COPY          WORD(copy)
#define IDENT \
    WORD(pass.ident.handle) WORD(pass.ident.dev) WORD(pass.ident.ino) WORD(pass.ident.size)

/* ---- which calls are traced: the event's class, or -1 --------------------------------------- */

#define GATE_FDIO   pt_fds_class(t, fd, &pass)
#define GATE_STDIO  pt_stream_enter(t, f, &pass)
#define GATE_DIRIO  pt_fds_class(t, dirfd(dir), &pass)
#define GATE_AIO    pt_fds_class(t, cb->aio_fildes, &pass)
#define GATE_IO     (pt_filter_path(path, length.path) ? PT_CLASS_IO : -1)
#define GATE_SYNC   PT_CLASS_SYNC
#define GATE_FDLOCK (pt_fds_know(t, fd), PT_CLASS_SYNC)
#define GATE_FDNAME (pt_fds_know(t, fd), PT_CLASS_NAME)
#define GATE_NFDS   (n ? PT_CLASS_SYNC : PT_CLASS_IDLE)
#define GATE_IDLE   PT_CLASS_IDLE
#define GATE_NAME   PT_CLASS_NAME

/* ---- the odd ones ---------------------------------------------------------------------------- */

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
#define OPENED_NEW(made) \
    if ((made) >= 0)     \
        pt_fds_opened_just_now(made, &pass);
/* What turns out not to be a file is not recorded. */
#define STATED                                  \
    if (ret == 0 && pt_fds_stated(t, fd, st)) { \
        pt_set_phase(t, PT_PHASE_COMPUTE, 0);   \
        return ret;                             \
    }
/* A descriptor of a file that is not traced is not traced either. */
#define NOT_OPENED_AS(made, name)   \
    if ((made) >= 0 && !pt_vforked) \
        pt_fds_ignore(made, name, length.path);
#define NOT_OPENED(made) NOT_OPENED_AS(made, path)
#define COPIED    \
    if (ret >= 0) \
        copy = pt_fds_copied(pass.fd, ret);
#define NOT_COPIED               \
    if (ret >= 0 && !pt_vforked) \
        pt_fds_copied(PT_FD_WORD(fd, 0), ret);
#define STREAM_FD (ret ? pt_stream_fd(ret) : -1)
#define DIR_FD    (ret ? dirfd(ret) : -1)
/* fflush is for one stream or for all. */
#define TO_FLUSH    (f ? GATE_STDIO : ALL_STREAMS)
#define FLUSHED     f ? pt_stream_leave(t, f) : pt_streams_leave(t);
#define ALL_STREAMS (pt_streams_enter(t), PT_CLASS_IO)

#define BEFORE_open            MODE_ARGUMENT
#define BEFORE_openat          MODE_ARGUMENT
#define BEFORE___open_2        NOTHING
#define BEFORE___openat_2      NOTHING
#define BEFORE_creat           NOTHING
#define BEFORE_mkstemp         NOTHING
#define BEFORE_mkostemp        NOTHING
#define BEFORE_mkstemps        NOTHING
#define BEFORE_mkostemps       NOTHING
#define BEFORE_close           NOTHING
#define BEFORE_dup             NOTHING
#define BEFORE_dup2            NOTHING
#define BEFORE_dup3            NOTHING
#define BEFORE_opendir         NOTHING
#define BEFORE_closedir        NOTHING
#define BEFORE_fopen           NOTHING
#define BEFORE_tmpfile         NOTHING
#define BEFORE_fstat           NOTHING
#define BEFORE_fclose          pt_stream_close(f);
#define BEFORE_fcloseall       NOTHING
#define BEFORE_fflush          NOTHING
#define BEFORE_fflush_unlocked NOTHING
#define BEFORE_system          uint64_t left = pt_lineage_leave_to_child();

#define GATE_open            GATE_IO
#define GATE_openat          GATE_IO
#define GATE___open_2        GATE_IO
#define GATE___openat_2      GATE_IO
#define GATE_creat           GATE_IO
#define GATE_mkstemp         GATE_IO
#define GATE_mkostemp        GATE_IO
#define GATE_mkstemps        GATE_IO
#define GATE_mkostemps       GATE_IO
#define GATE_close           pt_fds_closing(t, fd, &pass)
#define GATE_dup             GATE_FDIO
#define GATE_dup2            GATE_FDIO
#define GATE_dup3            GATE_FDIO
#define GATE_opendir         GATE_IO
#define GATE_closedir        (pt_is_address(dir) ? pt_fds_closing(t, dirfd(dir), &pass) : -1)
#define GATE_fopen           GATE_IO
#define GATE_tmpfile         PT_CLASS_IO
#define GATE_fstat           pt_fds_class_of_stat(t, fd, &pass)
#define GATE_fclose          pt_fds_closing(t, pt_stream_fd(f), &pass)
#define GATE_fcloseall       ALL_STREAMS
#define GATE_fflush          TO_FLUSH
#define GATE_fflush_unlocked TO_FLUSH
#define GATE_system          GATE_SYNC

#define AFTER_open            OPENED_NEW(ret)
#define AFTER_openat          OPENED_NEW(ret)
#define AFTER___open_2        OPENED_NEW(ret)
#define AFTER___openat_2      OPENED_NEW(ret)
#define AFTER_creat           OPENED_NEW(ret)
#define AFTER_mkstemp         OPENED(ret)
#define AFTER_mkostemp        OPENED(ret)
#define AFTER_mkstemps        OPENED(ret)
#define AFTER_mkostemps       OPENED(ret)
#define AFTER_close           NOTHING
#define AFTER_dup             COPIED
#define AFTER_dup2            COPIED
#define AFTER_dup3            COPIED
#define AFTER_opendir         OPENED(DIR_FD)
#define AFTER_closedir        NOTHING
#define AFTER_fopen           OPENED(STREAM_FD)
#define AFTER_tmpfile         OPENED(STREAM_FD)
#define AFTER_fstat           STATED
#define AFTER_fclose          NOTHING
#define AFTER_fcloseall       pt_streams_leave(t);
#define AFTER_fflush          FLUSHED
#define AFTER_fflush_unlocked FLUSHED
/* The shell may be a program that is not traced. */
#define AFTER_system pt_lineage_withdraw(left);

/* The same as AFTER, for a call that is not recorded. */
#define UNTRACED_open            NOT_OPENED(ret)
#define UNTRACED_openat          NOT_OPENED(ret)
#define UNTRACED___open_2        NOT_OPENED(ret)
#define UNTRACED___openat_2      NOT_OPENED(ret)
#define UNTRACED_creat           NOT_OPENED(ret)
#define UNTRACED_mkstemp         NOT_OPENED(ret)
#define UNTRACED_mkostemp        NOT_OPENED(ret)
#define UNTRACED_mkstemps        NOT_OPENED(ret)
#define UNTRACED_mkostemps       NOT_OPENED(ret)
#define UNTRACED_close           NOTHING
#define UNTRACED_dup             NOT_COPIED
#define UNTRACED_dup2            NOT_COPIED
#define UNTRACED_dup3            NOT_COPIED
#define UNTRACED_opendir         NOT_OPENED(DIR_FD)
#define UNTRACED_closedir        NOTHING
#define UNTRACED_fopen           NOT_OPENED(STREAM_FD)
#define UNTRACED_tmpfile         NOT_OPENED_AS(STREAM_FD, "")
#define UNTRACED_fstat           NOTHING
#define UNTRACED_fclose          NOTHING
#define UNTRACED_fcloseall       pt_streams_leave(t);
#define UNTRACED_fflush          FLUSHED
#define UNTRACED_fflush_unlocked FLUSHED
#define UNTRACED_system          pt_lineage_withdraw(left);

/* ---- what asks in vain (poll.c), by the row's class ------------------------------------------ */

/* May the call go on with pending polls? */
#define AGAIN_IO(name, args)            \
    (t->poll.compared = t->poll.serial, \
     t->poll.look && t->poll.op == PT_OP_##name && !t->inner && same_##name args)
#define AGAIN_SYNC(name, args)   1
#define AGAIN_FDLOCK(name, args) 1
#define AGAIN_NFDS(name, args)   1
#define AGAIN_FDIO(name, args)   (pass.cls == PT_CLASS_SYNC)
#define AGAIN_STDIO(name, args)  (pass.cls == PT_CLASS_SYNC)
#define AGAIN_DIRIO(name, args)  (pass.cls == PT_CLASS_SYNC)
#define AGAIN_AIO(name, args)    (pass.cls == PT_CLASS_SYNC)
#define AGAIN_IDLE(name, args)   0
#define AGAIN_NAME(name, args)   0
#define AGAIN_FDNAME(name, args) 0

/* Has a call that failed with `err` asked in vain? */
#define VAIN_IO     pt_look_in_vain(t, err)
#define VAIN_SYNC   pt_ask_in_vain(t, PT_CLASS_SYNC, err)
#define VAIN_FDLOCK VAIN_SYNC
#define VAIN_NFDS   0
#define VAIN_FDIO   pt_ask_in_vain(t, pass.cls, err)
#define VAIN_STDIO  pt_ask_in_vain(t, pass.cls, err)
#define VAIN_DIRIO  0
#define VAIN_AIO    pt_ask_in_vain(t, pass.cls, err)
#define VAIN_IDLE   0
#define VAIN_NAME   0
#define VAIN_FDNAME 0

/* A sleep between polls is not an event. */
#define SLEPT_IDLE(name)                                                     \
    if (pt_poll_slept(t, &pass, PT_OP_##name, PT_SHAPE_WORDS(SHAPE_##name))) \
        return ret;
#define SLEPT_NFDS(name)                                                         \
    if (pass.cls == PT_CLASS_IDLE) {                                             \
        if (pt_poll_slept(t, &pass, PT_OP_##name, PT_SHAPE_WORDS(SHAPE_##name))) \
            return ret;                                                          \
        pass.flags |= PT_RECF_IDLE;                                              \
        vain = 0;                                                                \
    }
#define SLEPT_IO(name)
#define SLEPT_SYNC(name)
#define SLEPT_FDLOCK(name)
#define SLEPT_FDIO(name)
#define SLEPT_STDIO(name)
#define SLEPT_DIRIO(name)
#define SLEPT_AIO(name)
#define SLEPT_NAME(name)
#define SLEPT_FDNAME(name)

/* ---- the wrappers ---------------------------------------------------------------------------- */

/*
 * In the order of the table, which begins with what programs call most.  This file is linked last,
 * so those still lie on the page of all that is near.
 */
static PT_NEAR void *reals[PT_NOPS];
static PT_FAR void *profiled[PT_NOPS]; /* of MPI: those called PMPI_ */

#define REAL(name) ((__typeof__(&name))reals[PT_OP_##name])
#define REAL_RESOLVE(name)                 \
    if (PT_UNLIKELY(!reals[PT_OP_##name])) \
        reals[PT_OP_##name] = pt_real(#name);

#define WRAPPER(name, rcls, rtype, params, args, result, error, asked, fields, before, gate,   \
                after, untraced)                                                               \
    PT_EXPORT rtype name params;                                                               \
    rtype name params                                                                          \
    {                                                                                          \
        before struct pt_thread *t = &pt_self;                                                 \
        struct pt_pass pass;                                                                   \
        int64_t copy __attribute__((unused)) = PT_FD_WORD(-1, 0);                              \
        rtype ret;                                                                             \
        REAL_RESOLVE(name)                                                                     \
        pass.fd = 0;                                                                           \
        struct lengths length = {0, 0};                                                        \
        int cls = -1;                                                                          \
        if (pt_thread_traced(t)) {                                                             \
            length = lengths_##name args;                                                      \
            cls = (int)(gate);                                                                 \
        }                                                                                      \
        if (cls < 0) {                                                                         \
            ret = REAL(name) args;                                                             \
            untraced return ret;                                                               \
        }                                                                                      \
        pass.cls = (enum pt_class)cls;                                                         \
        pass.flags = 0;                                                                        \
        pass.ident.handle = 0;                                                                 \
        pass.ident.dev = pass.ident.ino = pass.ident.size = 0;                                 \
        pt_pass_begin(t, &pass, PT_OP_##name, AGAIN_##rcls(name, args));                       \
        ret = REAL(name) args;                                                                 \
        after int64_t recorded = (int64_t)(result);                                            \
        int err = 0, vain = (asked) && !t->poll.busy;                                          \
        if (PT_UNLIKELY(recorded == -1)) {                                                     \
            err = (error);                                                                     \
            vain |= VAIN_##rcls;                                                               \
        }                                                                                      \
        SLEPT_##rcls(name) unsigned words = PT_SHAPE_WORDS(SHAPE_##name) + text_words(length); \
        uint64_t *w = PT_UNLIKELY(vain)                                                        \
                          ? pt_poll_failed(t, &pass, PT_OP_##name, words, recorded, err)       \
                          : pt_pass_end(t, &pass, PT_OP_##name, words, recorded, err);         \
        if (PT_LIKELY(w != NULL)) {                                                            \
            fields                                                                             \
        }                                                                                      \
        if (PT_UNLIKELY(vain)) {                                                               \
            pt_poll_kept(t);                                                                   \
            return ret;                                                                        \
        }                                                                                      \
        pt_pass_close(t, &pass, PT_OP_##name, w);                                              \
        return ret;                                                                            \
    }

/* A call on a stream, see pt_stream_begin(); `shortcut`: statements that may be all there is to do.
 */
#define STREAM_WRAPPER_BODY(name, rtype, params, args, result, fields, stream, shortcut)       \
    PT_EXPORT rtype name params;                                                               \
    rtype name params                                                                          \
    {                                                                                          \
        struct pt_pass pass;                                                                   \
        int64_t words[PT_SHAPE_WORDS(SHAPE_##name)], *w = words;                               \
        REAL_RESOLVE(name)                                                                     \
        shortcut int cls = pt_stream_begin(stream, PT_OP_##name, &pass);                       \
        rtype ret = REAL(name) args;                                                           \
        if (cls < 0) {                                                                         \
            pt_stream_leave(&pt_self, stream);                                                 \
            return ret;                                                                        \
        }                                                                                      \
        int64_t recorded = (int64_t)(result);                                                  \
        int err = PT_UNLIKELY(recorded == -1) ? errno : 0;                                     \
        fields pt_stream_end(stream, &pass, PT_OP_##name, recorded, err, SHAPE_##name, words); \
        return ret;                                                                            \
    }

/* `alone`: it is none of ours by itself. */
#define STREAM_WRAPPER(name, rtype, params, args, result, fields, stream, alone) \
    STREAM_WRAPPER_BODY(name, rtype, params, args, result, fields, stream,       \
                        if (alone) return REAL(name) args;)

#define CALL(name, cls, replay, rtype, params, args, fields)                                     \
    WRAPPER(name, cls, rtype, params, args, ret, errno, 0, fields, NOTHING, GATE_##cls, NOTHING, \
            NOTHING)
#define RES(name, cls, replay, rtype, params, args, result, fields) \
    RES_##cls(name, cls, rtype, params, args, result, fields)
#define RES_CALL(name, cls, rtype, params, args, result, fields)                           \
    WRAPPER(name, cls, rtype, params, args, result, errno, 0, fields, NOTHING, GATE_##cls, \
            NOTHING, NOTHING)
#define RES_FDIO  RES_CALL
#define RES_DIRIO RES_CALL
#define RES_AIO   RES_CALL
#define RES_IO    RES_CALL
#define RES_SYNC  RES_CALL
#define RES_NFDS  RES_CALL
#define RES_IDLE  RES_CALL
#define RES_NAME  RES_CALL
#define RES_STDIO(name, cls, rtype, params, args, result, fields) \
    STREAM_WRAPPER(name, rtype, params, args, result, fields, f, 0)
#define RES_CHARIN(name, cls, rtype, params, args, result, fields) \
    STREAM_WRAPPER(name, rtype, params, args, result, fields, f, pt_stream_has_char(&pt_self, f))
#define RES_CHAROUT(name, cls, rtype, params, args, result, fields) \
    STREAM_WRAPPER(name, rtype, params, args, result, fields, f, pt_stream_takes_char(&pt_self, f))
#define RES_STDPUT(name, cls, rtype, params, args, result, fields)    \
    STREAM_WRAPPER_BODY(name, rtype, params, args, result, fields, f, \
                        PUT_##name(name, length_##name args))
/* What is put, what the call then returns, and whether it takes the stream's lock. */
#define PUT_fwrite(name, len)          PUT_FEW(name, buf, len, n, pt_stream_needs_lock(f))
#define PUT_fwrite_unlocked(name, len) PUT_FEW(name, buf, len, n, 0)
#define PUT_fputs(name, len)           PUT_FEW(name, s, len, 1, pt_stream_needs_lock(f))
#define PUT_fputs_unlocked(name, len)  PUT_FEW(name, s, len, 1, 0)
#define PUT_FEW(name, bytes, len, whole, locked) \
    SHORT_WAY(name, !(locked) && pt_stream_put(f, PT_OP_##name, bytes, len), whole)
#define RES_STDLINE(name, cls, rtype, params, args, result, fields) \
    STREAM_WRAPPER_BODY(name, rtype, params, args, result, fields, f, LINE_##name(name))
#define LINE_fgets(name)                GET_LINE(name, pt_stream_needs_lock(f))
#define LINE_fgets_unlocked(name)       GET_LINE(name, 0)
#define LINE___fgets_chk(name)          GET_LINE(name, (size_t)n > size || pt_stream_needs_lock(f))
#define LINE___fgets_unlocked_chk(name) GET_LINE(name, (size_t)n > size)
#define GET_LINE(name, no)              SHORT_WAY(name, !(no) && pt_stream_line(f, PT_OP_##name, s, n), s)
#define SHORT_WAY(name, taken, returned) \
    static PT_NEAR enum pt_whose whose;  \
    if (PT_UNLIKELY(!whose))             \
        whose = pt_real_whose(#name);    \
    if (whose == PT_LIBCS && (taken))    \
        return returned;
#define RES_STDOUT(name, cls, rtype, params, args, result, fields) \
    STREAM_WRAPPER(name, rtype, params, args, result, fields, stdout, 0)
#define RES_STDIN(name, cls, rtype, params, args, result, fields) \
    STREAM_WRAPPER(name, rtype, params, args, result, fields, stdin, 0)
#define ODD(name, cls, replay, rtype, params, args, result, fields)                               \
    WRAPPER(name, cls, rtype, params, args, result, errno, 0, fields, BEFORE_##name, GATE_##name, \
            AFTER_##name, UNTRACED_##name)
#define ASK(name, cls, replay, rtype, params, args, asked, fields)                          \
    WRAPPER(name, cls, rtype, params, args, ret, errno, asked, fields, NOTHING, GATE_##cls, \
            NOTHING, NOTHING)

#define NUM(name, cls, replay, params, args, result, fields)                            \
    WRAPPER(name, cls, int, params, args, ret ? -1 : (result), ret, 0, fields, NOTHING, \
            GATE_##cls, NOTHING, NOTHING)

/* A call that has only asked in vain so far, with numbers as fields. */
#define KEEP(name, result, error, fields)                                                        \
    {                                                                                            \
        uint64_t *w =                                                                            \
            pt_poll_failed(t, &pass, PT_OP_##name, PT_SHAPE_WORDS(SHAPE_##name), result, error); \
        if (w) {                                                                                 \
            fields                                                                               \
        }                                                                                        \
        pt_poll_kept(t);                                                                         \
    }

/* Only what it did not get is of interest. */
#define TRY(name, rtype, params, args, refused, fields)                              \
    PT_EXPORT rtype name params;                                                     \
    rtype name params                                                                \
    {                                                                                \
        struct pt_thread *t = &pt_self;                                              \
        struct pt_pass pass;                                                         \
        REAL_RESOLVE(name)                                                           \
        rtype ret = REAL(name) args;                                                 \
        if (PT_UNLIKELY(refused)) {                                                  \
            if (t->state != PT_THREAD_READY || !pt_thread_traced(t) || t->poll.busy) \
                return ret;                                                          \
            pass.cls = PT_CLASS_SYNC;                                                \
            pt_pass_begin(t, &pass, PT_OP_##name, 1);                                \
            KEEP(name, ret, ret == -1 ? errno : 0, fields)                           \
        } else if (PT_UNLIKELY(t->polls)) {                                          \
            pt_try_succeeded(t);                                                     \
        }                                                                            \
        return ret;                                                                  \
    }

/* An event only where one had to wait. */
#define LOCK(name, try, taken, params, args, refused, fields)                                    \
    PT_EXPORT int name params;                                                                   \
    int name params                                                                              \
    {                                                                                            \
        struct pt_thread *t = &pt_self;                                                          \
        struct pt_pass pass;                                                                     \
        REAL_RESOLVE(name)                                                                       \
        REAL_RESOLVE(try)                                                                        \
        if (t->state != PT_THREAD_READY)                                                         \
            return REAL(name) args;                                                              \
        int ret = REAL(try)(lock);                                                               \
        if (PT_LIKELY(ret != (taken)))                                                           \
            return ret;                                                                          \
        if (!pt_thread_traced(t))                                                                \
            return REAL(name) args;                                                              \
        pass.cls = PT_CLASS_SYNC;                                                                \
        pt_pass_begin(t, &pass, PT_OP_##name, 1);                                                \
        ret = REAL(name) args;                                                                   \
        if ((refused) && !t->poll.busy) {                                                        \
            KEEP(name, ret, 0, fields)                                                           \
            return ret;                                                                          \
        }                                                                                        \
        uint64_t *w = pt_pass_end(t, &pass, PT_OP_##name, PT_SHAPE_WORDS(SHAPE_##name), ret, 0); \
        if (w) {                                                                                 \
            fields                                                                               \
        }                                                                                        \
        pt_pass_close(t, &pass, PT_OP_##name, w);                                                \
        return ret;                                                                              \
    }

/* What the rows of MPI are made of. */
#define SAME                1
#define OTHER               0
#define BYTES(n, type)      (bytes = ret ? 0 : pt_mpi_bytes(n, type))
#define NONZERO(ns, comm)   (ret ? 0 : pt_mpi_nonzero(ns, comm))
#define OWN_COUNT(ns, comm) (ret ? 0 : pt_mpi_own_count(ns, comm))

/*
 * MPI_name and PMPI_name.  Each goes on to the function of its own name: a tool that is linked in
 * front of the MPI library has the first, and calls the second.  Below an MPI call everything is
 * the library's own, other MPI calls too; below one of MPI-IO (`depth` is then `inner`) I/O is
 * recorded as inner.
 */
#define MPI_WRAPPER(name, mcls, params, args, depth, asks, names, fields, before, after, then) \
    PT_EXPORT int MPI_##name params;                                                           \
    PT_EXPORT int PMPI_##name params;                                                          \
    static inline int wrap_MPI_##name params                                                   \
    {                                                                                          \
        struct pt_thread *t = &pt_self;                                                        \
        struct pt_pass pass;                                                                   \
        int64_t bytes __attribute__((unused));                                                 \
        int pmpi = t->pmpi;                                                                    \
        void **real = pmpi ? &profiled[PT_OP_MPI_##name] : &reals[PT_OP_MPI_##name];           \
        t->pmpi = 0;                                                                           \
        if (PT_UNLIKELY(!*real))                                                               \
            *real = pt_real_mpi(pmpi ? "PMPI_" #name : "MPI_" #name);                          \
        if (!pt_thread_traced(t) || t->inner)                                                  \
            return ((__typeof__(&MPI_##name))*real)args;                                       \
        struct lengths length __attribute__((unused)) = names;                                 \
        pass.cls = mcls;                                                                       \
        pass.flags = 0;                                                                        \
        pass.fd = 0;                                                                           \
        before pt_pass_begin_by(here, t, &pass, PT_OP_MPI_##name, asks);                       \
        t->mpi_frame = (const char *)&pass;                                                    \
        t->depth++;                                                                            \
        if (PT_UNLIKELY(pt_mpi.judged))                                                        \
            pt_mpi_judged_call(t, size_MPI_##name args);                                       \
        int ret = ((__typeof__(&MPI_##name))*real)args;                                        \
        t->depth--;                                                                            \
        after uint64_t *w =                                                                    \
            pt_pass_end_here(t, &pass, PT_OP_MPI_##name,                                       \
                             PT_SHAPE_WORDS(SHAPE_MPI_##name) + text_words(length), 0, ret);   \
        if (PT_LIKELY(w != NULL)) {                                                            \
            fields pt_pass_commit(t);                                                          \
        }                                                                                      \
        then pt_pass_done(t, &pass);                                                           \
        return ret;                                                                            \
    }                                                                                          \
    int MPI_##name params                                                                      \
    {                                                                                          \
        return wrap_MPI_##name args;                                                           \
    }                                                                                          \
    int PMPI_##name params                                                                     \
    {                                                                                          \
        pt_self.pmpi = 1;                                                                      \
        return wrap_MPI_##name args;                                                           \
    }

#define IN_VAIN(name, success, fields)             \
    if (ret == 0 && !(success) && !t->poll.busy) { \
        KEEP(MPI_##name, 0, 0, fields)             \
        return ret;                                \
    }

#define MPI(name, mcls, replay, params, args, fields)                                         \
    MPI_WRAPPER(name, PT_CLASS_##mcls, params, args, below_mpi, 0, NO_NAMES, fields, NOTHING, \
                NOTHING, NOTHING)
#define MPIODD(name, mcls, params, args, fields)                                     \
    MPI_WRAPPER(name, PT_CLASS_##mcls, params, args, below_mpi, 0, NO_NAMES, fields, \
                BEFORE_##name, AFTER_##name, THEN_##name)
#define COMM_MADE(same, old, made) \
    if (!ret)                      \
        pt_mpi_comm_made(t, old, *(void **)(made), same);
#define MPICOMM(name, same, params, args, old, made, fields)                                \
    MPI_WRAPPER(name, PT_CLASS_SYNC, params, args, below_mpi, 0, NO_NAMES, fields, NOTHING, \
                NOTHING, COMM_MADE(same, old, made))
#define MPITEST(name, params, args, success, fields)                                              \
    MPI_WRAPPER(name, PT_CLASS_SYNC, params, args, below_mpi, 1, NO_NAMES, fields, BEFORE_##name, \
                AFTER_##name IN_VAIN(name, success, fields), THEN_##name)
#define MPIIO(name, replay, params, args, fields)                                           \
    MPI_WRAPPER(name, PT_CLASS_IO, params, args, inner, 0, lengths_MPI_##name args, fields, \
                NOTHING, NOTHING, NOTHING)

#include "common/calls.def"

/* ---- second names ------------------------------------------------------------------------ */

#define ALIAS(second, name)                                 \
    extern __typeof__(name) second##_alias __asm__(#second) \
        __attribute__((alias(#name), visibility("default")));
#include "common/calls.def"
