#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/spec.h"
#include "preload/process.h"
#include "preload/record.h"
#include "preload/sys.h"

/* ---- time ---------------------------------------------------------------------------- */

void pt_cpu_look(struct pt_thread *t)
{
    t->cpu_at = pt_cpu_clock();
    t->short_time = 0;
    t->unmeasured = 0;
}

uint64_t pt_cpu_used(struct pt_thread *t, uint64_t at_most)
{
    uint64_t before = t->cpu_at, in_between = pt_to_ns(t->short_time);
    pt_cpu_look(t);
    uint64_t used = t->cpu_at - before;
    used = used > in_between ? used - in_between : 0;
    at_most = pt_to_ns(at_most);
    return used < at_most ? used : at_most;
}

/* What of the gap before this call was spent on the CPU. */
static void measure_gap(struct pt_thread *t, struct pt_pass *pass)
{
    uint64_t gap = pass->begin - t->end;
    if (gap <= pt_ticks.long_gap) {
        t->short_time += gap;
        return;
    }
    pass->cpu = pt_cpu_used(t, gap);
    pass->flags |= PT_RECF_CPU;
}

/* One that follows a long gap may well be followed by another, whose CPU time we want to know. */
static int may_go_unmeasured(const struct pt_thread *t, const struct pt_pass *pass, uint64_t dur)
{
    return pass->cls == PT_CLASS_IO && !(pass->flags & PT_RECF_CPU) &&
           t->unmeasured + dur <= pt_ticks.unmeasured;
}

/* What of the call was spent on the CPU: does it spin or sleep when it waits? */
void pt_measure_call(struct pt_thread *t, struct pt_pass *pass, uint64_t dur)
{
    if (may_go_unmeasured(t, pass, dur)) {
        t->unmeasured += dur;
        return;
    }
    pass->busy = pt_cpu_used(t, dur);
    pass->flags |= PT_RECF_BUSY;
}

static void hold(struct pt_thread *t, struct pt_pass *pass, uint16_t op, uint64_t io_event)
{
    pass->hold = pt_hold(t, op);
    pass->flags |= PT_RECF_HELD;
    pt_hold_advance(t, io_event);
    pt_cpu_look(t);
    pass->begin = pt_now();
}

PT_COLD void pt_pass_begin_slow(struct pt_thread *t, struct pt_pass *pass, uint16_t op, int again)
{
    measure_gap(t, pass);
    if (pass->cls == PT_CLASS_SYNC && t->unmeasured) /* its own CPU time is wanted, exactly */
        pt_cpu_look(t);
    if (pt_poll_next(t, pass, again) != PT_POLL_NONE) { /* not held: it was, the first time */
        pt_set_phase(t, PT_PHASE_POLL, op);
        return;
    }
    uint64_t io_event = atomic_load_explicit(&t->ring->io_done, memory_order_relaxed);
    if (pass->cls == PT_CLASS_IO && !t->inner && io_event >= t->hold_next)
        hold(t, pass, op, io_event);
    pt_set_phase(t, pt_phase_of(pass->cls), op);
}

/* ---- what the wrappers share --------------------------------------------------------------- */

int pt_pass_begin_shared(struct pt_thread *t, struct pt_pass *pass, uint16_t op)
{
    return pt_pass_begin_here(t, pass, op);
}

uint64_t *pt_pass_end_shared(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned words,
                             int64_t ret, int err)
{
    return pt_pass_end_here(t, pass, op, words, ret, err);
}

void pt_pass_close_shared(struct pt_thread *t, const struct pt_pass *pass, const uint64_t *w)
{
    pt_pass_close_here(t, pass, w);
}

/* ---- records ----------------------------------------------------------------------------- */

#define LOOKS 100 /* without sleeping: a watchdog at work makes room in less time */

