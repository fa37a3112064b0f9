#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/spec.h"
#include "preload/sys.h"
#include "preload/tracer.h"

#define HEAD_WORDS (sizeof(struct pt_rec) / sizeof(uint64_t))
#define SOMETIMES  (PT_RECF_CPU | PT_RECF_HELD | PT_RECF_BUSY | PT_RECF_POLLS)

/*
 * Room that is left when a record is begun: a signal handler that interrupts us here
 * may write one too, after we have looked how much there is.
 */
#define SLACK_BYTES (PT_REC_MAX_WORDS * sizeof(uint64_t))

/* ---- time ---------------------------------------------------------------------------- */

/* The CPU time used since the clock was read last, less what short gaps and calls took. */
static uint64_t cpu_used(struct pt_thread *t, uint64_t at_most)
{
    uint64_t cpu = pt_clock(CLOCK_THREAD_CPUTIME_ID), used = cpu - t->cpu_at;
    used = used > t->short_ns ? used - t->short_ns : 0;
    t->cpu_at = cpu;
    t->short_ns = 0;
    return used < at_most ? used : at_most;
}

/* What of the gap before this call was spent on the CPU. */
static inline void measure_gap(struct pt_thread *t, struct pt_pass *pass)
{
    uint64_t gap = pass->begin - t->end;
    if (PT_LIKELY(gap <= PT_LONG_NS)) {
        t->short_ns += gap;
        return;
    }
    pass->cpu = cpu_used(t, gap);
    pass->flags |= PT_RECF_CPU;
}

/* What of the call was spent on the CPU: does it spin or sleep when it waits? */
static inline void measure_call(struct pt_thread *t, struct pt_pass *pass, uint64_t dur)
{
    if (PT_LIKELY(dur <= PT_LONG_NS)) {
        t->short_ns += dur;
        return;
    }
    pass->busy = cpu_used(t, dur);
    pass->flags |= PT_RECF_BUSY;
}

/* ---- the phase -------------------------------------------------------------------------- */

static inline void set_phase(struct pt_thread *t, enum pt_phase phase, uint16_t op)
{
    atomic_store_explicit(&t->ring->phase, PT_PHASE_WORD(phase, op), memory_order_release);
}

static inline int to_be_held(const struct pt_thread *t)
{
    uint64_t period = atomic_load_explicit(&t->ring->hold_period, memory_order_relaxed);
    return PT_UNLIKELY(period != 0) && !t->inner &&
           atomic_load_explicit(&t->ring->io_done, memory_order_relaxed) % period == 0;
}

void pt_pass_begin(struct pt_thread *t, struct pt_pass *pass, uint16_t op)
{
    static const unsigned char phases[PT_NCLASSES] = {
        [PT_CLASS_IO] = PT_PHASE_IO,
        [PT_CLASS_SYNC] = PT_PHASE_SYNC,
        [PT_CLASS_IDLE] = PT_PHASE_IDLE,
        [PT_CLASS_NAME] = PT_PHASE_IO,
    };
    pass->begin = pt_now();
    if (PT_UNLIKELY(t->poll.count) && t->poll.op != op)
        pt_polls_end(t);
    measure_gap(t, pass);
    if (pass->cls == PT_CLASS_IO && to_be_held(t)) {
        pass->hold = pt_hold(t, op);
        pass->flags |= PT_RECF_HELD;
        t->cpu_at = pt_clock(CLOCK_THREAD_CPUTIME_ID);
        t->short_ns = 0;
        pass->begin = pt_now();
    }
    set_phase(t, phases[pass->cls], op);
}

static inline void count(_Atomic uint64_t *counter)
{
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed) + 1;
    atomic_store_explicit(counter, n, memory_order_release);
}

