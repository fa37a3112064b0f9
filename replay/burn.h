/*
 * Using up CPU time, and sleeping, as exactly as the machine allows.  What one call
 * took too much the next one takes less.
 */
#ifndef PT_REPLAY_BURN_H
#define PT_REPLAY_BURN_H

#include <stdint.h>

struct burn {
    int64_t cpu_debt, sleep_debt; /* ns taken too much */
};

/* Measures how fast this CPU spins; once for each process, before the others. */
void burn_calibrate(void);

/* Once for each thread: lets sleeps end when they should. */
void burn_thread_init(void);

/* Uses `ns` of CPU time of this thread, by spinning. */
void burn_cpu(struct burn *b, uint64_t ns);

void burn_sleep(struct burn *b, uint64_t ns);

/* Sleeps until that time of CLOCK_MONOTONIC; returns at once if it is over. */
void burn_sleep_until(uint64_t when_ns);

/* CLOCK_MONOTONIC, ns. */
uint64_t burn_now(void);

#endif
