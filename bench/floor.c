/*
 * The floor that bench/tracer compares with: the least a tracer can do.  Reads the
 * clock twice and writes 48 bytes into memory that wraps around.
 */
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORDS (1u << 14)
#define EXPORT  __attribute__((visibility("default")))
#define TLS     static __thread __attribute__((tls_model("initial-exec")))

struct record {
    uint64_t begin, end;
    int64_t a, b, c, ret;
};

TLS struct record ring[RECORDS];
TLS uint32_t head;

static inline uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define BODY(ret_type, name, types, args, A, B, C)                                               \
    {                                                                                            \
        static ret_type(*real) types;                                                            \
        if (!real)                                                                               \
            real = (ret_type(*) types)dlsym(RTLD_NEXT, #name);                                   \
        uint64_t begin = now();                                                                  \
        ret_type ret = real args;                                                                \
        uint64_t end = now();                                                                    \
        ring[head++ % RECORDS] =                                                                 \
            (struct record){begin, end, (int64_t)(A), (int64_t)(B), (int64_t)(C), (int64_t)ret}; \
        return ret;                                                                              \
    }

#define WRAP(ret_type, name, params, args, A, B, C) \
    EXPORT ret_type name params;                    \
    ret_type name params BODY(ret_type, name, params, args, A, B, C)

WRAP(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t off), (fd, buf, n, off), fd, n, off)
WRAP(ssize_t, pread, (int fd, void *buf, size_t n, off_t off), (fd, buf, n, off), fd, n, off)
WRAP(size_t, fwrite, (const void *buf, size_t size, size_t n, FILE *f), (buf, size, n, f), size, n,
     (intptr_t)f)
WRAP(int, fstat, (int fd, struct stat *st), (fd, st), fd, (intptr_t)st, 0)
WRAP(off_t, lseek, (int fd, off_t off, int whence), (fd, off, whence), fd, off, whence)
WRAP(int, close, (int fd), (fd), fd, 0, 0)

EXPORT int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    BODY(int, open, (const char *, int, ...), (path, flags, mode), (intptr_t)path, flags, mode)
}