void pt_pass_done(struct pt_thread *t, const struct pt_pass *pass)
{
    if (pass->cls == PT_CLASS_IO && !t->inner)
        count(&t->ring->io_done);
    count(&t->ring->events);
    set_phase(t, PT_PHASE_COMPUTE, 0);
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

/*
 * Moves the thread's end of the ring, in one instruction where the processor has one:
 * a signal handler that comes in between then gets a place of its own.
 */
static inline uint64_t take(struct pt_thread *t, uint64_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("xaddq %0, %1" : "+r"(bytes), "+m"(t->reserved) : : "cc");
    return bytes;
#else
    return __atomic_fetch_add(&t->reserved, bytes, __ATOMIC_RELAXED);
#endif
}

static void put_pad(unsigned char *at, uint64_t bytes)
{
    struct pt_rec *pad = (struct pt_rec *)at; /* perhaps only its first word fits */
    pad->op = PT_REC_PAD;
    pad->words = (uint16_t)(bytes / sizeof(uint64_t));
}

static int has_room(struct pt_thread *t, uint64_t need)
{
    const struct pt_shm *shm = pt_process_shm();
    for (;;) {
        uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
        if (PT_LIKELY(t->reserved + need + SLACK_BYTES - tail <= shm->ring_size))
            return 1;
        if (shm->full == PT_FULL_DROP || wait_for_room(t, tail)) {
            t->lost++;
            return 0;
        }
    }
}

/* Makes everything written so far visible, unless we have interrupted ourselves. */
static inline void release(struct pt_thread *t)
{
    if (--t->writing)
        return;
    uint64_t old = atomic_load_explicit(&t->ring->head, memory_order_relaxed), head;
    do {
        head = *(volatile uint64_t *)&t->reserved;
        atomic_store_explicit(&t->ring->head, head, memory_order_release);
    } while (PT_UNLIKELY(head != *(volatile uint64_t *)&t->reserved));
    if (PT_UNLIKELY((old ^ head) & (pt_process_shm()->ring_size / 2)))
        pt_bell_ring(); /* half a ring is full: time to drain it */
}

/* A place for `words` contiguous words; NULL if the event has to be dropped. */
static struct pt_rec *reserve(struct pt_thread *t, unsigned words)
{
    uint64_t size = pt_process_shm()->ring_size, need = words * sizeof(uint64_t);
    t->writing++;
    while (PT_LIKELY(has_room(t, need))) {
        uint64_t at = take(t, need) & (size - 1);
        if (PT_LIKELY(at + need <= size))
            return (struct pt_rec *)(t->ring->data + at);
        put_pad(t->ring->data + at, size - at);
        put_pad(t->ring->data, need - (size - at));
    }
    release(t);
    return NULL;
}

/* Tells how many events were dropped, at the place where they are missing. */
static int record_loss(struct pt_thread *t)
{
    struct pt_rec *rec = reserve(t, HEAD_WORDS);
    if (!rec)
        return -1;
    *rec = (struct pt_rec){.op = PT_REC_LOSS, .words = HEAD_WORDS, .begin = t->lost};
    t->lost = 0;
    release(t);
    return 0;
}

/* Begins a record of a call that ended at `end`; returns where its fields go, or NULL. */
static uint64_t *record_begin(struct pt_thread *t, const struct pt_pass *pass, uint16_t op,
                              unsigned words, uint64_t end, int64_t ret, int err)
{
    if (PT_UNLIKELY(t->lost) && record_loss(t))
        return NULL;
    /* errno or result, and what is known of the rest */
    words += HEAD_WORDS + 1 + (unsigned)__builtin_popcount(pass->flags & SOMETIMES);
    struct pt_rec *rec = reserve(t, words);
    if (!rec)
        return NULL;
    uint32_t flags = pass->flags | (pass->cls == PT_CLASS_SYNC ? PT_RECF_SYNC : 0) |
                     (t->inner ? PT_RECF_INNER : 0);
    uint64_t *w = (uint64_t *)(rec + 1);
    rec->op = op;
    rec->words = (uint16_t)words;
    rec->begin = pass->begin;
    rec->dur = end - pass->begin;
    if (PT_UNLIKELY(err)) {
        flags |= PT_RECF_FAILED;
        *w++ = (uint64_t)err;
    }
    if (PT_UNLIKELY(flags & SOMETIMES)) {
        if (flags & PT_RECF_CPU)
            *w++ = pass->cpu;
        if (flags & PT_RECF_HELD)
            *w++ = pass->hold;
        if (flags & PT_RECF_BUSY)
            *w++ = pass->busy;
        if (flags & PT_RECF_POLLS)
            *w++ = pass->polls;
    }
    if (PT_LIKELY(!err))
        *w++ = (uint64_t)ret;
    rec->flags = flags;
    return w;
}

uint64_t *pt_pass_end(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned words,
                      int64_t ret, int err)
{
    uint64_t now = pt_now();
    t->end = now;
    measure_call(t, pass, now - pass->begin);
    return record_begin(t, pass, op, words, now, ret, err);
}

void pt_pass_commit(struct pt_thread *t)
{
    release(t);
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
    t->short_ns += t->end - pass->begin;
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
    uint64_t *w = record_begin(t, &pass, t->poll.op, t->poll.words, t->end, 0, 0);
    if (w) {
        memset(w, 0, t->poll.words * sizeof(*w));
        pt_pass_commit(t);
    }
}

/* ---- marks -------------------------------------------------------------------------------- */

void pt_record_exit(struct pt_thread *t)
{
    if (t->state != PT_THREAD_READY)
        return;
    struct pt_pass pass = {.cls = PT_CLASS_IO, .begin = pt_now()};
    if (t->poll.count)
        pt_polls_end(t);
    measure_gap(t, &pass);
    if (pt_pass_end(t, &pass, PT_OP_exit, 0, 0, 0))
        pt_pass_commit(t);
    pt_pass_done(t, &pass);
    t->state = PT_THREAD_OFF;
    atomic_store(&t->ring->state, PT_SLOT_ENDED);
}

/* A mark takes no time of the program's: the gap before it belongs to the next event. */
static uint64_t *mark_begin(struct pt_thread *t, uint16_t op, unsigned words)
{
    struct pt_pass pass = {.cls = PT_CLASS_NAME, .begin = t->end};
    return record_begin(t, &pass, op, words, t->end, 0, 0);
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
