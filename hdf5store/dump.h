/*
 * What ptdump prints.
 */
#ifndef PT_DUMP_H
#define PT_DUMP_H

#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "common/trace.h"

struct dump_options {
    const char *file;
    int one_node;
    struct pt_name node;
    uint64_t first, last; /* events, both included */
    int paths, json;
};

/* 0, or -1 and err. A broken output ends them early; it is the caller's to check. */
int dump_store(const struct dump_options *o, FILE *out, struct pt_err *err);
int dump_run(const struct dump_options *o, FILE *out, struct pt_err *err);

#endif
