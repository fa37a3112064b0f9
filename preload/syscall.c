/*
 * syscall(2): programs that go around libc's functions but not around libc.  Calls of the
 * table go to their wrappers; what hides I/O from us is said.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "preload/fork.h"
#include "preload/hand.h"
#include "preload/sandbox.h"
#include "preload/sys.h"

/* What libc's function would return: -1 and errno. */
static long as_libc(long ret)
{
    if (ret < 0 && ret > -4096) {
        errno = (int)-ret;
        return -1;
    }
    return ret;
}

static long pass_on(long nr, const long *a)
{
    return as_libc(pt_sys6(nr, a[0], a[1], a[2], a[3], a[4], a[5]));
}

/* Says once that this process' I/O goes where it cannot be followed. */
void pt_say_blind(const char *reason)
{
    static PT_FAR _Atomic int said;
    if (pt_thread_traced(&pt_self) && !atomic_exchange(&said, 1))
        pt_record_blind(&pt_self, reason, "");
}

#define OPEN_HOW_LEAST 24 /* the size of its first version */

/* libc has no function for it: an open with its flags and mode in a structure. */
static long open_how(const long *a)
{
    struct pt_thread *t = &pt_self;
    struct pt_pass pass = {0};
    int dir = (int)a[0];
    const char *path = (const char *)a[1];
    const struct open_how nothing = {0}, *how = (const struct open_how *)a[2];
    int traced = pt_thread_traced(t) && (size_t)a[3] >= OPEN_HOW_LEAST;
    if (traced) {
        pt_fds_know_dir(t, dir, path, pt_string_length(path));
        traced = pass_begin(t, &pass, pt_class_of_name(path), PT_OP_openat2);
    }
    long ret = pt_sys6(SYS_openat2, a[0], a[1], a[2], a[3], 0, 0);
    if (traced) {
        if (ret >= 0)
            pt_fds_opened((int)ret, &pass);
        if (ret < 0 && pt_is_unread((int)-ret))
            how = &nothing;
        pass_end_open(t, &pass, PT_OP_openat2, ret < 0 ? -1 : ret, ret < 0 ? (int)-ret : 0,
                      dir == AT_FDCWD ? AT_FDCWD : pt_fds_word(dir), path, (int64_t)how->flags,
                      (int64_t)how->mode);
    } else if (ret >= 0 && !pt_vforked) {
        pt_fds_ignore((int)ret, path, pt_string_length(path));
    }
    return as_libc(ret);
}

/* Some of libc's functions return the error number itself. */
#define NUMBERED(call) as_libc(-(long)(call))

#define INT(i)  (int)a[i]
#define UINT(i) (unsigned)a[i]
#define SIZE(i) (size_t) a[i]
#define PTR(i)  (void *)a[i]
#define STR(i)  (const char *)a[i]

#define BY_NUMBER(name, call) \
    case SYS_##name:          \
        return call;

/*
 * The offset of preadv and its like is in two halves for the sake of 32 bits; where a long
 * has 64 the first has it all, and the flags come behind both.
 */
