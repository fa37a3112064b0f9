#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watchdog/look.h"
#include "watchdog/verdict.h"
#include "watchdog/watchdog.h"

#define ENOUGH_CPU_NS 150000 /* a spinning MPI library looks around every few microseconds */
#define ENOUGH_POLLS  2      /* one of them began after the snapshot */
#define SMALL_BYTES   65536  /* a message that is moved in no time */
#define COPY_RATE     2      /* bytes a ns: who moves a large one uses CPU as who waits for it */
#define NET_NS        10     /* for a byte, between hosts: a slow network */
#define SERVED_NS     300000000u /* for the launcher's server to come to a CPU */

struct look {
    struct wd_node *node;
    struct pt_name name;
    enum pt_phase phase;
    uint16_t op; /* what it is in */
    uint64_t events, io_done, polls;
    uint64_t cpu, delay, slices; /* on a CPU, waiting for one, ns; number of times on one */
    uint64_t when;
    uint64_t moving; /* bytes of a large message that MPI may be about to move */
    /* Of the snapshot: cpu and slices when it was last seen awake, and whether it has slept since.
     */
    uint64_t sleep_cpu, sleep_slices;
    int slept;
    /*
     * Of the snapshot, too: its number, and whether `cpu` is from after it.  The kernel
     * accounts for a running thread only now and then, so what it says first may be too little.
     */
    uint32_t number;
    int cpu_known;
};

struct wd_looks {
    struct wd *wd;
    struct look *before, *now; /* the snapshot, and the last look */
    enum pt_hold_state *state; /* of those of `now` */
    struct pt_hold_peer *peers;
    size_t nbefore, nnow, room;
    unsigned passed; /* by the held one, enum wd_served */
    uint32_t number; /* of the last snapshot of a node, never 0 */
};

struct wd_looks *wd_looks_create(struct wd *wd)
{
    struct wd_looks *l = calloc(1, sizeof(*l));
    if (l)
        l->wd = wd;
    return l;
}

void wd_looks_destroy(struct wd_looks *l)
{
    if (!l)
        return;
    free(l->before);
    free(l->now);
    free(l->state);
    free(l->peers);
    free(l);
}

void wd_looks_restart(struct wd_looks *l)
{
    l->nbefore = 0;
}

/* ---- one thread ------------------------------------------------------------------------- */

void wd_node_no_thread(struct wd_node *node)
{
    for (int i = 0; i < WD_PROC_FILES; i++)
        node->proc_fd[i] = -1;
}

void wd_node_forget_thread(struct wd_node *node)
{
    for (int i = 0; i < WD_PROC_FILES; i++)
        if (node->proc_fd[i] >= 0)
            close(node->proc_fd[i]);
    wd_node_no_thread(node);
}

