/*
 * New processes that run in this one's image.
 */
#ifndef PT_FORK_H
#define PT_FORK_H

#include "preload/tracer.h"

/* Before a fork, in the parent, and after it, in the child; libc calls them. */
void pt_forking(void);
void pt_forked(void);
/* Is the thread in the midst of something of ours, which a signal has interrupted? */
static inline int pt_is_in_tracer(const struct pt_thread *t)
{
    return t->writing || t->poll.busy;
}
/* The child is about to become a node: forgets what is still the parent's. */
void pt_thread_forget(struct pt_thread *t);
/* From now on it does, before all others in the child. */
void pt_fork_watch(void);

#endif
