#include "config.h"

#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "replay/backoff.h"
#include "replay/sync.h"

enum {
    DIRECT_RANKS = 8,    /* barriers of more ranks are collectives */
    MAX_COLLECTIVES = 64 /* communicators for them */
};

/* Signals between two nodes of this rank. */
struct mailbox {
    pthread_mutex_t lock;
    pthread_cond_t more;
    uint32_t sent, taken;
};

struct gate {
    pthread_mutex_t lock;
    size_t nlocal, arrived;
    bool open;
    int nranks; /* the other ranks */
    int *ranks;
    MPI_Comm comm; /* MPI_COMM_NULL: by messages */
    int nrequests;
    MPI_Request *requests;
    int tag;
};

/* Barriers of the same nodes, which they pass in the same order. */
struct group {
    const struct pt_store_barrier *last;
    MPI_Comm comm; /* MPI_COMM_NULL if this rank is not in it */
};

struct sync {
    const struct schedule *schedule;
    const struct pt_store *store;
    int rank, nranks;
    MPI_Comm signals, barriers;
    struct mailbox *mailboxes; /* by channel; those within this rank are used */
    struct gate *gates;        /* by barrier */
    size_t ngroups;
    struct group groups[MAX_COLLECTIVES];
    bool *seen; /* by rank: for whoever goes through the members of a barrier */
    int *ranks;
};

/* ---- making --------------------------------------------------------------------- */

static bool is_local(const struct sync *s, uint32_t channel)
{
    const struct sched_channel *c = &s->schedule->channels[channel];

    return c->src_rank == c->dst_rank;
}

static int tag_limit(void)
{
    int *limit, found;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &found);
    return found ? *limit : 32767;
}

static int make_mailboxes(struct sync *s, struct pt_err *err)
{
    s->mailboxes = calloc(s->schedule->nchannels + 1, sizeof(*s->mailboxes));
    if (!s->mailboxes)
        return pt_err_errno(err, "cannot make %zu channels", s->schedule->nchannels);
    for (size_t i = 0; i < s->schedule->nchannels; i++) {
        if (s->schedule->channels[i].number > (uint32_t)tag_limit())
            return pt_err_set(err, "cannot make %zu channels: MPI has too few tags",
                              s->schedule->nchannels);
        pthread_mutex_init(&s->mailboxes[i].lock, NULL);
        pthread_cond_init(&s->mailboxes[i].more, NULL);
    }
    return 0;
}

/* Writes the ranks of a barrier to s->ranks, each once, and returns how many. */
static int find_ranks(struct sync *s, const struct pt_store_barrier *barrier)
{
    int n = 0;

    memset(s->seen, 0, (size_t)s->nranks * sizeof(*s->seen));
    for (size_t i = 0; i < barrier->nmembers; i++) {
        int rank = schedule_owner(s->store, barrier->members[i].node, s->nranks);

        if (!s->seen[rank])
            s->ranks[n++] = rank;
        s->seen[rank] = true;
    }
    return n;
}

static int make_gate(struct sync *s, size_t i)
{
    const struct sched_barrier *b = &s->schedule->barriers[i];
    struct gate *g = &s->gates[i];
    int n = find_ranks(s, b->store);

    pthread_mutex_init(&g->lock, NULL);
    g->nlocal = b->nlocal;
    g->comm = MPI_COMM_NULL;
    g->tag = (int)(b->id % (size_t)tag_limit());
    g->ranks = malloc((size_t)n * sizeof(*g->ranks));
    g->requests = malloc((size_t)n * sizeof(MPI_Request));
    if (!g->ranks || !g->requests)
        return -1;
    for (int k = 0; k < n; k++)
        if (s->ranks[k] != s->rank)
            g->ranks[g->nranks++] = s->ranks[k];
    return 0;
}

static int make_gates(struct sync *s, struct pt_err *err)
{
    size_t n = s->schedule->nbarriers, i = 0;

    s->seen = calloc((size_t)s->nranks, sizeof(*s->seen));
    s->ranks = calloc((size_t)s->nranks, sizeof(*s->ranks));
    s->gates = calloc(n + 1, sizeof(*s->gates));
    if (s->seen && s->ranks && s->gates)
        while (i < n && make_gate(s, i) == 0)
            i++;
    return s->ranks && i == n ? 0 : pt_err_set(err, "cannot make %zu barriers: no memory", n);
}

