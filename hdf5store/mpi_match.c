/*
 * Messages: of those with the same communicator, ends and tag, the k-th receive has taken
 * the k-th send (they do not overtake).  Collectives: the k-th of each member of a
 * communicator is one.  An edge leads from the last I/O before one has begun to the first
 * after the other has ended.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5store/graph.h"
#include "hdf5store/merge_mpi.h"

#define NOPRECEDE 2       /* Open MPI's MPI_MODE_NOPRECEDE */
#define UNITE     1000000 /* so many edges are looked through for those that others imply */

struct matcher {
    const struct merge_run *base, *run;
    struct mpi_events e;
    struct mpi_report *report;
    uint64_t rendezvous;
    struct pt_store_edge **edges;
    size_t *n, size, unite_at;
    size_t old;        /* edges that were there before */
    struct map last;   /* pair of nodes -> its last edge */
    struct map places; /* of the communicator that is being looked at */
    int failed;
};

/* ---- edges ----------------------------------------------------------------------------- */

/* Whether the last edge between the two says as much. */
static int is_known(struct matcher *m, const struct mpi_point *src, const struct mpi_point *dst)
{
    uint64_t key = (uint64_t)src->node << 32 | dst->node;
    const uint64_t *last = map_get(&m->last, key);

    if (last && *last >> 32 >= src->io && (*last & UINT32_MAX) <= dst->io)
        return 1;
    if (map_put(&m->last, key, (uint64_t)src->io << 32 | dst->io) < 0)
        m->failed = 1;
    return 0;
}

static void add_edge(struct matcher *m, const struct mpi_point *src, const struct mpi_point *dst)
{
    struct pt_store_edge edge, *more;

    if (src->io == MPI_NEVER || dst->io == MPI_NEVER || src->io == 0 || src->node == dst->node ||
        is_known(m, src, dst))
        return;
    if (!merge_make_edge(m->base, m->run, &m->run->nodes[src->node], src->io - 1,
                         &m->run->nodes[dst->node], dst->io, PT_BY_MPI, &edge))
        return;
    if (*m->n >= m->unite_at) {
        *m->n = m->old + graph_unite_edges(*m->edges + m->old, *m->n - m->old);
        m->unite_at = *m->n * 2 > UNITE ? *m->n * 2 : UNITE;
    }
    more = merge_grow(*m->edges, *m->n, &m->size, sizeof(*more), NULL);
    if (!more) {
        m->failed = 1;
        return;
    }
    *m->edges = more;
    more[(*m->n)++] = edge;
    m->report->edges++;
}

/* ---- messages ------------------------------------------------------------------------------ */

static int compare_streams(const struct mpi_message *a, const struct mpi_message *b)
{
    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    if (a->src != b->src)
        return a->src < b->src ? -1 : 1;
    if (a->dst != b->dst)
        return a->dst < b->dst ? -1 : 1;
    return a->tag < b->tag ? -1 : a->tag > b->tag;
}

static int compare_messages(const void *pa, const void *pb)
{
    const struct mpi_message *a = pa, *b = pb;
    int order = compare_streams(a, b);

    return order ? order : a->seq < b->seq ? -1 : a->seq > b->seq;
}

static size_t stream_end(const struct mpi_message *m, size_t first, size_t n)
{
    size_t end = first;

    while (end < n && compare_streams(&m[first], &m[end]) == 0)
        end++;
    return end;
}

/* Several threads at once: nobody knows who was first. */
static int is_doubtful(const struct mpi_message *m, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (m[i].post.node != m[i - 1].post.node && m[i].begin < m[i - 1].end)
            return 1;
    return 0;
}

static int waits_for_receive(const struct matcher *m, const struct mpi_message *send)
{
    if (send->flags & (MPI_SYNC | MPI_BUFFERED))
        return (send->flags & MPI_SYNC) != 0;
    return m->rendezvous && send->len > 0 && (uint64_t)send->len > m->rendezvous;
}

static void match_stream(struct matcher *m, const struct mpi_message *sends, size_t nsends,
                         const struct mpi_message *receives, size_t nreceives)
{
    size_t k = 0;

    if (is_doubtful(sends, nsends) || is_doubtful(receives, nreceives)) {
        m->report->doubtful += nsends;
        return;
    }
    for (size_t i = 0; i < nreceives; i++) {
        const struct mpi_message *r = &receives[i], *s = &sends[k];
        if (k == nsends) {
            m->report->receives += !r->peeks;
            continue;
        }
        add_edge(m, &s->post, &r->done);
        if (r->peeks)
            continue;
        if (waits_for_receive(m, s))
            add_edge(m, &r->post, &s->done);
        k++;
    }
    m->report->sends += nsends - k;
}

/* Receives that took nothing, or of which nobody knows what. */
static void drop_open(struct matcher *m)
{
    size_t left = 0;

    for (size_t i = 0; i < m->e.nreceives; i++) {
        const struct mpi_message *r = &m->e.receives[i];
        if (r->src >= 0 && r->tag != PT_MPI_ANY)
            m->e.receives[left++] = *r;
        else if (r->src != PT_MPI_CANCELLED)
            m->report->open_receives++;
    }
    m->e.nreceives = left;
}

