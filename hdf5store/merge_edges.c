/*
 * From holds to edges: a node that was stuck before its event j while event i of
 * another was held cannot start j before i is done.
 */
#include "config.h"

#include <stdlib.h>

#include "hdf5store/merge.h"

/*
 * The event before which the node stood with `io` I/Os done.  Of a poll loop that
 * was folded into one event, a hold before a try that failed says only that the
 * event ahead of the loop is needed.
 */
static int find_event(const struct merge_node *node, uint64_t io, int is_source, uint64_t *event)
{
    uint32_t entry;

    if (io >= node->nio)
        return -1;
    entry = node->io[io];
    *event = entry & ~MERGE_IO_FOLDED;
    if (is_source && entry & MERGE_IO_FOLDED) {
        if (!*event)
            return -1;
        --*event;
    }
    return 0;
}

/* Both runs know the event, and nothing was lost before it. */
static int is_common(const struct merge_node *a, const struct merge_node *b, uint64_t event)
{
    return event < a->valid && event < b->valid;
}

static int make_edge(const struct merge_run *base, const struct merge_run *run,
                     const struct merge_wait *wait, struct pt_store_edge *edge)
{
    const struct merge_node *src = merge_find_node(run, &wait->src);
    const struct merge_node *dst = merge_find_node(run, &wait->dst);
    const struct merge_node *base_src = merge_find_node(base, &wait->src);
    const struct merge_node *base_dst = merge_find_node(base, &wait->dst);

    if (!src || !dst || !base_src || !base_dst || base_src == base_dst)
        return 0;
    *edge = (struct pt_store_edge){
        .src_node = base_src - base->nodes,
        .dst_node = base_dst - base->nodes,
        .by = PT_BY_HOLD,
    };
    return find_event(src, wait->src_io, 1, &edge->src_event) == 0 &&
           find_event(dst, wait->dst_io, 0, &edge->dst_event) == 0 &&
           is_common(src, base_src, edge->src_event) && is_common(dst, base_dst, edge->dst_event);
}

int merge_collect_edges(const struct merge_run *base, const struct merge_run *run,
                        struct pt_store_edge **edges, size_t *n, struct pt_err *err)
{
    struct pt_store_edge *more = realloc(*edges, (*n + run->nwaits + 1) * sizeof(*more));

    if (!more)
        return pt_err_set(err, "not enough memory for %zu edges", *n + run->nwaits);
    *edges = more;
    for (size_t i = 0; i < run->nwaits; i++)
        if (make_edge(base, run, &run->waits[i], &more[*n]))
            ++*n;
    return 0;
}
