#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/spec.h"
#include "preload/sys.h"
#include "preload/tracer.h"

#define HEAD_WORDS (sizeof(struct pt_rec) / sizeof(uint64_t))

/* What of the gap before this call was spent on the CPU. */
static void measure_gap(struct pt_thread *t, struct pt_pass *pass)
{
    uint64_t gap = pass->begin - t->end;
    if (gap <= PT_LONG_NS) {
        t->short_ns += gap;
        return;
    }
    uint64_t cpu = pt_clock(CLOCK_THREAD_CPUTIME_ID), used = cpu - t->cpu_at;
    used = used > t->short_ns ? used - t->short_ns : 0;
    pass->cpu = used < gap ? used : gap;
    pass->cpu_read = 1;
    t->cpu_at = cpu;
    t->short_ns = 0;
}

/* What of the call was spent on the CPU: does it spin or sleep when it waits? */
static void measure_call(struct pt_thread *t, struct pt_pass *pass, uint64_t dur)
{
    if (dur <= PT_LONG_NS) {
        t->short_ns += dur;
        return;
    }
    uint64_t cpu = pt_clock(CLOCK_THREAD_CPUTIME_ID), used = cpu - t->cpu_at;
    used = used > t->short_ns ? used - t->short_ns : 0;
    pass->busy = used < dur ? used : dur;
    pass->busy_read = 1;
    t->cpu_at = cpu;
    t->short_ns = 0;
}

static void set_phase(struct pt_thread *t, enum pt_phase phase, uint16_t op)
{
    atomic_store_explicit(&t->ring->phase, PT_PHASE_WORD(phase, op), memory_order_release);
}

static int to_be_held(const struct pt_thread *t)
{
    uint64_t period = atomic_load_explicit(&t->ring->hold_period, memory_order_relaxed);
    uint64_t event = atomic_load_explicit(&t->ring->io_done, memory_order_relaxed);
    return PT_UNLIKELY(period != 0) && event % period == 0;
}

void pt_pass_begin(struct pt_thread *t, struct pt_pass *pass, uint16_t op)
{
    static const enum pt_phase phases[PT_NCLASSES] = {
        [PT_CLASS_IO] = PT_PHASE_IO,
        [PT_CLASS_SYNC] = PT_PHASE_SYNC,
        [PT_CLASS_IDLE] = PT_PHASE_IDLE,
        [PT_CLASS_NAME] = PT_PHASE_IO,
    };
    pass->begin = pt_now();
    measure_gap(t, pass);
    if (pass->cls == PT_CLASS_IO && to_be_held(t)) {
        pass->hold = pt_hold(t, op);
        t->cpu_at = pt_clock(CLOCK_THREAD_CPUTIME_ID);
        t->short_ns = 0;
        pass->begin = pt_now();
    }
    set_phase(t, phases[pass->cls], op);
}

/* Waits until the watchdog has made room, or is gone. */
static int wait_for_room(struct pt_thread *t, uint64_t seen_tail)
{
    struct timespec nap = {0, 2000000};
    for (int naps = 1; atomic_load(&t->ring->tail) == seen_tail; naps++) {
        pt_bell_ring();
        pt_sys(SYS_nanosleep, &nap, 0);
        if (naps % 500 == 0 && !pt_watchdog_alive()) {
            t->state = PT_THREAD_OFF;
            return -1;
        }
    }
    return 0;
}

/* A place for `words` contiguous words; NULL if the event has to be dropped. */
static struct pt_rec *reserve(struct pt_thread *t, unsigned words)
{
    const struct pt_shm *shm = pt_process_shm();
    struct pt_ring *ring = t->ring;
    uint64_t size = shm->ring_size, need = words * sizeof(uint64_t);
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t to_end = size - (head & (size - 1));
    uint64_t want = need <= to_end ? need : to_end + need;

    for (;;) {
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
        if (PT_LIKELY(head + want - tail <= size))
            break;
        if (shm->full == PT_FULL_DROP || wait_for_room(t, tail)) {
            t->lost++;
            return NULL;
        }
    }
    if (PT_UNLIKELY(need > to_end)) {
        struct pt_rec *pad = (struct pt_rec *)(ring->data + (head & (size - 1)));
        pad->op = PT_REC_PAD; /* the smallest gap is a word, which holds op, words and flags */
        pad->words = 0;
        head += to_end;
        atomic_store_explicit(&ring->head, head, memory_order_release);
    }
    return (struct pt_rec *)(ring->data + (head & (size - 1)));
}

static void publish(struct pt_thread *t, struct pt_rec *rec, unsigned words)
{
    uint64_t head = atomic_load_explicit(&t->ring->head, memory_order_relaxed);
    uint64_t next = head + words * sizeof(uint64_t);
    uint64_t half = pt_process_shm()->ring_size / 2;

    rec->words = (uint16_t)words;
    atomic_store_explicit(&t->ring->head, next, memory_order_release);
    if (PT_UNLIKELY((head ^ next) & half)) /* half a ring is full: time to drain it */
        pt_bell_ring();
}

