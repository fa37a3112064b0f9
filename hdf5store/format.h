/*
 * Events as text in the style of strace, and as JSON, driven by the table of calls.
 */
#ifndef PT_FORMAT_H
#define PT_FORMAT_H

#include <stdio.h>

#include "common/trace.h"
#include "hdf5store/store.h"

enum {
    FORMAT_PATHS = 1 << 0,    /* descriptors with their files: 5</data/x> */
    FORMAT_NO_DIRFD = 1 << 1, /* names are absolute */
};

struct format_event {
    const struct pt_call_desc *call;
    struct pt_event event;
    const char *file; /* of fd, or NULL */
    const char *file2;
    uint64_t unknown; /* fields that are not there, as bits */
};

/* The event of a store as one of a run file.  path, path2 and text may be NULL. */
void format_from_store(struct format_event *out, const struct pt_call_desc *call,
                       const struct pt_store_event *in, const char *path, const char *path2,
                       const char *text);

/* "pwrite(5, 65536, 131072)" */
void format_call(FILE *out, const struct format_event *e, unsigned options);

/* " = 65536 <0.000123>" or " = -1 ENOENT (No such file or directory) <0.000001>" */
void format_result(FILE *out, const struct format_event *e);

/* "call":"pwrite","fd":5,... without braces */
void format_json(FILE *out, const struct format_event *e, unsigned options);

/* A string in quotes, with what is not printable escaped as C does. */
void format_quoted(FILE *out, const char *text);

#endif