/* Reads a file of the thread's directory in /proc, which stays open; -1 if it is gone. */
static ssize_t read_proc(struct wd_node *node, enum wd_proc_file file, char *buf, size_t size)
{
    static const char *const names[] = {
        [WD_PROC_STAT] = "stat",
        [WD_PROC_SCHEDSTAT] = "schedstat",
        [WD_PROC_WCHAN] = "wchan",
        [WD_PROC_STATUS] = "status",
    };
    char path[64];
    int32_t tid = atomic_load(&node->ring->tid);
    if (node->looked_at != tid)
        wd_node_forget_thread(node);
    node->looked_at = tid;
    int *fd = &node->proc_fd[file];
    if (*fd < 0) {
        snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", node->proc->pid, tid, names[file]);
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t n = *fd < 0 ? -1 : pread(*fd, buf, size - 1, 0);
    buf[n > 0 ? n : 0] = 0;
    return n > 0 ? n : -1;
}

static int read_times(struct look *look)
{
    char buf[128];
    struct wd_node *node = look->node;
    if (read_proc(node, WD_PROC_SCHEDSTAT, buf, sizeof(buf)) < 0)
        return -1;
    return sscanf(buf, "%lu %lu %lu", &look->cpu, &look->delay, &look->slices) == 3 ? 0 : -1;
}

static int is_asleep(struct wd_node *node)
{
    char buf[512];
    if (read_proc(node, WD_PROC_STAT, buf, sizeof(buf)) < 0)
        return 0;
    const char *state = strrchr(buf, ')'); /* the program's name may hold anything */
    return state && state[1] == ' ' && state[2] == 'S';
}

/* How often the thread has left a CPU. */
static int read_switches(struct wd_node *node, uint64_t *switches)
{
    static const char key[] = "\nvoluntary_ctxt_switches:";
    char buf[4096];
    uint64_t by_itself, by_others;
    if (read_proc(node, WD_PROC_STATUS, buf, sizeof(buf)) < 0)
        return -1;
    const char *at = strstr(buf, key);
    if (!at || sscanf(at + sizeof(key) - 1, "%lu nonvoluntary_ctxt_switches: %lu", &by_itself,
                      &by_others) != 2)
        return -1;
    *switches = by_itself + by_others;
    return 0;
}

/* The thread that is in the ring now: draining may not have come so far. */
struct pt_name wd_node_present(const struct wd_node *node)
{
    struct pt_name name = node->proc->name;
    name.thread = atomic_load(&node->ring->thread);
    return name;
}

/* Does it sleep in a kernel function whose name begins so? */
static int sleeps_in(struct wd_node *node, const char *function)
{
    char buf[64];
    return is_asleep(node) && read_proc(node, WD_PROC_WCHAN, buf, sizeof(buf)) > 0 &&
           !strncmp(buf, function, strlen(function));
}

/*
 * Waiting that calls do not show but the kernel does: OpenMP's runtime sleeps in system calls
 * of its own; the open of a fifo, an I/O, waits for the other end.
 */
static enum pt_phase present_phase(struct wd_node *node)
{
    enum pt_phase phase = PT_PHASE_OF(atomic_load(&node->ring->phase));
    if (phase == PT_PHASE_COMPUTE && sleeps_in(node, "futex_"))
        return PT_PHASE_SYNC;
    if (phase == PT_PHASE_IO && sleeps_in(node, "wait_for_partner"))
        return PT_PHASE_INSIDE;
    return phase;
}

static uint64_t large(uint64_t bytes)
{
    return bytes > SMALL_BYTES ? bytes : 0;
}

static int is_coming(const struct wd_node *node)
{
    return atomic_load(&node->ring->state) == PT_SLOT_COMING;
}

static int take_look(struct wd_node *node, struct look *look)
{
    if (is_coming(node)) {
        *look = (struct look){.node = node, .name = wd_node_present(node)};
        return 0;
    }
    *look = (struct look){
        .node = node,
        .name = wd_node_present(node),
        .phase = present_phase(node),
        .op = PT_PHASE_OP(atomic_load(&node->ring->phase)),
        .moving = large(atomic_load(&node->ring->transfer)),
        .events = atomic_load(&node->ring->events),
        .io_done = atomic_load(&node->ring->io_done),
        .polls = atomic_load(&node->ring->polls),
        .when = wd_now(),
    };
    return read_times(look);
}

/* ---- is it stuck? ---------------------------------------------------------------------------- */

static int is_waiting(const struct look *look)
{
    return look->phase == PT_PHASE_SYNC || look->phase == PT_PHASE_POLL ||
           look->phase == PT_PHASE_INSIDE;
}

/* To enter a call is a step, too: it may send something before it waits. */
static int same_place(const struct look *before, const struct look *now)
{
    return now->node == before->node && now->name.thread == before->name.thread &&
           now->events == before->events && is_waiting(now) == is_waiting(before);
}

/* It can not have run if it sleeps now and was never on a CPU: to fall asleep takes one. */
static int slept_throughout(const struct look *before, const struct look *now)
{
    return now->slices == before->sleep_slices && now->cpu == before->sleep_cpu &&
           is_asleep(now->node);
}

/* It was awake for a moment, perhaps on its way to sleep: that may have begun now. */
static void may_sleep_from(struct look *before, const struct look *now)
{
    before->sleep_cpu = now->cpu;
    before->sleep_slices = now->slices;
}

/*
 * Who has come to a CPU as often as at the snapshot, and left one once less, was there all the
 * time.  The kernel keeps both numbers at once, but the CPU time of who runs only at its ticks.
 */
static int ran_throughout(const struct look *before, const struct look *now)
{
    uint64_t switches;
    return now->slices == before->slices && !read_switches(now->node, &switches) &&
           switches + 1 == now->slices;
}

/* The CPU time in which it would have noticed what it waits for. */
static uint64_t enough_cpu(const struct look *now)
{
    return ENOUGH_CPU_NS + now->moving / COPY_RATE;
}

/* Has it used that much since the snapshot? */
static int has_used_enough(struct look *before, const struct look *now)
{
    if (now->when - before->when >= enough_cpu(now) && ran_throughout(before, now))
        return 1;
    if (!before->cpu_known) {
        before->cpu_known = now->cpu != before->cpu;
        before->cpu = now->cpu;
        return 0;
    }
    return now->cpu - before->cpu >= enough_cpu(now);
}

static int has_lingered(const struct look *before)
{
    return atomic_load(&before->node->ring->lingered) == before->number;
}

unsigned wd_served_by(uint16_t op)
{
    switch (op) {
    case PT_OP_MPI_Init:
    case PT_OP_MPI_Init_thread:
        return WD_SERVED_INIT;
    case PT_OP_MPI_Finalize:
        return WD_SERVED_FINALIZE;
    default:
        return 0;
    }
}

static int is_stuck(const struct wd_looks *l, struct look *before, const struct look *now)
{
    int several_hosts = l->wd->opt.nhosts > 1;
    before->slept = 0;
    if (wd_served_by(now->op) & l->passed && now->when - before->when < SERVED_NS)
        return 0;
    if (now->polls != before->polls || now->phase == PT_PHASE_POLL)
        return now->polls - before->polls >= ENOUGH_POLLS;
    if (!is_waiting(now) || (several_hosts && now->when - before->when < now->moving * NET_NS))
        return 0;
    if (has_used_enough(before, now) || has_lingered(before))
        return 1;
    before->slept = slept_throughout(before, now);
    may_sleep_from(before, now);
    return before->slept;
}

/* The method of the //TRACE paper: longer than ever in a run without holds. */
static int is_overdue(const struct pt_spec *spec, const struct look *before, const struct look *now)
{
    int in_call = now->phase != PT_PHASE_COMPUTE && now->phase != PT_PHASE_IDLE;
    uint64_t limit = in_call ? spec->call_max : spec->compute_max;
    uint64_t passed = now->when - before->when, queued = now->delay - before->delay;
    return limit && now->phase != PT_PHASE_HELD && passed > queued && passed - queued >= limit;
}

static enum pt_hold_state judge_node(const struct wd_looks *l, struct look *before,
                                     const struct look *now)
{
    const struct pt_spec *spec = &l->wd->spec;
    if (spec->judge == PT_JUDGE_REST && is_stuck(l, before, now))
        return PT_STATE_BLOCKED;
    return is_overdue(spec, before, now) ? PT_STATE_ASSUMED : PT_STATE_BUSY;
}

/* Might it be found stuck without moving?  Else the snapshot is of no use. */
static int may_wait(const struct wd *wd, const struct look *now)
{
    if (wd->spec.compute_max || wd->spec.call_max)
        return now->phase != PT_PHASE_HELD;
    return is_waiting(now);
}

/* ---- all of them ------------------------------------------------------------------------- */

static int is_live(const struct wd_node *node)
{
    return atomic_load(&node->ring->state) == PT_SLOT_LIVE || is_coming(node);
}

static int grow(void *array, size_t n, size_t size)
{
    void *bigger = realloc(*(void **)array, n * size);
    if (bigger)
        *(void **)array = bigger;
    return bigger ? 0 : -1;
}

static int make_room(struct wd_looks *l, size_t n)
{
    if (n <= l->room)
        return 0;
    n += 64;
    if (grow(&l->before, n, sizeof(*l->before)) || grow(&l->now, n, sizeof(*l->now)) ||
        grow(&l->state, n, sizeof(*l->state)) || grow(&l->peers, n, sizeof(*l->peers)))
        return -1;
    l->room = n;
    return 0;
}

static int look_around(struct wd_looks *l, const struct wd_node *except)
{
    l->nnow = 0;
    for (struct wd_proc *proc = l->wd->procs; proc; proc = proc->next)
        for (struct wd_node *node = proc->nodes; node; node = node->next) {
            if (node == except || !is_live(node))
                continue;
            if (make_room(l, l->nnow + 1))
                return -1;
            l->nnow += !take_look(node, &l->now[l->nnow]);
        }
    return 0;
}

/* Slurm's tasks that have neither come nor ended are still on their way to us. */
static int everybody_is_here(const struct wd *wd)
{
    return wd_ranks_joined(wd) + wd_tasks_unseen(wd) >= (size_t)wd->opt.ntasks;
}

static void take_snapshot_of(struct wd_looks *l, size_t i)
{
    struct look *before = &l->before[i];
    *before = l->now[i];
    may_sleep_from(before, before);
    l->number += 1 + (l->number == UINT32_MAX);
    before->number = l->number;
    l->state[i] = PT_STATE_BUSY;
}

static void take_snapshot(struct wd_looks *l)
{
    for (size_t i = 0; i < l->nnow; i++)
        take_snapshot_of(l, i);
    l->nbefore = l->nnow;
}

/* A sleeper may have been woken while we waited for others to settle. */
static enum wd_rest check_sleepers(struct wd_looks *l)
{
    enum wd_rest rest = WD_REST;
    for (size_t i = 0; i < l->nnow; i++)
        if (l->before[i].slept && !slept_throughout(&l->before[i], &l->now[i])) {
            take_snapshot_of(l, i);
            rest = WD_QUIET;
        }
    return rest;
}

static enum wd_rest compare(struct wd_looks *l)
{
    enum wd_rest rest = WD_REST;
    for (size_t i = 0; i < l->nnow; i++) {
        struct look *before = &l->before[i], *now = &l->now[i];
        /* A snapshot of a node that was on its way to wait can not show that it waits. */
        if (!same_place(before, now) || !may_wait(l->wd, now) || !may_wait(l->wd, before))
            return WD_BUSY;
        if (l->state[i] == PT_STATE_BUSY)
            l->state[i] = judge_node(l, before, now);
        if (l->state[i] == PT_STATE_BUSY)
            rest = WD_QUIET;
    }
    return rest == WD_REST ? check_sleepers(l) : rest;
}

/*
 * Who waits awake may be giving its CPU away all the time, and never show that it has used some.
 * When all wait, nobody has anything else to do.
 */
static void ask_to_linger(struct wd_looks *l)
{
    for (size_t i = 0; i < l->nnow; i++)
        if (!is_waiting(&l->now[i]))
            return;
    for (size_t i = 0; i < l->nnow; i++) {
        _Atomic uint64_t *linger = &l->now[i].node->ring->linger;
        uint32_t number = l->before[i].number;
        if (l->state[i] == PT_STATE_BUSY && PT_LINGER_NUMBER(atomic_load(linger)) != number)
            atomic_store(linger, PT_LINGER(number, enough_cpu(&l->now[i]) / 1000));
    }
}

static enum wd_rest take(struct wd_looks *l, const struct wd_node *except)
{
    if (look_around(l, except) || !everybody_is_here(l->wd)) {
        l->nbefore = 0;
        take_snapshot(l);
        return WD_BUSY;
    }
    if (l->nnow && l->nbefore != l->nnow) {
        take_snapshot(l);
        return WD_BUSY;
    }
    enum wd_rest rest = compare(l);
    if (rest == WD_REST && wd_strangers(l->wd))
        rest = WD_BUSY;
    if (rest == WD_BUSY) /* whatever it did may move the others */
        take_snapshot(l);
    return rest;
}

enum wd_rest wd_looks_take(struct wd_looks *l, const struct wd_node *except, unsigned passed)
{
    l->passed = passed;
    enum wd_rest rest = take(l, except);
    if (rest != WD_REST)
        ask_to_linger(l);
    return rest;
}

const struct pt_hold_peer *wd_looks_peers(struct wd_looks *l, size_t *n)
{
    *n = l->nnow;
    for (size_t i = 0; i < l->nnow; i++)
        l->peers[i] = (struct pt_hold_peer){
            l->now[i].name,
            l->now[i].io_done + (l->now[i].phase == PT_PHASE_INSIDE), /* that one has begun */
            l->state[i],
        };
    return l->peers;
}

void wd_looks_end(struct wd_looks *l)
{
    for (const struct wd_proc *proc = l->wd->procs; proc; proc = proc->next)
        for (const struct wd_node *node = proc->nodes; node; node = node->next)
            atomic_store(&node->ring->linger, 0);
}

uint64_t wd_looks_progress(const struct wd *wd, const struct wd_node *except)
{
    uint64_t sum = 0;
    for (const struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        for (const struct wd_node *node = proc->nodes; node; node = node->next)
            if (node != except)
                sum += atomic_load(&node->ring->events) + is_live(node);
    return sum;
}