static void match_messages(struct matcher *m)
{
    struct mpi_events *e = &m->e;
    size_t s = 0, r = 0;

    drop_open(m);
    if (e->nsends)
        qsort(e->sends, e->nsends, sizeof(*e->sends), compare_messages);
    if (e->nreceives)
        qsort(e->receives, e->nreceives, sizeof(*e->receives), compare_messages);
    while (s < e->nsends || r < e->nreceives) {
        int order = s == e->nsends      ? 1
                    : r == e->nreceives ? -1
                                        : compare_streams(&e->sends[s], &e->receives[r]);
        size_t s_end = order > 0 ? s : stream_end(e->sends, s, e->nsends);
        size_t r_end = order < 0 ? r : stream_end(e->receives, r, e->nreceives);

        match_stream(m, e->sends + s, s_end - s, e->receives + r, r_end - r);
        s = s_end;
        r = r_end;
    }
}

/* ---- collectives ------------------------------------------------------------------------ */

static int compare_collectives(const void *pa, const void *pb)
{
    const struct mpi_collective *a = pa, *b = pb;

    if (a->comm != b->comm)
        return a->comm < b->comm ? -1 : 1;
    if (a->turn != b->turn)
        return a->turn < b->turn ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* A member of the group that is being looked at. */
struct member {
    const struct mpi_collective *c;
    int side;
    size_t place;
};

static int is_root(const struct mpi_comm *comm, const struct member *m)
{
    return comm->inter ? m->c->peer == PT_MPI_ROOT : (size_t)m->c->peer == m->place;
}

/* Must `a` have begun before `b` can end? */
static int is_before(const struct mpi_comm *comm, const struct member *a, const struct member *b)
{
    if (comm->inter && a->side == b->side)
        return 0;
    switch ((enum mpi_order)b->c->call->order) {
    case MPI_ORDER_BARRIER:
        return 1;
    case MPI_ORDER_FENCE:
        return !(b->c->len & NOPRECEDE);
    case MPI_ORDER_ALL:
        return b->c->len > 0;
    case MPI_ORDER_EACH:
        return b->c->len >= (int64_t)comm->n[a->side];
    case MPI_ORDER_FROM_ROOT:
        return is_root(comm, a) && b->c->len > 0 && b->c->peer != PT_MPI_PROC_NULL;
    case MPI_ORDER_TO_ROOT:
        return is_root(comm, b) && a->c->len > 0 && a->c->peer != PT_MPI_PROC_NULL;
    case MPI_ORDER_LOWER:
        return a->place < b->place && b->c->len > 0;
    default:
        return 0;
    }
}

/*
 * Whether a member has done no I/O since its collective before, which had the same order:
 * then all its edges are there already.  Programs make thousands of them in a row.
 */
static int is_idle(const struct mpi_collective *now, const struct mpi_collective *before)
{
    return before && before->rank == now->rank && before->post.node == now->post.node &&
           before->post.io == now->post.io;
}

/* All-to-all, and everybody was there and has ended: what `is_idle` relies on. */
static int orders_all(const struct mpi_comm *comm, const struct mpi_collective *c, size_t n)
{
    if (comm->inter || n != comm->n[0])
        return 0;
    for (size_t i = 0; i < n; i++) {
        enum mpi_order order = c[i].call->order;
        if (c[i].done.io == MPI_NEVER ||
            !(order == MPI_ORDER_BARRIER || (order == MPI_ORDER_ALL && c[i].len > 0)))
            return 0;
    }
    return 1;
}

static void order_group(struct matcher *m, const struct mpi_comm *comm, struct member *members,
                        const struct mpi_collective *c, size_t n, const struct mpi_collective *past)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t *place = map_get(&m->places, (uint64_t)(uint32_t)c[i].rank);
        members[i] = (struct member){&c[i], place && *place >> 32, place ? (uint32_t)*place : 0};
    }
    for (size_t a = 0; a < n; a++) {
        if (members[a].c->post.io == 0 || is_idle(&c[a], past ? &past[a] : NULL))
            continue;
        for (size_t b = 0; b < n; b++)
            if (a != b && is_before(comm, &members[a], &members[b]))
                add_edge(m, &members[a].c->post, &members[b].c->done);
    }
}

/* A blocking call and one that is only begun are never one collective. */
static int is_mixed(const struct mpi_collective *c, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (c[i].call != c[0].call || c[i].rank == c[i - 1].rank)
            return 1;
    return 0;
}

static size_t turn_end(const struct mpi_events *e, size_t first)
{
    const struct mpi_collective *c = e->collectives;
    size_t end = first;

    while (end < e->ncollectives && c[end].comm == c[first].comm && c[end].turn == c[first].turn)
        end++;
    return end;
}

