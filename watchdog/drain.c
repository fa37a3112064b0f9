#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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
        .tid = node->ring->tid,
        .start = node->name.thread ? node->last_end : node->proc->start,
        .exe = node->proc->exe,
        .cwd = node->proc->cwd,
    };
    node->id = wd->next_id++;
    node->announced = 1;
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

static void put_event(struct wd *wd, struct wd_node *node, const struct pt_event *ev)
{
    if (ev->op == PT_OP_blind)
        note_blind(wd, node, ev);
    if (pt_writer_event(wd->writer, node->id, ev))
        write_failed(wd);
    node->events++;
    wd->events++;
}

static void put_loss(struct wd *wd, struct wd_node *node, uint64_t count)
{
    struct pt_loss loss = {node->events, count};
    wd->lost += count;
    node->lost += count;
    if (pt_writer_loss(wd->writer, node->id, &loss))
        write_failed(wd);
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
    ev->cpu = ev->hold = ev->polls = 0;
    ev->str[0] = ev->str[1] = ev->str[2] = NULL;
    ev->flags = head.flags & (PT_EV_INNER | PT_EV_SYNC);
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
    if (head.flags & PT_RECF_POLLS)
        TAKE(ev->polls);
    if (!(head.flags & (PT_RECF_FAILED | PT_RECF_FULL)))
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
    if (head.flags & PT_RECF_FULL)
        ev->ret = ev->field[PT_F_LEN];
    return 0;
}

/* A gap too short for the CPU clock counts as computing: the tracer leaves that to us. */
static void fill_cpu(const struct wd_node *node, struct pt_event *ev, int cpu_known)
{
    if (!cpu_known && ev->begin > node->last_end + ev->hold)
        ev->cpu = ev->begin - node->last_end - ev->hold;
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
    if (head.op == PT_REC_PAD)
        return bytes <= room ? bytes : 0;
    if (bytes < sizeof(head) || bytes > room)
        return 0;
    if (head.op == PT_REC_LOSS) {
        put_loss(wd, node, head.begin);
        return bytes;
    }
    if (decode(&wd->clock, (const uint64_t *)rec, head.words, &ev, strings))
        return 0;
    fill_cpu(node, &ev, (head.flags & PT_RECF_CPU) != 0);
    node->last_end = ev.begin + ev.dur;
    put_event(wd, node, &ev);
    return bytes;
}

static void drain_node(struct wd *wd, struct wd_node *node)
{
    struct pt_ring *ring = node->ring;
    uint64_t size = node->proc->ring_size;
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

    /* A head behind what we have seen: a signal handler was faster than the call it interrupted. */
    while ((int64_t)(head - node->tail) > 0) {
        uint64_t at = node->tail & (size - 1);
        uint64_t room = size - at, left = head - node->tail;
        uint64_t bytes = left > size || (left & 7)
                             ? 0
                             : drain_record(wd, node, ring->data + at, room < left ? room : left);
        if (!bytes) { /* the program has overwritten its ring: what follows is lost */
            put_loss(wd, node, 1);
            bytes = left;
        }
        node->tail += bytes;
        atomic_store_explicit(&ring->tail, node->tail, memory_order_release);
    }
}

void wd_drain_proc(struct wd *wd, struct wd_proc *proc)
{
    for (uint32_t i = 0, n = wd_proc_nodes(proc); i < n; i++) {
        struct wd_node *node = &proc->nodes[i];
        if (!node->announced) {
            if (atomic_load(&node->ring->state) == PT_SLOT_FREE)
                continue;
            node->last_end = wd_clock_time(&wd->clock, node->ring->start);
            announce(wd, node);
        }
        drain_node(wd, node);
    }
}

void wd_drain_all(struct wd *wd)
{
    wd_clock_anchor(&wd->clock);
    for (struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        wd_drain_proc(wd, proc);
}

void wd_node_close(struct wd *wd, struct wd_node *node)
{
    struct pt_ring *ring = node->ring;
    if (!node->announced)
        return;
    uint64_t dropped = atomic_load(&ring->dropped);
    if (dropped > node->lost)
        put_loss(wd, node, dropped - node->lost);
    struct pt_event ev = {.op = PT_OP_exit, .begin = wd_now()}; /* takes no time */
    uint64_t said = ring->exit_begin ? wd_clock_time(&wd->clock, ring->exit_begin) : 0;
    if (said >= node->last_end && said <= ev.begin) {
        ev.begin = said;
        ev.cpu = ring->exit_cpu;
    }
    put_event(wd, node, &ev);
    if (pt_writer_node_end(wd->writer, node->id))
        write_failed(wd);
}
