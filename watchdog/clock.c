/*
 * The processor's counter as a clock.
 *
 * The kernel has made sure that it runs evenly and alike on all cores where it uses it
 * as its own clock source; then so do we.  Its rate is measured at the start; later each
 * draining anchors it to CLOCK_MONOTONIC anew, so that the two do not drift apart.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "watchdog/watchdog.h"

#define CALIBRATE_NS 5000000
#define SOURCE       "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static uint64_t read_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/* Both clocks at one moment: the try in which the counter was read fastest. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t before = read_counter(), now = wd_now(), after = read_counter();
        if (after - before < best) {
            best = after - before;
            *ticks = before + (after - before) / 2;
            *ns = now;
        }
    }
}

static int kernel_trusts_it(void)
{
    char name[32] = "";
    FILE *f = fopen(SOURCE, "re");
    if (!f)
        return 0;
    int read = fgets(name, sizeof(name), f) != NULL;
    fclose(f);
    return read && !strcmp(name, "tsc\n") && read_counter() != 0;
}

void wd_clock_begin(struct wd_clock *clock)
{
    struct timespec pause = {0, CALIBRATE_NS};
    uint64_t ticks = 0, ns = 0;

    *clock = (struct wd_clock){0};
    if (!kernel_trusts_it())
        return;
    read_both(&clock->ticks, &clock->ns);
    nanosleep(&pause, NULL);
    read_both(&ticks, &ns);
    if (ticks <= clock->ticks || ns <= clock->ns)
        return;
    clock->first_ticks = clock->ticks;
    clock->first_ns = clock->ns;
    clock->mult = (uint64_t)(((unsigned __int128)(ns - clock->ns) << 32) / (ticks - clock->ticks));
    clock->tsc = clock->mult != 0;
}

void wd_clock_anchor(struct wd_clock *clock)
{
    if (!clock->tsc)
        return;
    read_both(&clock->ticks, &clock->ns);
    if (clock->ns - clock->first_ns > 100u * CALIBRATE_NS) /* the longer, the better known */
        clock->mult = (uint64_t)(((unsigned __int128)(clock->ns - clock->first_ns) << 32) /
                                 (clock->ticks - clock->first_ticks));
}

uint64_t wd_clock_span(const struct wd_clock *clock, uint64_t ticks)
{
    return clock->tsc ? (uint64_t)((unsigned __int128)ticks * clock->mult >> 32) : ticks;
}

uint64_t wd_clock_time(const struct wd_clock *clock, uint64_t ticks)
{
    if (!clock->tsc)
        return ticks;
    if (ticks >= clock->ticks)
        return clock->ns + wd_clock_span(clock, ticks - clock->ticks);
    return clock->ns - wd_clock_span(clock, clock->ticks - ticks);
}
