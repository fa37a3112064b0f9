/*
 * Writing records: the part that every event goes through, inline; what is seldom
 * needed is in record.c.
 */
#ifndef PT_RECORD_H
#define PT_RECORD_H

#include <errno.h>

#include "preload/tracer.h"

#define PT_INLINE static inline __attribute__((always_inline))
#define PT_COLD   __attribute__((cold, noinline))

#define PT_HEAD_WORDS (sizeof(struct pt_rec) / sizeof(uint64_t))
#define PT_SOMETIMES  (PT_RECF_CPU | PT_RECF_HELD | PT_RECF_BUSY | PT_RECF_POLLS)

/*
 * Room that is left when a record is begun: a signal handler that interrupts us there
 * may write one too, after we have looked how much there is.
 */
#define PT_SLACK_BYTES (PT_REC_MAX_WORDS * sizeof(uint64_t))
#define PT_AHEAD_BYTES 512

/* ---- before the call ------------------------------------------------------------------ */

/* A long gap, polls to write, a hold. */
void pt_pass_begin_slow(struct pt_thread *t, struct pt_pass *pass, uint16_t op);

PT_INLINE void pt_set_phase(struct pt_thread *t, enum pt_phase phase, uint16_t op)
{
    atomic_store_explicit(&t->ring->phase, PT_PHASE_WORD(phase, op), memory_order_release);
}

PT_INLINE enum pt_phase pt_phase_of(enum pt_class cls)
{
    return cls == PT_CLASS_SYNC   ? PT_PHASE_SYNC
           : cls == PT_CLASS_IDLE ? PT_PHASE_IDLE
                                  : PT_PHASE_IO;
}

/* Clock, phase, and the hold if this I/O is to be held. */
PT_INLINE void pt_pass_begin(struct pt_thread *t, struct pt_pass *pass, uint16_t op)
{
    uint64_t now = pt_now(), gap = now - t->end;
    pass->begin = now;
    pass->flags = 0;
    if (PT_UNLIKELY(gap > pt_ticks.long_time) || PT_UNLIKELY(t->poll.count) ||
        PT_UNLIKELY(t->ring->hold_period))
        pt_pass_begin_slow(t, pass, op);
    else
        t->short_time += gap;
    pt_set_phase(t, pt_phase_of(pass->cls), op);
}

/* ---- records ------------------------------------------------------------------------------ */

/* Waits for room or drops; 0 if the event is lost. */
int pt_make_room(struct pt_thread *t, uint64_t need);
/* Fills the ring's end, where the record did not fit, and takes the next place. */
void *pt_wrap(struct pt_thread *t, uint64_t at, uint64_t need);
/* Says how many events were lost; -1 if there is still no room. */
int pt_record_loss(struct pt_thread *t);
/* The words that are there only sometimes; returns what is behind them. */
uint64_t *pt_put_extras(uint64_t *w, const struct pt_pass *pass);
/* CPU time of a long call. */
void pt_measure_call(struct pt_thread *t, struct pt_pass *pass, uint64_t dur);

/*
 * Moves the thread's end of the ring, in one instruction where the processor has one:
 * a signal handler that comes in between then gets a place of its own.
 */
PT_INLINE uint64_t pt_take(struct pt_thread *t, uint64_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("xaddq %0, %1" : "+r"(bytes), "+m"(t->reserved) : : "cc");
    return bytes;
#else
    return __atomic_fetch_add(&t->reserved, bytes, __ATOMIC_RELAXED);
#endif
}

/* Makes everything written so far visible, unless we have interrupted ourselves. */
PT_INLINE void pt_pass_commit(struct pt_thread *t)
{
    if (PT_UNLIKELY(--t->writing))
        return;
    uint64_t old = atomic_load_explicit(&t->ring->head, memory_order_relaxed), head;
    do {
        head = *(volatile uint64_t *)&t->reserved;
        atomic_store_explicit(&t->ring->head, head, memory_order_release);
    } while (PT_UNLIKELY(head != *(volatile uint64_t *)&t->reserved));
    if (PT_UNLIKELY((old ^ head) & ((t->mask + 1) / 2)))
        pt_bell_ring(); /* half a ring is full: time to drain it */
}

