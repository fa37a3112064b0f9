#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <time.h>

#include "common/spec.h"
#include "preload/hand.h"
#include "preload/process.h"
#include "preload/sys.h"

int pt_watchdog_alive(void)
{
    const struct pt_memory *memory = pt_process_memory();
    return memory && pt_sys(SYS_kill, memory->watchdog, 0) != -ESRCH;
}

void pt_bell_ring(void)
{
    struct pt_memory *memory = pt_process_memory();
    if (!memory)
        return;
    atomic_fetch_add(&memory->bell.rung, 1);
    if (atomic_exchange(&memory->bell.sleeping, 0))
        pt_sys(SYS_futex, &memory->bell.rung, FUTEX_WAKE, 1);
}

void pt_hold_advance(struct pt_thread *t, uint64_t io_event)
{
    uint64_t period = pt_process_memory()->period;
    if (t->hold_next == UINT64_MAX)
        return;
    const struct pt_plan_entry *next = t->plan; /* a signal handler may fork: pt_forked() */
    if (next) {
        while (next < t->plan_end && next->io_event <= io_event)
            next++;
        t->hold_next = next < t->plan_end ? next->io_event : UINT64_MAX;
        t->plan = next;
    } else {
        t->hold_next = (io_event / period + 1) * period;
    }
}

void pt_hold_prepare(struct pt_thread *t, const struct pt_name *name)
{
    const struct pt_memory *m = pt_process_memory();
    const struct pt_name *victim = &m->victim;
    int held = m->throttle == PT_THROTTLE_AUTO ||
               (m->throttle == PT_THROTTLE_NODE && name->rank == victim->rank &&
                name->process == victim->process && name->thread == victim->thread);
    t->plan = NULL;
    t->hold_next = held && m->period ? 0 : UINT64_MAX;
    if (!held || !m->plan_count)
        return;
    uint32_t count = pt_process_plan(name, &t->plan);
    t->plan_end = t->plan + count;
    t->hold_next = count ? t->plan->io_event : UINT64_MAX;
}

/* The watchdog ends a hold in time; but if it should not, a program must not stand still. */
static int is_abandoned(uint64_t from)
{
    return !pt_watchdog_alive() || pt_monotonic() - from > pt_process_memory()->hold_limit;
}

uint64_t pt_hold(struct pt_thread *t, uint16_t op)
{
    struct pt_ring *ring = t->ring;
    struct timespec second = {1, 0};
    uint64_t from = pt_monotonic();

    atomic_store(&ring->phase, PT_PHASE_WORD(PT_PHASE_HELD, op));
    atomic_store(&ring->hold, PT_HOLD_ASKED);
    pt_bell_ring();
    while (atomic_load(&ring->hold) == PT_HOLD_ASKED) {
        long rc = pt_sys(SYS_futex, &ring->hold, FUTEX_WAIT, PT_HOLD_ASKED, &second);
        if (rc == -ETIMEDOUT && is_abandoned(from))
            break;
    }
    if (atomic_exchange(&ring->hold, PT_HOLD_NONE) == PT_HOLD_ASKED)
        t->hold_next = UINT64_MAX; /* nobody answers: this thread does not ask again */
    return pt_monotonic() - from;
}

/* ---- while another is held -------------------------------------------------------------- */

DECLARE(sched_yield);

#define ENOUGH_LOOKS 32 /* some things an MPI library looks at only every few times */

static uint64_t ticks_of(uint64_t ns)
{
    return pt_ticks.tsc ? (ns << 32) / pt_ticks.mult : ns;
}

/*
 * MPI libraries that share cores yield whenever they have looked around in vain.  Beside programs
 * that use all CPU they can get, they then look around once in many milliseconds, and the
 * watchdog does not learn for seconds whether they wait.  So it asks for a moment of their time,
 * and is told when that was spent on nothing but looking around.
 */
static int lingers(struct pt_thread *t)
{
    uint64_t wanted = atomic_load_explicit(&t->ring->linger, memory_order_acquire);
    uint32_t number = PT_LINGER_NUMBER(wanted);
    uint64_t enough = PT_LINGER_US(wanted) * 1000ul, used;
    if (!wanted || number == atomic_load_explicit(&t->ring->lingered, memory_order_relaxed))
        return 0;
    if (number != t->linger.number) {
        t->linger.number = number;
        t->linger.looks = 0;
        t->linger.cpu = pt_cpu_clock();
        t->linger.until = pt_now() + ticks_of(enough);
        return 1;
    }
    if (++t->linger.looks < ENOUGH_LOOKS || pt_now() < t->linger.until)
        return 1;
    used = pt_cpu_clock() - t->linger.cpu;
    if (used < enough) { /* others had the CPU meanwhile */
        t->linger.until = pt_now() + ticks_of(enough - used);
        return 1;
    }
    atomic_store_explicit(&t->ring->lingered, number, memory_order_release);
    return 0;
}

PT_EXPORT int sched_yield(void)
{
    struct pt_thread *t = &pt_self;
    if (t->state == PT_THREAD_READY && (t->below_mpi || t->inner) && !pt_vforked && lingers(t))
        return 0;
    return REAL(sched_yield)();
}
