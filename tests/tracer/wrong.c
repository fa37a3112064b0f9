/*
 * Calls with arguments that the kernel or the C library refuses: each must be refused in the same
 * way when it is traced.  Prints what each call gave; a call that kills gets a line, too.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wstringop-overflow"

/* Volatile, so that nobody knows better. */
static void *volatile bad;
static int in, out, read_only, pair[2], set;
static struct iovec one = {"x", 1};
static struct stat st;
static struct statfs fs;
static char buf[64];

/* Runs it in a process of its own. */
#define TRY(call)                                                                              \
    do {                                                                                       \
        fflush(stdout);                                                                        \
        pid_t pid = fork();                                                                    \
        if (!pid) {                                                                            \
            errno = 0;                                                                         \
            long ret = (long)(call);                                                           \
            printf("%s: %s (%s)\n", #call, ret < 0 ? "-1" : ret ? "1" : "0", strerror(errno)); \
            fflush(stdout);                                                                    \
            _exit(0);                                                                          \
        }                                                                                      \
        int status;                                                                            \
        waitpid(pid, &status, 0);                                                              \
        if (WIFSIGNALED(status))                                                               \
            printf("%s: signal %d\n", #call, WTERMSIG(status));                                \
    } while (0)

static void names(void)
{
    TRY(open(bad, O_RDONLY));
    TRY(open(bad, O_WRONLY | O_CREAT, 0600));
    TRY(openat(AT_FDCWD, bad, O_RDONLY));
    TRY(creat(bad, 0600));
    TRY(stat(bad, &st));
    TRY(stat("in", bad));
    TRY(lstat(bad, &st));
    TRY(fstatat(AT_FDCWD, bad, &st, 0));
    TRY(statfs(bad, &fs));
    TRY(access(bad, R_OK));
    TRY(readlink(bad, buf, sizeof(buf)));
    TRY(truncate(bad, 0));
    TRY(rename(bad, "x"));
    TRY(rename("in", bad));
    TRY(link("in", bad));
    TRY(symlink(bad, "x"));
    TRY(symlink("in", bad));
    TRY(unlink(bad));
    TRY(remove(bad));
    TRY(mkdir(bad, 0700));
    TRY(rmdir(bad));
    TRY(chdir(bad));
    TRY(mkfifo(bad, 0600));
    TRY(chmod(bad, 0600));
    TRY(chown(bad, 0, 0));
    TRY(utime(bad, NULL));
    TRY(utimensat(AT_FDCWD, "in", bad, 0));
    TRY(getxattr(bad, "user.x", buf, sizeof(buf)));
    TRY(getxattr("in", bad, buf, sizeof(buf)));
    TRY(setxattr("in", bad, "x", 1, 0));
    TRY((intptr_t)fopen(bad, "r"));
    TRY((intptr_t)freopen(bad, "r", stdin));
    TRY(execv(bad, (char *[]){"x", NULL}));
    TRY(execve("in", bad, NULL));
    TRY(syscall(SYS_openat, AT_FDCWD, bad, O_RDONLY));
    TRY(syscall(SYS_openat2, AT_FDCWD, "in", bad, 24));
    TRY(syscall(SYS_read, in, bad, 1));
}

static void descriptors(void)
{
    TRY(read(in, bad, 1));
    TRY(pread(in, bad, 1, 0));
    TRY(write(out, bad, 1));
    TRY(fstat(in, bad));
    TRY(readv(in, bad, 1));
    TRY(writev(out, bad, 1));
    TRY(writev(read_only, bad, 1));
    TRY(preadv(in, bad, 1, 0));
    TRY(pwritev(out, bad, 1, 0));
    TRY(preadv2(in, bad, 1, 0, 0));
    TRY(pwritev2(out, bad, 1, 0, 0));
    TRY(vmsplice(pair[1], bad, 1, 0));
    if (bad) {
        TRY(sendfile(out, in, bad, 1));
        TRY(copy_file_range(in, bad, out, NULL, 1, 0));
        TRY(copy_file_range(in, NULL, out, bad, 1, 0));
        TRY(splice(in, bad, pair[1], NULL, 1, 0));
        TRY(splice(pair[0], NULL, out, bad, 1, 0));
    }
    TRY(fgetxattr(in, bad, buf, sizeof(buf)));
}

static void waits(void)
{
    TRY(poll(bad, 1, 0));
    TRY(ppoll(bad, 1, &(struct timespec){0, 0}, NULL));
    TRY(epoll_wait(set, bad, 1, 0));
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, pair[0], bad));
    TRY(recv(pair[0], bad, 1, MSG_DONTWAIT));
    TRY(recvmsg(pair[0], bad, MSG_DONTWAIT));
    TRY(sendmsg(pair[1], bad, MSG_DONTWAIT));
    TRY(nanosleep(bad, NULL));
    TRY(clock_nanosleep(CLOCK_MONOTONIC, 0, bad, NULL));
    if (bad) {
        TRY(select(1, bad, NULL, NULL, &(struct timeval){0, 0}));
        TRY(accept(pair[0], bad, bad));
        TRY(waitpid(-1, bad, WNOHANG));
    }
    TRY(connect(pair[0], bad, 16));
    TRY(fcntl(in, F_SETLK, bad));
}

/* Numbers that are not what they should be. */
static void numbers(void)
{
    TRY(readv(in, &one, IOV_MAX + 1));
    TRY(readv(in, &one, -1));
    TRY(writev(out, &one, INT_MAX));
    TRY(preadv(in, &one, IOV_MAX + 1, 0));
    TRY(vmsplice(pair[1], &one, SIZE_MAX, 0));
    TRY(pread(in, buf, 1, -1));
    TRY(read(in, buf, SIZE_MAX));
    TRY(lseek(in, -1, SEEK_SET));
    TRY(lseek(in, 0, 77));
    TRY(ftruncate(out, -1));
    TRY(dup2(in, -1));
    TRY(dup2(in, INT_MAX));
    TRY(close(-1));
    TRY(close(INT_MAX));
    TRY(closedir(NULL));
    TRY(read(INT_MIN, buf, 1));
    TRY(poll(NULL, 0, 0));
    TRY(syscall(-1));
    TRY(open("", O_RDONLY));
    TRY((intptr_t)realpath(NULL, NULL));
}

int main(void)
{
    void *pointers[] = {NULL, (void *)1, (void *)-1};
    setvbuf(stdout, NULL, _IOLBF, 0);
    out = open("out", O_RDWR | O_CREAT, 0600);
    in = open("in", O_RDWR | O_CREAT, 0600);
    if (out < 0 || in < 0 || write(in, "some", 4) != 4)
        return 1;
    read_only = open("in", O_RDONLY);
    set = epoll_create1(0);
    if (read_only < 0 || set < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
        bad = pointers[i];
        printf("-- %p\n", bad);
        names();
        descriptors();
        waits();
    }
    numbers();
    return 0;
}
