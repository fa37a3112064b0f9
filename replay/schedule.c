#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/schedule.h"

struct builder {
    struct schedule *s;
    const struct pt_store *store;
    int rank, nranks;
    size_t nedges;
    struct pt_store_edge *edges; /* by channel, then by event; only those that matter here */
};

int schedule_owner(const struct pt_store *store, size_t node, int nranks)
{
    int rank = pt_store_node(store, node)->name.rank % nranks;

    return rank < 0 ? rank + nranks : rank;
}

static int node_is_mine(const struct builder *b, size_t node)
{
    return schedule_owner(b->store, node, b->nranks) == b->rank;
}

static int check_edge(const struct pt_store *store, const struct pt_store_edge *e)
{
    size_t n = pt_store_nnodes(store);

    return e->src_node < n && e->dst_node < n && e->src_node != e->dst_node &&
           e->src_event < pt_store_node(store, e->src_node)->count &&
           e->dst_event < pt_store_node(store, e->dst_node)->count;
}

/* Later sources first where the destination is the same: the others are implied. */
static int compare_edges(const void *a, const void *b)
{
    const struct pt_store_edge *x = a, *y = b;

    if (x->src_node != y->src_node)
        return x->src_node < y->src_node ? -1 : 1;
    if (x->dst_node != y->dst_node)
        return x->dst_node < y->dst_node ? -1 : 1;
    if (x->dst_event != y->dst_event)
        return x->dst_event < y->dst_event ? -1 : 1;
    return x->src_event > y->src_event ? -1 : x->src_event < y->src_event;
}

static int same_channel(const struct pt_store_edge *a, const struct pt_store_edge *b)
{
    return a->src_node == b->src_node && a->dst_node == b->dst_node;
}

/* Keeps, in each channel, the edges whose source is later than all before. */
static void drop_implied(struct builder *b)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->nedges; i++) {
        const struct pt_store_edge *last = kept ? &b->edges[kept - 1] : NULL;

        if (last && same_channel(last, &b->edges[i]) && b->edges[i].src_event <= last->src_event)
            continue;
        b->edges[kept++] = b->edges[i];
    }
    b->nedges = kept;
}

static int collect_edges(struct builder *b, struct pt_err *err)
{
    const struct pt_store_edge *all = pt_store_edges(b->store);
    size_t n = pt_store_nedges(b->store);

    b->edges = malloc((n + 1) * sizeof(*b->edges));
    if (!b->edges)
        return pt_err_errno(err, "cannot plan the dependencies");
    for (size_t i = 0; i < n; i++) {
        if (!check_edge(b->store, &all[i]))
            return pt_err_set(err, "cannot replay edge %zu: it names an event that is not there",
                              i);
        if (node_is_mine(b, all[i].src_node) || node_is_mine(b, all[i].dst_node))
            b->edges[b->nedges++] = all[i];
    }
    qsort(b->edges, b->nedges, sizeof(*b->edges), compare_edges);
    drop_implied(b);
    return 0;
}

static int compare_rank_pairs(const void *a, const void *b)
{
    const struct sched_channel *x = a, *y = b;

    if (x->src_rank != y->src_rank)
        return x->src_rank < y->src_rank ? -1 : 1;
    if (x->dst_rank != y->dst_rank)
        return x->dst_rank < y->dst_rank ? -1 : 1;
    if (x->src_node != y->src_node)
        return x->src_node < y->src_node ? -1 : 1;
    return x->dst_node < y->dst_node ? -1 : x->dst_node > y->dst_node;
}

/* Both ends see the same channels between them, so they number them alike. */
static void number_channels(struct sched_channel *c, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (c[i].src_rank == c[i - 1].src_rank && c[i].dst_rank == c[i - 1].dst_rank)
            c[i].number = c[i - 1].number + 1;
}

static int collect_channels(struct builder *b, struct pt_err *err)
{
    struct schedule *s = b->s;

    s->channels = calloc(b->nedges + 1, sizeof(*s->channels));
    if (!s->channels)
        return pt_err_errno(err, "cannot plan the dependencies");
    for (size_t i = 0; i < b->nedges; i++) {
        const struct pt_store_edge *e = &b->edges[i];

        if (i > 0 && same_channel(e, e - 1))
            continue;
        s->channels[s->nchannels++] = (struct sched_channel){
            .src_node = e->src_node,
            .dst_node = e->dst_node,
            .src_rank = schedule_owner(b->store, e->src_node, b->nranks),
            .dst_rank = schedule_owner(b->store, e->dst_node, b->nranks),
        };
    }
    qsort(s->channels, s->nchannels, sizeof(*s->channels), compare_rank_pairs);
    number_channels(s->channels, s->nchannels);
    return 0;
}

static uint32_t find_channel(const struct builder *b, const struct pt_store_edge *e)
{
    struct sched_channel key = {
        .src_node = e->src_node,
        .dst_node = e->dst_node,
        .src_rank = schedule_owner(b->store, e->src_node, b->nranks),
        .dst_rank = schedule_owner(b->store, e->dst_node, b->nranks),
    };
    const struct sched_channel *c =
        bsearch(&key, b->s->channels, b->s->nchannels, sizeof(*b->s->channels), compare_rank_pairs);

    return (uint32_t)(c - b->s->channels);
}

