#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/histogram.h"
#include "replay/report.h"

static void add_node(struct report *r, const struct run *run, const struct node_run *n)
{
    r->sums[SUM_IO] += n->times.io;
    r->sums[SUM_COMPUTE] += n->times.compute;
    r->sums[SUM_IDLE] += n->times.idle;
    r->sums[SUM_WAIT] += n->times.wait;
    r->sums[SUM_BYTES_READ] += n->bytes_read;
    r->sums[SUM_BYTES_WRITTEN] += n->bytes_written;
    r->sums[SUM_MISMATCHES] += n->mismatches.count;
    r->sums[SUM_ERRORS] += n->errors.count;
    r->sums[SUM_EVENTS] += n->node->nevents;
    if (n->end - run->common.start > r->elapsed)
        r->elapsed = n->end - run->common.start;
    for (uint64_t i = 0; i < n->node->nevents; i++)
        if (n->durations[i] != NODE_NOT_TIMED)
            r->buckets[n->node->events[i].op * (size_t)HISTOGRAM_BUCKETS +
                       histogram_bucket(n->durations[i])]++;
}

int report_create(struct report *r, const struct options *o, const struct pt_store *store,
                  const struct run *run, struct pt_err *err)
{
    *r = (struct report){
        .store_path = o->store, .store = store, .mode = o->mode, .ranks = run->common.plan->nranks};
    r->nbuckets = pt_store_ncalls(store) * HISTOGRAM_BUCKETS;
    r->buckets = calloc(r->nbuckets + 1, sizeof(*r->buckets));
    if (!r->buckets)
        return pt_err_errno(err, "cannot report the result");
    for (size_t i = 0; i < run->nnodes; i++)
        add_node(r, run, &run->nodes[i]);
    memcpy(r->max, r->sums, sizeof(r->max));
    return 0;
}

void report_destroy(struct report *r)
{
    int saved = errno;

    free(r->buckets);
    *r = (struct report){0};
    errno = saved;
}

static size_t left(uint64_t printed)
{
    return printed < NODE_MAX_DIFFS ? NODE_MAX_DIFFS - (size_t)printed : 0;
}

char *report_differences(const struct run *run, const char *prefix)
{
    uint64_t errors = 0, mismatches = 0;
    char *text = NULL, error[80], mismatch[80];
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    snprintf(error, sizeof(error), "%s: error", prefix);
    snprintf(mismatch, sizeof(mismatch), "%s: mismatch", prefix);
    for (size_t i = 0; i < run->nnodes; i++) {
        node_print_errors(&run->nodes[i], left(errors), error, out);
        node_print_mismatches(&run->nodes[i], left(mismatches), mismatch, out);
        errors += run->nodes[i].errors.count;
        mismatches += run->nodes[i].mismatches.count;
    }
    fclose(out);
    return text;
}
