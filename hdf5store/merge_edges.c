/*
 * Edges between I/O that the tracer has counted; and those from holds: a node that was
 * stuck before its event j while event i of another was held cannot start j before i is
 * done.
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

int merge_make_edge(const struct merge_run *base, const struct merge_run *run,
                    const struct merge_node *src, uint64_t src_io, const struct merge_node *dst,
                    uint64_t dst_io, uint8_t by, struct pt_store_edge *edge)
{
    const struct merge_node *base_src = base == run ? src : merge_find_node(base, &src->name);
    const struct merge_node *base_dst = base == run ? dst : merge_find_node(base, &dst->name);

    if (!base_src || !base_dst || base_src == base_dst)
        return 0;
    *edge = (struct pt_store_edge){
        .src_node = base_src - base->nodes,
        .dst_node = base_dst - base->nodes,
        .by = by,
    };
    return find_event(src, src_io, 1, &edge->src_event) == 0 &&
           find_event(dst, dst_io, 0, &edge->dst_event) == 0 &&
           is_common(src, base_src, edge->src_event) && is_common(dst, base_dst, edge->dst_event);
}

static int make_edge(const struct merge_run *base, const struct merge_run *run,
                     const struct merge_wait *wait, struct pt_store_edge *edge)
{
    const struct merge_node *src = merge_find_node(run, &wait->src);
    const struct merge_node *dst = merge_find_node(run, &wait->dst);

    return src && dst &&
           merge_make_edge(base, run, src, wait->src_io, dst, wait->dst_io, PT_BY_HOLD, edge);
}

/* The node was created after the held I/O went on, by the clock of one host. */
static int is_born_after(const struct merge_node *node, const struct merge_node *src,
                         uint64_t src_io)
{
    uint64_t event;

    return node->host == src->host && (node->name.process || node->name.thread) &&
           find_event(src, src_io, 0, &event) == 0 && event < src->nevents &&
           node->start > src->events[event].begin_ns;
}

/* The tightest edges from holds to a node that did not exist yet. */
static int add_births(const struct merge_run *base, const struct merge_run *run,
                      const struct merge_node *node, struct pt_store_edge *edges)
{
    const struct merge_wait *last = NULL;
    int n = 0;

    for (size_t i = 0; i < run->nwaits; i++) {
        const struct merge_wait *wait = &run->waits[i];
        const struct merge_node *src =
            wait->dst.rank == -1 ? merge_find_node(run, &wait->src) : NULL;
        if (!src || src == node || !is_born_after(node, src, wait->src_io))
            continue;
        if (last && pt_name_compare(&last->src, &wait->src))
            n += merge_make_edge(base, run, merge_find_node(run, &last->src), last->src_io, node, 0,
                                 PT_BY_HOLD, edges + n);
        last = wait;
    }
    if (last)
        n += merge_make_edge(base, run, merge_find_node(run, &last->src), last->src_io, node, 0,
                             PT_BY_HOLD, edges + n);
    return n;
}

static int make_room(struct pt_store_edge **edges, size_t n, struct pt_err *err)
{
    struct pt_store_edge *more = realloc(*edges, (n + 1) * sizeof(*more));

    if (!more)
        return pt_err_set(err, "not enough memory for %zu edges", n);
    *edges = more;
    return 0;
}

int merge_collect_edges(const struct merge_run *base, const struct merge_run *run,
                        struct pt_store_edge **edges, size_t *n, struct pt_err *err)
{
    if (make_room(edges, *n + run->nwaits, err) < 0)
        return -1;
    for (size_t i = 0; i < run->nwaits; i++)
        if (make_edge(base, run, &run->waits[i], *edges + *n))
            ++*n;
    for (size_t i = 0; i < run->nnodes && run->nwaits; i++) {
        if (make_room(edges, *n + run->nwaits, err) < 0)
            return -1;
        *n += (size_t)add_births(base, run, &run->nodes[i], *edges + *n);
    }
    return 0;
}