struct sync *sync_create(const struct schedule *schedule, const struct pt_store *store, int rank,
                         int nranks, struct pt_err *err)
{
    struct sync *s = calloc(1, sizeof(*s));
    MPI_Comm signals, barriers;

    MPI_Comm_dup(MPI_COMM_WORLD, &signals);
    MPI_Comm_dup(MPI_COMM_WORLD, &barriers);
    if (!s) {
        MPI_Comm_free(&signals);
        MPI_Comm_free(&barriers);
        pt_err_errno(err, "cannot connect the nodes");
        return NULL;
    }
    *s = (struct sync){.schedule = schedule, .store = store, .rank = rank, .nranks = nranks};
    s->signals = signals;
    s->barriers = barriers;
    if (make_mailboxes(s, err) < 0 || make_gates(s, err) < 0) {
        sync_destroy(s);
        return NULL;
    }
    return s;
}

static void free_gates(struct sync *s)
{
    for (size_t i = 0; s->gates && i < s->schedule->nbarriers; i++) {
        free(s->gates[i].ranks);
        free(s->gates[i].requests);
    }
    free(s->gates);
}

void sync_destroy(struct sync *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->ngroups; i++)
        if (s->groups[i].comm != MPI_COMM_NULL)
            MPI_Comm_free(&s->groups[i].comm);
    MPI_Comm_free(&s->signals);
    MPI_Comm_free(&s->barriers);
    free_gates(s);
    free(s->mailboxes);
    free(s->seen);
    free(s->ranks);
    free(s);
}

/* ---- collectives ------------------------------------------------------------------ */

/* Whether b has the nodes of a, and each of them passes it at a later event. */
static bool follows(const struct pt_store_barrier *a, const struct pt_store_barrier *b)
{
    if (a->nmembers != b->nmembers)
        return false;
    for (size_t i = 0; i < a->nmembers; i++)
        if (a->members[i].node != b->members[i].node || a->members[i].event >= b->members[i].event)
            return false;
    return true;
}

