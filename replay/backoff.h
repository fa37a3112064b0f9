/*
 * Waiting for something that has to be asked for, as the application waited: one that
 * spins (as MPI libraries do) takes the CPU from others who share it, and so must its
 * replay; one that sleeps leaves it to those who compute.
 */
#ifndef PT_REPLAY_BACKOFF_H
#define PT_REPLAY_BACKOFF_H

#include <sched.h>
#include <stdbool.h>
#include <time.h>

enum {
    BACKOFF_YIELDS = 1000, /* a short wait ends at once, also for one that sleeps */
    BACKOFF_MIN_NS = 30000,
    BACKOFF_MAX_NS = 200000,
    BACKOFF_PART = 256, /* of what was slept: a wait's end is seen late by that part */
};

struct backoff {
    bool spin; /* never sleep */
    unsigned yields;
    long long slept; /* ns */
};

static inline void backoff_pause(struct backoff *b)
{
    struct timespec nap = {.tv_nsec = (long)(b->slept / BACKOFF_PART)};

    if (b->spin || b->yields < BACKOFF_YIELDS) {
        b->yields++;
        sched_yield();
        return;
    }
    if (nap.tv_nsec < BACKOFF_MIN_NS)
        nap.tv_nsec = BACKOFF_MIN_NS;
    if (nap.tv_nsec > BACKOFF_MAX_NS)
        nap.tv_nsec = BACKOFF_MAX_NS;
    b->slept += nap.tv_nsec;
    nanosleep(&nap, NULL);
}

#endif
