/*
 * Calls made by their number, with syscall(2): the same events as those of libc's
 * functions, and openat2, which has none.  Prints the trace it expects.  Run in an empty
 * directory.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#include "tests/tracer/expect.h"

/* As a program that does not care passes them: what is an int is promoted, or not. */
#define by_number(name, ...) syscall(SYS_##name, __VA_ARGS__)

static char buf[8192];
static int file, file2; /* "n" and "m" */

static void opens(void)
{
    struct open_how how = {.flags = O_RDWR | O_CREAT, .mode = 0600}, read_only = {0};
    struct open_how in_root = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
    file = (int)by_number(openat, AT_FDCWD, "n", O_RDWR | O_CREAT, 0600);
    expect(file, "openat(\"n\", O_RDWR|O_CREAT, 0600)");
    file2 = (int)by_number(openat2, AT_FDCWD, "m", &how, sizeof(how));
    expect(file2, "openat2(\"m\", O_RDWR|O_CREAT, 0600)");
    expect(by_number(openat2, AT_FDCWD, "no", &read_only, sizeof(read_only)),
           "openat2(\"no\", O_RDONLY)");
    expect(by_number(openat2, AT_FDCWD, "../no", &in_root, sizeof(in_root)),
           "openat2(\"../no\", O_RDONLY)");
    by_number(openat2, AT_FDCWD, "n", &how, 3UL); /* no such structure: nothing to record */
    int fd = (int)by_number(openat2, AT_FDCWD, "/dev/null", &read_only, sizeof(read_only));
    if (fd < 0 || by_number(read, fd, buf, 1UL) != 0) /* not the program's data */
        abort();
    by_number(close, fd);
    fd = (int)by_number(openat2, file2, "x", &read_only, sizeof(read_only)); /* no directory */
    expect(fd, "openat2(%d, \"x\", O_RDONLY)", file2);
}

static void data(void)
{
    struct iovec iov = {buf, 10}, two[2] = {{buf, 100}, {buf + 100, 28}};
    off_t off = 5, off2 = 50;
    expect(by_number(write, file, buf, 1000UL), "write(%d, 1000)", file);
    expect(by_number(write, file2, buf, 1000UL), "write(%d, 1000)", file2);
    expect(by_number(pwrite64, file, buf, 10UL, 5L), "pwrite(%d, 10, 5)", file);
    expect(by_number(lseek, file, 0L, SEEK_SET), "lseek(%d, 0, SEEK_SET)", file);
    expect(by_number(read, file, buf, 10UL), "read(%d, 10)", file);
    expect(by_number(pread64, file, buf, 10UL, 3L), "pread(%d, 10, 3)", file);
    expect(by_number(readv, file, &iov, 1UL), "readv(%d, 10)", file);
    expect(by_number(writev, file, &iov, 1UL), "writev(%d, 10)", file);
    /* the upper half of the offset is not looked at by a kernel of 64 bits */
    expect(by_number(preadv, file, two, 2UL, 7L, 0L), "preadv(%d, 128, 7)", file);
    expect(by_number(pwritev, file, two, 2UL, (1L << 33) + 8, 0L), "pwritev(%d, 128, %ld)", file,
           (1L << 33) + 8);
    expect(by_number(preadv2, file, two, 2UL, 9L, 0L, 0L), "preadv2(%d, 128, 9, 0)", file);
    expect(by_number(preadv2, file, two, 2UL, -1L, -1L, 0L), "preadv2(%d, 128, -1, 0)", file);
    expect(by_number(pwritev2, file, two, 1UL, 11L, 0L, (long)RWF_DSYNC),
           "pwritev2(%d, 100, 11, %#x)", file, RWF_DSYNC);
    expect(by_number(sendfile, file2, file, &off, 20UL), "sendfile(%d, %d, 20, 5)", file, file2);
    off = 5;
    expect(by_number(copy_file_range, file, &off, file2, &off2, 5UL, 0UL),
           "copy_file_range(%d, %d, 5, 5, 50)", file, file2);
    expect(by_number(pread64, file, buf, 1UL, -1L), "pread(%d, 1, -1)", file);
}

