#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "watchdog/look.h"
#include "watchdog/watchdog.h"

static void write_failed(struct wd *wd)
{
    if (!wd->write_error)
        wd->write_error = errno ? errno : EIO;
}

static void announce(struct wd *wd, struct wd_node *node)
{
    struct pt_node info = {
        .name = node->name,
        .pid = node->proc->pid,
        .tid = node->tid,
        .start = node->name.thread ? node->last_end : node->proc->start,
        .exe = node->proc->exe,
        .cwd = node->proc->cwd,
    };
    node->announced = 1;
    node->ended = 0;
    node->unwritten = 0;
    node->silent = wd->limit != NULL;
    if (node->silent)
        return;
    node->id = wd->next_id++;
    wd->nodes++;
    if (pt_writer_node(wd->writer, node->id, &info))
        write_failed(wd);
}

/* Something of this program cannot be seen: the run is not complete. */
static void note_blind(struct wd *wd, const struct wd_node *node, const struct pt_event *ev)
{
    const char *reason = ev->str[pt_field_string(PT_F_TEXT)];
    const char *program = ev->str[pt_field_string(PT_F_PATH)];
    if (!wd->blind++)
        snprintf(wd->blind_reason, sizeof(wd->blind_reason), "%.60s: %.200s", reason ? reason : "?",
                 program && *program ? program : node->proc->exe);
}

/* How long a node may be at work or in a call when nobody is held: see compute-max. */
static void note_lengths(struct wd *wd, struct wd_node *node, const struct pt_event *ev)
{
    uint64_t from = node->last_busy + ev->hold + ev->waited;
    if (pt_calls[ev->op].cls == PT_CLASS_IDLE || ev->flags & PT_EV_IDLE)
        return;
    if (ev->begin > from && ev->begin - from > wd->longest_gap)
        wd->longest_gap = ev->begin - from;
    if (ev->dur > wd->longest_call)
        wd->longest_call = ev->dur;
    node->last_busy = ev->begin + ev->dur;
}

static void write_event(struct wd *wd, struct wd_node *node, const struct pt_event *ev)
{
    if (pt_writer_event(wd->writer, node->id, ev))
        write_failed(wd);
    node->events++;
    wd->events++;
}

static void write_loss(struct wd *wd, struct wd_node *node, uint64_t count)
{
    struct pt_loss loss = {node->events, count};
    if (pt_writer_loss(wd->writer, node->id, &loss))
        write_failed(wd);
}

/* Behind a limit: counted, and written down at the node's end. */
static void put_nothing(struct wd *wd, struct wd_node *node, uint64_t count)
{
    node->unwritten += count;
    wd->lost += count;
}

static void put_event(struct wd *wd, struct wd_node *node, const struct pt_event *ev)
{
    node->ended = 0;
    if (ev->op == PT_OP_blind)
        note_blind(wd, node, ev);
    if (wd_site_ends(wd, ev)) {
        put_nothing(wd, node, 1);
        return;
    }
    note_lengths(wd, node, ev);
    write_event(wd, node, ev);
}

static void put_loss(struct wd *wd, struct wd_node *node, uint64_t count)
{
    node->lost += count;
    if (wd->limit) {
        put_nothing(wd, node, count);
        return;
    }
    wd->lost += count;
    write_loss(wd, node, count);
}

/*
 * Decodes a record of `words` words.  The memory is the application's to spoil, so
 * nothing in it is believed: -1 if it makes no sense.  `strings` gets the names.
 */
static int decode(const struct wd_clock *clock, const uint64_t *rec, unsigned words,
                  struct pt_event *ev, char strings[PT_NSTRINGS][PT_STRING_MAX + 1])
{
    struct pt_rec head;
    const uint64_t *w = rec + sizeof(head) / 8, *end = rec + words;

