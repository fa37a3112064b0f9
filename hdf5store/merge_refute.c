/*
 * Edges that another run refutes.
 *
 * A hold shows where everybody was stuck in that run.  Where nodes only exclude each other
 * (a mutex, a file lock) somebody else may come first in the next run, and the runs would
 * give opposite edges.  An edge says what can not be, so one run in which its destination
 * began first proves it wrong.  What is left of it is an edge to the first event that did
 * not: the hold has shown that the node waits, and no run that it does not wait there.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5store/merge.h"

/* What the times of two nodes of one host may be wrong by, ns: see watchdog/clock.c. */
#define CLOCK_ERROR 5000

static int same_host(const struct merge_run *run, const struct merge_node *a,
                     const struct merge_node *b)
{
    return a->host == b->host ||
           !strcmp(names_text(&run->names, a->host), names_text(&run->names, b->host));
}

/* The first event from the edge's destination on that did not begin before its source. */
static uint64_t find_destination(const struct merge_run *run, const struct merge_node *src,
                                 const struct merge_node *dst, const struct pt_store_edge *e)
{
    uint64_t event = e->dst_event;

    /* Clocks of different hosts are not compared. */
    if (!src || !dst || e->src_event >= src->valid || event >= dst->valid ||
        !same_host(run, src, dst))
        return event;
    while (event < dst->valid &&
           dst->events[event].begin_ns + CLOCK_ERROR < src->events[e->src_event].begin_ns)
        event++;
    return event;
}

int merge_weaken_edges(const struct merge_run *base, const struct merge_run *run,
                       struct pt_store_edge *edges, size_t *n, size_t *refuted, struct pt_err *err)
{
    const struct merge_node **nodes = calloc(base->nnodes + 1, sizeof(*nodes));
    size_t left = 0;

    if (!nodes)
        return pt_err_set(err, "not enough memory for %zu nodes", base->nnodes);
    for (size_t i = 0; i < base->nnodes; i++)
        nodes[i] = merge_find_node(run, &base->nodes[i].name);
    for (size_t i = 0; i < *n; i++) {
        struct pt_store_edge e = edges[i];
        const struct merge_node *dst = nodes[e.dst_node];

        e.dst_event = find_destination(run, nodes[e.src_node], dst, &e);
        *refuted += e.dst_event != edges[i].dst_event;
        if (e.dst_event == edges[i].dst_event ||
            (e.dst_event < dst->valid && e.dst_event < base->nodes[e.dst_node].valid))
            edges[left++] = e;
    }
    *n = left;
    free(nodes);
    return 0;
}
