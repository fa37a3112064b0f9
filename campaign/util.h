/*
 * Memory and strings of a program that ends when there is no more memory.
 */
#ifndef PT_CAMPAIGN_UTIL_H
#define PT_CAMPAIGN_UTIL_H

#include <stddef.h>

#include "common/err.h"

/* Each ends the program with a message if there is no memory. */
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n, size_t size);
char *xstrdup(const char *s); /* NULL: NULL */
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A list of strings; v is NULL-terminated, or NULL while n is 0. */
struct list {
    char **v;
    size_t n;
};

void list_add(struct list *l, const char *s);
void list_take(struct list *l, char *s); /* s belongs to the list from now on */
void list_clear(struct list *l);

/* A whole number from min to max and nothing else; -1 if it is none. */
int parse_number(const char *s, long min, long max, long *value);

/*
 * Reads a regular file of at most `max` bytes; a NUL is put behind.  NULL and err
 * "cannot read 'PATH': reason" (errno is kept) on failure.
 */
char *file_read(const char *path, size_t max, size_t *len, struct pt_err *err);

/* Writes the file under a temporary name beside it and renames it. */
int file_write(const char *path, const void *data, size_t len, int mode, struct pt_err *err);

#endif