static long call_on_descriptor(long nr, const long *a, int *known)
{
    switch (nr) {
        BY_NUMBER(read, read(INT(0), PTR(1), SIZE(2)))
        BY_NUMBER(write, write(INT(0), PTR(1), SIZE(2)))
        BY_NUMBER(pread64, pread(INT(0), PTR(1), SIZE(2), a[3]))
        BY_NUMBER(pwrite64, pwrite(INT(0), PTR(1), SIZE(2), a[3]))
        BY_NUMBER(readv, readv(INT(0), PTR(1), INT(2)))
        BY_NUMBER(writev, writev(INT(0), PTR(1), INT(2)))
        BY_NUMBER(preadv, preadv(INT(0), PTR(1), INT(2), a[3]))
        BY_NUMBER(pwritev, pwritev(INT(0), PTR(1), INT(2), a[3]))
        BY_NUMBER(preadv2, preadv2(INT(0), PTR(1), INT(2), a[3], INT(5)))
        BY_NUMBER(pwritev2, pwritev2(INT(0), PTR(1), INT(2), a[3], INT(5)))
        BY_NUMBER(lseek, lseek(INT(0), a[1], INT(2)))
        BY_NUMBER(sendfile, sendfile(INT(0), INT(1), PTR(2), SIZE(3)))
        BY_NUMBER(copy_file_range,
                  copy_file_range(INT(0), PTR(1), INT(2), PTR(3), SIZE(4), UINT(5)))
        BY_NUMBER(splice, splice(INT(0), PTR(1), INT(2), PTR(3), SIZE(4), UINT(5)))
        BY_NUMBER(tee, tee(INT(0), INT(1), SIZE(2), UINT(3)))
        BY_NUMBER(vmsplice, vmsplice(INT(0), PTR(1), SIZE(2), UINT(3)))
        BY_NUMBER(close, close(INT(0)))
        BY_NUMBER(close_range, close_range(UINT(0), UINT(1), INT(2)))
        BY_NUMBER(dup, dup(INT(0)))
        BY_NUMBER(dup3, dup3(INT(0), INT(1), INT(2)))
        BY_NUMBER(fcntl, fcntl(INT(0), INT(1), PTR(2)))
        BY_NUMBER(flock, flock(INT(0), INT(1)))
        BY_NUMBER(fsync, fsync(INT(0)))
        BY_NUMBER(fdatasync, fdatasync(INT(0)))
        BY_NUMBER(syncfs, syncfs(INT(0)))
        BY_NUMBER(sync_file_range, sync_file_range(INT(0), a[1], a[2], UINT(3)))
        BY_NUMBER(ftruncate, ftruncate(INT(0), a[1]))
        BY_NUMBER(fallocate, fallocate(INT(0), INT(1), a[2], a[3]))
        BY_NUMBER(fadvise64, NUMBERED(posix_fadvise(INT(0), a[1], a[2], INT(3))))
        BY_NUMBER(readahead, readahead(INT(0), a[1], SIZE(2)))
        BY_NUMBER(fstat, fstat(INT(0), PTR(1)))
        BY_NUMBER(fstatfs, fstatfs(INT(0), PTR(1)))
        BY_NUMBER(getdents64, getdents64(INT(0), PTR(1), SIZE(2)))
        BY_NUMBER(fchdir, fchdir(INT(0)))
        BY_NUMBER(fchmod, fchmod(INT(0), UINT(1)))
        BY_NUMBER(fchown, fchown(INT(0), UINT(1), UINT(2)))
        BY_NUMBER(fsetxattr, fsetxattr(INT(0), STR(1), PTR(2), SIZE(3), INT(4)))
        BY_NUMBER(fgetxattr, fgetxattr(INT(0), STR(1), PTR(2), SIZE(3)))
        BY_NUMBER(flistxattr, flistxattr(INT(0), PTR(1), SIZE(2)))
        BY_NUMBER(fremovexattr, fremovexattr(INT(0), STR(1)))
        BY_NUMBER(mmap, (long)mmap(PTR(0), SIZE(1), INT(2), INT(3), INT(4), a[5]))
        BY_NUMBER(munmap, munmap(PTR(0), SIZE(1)))
        BY_NUMBER(mremap, (long)mremap(PTR(0), SIZE(1), SIZE(2), INT(3), PTR(4)))
        BY_NUMBER(msync, msync(PTR(0), SIZE(1), INT(2)))
#ifdef SYS_dup2
        BY_NUMBER(dup2, dup2(INT(0), INT(1)))
#endif
    default:
        *known = 0;
        return -1;
    }
}

/* A name that is not there means the descriptor itself. */
static long set_times(const long *a)
{
    return a[1] ? utimensat(INT(0), STR(1), PTR(2), INT(3)) : futimens(INT(0), PTR(2));
}