static MPI_Comm make_comm(const struct sync *s, int nranks, int number)
{
    MPI_Group all, some;
    MPI_Comm comm;

    MPI_Comm_group(s->barriers, &all);
    MPI_Group_incl(all, nranks, s->ranks, &some);
    MPI_Comm_create_group(s->barriers, some, number, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return comm;
}

/* The group of a barrier, a new one if need be; NULL if it is not to be a collective. */
static struct group *find_group(struct sync *s, const struct pt_store_barrier *b)
{
    int n = find_ranks(s, b);
    struct group *g;

    if (n <= DIRECT_RANKS)
        return NULL;
    for (size_t k = 0; k < s->ngroups; k++)
        if (follows(s->groups[k].last, b))
            return &s->groups[k];
    if (s->ngroups == MAX_COLLECTIVES)
        return NULL;
    g = &s->groups[s->ngroups++];
    g->comm = s->seen[s->rank] ? make_comm(s, n, (int)s->ngroups) : MPI_COMM_NULL;
    return g;
}

/* Every rank goes through all barriers of the store, so that all judge alike. */
static void make_groups(struct sync *s)
{
    size_t mine = 0;

    for (size_t id = 0; id < pt_store_nbarriers(s->store); id++) {
        const struct pt_store_barrier *b = pt_store_barrier(s->store, id);
        struct group *g = find_group(s, b);
        bool here = mine < s->schedule->nbarriers && s->schedule->barriers[mine].id == id;

        if (g)
            g->last = b;
        if (g && here)
            s->gates[mine].comm = g->comm;
        mine += here;
    }
}

/* ---- connections ------------------------------------------------------------------ */

/* Marks the ranks that this one will exchange messages with; they mark this one. */
static void find_peers(const struct sync *s, bool *peers)
{
    memset(peers, 0, (size_t)s->nranks * sizeof(*peers));
    for (size_t i = 0; i < s->schedule->nchannels; i++) {
        peers[s->schedule->channels[i].src_rank] = true;
        peers[s->schedule->channels[i].dst_rank] = true;
    }
    for (size_t i = 0; i < s->schedule->nbarriers; i++)
        for (int k = 0; s->gates[i].comm == MPI_COMM_NULL && k < s->gates[i].nranks; k++)
            peers[s->gates[i].ranks[k]] = true;
    peers[s->rank] = false;
}

static void greet(const struct sync *s, const bool *peers)
{
    MPI_Request *requests = calloc(2 * (size_t)s->nranks, sizeof(MPI_Request));
    int n = 0;

    if (!requests)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int r = 0; r < s->nranks; r++) {
        if (!peers[r])
            continue;
        MPI_Irecv(NULL, 0, MPI_BYTE, r, 0, s->signals, &requests[n++]);
        MPI_Isend(NULL, 0, MPI_BYTE, r, 0, s->signals, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    free(requests);
}

void sync_connect(struct sync *s)
{
    make_groups(s);
    find_peers(s, s->seen);
    greet(s, s->seen);
    for (size_t k = 0; k < s->ngroups; k++)
        if (s->groups[k].comm != MPI_COMM_NULL)
            MPI_Barrier(s->groups[k].comm);
    MPI_Barrier(s->signals);
}

/* ---- signals ---------------------------------------------------------------------- */

/* By asking, not by a blocking call: those always spin. */
static void wait_for(int n, MPI_Request *requests, bool spin)
{
    struct backoff wait = {.spin = spin};
    int done;

    for (;;) {
        MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
        if (done)
            return;
        backoff_pause(&wait);
    }
}

static void put(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    m->sent++;
    pthread_cond_signal(&m->more);
    pthread_mutex_unlock(&m->lock);
}

static void take(struct mailbox *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->taken == m->sent)
        pthread_cond_wait(&m->more, &m->lock);
    m->taken++;
    pthread_mutex_unlock(&m->lock);
}

void sync_signal(struct sync *s, uint32_t channel)
{
    const struct sched_channel *c = &s->schedule->channels[channel];

    if (is_local(s, channel))
        put(&s->mailboxes[channel]);
    else
        MPI_Send(NULL, 0, MPI_BYTE, c->dst_rank, (int)c->number, s->signals);
}

void sync_wait(struct sync *s, uint32_t channel, bool spin)
{
    const struct sched_channel *c = &s->schedule->channels[channel];
    MPI_Request request;

    if (is_local(s, channel)) {
        take(&s->mailboxes[channel]);
        return;
    }
    MPI_Irecv(NULL, 0, MPI_BYTE, c->src_rank, (int)c->number, s->signals, &request);
    wait_for(1, &request, spin);
}

/* ---- barriers ---------------------------------------------------------------------- */

/* This rank has arrived: tells the others, and begins to listen. */
static void announce(struct sync *s, struct gate *g)
{
    if (g->comm != MPI_COMM_NULL) {
        g->nrequests = 1;
        MPI_Ibarrier(g->comm, &g->requests[0]);
        return;
    }
    for (int i = 0; i < g->nranks; i++)
        MPI_Irecv(NULL, 0, MPI_BYTE, g->ranks[i], g->tag, s->barriers, &g->requests[i]);
    g->nrequests = g->nranks;
    for (int i = 0; i < g->nranks; i++)
        MPI_Send(NULL, 0, MPI_BYTE, g->ranks[i], g->tag, s->barriers);
}

void sync_arrive(struct sync *s, uint32_t barrier)
{
    struct gate *g = &s->gates[barrier];

    pthread_mutex_lock(&g->lock);
    if (++g->arrived == g->nlocal)
        announce(s, g);
    pthread_mutex_unlock(&g->lock);
}

/* Whether everybody has arrived; any member's thread may find out for the others. */
static bool is_open(struct gate *g)
{
    bool open;
    int done = 0;

    pthread_mutex_lock(&g->lock);
    if (!g->open && g->arrived == g->nlocal) {
        MPI_Testall(g->nrequests, g->requests, &done, MPI_STATUSES_IGNORE);
        g->open = done;
    }
    open = g->open;
    pthread_mutex_unlock(&g->lock);
    return open;
}

void sync_pass(struct sync *s, uint32_t barrier, bool spin)
{
    struct backoff wait = {.spin = spin};

    while (!is_open(&s->gates[barrier]))
        backoff_pause(&wait);
}
