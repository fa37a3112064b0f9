/*
 * syscall(2): programs that go around libc's functions but not around libc.  Calls of the
 * table go to their wrappers; what hides I/O from us is said.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "preload/sys.h"
#include "preload/tracer.h"

static long pass_on(long nr, const long *a)
{
    long ret = pt_sys6(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (ret < 0 && ret > -4096) {
        errno = (int)-ret;
        return -1;
    }
    return ret;
}

/* Says once that this process' I/O goes where it cannot be followed. */
static void say_blind(const char *reason)
{
    static _Atomic int said;
    if (pt_thread_traced(&pt_self) && !atomic_exchange(&said, 1))
        pt_record_blind(&pt_self, reason, "");
}

PT_EXPORT long syscall(long nr, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, nr);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    switch (nr) {
    case SYS_read:
        return read((int)a[0], (void *)a[1], (size_t)a[2]);
    case SYS_write:
        return write((int)a[0], (void *)a[1], (size_t)a[2]);
    case SYS_pread64:
        return pread((int)a[0], (void *)a[1], (size_t)a[2], a[3]);
    case SYS_pwrite64:
        return pwrite((int)a[0], (void *)a[1], (size_t)a[2], a[3]);
    case SYS_readv:
        return readv((int)a[0], (void *)a[1], (int)a[2]);
    case SYS_writev:
        return writev((int)a[0], (void *)a[1], (int)a[2]);
    case SYS_lseek:
        return lseek((int)a[0], a[1], (int)a[2]);
#ifdef SYS_open
    case SYS_open:
        return open((char *)a[0], (int)a[1], (mode_t)a[2]);
    case SYS_unlink:
        return unlink((char *)a[0]);
    case SYS_rename:
        return rename((char *)a[0], (char *)a[1]);
    case SYS_mkdir:
        return mkdir((char *)a[0], (mode_t)a[1]);
    case SYS_rmdir:
        return rmdir((char *)a[0]);
    case SYS_dup2:
        return dup2((int)a[0], (int)a[1]);
#endif
    case SYS_openat:
        return openat((int)a[0], (char *)a[1], (int)a[2], (mode_t)a[3]);
    case SYS_close:
        return close((int)a[0]);
    case SYS_close_range:
        return close_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
    case SYS_dup:
        return dup((int)a[0]);
    case SYS_dup3:
        return dup3((int)a[0], (int)a[1], (int)a[2]);
    case SYS_fsync:
        return fsync((int)a[0]);
    case SYS_fdatasync:
        return fdatasync((int)a[0]);
    case SYS_ftruncate:
        return ftruncate((int)a[0], a[1]);
    case SYS_fallocate:
        return fallocate((int)a[0], (int)a[1], a[2], a[3]);
    case SYS_unlinkat:
        return unlinkat((int)a[0], (char *)a[1], (int)a[2]);
    case SYS_renameat2:
        return renameat2((int)a[0], (char *)a[1], (int)a[2], (char *)a[3], (unsigned)a[4]);
    case SYS_mkdirat:
        return mkdirat((int)a[0], (char *)a[1], (mode_t)a[2]);
    case SYS_statx:
        return statx((int)a[0], (char *)a[1], (int)a[2], (unsigned)a[3], (void *)a[4]);
    case SYS_getdents64:
        return getdents64((int)a[0], (void *)a[1], (size_t)a[2]);
    case SYS_copy_file_range:
        return copy_file_range((int)a[0], (void *)a[1], (int)a[2], (void *)a[3], (size_t)a[4],
                               (unsigned)a[5]);
    case SYS_io_uring_setup:
        say_blind("io_uring");
        break;
    case SYS_io_submit:
        say_blind("kernel AIO (io_submit)");
        break;
    case SYS_openat2:
        say_blind("openat2");
        break;
    default:
        break;
    }
    return pass_on(nr, a);
}
