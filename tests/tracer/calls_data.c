/*
 * Calls that move data, change sizes, read directories and copy descriptors beyond what
 * most programs do.  Prints the trace it expects.  Run in an empty directory.
 */
#include "config.h"

#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/tracer/expect.h"

static char buf[8192];
static int file, file2; /* "a" with 8192 bytes, "b" */

static void prepare(void)
{
    file = open("a", O_RDWR | O_CREAT, 0644);
    expect(file, "open(\"a\", O_RDWR|O_CREAT, 0644)");
    expect(write(file, buf, sizeof(buf)), "write(%d, 8192)", file);
    file2 = open("b", O_RDWR | O_CREAT, 0644);
    expect(file2, "open(\"b\", O_RDWR|O_CREAT, 0644)");
}

static void temporary(void)
{
    char a[] = "t.XXXXXX", b[] = "t.XXXXXX", c[] = "t.XXXXXX.end", d[] = "t.XXXXXX.end",
         e[] = "template", f[] = "t.XXXXXX";
    int fd = mkstemp(a);
    expect(fd, "mkstemp(\"%s\", O_RDWR|O_CREAT|O_EXCL, 0600)", a);
    expect(close(fd), "close(%d)", fd);
    fd = mkostemp(b, O_APPEND);
    expect(fd, "mkostemp(\"%s\", O_RDWR|O_CREAT|O_EXCL|O_APPEND, 0600)", b);
    expect(close(fd), "close(%d)", fd);
    fd = mkstemps(c, 4);
    expect(fd, "mkstemps(\"%s\", O_RDWR|O_CREAT|O_EXCL, 0600)", c);
    expect(close(fd), "close(%d)", fd);
    fd = mkostemps(d, 4, O_CLOEXEC);
    expect(fd, "mkostemps(\"%s\", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600)", d);
    expect(close(fd), "close(%d)", fd);
    expect(mkstemp(e), "mkstemp(\"template\", O_RDWR|O_CREAT|O_EXCL, 0600)");
    fd = mkstemp64(f);
    expect(fd, "mkstemp(\"%s\", O_RDWR|O_CREAT|O_EXCL, 0600)", f);
    expect(close(fd), "close(%d)", fd);
}

static void vectors(void)
{
    struct iovec iov[2] = {{buf, 100}, {buf + 100, 28}};
    expect(preadv2(file, iov, 2, 8, 0), "preadv2(%d, 128, 8, 0)", file);
    expect(preadv2(file, iov, 1, -1, RWF_HIPRI), "preadv2(%d, 100, -1, %#x)", file, RWF_HIPRI);
    expect(pwritev2(file, iov, 2, 16, RWF_DSYNC), "pwritev2(%d, 128, 16, %#x)", file, RWF_DSYNC);
    expect(pwritev2(file, iov, 2, -7, 0), "pwritev2(%d, 128, -7, 0)", file);
}

/* ---- from descriptor to descriptor ------------------------------------------------------ */

static void between_files(void)
{
    off_t off = 1000;
    off64_t from = 10, to = 20;
    expect(sendfile(file2, file, &off, 500), "sendfile(%d, %d, 500, 1000)", file, file2);
    expect(lseek(file, 0, SEEK_SET), "lseek(%d, 0, SEEK_SET)", file);
    expect(sendfile64(file2, file, NULL, 600), "sendfile(%d, %d, 600, -1)", file, file2);
    expect(copy_file_range(file, &from, file2, &to, 100, 0), "copy_file_range(%d, %d, 100, 10, 20)",
           file, file2);
    expect(copy_file_range(file, NULL, file2, NULL, 50, 0), "copy_file_range(%d, %d, 50, -1, -1)",
           file, file2);
    from = 0;
    expect(copy_file_range(file, &from, file2, NULL, 50, 77), "copy_file_range(%d, %d, 50, 0, -1)",
           file, file2);
}

