/*
 * Writing records: the part that every event goes through, inline; what is seldom
 * needed is in record.c.
 */
#ifndef PT_RECORD_H
#define PT_RECORD_H

#include <errno.h>

#include "preload/passed.h"

#define PT_INLINE static inline __attribute__((always_inline))
#define PT_COLD   __attribute__((cold, noinline))

#define PT_HEAD_WORDS (sizeof(struct pt_rec) / sizeof(uint64_t))
#define PT_SOMETIMES  (PT_RECF_CPU | PT_RECF_HELD | PT_RECF_BUSY | PT_RECF_POLLS)

/* Among a pass' flags, not a record's: polls before it are not written yet. */
#define PT_PASS_POLLING (1u << 31)

/*
 * Room that is left when a record is begun: a signal handler that interrupts us there
 * may write one too, after we have looked how much there is.
 */
#define PT_SLACK_BYTES (PT_REC_MAX_WORDS * sizeof(uint64_t))
#define PT_AHEAD_BYTES 512
#define PT_SHORT_GAP   (1u << 30) /* ticks, since the record before */

/* ---- before the call ------------------------------------------------------------------ */

/*
 * The calls that come by the million have all of their code in their wrappers.  The others
 * share it (the functions called _shared): a program that makes many kinds of calls finds little of
 * what each of them has for itself in the processor's caches.
 */
#define pt_is_frequent(op)       \
    (__builtin_constant_p(op) && \
     ((op) == PT_OP_read || (op) == PT_OP_write || (op) == PT_OP_pread || (op) == PT_OP_pwrite))

/* A long gap, polls to write or to go on with, a hold; and the phase. */
void pt_pass_begin_slow(struct pt_thread *t, struct pt_pass *pass, uint16_t op, int again);

PT_INLINE void pt_set_phase(struct pt_thread *t, enum pt_phase phase, uint16_t op)
{
    if (PT_UNLIKELY(t->inner) && phase != PT_PHASE_IO)
        phase = PT_PHASE_INSIDE;
    atomic_store_explicit(&t->ring->phase, PT_PHASE_WORD(phase, op), memory_order_release);
}

PT_INLINE enum pt_phase pt_phase_of(enum pt_class cls)
{
    return cls == PT_CLASS_SYNC   ? PT_PHASE_SYNC
           : cls == PT_CLASS_IDLE ? PT_PHASE_IDLE
                                  : PT_PHASE_IO;
}

/* The clock; 1 if there is more to do than usual. */
PT_INLINE int pt_pass_clock(struct pt_thread *t, struct pt_pass *pass)
{
    uint64_t now = pt_now(), gap = now - t->end;
    pass->begin = now;
    pass->flags = 0;
    if (PT_UNLIKELY(gap > pt_ticks.long_gap) || PT_UNLIKELY(t->polls) ||
        (pass->cls == PT_CLASS_SYNC && PT_UNLIKELY(t->unmeasured)) ||
        PT_UNLIKELY(atomic_load_explicit(&t->ring->io_done, memory_order_relaxed) >= t->hold_next))
        return 1;
    t->short_time += gap;
    return 0;
}

/* Clock and phase; 1 if pt_pass_begin_slow() has to do the rest. */
PT_INLINE int pt_pass_begin_here(struct pt_thread *t, struct pt_pass *pass, uint16_t op)
{
    if (PT_UNLIKELY(pt_pass_clock(t, pass)))
        return 1;
    pt_set_phase(t, pt_phase_of(pass->cls), op);
    return 0;
}

int pt_pass_begin_shared(struct pt_thread *t, struct pt_pass *pass, uint16_t op);

/*
 * Clock, phase, and the hold if this I/O is to be held.  `again`, which is evaluated only if
 * needed: the call may go on with pending polls, being a sync call that asks or the same look.
 */