static void through_pipes(void)
{
    int p[2], q[2];
    off_t off = 100;
    struct iovec iov = {buf, 64};
    if (pipe(p) || pipe(q))
        abort();
    expect(by_number(splice, file, &off, p[1], NULL, 100UL, 0UL), "splice(%d, %d, 100, 100)", file,
           p[1]);
    expect_sync(by_number(tee, p[0], q[1], 30UL, 0UL), "tee(%d, %d, 30)", p[0], q[1]);
    off = 0;
    expect(by_number(splice, p[0], NULL, file2, &off, 40UL, 0UL), "splice_to(%d, %d, 40, 0)", file2,
           p[0]);
    expect_sync(by_number(vmsplice, q[1], &iov, 1UL, 0UL), "vmsplice(%d, 64)", q[1]);
    expect_sync(by_number(read, q[0], buf, 1000UL), "read(%d, 1000)", q[0]);
    expect_sync(by_number(write, q[1], buf, 1UL), "write(%d, 1)", q[1]);
    for (int i = 0; i < 2; i++) {
        by_number(close, p[i]);
        by_number(close, q[i]);
    }
}

static void sizes(void)
{
    expect(by_number(fsync, file), "fsync(%d)", file);
    expect(by_number(fdatasync, file), "fdatasync(%d)", file);
    expect(by_number(syncfs, file), "syncfs(%d)", file);
    expect(by_number(sync_file_range, file, 0L, 100L, 2UL), "sync_file_range(%d, 0, 100, 0x2)",
           file);
    expect(by_number(sync, 0), "sync()");
    expect(by_number(ftruncate, file, 77L), "ftruncate(%d, 77)", file);
    expect(by_number(truncate, "m", 5000L), "truncate(\"m\", 5000)");
    expect(by_number(fallocate, file, 0, 0L, 100L), "fallocate(%d, 0, 0, 100)", file);
    expect(by_number(fadvise64, file, 0L, 100L, POSIX_FADV_RANDOM),
           "posix_fadvise(%d, 0, 100, %#x)", file, POSIX_FADV_RANDOM);
    expect(by_number(fadvise64, file, 0L, 100L, 77), "posix_fadvise(%d, 0, 100, 0x4d)", file);
    expect(by_number(readahead, file, 0L, 100UL), "readahead(%d, 0, 100)", file);
}

static void mappings(void)
{
    long p = by_number(mmap, NULL, 8192UL, PROT_READ, MAP_SHARED, file2, 0L);
    expect(0, "mmap(%d, 8192, 0, %#x, %#lx)", file2, PROT_READ, p);
    expect(by_number(msync, p, 4096UL, MS_SYNC), "msync(%#lx, 4096, %#x)", p, MS_SYNC);
    p = by_number(mremap, p, 8192UL, 16384UL, MREMAP_MAYMOVE);
    expect_name(0, "mremap(%#lx, 16384)", p);
    expect(by_number(munmap, p, 16384UL), "munmap(%#lx, 16384)", p);
    expect(by_number(mmap, NULL, 4096UL, PROT_READ, MAP_SHARED, file, 1L),
           "mmap(%d, 4096, 1, %#x, %#lx)", file, PROT_READ, -1L);
}

