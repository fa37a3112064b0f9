/*
 * The dependencies of a store, as each node of this rank has to act on them.
 *
 * A channel leads from one node to another.  Edges of a channel that others of it
 * imply are left out; of what remains the k-th SIGNAL of the source is the k-th WAIT
 * of the destination, so a message carries nothing but its arrival.
 */
#ifndef PT_REPLAY_SCHEDULE_H
#define PT_REPLAY_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "hdf5store/store.h"

struct sched_channel {
    uint32_t src_node, dst_node; /* of the store */
    int src_rank, dst_rank;      /* of the replay */
    uint32_t number;             /* among the channels between these two ranks, from 0 */
};

/* What a node does: SIGNAL in the gap before `event`, WAIT or BARRIER before it. */
struct sched_act {
    uint64_t event; /* may be the node's number of events: after the last one */
    uint32_t what;  /* index of a channel or of a barrier */
};

struct sched_acts {
    size_t n;
    struct sched_act *acts; /* by event */
};

struct sched_node {
    struct sched_acts signals, waits, barriers;
};

struct sched_barrier {
    size_t id; /* in the store: the same on all ranks */
    const struct pt_store_barrier *store;
    size_t nlocal; /* members on this rank */
};

struct schedule {
    size_t nchannels; /* those that begin or end on this rank */
    struct sched_channel *channels;
    size_t nbarriers; /* those with members on this rank */
    struct sched_barrier *barriers;
    size_t nnodes;
    struct sched_node *nodes; /* of the store; without acts if on another rank */
    struct sched_act *memory;
};

/* The replay rank that runs a node of the store. */
int schedule_owner(const struct pt_store *store, size_t node, int nranks);

/*
 * Makes the schedule of a rank; the store must stay open.  -1 and err if an edge or a
 * barrier names what is not there, or there is no memory.
 */
int schedule_create(struct schedule *s, const struct pt_store *store, int rank, int nranks,
                    struct pt_err *err);
void schedule_destroy(struct schedule *s);

#endif
