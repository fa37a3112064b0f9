/*
 * One process' calls, in the order in which its threads made them: what was posted, where,
 * and where it was complete.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5store/merge_mpi.h"

/* A record and who made it. */
struct step {
    const struct mpi_record *r;
    uint64_t time;
    uint32_t node;
    uint32_t index;
};

/* What a request stands for, in one word: a kind and a row of the kind's table. */
enum kind { KIND_NONE, KIND_SEND, KIND_RECEIVE, KIND_COLLECTIVE };

#define THING(kind, row) ((uint64_t)(kind) << 48 | (row))
#define KIND_OF(thing)   ((enum kind)((thing) >> 48))
#define ROW_OF(thing)    ((size_t)((thing) & (((uint64_t)1 << 48) - 1)))

#define EPOCH_TAG INT32_MIN /* of the messages that stand for the epochs of windows */

struct reader {
    struct mpi_events *e;
    const struct merge_run *run;
    struct mpi_known *known;
    struct mpi_report *report;
    struct step *steps;
    size_t nsteps;
    size_t number;     /* of the process */
    struct map active; /* request -> THING */
    struct map inits;  /* persistent request -> step that made it */
    struct map turns;  /* communicator -> collectives so far */
    struct map epochs; /* window -> role that a group is for */
    struct map groups; /* window and role -> group's text */
    uint32_t seq;
};

static int no_memory(struct pt_err *err)
{
    return pt_err_set(err, "not enough memory");
}

/* ---- the steps in order ------------------------------------------------------------------ */

