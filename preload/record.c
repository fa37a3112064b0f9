#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/spec.h"
#include "preload/record.h"
#include "preload/sys.h"

/* ---- time ---------------------------------------------------------------------------- */

/* The CPU time used since the clock was read last, less what short gaps and calls took, ns. */
static uint64_t cpu_used(struct pt_thread *t, uint64_t at_most)
{
    uint64_t cpu = pt_clock(CLOCK_THREAD_CPUTIME_ID), used = cpu - t->cpu_at;
    uint64_t in_between = pt_to_ns(t->short_time);
    used = used > in_between ? used - in_between : 0;
    t->cpu_at = cpu;
    t->short_time = 0;
    at_most = pt_to_ns(at_most);
    return used < at_most ? used : at_most;
}

/* What of the gap before this call was spent on the CPU. */
static void measure_gap(struct pt_thread *t, struct pt_pass *pass)
{
    uint64_t gap = pass->begin - t->end;
    if (gap <= pt_ticks.long_time) {
        t->short_time += gap;
        return;
    }
    pass->cpu = cpu_used(t, gap);
    pass->flags |= PT_RECF_CPU;
}

/* What of the call was spent on the CPU: does it spin or sleep when it waits? */
PT_COLD void pt_measure_call(struct pt_thread *t, struct pt_pass *pass, uint64_t dur)
{
    pass->busy = cpu_used(t, dur);
    pass->flags |= PT_RECF_BUSY;
}

static int to_be_held(const struct pt_thread *t)
{
    uint64_t period = t->ring->hold_period;
    return period && !t->inner &&
           atomic_load_explicit(&t->ring->io_done, memory_order_relaxed) % period == 0;
}

PT_COLD void pt_pass_begin_slow(struct pt_thread *t, struct pt_pass *pass, uint16_t op)
{
    if (t->poll.count && t->poll.op != op)
        pt_polls_end(t);
    measure_gap(t, pass);
    if (pass->cls == PT_CLASS_IO && to_be_held(t)) {
        pass->hold = pt_hold(t, op);
        pass->flags |= PT_RECF_HELD;
        t->cpu_at = pt_clock(CLOCK_THREAD_CPUTIME_ID);
        t->short_time = 0;
        pass->begin = pt_now();
    }
}

/* ---- records ----------------------------------------------------------------------------- */

/* Waits until the watchdog has made room, or is gone. */
static int wait_for_room(struct pt_thread *t, uint64_t seen_tail)
{
    struct timespec nap = {0, 500000};
    for (int naps = 1; atomic_load(&t->ring->tail) == seen_tail; naps++) {
        pt_bell_ring();
        pt_sys(SYS_nanosleep, &nap, 0);
        if (naps % 2000 == 0 && !pt_watchdog_alive()) {
            t->state = PT_THREAD_OFF;
            return -1;
        }
    }
    return 0;
}

PT_COLD int pt_make_room(struct pt_thread *t, uint64_t need)
{
    for (;;) {
        uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
        t->limit = tail + t->mask + 1;
        if (t->reserved + need + PT_SLACK_BYTES <= t->limit)
            return 1;
        if (pt_process_shm()->full == PT_FULL_DROP || wait_for_room(t, tail)) {
            t->lost++;
            pt_count(&t->ring->dropped);
            return 0;
        }
    }
}

static void put_pad(unsigned char *at, uint64_t bytes)
{
    struct pt_rec *pad = (struct pt_rec *)at; /* perhaps only its first word fits */
    pad->op = PT_REC_PAD;
    pad->words = (uint16_t)(bytes / sizeof(uint64_t));
}

PT_COLD void *pt_wrap(struct pt_thread *t, uint64_t at, uint64_t need)
{
    uint64_t size = t->mask + 1;
    for (;;) {
        put_pad(t->data + at, size - at);
        put_pad(t->data, need - (size - at));
        if (t->reserved + need + PT_SLACK_BYTES > t->limit && !pt_make_room(t, need)) {
            pt_pass_commit(t);
            return NULL;
        }
        at = pt_take(t, need) & t->mask;
        if (at + need <= size)
            return t->data + at;
    }
}

