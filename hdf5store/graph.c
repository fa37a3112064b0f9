/*
 * Only events with an incoming edge matter, so a node's events are cut into
 * segments: each begins with such an event (or with event 0) and lasts until the
 * next.  An edge leads from the segment that contains its source to the segment
 * that begins with its destination.  The segments are visited in topological
 * order; each gets a vector clock (how many events of each node are done before
 * it begins), which is freed when nobody needs it any more.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "hdf5store/graph.h"

struct segment {
    uint32_t node;
    uint64_t begin;   /* its first event */
    size_t in, nin;   /* incoming edges: rows of the sorted edges */
    size_t out, nout; /* outgoing edges: rows of `by_source` */
    size_t waits;     /* predecessors that were not visited yet */
    size_t users;     /* successors that have not used its clock yet */
    uint64_t *clock;
};

struct graph {
    size_t nnodes;
    const struct pt_store_edge *edges;
    size_t nedges;
    struct segment *segments; /* by node, begin */
    size_t nsegments;
    size_t *first;     /* a node's first segment; nnodes + 1 of them */
    size_t *source;    /* an edge's source segment */
    size_t *target;    /* an edge's destination segment */
    size_t *by_source; /* edges, grouped by source segment */
    size_t *queue;
};

/* ---- edges --------------------------------------------------------------- */

static int compare_edges(const void *pa, const void *pb)
{
    const struct pt_store_edge *a = pa, *b = pb;

    if (a->dst_node != b->dst_node)
        return a->dst_node < b->dst_node ? -1 : 1;
    if (a->dst_event != b->dst_event)
        return a->dst_event < b->dst_event ? -1 : 1;
    if (a->src_node != b->src_node)
        return a->src_node < b->src_node ? -1 : 1;
    return a->src_event < b->src_event ? -1 : a->src_event > b->src_event;
}

void graph_sort_edges(struct pt_store_edge *edges, size_t n)
{
    if (n)
        qsort(edges, n, sizeof(*edges), compare_edges);
}

size_t graph_unite_edges(struct pt_store_edge *edges, size_t n)
{
    size_t left = 0;

    graph_sort_edges(edges, n);
    for (size_t i = 0; i < n; i++) {
        struct pt_store_edge e = edges[i];
        struct pt_store_edge *last = left ? &edges[left - 1] : NULL;

        if (last && last->dst_node == e.dst_node && last->dst_event == e.dst_event &&
            last->src_node == e.src_node) {
            e.by |= last->by;
            *last = e;
        } else {
            edges[left++] = e;
        }
    }
    return left;
}

/* ---- segments ---------------------------------------------------------------- */

static void destroy(struct graph *g)
{
    for (size_t i = 0; g->segments && i < g->nsegments; i++)
        free(g->segments[i].clock);
    free(g->segments);
    free(g->first);
    free(g->source);
    free(g->target);
    free(g->by_source);
    free(g->queue);
}

static int allocate(struct graph *g)
{
    size_t most = g->nnodes + g->nedges + 1;

    g->segments = calloc(most, sizeof(*g->segments));
    g->first = calloc(g->nnodes + 1, sizeof(*g->first));
    g->source = calloc(g->nedges + 1, sizeof(*g->source));
    g->target = calloc(g->nedges + 1, sizeof(*g->target));
    g->by_source = calloc(g->nedges + 1, sizeof(*g->by_source));
    g->queue = calloc(most, sizeof(*g->queue));
    return g->segments && g->first && g->source && g->target && g->by_source && g->queue ? 0 : -1;
}

static struct segment *add_segment(struct graph *g, size_t node, uint64_t begin, size_t edge)
{
    struct segment *s = &g->segments[g->nsegments++];

    s->node = node;
    s->begin = begin;
    s->in = edge;
    return s;
}

