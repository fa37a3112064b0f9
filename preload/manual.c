/*
 * Wrappers that the table of calls cannot describe.
 */
#include "config.h"

#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "preload/hand.h"
#include "preload/mpi.h"
#include "preload/sys.h"

/* ---- descriptors ------------------------------------------------------------------------ */

DECLARE_NEAR(fcntl);
DECLARE(close_range);
DECLARE(closefrom);

static int is_copy(int cmd)
{
    return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC;
}

static int is_lock(int cmd)
{
    return cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW;
}

/* POSIX has two names for a lock that somebody else holds. */
static int refusal(int cmd, int error)
{
    return is_lock(cmd) && error == EACCES ? EAGAIN : error;
}

/* Copies are recorded as dup, locks as sync; the rest is no I/O. */
PT_EXPORT int fcntl(int fd, int cmd, ...)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    va_list ap;

    va_start(ap, cmd);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    int wanted = is_copy(cmd) || is_lock(cmd);
    int cls = wanted && pt_thread_traced(t) ? pt_fds_class(t, fd, &pass) : -1;
    if (cls >= 0 && is_lock(cmd))
        cls = PT_CLASS_SYNC;
    uint16_t op = is_copy(cmd) ? PT_OP_dup : PT_OP_fcntl;
    int traced = pass_begin(t, &pass, cls, op);
    int ret = REAL(fcntl)(fd, cmd, arg), error = errno;
    int64_t copy = is_copy(cmd) && ret >= 0 && !pt_vforked ? pt_fds_copied(pass.fd, ret) : -1;
    if (traced)
        pass_end(t, &pass, op, ret, ret < 0 ? refusal(cmd, error) : 0,
                 FIELDS(pass.fd, is_copy(cmd) ? copy : cmd));
    errno = error;
    return ret;
}

extern __typeof__(fcntl) fcntl64_alias __asm__("fcntl64")
    __attribute__((alias("fcntl"), visibility("default")));
extern __typeof__(fcntl) __fcntl_alias __asm__("__fcntl")
    __attribute__((alias("fcntl"), visibility("default")));

/* Each traced descriptor in the range is closed for itself, so that the trace says which. */
static void close_traced(unsigned first, unsigned last)
{
    struct pt_thread *t = &pt_self;
    for (unsigned fd = first; fd <= last && fd < PT_MAX_FDS; fd++) {
        struct pt_pass pass = {0};
        if (!pt_thread_traced(t))
            break;
        if (pass_begin(t, &pass, pt_fds_closing(t, (int)fd, &pass), PT_OP_close))
            pass_end(t, &pass, PT_OP_close, 0, 0, FIELDS(pass.fd));
    }
}

PT_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    int closes = !(flags & CLOSE_RANGE_CLOEXEC);
    int ret = REAL(close_range)(first, last, flags), error = errno;
    if (ret == 0 && closes && !pt_vforked) {
        close_traced(first, last);
        pt_fds_closed_range(first, last);
    }
    errno = error;
    return ret;
}

PT_EXPORT void closefrom(int first)
{
    REAL(closefrom)(first);
    if (pt_vforked)
        return;
    close_traced(first < 0 ? 0 : (unsigned)first, ~0u);
    pt_fds_closed_range(first < 0 ? 0 : (unsigned)first, ~0u);
}

/* ---- all files ------------------------------------------------------------------------------ */

DECLARE(sync);

PT_EXPORT void sync(void)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int traced = pt_thread_traced(t) && pass_begin(t, &pass, PT_CLASS_IO, PT_OP_sync);
    REAL(sync)();
    if (traced)
        pass_end(t, &pass, PT_OP_sync, 0, 0, 0, NULL);
}

/* ---- directories ---------------------------------------------------------------------------- */

DECLARE(rewinddir);
DECLARE(seekdir);