/* Waits until the watchdog has made room, or is gone. */
static int wait_for_room(struct pt_thread *t, uint64_t seen_tail)
{
    struct timespec nap = {0, 500000};
    pt_bell_ring();
    for (int looks = 0; looks < LOOKS && atomic_load(&t->ring->tail) == seen_tail; looks++)
        pt_sys(SYS_sched_yield);
    for (int naps = 1; atomic_load(&t->ring->tail) == seen_tail; naps++) {
        if (t->state != PT_THREAD_READY) /* a signal handler has forked, and this is the child */
            return -1;
        pt_bell_ring();
        pt_sys(SYS_nanosleep, &nap, 0);
        if (naps % 2000 == 0 && !pt_watchdog_alive()) {
            t->state = PT_THREAD_OFF;
            return -1;
        }
    }
    return 0;
}

#define LAST_STEP (128 << 10)
#define WINDOW    (256 << 10)

void pt_record_ring(struct pt_thread *t)
{
    uint64_t size = t->mask + 1, used = t->reserved & ~(uint64_t)(PT_PAGE - 1);
    t->ready = used < PT_FIRST_STEP ? PT_FIRST_STEP : used < size ? used : size;
    t->limit = 0;
}

/*
 * Maps pages of the ring before they are written to, many at a time.  Each step is as long as all
 * before it, so that a program with few events pays for few.
 */
static void make_ready(struct pt_thread *t)
{
    uint64_t from = t->ready, size = t->mask + 1;
    uint64_t step = from < LAST_STEP ? from : LAST_STEP;
    if (step > size - from)
        step = size - from;
    pt_map_pages(t->data + from, step);
    t->ready = from + step;
}

/*
 * As long as the watchdog keeps up, which looks after a few milliseconds by itself, the
 * beginning of the ring is enough: the rest is skipped, and takes no memory.  It is not called
 * for that: what it takes to wake somebody is what a thousand events take.  Until it has seen what
 * was skipped there is room only up to where it is now.
 */
