/*
 * Barriers: cliques of events that wait for each other's predecessors.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5store/graph.h"

struct finder {
    struct pt_store_edge *edges; /* sorted by dst, src */
    size_t n;
    unsigned char *used; /* an edge belongs to a barrier */
    unsigned char *busy; /* ... is the first of an event that is in a barrier */
    struct graph_barriers *out;
    size_t nmembers;
};

/* The row of the first edge to that event from that node or a later one, or behind. */
static size_t lower_bound(const struct finder *f, const struct pt_store_member *to, uint32_t src)
{
    size_t lo = 0, hi = f->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const struct pt_store_edge *e = &f->edges[mid];
        int before = e->dst_node != to->node     ? e->dst_node < to->node
                     : e->dst_event != to->event ? e->dst_event < to->event
                                                 : e->src_node < src;
        if (before)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static size_t first_edge(const struct finder *f, const struct pt_store_member *to)
{
    return lower_bound(f, to, 0);
}

static int leads_to(const struct finder *f, size_t row, const struct pt_store_member *m)
{
    return row < f->n && f->edges[row].dst_node == m->node && f->edges[row].dst_event == m->event;
}

/* The edge from the event before `from` to `to`, SIZE_MAX if there is none. */
static size_t find_edge(const struct finder *f, const struct pt_store_member *from,
                        const struct pt_store_member *to)
{
    size_t i = lower_bound(f, to, from->node);

    if (!leads_to(f, i, to) || f->edges[i].src_node != from->node ||
        f->edges[i].src_event + 1 != from->event)
        return SIZE_MAX;
    return i;
}

static int is_busy(const struct finder *f, const struct pt_store_member *m)
{
    size_t i = first_edge(f, m);

    return !leads_to(f, i, m) || f->busy[i];
}

static int waits_for_all(const struct finder *f, const struct pt_store_member *m,
                         const struct pt_store_member *group, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (find_edge(f, m, &group[i]) == SIZE_MAX || find_edge(f, &group[i], m) == SIZE_MAX)
            return 0;
    return 1;
}

/* The group around the event whose first edge is `row`: 1 or more members. */
static size_t grow_group(const struct finder *f, size_t row, struct pt_store_member *group)
{
    struct pt_store_member first = {f->edges[row].dst_node, f->edges[row].dst_event};
    size_t n = 1;

    group[0] = first;
    for (size_t i = row; leads_to(f, i, &first); i++) {
        struct pt_store_member m = {f->edges[i].src_node, f->edges[i].src_event + 1};
        if (!is_busy(f, &m) && waits_for_all(f, &m, group, n))
            group[n++] = m;
    }
    return n;
}

static int by_node(const void *pa, const void *pb)
{
    const struct pt_store_member *a = pa, *b = pb;

    return a->node < b->node ? -1 : a->node > b->node;
}

/*
 * Takes the edges between the members, and the members, out of the game; returns who has
 * found the edges.
 */
static uint8_t claim(struct finder *f, const struct pt_store_member *group, size_t n)
{
    uint8_t by = 0;

    for (size_t i = 0; i < n; i++) {
        f->busy[first_edge(f, &group[i])] = 1;
        for (size_t k = 0; k < n; k++)
            if (i != k) {
                size_t edge = find_edge(f, &group[i], &group[k]);
                f->used[edge] = 1;
                by |= f->edges[edge].by;
            }
    }
    return by;
}

static void keep(struct finder *f, size_t n)
{
    struct graph_barriers *out = f->out;
    struct pt_store_member *group = out->members + f->nmembers;

    qsort(group, n, sizeof(*group), by_node);
    out->barriers[out->nbarriers++] = (struct pt_store_barrier){n, group, claim(f, group, n)};
    f->nmembers += n;
}

static void find_all(struct finder *f, size_t min)
{
    for (size_t row = 0; row < f->n; row++) {
        const struct pt_store_edge *e = &f->edges[row];
        int is_first = row == 0 || e[-1].dst_node != e->dst_node || e[-1].dst_event != e->dst_event;

        if (is_first && !f->busy[row]) {
            size_t n = grow_group(f, row, f->out->members + f->nmembers);
            if (n >= min)
                keep(f, n);
        }
    }
}

int graph_find_barriers(struct pt_store_edge *edges, size_t *n, size_t min,
                        struct graph_barriers *out, struct pt_err *err)
{
    struct finder f = {.edges = edges, .n = *n, .out = out};
    size_t left = 0;

    /* An event is in one group at most and has an edge of its own; one more while growing. */
    *out = (struct graph_barriers){0};
    out->members = calloc(2 * *n + 2, sizeof(*out->members));
    out->barriers = calloc(*n + 1, sizeof(*out->barriers));
    f.used = calloc(*n + 1, 1);
    f.busy = calloc(*n + 1, 1);
    if (!out->members || !out->barriers || !f.used || !f.busy) {
        free(f.used);
        free(f.busy);
        graph_free_barriers(out);
        return pt_err_set(err, "not enough memory for %zu edges", *n);
    }
    graph_sort_edges(edges, *n);
    find_all(&f, min < 2 ? 2 : min);
    for (size_t i = 0; i < *n; i++)
        if (!f.used[i])
            edges[left++] = edges[i];
    *n = left;
    free(f.used);
    free(f.busy);
    return 0;
}

void graph_free_barriers(struct graph_barriers *b)
{
    free(b->members);
    free(b->barriers);
    *b = (struct graph_barriers){0};
}