/* What comes from a file is I/O, what comes from a pipe may be waited for. */
static void through_pipes(void)
{
    int p[2], q[2], s[2];
    off64_t off = 100;
    struct iovec iov = {buf, 64};
    if (pipe(p) || pipe(q) || socketpair(AF_UNIX, SOCK_STREAM, 0, s))
        abort();
    expect(splice(file, &off, p[1], NULL, 1000, 0), "splice(%d, %d, 1000, 100)", file, p[1]);
    expect_sync(tee(p[0], q[1], 300, 0), "tee(%d, %d, 300)", p[0], q[1]);
    off = 0;
    expect(splice(p[0], NULL, file2, &off, 400, 0), "splice_to(%d, %d, 400, 0)", file2, p[0]);
    /* more than there is: what was moved is recorded */
    expect(splice(p[0], NULL, file2, NULL, 5000, 0), "splice_to(%d, %d, 600, -1)", file2, p[0]);
    expect_sync(splice(q[0], NULL, s[0], NULL, 100, 0), "splice(%d, %d, 100, -1)", q[0], s[0]);
    expect(splice(p[0], NULL, file2, NULL, 10, SPLICE_F_NONBLOCK), "splice_to(%d, %d, 10, -1)",
           file2, p[0]);
    expect_sync(vmsplice(q[1], &iov, 1, 0), "vmsplice(%d, 64)", q[1]);
    expect_sync(read(q[0], buf, 1000), "read(%d, 1000)", q[0]);
    expect(sendfile(s[0], file, &(off_t){0}, 10), "sendfile(%d, %d, 10, 0)", file, s[0]);
    expect(splice(file, &off, file2, NULL, 10, 0), "splice(%d, %d, 10, 400)", file, file2);
    for (int i = 0; i < 2; i++) {
        close(p[i]); /* nobody's I/O */
        close(q[i]);
        close(s[i]);
    }
}

/* ---- memory and asynchronous I/O -------------------------------------------------------- */

static void mappings(void)
{
    const int both = PROT_READ | PROT_WRITE;
    void *p = mmap(NULL, 8192, both, MAP_SHARED, file, 0), *q;
    expect(0, "mmap(%d, 8192, 0, %#x, %#lx)", file, both, (unsigned long)p);
    q = mmap64(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 4096);
    expect(0, "mmap(%d, 4096, 4096, %#x, %#lx)", file, PROT_READ, (unsigned long)q);
    expect(mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 1) == MAP_FAILED ? -1 : 0,
           "mmap(%d, 4096, 1, %#x, %#lx)", file, PROT_READ, (unsigned long)MAP_FAILED);
    memset(p, 'x', 100);
    expect(msync(p, 4096, MS_SYNC), "msync(%#lx, 4096, %#x)", (unsigned long)p, MS_SYNC);
    expect(munmap(p, 8192), "munmap(%#lx, 8192)", (unsigned long)p);
    expect(munmap(q, 4096), "munmap(%#lx, 4096)", (unsigned long)q);
    p = mmap(NULL, 4096, both, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* no file: no I/O */
    if (msync(p, 4096, MS_SYNC))
        abort();
    munmap(p, 4096);
}

/* ---- parts of mappings ------------------------------------------------------------------- */

#define PAGE 4096

/* Maps `n` pages of the file, at `at` if that is not NULL. */
static char *map(char *at, size_t n)
{
    char *p = mmap(at, n * PAGE, PROT_READ, MAP_SHARED | (at ? MAP_FIXED : 0), file, 0);
    expect(0, "mmap(%d, %zu, 0, %#x, %#lx)", file, n * PAGE, PROT_READ, (unsigned long)p);
    return p;
}

static void unmap(char *p, size_t n)
{
    expect(munmap(p, n * PAGE), "munmap(%#lx, %zu)", (unsigned long)p, n * PAGE);
}

