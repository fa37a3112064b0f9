/*
 * Asking in vain.  A call that asks without waiting, or not for ever, and gets no answer is
 * not an event yet: it is kept as the pending record of the ring, where the watchdog finds it
 * if the program is killed.  The node makes no progress meanwhile.
 *
 * Two kinds are kept.  Sync calls (MPI_Test, poll, a try-lock): all in a row, whatever they
 * are, become one event that lasts from the first to the last.  Looks at a name that is not
 * there (or there, for a call that makes it): only the same look again goes on with it, and the
 * last one is the event, an I/O, with the time of those before it apart.  A sleep belongs to the
 * waiting if another poll follows, and is an event of its own if not.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "preload/poll.h"

PT_COLD int pt_look_in_vain(const struct pt_thread *t, int err)
{
    return (err == ENOENT || err == EEXIST) && !t->inner && !t->poll.busy;
}

PT_COLD int pt_ask_in_vain(const struct pt_thread *t, enum pt_class cls, int err)
{
    int in_vain =
        err == EAGAIN || err == EINPROGRESS || err == EALREADY || err == ETIMEDOUT || err == ENOMSG;
    return in_vain && cls == PT_CLASS_SYNC && !t->poll.busy;
}

static uint64_t *pending_words(struct pt_thread *t)
{
    return pt_ring_pending(t->ring, t->mask + 1, t->poll.words);
}

/* The CPU time of the gap before a call that has begun, and of a call, ns. */
static uint64_t gap_cpu(const struct pt_thread *t, const struct pt_pass *pass)
{
    return pass->flags & PT_RECF_CPU ? pass->cpu : pt_to_ns(pass->begin - t->end);
}

static uint64_t call_cpu(struct pt_thread *t, uint64_t dur)
{
    if (dur > pt_ticks.long_time)
        return pt_cpu_used(t, dur);
    t->short_time += dur;
    return pt_to_ns(dur);
}

/* ---- signal handlers: whoever comes later leaves what is pending alone ---------------------- */