static void descriptors(void)
{
    struct flock lock = {.l_type = F_WRLCK};
    struct stat st;
    struct statfs fs;
    int fd2 = (int)by_number(dup, file), dir;
    expect(fd2, "dup(%d, %d)", file, fd2);
    expect(by_number(dup3, file, 50, O_CLOEXEC), "dup3(%d, 50)", file);
    expect(by_number(fcntl, file, F_DUPFD, 60L), "dup(%d, 60)", file);
    expect_sync(by_number(fcntl, file, F_SETLK, &lock), "fcntl(%d, %d)", file, F_SETLK);
    expect_sync(by_number(flock, file, LOCK_EX), "flock(%d, %d)", file, LOCK_EX);
    expect(by_number(close, fd2), "close(%d)", fd2);
    if (by_number(close_range, 50, 60, 0))
        abort();
    expect(0, "close(50)");
    expect(0, "close(60)");
    st.st_size = 0;
    expect(by_number(fstat, file, &st), "fstat(%d)", file);
    if (st.st_size != 100)
        abort();
    expect(by_number(fstatfs, file, &fs), "fstatfs(%d)", file);
    expect(by_number(fchmod, file, 0640), "fchmod(%d, 0640)", file);
    expect(by_number(fchown, file, -1, -1), "fchown(%d, 4294967295, 4294967295)", file);
    expect(by_number(fgetxattr, file, "user.no", buf, 10UL), "fgetxattr(%d, \"user.no\", 10)",
           file);
    expect(by_number(fsetxattr, file, "user.x", "y", 1UL, 0), "fsetxattr(%d, \"user.x\", 1)", file);
    expect(by_number(flistxattr, file, buf, 100UL), "flistxattr(%d, 100)", file);
    expect(by_number(fremovexattr, file, "user.x"), "fremovexattr(%d, \"user.x\")", file);
    dir = (int)by_number(openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY, 0);
    expect(dir, "openat(\".\", O_RDONLY|O_DIRECTORY)");
    expect(by_number(getdents64, dir, buf, sizeof(buf)), "getdents64(%d, 8192)", dir);
    expect_name(by_number(fchdir, dir), "fchdir(%d)", dir);
    expect(by_number(close, dir), "close(%d)", dir);
}

static void names_at(void)
{
    struct stat st = {0};
    struct statx sx;
    struct statfs fs;
    struct timespec times[2] = {{1, 0}, {2, 0}};
    expect(by_number(newfstatat, AT_FDCWD, "n", &st, 0), "fstatat(\"n\", 0)");
    if (st.st_size != 100)
        abort();
    expect(by_number(statx, AT_FDCWD, "no", 0, STATX_SIZE, &sx), "statx(\"no\", 0)");
    expect(by_number(statfs, ".", &fs), "statfs(\".\")");
    expect(by_number(faccessat, AT_FDCWD, "n", R_OK), "faccessat(\"n\", %#x)", R_OK);
    expect(by_number(faccessat2, AT_FDCWD, "no", R_OK, AT_EACCESS), "faccessat(\"no\", %#x)", R_OK);
    expect(by_number(mkdirat, AT_FDCWD, "d", 0700), "mkdirat(\"d\", 0700)");
    expect_name(by_number(mknodat, AT_FDCWD, "d/f", S_IFIFO | 0600, 0), "mknodat(\"d/f\", 010600)");
    expect(by_number(linkat, AT_FDCWD, "n", AT_FDCWD, "d/l", 0), "linkat(\"n\", \"d/l\", 0)");
    expect(by_number(symlinkat, "n", AT_FDCWD, "d/s"), "symlinkat(\"d/s\", \"n\")");
    expect(by_number(readlinkat, AT_FDCWD, "d/s", buf, 10UL), "readlinkat(\"d/s\", 10)");
    expect(by_number(fchmodat, AT_FDCWD, "n", 0600), "fchmodat(\"n\", 0600, 0)");
    expect(by_number(fchownat, AT_FDCWD, "d/s", -1, -1, AT_SYMLINK_NOFOLLOW),
           "fchownat(\"d/s\", 4294967295, 4294967295, %#x)", AT_SYMLINK_NOFOLLOW);
    expect(by_number(utimensat, AT_FDCWD, "n", times, 0), "utimensat(\"n\", 0)");
    expect(by_number(utimensat, file, NULL, times, 0), "futimens(%d)", file);
    expect(by_number(renameat, AT_FDCWD, "d/l", AT_FDCWD, "l"), "renameat(\"d/l\", \"l\")");
    expect(by_number(renameat2, AT_FDCWD, "l", AT_FDCWD, "d/l", 0), "renameat2(\"l\", \"d/l\", 0)");
    expect(by_number(unlinkat, AT_FDCWD, "d/l", 0), "unlinkat(\"d/l\", 0)");
    expect(by_number(unlinkat, AT_FDCWD, "d/f", 0), "unlinkat(\"d/f\", 0)");
    expect(by_number(unlinkat, AT_FDCWD, "d/s", 0), "unlinkat(\"d/s\", 0)");
    expect(by_number(unlinkat, AT_FDCWD, "d", AT_REMOVEDIR), "unlinkat(\"d\", %#x)", AT_REMOVEDIR);
}