/* Tells how many events were dropped, at the place where they are missing. */
static int record_loss(struct pt_thread *t)
{
    struct pt_rec *rec = reserve(t, HEAD_WORDS);
    if (!rec)
        return -1;
    *rec = (struct pt_rec){.op = PT_REC_LOSS, .begin = t->lost};
    t->lost = 0;
    publish(t, rec, HEAD_WORDS);
    return 0;
}

/* Begins a record of a call that ended at `end`; returns where its fields go, or NULL. */
static uint64_t *record_begin(struct pt_thread *t, const struct pt_pass *pass, uint16_t op,
                              unsigned max_words, uint64_t end, int64_t ret, int err, int64_t len)
{
    if (PT_UNLIKELY(t->lost) && record_loss(t)) {
        t->lost++;
        return NULL;
    }
    struct pt_rec *rec = reserve(t, HEAD_WORDS + 5 + max_words);
    if (!rec)
        return NULL;
    uint32_t flags = pass->cls == PT_CLASS_SYNC ? PT_RECF_SYNC : 0;
    uint64_t *w = (uint64_t *)(rec + 1);
    rec->op = op;
    rec->begin = pass->begin;
    rec->dur = end - pass->begin;
    if (PT_UNLIKELY(err)) {
        flags |= PT_RECF_FAILED;
        *w++ = (uint64_t)err;
    }
    if (pass->cpu_read) {
        flags |= PT_RECF_CPU;
        *w++ = pass->cpu;
    }
    if (PT_UNLIKELY(pass->hold)) {
        flags |= PT_RECF_HELD;
        *w++ = pass->hold;
    }
    if (pass->busy_read) {
        flags |= PT_RECF_BUSY;
        *w++ = pass->busy;
    }
    if (!err && ret == len)
        flags |= PT_RECF_FULL;
    else if (!err)
        *w++ = (uint64_t)ret;
    rec->flags = flags;
    return w;
}

uint64_t *pt_pass_end(struct pt_thread *t, struct pt_pass *pass, uint16_t op, unsigned max_words,
                      int64_t ret, int err, int64_t len)
{
    uint64_t now = pt_now();
    t->end = now;
    measure_call(t, pass, now - pass->begin);
    return record_begin(t, pass, op, max_words, now, ret, err, len);
}

void pt_pass_commit(struct pt_thread *t, uint64_t *end)
{
    uint64_t head = atomic_load_explicit(&t->ring->head, memory_order_relaxed);
    struct pt_rec *rec =
        (struct pt_rec *)(t->ring->data + (head & (pt_process_shm()->ring_size - 1)));
    publish(t, rec, (unsigned)(end - (uint64_t *)rec));
}

void pt_pass_done(struct pt_thread *t, const struct pt_pass *pass)
{
    struct pt_ring *ring = t->ring;
    if (pass->cls == PT_CLASS_IO)
        atomic_store_explicit(&ring->io_done,
                              atomic_load_explicit(&ring->io_done, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    atomic_store_explicit(&ring->events,
                          atomic_load_explicit(&ring->events, memory_order_relaxed) + 1,
                          memory_order_release);
    set_phase(t, PT_PHASE_COMPUTE, 0);
}

uint64_t *pt_put_string(uint64_t *w, const char *s)
{
    size_t n = s ? strnlen(s, PT_STRING_MAX) : 0;
    *w = n;
    memcpy(w + 1, s ? s : "", n);
    return w + 1 + (n + 7) / 8;
}

void pt_record_exit(struct pt_thread *t)
{
    if (t->state != PT_THREAD_READY)
        return;
    struct pt_pass pass = {.cls = PT_CLASS_IO};
    pass.begin = pt_now();
    measure_gap(t, &pass);
    uint64_t *w = pt_pass_end(t, &pass, PT_OP_exit, 0, 0, 0, -1);
    if (w)
        pt_pass_commit(t, w);
    pt_pass_done(t, &pass);
    t->state = PT_THREAD_OFF;
    atomic_store(&t->ring->state, PT_SLOT_ENDED);
}

/* Takes no time of the program's: the gap before it belongs to the next event. */
void pt_record_inherited(struct pt_thread *t, const char *path, int flags,
                         const struct pt_pass *about)
{
    struct pt_pass pass = {.cls = PT_CLASS_NAME, .begin = t->end};
    uint64_t *w = record_begin(t, &pass, PT_OP_inherited, 8 + PT_STRING_MAX / 8, t->end, 0, 0, -1);
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
    pt_pass_commit(t, w);
}
