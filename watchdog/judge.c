/*
 * The judge: when is everybody else stuck?
 *
 * A held I/O goes on when the whole host is at rest: every other live node is in a
 * sync call, none has made progress since a snapshot, and each has since then
 * either slept in the kernel throughout or used enough CPU that it would have
 * noticed whatever it waits for.  The last condition makes it right where there
 * are fewer cores than ranks: a node that could go on may just not have run yet.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

#define ENOUGH_CPU_NS 300000 /* a spinning MPI library looks around every few microseconds */

struct look {
    const struct wd_node *node;
    uint64_t events, io_done;
    uint64_t cpu, slices; /* run time and number of times on a CPU */
    int asleep, waiting;  /* in the kernel; in a sync call */
};

struct wd_judge {
    struct wd *wd;
    struct wd_node *held; /* NULL: nobody */
    uint64_t since;
    struct look *before; /* the snapshot; empty: none */
    struct look *now;
    size_t nbefore, nnow, room;
};

struct wd_judge *wd_judge_create(struct wd *wd)
{
    struct wd_judge *j = calloc(1, sizeof(*j));
    if (j)
        j->wd = wd;
    return j;
}

void wd_judge_destroy(struct wd_judge *j)
{
    if (!j)
        return;
    free(j->before);
    free(j->now);
    free(j);
}

static int open_proc(const struct wd_node *node, const char *what)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", node->proc->pid, node->ring->tid, what);
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Reads the thread's run time and state; -1 if it is gone. */
static int look_at_thread(struct wd_node *node, struct look *look)
{
    char buf[512];
    if (node->sched_fd < 0 && (node->sched_fd = open_proc(node, "schedstat")) < 0)
        return -1;
    if (node->stat_fd < 0 && (node->stat_fd = open_proc(node, "stat")) < 0)
        return -1;
    ssize_t n = pread(node->sched_fd, buf, sizeof(buf) - 1, 0);
    if (n <= 0)
        return -1;
    buf[n] = 0;
    if (sscanf(buf, "%lu %*u %lu", &look->cpu, &look->slices) != 2)
        return -1;
    n = pread(node->stat_fd, buf, sizeof(buf) - 1, 0);
    if (n <= 0)
        return -1;
    buf[n] = 0;
    const char *state = strrchr(buf, ')'); /* the program's name may hold anything */
    look->asleep = state && state[1] == ' ' && state[2] == 'S';
    return 0;
}

static int is_live(const struct wd_node *node)
{
    return atomic_load(&node->ring->state) == PT_SLOT_LIVE;
}

static int make_room(struct wd_judge *j, size_t n)
{
    if (n <= j->room)
        return 0;
    n += 64;
    struct look *before = realloc(j->before, n * sizeof(*before));
    if (before)
        j->before = before;
    struct look *now = realloc(j->now, n * sizeof(*now));
    if (now)
        j->now = now;
    if (!before || !now)
        return -1;
    j->room = n;
    return 0;
}

/* Looks at every live node but the held one. */
static int look_around(struct wd_judge *j)
{
    j->nnow = 0;
    for (struct wd_proc *proc = j->wd->procs; proc; proc = proc->next) {
        for (uint32_t i = 0, n = wd_proc_nodes(proc); i < n; i++) {
            struct wd_node *node = &proc->nodes[i];
            if (node == j->held || !is_live(node))
                continue;
            if (make_room(j, j->nnow + 1))
                return -1;
            struct look *look = &j->now[j->nnow];
            *look = (struct look){.node = node};
            uint32_t phase = atomic_load(&node->ring->phase);
            look->waiting = PT_PHASE_OF(phase) == PT_PHASE_SYNC;
            look->events = atomic_load(&node->ring->events);
            look->io_done = atomic_load(&node->ring->io_done);
            if (look_at_thread(node, look) == 0)
                j->nnow++;
        }
    }
    return 0;
}