PT_EXPORT void rewinddir(DIR *dir)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int cls = pt_thread_traced(t) ? pt_fds_class(t, dirfd(dir), &pass) : -1;
    int traced = pass_begin(t, &pass, cls, PT_OP_rewinddir);
    REAL(rewinddir)(dir);
    if (traced)
        pass_end(t, &pass, PT_OP_rewinddir, 0, 0, FIELDS(pass.fd));
}

PT_EXPORT void seekdir(DIR *dir, long pos)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int cls = pt_thread_traced(t) ? pt_fds_class(t, dirfd(dir), &pass) : -1;
    int traced = pass_begin(t, &pass, cls, PT_OP_seekdir);
    REAL(seekdir)(dir, pos);
    if (traced)
        pass_end(t, &pass, PT_OP_seekdir, 0, 0, FIELDS(pass.fd, pos));
}

/* ---- from one descriptor to another --------------------------------------------------------- */

DECLARE(splice);
DECLARE(sendfile);
DECLARE(copy_file_range);

struct between {
    struct pt_pass pass;
    uint16_t op;
    int traced, writes;
};

/*
 * Where a file is on one side this is I/O on the file, else it may be waited for.  What is read
 * may be a pipe, or a file that is not traced.
 */
static void between_begin(struct between *b, uint16_t op, int fd, int fd2)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass to = {0};
    int cls = -1, cls2 = -1;
    *b = (struct between){.op = op};
    if (pt_thread_traced(t)) {
        cls = pt_fds_class(t, fd, &b->pass);
        cls2 = pt_fds_class(t, fd2, &to);
    }
    b->writes = cls != PT_CLASS_IO && cls2 == PT_CLASS_IO;
    if (b->writes) {
        b->op = PT_OP_splice_to;
        b->pass.fd = to.fd;
    }
    b->traced = pass_begin(t, &b->pass, b->writes || cls < 0 ? cls2 : cls, b->op);
}

/* `at2`: in a file that was only written to. */
static void between_end(struct between *b, ssize_t ret, int err, int fd, int fd2, size_t n,
                        int64_t at, int64_t at2)
{
    struct pt_thread *t = &pt_self;
    int64_t moved = ret < 0 ? (int64_t)n : ret;
    if (!b->traced)
        return;
    if (b->writes)
        pass_end(t, &b->pass, b->op, ret, err, FIELDS(b->pass.fd, pt_fds_word(fd), moved, at2));
    else if (b->op == PT_OP_copy_file_range)
        pass_end(t, &b->pass, b->op, ret, err,
                 FIELDS(pt_fds_word(fd), pt_fds_word(fd2), (int64_t)n, at, at2));
    else
        pass_end(t, &b->pass, b->op, ret, err,
                 FIELDS(pt_fds_word(fd), pt_fds_word(fd2),
                        b->op == PT_OP_splice ? moved : (int64_t)n, at));
}

PT_EXPORT ssize_t splice(int fd, off64_t *off, int fd2, off64_t *off2, size_t n, unsigned flags)
{
    struct between b;
    between_begin(&b, PT_OP_splice, fd, fd2);
    ssize_t ret = REAL(splice)(fd, off, fd2, off2, n, flags);
    int error = errno, err = ret < 0 ? error : 0;
    between_end(&b, ret, err, fd, fd2, n, pt_moved_from(off, ret, err),
                pt_moved_from(off2, ret, err));
    errno = error;
    return ret;
}

PT_EXPORT ssize_t copy_file_range(int fd, off64_t *off, int fd2, off64_t *off2, size_t n,
                                  unsigned flags)
{
    struct between b;
    between_begin(&b, PT_OP_copy_file_range, fd, fd2);
    ssize_t ret = REAL(copy_file_range)(fd, off, fd2, off2, n, flags);
    int error = errno, err = ret < 0 ? error : 0;
    between_end(&b, ret, err, fd, fd2, n, pt_moved_from(off, ret, err),
                pt_moved_from(off2, ret, err));
    errno = error;
    return ret;
}

