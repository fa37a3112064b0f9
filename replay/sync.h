/*
 * SIGNAL, WAIT and BARRIER between the nodes of all ranks.
 *
 * Between ranks a signal is an empty MPI message; within a rank it is a counter.  A
 * barrier is in two halves, as what it stands for: a node has arrived once the event
 * before is done, and may pass once all have arrived.  The nodes of a rank arrive
 * together; among the ranks of a barrier each sends to each other one, or, if they are
 * many, a collective runs on a communicator made beforehand.
 */
#ifndef PT_REPLAY_SYNC_H
#define PT_REPLAY_SYNC_H

#include <stdint.h>

#include "common/err.h"
#include "replay/schedule.h"

struct sync;

/*
 * Collective.  Makes everything that the schedule needs and opens the connections, so
 * that no message of the replay is the first between two ranks.  The schedule must
 * stay.  NULL and err.
 */
struct sync *sync_create(const struct schedule *schedule, const struct pt_store *store, int rank,
                         int nranks, struct pt_err *err);

/* Opens the connections; collective, once sync_create() succeeded on all ranks. */
void sync_connect(struct sync *s);

/* Collective. */
void sync_destroy(struct sync *s);

/* By the source's thread. */
void sync_signal(struct sync *s, uint32_t channel);

/*
 * By the destination's thread: returns once one more signal of the channel has come.
 * `spin`: waits on the CPU, as the application did.
 */
void sync_wait(struct sync *s, uint32_t channel, bool spin);

/* By a member's thread, each once, in this order. */
void sync_arrive(struct sync *s, uint32_t barrier);
void sync_pass(struct sync *s, uint32_t barrier, bool spin);

#endif