PT_COLD int pt_record_loss(struct pt_thread *t)
{
    struct pt_rec *rec = pt_reserve(t, PT_HEAD_WORDS);
    if (!rec)
        return -1;
    *rec = (struct pt_rec){.op = PT_REC_LOSS, .words = PT_HEAD_WORDS, .begin = t->lost};
    t->lost = 0;
    pt_pass_commit(t);
    return 0;
}

PT_COLD uint64_t *pt_put_extras(uint64_t *w, const struct pt_pass *pass)
{
    if (pass->flags & PT_RECF_CPU)
        *w++ = pass->cpu;
    if (pass->flags & PT_RECF_HELD)
        *w++ = pass->hold;
    if (pass->flags & PT_RECF_BUSY)
        *w++ = pass->busy;
    if (pass->flags & PT_RECF_POLLS)
        *w++ = pass->polls;
    return w;
}

unsigned pt_string_words(const char *s)
{
    return 1 + (unsigned)((s ? strnlen(s, PT_STRING_MAX) : 0) + 7) / 8;
}

uint64_t *pt_put_string(uint64_t *w, const char *s)
{
    size_t n = s ? strnlen(s, PT_STRING_MAX) : 0;
    *w = n;
    memcpy(w + 1, s ? s : "", n);
    return w + 1 + (n + 7) / 8;
}

/* ---- polls -------------------------------------------------------------------------------- */

void pt_poll_failed(struct pt_thread *t, const struct pt_pass *pass, uint16_t op, unsigned words)
{
    t->end = pt_now();
    t->short_time += t->end - pass->begin;
    if (!t->poll.count++) {
        t->poll.op = op;
        t->poll.words = words;
        t->poll.first = *pass;
    }
    /* Asking is waiting: the phase stays, the counters do not move. */
}

void pt_polls_end(struct pt_thread *t)
{
    struct pt_pass pass = t->poll.first;
    uint64_t count = t->poll.count;

    t->poll.count = 0;
    pass.polls = count;
    pass.flags |= PT_RECF_POLLS;
    uint64_t *w = pt_record_begin(t, &pass, t->poll.op, t->poll.words, t->end, 0, 0);
    if (w) {
        memcpy(w, t->poll.values, t->poll.words * sizeof(*w));
        pt_pass_commit(t);
    }
}

/* ---- marks -------------------------------------------------------------------------------- */

/*
 * The watchdog writes the event, when the process is gone: other libraries' destructors may
 * still do I/O after ours.
 */
void pt_record_exit(struct pt_thread *t)
{
    if (t->state != PT_THREAD_READY)
        return;
    struct pt_pass pass = {.cls = PT_CLASS_IO};
    if (t->poll.count)
        pt_polls_end(t);
    pass.begin = pt_now();
    uint64_t gap = pass.begin - t->end;
    measure_gap(t, &pass);
    t->ring->exit_cpu = pass.flags & PT_RECF_CPU ? pass.cpu : pt_to_ns(gap);
    t->ring->exit_begin = pass.begin;
    atomic_store(&t->ring->state, PT_SLOT_ENDED);
}

/* A mark takes no time of the program's: the gap before it belongs to the next event. */
static uint64_t *mark_begin(struct pt_thread *t, uint16_t op, unsigned words)
{
    struct pt_pass pass = {.cls = PT_CLASS_NAME, .begin = t->end};
    return pt_record_begin(t, &pass, op, words, t->end, 0, 0);
}

void pt_record_inherited(struct pt_thread *t, const char *path, int flags,
                         const struct pt_pass *about)
{
    uint64_t *w = mark_begin(t, PT_OP_inherited, 7 + pt_string_words(path));
    if (!w)
        return;
    *w++ = (uint64_t)about->fd;
    *w++ = (uint64_t)AT_FDCWD;
    w = pt_put_string(w, path);
    *w++ = (uint64_t)flags;
    *w++ = about->ident.handle;
    *w++ = about->ident.dev;
    *w++ = about->ident.ino;
    *w++ = about->ident.size;
    pt_pass_commit(t);
}

void pt_record_blind(struct pt_thread *t, const char *reason, const char *path)
{
    uint64_t *w = mark_begin(t, PT_OP_blind, 1 + pt_string_words(reason) + pt_string_words(path));
    if (!w)
        return;
    w = pt_put_string(w, reason);
    *w++ = (uint64_t)AT_FDCWD;
    pt_put_string(w, path);
    pt_pass_commit(t);
}
