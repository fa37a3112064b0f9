/*
 * Decides, for each event of a plan, what is to be done with it and which handles it
 * uses.
 */
#ifndef PT_REPLAY_RESOLVE_H
#define PT_REPLAY_RESOLVE_H

#include "replay/plan.h"

/* Fills all steps; -1 and err if there is no memory. */
int resolve_steps(struct plan *plan, struct pt_err *err);

#endif