PT_EXPORT ssize_t sendfile(int fd2, int fd, off_t *off, size_t n)
{
    struct between b;
    between_begin(&b, PT_OP_sendfile, fd, fd2);
    ssize_t ret = REAL(sendfile)(fd2, fd, off, n);
    int error = errno, err = ret < 0 ? error : 0;
    between_end(&b, ret, err, fd, fd2, n, pt_moved_from(off, ret, err), -1);
    errno = error;
    return ret;
}

extern __typeof__(sendfile) sendfile64_alias __asm__("sendfile64")
    __attribute__((alias("sendfile"), visibility("default")));

/* ---- many requests at once ------------------------------------------------------------------ */

DECLARE(lio_listio);

/* Each request is recorded as if it had been made alone, before the call: it may be held. */
static void record_request(struct pt_thread *t, struct aiocb *cb)
{
    struct pt_pass pass = {0};
    uint16_t op = cb->aio_lio_opcode == LIO_READ ? PT_OP_aio_read : PT_OP_aio_write;
    if (pass_begin(t, &pass, pt_fds_class(t, cb->aio_fildes, &pass), op))
        pass_end(t, &pass, op, 0, 0,
                 FIELDS(pass.fd, (int64_t)cb->aio_nbytes, cb->aio_offset, (intptr_t)cb));
}

PT_EXPORT int lio_listio(int mode, struct aiocb *const cbs[], int n, struct sigevent *sig)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int traced = pt_thread_traced(t);
    for (int i = 0; traced && i < n; i++)
        if (cbs[i] && (cbs[i]->aio_lio_opcode == LIO_READ || cbs[i]->aio_lio_opcode == LIO_WRITE))
            record_request(t, cbs[i]);
    traced = traced && pass_begin(t, &pass, PT_CLASS_SYNC, PT_OP_lio_listio);
    int ret = REAL(lio_listio)(mode, cbs, n, sig), error = errno;
    if (traced)
        pass_end(t, &pass, PT_OP_lio_listio, ret, ret < 0 ? error : 0, FIELDS(n));
    errno = error;
    return ret;
}

extern __typeof__(lio_listio) lio_listio64_alias __asm__("lio_listio64")
    __attribute__((alias("lio_listio"), visibility("default")));

/* ---- MPI_File_close: the handle is gone afterwards --------------------------------------- */

int MPI_File_close(void **fh);
int PMPI_File_close(void **fh);

static int file_close(int (*real)(void **), void **fh)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    void *file = *fh;
    if (!pt_thread_traced(t) || t->inner)
        return real(fh);
    pass_begin(t, &pass, PT_CLASS_IO, PT_OP_MPI_File_close);
    t->mpi_frame = (const char *)&pass;
    t->inner++;
    if (pt_mpi.judged)
        pt_mpi_judged_call(t, 0);
    int ret = real(fh), error = errno;
    t->inner--;
    pass_end(t, &pass, PT_OP_MPI_File_close, 0, ret, FIELDS((intptr_t)file));
    errno = error;
    return ret;
}

PT_EXPORT int MPI_File_close(void **fh)
{
    static PT_FAR int (*real)(void **);
    if (!real)
        real = (int (*)(void **))pt_real_mpi("MPI_File_close");
    return file_close(real, fh);
}

PT_EXPORT int PMPI_File_close(void **fh)
{
    static PT_FAR int (*real)(void **);
    if (!real)
        real = (int (*)(void **))pt_real_mpi("PMPI_File_close");
    return file_close(real, fh);
}

/* ---- the end ----------------------------------------------------------------------------- */

DECLARE_NEAR(_exit);

PT_EXPORT void _exit(int status)
{
    if (!pt_vforked)
        pt_record_exit(&pt_self);
    REAL(_exit)(status);
    __builtin_unreachable();
}

PT_EXPORT void _Exit(int status)
{
    _exit(status);
}