static long call_on_name(long nr, const long *a, int *known)
{
    switch (nr) {
        BY_NUMBER(openat, openat(INT(0), STR(1), INT(2), UINT(3)))
        BY_NUMBER(openat2, open_how(a))
        BY_NUMBER(truncate, truncate(STR(0), a[1]))
        BY_NUMBER(statfs, statfs(STR(0), PTR(1)))
        BY_NUMBER(statx, statx(INT(0), STR(1), INT(2), UINT(3), PTR(4)))
        BY_NUMBER(newfstatat, fstatat(INT(0), STR(1), PTR(2), INT(3)))
        BY_NUMBER(faccessat, faccessat(INT(0), STR(1), INT(2), 0))
        BY_NUMBER(faccessat2, faccessat(INT(0), STR(1), INT(2), INT(3)))
        BY_NUMBER(readlinkat, readlinkat(INT(0), STR(1), PTR(2), SIZE(3)))
        BY_NUMBER(name_to_handle_at, name_to_handle_at(INT(0), STR(1), PTR(2), PTR(3), INT(4)))
        BY_NUMBER(unlinkat, unlinkat(INT(0), STR(1), INT(2)))
        BY_NUMBER(renameat, renameat(INT(0), STR(1), INT(2), STR(3)))
        BY_NUMBER(renameat2, renameat2(INT(0), STR(1), INT(2), STR(3), UINT(4)))
        BY_NUMBER(linkat, linkat(INT(0), STR(1), INT(2), STR(3), INT(4)))
        BY_NUMBER(symlinkat, symlinkat(STR(0), INT(1), STR(2)))
        BY_NUMBER(mkdirat, mkdirat(INT(0), STR(1), UINT(2)))
        BY_NUMBER(mknodat, mknodat(INT(0), STR(1), UINT(2), UINT(3)))
        BY_NUMBER(chdir, chdir(STR(0)))
        BY_NUMBER(fchmodat, fchmodat(INT(0), STR(1), UINT(2), 0))
        BY_NUMBER(fchownat, fchownat(INT(0), STR(1), UINT(2), UINT(3), INT(4)))
        BY_NUMBER(utimensat, set_times(a))
        BY_NUMBER(setxattr, setxattr(STR(0), STR(1), PTR(2), SIZE(3), INT(4)))
        BY_NUMBER(lsetxattr, lsetxattr(STR(0), STR(1), PTR(2), SIZE(3), INT(4)))
        BY_NUMBER(getxattr, getxattr(STR(0), STR(1), PTR(2), SIZE(3)))
        BY_NUMBER(lgetxattr, lgetxattr(STR(0), STR(1), PTR(2), SIZE(3)))
        BY_NUMBER(listxattr, listxattr(STR(0), PTR(1), SIZE(2)))
        BY_NUMBER(llistxattr, llistxattr(STR(0), PTR(1), SIZE(2)))
        BY_NUMBER(removexattr, removexattr(STR(0), STR(1)))
        BY_NUMBER(lremovexattr, lremovexattr(STR(0), STR(1)))
        BY_NUMBER(execve, execve(STR(0), PTR(1), PTR(2)))
        BY_NUMBER(execveat, execveat(INT(0), STR(1), PTR(2), PTR(3), INT(4)))
#ifdef SYS_open /* processors of before the calls with a directory */
        BY_NUMBER(open, open(STR(0), INT(1), UINT(2)))
        BY_NUMBER(creat, creat(STR(0), UINT(1)))
        BY_NUMBER(stat, stat(STR(0), PTR(1)))
        BY_NUMBER(lstat, lstat(STR(0), PTR(1)))
        BY_NUMBER(access, access(STR(0), INT(1)))
        BY_NUMBER(readlink, readlink(STR(0), PTR(1), SIZE(2)))
        BY_NUMBER(unlink, unlink(STR(0)))
        BY_NUMBER(rename, rename(STR(0), STR(1)))
        BY_NUMBER(link, link(STR(0), STR(1)))
        BY_NUMBER(symlink, symlink(STR(0), STR(1)))
        BY_NUMBER(mkdir, mkdir(STR(0), UINT(1)))
        BY_NUMBER(mknod, mknod(STR(0), UINT(1), UINT(2)))
        BY_NUMBER(rmdir, rmdir(STR(0)))
        BY_NUMBER(chmod, chmod(STR(0), UINT(1)))
        BY_NUMBER(chown, chown(STR(0), UINT(1), UINT(2)))
        BY_NUMBER(lchown, lchown(STR(0), UINT(1), UINT(2)))
        BY_NUMBER(utime, utime(STR(0), PTR(1)))
        BY_NUMBER(utimes, utimes(STR(0), PTR(1)))
        BY_NUMBER(futimesat, futimesat(INT(0), STR(1), PTR(2)))
#endif
    default:
        *known = 0;
        return -1;
    }
}