/* Slurm's tasks that have neither greeted nor ended are still on their way to us. */
static int everybody_is_here(const struct wd *wd)
{
    return wd->nranks + wd_tasks_unseen(wd) >= (size_t)wd->opt.ntasks;
}

static int settled(const struct look *before, const struct look *now)
{
    if (!now->waiting || now->node != before->node || now->events != before->events)
        return 0;
    if (before->asleep && now->asleep && now->slices == before->slices)
        return 1;
    return now->cpu - before->cpu >= ENOUGH_CPU_NS;
}

static int moved(const struct look *before, const struct look *now)
{
    return !now->waiting || now->node != before->node || now->events != before->events;
}

/* 1: at rest, 0: not yet. */
static int at_rest(struct wd_judge *j)
{
    int rest = j->nbefore == j->nnow && everybody_is_here(j->wd), again = !rest;
    for (size_t i = 0; i < j->nnow && !again; i++) {
        again |= moved(&j->before[i], &j->now[i]);
        rest &= settled(&j->before[i], &j->now[i]);
    }
    if (again) { /* somebody was at work: compare with this moment from now on */
        memcpy(j->before, j->now, j->nnow * sizeof(*j->now));
        j->nbefore = j->nnow;
        return 0;
    }
    return rest;
}

static void let_go(struct wd_node *node)
{
    atomic_store(&node->ring->hold, PT_HOLD_RELEASED);
    syscall(SYS_futex, &node->ring->hold, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void write_hold(struct wd_judge *j, int timed_out)
{
    struct wd *wd = j->wd;
    struct pt_hold_peer *peers = calloc(j->nnow + 1, sizeof(*peers));
    if (!peers)
        return;
    for (size_t i = 0; i < j->nnow; i++) {
        int stuck = !timed_out || (j->now[i].waiting && j->nbefore == j->nnow &&
                                   settled(&j->before[i], &j->now[i]));
        peers[i] = (struct pt_hold_peer){j->now[i].node->name, j->now[i].io_done,
                                         stuck ? PT_STATE_BLOCKED : PT_STATE_BUSY};
    }
    struct pt_hold hold = {
        .name = j->held->name,
        .io_event = atomic_load(&j->held->ring->io_done),
        .ns = wd_now() - j->since,
        .timed_out = timed_out,
        .npeers = j->nnow,
        .peers = peers,
    };
    if (pt_writer_hold(wd->writer, &hold) && !wd->write_error)
        wd->write_error = errno;
    wd->holds++;
    wd->holds_timed_out += (uint64_t)timed_out;
    wd->hold_ns += hold.ns;
    free(peers);
}

/* One hold at a time: whoever asks meanwhile goes on unheld. */
static void find_held(struct wd_judge *j)
{
    for (struct wd_proc *proc = j->wd->procs; proc; proc = proc->next) {
        for (uint32_t i = 0, n = wd_proc_nodes(proc); i < n; i++) {
            struct wd_node *node = &proc->nodes[i];
            if (node == j->held || atomic_load(&node->ring->hold) != PT_HOLD_ASKED)
                continue;
            if (j->held) {
                let_go(node);
            } else {
                j->held = node;
                j->since = wd_now();
                j->nbefore = 0;
            }
        }
    }
}

int wd_judge_tick(struct wd_judge *j)
{
    find_held(j);
    if (!j->held)
        return 0;
    int failed = look_around(j), rest = !failed && at_rest(j);
    int timed_out = !rest && wd_now() - j->since > j->wd->spec.hold_max;
    if (!rest && !timed_out && !failed)
        return 1;
    write_hold(j, !rest);
    let_go(j->held);
    j->held = NULL;
    return 1; /* the next one may be waiting already */
}

void wd_judge_forget(struct wd_judge *j, const struct wd_node *node)
{
    if (j->held == node)
        j->held = NULL;
    j->nbefore = 0;
}