static int start_over(struct pt_thread *t, uint64_t tail)
{
    uint64_t from = t->reserved, at = from & t->mask, rest = t->mask + 1 - at;
    if (!t->writing || t->ready < WINDOW || tail < from - at + WINDOW / 4 * 3)
        return 0;
    /* A signal handler may have taken a place meanwhile. */
    if (!__atomic_compare_exchange_n(&t->reserved, &from, from + rest, 0, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return 0;
    t->open[(t->writing - 1) & (PT_MAX_OPEN - 1)].from = from + rest;
    pt_put_pads(t, at, rest);
    return 1;
}

/* Where the pages that are in place end, in this round through the ring. */
static uint64_t ready_upto(const struct pt_thread *t)
{
    return t->ready > t->mask ? UINT64_MAX / 2 : t->reserved - (t->reserved & t->mask) + t->ready;
}

/* There is room up to `end`: where to look again, so that the watchdog is called in time. */
static uint64_t next_look(const struct pt_thread *t, uint64_t used, uint64_t end)
{
    uint64_t low = end - (t->mask + 1) / 8;
    if (used <= low)
        return low;
    pt_bell_ring();
    return end;
}

/* Looks how far the watchdog has come; 1: there is room for so many bytes. */
static int has_room(struct pt_thread *t, uint64_t need, uint64_t *tail)
{
    *tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
    uint64_t free_upto = *tail + t->mask + 1;
    t->limit = free_upto;
    if (t->reserved + need + PT_SLACK_BYTES > free_upto)
        return 0;
    while (t->reserved + need > ready_upto(t))
        if (!start_over(t, *tail))
            make_ready(t);
    uint64_t used = t->reserved + need + PT_SLACK_BYTES;
    t->limit = next_look(t, used, free_upto);
    if (ready_upto(t) + PT_SLACK_BYTES < t->limit)
        t->limit = ready_upto(t) + PT_SLACK_BYTES;
    return used <= free_upto;
}

PT_COLD int pt_make_room(struct pt_thread *t, uint64_t need)
{
    uint64_t tail;
    if (PT_UNLIKELY(t->state != PT_THREAD_READY)) /* the call began in the parent of this child */
        return 0;
    for (;;) {
        if (has_room(t, need, &tail))
            return 1;
        /* In a signal handler that has filled the ring: what it interrupted has to go on first. */
        int in_vain = t->writing > 1 && atomic_load(&t->ring->head) == tail;
        if (in_vain || pt_process_memory()->full == PT_FULL_DROP || wait_for_room(t, tail)) {
            t->lost++;
            pt_count(&t->ring->dropped);
            atomic_store(&t->ring->pending_head, 0); /* if it was that, it is lost, too */
            return 0;
        }
    }
}

/* Perhaps only its first word fits. */
static void put_pad(unsigned char *at, uint64_t bytes)
{
    struct pt_rec *pad = (struct pt_rec *)at;
    pad->op = PT_REC_PAD;
    pad->words = 0;
    pad->flags = (uint32_t)(bytes / sizeof(uint64_t));
}

PT_COLD void pt_put_pads(struct pt_thread *t, uint64_t at, uint64_t bytes)
{
    while (bytes) {
        uint64_t part = t->mask + 1 - at;
        if (part > bytes)
            part = bytes;
        put_pad(t->data + at, part);
        at = (at + part) & t->mask;
        bytes -= part;
    }
}

PT_COLD void pt_look_at_outer(struct pt_thread *t)
{
    struct pt_open *outer = &t->open[(t->writing - 2) & (PT_MAX_OPEN - 1)];
    if (outer->frame && outer->at == PT_NO_PLACE)
        outer->at = pt_just_taken(t, outer);
}

PT_COLD void pt_commit_nested(struct pt_thread *t)
{
    for (int i = 0; i < PT_MAX_OPEN; i++) {
        const struct pt_open *open = &t->open[i];
        int interrupted = i < t->writing && open->frame && open->at < PT_NONE_TAKEN;
        t->ring->interrupted[i].at = open->at;
        t->ring->interrupted[i].bytes = interrupted ? open->bytes : 0;
    }
    atomic_store_explicit(&t->ring->nested_head, t->reserved, memory_order_release);
}

PT_COLD void *pt_no_place(struct pt_thread *t)
{
    pt_pass_commit(t);
    return NULL;
}

PT_COLD void *pt_wrap(struct pt_thread *t, struct pt_open *open)
{
    uint64_t size = t->mask + 1, at = open->at & t->mask, need = open->bytes;
    for (;;) {
        pt_put_pads(t, at, need);
        open->at = PT_NONE_TAKEN;
        atomic_signal_fence(memory_order_seq_cst);
        open->from = t->reserved;
        if (t->reserved + need + PT_SLACK_BYTES > t->limit && !pt_make_room(t, need))
            return pt_no_place(t);
        atomic_signal_fence(memory_order_seq_cst);
        open->at = PT_NO_PLACE;
        open->at = pt_take(t, need);
        at = open->at & t->mask;
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

PT_COLD unsigned pt_extra_words(uint32_t flags)
{
    return !!(flags & PT_RECF_CPU) + !!(flags & PT_RECF_HELD) + !!(flags & PT_RECF_BUSY) +
           2 * !!(flags & PT_RECF_POLLS);
}

PT_COLD uint64_t *pt_put_extras(uint64_t *w, const struct pt_pass *pass)
{
    if (pass->flags & PT_RECF_CPU)
        *w++ = pass->cpu;
    if (pass->flags & PT_RECF_HELD)
        *w++ = pass->hold;
    if (pass->flags & PT_RECF_BUSY)
        *w++ = pass->busy;
    if (pass->flags & PT_RECF_POLLS) {
        *w++ = pass->polls;
        *w++ = pass->waited;
    }
    return w;
}

uint64_t *pt_put_string(uint64_t *w, const char *s, size_t n)
{
    *w = n;
    memcpy(w + 1, n ? s : "", n);
    return w + 1 + (n + 7) / 8;
}

/* ---- marks -------------------------------------------------------------------------------- */

#define NOTE_BYTES (2 * sizeof(struct pt_rec)) /* it may have to be put behind the ring's end */

/* A record that is no event: a time and a number, perhaps a thread id. */
static void put_note(struct pt_thread *t, uint16_t what, uint64_t when, uint64_t value,
                     uint32_t tid)
{
    struct pt_rec *rec = pt_reserve(t, PT_HEAD_WORDS);
    if (!rec)
        return;
    *rec = (struct pt_rec){
        .op = what, .words = PT_HEAD_WORDS, .flags = tid, .begin = when, .dur = value};
    pt_pass_commit(t);
}

void pt_record_thread(struct pt_thread *t, uint32_t number)
{
    uint64_t tail;
    /* This note must not be lost: what follows would be taken for the thread's before us. */
    while (!has_room(t, NOTE_BYTES, &tail))
        if (wait_for_room(t, tail))
            return;
    put_note(t, PT_REC_BEGIN, t->end, number, (uint32_t)atomic_load(&t->ring->tid));
}

/*
 * The watchdog writes the event, when nothing follows any more: other libraries' destructors
 * may still do I/O after ours.
 */
void pt_record_exit(struct pt_thread *t)
{
    if (t->state != PT_THREAD_READY)
        return;
    struct pt_pass pass = {.cls = PT_CLASS_IO};
    pt_abandon_records(t);
    pt_polls_end(t);
    pass.begin = pt_now();
    uint64_t gap = pass.begin - t->end;
    measure_gap(t, &pass);
    uint64_t tail;
    if (pt_process_memory()->full == PT_FULL_WAIT || has_room(t, NOTE_BYTES, &tail))
        put_note(t, PT_REC_END, pass.begin, pass.flags & PT_RECF_CPU ? pass.cpu : pt_to_ns(gap), 0);
    atomic_store(&t->ring->state, PT_SLOT_ENDED);
}

/* A mark takes no time of the program's: the gap before it belongs to the next event. */
static uint64_t *mark_begin(struct pt_thread *t, uint16_t op, unsigned words)
{
    pt_polls_end(t);
    struct pt_pass pass = {.cls = PT_CLASS_NAME, .begin = t->end};
    return pt_record_begin(t, &pass, op, words, t->end, 0, 0);
}

void pt_record_identity(struct pt_thread *t, const struct pt_pass *about)
{
    uint64_t *w = mark_begin(t, PT_OP_identity, 5);
    if (!w)
        return;
    *w++ = (uint64_t)about->fd;
    pt_put_ident(w, about);
    pt_pass_commit(t);
}

void pt_record_inherited(struct pt_thread *t, const char *path, int flags,
                         const struct pt_pass *about)
{
    size_t n = pt_string_length(path);
    uint64_t *w = mark_begin(t, PT_OP_inherited, 7 + pt_string_words(n));
    if (!w)
        return;
    *w++ = (uint64_t)about->fd;
    *w++ = (uint64_t)AT_FDCWD;
    w = pt_put_string(w, path, n);
    *w++ = (uint64_t)flags;
    pt_put_ident(w, about);
    pt_pass_commit(t);
}

void pt_record_blind(struct pt_thread *t, const char *reason, const char *path)
{
    size_t why = pt_string_length(reason), which = pt_string_length(path);
    uint64_t *w = mark_begin(t, PT_OP_blind, 1 + pt_string_words(why) + pt_string_words(which));
    if (!w)
        return;
    w = pt_put_string(w, reason, why);
    *w++ = (uint64_t)AT_FDCWD;
    pt_put_string(w, path, which);
    pt_pass_commit(t);
}
