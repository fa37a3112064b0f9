/*
 * Whether a plan can be replayed: what will not be, and how much of it.
 */
#ifndef PT_REPLAY_CHECK_H
#define PT_REPLAY_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "replay/plan.h"

/* How many counters a check of this store has. */
size_t check_size(const struct pt_store *store);

/* Counts the plan's events by what is done with them; counts of several ranks add up. */
void check_count(const struct plan *plan, uint64_t *counts);

/* Events that should be replayed and cannot be. */
uint64_t check_impossible(const struct pt_store *store, const uint64_t *counts);

/* Lists what is left out, a line each, with that prefix. */
void check_print(const struct pt_store *store, const uint64_t *counts, const char *prefix,
                 FILE *out);

#endif