    memcpy(&head, rec, sizeof(head));
    if (head.op >= PT_NOPS || words < sizeof(head) / 8)
        return -1;
    /* Not cleared as a whole: fields that the row does not name are nobody's to read. */
    ev->op = head.op;
    ev->err = 0;
    ev->cpu = ev->hold = ev->polls = ev->waited = 0;
    ev->str[0] = ev->str[1] = ev->str[2] = NULL;
    ev->flags = head.flags & (PT_EV_INNER | PT_EV_SYNC | PT_EV_IDLE);
    ev->begin = wd_clock_time(clock, head.begin);
    ev->dur = wd_clock_span(clock, head.dur);
#define TAKE(to)                     \
    do {                             \
        if (w == end)                \
            return -1;               \
        (to) = (__typeof__(to))*w++; \
    } while (0)
    if (head.flags & PT_RECF_FAILED) {
        TAKE(ev->err);
        ev->ret = -1;
    }
    if (head.flags & PT_RECF_CPU)
        TAKE(ev->cpu);
    if (head.flags & PT_RECF_HELD)
        TAKE(ev->hold);
    ev->busy = ev->dur;
    if (head.flags & PT_RECF_BUSY)
        TAKE(ev->busy);
    if (head.flags & PT_RECF_POLLS) {
        TAKE(ev->polls);
        TAKE(ev->waited);
        ev->waited = wd_clock_span(clock, ev->waited);
    }
    if (!(head.flags & PT_RECF_FAILED))
        TAKE(ev->ret);
    for (int i = 0; i < pt_calls[ev->op].nfields; i++) {
        int kind = pt_calls[ev->op].fields[i];
        if (!pt_field_is_string(kind)) {
            TAKE(ev->field[kind]);
            continue;
        }
        uint64_t len;
        TAKE(len);
        if (len > PT_STRING_MAX || (len + 7) / 8 > (uint64_t)(end - w))
            return -1;
        char *copy = strings[pt_field_string(kind)];
        memcpy(copy, w, len);
        copy[len] = 0;
        ev->str[pt_field_string(kind)] = copy;
        w += (len + 7) / 8;
    }
#undef TAKE
    return 0;
}

_Static_assert(PT_NOPS <= PT_PART, "an op has no bits of what it is marked with");

/* The same for a short record, that began at `begin`, ticks. */
static int decode_short(const struct wd_clock *clock, const struct pt_short *rec, uint64_t begin,
                        struct pt_event *ev)
{
    uint16_t op = rec->op & (uint16_t)~PT_PART;
    const struct pt_call_info *call = op < PT_NOPS ? &pt_calls[op] : NULL;
    if (!call || call->nfields != 2 || call->fields[0] != PT_F_FD || call->fields[1] != PT_F_LEN)
        return -1;
    ev->op = op;
    ev->err = 0;
    ev->flags = 0;
    ev->cpu = ev->hold = ev->polls = ev->waited = 0;
    ev->str[0] = ev->str[1] = ev->str[2] = NULL;
    ev->begin = wd_clock_time(clock, begin);
    ev->dur = ev->busy = wd_clock_span(clock, rec->dur & ~PT_SHORT);
    ev->field[PT_F_FD] = PT_SHORT_WORD(rec->file);
    ev->field[PT_F_LEN] = rec->op & PT_PART ? PT_PART_ASKED(rec->len) : rec->len;
    ev->ret = rec->op & PT_PART ? PT_PART_WENT(rec->len) : rec->len;
    return 0;
}

/* A gap too short for the CPU clock counts as computing: the tracer leaves that to us. */
static void fill_cpu(const struct wd_node *node, struct pt_event *ev, int cpu_known)
{
    uint64_t from = node->last_end + ev->hold + ev->waited;
    if (!cpu_known && ev->begin > from)
        ev->cpu = ev->begin - from;
}

/* The thread before, if there was one, has gone; another writes from here on. */
static void begin_thread(struct wd *wd, struct wd_node *node, const struct pt_rec *head)
{
    wd_node_close(wd, node);
    node->name.thread = (int32_t)head->dur;
    node->tid = (int32_t)head->flags;
    node->last_end = node->last_busy = wd_clock_time(&wd->clock, head->begin);
    node->events = 0;
    announce(wd, node);
}

static void end_thread(struct wd *wd, struct wd_node *node, const struct pt_rec *head)
{
    node->ended = 1;
    node->end = wd_clock_time(&wd->clock, head->begin);
    node->end_cpu = head->dur;
}

