/*
 * What all example programs share: options, failing, files, patterns, CPU burn, time.
 *
 * The examples are workloads, so nothing here does any I/O behind the caller's back: each
 * file_*() function is the one POSIX call that its name says (repeated only when the kernel
 * transferred less than asked), and what a program asks for is the same in every run.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Direct I/O wants memory, offset and size aligned; this suits all common devices. */
#define EX_ALIGN 4096

/* The program's name, and whether this process says nothing (all ranks but 0) about options. */
extern const char *ex_name;
extern bool ex_quiet;

/*
 * How the program ends early, with exit status 'code': exit() unless replaced. Programs of
 * several processes replace it so that one rank that fails takes the others along.
 */
extern void (*ex_leave)(int code);

/* ---- options ---- */

enum ex_kind {
    EX_FLAG,  /* bool */
    EX_COUNT, /* unsigned */
    EX_SIZE,  /* size_t: 4096, 64K, 1M, 2G */
    EX_TIME,  /* double, seconds: 1.5, 2s, 10ms, 500us */
    EX_TEXT,  /* const char * */
};

/* One option. 'value' holds the default and receives what is given. A NULL name ends a table. */
struct ex_opt {
    const char *name;
    enum ex_kind kind;
    void *value;
    const char *help;
};

/*
 * Parse the options with getopt_long(). --help prints 'about' and the table with its defaults and
 * ends with 0; a wrong option is named on stderr and ends with 2. No other arguments are accepted.
 */
void ex_parse(int argc, char **argv, const char *about, const struct ex_opt *opts);

/* Parse a size or a time. Return 0, or -1 when 's' is not one. */
int ex_parse_size(const char *s, size_t *size);
int ex_parse_time(const char *s, double *seconds);

/* Say "NAME: message" and end with 2. For options that do not go together. */
void ex_usage(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- failing ---- */

/* Say "NAME: cannot WHAT 'OBJECT': reason of errno" and end with 1. */
void ex_fail(const char *what, const char *object) __attribute__((noreturn));

/* Say "NAME: message" and end with 1. */
void ex_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- files; all of them call ex_fail() when the call fails ---- */

struct file {
    int fd;
    char path[PATH_MAX];
};

/* Set the path to DIR/NAME without opening anything. */
void file_name(struct file *f, const char *dir, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void file_open(struct file *f, int flags);
/* Create the file, or empty it, and close it again: what one rank does before all open it. */
void file_create(const struct file *f);
void file_pread(const struct file *f, void *buf, size_t len, off_t off);
void file_pwrite(const struct file *f, const void *buf, size_t len, off_t off);
void file_read(const struct file *f, void *buf, size_t len);
void file_write(const struct file *f, const void *buf, size_t len);
void file_seek(const struct file *f, off_t off);
void file_sync(const struct file *f);
void file_close(struct file *f);
/* A file that does not exist is no failure. */
void file_remove(const struct file *f);

/* ---- data ---- */

/* Zeroed memory aligned for direct I/O, for free(). Never NULL. */
void *ex_buffer(size_t len);

/* --direct needs sizes that are a multiple of EX_ALIGN: ex_usage() if 'size' of --NAME is not. */
void ex_check_direct(bool direct, const char *name, size_t size);

/*
 * The pattern is a function of the file offset, so that whoever reads a block, knows what its
 * writer, whichever rank that was, should have put there.
 */
void ex_pattern(void *buf, size_t len, off_t off);
/* ex_die() if 'buf', read from 'f' at 'off', is not the pattern. */
void ex_verify(const struct file *f, const void *buf, size_t len, off_t off);

/* ---- time ---- */

/*
 * Compute for so many seconds of this thread's CPU time. CPU time, not wall-clock time: on a
 * shared core the same work then takes as long as the core lets it, as real computing does.
 */
void ex_burn(double seconds);

/* Seconds on the monotonic clock. */
double ex_now(void);

/* Sleep this long: for loops that wait for a peer to appear. */
void ex_nap(double seconds);

/* The last line on stdout: "NAME: N ranks, SECONDS s". */
void ex_report(int ranks, double seconds);

#endif