static void attributes(void)
{
    expect(by_number(setxattr, "n", "user.x", "y", 1UL, 0), "setxattr(\"n\", \"user.x\", 1)");
    expect(by_number(getxattr, "n", "user.x", buf, 10UL), "getxattr(\"n\", \"user.x\", 10)");
    expect(by_number(listxattr, "n", buf, 100UL), "listxattr(\"n\", 100)");
    expect(by_number(removexattr, "n", "user.x"), "removexattr(\"n\", \"user.x\")");
    expect(by_number(lsetxattr, "n", "user.x", "y", 1UL, 0), "lsetxattr(\"n\", \"user.x\", 1)");
    expect(by_number(lgetxattr, "n", "user.x", buf, 10UL), "lgetxattr(\"n\", \"user.x\", 10)");
    expect(by_number(llistxattr, "n", buf, 100UL), "llistxattr(\"n\", 100)");
    expect(by_number(lremovexattr, "n", "user.x"), "lremovexattr(\"n\", \"user.x\")");
    expect_name(by_number(chdir, "."), "chdir(\".\")");
}

/* Those that newer processors do not have. */
static void old_names(void)
{
#ifdef SYS_open
    struct stat st = {0};
    struct timeval times[2] = {{1, 0}, {2, 0}};
    struct utimbuf seconds = {1, 2};
    int fd;
    expect(by_number(open, "no", O_RDONLY), "open(\"no\", O_RDONLY)");
    fd = (int)by_number(creat, "c", 0600);
    expect(fd, "creat(\"c\", O_WRONLY|O_CREAT|O_TRUNC, 0600)");
    expect(by_number(dup2, fd, 51), "dup2(%d, 51)", fd);
    expect(by_number(close, 51), "close(51)");
    expect(by_number(close, fd), "close(%d)", fd);
    expect(by_number(stat, "n", &st), "stat(\"n\")");
    if (st.st_size != 100)
        abort();
    expect(by_number(lstat, "n", &st), "lstat(\"n\")");
    expect(by_number(access, "n", R_OK), "access(\"n\", %#x)", R_OK);
    expect(by_number(link, "c", "e"), "link(\"c\", \"e\")");
    expect(by_number(symlink, "c", "s"), "symlink(\"s\", \"c\")");
    expect(by_number(readlink, "s", buf, 10UL), "readlink(\"s\", 10)");
    expect(by_number(chmod, "c", 0640), "chmod(\"c\", 0640)");
    expect(by_number(chown, "c", -1, -1), "chown(\"c\", 4294967295, 4294967295)");
    expect(by_number(lchown, "s", -1, -1), "lchown(\"s\", 4294967295, 4294967295)");
    expect(by_number(utime, "c", &seconds), "utime(\"c\")");
    expect(by_number(utimes, "c", times), "utimes(\"c\")");
    expect(by_number(futimesat, AT_FDCWD, "c", times), "futimesat(\"c\")");
    expect(by_number(mkdir, "d", 0700), "mkdir(\"d\", 0700)");
    expect(by_number(rename, "d", "d2"), "rename(\"d\", \"d2\")");
    expect(by_number(rmdir, "d2"), "rmdir(\"d2\")");
    expect_name(by_number(mknod, "f", S_IFIFO | 0600, 0), "mknod(\"f\", 010600)");
    expect(by_number(unlink, "f"), "unlink(\"f\")");
#endif
}

/* ---- waiting ------------------------------------------------------------------------------ */