/* Reserves memory that is no file: its end is no I/O. */
static char *reserve(size_t n)
{
    char *p = mmap(NULL, n * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    return p;
}

static void parts(void)
{
    char *p = map(NULL, 8);
    unmap(p + 2 * PAGE, 2);         /* out of the midst */
    munmap(p + 2 * PAGE, 2 * PAGE); /* nothing there any more: no event */
    unmap(p, 1);
    unmap(p + 7 * PAGE, 1);
    unmap(p, 8); /* what is left: pages 1, 4, 5 and 6 */
    munmap(p, 8 * PAGE);
    p = reserve(16);
    map(p + PAGE, 2);
    map(p + 5 * PAGE, 3);
    unmap(p, 16); /* several at once, and what is between them */
    munmap(p, 16 * PAGE);
}

static void covered(void)
{
    char *p = reserve(8), *q;
    map(p, 4);
    q = mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    expect(0, "munmap(%#lx, %d)", (unsigned long)q, PAGE); /* as good as that */
    munmap(p, PAGE);                                       /* the anonymous page */
    unmap(p, 8);
}

static void moved(void)
{
    char *p = map(NULL, 4), *q = reserve(16);
    expect_name(mremap(p, 4 * PAGE, 2 * PAGE, 0) == p ? 0 : -1, "mremap(%#lx, %d)",
                (unsigned long)p, 2 * PAGE);
    munmap(p + 2 * PAGE, 2 * PAGE); /* gone already */
    if (mremap(p, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q) != q)
        abort();
    expect_name(0, "mremap(%#lx, %d)", (unsigned long)q, 8 * PAGE);
    munmap(p, 2 * PAGE); /* not there any more */
    expect_name(mremap(q, 8 * PAGE, 0, 0) == MAP_FAILED ? -1 : 0, "mremap(%#lx, 0)",
                (unsigned long)q);
    expect(msync(q + PAGE, PAGE, MS_ASYNC), "msync(%#lx, %d, %#x)", (unsigned long)(q + PAGE), PAGE,
           MS_ASYNC);
    unmap(q + 7 * PAGE, 1);
    unmap(q, 16);
}

static void wait_for(struct aiocb *cb)
{
    const struct aiocb *list[1] = {cb};
    int ret = aio_suspend(list, 1, NULL);
    expect_sync(ret, "aio_suspend(1)");
    if (aio_error(cb) == EINPROGRESS)
        abort();
    expect_name(aio_return(cb), "aio_return(%#lx)", (unsigned long)cb);
}

static void asynchronous(void)
{
    static struct aiocb r, w;
    struct aiocb *both[3] = {&r, NULL, &w};
    r = (struct aiocb){.aio_fildes = file, .aio_buf = buf, .aio_nbytes = 100, .aio_offset = 50};
    w = (struct aiocb){.aio_fildes = file2, .aio_buf = buf, .aio_nbytes = 200, .aio_offset = 60};
    expect(aio_read(&r), "aio_read(%d, 100, 50, %#lx)", file, (unsigned long)&r);
    wait_for(&r);
    expect(aio_write(&w), "aio_write(%d, 200, 60, %#lx)", file2, (unsigned long)&w);
    wait_for(&w);
    expect(aio_fsync(O_SYNC, &w), "aio_fsync(%d, %#lx)", file2, (unsigned long)&w);
    wait_for(&w);
    r.aio_lio_opcode = LIO_READ;
    w.aio_lio_opcode = LIO_WRITE;
    int ret = lio_listio(LIO_WAIT, both, 3, NULL);
    expect(0, "aio_read(%d, 100, 50, %#lx)", file, (unsigned long)&r);
    expect(0, "aio_write(%d, 200, 60, %#lx)", file2, (unsigned long)&w);
    expect_sync(ret, "lio_listio(3)");
    expect_name(aio_return(&r), "aio_return(%#lx)", (unsigned long)&r);
    expect_name(aio_return(&w), "aio_return(%#lx)", (unsigned long)&w);
}

/* ---- sizes, durability, advice ---------------------------------------------------------- */

static void sizes(void)
{
    expect(truncate("b", 3000), "truncate(\"b\", 3000)");
    expect(truncate("no", 3000), "truncate(\"no\", 3000)");
    expect(ftruncate64(file2, 2000), "ftruncate(%d, 2000)", file2);
    expect(fallocate(file2, FALLOC_FL_KEEP_SIZE, 0, 4096), "fallocate(%d, %#x, 0, 4096)", file2,
           FALLOC_FL_KEEP_SIZE);
    expect(fallocate64(file2, 0, -1, 4096), "fallocate(%d, 0, -1, 4096)", file2);
    expect(posix_fallocate(file2, 0, 5000), "posix_fallocate(%d, 0, 5000)", file2);
    /* These return the error, and leave errno alone. */
    errno = 0;
    if (posix_fallocate(file2, -1, 5000) != EINVAL || posix_fadvise(file, 0, 1, 77) != EINVAL ||
        errno)
        abort();
    errno = EINVAL;
    expect(-1, "posix_fallocate(%d, -1, 5000)", file2);
    expect(-1, "posix_fadvise(%d, 0, 1, %#x)", file, 77);
    expect(posix_fadvise(file, 0, 4096, POSIX_FADV_WILLNEED), "posix_fadvise(%d, 0, 4096, %#x)",
           file, POSIX_FADV_WILLNEED);
    expect(readahead(file, 0, 4096), "readahead(%d, 0, 4096)", file);
    expect(sync_file_range(file, 0, 4096, SYNC_FILE_RANGE_WRITE),
           "sync_file_range(%d, 0, 4096, %#x)", file, SYNC_FILE_RANGE_WRITE);
    expect(syncfs(file), "syncfs(%d)", file);
    sync();
    expect(0, "sync()");
}

/* ---- directories ------------------------------------------------------------------------ */

static void free_list(struct dirent **list, int n)
{
    while (n > 0)
        free(list[--n]);
    free(list);
}

static void directories(void)
{
    struct dirent entry, *result, **list;
    int fd, n;
    long at = 0;
    off_t base = 0;
    expect(mkdir("d", 0755), "mkdir(\"d\", 0755)");
    expect(creat("d/x", 0644), "creat(\"d/x\", O_WRONLY|O_CREAT|O_TRUNC, 0644)");
    DIR *d = opendir("d");
    fd = dirfd(d);
    expect(fd, "opendir(\"d\", %#x)", O_DIRECTORY);
    for (int i = 0; i < 3; i++) {
        at = telldir(d);
        expect(readdir(d) != NULL, "readdir(%d)", fd);
    }
    expect(readdir64(d) != NULL, "readdir(%d)", fd);
    seekdir(d, at);
    expect(0, "seekdir(%d, %ld)", fd, at);
    expect(readdir(d) != NULL, "readdir(%d)", fd);
    rewinddir(d);
    expect(0, "rewinddir(%d)", fd);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    for (int i = 0; i < 4; i++) {
        int ret = readdir_r(d, &entry, &result);
        expect(ret ? -1 : result != NULL, "readdir_r(%d)", fd);
    }
#pragma GCC diagnostic pop
    expect(closedir(d), "closedir(%d)", fd);
    expect(opendir("no") ? 0 : -1, "opendir(\"no\", %#x)", O_DIRECTORY);
    n = scandir("d", &list, NULL, alphasort);
    expect(n, "scandir(\"d\")");
    free_list(list, n);
    expect(scandir("no", &list, NULL, alphasort), "scandir(\"no\")");
    n = scandirat(AT_FDCWD, "d", &list, NULL, alphasort);
    expect(n, "scandirat(\"d\")");
    free_list(list, n);
    fd = open("d", O_RDONLY | O_DIRECTORY);
    expect(fd, "open(\"d\", O_RDONLY|O_DIRECTORY)");
    expect(getdents64(fd, buf, sizeof(buf)), "getdents64(%d, 8192)", fd);
    expect(getdents64(fd, buf, sizeof(buf)), "getdents64(%d, 8192)", fd);
    expect(getdirentries(fd, buf, sizeof(buf), &base), "getdirentries(%d, 8192)", fd);
    n = scandirat(fd, ".", &list, NULL, alphasort);
    expect(n, "scandirat(%d, \".\")", fd);
    free_list(list, n);
    expect(close(fd), "close(%d)", fd);
}

/* ---- descriptors ------------------------------------------------------------------------ */

static void copies(void)
{
    int copy = fcntl(file, F_DUPFD, 50);
    expect(copy, "dup(%d, 50)", file);
    expect(fcntl(copy, F_DUPFD_CLOEXEC, 60), "dup(%d, 60)", copy);
    expect(fcntl(copy, F_DUPFD, -1), "dup(%d, -1)", copy); /* no copy was made */
    expect(dup3(file, file, 0), "dup3(%d, -1)", file);
    if (fcntl(file, F_GETFD) < 0) /* no I/O */
        abort();
    expect(dup2(file, 61), "dup2(%d, 61)", file);
    if (close_range(50, 60, 0))
        abort();
    expect(0, "close(50)");
    expect(0, "close(60)");
    expect(dup2(file, 62), "dup2(%d, 62)", file);
    closefrom(61);
    expect(0, "close(61)");
    expect(0, "close(62)");
}

int main(void)
{
    prepare();
    temporary();
    vectors();
    between_files();
    through_pipes();
    mappings();
    parts();
    covered();
    moved();
    asynchronous();
    sizes();
    directories();
    copies();
    return expect_print(1);
}