static int compare_steps(const void *pa, const void *pb)
{
    const struct step *a = pa, *b = pb;

    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* A call is in its place when it begins; what it completes, when it ends. */
static uint64_t time_of(const struct mpi_record *r)
{
    return r->call->role == MPI_ROLE_DONE ? r->end : r->begin;
}

/* When the first event of the process was lost: from then on nothing can be counted. */
static uint64_t time_of_loss(const struct merge_run *run, size_t first, size_t end)
{
    uint64_t loss = UINT64_MAX;

    for (size_t i = first; i < end; i++) {
        const struct merge_node *node = &run->nodes[i];
        uint64_t last = 0;

        if (!node->lost)
            continue;
        if (node->mpi_valid > 0 && node->mpi_valid <= node->nmpi)
            last = node->mpi[node->mpi_valid - 1].end + 1;
        if (last < loss)
            loss = last;
    }
    return loss;
}

static int sort_steps(struct reader *rd, size_t first, size_t end, struct pt_err *err)
{
    uint64_t loss = time_of_loss(rd->run, first, end);
    size_t total = 0;

    for (size_t i = first; i < end; i++)
        total += rd->run->nodes[i].nmpi;
    rd->steps = calloc(total + 1, sizeof(*rd->steps));
    if (!rd->steps)
        return no_memory(err);
    for (size_t i = first; i < end; i++) {
        const struct merge_node *node = &rd->run->nodes[i];
        for (size_t k = 0; k < node->nmpi; k++) {
            const struct mpi_record *r = &node->mpi[k];
            if (time_of(r) >= loss)
                rd->report->cut++;
            else
                rd->steps[rd->nsteps++] = (struct step){r, time_of(r), (uint32_t)i, (uint32_t)k};
        }
    }
    qsort(rd->steps, rd->nsteps, sizeof(*rd->steps), compare_steps);
    return 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

static struct mpi_point point_of(const struct step *s)
{
    return (struct mpi_point){s->node, s->r->io};
}

static const struct mpi_point never = {0, MPI_NEVER};

/* Adds a send or receive; its row, SIZE_MAX without memory. */
static size_t add_message(struct reader *rd, enum kind kind, const struct mpi_message *m)
{
    struct mpi_events *e = rd->e;
    struct mpi_message **table = kind == KIND_SEND ? &e->sends : &e->receives;
    size_t *n = kind == KIND_SEND ? &e->nsends : &e->nreceives;
    size_t *size = kind == KIND_SEND ? &e->sends_size : &e->receives_size;
    struct mpi_message *more = merge_grow(*table, *n, size, sizeof(*more), NULL);

    if (!more)
        return SIZE_MAX;
    *table = more;
    more[*n] = *m;
    more[*n].seq = rd->seq++;
    return (*n)++;
}

/* Posts what `r` describes, at the step `s`: the same, unless the request is persistent. */
static int post_message(struct reader *rd, enum kind kind, const struct step *s,
                        const struct mpi_record *r, int32_t peer, int32_t tag, struct pt_err *err)
{
    uint32_t comm = mpi_comms_find(rd->known, r->comm);
    int begun = (r->call->flags & (MPI_BEGUN | MPI_PERSISTENT)) != 0;
    struct mpi_message m = {
        .comm = comm,
        .src = rd->known->rank,
        .dst = rd->known->rank,
        .tag = tag,
        .flags = r->call->flags,
        .peeks = r->call->role == MPI_ROLE_PROBE,
        .len = r->len,
        .post = point_of(s),
        .done = begun ? never : point_of(s),
        .begin = s->r->begin,
        .end = s->r->end,
    };
    int32_t partner;
    size_t row;

    if (peer == PT_MPI_PROC_NULL)
        return 0;
    if (comm == MPI_NO_COMM) {
        rd->report->unknown++;
        return 0;
    }
    partner = mpi_comm_partner(&rd->e->comms.comms[comm], rd->known->rank, peer);
    *(kind == KIND_SEND ? &m.dst : &m.src) = partner;
    if (r->call->role == MPI_ROLE_MPROBE)
        m.post = never;
    row = add_message(rd, kind, &m);
    if (row == SIZE_MAX)
        return no_memory(err);
    if ((begun || r->call->role == MPI_ROLE_MPROBE) && r->req &&
        map_put(&rd->active, r->req, THING(kind, row)) < 0)
        return no_memory(err);
    return 0;
}

static int post(struct reader *rd, const struct step *s, const struct mpi_record *r,
                struct pt_err *err)
{
    switch (r->call->role) {
    case MPI_ROLE_SEND:
        return post_message(rd, KIND_SEND, s, r, r->peer, r->tag, err);
    case MPI_ROLE_SENDRECV:
        if (post_message(rd, KIND_SEND, s, r, r->peer, r->tag, err) < 0)
            return -1;
        return post_message(rd, KIND_RECEIVE, s, r, r->peer2, r->tag2, err);
    default:
        return post_message(rd, KIND_RECEIVE, s, r, r->peer, r->tag, err);
    }
}

/* ---- requests --------------------------------------------------------------------------- */

static int start(struct reader *rd, const struct step *s, struct pt_err *err)
{
    const uint64_t *init = map_get(&rd->inits, s->r->req);

    return init ? post(rd, s, rd->steps[*init].r, err) : 0;
}

/* The source and tag that a wildcard has matched, or that nothing was. */
static void resolve(struct reader *rd, struct mpi_message *m, const struct mpi_record *r)
{
    if (r->peer == PT_MPI_CANCELLED) {
        m->src = PT_MPI_CANCELLED;
    } else if (r->peer != PT_MPI_AS_ASKED) {
        m->src = mpi_comm_partner(&rd->e->comms.comms[m->comm], rd->known->rank, r->peer);
        m->tag = r->tag;
    }
}

static void complete(struct reader *rd, const struct step *s)
{
    uint64_t *thing = map_get(&rd->active, s->r->req);
    size_t row = thing ? ROW_OF(*thing) : 0;

    switch (thing ? KIND_OF(*thing) : KIND_NONE) {
    case KIND_SEND:
        rd->e->sends[row].done = point_of(s);
        break;
    case KIND_RECEIVE:
        if (rd->e->receives[row].done.io == MPI_NEVER)
            rd->e->receives[row].done = point_of(s);
        resolve(rd, &rd->e->receives[row], s->r);
        break;
    case KIND_COLLECTIVE:
        rd->e->collectives[row].done = point_of(s);
        break;
    default:
        return;
    }
    *thing = 0;
}

/* The message that a probe took is received: that is when its sender may go on. */
static void receive_probed(struct reader *rd, const struct step *s)
{
    const uint64_t *thing = map_get(&rd->active, s->r->req);

    if (thing && KIND_OF(*thing) == KIND_RECEIVE)
        rd->e->receives[ROW_OF(*thing)].post = point_of(s);
}

/* ---- collectives ------------------------------------------------------------------------ */

static int add_collective(struct reader *rd, const struct step *s, struct pt_err *err)
{
    const struct mpi_record *r = s->r;
    struct mpi_events *e = rd->e;
    uint32_t comm = mpi_comms_find(rd->known, r->comm);
    struct mpi_collective *more;
    uint64_t *turn;

    if (comm == MPI_NO_COMM) {
        rd->report->unknown++;
        return 0;
    }
    more = merge_grow(e->collectives, e->ncollectives, &e->collectives_size, sizeof(*more), err);
    if (!more)
        return -1;
    e->collectives = more;
    turn = map_get(&rd->turns, comm);
    more[e->ncollectives] = (struct mpi_collective){
        .comm = comm,
        .turn = turn ? (uint32_t)*turn : 0,
        .rank = rd->known->rank,
        .peer = r->peer,
        .len = r->len,
        .call = r->call,
        .post = point_of(s),
        .done = r->call->flags & MPI_BEGUN ? never : point_of(s),
    };
    if (map_put(&rd->turns, comm, turn ? *turn + 1 : 1) < 0)
        return no_memory(err);
    if (r->call->flags & MPI_BEGUN && r->req &&
        map_put(&rd->active, r->req, THING(KIND_COLLECTIVE, e->ncollectives)) < 0)
        return no_memory(err);
    e->ncollectives++;
    return 0;
}

/* ---- epochs of windows: the end of an access is a message to the end of the exposure -------- */

static uint64_t group_key(const struct mpi_record *r, uint64_t role)
{
    return (uint64_t)(uint32_t)r->comm << 8 | role;
}

static int set_group(struct reader *rd, const struct mpi_record *r, struct pt_err *err)
{
    const uint64_t *role = map_get(&rd->epochs, (uint64_t)(uint32_t)r->comm);

    if (role && map_put(&rd->groups, group_key(r, *role), r->text) < 0)
        return no_memory(err);
    return 0;
}

static int end_epoch(struct reader *rd, const struct step *s, struct pt_err *err)
{
    int accessed = s->r->call->role == MPI_ROLE_ACCESS_END;
    uint64_t begun_by = accessed ? MPI_ROLE_ACCESS : MPI_ROLE_EXPOSE;
    const uint64_t *text = map_get(&rd->groups, group_key(s->r, begun_by));
    const char *members = text ? names_text(&rd->run->names, (uint32_t)*text) : NULL;
    uint32_t comm = mpi_comms_find(rd->known, s->r->comm);
    struct mpi_message m = {
        .comm = comm,
        .src = rd->known->rank,
        .dst = rd->known->rank,
        .tag = EPOCH_TAG,
        .flags = MPI_BUFFERED,
        .post = point_of(s),
        .done = point_of(s),
        .begin = s->r->begin,
        .end = s->r->end,
    };
    int32_t *ranks;
    size_t n;

    if (comm == MPI_NO_COMM || !members) {
        rd->report->unknown++;
        return 0;
    }
    ranks = mpi_parse_ranks(members, strlen(members), &n);
    for (size_t i = 0; ranks && i < n; i++) {
        *(accessed ? &m.dst : &m.src) = ranks[i];
        if (add_message(rd, accessed ? KIND_SEND : KIND_RECEIVE, &m) == SIZE_MAX) {
            free(ranks);
            return no_memory(err);
        }
    }
    free(ranks);
    return 0;
}

/* ---- all steps ------------------------------------------------------------------------------ */

static int add_comms(struct reader *rd, struct pt_err *err)
{
    for (size_t i = 0; i < rd->nsteps; i++) {
        const struct mpi_record *r = rd->steps[i].r;
        if (r->call->role == MPI_ROLE_COMM &&
            mpi_comms_add(&rd->e->comms, rd->known, r, names_text(&rd->run->names, r->text),
                          rd->number, err) < 0)
            return -1;
    }
    return 0;
}

static int take_step(struct reader *rd, size_t i, struct pt_err *err)
{
    const struct step *s = &rd->steps[i];

    if (s->r->call->flags & MPI_PERSISTENT)
        return s->r->req && map_put(&rd->inits, s->r->req, i) < 0 ? no_memory(err) : 0;
    switch (s->r->call->role) {
    case MPI_ROLE_SEND:
    case MPI_ROLE_RECV:
    case MPI_ROLE_SENDRECV:
    case MPI_ROLE_PROBE:
    case MPI_ROLE_MPROBE:
        return post(rd, s, s->r, err);
    case MPI_ROLE_MRECV:
        receive_probed(rd, s);
        return 0;
    case MPI_ROLE_START:
        return start(rd, s, err);
    case MPI_ROLE_DONE:
        complete(rd, s);
        return 0;
    case MPI_ROLE_COLL:
        return add_collective(rd, s, err);
    case MPI_ROLE_ACCESS:
    case MPI_ROLE_EXPOSE:
        return map_put(&rd->epochs, (uint64_t)(uint32_t)s->r->comm, s->r->call->role) < 0
                   ? no_memory(err)
                   : 0;
    case MPI_ROLE_GROUP:
        return set_group(rd, s->r, err);
    case MPI_ROLE_ACCESS_END:
    case MPI_ROLE_EXPOSE_END:
        return end_epoch(rd, s, err);
    default:
        return 0;
    }
}

int mpi_read_process(struct mpi_events *e, const struct merge_run *run, size_t first, size_t end,
                     struct mpi_known *known, struct mpi_report *report, struct pt_err *err)
{
    struct reader rd = {.e = e, .run = run, .known = known, .report = report, .number = first};
    int rc = sort_steps(&rd, first, end, err);

    if (rc == 0)
        rc = add_comms(&rd, err);
    for (size_t i = 0; rc == 0 && known->rank >= 0 && i < rd.nsteps; i++)
        rc = take_step(&rd, i, err);
    free(rd.steps);
    map_free(&rd.active);
    map_free(&rd.inits);
    map_free(&rd.turns);
    map_free(&rd.epochs);
    map_free(&rd.groups);
    return rc;
}
