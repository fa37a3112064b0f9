/*
 * Calls that asked in vain, and what becomes of them (poll.c).  The record of those that are
 * not over is in the ring's slot; nothing of this is on the way of a call that gets its answer.
 */
#ifndef PT_POLL_H
#define PT_POLL_H

#include "preload/record.h"

/*
 * After a call that failed with that errno: did it ask in vain, and can it be kept?  A signal
 * handler that has interrupted this very code must record its call as it is.
 */
int pt_look_in_vain(const struct pt_thread *t, int err);
int pt_ask_in_vain(const struct pt_thread *t, enum pt_class cls, int err);

/*
 * Instead of pt_pass_end(): returns where the fields go, or NULL if those of the first poll
 * stand for it.  pt_poll_kept() follows, in place of commit and done.
 */
uint64_t *pt_poll_failed(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned words,
                         int64_t ret, int err);
void pt_poll_kept(struct pt_thread *t);

/* Instead of pt_pass_end(), after a sleep: 1 if it was between polls and is no event by now. */
int pt_poll_slept(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned words);

/* A try-lock that is no event of its own has got what others before it did not get. */
void pt_try_succeeded(struct pt_thread *t);

/* Is the look that is about to be made the pending one?  Its fields are compared in order. */
int pt_same_number(const uint64_t **w, int64_t value);
int pt_same_string(const uint64_t **w, const char *s);

#endif