static int check_barrier(const struct pt_store *store, const struct pt_store_barrier *barrier)
{
    for (size_t i = 0; i < barrier->nmembers; i++) {
        const struct pt_store_member *m = &barrier->members[i];

        if (m->node >= pt_store_nnodes(store) || m->event > pt_store_node(store, m->node)->count ||
            (i > 0 && m->node <= m[-1].node))
            return 0;
    }
    return 1;
}

static int collect_barriers(struct builder *b, struct pt_err *err)
{
    struct schedule *s = b->s;
    size_t n = pt_store_nbarriers(b->store);

    s->barriers = calloc(n + 1, sizeof(*s->barriers));
    if (!s->barriers)
        return pt_err_errno(err, "cannot plan the barriers");
    for (size_t i = 0; i < n; i++) {
        struct sched_barrier *mine = &s->barriers[s->nbarriers];

        *mine = (struct sched_barrier){.id = i, .store = pt_store_barrier(b->store, i)};
        if (!check_barrier(b->store, mine->store))
            return pt_err_set(err, "cannot replay barrier %zu: its members are not there", i);
        for (size_t m = 0; m < mine->store->nmembers; m++)
            mine->nlocal += (size_t)node_is_mine(b, mine->store->members[m].node);
        s->nbarriers += mine->nlocal > 0;
    }
    return 0;
}

/* Calls `act` for everything that a node of this rank does. */
static void each_act(struct builder *b,
                     void (*act)(struct sched_acts *acts, uint64_t event, uint32_t what))
{
    struct sched_node *nodes = b->s->nodes;

    for (size_t i = 0; i < b->nedges; i++) {
        const struct pt_store_edge *e = &b->edges[i];
        uint32_t channel = find_channel(b, e);

        if (node_is_mine(b, e->src_node))
            act(&nodes[e->src_node].signals, e->src_event + 1, channel);
        if (node_is_mine(b, e->dst_node))
            act(&nodes[e->dst_node].waits, e->dst_event, channel);
    }
    for (size_t i = 0; i < b->s->nbarriers; i++) {
        const struct pt_store_barrier *barrier = b->s->barriers[i].store;

        for (size_t m = 0; m < barrier->nmembers; m++)
            if (node_is_mine(b, barrier->members[m].node))
                act(&nodes[barrier->members[m].node].barriers, barrier->members[m].event,
                    (uint32_t)i);
    }
}

static void count_act(struct sched_acts *acts, uint64_t event, uint32_t what)
{
    (void)event;
    (void)what;
    acts->n++;
}

static void add_act(struct sched_acts *acts, uint64_t event, uint32_t what)
{
    acts->acts[acts->n++] = (struct sched_act){event, what};
}

static int compare_acts(const void *a, const void *b)
{
    const struct sched_act *x = a, *y = b;

    if (x->event != y->event)
        return x->event < y->event ? -1 : 1;
    return x->what < y->what ? -1 : x->what > y->what;
}

/* Turns a count into an empty list with room for as many. */
static struct sched_act *give_room(struct sched_acts *acts, struct sched_act *room)
{
    struct sched_act *next = room + acts->n;

    acts->acts = room;
    acts->n = 0;
    return next;
}

static void sort_acts(struct sched_acts *acts)
{
    if (acts->n > 1)
        qsort(acts->acts, acts->n, sizeof(*acts->acts), compare_acts);
}

static int collect_acts(struct builder *b, struct pt_err *err)
{
    struct schedule *s = b->s;
    struct sched_act *room;
    size_t total = 0;

    s->nnodes = pt_store_nnodes(b->store);
    s->nodes = calloc(s->nnodes + 1, sizeof(*s->nodes));
    if (!s->nodes)
        return pt_err_errno(err, "cannot plan the nodes");
    each_act(b, count_act);
    for (size_t i = 0; i < s->nnodes; i++)
        total += s->nodes[i].signals.n + s->nodes[i].waits.n + s->nodes[i].barriers.n;
    s->memory = room = calloc(total + 1, sizeof(*room));
    if (!room)
        return pt_err_errno(err, "cannot plan the nodes");
    for (size_t i = 0; i < s->nnodes; i++) {
        room = give_room(&s->nodes[i].signals, room);
        room = give_room(&s->nodes[i].waits, room);
        room = give_room(&s->nodes[i].barriers, room);
    }
    each_act(b, add_act);
    for (size_t i = 0; i < s->nnodes; i++) {
        sort_acts(&s->nodes[i].signals);
        sort_acts(&s->nodes[i].waits);
        sort_acts(&s->nodes[i].barriers);
    }
    return 0;
}

int schedule_create(struct schedule *s, const struct pt_store *store, int rank, int nranks,
                    struct pt_err *err)
{
    struct builder b = {.s = s, .store = store, .rank = rank, .nranks = nranks};
    int rc = -1;

    memset(s, 0, sizeof(*s));
    if (collect_edges(&b, err) == 0 && collect_channels(&b, err) == 0 &&
        collect_barriers(&b, err) == 0 && collect_acts(&b, err) == 0)
        rc = 0;
    free(b.edges);
    if (rc < 0)
        schedule_destroy(s);
    return rc;
}

void schedule_destroy(struct schedule *s)
{
    int saved = errno;

    free(s->channels);
    free(s->barriers);
    free(s->nodes);
    free(s->memory);
    memset(s, 0, sizeof(*s));
    errno = saved;
}