/* An event of the program's. */
static void take_event(struct wd *wd, struct wd_node *node, struct pt_event *ev, int cpu_known)
{
    fill_cpu(node, ev, cpu_known);
    node->last_end = ev->begin + ev->dur;
    put_event(wd, node, ev);
}

static uint64_t drain_short(struct wd *wd, struct wd_node *node, const unsigned char *at,
                            uint64_t room)
{
    struct pt_short rec;
    struct pt_event ev;
    if (room < sizeof(rec) || !node->announced)
        return 0;
    memcpy(&rec, at, sizeof(rec));
    uint64_t begin = node->last_ticks + (uint64_t)(int32_t)(rec.begin - (uint32_t)node->last_ticks);
    if (decode_short(&wd->clock, &rec, begin, &ev))
        return 0;
    node->last_ticks = begin + (rec.dur & ~PT_SHORT);
    node->last_file = rec.file;
    take_event(wd, node, &ev, 0);
    return sizeof(rec);
}

/* The tiny form is one or two short ones without a duration. */
static int take_tiny(struct wd *wd, struct wd_node *node, uint16_t op, uint64_t len, uint64_t begin)
{
    struct pt_short rec = {.op = op, .file = node->last_file, .len = (uint32_t)len};
    struct pt_event ev;
    if (decode_short(&wd->clock, &rec, begin, &ev))
        return -1;
    take_event(wd, node, &ev, 0);
    return 0;
}

static uint64_t drain_tiny(struct wd *wd, struct wd_node *node, const unsigned char *at)
{
    const unsigned spare = 64 - PT_TINY_TIME_BITS;
    uint64_t word, inlined;
    if (!node->announced || !node->last_file)
        return 0;
    memcpy(&word, at, sizeof(word));
    int64_t since = (int64_t)((PT_TINY_BEGIN(word) - node->last_ticks) << spare) >> spare;
    uint64_t begin = node->last_ticks + (uint64_t)since;
    inlined = PT_TINY_INLINED(word);
    if ((inlined && take_tiny(wd, node, PT_OP_putc_unlocked, inlined, begin)) ||
        take_tiny(wd, node, PT_TINY_OP(word), PT_TINY_LEN(word), begin))
        return 0;
    node->last_ticks = begin;
    return sizeof(word);
}

/* What is no event; 0 if it makes no sense. */
static int drain_note(struct wd *wd, struct wd_node *node, const struct pt_rec *head)
{
    switch (head->op) {
    case PT_REC_LOSS:
        put_loss(wd, node, head->begin);
        return 1;
    case PT_REC_BEGIN:
        begin_thread(wd, node, head);
        return 1;
    case PT_REC_END:
        end_thread(wd, node, head);
        return 1;
    default:
        return 0;
    }
}

/* One record at `rec`, of at most `room` bytes; returns its size, 0 if it makes no sense. */
static uint64_t drain_record(struct wd *wd, struct wd_node *node, const unsigned char *rec,
                             uint64_t room)
{
    static char strings[PT_NSTRINGS][PT_STRING_MAX + 1];
    struct pt_rec head;
    struct pt_event ev;

    if (room < sizeof(uint64_t))
        return 0;
    memcpy(&head, rec, room < sizeof(head) ? sizeof(uint64_t) : sizeof(head));
    uint64_t bytes = head.words * sizeof(uint64_t);
    if (head.op == PT_REC_PAD) {
        bytes = head.flags * sizeof(uint64_t);
        return bytes <= room ? bytes : 0;
    }
    if (PT_IS_TINY(head.op))
        return drain_tiny(wd, node, rec);
    if (head.words & PT_SHORT)
        return drain_short(wd, node, rec, room);
    if (bytes < sizeof(head) || bytes > room)
        return 0;
    if (head.op >= PT_REC_END)
        return drain_note(wd, node, &head) ? bytes : 0;
    if (!node->announced || decode(&wd->clock, (const uint64_t *)rec, head.words, &ev, strings))
        return 0;
    wd_site_hide(wd, &ev);
    node->last_ticks = head.begin + head.dur;
    node->proc->passed |= wd_served_by(ev.op);
    take_event(wd, node, &ev, (head.flags & PT_RECF_CPU) != 0);
    return bytes;
}

