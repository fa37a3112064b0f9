/*
 * Which number a process has in its rank, the PROCESS of its nodes' names.
 *
 * It is the same in every run, whichever of two processes at work at the same time is faster, so it
 * comes from the parent: 0 is the rank's first process; its children, and the programs that it
 * becomes by exec, are 1, 2, ... in the order of their creation; those of process P are
 * P + 10000, P + 20000, ..., theirs P + 10000000 and so on.  Where these run out, and for processes
 * that nobody has announced, numbers go by the order of arrival.
 *
 * A forked child inherits its number.  A program that is executed finds what was left for its
 * process id in the shared memory, or for any child of its parent, if that has called posix_spawn
 * or the like: libc does not tell the id before the program runs.
 */
#ifndef PT_LINEAGE_H
#define PT_LINEAGE_H

#include "common/ring.h"

/* The number of this process, which has just come; `given` to it when it was forked, or 0. */
int32_t pt_lineage_begin(struct pt_memory *m, struct pt_rank_entry *rank, int32_t given);

/* A number for a process, or a program, that is about to come from this one; 0: it has none. */
int32_t pt_lineage_next(void);

/* Takes what was left for this process, which goes on untraced. */
void pt_lineage_drop(struct pt_memory *m, const struct pt_rank_entry *rank);

/*
 * Leaves a number for the program that this process is about to become, or for the next one that
 * one of its children becomes; returns what was left, 0 if nothing.
 */
uint64_t pt_lineage_leave(int32_t number);
uint64_t pt_lineage_leave_to_child(void);
/* It was left to a child, which is that one. */
void pt_lineage_hand_on(uint64_t left, int32_t child);
/* There will be no such program. */
void pt_lineage_withdraw(uint64_t left);

#endif
