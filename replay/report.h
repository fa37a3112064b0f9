/*
 * The result of a replay.
 */
#ifndef PT_REPLAY_REPORT_H
#define PT_REPLAY_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/err.h"
#include "hdf5store/store.h"
#include "replay/options.h"
#include "replay/run.h"

/* Sums over the nodes of a rank; of several ranks they add up. */
enum {
    SUM_IO,
    SUM_COMPUTE,
    SUM_IDLE,
    SUM_WAIT,
    NTIMES,
    SUM_BYTES_READ = NTIMES,
    SUM_BYTES_WRITTEN,
    SUM_MISMATCHES,
    SUM_ERRORS,
    SUM_EVENTS,
    NSUMS
};

struct report {
    const char *store_path;
    const struct pt_store *store;
    enum replay_mode mode;
    int ranks;
    uint64_t sums[NSUMS];
    uint64_t max[NTIMES]; /* of one rank, ns */
    uint64_t elapsed;     /* ns */
    size_t nbuckets;
    uint64_t *buckets; /* a histogram for each call of the store */
};

/* What this rank's run adds; the caller brings the ranks together.  -1 and err. */
int report_create(struct report *r, const struct options *o, const struct pt_store *store,
                  const struct run *run, struct pt_err *err);
void report_destroy(struct report *r);

/* The first differences of a run, a line each, for the caller to free; NULL: no memory. */
char *report_differences(const struct run *run, const char *prefix);

void report_print_table(const struct report *r, FILE *out);
void report_print_json(const struct report *r, FILE *out);

/*
 * Writes the result to o->output, which appears complete or not at all, or to stdout.
 * -1 and err.
 */
int report_write(const struct report *r, const struct options *o, struct pt_err *err);

#endif
