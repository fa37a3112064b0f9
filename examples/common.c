/* What all example programs share; see common.h. The options are in options.c. */
#define _GNU_SOURCE
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *ex_name = "example";
bool ex_quiet;
void (*ex_leave)(int code) = exit;

void ex_fail(const char *what, const char *object)
{
    fprintf(stderr, "%s: cannot %s '%s': %s\n", ex_name, what, object, strerror(errno));
    ex_leave(1);
    abort(); /* not reached: ex_leave() does not return */
}

void ex_die(const char *fmt, ...)
{
    char msg[PATH_MAX + 256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s: %s\n", ex_name, msg);
    ex_leave(1);
    abort();
}

void file_name(struct file *f, const char *dir, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(f->path, sizeof(f->path), "%s/", dir);

    f->fd = -1;
    if (n > 0 && (size_t)n < sizeof(f->path)) {
        va_start(ap, fmt);
        n += vsnprintf(f->path + n, sizeof(f->path) - (size_t)n, fmt, ap);
        va_end(ap);
    }
    if (n < 0 || (size_t)n >= sizeof(f->path)) {
        errno = ENAMETOOLONG;
        ex_fail("use directory", dir);
    }
}

void file_open(struct file *f, int flags)
{
    f->fd = open(f->path, flags | O_CLOEXEC, 0666);
    if (f->fd < 0)
        ex_fail(flags & O_CREAT ? "create" : "open", f->path);
}

void file_create(const struct file *f)
{
    struct file new = *f;

    file_open(&new, O_WRONLY | O_CREAT | O_TRUNC);
    file_close(&new);
}

/*
 * The four transfers differ only in the call. 'off' < 0 stands for the calls without an offset.
 * Loops until all is transferred, because a short transfer is legal.
 */
static void transfer(const struct file *f, char *buf, size_t len, off_t off, bool writing)
{
    while (len > 0) {
        ssize_t n;

        if (writing)
            n = off < 0 ? write(f->fd, buf, len) : pwrite(f->fd, buf, len, off);
        else
            n = off < 0 ? read(f->fd, buf, len) : pread(f->fd, buf, len, off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            ex_fail(writing ? "write" : "read", f->path);
        if (n == 0)
            ex_die("cannot %s '%s': unexpected end of file", writing ? "write" : "read", f->path);
        buf += n;
        len -= (size_t)n;
        if (off >= 0)
            off += n;
    }
}

void file_pread(const struct file *f, void *buf, size_t len, off_t off)
{
    transfer(f, buf, len, off, false);
}

void file_pwrite(const struct file *f, const void *buf, size_t len, off_t off)
{
    transfer(f, (char *)buf, len, off, true);
}

void file_read(const struct file *f, void *buf, size_t len)
{
    transfer(f, buf, len, -1, false);
}

void file_write(const struct file *f, const void *buf, size_t len)
{
    transfer(f, (char *)buf, len, -1, true);
}

void file_seek(const struct file *f, off_t off)
{
    if (lseek(f->fd, off, SEEK_SET) < 0)
        ex_fail("seek in", f->path);
}

void file_sync(const struct file *f)
{
    if (fsync(f->fd) < 0)
        ex_fail("sync", f->path);
}

void file_close(struct file *f)
{
    /* Some file systems report a failed write only here. */
    if (close(f->fd) < 0)
        ex_fail("close", f->path);
    f->fd = -1;
}

void file_remove(const struct file *f)
{
    if (unlink(f->path) < 0 && errno != ENOENT)
        ex_fail("remove", f->path);
}

void *ex_buffer(size_t len)
{
    void *buf;

    errno = posix_memalign(&buf, EX_ALIGN, len ? len : 1);
    if (errno)
        ex_fail("allocate", "a buffer");
    return memset(buf, 0, len);
}

/* Word number n of the pattern: an odd multiplier makes all words of a file different. */
static uint64_t pattern_word(uint64_t n)
{
    return (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void ex_pattern(void *buf, size_t len, off_t off)
{
    char *p = buf;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t w = pattern_word((uint64_t)off + i);
        memcpy(p + i, &w, len - i < 8 ? len - i : 8);
    }
}

void ex_verify(const struct file *f, const void *buf, size_t len, off_t off)
{
    const char *p = buf;

    for (size_t i = 0; i < len; i += 8) {
        uint64_t w = pattern_word((uint64_t)off + i);
        if (memcmp(p + i, &w, len - i < 8 ? len - i : 8) != 0)
            ex_die("cannot verify '%s': wrong data at offset %lld", f->path,
                   (long long)off + (long long)i);
    }
}

static double clock_seconds(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double ex_now(void)
{
    return clock_seconds(CLOCK_MONOTONIC);
}

void ex_burn(double seconds)
{
    static _Thread_local volatile uint64_t sink;
    uint64_t x = sink;
    double end;

    if (seconds <= 0)
        return;
    end = clock_seconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
    do {
        /* About 10 us a piece: the clock, a system call, stays a small part of the work. */
        for (int i = 0; i < 8192; i++)
            x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sink = x; /* so that the compiler keeps the loop */
    } while (clock_seconds(CLOCK_THREAD_CPUTIME_ID) < end);
}

void ex_nap(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&t, NULL);
}

void ex_report(int ranks, double seconds)
{
    printf("%s: %d ranks, %.3f s\n", ex_name, ranks, seconds);
    if (fflush(stdout) != 0)
        ex_fail("write", "standard output");
}
