/*
 * What a program expects to find in its trace: one line a call, "class call(...) = result",
 * as ptdump prints it.  Collected in memory, printed when nothing is traced any more.
 */
#ifndef PT_TEST_EXPECT_H
#define PT_TEST_EXPECT_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char expected[1 << 17];
static size_t used;

__attribute__((format(printf, 1, 2))) static inline void expect_text(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    used += (size_t)vsnprintf(expected + used, sizeof(expected) - used, fmt, ap);
    va_end(ap);
}

/* Notes what the call that has just been made should look like; -1 is a failure. */
__attribute__((format(printf, 3, 4))) static inline void expect_call(const char *class, long ret,
                                                                     const char *fmt, ...)
{
    int error = errno;
    va_list ap;
    expect_text("%s ", class);
    va_start(ap, fmt);
    used += (size_t)vsnprintf(expected + used, sizeof(expected) - used, fmt, ap);
    va_end(ap);
    if (ret == -1)
        expect_text(" = -1 %s\n", strerrorname_np(error));
    else
        expect_text(" = %ld\n", ret);
}

/* The same, with the number of polls in vain that the event holds. */
static inline void expect_count(unsigned long polls)
{
    used--; /* the newline */
    expect_text(" [%lu polls]\n", polls);
}

#define expect(ret, ...)      expect_call("io", ret, __VA_ARGS__)
#define expect_name(ret, ...) expect_call("name", ret, __VA_ARGS__)
#define expect_sync(ret, ...) expect_call("sync", ret, __VA_ARGS__)
#define expect_idle(ret, ...) expect_call("idle", ret, __VA_ARGS__)

/* The marks that follow MPI_Init, with two ranks: the world, with its launcher's name, and self. */
static inline void expect_world(int rank)
{
    const char *launch = getenv("PMIX_NAMESPACE");
    expect_text("name MPI_Comm(0, -1, %d, \"0-1@%s\") = 0\n", rank, launch ? launch : "");
    expect_text("name MPI_Comm(1, -1, 0, \"%d\") = 0\n", rank);
}

/* Prints it all; the program's exit status. */
static inline int expect_print(int fd)
{
    if (used >= sizeof(expected))
        return 1;
    for (size_t done = 0; done < used;) {
        ssize_t n = write(fd, expected + done, used - done);
        if (n <= 0)
            return 1;
        done += (size_t)n;
    }
    return 0;
}

#endif
