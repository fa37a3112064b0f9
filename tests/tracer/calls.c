/*
 * Makes the calls that most programs make, each with success and failure where both
 * are possible, and prints the trace it expects.  Run in an empty directory.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/tracer/expect.h"

int __open_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
ssize_t __read_chk(int fd, void *buf, size_t n, size_t size);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t off, size_t size);

static void opens(void)
{
    int fd = open("a", O_RDWR | O_CREAT | O_TRUNC, 0640);
    expect(fd, "open(\"a\", O_RDWR|O_CREAT|O_TRUNC, 0640)");
    expect(close(fd), "close(%d)", fd);
    fd = open64("a", O_RDONLY);
    expect(fd, "open(\"a\", O_RDONLY)");
    expect(close(fd), "close(%d)", fd);
    expect(open("missing", O_RDONLY), "open(\"missing\", O_RDONLY)");
    fd = openat(AT_FDCWD, "b", O_WRONLY | O_CREAT | O_EXCL, 0600);
    expect(fd, "openat(\"b\", O_WRONLY|O_CREAT|O_EXCL, 0600)");
    expect(close(fd), "close(%d)", fd);
    fd = creat("c", 0644);
    expect(fd, "creat(\"c\", O_WRONLY|O_CREAT|O_TRUNC, 0644)");
    expect(close(fd), "close(%d)", fd);
    fd = __open_2("a", O_RDONLY);
    expect(fd, "__open_2(\"a\", O_RDONLY)");
    expect(close(fd), "close(%d)", fd);
    fd = __openat_2(AT_FDCWD, "a", O_RDONLY);
    expect(fd, "__openat_2(\"a\", O_RDONLY)");
    expect(close(fd), "close(%d)", fd);
    close(99); /* was never open: nobody's I/O */
}

static void data(void)
{
    char buf[4096] = "data";
    struct iovec iov[2] = {{buf, 100}, {buf + 100, 28}};
    int fd = open("a", O_RDWR);
    expect(fd, "open(\"a\", O_RDWR)");
    expect(write(fd, buf, 1000), "write(%d, 1000)", fd);
    expect(pwrite(fd, buf, 512, 1000), "pwrite(%d, 512, 1000)", fd);
    expect(pwrite64(fd, buf, 512, 1512), "pwrite(%d, 512, 1512)", fd);
    expect(lseek(fd, 10, SEEK_SET), "lseek(%d, 10, SEEK_SET)", fd);
    expect(lseek64(fd, -24, SEEK_END), "lseek(%d, -24, SEEK_END)", fd);
    expect(read(fd, buf, 4096), "read(%d, 4096)", fd);
    expect(read(fd, buf, 10), "read(%d, 10)", fd);
    expect(__read_chk(fd, buf, 10, sizeof(buf)), "__read_chk(%d, 10)", fd);
    expect(pread(fd, buf, 100, 0), "pread(%d, 100, 0)", fd);
    expect(pread64(fd, buf, 100, 5), "pread(%d, 100, 5)", fd);
    expect(__pread_chk(fd, buf, 100, 7, sizeof(buf)), "__pread_chk(%d, 100, 7)", fd);
    expect(writev(fd, iov, 2), "writev(%d, 128)", fd);
    expect(lseek(fd, 0, SEEK_SET), "lseek(%d, 0, SEEK_SET)", fd);
    expect(readv(fd, iov, 2), "readv(%d, 128)", fd);
    expect(preadv(fd, iov, 1, 3), "preadv(%d, 100, 3)", fd);
    expect(pwritev(fd, iov, 2, 4), "pwritev(%d, 128, 4)", fd);
    expect(pread(fd, buf, 1, -1), "pread(%d, 1, -1)", fd);
    expect(fsync(fd), "fsync(%d)", fd);
    expect(fdatasync(fd), "fdatasync(%d)", fd);
    expect(ftruncate(fd, 77), "ftruncate(%d, 77)", fd);
    expect(close(fd), "close(%d)", fd);
    fd = open("a", O_RDONLY);
    expect(fd, "open(\"a\", O_RDONLY)");
    expect(write(fd, buf, 1), "write(%d, 1)", fd);
    expect(close(fd), "close(%d)", fd);
}

static void copies(void)
{
    int fd = open("a", O_RDONLY), fd2;
    expect(fd, "open(\"a\", O_RDONLY)");
    fd2 = dup(fd);
    expect(fd2, "dup(%d, %d)", fd, fd2);
    expect(dup2(fd, 42), "dup2(%d, 42)", fd);
    expect(dup3(fd, 43, O_CLOEXEC), "dup3(%d, 43)", fd);
    expect(close(fd), "close(%d)", fd);
    expect(lseek(42, 1, SEEK_SET), "lseek(42, 1, SEEK_SET)");
    expect(lseek(43, 0, SEEK_CUR), "lseek(43, 0, SEEK_CUR)");
    expect(close(fd2), "close(%d)", fd2);
    expect(close(42), "close(42)");
    expect(close(43), "close(43)");
}

static void names(void)
{
    expect(mkdir("d", 0750), "mkdir(\"d\", 0750)");
    expect(mkdir("d", 0750), "mkdir(\"d\", 0750)");
    expect(rename("b", "d/b"), "rename(\"b\", \"d/b\")");
    expect_name(chdir("d"), "chdir(\"d\")");
    expect(unlink("b"), "unlink(\"b\")");
    expect_name(chdir(".."), "chdir(\"..\")");
    expect(rmdir("d"), "rmdir(\"d\")");
    expect(unlink("d"), "unlink(\"d\")");
}

/* Not the program's data: none of this may show up. */
static void left_out(void)
{
    char buf[64];
    int fd = open("/proc/self/stat", O_RDONLY);
    if (read(fd, buf, sizeof(buf)) <= 0)
        abort();
    close(fd);
    fd = open("/dev/null", O_WRONLY);
    if (write(fd, buf, 1) != 1)
        abort();
    close(fd);
}

int main(void)
{
    opens();
    data();
    copies();
    left_out();
    names();
    errno = 0;
    return expect_print(1) || errno;
}