/* Cuts the nodes into segments; the edges are sorted by destination. */
static void cut_nodes(struct graph *g)
{
    size_t e = 0;

    for (size_t node = 0; node < g->nnodes; node++) {
        struct segment *s = add_segment(g, node, 0, e);

        g->first[node] = g->nsegments - 1;
        for (; e < g->nedges && g->edges[e].dst_node == node; e++) {
            if (s->begin != g->edges[e].dst_event)
                s = add_segment(g, node, g->edges[e].dst_event, e);
            s->nin++;
            g->target[e] = g->nsegments - 1;
        }
    }
    g->first[g->nnodes] = g->nsegments;
}

/* The segment that contains an event: the last that begins at or before it. */
static size_t find_segment(const struct graph *g, uint32_t node, uint64_t event)
{
    size_t lo = g->first[node], hi = g->first[node + 1];

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (g->segments[mid].begin <= event)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static void link_edges(struct graph *g)
{
    size_t out = 0;

    for (size_t e = 0; e < g->nedges; e++) {
        g->source[e] = find_segment(g, g->edges[e].src_node, g->edges[e].src_event);
        g->segments[g->source[e]].nout++;
    }
    for (size_t i = 0; i < g->nsegments; i++) {
        struct segment *s = &g->segments[i];
        int has_next = i + 1 < g->first[s->node + 1];

        s->out = out;
        out += s->nout;
        s->users = s->nout + has_next;
        s->waits = s->nin + (i > g->first[s->node]);
        s->nout = 0;
    }
    for (size_t e = 0; e < g->nedges; e++) {
        struct segment *s = &g->segments[g->source[e]];
        g->by_source[s->out + s->nout++] = e;
    }
}

static int build(struct graph *g, size_t nnodes, const struct pt_store_edge *edges, size_t n,
                 struct pt_err *err)
{
    *g = (struct graph){.nnodes = nnodes, .edges = edges, .nedges = n};
    if (allocate(g) < 0)
        return pt_err_set(err, "not enough memory for %zu edges", n);
    cut_nodes(g);
    link_edges(g);
    return 0;
}

/* ---- order ----------------------------------------------------------------- */

typedef int visit_fn(struct graph *g, size_t segment, void *arg);

static void release(struct graph *g, size_t segment, size_t *tail)
{
    if (--g->segments[segment].waits == 0)
        g->queue[(*tail)++] = segment;
}

/* Visits the segments in topological order.  Returns how many, or SIZE_MAX if a visit failed. */
static size_t visit_all(struct graph *g, visit_fn *visit, void *arg)
{
    size_t head = 0, tail = 0;

    for (size_t i = 0; i < g->nsegments; i++)
        if (g->segments[i].waits == 0)
            g->queue[tail++] = i;
    while (head < tail) {
        size_t i = g->queue[head++];
        struct segment *s = &g->segments[i];

        if (visit && visit(g, i, arg) < 0)
            return SIZE_MAX;
        for (size_t k = 0; k < s->nout; k++)
            release(g, g->target[g->by_source[s->out + k]], &tail);
        if (i + 1 < g->first[s->node + 1])
            release(g, i + 1, &tail);
    }
    return head;
}

/*
 * A predecessor that was not visited; each unvisited segment has one.  Sets *edge
 * to the edge that leads from it, SIZE_MAX for program order.
 */
static size_t unvisited_predecessor(const struct graph *g, size_t i, size_t *edge)
{
    const struct segment *s = &g->segments[i];

    *edge = SIZE_MAX;
    for (size_t e = s->in; e < s->in + s->nin; e++) {
        if (g->segments[g->source[e]].waits) {
            *edge = e;
            return g->source[e];
        }
    }
    return i - 1;
}

static size_t print_step(char *text, size_t used, size_t size, const struct graph *g, size_t edge)
{
    const struct pt_store_edge *e = &g->edges[edge];
    int n =
        snprintf(text + used, size - used, "%u:%llu waits for %u:%llu, ", e->dst_node,
                 (unsigned long long)e->dst_event, e->src_node, (unsigned long long)e->src_event);

    return used + n < size ? used + n : used;
}

/* Walks backwards from any unvisited segment until one comes twice: that is a cycle. */
static int name_cycle(const struct graph *g, struct pt_err *err)
{
    char text[300] = "";
    size_t used = 0, edge, at = 0, start;

    while (!g->segments[at].waits)
        at++;
    for (size_t k = 0; k < g->nsegments; k++)
        at = unvisited_predecessor(g, at, &edge);
    start = at;
    do {
        at = unvisited_predecessor(g, at, &edge);
        if (edge != SIZE_MAX)
            used = print_step(text, used, sizeof(text), g, edge);
    } while (at != start);
    text[used >= 2 ? used - 2 : 0] = '\0';
    return pt_err_set(err, "the dependencies have a cycle: %s", text);
}

int graph_check_acyclic(size_t nnodes, const struct pt_store_edge *edges, size_t n,
                        struct pt_err *err)
{
    struct graph g;
    int rc = build(&g, nnodes, edges, n, err);

    if (rc == 0 && visit_all(&g, NULL, NULL) < g.nsegments)
        rc = name_cycle(&g, err);
    destroy(&g);
    return rc;
}

/* ---- reduction ---------------------------------------------------------------- */

static void join(uint64_t *clock, const uint64_t *other, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (clock[i] < other[i])
            clock[i] = other[i];
}

static void use_clock(struct graph *g, size_t segment, uint64_t *into)
{
    struct segment *s = &g->segments[segment];

    join(into, s->clock, g->nnodes);
    if (--s->users == 0) {
        free(s->clock);
        s->clock = NULL;
    }
}

/*
 * Computes the segment's clock.  An edge is implied if what the other
 * predecessors know already covers its source.  Its own source's clock cannot:
 * there a node's own entry counts only the events before the segment.
 */
static int mark_implied(struct graph *g, size_t i, void *arg)
{
    unsigned char *implied = arg;
    struct segment *s = &g->segments[i];

    s->clock = calloc(g->nnodes, sizeof(*s->clock));
    if (!s->clock)
        return -1;
    for (size_t e = s->in; e < s->in + s->nin; e++)
        use_clock(g, g->source[e], s->clock);
    if (i > g->first[s->node])
        use_clock(g, i - 1, s->clock);
    for (size_t e = s->in; e < s->in + s->nin; e++)
        implied[e] = s->clock[g->edges[e].src_node] > g->edges[e].src_event;
    for (size_t e = s->in; e < s->in + s->nin; e++) {
        uint64_t *known = &s->clock[g->edges[e].src_node];
        if (*known < g->edges[e].src_event + 1)
            *known = g->edges[e].src_event + 1;
    }
    s->clock[s->node] = s->begin;
    if (!s->users) {
        free(s->clock);
        s->clock = NULL;
    }
    return 0;
}

int graph_reduce(size_t nnodes, struct pt_store_edge *edges, size_t *n, struct pt_err *err)
{
    struct graph g;
    unsigned char *implied = calloc(*n + 1, 1);
    int rc = build(&g, nnodes, edges, *n, err);
    size_t visited, left = 0;

    if (rc == 0 && !implied)
        rc = pt_err_set(err, "not enough memory for %zu edges", *n);
    if (rc == 0) {
        visited = visit_all(&g, mark_implied, implied);
        if (visited == SIZE_MAX)
            rc = pt_err_set(err, "not enough memory for the clocks of %zu nodes", nnodes);
        else if (visited < g.nsegments)
            rc = name_cycle(&g, err);
    }
    destroy(&g);
    for (size_t e = 0; e < *n && rc == 0; e++)
        if (!implied[e])
            edges[left++] = edges[e];
    if (rc == 0)
        *n = left;
    free(implied);
    return rc;
}
