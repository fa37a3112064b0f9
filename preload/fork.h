/*
 * New processes that run in this one's image.
 */
#ifndef PT_FORK_H
#define PT_FORK_H

/* Before a fork, in the parent, and after it, in the child; libc calls them. */
void pt_forking(void);
void pt_forked(void);

#endif