/* A place for `words` contiguous words; NULL if the event has to be dropped. */
PT_INLINE struct pt_rec *pt_reserve(struct pt_thread *t, unsigned words)
{
    uint64_t need = words * sizeof(uint64_t);
    t->writing++;
    if (PT_UNLIKELY(t->reserved + need + PT_SLACK_BYTES > t->limit) && !pt_make_room(t, need)) {
        pt_pass_commit(t);
        return NULL;
    }
    uint64_t at = pt_take(t, need) & t->mask;
    if (PT_UNLIKELY(at + need > t->mask + 1))
        return pt_wrap(t, at, need);
    /* The lines to come were last read by the watchdog, on another core. */
    __builtin_prefetch(t->data + ((at + PT_AHEAD_BYTES) & t->mask), 1);
    return (struct pt_rec *)(t->data + at);
}

/* Begins a record of a call that ended at `end`; returns where its fields go, or NULL. */
PT_INLINE uint64_t *pt_record_begin(struct pt_thread *t, const struct pt_pass *pass, uint16_t op,
                                    unsigned words, uint64_t end, int64_t ret, int err)
{
    if (PT_UNLIKELY(t->lost) && pt_record_loss(t))
        return NULL;
    uint32_t flags = pass->flags;
    words += PT_HEAD_WORDS + 1; /* errno or result */
    if (PT_UNLIKELY(flags))
        words += (unsigned)__builtin_popcount(flags & PT_SOMETIMES);
    struct pt_rec *rec = pt_reserve(t, words);
    if (PT_UNLIKELY(!rec))
        return NULL;
    uint64_t *w = (uint64_t *)(rec + 1);
    flags |= (pass->cls == PT_CLASS_SYNC ? PT_RECF_SYNC : 0) | (t->inner ? PT_RECF_INNER : 0) |
             (err ? PT_RECF_FAILED : 0);
    *rec = (struct pt_rec){op, (uint16_t)words, flags, pass->begin, end - pass->begin};
    if (PT_UNLIKELY(err))
        *w++ = (uint64_t)err;
    if (PT_UNLIKELY(flags & PT_SOMETIMES))
        w = pt_put_extras(w, pass);
    if (PT_LIKELY(!err))
        *w++ = (uint64_t)ret;
    return w;
}

/*
 * After the call: reserves a record with that many words of fields and fills its head;
 * returns where the fields go, or NULL if the event is lost.  pt_pass_commit() follows.
 */
PT_INLINE uint64_t *pt_pass_end(struct pt_thread *t, struct pt_pass *pass, uint16_t op,
                                unsigned words, int64_t ret, int err)
{
    uint64_t now = pt_now(), dur = now - pass->begin;
    t->end = now;
    if (PT_LIKELY(dur <= pt_ticks.long_time))
        t->short_time += dur;
    else
        pt_measure_call(t, pass, dur);
    return pt_record_begin(t, pass, op, words, now, ret, err);
}

PT_INLINE void pt_count(_Atomic uint64_t *counter)
{
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed) + 1;
    atomic_store_explicit(counter, n, memory_order_release);
}

/* The event was made or lost: counters and phase. */
PT_INLINE void pt_pass_done(struct pt_thread *t, const struct pt_pass *pass)
{
    if (pass->cls == PT_CLASS_IO && !t->inner)
        pt_count(&t->ring->io_done);
    pt_count(&t->ring->events);
    pt_set_phase(t, PT_PHASE_COMPUTE, 0);
}

/* A string field: how many words it takes, and writing it. */
unsigned pt_string_words(const char *s);
uint64_t *pt_put_string(uint64_t *w, const char *s);

/* Instead of pass_end: asked in vain.  A row of those becomes one event. */
void pt_poll_failed(struct pt_thread *t, const struct pt_pass *pass, uint16_t op, unsigned words);
/* Writes that event. */
void pt_polls_end(struct pt_thread *t);

#endif