/* Where each rank is in the communicator: the group in the high half, the place in the low. */
static int find_places(struct matcher *m, const struct mpi_comm *comm)
{
    map_free(&m->places);
    for (int side = 0; side < 1 + comm->inter; side++)
        for (size_t i = 0; i < comm->n[side]; i++)
            if (map_put(&m->places, (uint64_t)(uint32_t)comm->members[side][i],
                        (uint64_t)side << 32 | i) < 0) {
                m->failed = 1;
                return -1;
            }
    return 0;
}

/* All of one communicator, which begin at `first`; returns where those of the next do. */
static size_t match_comm(struct matcher *m, size_t first, struct member *members)
{
    const struct mpi_collective *c = m->e.collectives, *past = NULL;
    const struct mpi_comm *comm = &m->e.comms.comms[c[first].comm];
    size_t i = first;
    int mixed = 0;

    if (find_places(m, comm) < 0)
        return m->e.ncollectives;
    while (i < m->e.ncollectives && c[i].comm == c[first].comm) {
        size_t end = turn_end(&m->e, i);

        mixed = mixed || is_mixed(c + i, end - i);
        if (!mixed) {
            order_group(m, comm, members, c + i, end - i, past);
            past = orders_all(comm, c + i, end - i) ? c + i : NULL;
        }
        i = end;
    }
    m->report->mixed += mixed != 0;
    return i;
}

static int match_collectives(struct matcher *m, size_t nprocesses, struct pt_err *err)
{
    struct mpi_events *e = &m->e;
    struct member *members = calloc(nprocesses + 1, sizeof(*members));

    if (!members)
        return pt_err_set(err, "not enough memory");
    if (e->ncollectives)
        qsort(e->collectives, e->ncollectives, sizeof(*e->collectives), compare_collectives);
    for (size_t i = 0; i < e->ncollectives;)
        i = match_comm(m, i, members);
    free(members);
    return 0;
}

/* ---- processes ------------------------------------------------------------------------------ */

static size_t process_end(const struct merge_run *run, size_t first)
{
    const struct pt_name *name = &run->nodes[first].name;
    size_t end = first;

    while (end < run->nnodes && run->nodes[end].name.rank == name->rank &&
           run->nodes[end].name.process == name->process)
        end++;
    return end;
}

/* Notes who is there, of which world; 1 if that rank was there before. */
static int is_twice(struct map *seen, const struct mpi_known *known, struct pt_err *err)
{
    uint64_t key = (uint64_t)known->world << 32 | (uint32_t)known->rank;

    if (map_get(seen, key))
        return 1;
    return map_put(seen, key, 1) < 0 ? pt_err_set(err, "not enough memory") : 0;
}

/* Which worlds there are, and of how many of their ranks nothing is known. */
static void count_missing(struct matcher *m, const struct map *seen, const struct map *worlds)
{
    for (size_t w = 0; w < m->e.comms.n; w++)
        for (size_t i = 0; map_get(worlds, w) && i < m->e.comms.comms[w].n[0]; i++)
            m->report->missing_ranks += !map_get(seen, (uint64_t)w << 32 | i);
}

static int read_processes(struct matcher *m, size_t *n, struct pt_err *err)
{
    struct map seen = {0}, worlds = {0};
    int rc = 0;

    for (size_t i = 0; i < m->run->nnodes && rc == 0;) {
        struct mpi_known known = {.rank = -1};
        size_t end = process_end(m->run, i);

        rc = mpi_read_process(&m->e, m->run, i, end, &known, m->report, err);
        if (rc == 0 && known.rank >= 0) {
            int twice = is_twice(&seen, &known, err);
            m->report->twice += twice > 0;
            rc = twice < 0 || map_put(&worlds, known.world, 1) < 0 ? -1 : 0;
            ++*n;
        }
        map_free(&known.comms);
        map_free(&known.counts);
        i = end;
    }
    if (rc == 0)
        count_missing(m, &seen, &worlds);
    map_free(&seen);
    map_free(&worlds);
    return rc;
}

static void free_events(struct mpi_events *e)
{
    free(e->sends);
    free(e->receives);
    free(e->collectives);
    mpi_comms_free(&e->comms);
}

int mpi_collect_edges(const struct merge_run *base, const struct merge_run *run,
                      uint64_t rendezvous, struct pt_store_edge **edges, size_t *n,
                      struct mpi_report *report, struct pt_err *err)
{
    struct matcher m = {
        .base = base,
        .run = run,
        .report = report,
        .rendezvous = rendezvous,
        .edges = edges,
        .n = n,
        .old = *n,
        .size = *n, /* or more */
        .unite_at = *n + UNITE,
    };
    size_t nprocesses = 0;
    int rc = read_processes(&m, &nprocesses, err);

    /*
     * The same rank twice in one world: they cannot be told apart.  Threads that were not
     * traced: nobody knows how many messages they have sent.
     */
    if (rc == 0 && !report->twice && !run->untraced_threads) {
        match_messages(&m);
        rc = match_collectives(&m, nprocesses, err);
    }
    if (rc == 0 && m.failed)
        rc = pt_err_set(err, "not enough memory");
    map_free(&m.last);
    map_free(&m.places);
    free_events(&m.e);
    return rc;
}
