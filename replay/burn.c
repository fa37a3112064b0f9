#include "config.h"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include "replay/burn.h"

#define NS_PER_S 1000000000u

enum {
    TRIALS = 5,
    TRIAL_LOOPS = 200000,
    CLOCK_LOOKS = 1000,
    BLIND_NS = 2000,    /* shorter than this: spin without looking at the clock */
    CHUNK_NS = 100000,  /* look at the clock at least this often */
    CLOSE_NS = 150,     /* near enough */
    SLEEP_MIN_NS = 1000 /* no sleep is shorter */
};

static double loops_per_ns = 1;
static int64_t clock_cost; /* of one look at the CPU clock, ns */

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t burn_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

static void spin(uint64_t loops)
{
    for (uint64_t i = 0; i < loops; i++)
        __asm__ volatile("" ::: "memory");
}

static void calibrate_clock(void)
{
    uint64_t begin = read_clock(CLOCK_THREAD_CPUTIME_ID), now = begin;

    for (int i = 0; i < CLOCK_LOOKS; i++)
        now = read_clock(CLOCK_THREAD_CPUTIME_ID);
    clock_cost = (int64_t)(now - begin) / CLOCK_LOOKS;
}

void burn_calibrate(void)
{
    double best = 0;

    for (int i = 0; i < TRIALS; i++) {
        uint64_t begin = read_clock(CLOCK_THREAD_CPUTIME_ID), ns;

        spin(TRIAL_LOOPS);
        ns = read_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
        if (ns > 0 && TRIAL_LOOPS / (double)ns > best)
            best = TRIAL_LOOPS / (double)ns;
    }
    if (best > 0)
        loops_per_ns = best;
    calibrate_clock();
}

void burn_thread_init(void)
{
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
}

void burn_cpu(struct burn *b, uint64_t ns)
{
    int64_t want = (int64_t)ns - b->cpu_debt, left;
    uint64_t begin;

    if (ns == 0)
        return;
    b->cpu_debt = want < 0 ? -want : 0;
    if (want <= 0)
        return;
    if (want < BLIND_NS) {
        spin((uint64_t)((double)want * loops_per_ns));
        return;
    }
    begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    for (left = want; left > CLOSE_NS;
         left = want - (int64_t)(read_clock(CLOCK_THREAD_CPUTIME_ID) - begin))
        spin((uint64_t)((double)(left < CHUNK_NS ? left * 7 / 8 : CHUNK_NS) * loops_per_ns));
    /* Half of the first look and half of the last are outside of what was measured. */
    b->cpu_debt = clock_cost - left;
}

void burn_sleep_until(uint64_t when_ns)
{
    struct timespec t = {.tv_sec = (time_t)(when_ns / NS_PER_S),
                         .tv_nsec = (long)(when_ns % NS_PER_S)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

void burn_sleep(struct burn *b, uint64_t ns)
{
    int64_t want = (int64_t)ns - b->sleep_debt;
    uint64_t begin;

    if (ns == 0)
        return;
    if (want < SLEEP_MIN_NS) {
        b->sleep_debt = -want;
        return;
    }
    begin = burn_now();
    burn_sleep_until(begin + (uint64_t)want);
    b->sleep_debt = (int64_t)(burn_now() - begin) - want;
}