/* The bytes of a record that was interrupted there, 0: none was. */
static uint64_t interrupted_at(const struct pt_ring *ring, uint64_t at)
{
    for (int i = 0; i < PT_MAX_OPEN; i++)
        if (ring->interrupted[i].bytes && ring->interrupted[i].at == at)
            return ring->interrupted[i].bytes;
    return 0;
}

/* What is at the node's tail, of `left` bytes in all; returns its bytes, 0 if it makes no sense. */
static uint64_t drain_next(struct wd *wd, struct wd_node *node, uint64_t left, int nested)
{
    uint64_t at = node->tail & (wd->ring_size - 1), room = wd->ring_size - at;
    uint64_t given_up = nested ? interrupted_at(node->ring, node->tail) : 0;
    if (left > wd->ring_size || (left & 7) || (given_up & 7) || given_up > left)
        return 0;
    if (!given_up)
        return drain_record(wd, node, node->ring->data + at, room < left ? room : left);
    put_loss(wd, node, 1);
    return given_up;
}

/* `nested`: records may be among them that were interrupted and never ended. */
static void drain_upto(struct wd *wd, struct wd_node *node, uint64_t head, int nested)
{
    /* A head behind what we have seen: a signal handler was faster than the call it interrupted. */
    while ((int64_t)(head - node->tail) > 0) {
        uint64_t left = head - node->tail, bytes = drain_next(wd, node, left, nested);
        if (!bytes) { /* the program has overwritten its ring: what follows is lost */
            put_loss(wd, node, 1);
            bytes = left;
        }
        node->tail += bytes;
        atomic_store_explicit(&node->ring->tail, node->tail, memory_order_release);
    }
}

static void drain_node(struct wd *wd, struct wd_node *node)
{
    drain_upto(wd, node, atomic_load_explicit(&node->ring->head, memory_order_acquire), 0);
}

void wd_drain_proc(struct wd *wd, struct wd_proc *proc)
{
    for (struct wd_node *node = proc->nodes; node; node = node->next)
        drain_node(wd, node);
}

void wd_drain_ended(struct wd *wd, struct wd_proc *proc)
{
    for (struct wd_node *node = proc->nodes; node; node = node->next) {
        drain_node(wd, node);
        drain_upto(wd, node, atomic_load(&node->ring->nested_head), 1);
    }
}

void wd_drain_all(struct wd *wd)
{
    wd_clock_anchor(&wd->clock);
    wd_procs_look(wd);
    for (struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        wd_drain_proc(wd, proc);
}

/* What the node was still asking for in vain when it came to its end. */
static void drain_pending(struct wd *wd, struct wd_node *node)
{
    struct pt_ring *ring = node->ring;
    if (atomic_load(&ring->pending_head) != node->tail + 1)
        return;
    unsigned words = ring->pending_words;
    const struct pt_rec *pending = (const void *)pt_ring_pending(ring, wd->ring_size, words);
    if (words <= PT_REC_MAX_WORDS && pending->op < PT_NOPS)
        drain_record(wd, node, (const unsigned char *)pending, words * sizeof(uint64_t));
}

void wd_node_close(struct wd *wd, struct wd_node *node)
{
    struct pt_ring *ring = node->ring;
    if (!node->announced)
        return;
    drain_pending(wd, node);
    uint64_t dropped = atomic_load(&ring->dropped);
    if (dropped > node->lost)
        put_loss(wd, node, dropped - node->lost);
    node->announced = 0;
    if (node->silent)
        return;
    if (node->unwritten)
        write_loss(wd, node, node->unwritten);
    struct pt_event ev = {.op = PT_OP_exit, .begin = wd_now()}; /* takes no time */
    if (node->ended && node->end >= node->last_end && node->end <= ev.begin) {
        ev.begin = node->end;
        ev.cpu = node->end_cpu;
    }
    note_lengths(wd, node, &ev);
    write_event(wd, node, &ev);
    if (pt_writer_node_end(wd->writer, node->id))
        write_failed(wd);
}
