/*
 * Looking at the nodes of this host: is every one of them stuck?
 *
 * A node is stuck when it is in a sync call, has made no progress since a snapshot, and has
 * since then either slept in the kernel throughout or used enough CPU that it would have
 * noticed whatever it waits for.  The last condition makes it right where there are
 * fewer cores than nodes: one that could go on may just not have run yet.  Who asks again and
 * again without waiting (MPI_Test, a loop that looks for a file) is stuck when it has asked,
 * since the snapshot, and was told no; who has asked once may do something else next.
 *
 * Waiting that no call shows (spinning on shared memory) is assumed where compute-max or
 * call-max are given: no progress for so long, the time without a CPU not counted.
 */
#ifndef PT_LOOK_H
#define PT_LOOK_H

#include "common/trace.h"

struct wd;
struct wd_node;
struct wd_looks;

/* Which of the calls that the launcher's server ends (verdict.h: enum wd_served) it is; 0: none. */
unsigned wd_served_by(uint16_t op);

struct wd_looks *wd_looks_create(struct wd *wd);
void wd_looks_destroy(struct wd_looks *l);

/* Forgets the snapshot: the next look takes one. */
void wd_looks_restart(struct wd_looks *l);

/* There will be no more looks for a while: nobody is asked for anything any more. */
void wd_looks_end(struct wd_looks *l);

enum wd_rest {
    WD_BUSY,  /* somebody has moved or is at work */
    WD_QUIET, /* nobody has moved since the snapshot, but not all are known to be stuck */
    WD_REST,  /* all are stuck */
};

/* Looks at every live node but one (NULL: at all), which has passed these (enum wd_served). */
enum wd_rest wd_looks_take(struct wd_looks *l, const struct wd_node *except, unsigned passed);

/* Where everybody was at the last look; valid until the next. */
const struct pt_hold_peer *wd_looks_peers(struct wd_looks *l, size_t *n);

/* A number that changes with every progress of any node but that one. */
uint64_t wd_looks_progress(const struct wd *wd, const struct wd_node *except);

#endif