static void own(struct pt_thread *t)
{
    t->poll.busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static void disown(struct pt_thread *t)
{
    atomic_signal_fence(memory_order_seq_cst);
    t->poll.busy = 0;
}

/* 1, and it is ours until disown(), if there is something pending. */
static int own_pending(struct pt_thread *t)
{
    if (t->poll.busy)
        return 0;
    own(t);
    if (t->polls)
        return 1;
    disown(t);
    return 0;
}

/* ---- the pending record ------------------------------------------------------------------- */

/* Begins one; returns where its fields go. */
static uint64_t *keep_first(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned words,
                            int64_t ret, int err)
{
    int look = pass->cls == PT_CLASS_IO;
    if (!look) {
        pass->polls = 1;
        pass->waited = 0;
    } else if (!(pass->flags & PT_RECF_POLLS)) {
        pass->polls = pass->waited = 0;
    }
    pass->flags = (pass->flags & (PT_RECF_CPU | PT_RECF_HELD)) | PT_RECF_BUSY | PT_RECF_POLLS;
    t->poll.op = op;
    t->poll.look = look;
    t->poll.serial++;
    t->polls = look ? pass->polls + 1 : 1;
    t->poll.first = *pass;
    t->poll.words = t->ring->pending_words = pt_record_words(pass->flags, words);
    struct pt_rec *rec = (struct pt_rec *)pending_words(t);
    uint64_t *w = pt_record_fill(t, rec, pass, op, t->poll.words, t->end, ret, err);
    t->poll.counts = (uint64_t *)(rec + 1) + (err != 0) + !!(pass->flags & PT_RECF_CPU) +
                     !!(pass->flags & PT_RECF_HELD);
    t->poll.row = w;
    return w;
}

/* Lengthens the pending record up to `t->poll.end`. */
static void keep_more(struct pt_thread *t, uint64_t polls, uint64_t cpu)
{
    struct pt_rec *rec = (struct pt_rec *)pending_words(t);
    rec->dur = t->poll.end - t->poll.first.begin;
    t->polls += polls;
    t->poll.counts[0] += cpu;
    t->poll.counts[1] = t->polls;
}

/* It was not one between two polls. */
static void write_sleep(struct pt_thread *t)
{
    struct pt_pass *pass = &t->poll.sleep;
    if (t->poll.sleep_words) /* poll and its kin */
        pass->flags |= PT_RECF_IDLE;
    uint64_t *w = pt_record_begin(t, pass, t->poll.sleep_op, t->poll.sleep_words,
                                  pass->begin + t->poll.slept, 0, 0);
    if (w) {
        memset(w, 0, t->poll.sleep_words * sizeof(*w));
        pt_pass_commit(t);
    }
    t->poll.slept = t->poll.slept_cpu = 0;
}

/* Ends the pending record: it becomes one of the ring's. */
static void write_pending(struct pt_thread *t)
{
    t->polls = 0;
    if (!t->lost || !pt_record_loss(t)) {
        struct pt_rec *rec = pt_reserve(t, t->poll.words);
        if (rec) {
            memcpy(rec, pending_words(t), t->poll.words * sizeof(uint64_t));
            pt_pass_commit(t);
        }
    }
    atomic_store_explicit(&t->ring->pending_head, 0, memory_order_relaxed);
    if (t->poll.look) {
        pt_count(&t->ring->io_done);
        pt_count(&t->ring->events);
    }
    if (t->poll.slept)
        write_sleep(t);
}

PT_COLD uint64_t *pt_poll_failed(struct pt_thread *t, struct pt_pass *pass, uint16_t op,
                                 unsigned words, int64_t ret, int err)
{
    uint64_t now = pt_now(), *fields = NULL;
    own(t);
    if (t->polls && (t->poll.look || pass->cls != PT_CLASS_SYNC))
        write_pending(t); /* a signal handler's */
    uint64_t cpu = call_cpu(t, now - pass->begin);
    t->poll.end = now;
    if (t->polls) {
        keep_more(t, 1, gap_cpu(t, pass) + cpu + t->poll.slept_cpu);
        t->end = now;
    } else {
        t->end = now;
        pass->busy = cpu;
        fields = keep_first(t, pass, op, words, ret, err);
    }
    t->poll.slept = t->poll.slept_cpu = 0;
    return fields;
}

PT_COLD void pt_poll_kept(struct pt_thread *t)
{
    uint64_t head = atomic_load_explicit(&t->ring->head, memory_order_relaxed);
    atomic_store_explicit(&t->ring->pending_head, head + 1, memory_order_release);
    pt_count(&t->ring->polls);
    pt_set_phase(t, PT_PHASE_POLL, t->poll.op);
    disown(t);
}

/* ---- sleeping between polls ----------------------------------------------------------------- */

PT_COLD int pt_poll_slept(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned words)
{
    if (!own_pending(t))
        return 0;
    uint64_t now = pt_now(), dur = now - pass->begin;
    t->poll.slept_cpu += gap_cpu(t, pass);
    if (!t->poll.slept) {
        pass->flags &= PT_RECF_CPU;
        t->poll.sleep = *pass;
        t->poll.sleep_op = op;
        t->poll.sleep_words = words;
    }
    t->poll.slept += dur;
    t->poll.slept_cpu += call_cpu(t, dur);
    t->end = now;
    disown(t);
    return 1;
}

/* ---- the end ----------------------------------------------------------------------------- */

PT_COLD void pt_polls_end(struct pt_thread *t)
{
    if (own_pending(t)) {
        write_pending(t);
        disown(t);
    }
}

PT_COLD void pt_polls_answered(struct pt_thread *t)
{
    if (!own_pending(t))
        return;
    if (t->poll.slept) {
        t->poll.end = t->poll.sleep.begin + t->poll.slept;
        keep_more(t, 0, t->poll.slept_cpu);
        t->poll.slept = t->poll.slept_cpu = 0;
    }
    write_pending(t);
    disown(t);
}

PT_COLD void pt_try_succeeded(struct pt_thread *t)
{
    if (!t->polls || t->poll.look)
        return;
    pt_polls_answered(t);
    pt_count(&t->ring->events);
    pt_set_phase(t, PT_PHASE_COMPUTE, 0);
}

/* ---- the next call ----------------------------------------------------------------------- */

/* The same look again: what is pending goes on in this pass, until it is known how it ends. */
static void resume(struct pt_thread *t, struct pt_pass *pass)
{
    const struct pt_pass *first = &t->poll.first;
    pass->flags = (first->flags & (PT_RECF_CPU | PT_RECF_HELD)) | PT_RECF_POLLS;
    pass->cpu = first->cpu;
    pass->hold = first->hold;
    pass->polls = t->polls;
    pass->waited = pass->begin - (first->begin - first->waited);
    t->polls = 0;
    t->poll.slept = t->poll.slept_cpu = 0;
}

PT_COLD enum pt_poll_next pt_poll_next(struct pt_thread *t, struct pt_pass *pass, int again)
{
    enum pt_poll_next next = PT_POLL_NONE;
    if (!own_pending(t))
        return next;
    if (pass->cls == PT_CLASS_IDLE) {
        next = PT_POLL_PAUSED;
    } else if (again && t->poll.look && pass->cls == PT_CLASS_IO &&
               t->poll.compared == t->poll.serial) { /* not a signal handler's by now */
        resume(t, pass);
        next = PT_POLL_RESUMED;
    } else if (again && !t->poll.look && pass->cls == PT_CLASS_SYNC) {
        pass->flags |= PT_PASS_POLLING;
    } else {
        write_pending(t);
    }
    disown(t);
    return next;
}

PT_COLD int pt_same_number(const uint64_t **w, int64_t value)
{
    return (int64_t) * (*w)++ == value;
}

PT_COLD int pt_same_string(const uint64_t **w, const char *s)
{
    size_t n = pt_string_length(s);
    const uint64_t *have = *w;
    if (*have != n)
        return 0;
    *w += 1 + (n + 7) / 8;
    return !memcmp(have + 1, n ? s : "", n);
}
