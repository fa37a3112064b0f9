/*
 * Makes one of every call that can be replayed, in the current directory, which has a
 * file "old" of 10000 bytes and a directory "there" with a file in it.
 */
#include "config.h"

#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static char data[20000];

#define MUST(call)                                                          \
    do {                                                                    \
        if ((long)(call) < 0) {                                             \
            fprintf(stderr, "manycalls: %s: %s\n", #call, strerror(errno)); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)
#define FAILS(call)                                                   \
    do {                                                              \
        if ((long)(call) >= 0) {                                      \
            fprintf(stderr, "manycalls: %s: does not fail\n", #call); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

static void streams(void)
{
    FILE *f = fopen("stream", "w+");
    char *line = NULL;
    size_t size = 0;

    MUST(f ? 0 : -1);
    fputs("a line\nanother line\n", f);
    for (int i = 0; i < 1000; i++)
        fprintf(f, "%d: a number\n", i);
    MUST(fwrite(data, 100, 90, f) == 90 ? 0 : -1);
    fputc('x', f);
    MUST(ftell(f));
    MUST(fseek(f, 0, SEEK_SET));
    MUST(fgets(data, 4096, f) ? 0 : -1);
    MUST(getline(&line, &size, f));
    MUST(fread(data, 1, 5000, f) == 5000 ? 0 : -1);
    rewind(f);
    MUST(fgetc(f));
    MUST(fseek(f, -10, SEEK_END));
    MUST(fread(data, 1, 100, f) == 10 ? 0 : -1);
    MUST(fflush(f));
    MUST(fclose(f));
    free(line);
    f = fopen("stream", "a");
    MUST(setvbuf(f, NULL, _IONBF, 0));
    fputs("unbuffered\n", f);
    fclose(f);
    FAILS(fopen("missing", "r") ? 0 : -1);
    f = fdopen(open("old", O_RDONLY), "r");
    while (fread(data, 1, 3000, f) > 0)
        ;
    fclose(f);
    f = tmpfile();
    MUST(fwrite(data, 1, 10, f) == 10 ? 0 : -1);
    fclose(f);
}

static void directories(void)
{
    struct dirent **list;
    DIR *dir = opendir("there");
    int fd, n;

    MUST(dir ? 0 : -1);
    while (readdir(dir))
        ;
    rewinddir(dir);
    MUST(readdir(dir) ? 0 : -1);
    MUST(closedir(dir));
    FAILS(opendir("missing") ? 0 : -1);
    n = scandir("there", &list, NULL, alphasort);
    MUST(n);
    while (n-- > 0)
        free(list[n]);
    free(list);
    MUST(mkdir("d", 0755));
    fd = open("d", O_RDONLY | O_DIRECTORY);
    MUST(fd);
    MUST(mkdirat(fd, "e", 0700));
    MUST(close(openat(fd, "f", O_WRONLY | O_CREAT, 0644)));
    MUST(renameat(fd, "f", AT_FDCWD, "g"));
    MUST(linkat(AT_FDCWD, "g", fd, "h", 0));
    MUST(unlinkat(fd, "h", 0));
    MUST(unlinkat(fd, "e", AT_REMOVEDIR));
    MUST(fsync(fd));
    MUST(fchdir(fd));
    MUST(close(open("inside", O_WRONLY | O_CREAT | O_EXCL, 0600)));
    MUST(chdir(".."));
    MUST(close(fd));
    MUST(remove("d/inside"));
    MUST(remove("d"));
    FAILS(rmdir("d"));
    FAILS(rmdir("there"));
}

static void links(void)
{
    char target[100];

    MUST(symlink("old", "soft"));
    MUST(symlink("/nowhere/at/all", "dangling"));
    MUST(link("old", "hard"));
    MUST(lstat("soft", &(struct stat){0}));
    MUST(readlink("soft", target, sizeof(target)));
    MUST(readlink("dangling", target, sizeof(target)));
    FAILS(readlink("old", target, sizeof(target)));
    MUST(unlink("soft"));
    MUST(unlink("dangling"));
    MUST(rename("hard", "harder"));
    MUST(truncate("harder", 9000));
    MUST(unlink("harder"));
}

static void looking(void)
{
    struct stat st;
    struct statfs fs;
    struct statx stx;
    int fd = open("old", O_RDWR);

    MUST(fd);
    MUST(stat("old", &st));
    MUST(fstat(fd, &st));
    MUST(fstatat(AT_FDCWD, "there", &st, 0));
    MUST(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx));
    MUST(statfs(".", &fs));
    MUST(fstatfs(fd, &fs));
    MUST(access("old", R_OK));
    MUST(faccessat(AT_FDCWD, "there", X_OK, 0));
    FAILS(stat("missing", &st));
    FAILS(access("missing", F_OK));
    MUST(chmod("old", 0640));
    MUST(fchmod(fd, 0644));
    MUST(chown("old", geteuid(), (gid_t)-1));
    MUST(fchown(fd, (uid_t)-1, getegid()));
    MUST(utimes("old", NULL));
    MUST(futimens(fd, NULL));
    if (getxattr("old", "user.none", data, 10) >= 0 || fgetxattr(fd, "user.none", data, 10) >= 0)
        exit(1);
    MUST(close(fd));
}

static void data_calls(void)
{
    int in = open("old", O_RDONLY), out = open("new", O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct iovec iov[2] = {{data, 100}, {data + 100, 200}};
    off_t off = 100;
    void *p;

    MUST(in);
    MUST(out);
    MUST(read(in, data, 1000));
    MUST(write(out, data, 1000));
    MUST(pwrite(out, data, 500, 4000));
    MUST(pread(out, data, 500, 3900));
    MUST(writev(out, iov, 2));
    MUST(preadv(out, iov, 2, 10));
    MUST(lseek(out, -100, SEEK_END));
    MUST(copy_file_range(in, NULL, out, NULL, 2000, 0));
    MUST(sendfile(out, in, &off, 300));
    MUST(fallocate(out, 0, 0, 20000));
    MUST(posix_fallocate(out, 0, 30000));
    MUST(posix_fadvise(in, 0, 0, POSIX_FADV_SEQUENTIAL));
    MUST(readahead(in, 0, 4096));
    MUST(sync_file_range(out, 0, 4096, SYNC_FILE_RANGE_WRITE));
    MUST(fsync(out));
    MUST(fdatasync(out));
    MUST(ftruncate(out, 5000));
    p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0);
    MUST(p == MAP_FAILED ? -1 : 0);
    MUST(msync(p, 4096, MS_SYNC));
    MUST(munmap(p, 8192));
    MUST(close(dup(in)));
    MUST(close(in));
    MUST(close(out));
}

/* What is not one call in the trace: requests in a list, parts of mappings, streams anew. */
static void compound_calls(void)
{
    struct open_how how = {.flags = O_RDWR | O_CREAT, .mode = 0600};
    int in = open("old", O_RDONLY), p[2], out;
    struct aiocb r = {
        .aio_fildes = in, .aio_buf = data, .aio_nbytes = 100, .aio_lio_opcode = LIO_READ};
    struct aiocb *list[1] = {&r};
    off_t off = 10, to = 20;
    char *map;
    FILE *f;

    MUST(in);
    out = (int)syscall(SYS_openat2, AT_FDCWD, "spliced", &how, sizeof(how));
    MUST(out);
    MUST(pipe(p));
    MUST(splice(in, &off, p[1], NULL, 3000, 0));
    MUST(splice(p[0], NULL, out, &to, 1000, 0));
    MUST(splice(p[0], NULL, out, NULL, 9000, 0));
    MUST(lio_listio(LIO_WAIT, list, 1, NULL));
    MUST(aio_return(&r));
    FAILS(-posix_fadvise(in, 0, 0, 77));
    FAILS(-posix_fallocate(out, -1, 10));
    map = mmap(NULL, 16384, PROT_READ, MAP_SHARED, in, 0);
    MUST(map == MAP_FAILED ? -1 : 0);
    MUST(munmap(map + 4096, 4096));
    MUST(munmap(map, 16384));
    MUST(close(in));
    MUST(close(out));
    f = fopen("again", "w");
    MUST(f ? 0 : -1);
    for (int i = 0; i < 10000; i++)
        MUST(putc_unlocked('x', f));
    MUST(freopen("old", "r", f) ? 0 : -1);
    for (int i = 0; i < 5000; i++)
        MUST(getc_unlocked(f));
    MUST(freopen(NULL, "r", f) ? 0 : -1);
    MUST(fread(data, 1, 100, f) == 100 ? 0 : -1);
    FAILS(freopen("missing", "r", f) ? 0 : -1);
}

int main(void)
{
    streams();
    directories();
    links();
    looking();
    data_calls();
    compound_calls();
    return 0;
}