#define pt_pass_begin_by(way, t, pass, op, again)          \
    do {                                                   \
        if (PT_UNLIKELY(pt_pass_begin_##way(t, pass, op))) \
            pt_pass_begin_slow(t, pass, op, again);        \
    } while (0)

#define pt_pass_begin(t, pass, op, again)                 \
    do {                                                  \
        if (pt_is_frequent(op))                           \
            pt_pass_begin_by(here, t, pass, op, again);   \
        else                                              \
            pt_pass_begin_by(shared, t, pass, op, again); \
    } while (0)

/* ---- records ------------------------------------------------------------------------------ */

/* Waits for room or drops; 0 if the event is lost. */
int pt_make_room(struct pt_thread *t, uint64_t need);
/* Takes a pt_reserve() back. */
void *pt_no_place(struct pt_thread *t);
/* Fills the ring's end, where the record did not fit, and takes the next place. */
void *pt_wrap(struct pt_thread *t, struct pt_open *open);
/* Makes a place in the ring one to be skipped; it may go on at the ring's beginning. */
void pt_put_pads(struct pt_thread *t, uint64_t at, uint64_t bytes);
/* Says how many events were lost; -1 if there is still no room. */
int pt_record_loss(struct pt_thread *t);
/* The words that are there only sometimes: their number; writing them, returns what is behind. */
unsigned pt_extra_words(uint32_t flags);
uint64_t *pt_put_extras(uint64_t *w, const struct pt_pass *pass);
/* The CPU time used since the clock was read last, less what short gaps and calls took, ns. */
uint64_t pt_cpu_used(struct pt_thread *t, uint64_t at_most);
/* The CPU time of a long call, if it is to be known. */
void pt_measure_call(struct pt_thread *t, struct pt_pass *pass, uint64_t dur);

/* ---- polls, as far as they are met here; poll.h has the rest ---- */

enum pt_poll_next {
    PT_POLL_NONE,    /* an ordinary call */
    PT_POLL_PAUSED,  /* a sleep between two polls, perhaps */
    PT_POLL_RESUMED, /* the pending look again */
};

/* Before a call: what is it to the pending polls?  They are written if it ends them. */
enum pt_poll_next pt_poll_next(struct pt_thread *t, struct pt_pass *pass, int again);
/* Writes them, and a sleep after them as one of its own; nothing if there are none. */
void pt_polls_end(struct pt_thread *t);
/* The same, where the sleep was before a poll that succeeded. */
void pt_polls_answered(struct pt_thread *t);

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

/* We have interrupted ourselves: says where the records are if this is the process' end. */
void pt_commit_nested(struct pt_thread *t);

/* Makes everything written so far visible, unless we have interrupted ourselves. */
PT_INLINE void pt_pass_commit(struct pt_thread *t)
{
    t->open[(t->writing - 1) & (PT_MAX_OPEN - 1)].frame = NULL;
    if (PT_UNLIKELY(--t->writing)) {
        pt_commit_nested(t);
        return;
    }
    uint64_t head;
    do {
        head = *(volatile uint64_t *)&t->reserved;
        atomic_store_explicit(&t->ring->head, head, memory_order_release);
    } while (PT_UNLIKELY(head != *(volatile uint64_t *)&t->reserved));
}

/* The lines to come were last read by the watchdog, on another core. */
PT_INLINE void pt_fetch_to_write(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line)); /* gcc fetches to read */
#else
    __builtin_prefetch(line, 1);
#endif
}

/* Where the record is if nobody has taken a place after it. */
PT_INLINE uint64_t pt_just_taken(const struct pt_thread *t, const struct pt_open *open)
{
    return t->reserved - open->from == open->bytes ? open->from : PT_NONE_TAKEN;
}

/* We have interrupted ourselves: finds out whether the outer record has taken its place yet. */
void pt_look_at_outer(struct pt_thread *t);

/* A place for `words` contiguous words; NULL if the event has to be dropped. */
PT_INLINE struct pt_rec *pt_reserve(struct pt_thread *t, unsigned words)
{
    uint64_t need = words * sizeof(uint64_t);
    struct pt_open *open = &t->open[t->writing++ & (PT_MAX_OPEN - 1)];
    open->from = t->reserved;
    open->at = PT_NO_PLACE;
    open->bytes = need;
    atomic_signal_fence(memory_order_seq_cst);
    open->frame = __builtin_frame_address(0); /* from here on the rest holds */
    atomic_signal_fence(memory_order_seq_cst);
    if (PT_UNLIKELY(t->writing > 1))
        pt_look_at_outer(t);
    if (PT_UNLIKELY(t->reserved + need + PT_SLACK_BYTES > t->limit) && !pt_make_room(t, need))
        return pt_no_place(t);
    uint64_t at = pt_take(t, need);
    open->at = at;
    at &= t->mask;
    atomic_signal_fence(memory_order_seq_cst);
    if (PT_UNLIKELY(at + need > t->mask + 1))
        return pt_wrap(t, open);
    pt_fetch_to_write(t->data + ((at + PT_AHEAD_BYTES) & t->mask));
    return (struct pt_rec *)(t->data + at);
}