static void messages(void)
{
    int s[2];
    struct iovec iov = {buf, 10};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = msg};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, s))
        abort();
    expect_sync(by_number(sendto, s[0], buf, 11UL, 0, NULL, 0), "sendto(%d, 11)", s[0]);
    expect_sync(by_number(recvfrom, s[1], buf, 20UL, 0, NULL, NULL), "recvfrom(%d, 20)", s[1]);
    expect_sync(by_number(sendmsg, s[0], &msg, 0), "sendmsg(%d)", s[0]);
    expect_sync(by_number(recvmsg, s[1], &msg, 0), "recvmsg(%d)", s[1]);
    expect_sync(by_number(sendmmsg, s[0], &many, 1, 0), "sendmmsg(%d)", s[0]);
    expect_sync(by_number(recvmmsg, s[1], &many, 1, 0, NULL), "recvmmsg(%d)", s[1]);
    expect_sync(by_number(accept, s[0], NULL, NULL), "accept(%d)", s[0]);
    expect_sync(by_number(accept4, s[0], NULL, NULL, 0), "accept4(%d)", s[0]);
    expect_sync(by_number(connect, s[0], NULL, 0), "connect(%d)", s[0]);
    by_number(close, s[0]);
    by_number(close, s[1]);
}

static void queues(void)
{
    struct {
        long type;
        char text[8];
    } msg = {1, "text"};
    struct sembuf up = {0, 1, 0}, down = {0, -1, 0};
    struct timespec second = {1, 0};
    int queue = msgget(IPC_PRIVATE, 0600), sem = semget(IPC_PRIVATE, 1, 0600);
    if (queue < 0 || sem < 0)
        abort();
    expect_sync(by_number(msgsnd, queue, &msg, 8UL, 0), "msgsnd(8)");
    expect_sync(by_number(msgrcv, queue, &msg, 8UL, 0L, 0), "msgrcv(8)");
    expect_sync(by_number(semop, sem, &up, 1UL), "semop(1)");
    expect_sync(by_number(semtimedop, sem, &down, 1UL, &second), "semtimedop(1)");
    msgctl(queue, IPC_RMID, NULL);
    semctl(sem, 0, IPC_RMID);
}

static void on_alarm(int sig)
{
    (void)sig;
}

static void sleeps(void)
{
    struct timespec ms = {0, 1000000}, wrong = {0, -1};
    struct rusage usage;
    int status;
    pid_t pid = fork();
    if (!pid)
        syscall(SYS_exit_group, 3);
    expect_sync(by_number(wait4, pid, &status, 0, &usage), "wait4(%d)", pid);
    if (WEXITSTATUS(status) != 3)
        abort();
    expect_idle(by_number(nanosleep, &ms, NULL), "nanosleep()");
    expect_idle(by_number(clock_nanosleep, CLOCK_MONOTONIC, 0, &ms, NULL), "clock_nanosleep()");
    expect_idle(by_number(clock_nanosleep, CLOCK_MONOTONIC, 0, &wrong, NULL), "clock_nanosleep()");
#ifdef SYS_open
    struct timeval none = {0, 0};
    struct itimerval timer = {{0, 20000}, {0, 20000}}, off = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = on_alarm};
    struct epoll_event event;
    int ep = epoll_create1(0);
    expect_idle(by_number(poll, NULL, 0UL, 0), "poll(0)");
    expect_idle(by_number(select, 0, NULL, NULL, NULL, &none), "select(0)");
    expect_sync(by_number(epoll_wait, ep, &event, 1, 0), "epoll_wait(%d, 1)", ep);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    expect_sync(by_number(pause, 0), "pause()");
    setitimer(ITIMER_REAL, &off, NULL);
    close(ep);
#endif
}

int main(void)
{
    opens();
    data();
    through_pipes();
    sizes();
    mappings();
    descriptors();
    names_at();
    attributes();
    old_names();
    messages();
    queues();
    sleeps();
    expect(by_number(close, file2), "close(%d)", file2);
    if (by_number(getpid, 0) != getpid()) /* not in the table */
        abort();
    return expect_print(1);
}
