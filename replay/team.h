/*
 * The ranks of the replay, acting together.  Everything here is collective: all
 * ranks call it, in the same order.
 */
#ifndef PT_REPLAY_TEAM_H
#define PT_REPLAY_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct team {
    int rank, size;
    bool threads; /* several threads of a rank may call MPI at a time */
};

void team_start(struct team *team, int *argc, char ***argv);
void team_end(void);

/* One barrier; what follows it starts on all ranks together. */
void team_barrier(void);

/* The same for those who are done: waits asleep, to leave the CPU to those who are not. */
void team_rest(void);

/*
 * Whether all ranks succeeded: 0 if everybody's rc is 0, else -1 everywhere, and
 * err holds the reason of the first rank that failed.
 */
int team_agree(const struct team *team, int rc, struct pt_err *err);

/* Each of the n values becomes the sum, the largest, the smallest of all ranks. */
void team_sum(uint64_t *values, size_t n);
void team_max(uint64_t *values, size_t n);
void team_min(uint64_t *values, size_t n);

/* Rank 0's value, on all ranks. */
uint64_t team_share(uint64_t value);

/*
 * All ranks' texts one behind the other, in rank order: on rank 0, for the caller
 * to free; NULL elsewhere.  All ranks end if there is no memory.
 */
char *team_gather(const struct team *team, const char *text);

#endif
