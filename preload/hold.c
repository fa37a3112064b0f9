#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

#include "preload/process.h"
#include "preload/sys.h"
#include "preload/tracer.h"

int pt_watchdog_alive(void)
{
    const struct pt_shm *shm = pt_process_shm();
    return shm && pt_sys(SYS_kill, shm->watchdog, 0) != -ESRCH;
}

void pt_bell_ring(void)
{
    struct pt_bell *bell = pt_process_bell();
    if (!bell)
        return;
    atomic_fetch_add(&bell->rung, 1);
    if (atomic_exchange(&bell->sleeping, 0))
        pt_sys(SYS_futex, &bell->rung, FUTEX_WAKE, 1);
}

uint64_t pt_hold(struct pt_thread *t, uint16_t op)
{
    struct pt_ring *ring = t->ring;
    struct timespec second = {1, 0};
    uint64_t from = pt_clock(CLOCK_MONOTONIC);

    atomic_store(&ring->phase, PT_PHASE_WORD(PT_PHASE_HELD, op));
    atomic_store(&ring->hold, PT_HOLD_ASKED);
    pt_bell_ring();
    while (atomic_load(&ring->hold) == PT_HOLD_ASKED) {
        long rc = pt_sys(SYS_futex, &ring->hold, FUTEX_WAIT, PT_HOLD_ASKED, &second);
        if (rc == -ETIMEDOUT && !pt_watchdog_alive())
            break;
    }
    atomic_store(&ring->hold, PT_HOLD_NONE);
    return pt_clock(CLOCK_MONOTONIC) - from;
}