/* The words of a record: head, errno or result, what there is sometimes, and the fields. */
PT_INLINE unsigned pt_record_words(uint32_t flags, unsigned fields)
{
    unsigned words = fields + PT_HEAD_WORDS + 1;
    if (PT_UNLIKELY(flags))
        words += pt_extra_words(flags);
    return words;
}

/* Fills a record's place; returns where its fields go. */
PT_INLINE uint64_t *pt_record_fill(const struct pt_thread *t, struct pt_rec *rec,
                                   const struct pt_pass *pass, uint16_t op, unsigned words,
                                   uint64_t end, int64_t ret, int err)
{
    uint64_t *w = (uint64_t *)(rec + 1);
    uint32_t flags = pass->flags;
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

/* Begins a record of a call that ended at `end`; returns where its fields go, or NULL. */
PT_INLINE uint64_t *pt_record_begin(struct pt_thread *t, struct pt_pass *pass, uint16_t op,
                                    unsigned words, uint64_t end, int64_t ret, int err)
{
    if (PT_UNLIKELY(pass->flags) && pass->flags & PT_PASS_POLLING) {
        pass->flags &= ~PT_PASS_POLLING;
        pt_polls_answered(t);
    }
    if (PT_UNLIKELY(t->lost) && pt_record_loss(t))
        return NULL;
    words = pt_record_words(pass->flags, words);
    struct pt_rec *rec = pt_reserve(t, words);
    if (PT_UNLIKELY(!rec))
        return NULL;
    t->told = end;
    return pt_record_fill(t, rec, pass, op, words, end, ret, err);
}

/*
 * After the call: reserves a record with that many words of fields and fills its head;
 * returns where the fields go, or NULL if the event is lost.  pt_pass_commit() follows.
 */
PT_INLINE uint64_t *pt_pass_end_here(struct pt_thread *t, struct pt_pass *pass, uint16_t op,
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

uint64_t *pt_pass_end_shared(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned words,
                             int64_t ret, int err);

#define pt_pass_end(t, pass, op, words, ret, err)                        \
    (pt_is_frequent(op) ? pt_pass_end_here(t, pass, op, words, ret, err) \
                        : pt_pass_end_shared(t, pass, op, words, ret, err))

PT_INLINE void pt_count_more(_Atomic uint64_t *counter, uint64_t more)
{
    uint64_t n = atomic_load_explicit(counter, memory_order_relaxed) + more;
    atomic_store_explicit(counter, n, memory_order_release);
}

PT_INLINE void pt_count(_Atomic uint64_t *counter)
{
    pt_count_more(counter, 1);
}

/* The event was made or lost: counters and phase. */
PT_INLINE void pt_pass_done(struct pt_thread *t, const struct pt_pass *pass)
{
    if (pass->cls == PT_CLASS_IO && !t->inner)
        pt_count(&t->ring->io_done);
    if (pass->cls != PT_CLASS_IDLE) /* to sleep in a loop may be a way to wait */
        pt_count(&t->ring->events);
    pt_set_phase(t, PT_PHASE_COMPUTE, 0);
}

/* Both, where pt_pass_end() gave `w`. */
PT_INLINE void pt_pass_close_here(struct pt_thread *t, const struct pt_pass *pass,
                                  const uint64_t *w)
{
    if (PT_LIKELY(w != NULL))
        pt_pass_commit(t);
    pt_pass_done(t, pass);
}

void pt_pass_close_shared(struct pt_thread *t, const struct pt_pass *pass, const uint64_t *w);

#define pt_pass_close(t, pass, op, w) \
    (pt_is_frequent(op) ? pt_pass_close_here(t, pass, w) : pt_pass_close_shared(t, pass, w))

/*
 * Writes the short form of a record, of a call that began at `begin` and moved so many of the
 * bytes that it was asked for; 0 if it has to have the long one.
 */
PT_INLINE int pt_put_short(struct pt_thread *t, uint16_t op, int64_t fd_word, int64_t asked,
                           int64_t moved, uint64_t begin, uint64_t dur)
{
    uint64_t told = t->told, len = (uint64_t)moved;
    uint32_t fd = (uint32_t)fd_word, handle = (uint32_t)((uint64_t)fd_word >> 32);
    if (moved != asked) {
        if ((uint64_t)asked > PT_PART_MAX || (uint64_t)moved > PT_PART_MAX)
            return 0;
        op |= PT_PART;
        len = PT_PARTS(asked, moved);
    }
    if (dur >= PT_SHORT || begin - told > PT_SHORT_GAP || len > UINT32_MAX ||
        fd >= PT_SHORT_MAX_FD || handle >= PT_SHORT_MAX_HANDLE || t->lost || t->inner)
        return 0;
    struct pt_rec *place = pt_reserve(t, sizeof(struct pt_short) / sizeof(uint64_t));
    if (PT_UNLIKELY(!place))
        return 1; /* lost, and counted */
    /* Was there a signal handler, whose records are between the last one and this? */
    int between = t->told != told;
    if (PT_UNLIKELY(between)) {
        pt_put_pads(t, (uint64_t)((unsigned char *)place - t->data), sizeof(struct pt_short));
    } else {
        *(struct pt_short *)place =
            (struct pt_short){op, (uint16_t)(PT_SHORT | dur), (uint32_t)begin,
                              PT_SHORT_FILE(fd, handle), (uint32_t)len};
        t->told = begin + dur;
        t->told_file = PT_SHORT_FILE(fd, handle);
    }
    pt_pass_commit(t);
    return !between;
}

#define PT_TINY_GAP (1u << 27) /* ticks, since the record before */

/* The same with the tiny form, for a call that took no time. */
PT_INLINE int pt_put_tiny(struct pt_thread *t, uint16_t op, int64_t fd_word, int64_t len,
                          int64_t inlined, uint64_t begin)
{
    uint64_t told = t->told;
    uint32_t fd = (uint32_t)fd_word, handle = (uint32_t)((uint64_t)fd_word >> 32);
    if (begin - told > PT_TINY_GAP || len > PT_TINY_MAX_LEN || inlined > PT_TINY_MAX_INLINED ||
        PT_SHORT_FILE(fd, handle) != t->told_file || fd >= PT_SHORT_MAX_FD ||
        handle >= PT_SHORT_MAX_HANDLE || t->lost)
        return 0;
    struct pt_rec *place = pt_reserve(t, 1);
    if (PT_UNLIKELY(!place))
        return 1; /* lost, and counted */
    int between = t->told != told || t->told_file != PT_SHORT_FILE(fd, handle);
    if (PT_UNLIKELY(between)) {
        pt_put_pads(t, (uint64_t)((unsigned char *)place - t->data), sizeof(uint64_t));
    } else {
        *(uint64_t *)place = pt_tiny_word(op, (uint64_t)len, (uint64_t)inlined, begin);
        t->told = begin;
    }
    pt_pass_commit(t);
    return !between;
}

/* The words of IDENT, which end a record. */
PT_INLINE void pt_put_ident(uint64_t *w, const struct pt_pass *about)
{
    w[0] = about->ident.handle;
    w[1] = about->ident.dev;
    w[2] = about->ident.ino;
    w[3] = about->ident.size;
}

/*
 * A string of that length as a field: how many words it takes, and writing it.  The length is
 * looked for once: what a name's memory holds may have changed since.
 */
PT_INLINE unsigned pt_text_words(size_t n) /* of its text alone */
{
    return (unsigned)(n + 7) / 8;
}

PT_INLINE unsigned pt_string_words(size_t n)
{
    return 1 + pt_text_words(n);
}

uint64_t *pt_put_string(uint64_t *w, const char *s, size_t n);

#endif