/* What waits in one way only, or updates a time limit where libc does not, stays unseen. */
static long call_that_waits(long nr, const long *a, int *known)
{
    switch (nr) {
        BY_NUMBER(accept, accept(INT(0), PTR(1), PTR(2)))
        BY_NUMBER(accept4, accept4(INT(0), PTR(1), PTR(2), INT(3)))
        BY_NUMBER(connect, connect(INT(0), PTR(1), UINT(2)))
        BY_NUMBER(recvfrom, recvfrom(INT(0), PTR(1), SIZE(2), INT(3), PTR(4), PTR(5)))
        BY_NUMBER(recvmsg, recvmsg(INT(0), PTR(1), INT(2)))
        BY_NUMBER(recvmmsg, recvmmsg(INT(0), PTR(1), UINT(2), INT(3), PTR(4)))
        BY_NUMBER(sendto, sendto(INT(0), PTR(1), SIZE(2), INT(3), PTR(4), UINT(5)))
        BY_NUMBER(sendmsg, sendmsg(INT(0), PTR(1), INT(2)))
        BY_NUMBER(sendmmsg, sendmmsg(INT(0), PTR(1), UINT(2), INT(3)))
        BY_NUMBER(wait4, wait4(INT(0), PTR(1), INT(2), PTR(3)))
        BY_NUMBER(semop, semop(INT(0), PTR(1), SIZE(2)))
        BY_NUMBER(semtimedop, semtimedop(INT(0), PTR(1), SIZE(2), PTR(3)))
        BY_NUMBER(msgsnd, msgsnd(INT(0), PTR(1), SIZE(2), INT(3)))
        BY_NUMBER(msgrcv, msgrcv(INT(0), PTR(1), SIZE(2), a[3], INT(4)))
        BY_NUMBER(nanosleep, nanosleep(PTR(0), PTR(1)))
        BY_NUMBER(clock_nanosleep, NUMBERED(clock_nanosleep(INT(0), INT(1), PTR(2), PTR(3))))
#ifdef SYS_open
        BY_NUMBER(poll, poll(PTR(0), (nfds_t)a[1], INT(2)))
        BY_NUMBER(select, select(INT(0), PTR(1), PTR(2), PTR(3), PTR(4)))
        BY_NUMBER(epoll_wait, epoll_wait(INT(0), PTR(1), INT(2), INT(3)))
        BY_NUMBER(pause, pause())
#endif
    default:
        *known = 0;
        return -1;
    }
}

/* A child with memory of its own is one more process; of others libc knows nothing either. */
static long new_process(long nr, const long *a, uint64_t flags)
{
    if (!pt_process_memory() || flags & (CLONE_VM | CLONE_SETTLS)) {
        pt_say_blind("what clone() has started");
        return pass_on(nr, a);
    }
    pt_forking();
    long pid = pass_on(nr, a);
    if (!pid)
        pt_forked();
    return pid;
}

/* A wrong address is for the kernel to refuse. */
static uint64_t clone3_flags(const long *a)
{
    return pt_is_address(PTR(0)) && SIZE(1) >= sizeof(uint64_t) ? *(const uint64_t *)PTR(0) : 0;
}

static int makes_sandbox(const long *a)
{
    return a[0] == SECCOMP_SET_MODE_STRICT || a[0] == SECCOMP_SET_MODE_FILTER;
}

/* Calls that return nothing, or twice, and what cannot be followed. */
static long other_call(long nr, const long *a)
{
    switch (nr) {
#ifdef SYS_fork
    case SYS_fork:
        return new_process(nr, a, 0);
#endif
    case SYS_clone:
        return new_process(nr, a, (uint64_t)a[0]);
    case SYS_clone3:
        return new_process(nr, a, clone3_flags(a));
    case SYS_sync:
        sync();
        return 0;
    case SYS_prctl:
        return prctl(INT(0), a[1], a[2], a[3], a[4]);
    case SYS_seccomp:
        return makes_sandbox(a) ? as_libc(pt_sandbox(nr, a[0], a[1], a[2], 0, 0)) : pass_on(nr, a);
    case SYS_exit_group:
        _exit(INT(0));
    case SYS_io_uring_setup:
        pt_say_blind("io_uring");
        break;
    case SYS_io_submit:
        pt_say_blind("kernel AIO (io_submit)");
        break;
    default:
        break;
    }
    return pass_on(nr, a);
}

PT_EXPORT long syscall(long nr, ...)
{
    static long (*const groups[])(long, const long *, int *) = {call_on_descriptor, call_on_name,
                                                                call_that_waits};
    long a[6];
    va_list ap;
    va_start(ap, nr);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        int known = 1;
        long ret = groups[i](nr, a, &known);
        if (known)
            return ret;
    }
    return other_call(nr, a);
}
