/*
 * The processes that are traced: who has come, who has gone.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

#define YOUNG_NS 1000000000u
#define FOREVER  UINT64_MAX

/* ---- ranks -------------------------------------------------------------------------- */

size_t wd_ranks_joined(const struct wd *wd)
{
    size_t n = 0;
    for (int i = 0; i < PT_MAX_RANKS; i++)
        n += atomic_load(&wd->memory->ranks[i].rank_plus_1) != 0;
    return n;
}

static int rank_joined(const struct wd *wd, int rank)
{
    for (int i = 0; i < PT_MAX_RANKS; i++)
        if (atomic_load(&wd->memory->ranks[i].rank_plus_1) == (uint32_t)rank + 1)
            return 1;
    return 0;
}

size_t wd_tasks_unseen(const struct wd *wd)
{
    size_t unseen = 0;
    for (size_t i = 0; i < wd->nexits; i++)
        unseen += !rank_joined(wd, wd->exits[i].task);
    return unseen;
}

/* ---- the end of one ------------------------------------------------------------------- */

static void node_destroy(struct wd *wd, struct wd_node *node)
{
    wd->slots[node->slot] = NULL;
    wd_memory_free(wd, node->slot);
    wd_node_forget_thread(node);
    free(node);
}

static void proc_destroy(struct wd *wd, struct wd_proc *proc)
{
    while (proc->nodes) {
        struct wd_node *node = proc->nodes;
        proc->nodes = node->next;
        node_destroy(wd, node);
    }
    if (proc->pidfd >= 0)
        close(proc->pidfd);
    free(proc->exe);
    free(proc->cwd);
    free(proc);
}

void wd_proc_ended(struct wd *wd, struct wd_proc *proc)
{
    wd_drain_ended(wd, proc);
    for (struct wd_node *node = proc->nodes; node; node = node->next) {
        wd_node_close(wd, node);
        wd_judge_forget(wd->judge, node);
    }
    for (struct wd_proc **p = &wd->procs; *p; p = &(*p)->next)
        if (*p == proc) {
            *p = proc->next;
            break;
        }
    proc_destroy(wd, proc);
}

int wd_proc_known(const struct wd *wd, const struct wd_proc *proc)
{
    for (const struct wd_proc *p = wd->procs; p; p = p->next)
        if (p == proc)
            return 1;
    return 0;
}

void wd_proc_all_ended(struct wd *wd)
{
    wd_procs_look(wd);
    wd->running = wd_procs_running(wd);
    while (wd->procs)
        wd_proc_ended(wd, wd->procs);
    wd->untraced_threads = atomic_load(&wd->memory->untraced_threads);
}

/* ---- programs ----------------------------------------------------------------------------- */

#define KNOWN_PROGRAMS 64 /* a build starts few of them, thousands of times */

/* A path without links, or as it is if there is no such file (any more, or here). */
static char *without_links(const char *path)
{
    char *real = realpath(path, NULL);
    return real ? real : strdup(path);
}

/* The program as /proc would name it, whatever exec was given; NULL: no memory. */
static const char *program_of(const struct pt_ring *ring)
{
    static struct {
        char *given, *real;
    } known[KNOWN_PROGRAMS];
    static unsigned oldest;
    char given[2 * PT_PROCESS_PATH];
    int relative = ring->exe[0] && ring->exe[0] != '/';
    snprintf(given, sizeof(given), "%.*s%s%.*s", relative ? PT_PROCESS_PATH - 1 : 0, ring->cwd,
             relative ? "/" : "", PT_PROCESS_PATH - 1, ring->exe);
    for (unsigned i = 0; i < KNOWN_PROGRAMS; i++)
        if (known[i].given && !strcmp(known[i].given, given))
            return known[i].real;
    unsigned i = oldest++ % KNOWN_PROGRAMS;
    free(known[i].given);
    free(known[i].real);
    known[i].real = without_links(given);
    known[i].given = known[i].real ? strdup(given) : NULL;
    return known[i].real;
}

/* ---- arrivals ------------------------------------------------------------------------------ */

static struct wd_proc *find_pid(const struct wd *wd, pid_t pid)
{
    for (struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        if (proc->pid == pid)
            return proc;
    return NULL;
}

static struct wd_proc *proc_create(struct wd *wd, const struct pt_ring *ring)
{
    struct wd_proc *proc = calloc(1, sizeof(*proc));
    if (!proc)
        return NULL;
    proc->pid = ring->pid;
    proc->name = ring->name;
    proc->start = wd_clock_time(&wd->clock, ring->start);
    const char *program = program_of(ring);
    proc->exe = program ? wd_site_name(wd, program, PATH_MAX) : NULL;
    proc->cwd = wd_site_name(wd, ring->cwd, sizeof(ring->cwd) - 1);
    proc->pidfd = (int)syscall(SYS_pidfd_open, proc->pid, 0);
    proc->next = wd->procs;
    wd->procs = proc;
    return proc;
}

static void node_create(struct wd *wd, struct wd_proc *proc, uint32_t slot)
{
    struct wd_node *node = calloc(1, sizeof(*node));
    if (!node)
        return; /* it is tried again when we look the next time */
    node->proc = proc;
    node->slot = slot;
    node->ring = wd->rings[slot];
    node->name = proc->name;
    wd_node_no_thread(node);
    struct wd_node **last = &proc->nodes;
    while (*last)
        last = &(*last)->next;
    *last = node;
    wd->slots[slot] = node;
}

static int is_gone(pid_t pid)
{
    return pid <= 0 || (kill(pid, 0) && errno == ESRCH);
}

/*
 * To be told of its end; returns whether we shall be.  There may be no descriptor left for it,
 * or the kernel may not have such ones: then we look for its end whenever the rings are drained.
 */
static int watch_end(int epoll, struct wd_proc *proc)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = proc};
    if (proc->pidfd >= 0 && !epoll_ctl(epoll, EPOLL_CTL_ADD, proc->pidfd, &ev))
        return 1;
    if (proc->pidfd >= 0)
        close(proc->pidfd);
    proc->pidfd = -1;
    proc->young_until = FOREVER;
    return 0;
}

/*
 * Many processes live for a moment only.  Were we woken by the end of each, we should have the
 * core where the parent that waits for it is to go on, so where nobody is held their end is
 * noticed when the rings are drained.  One that has ended already is taken leave of at once.
 */
static void proc_watch(struct wd *wd, struct wd_proc *proc)
{
    int can_wait = wd->spec.throttle == PT_THROTTLE_NONE;
    proc->young_until = can_wait ? wd_now() + YOUNG_NS : 0;
    if (!watch_end(can_wait ? wd->young : wd->epoll, proc) && is_gone(proc->pid))
        wd_proc_ended(wd, proc);
}

static void grow_up(struct wd *wd, struct wd_proc *proc)
{
    epoll_ctl(wd->young, EPOLL_CTL_DEL, proc->pidfd, NULL);
    proc->young_until = 0;
    watch_end(wd->epoll, proc);
}

/* Looks at those whose end does not wake us: who is gone, and who has become old? */
static size_t look_after_young(struct wd *wd, size_t *left)
{
    uint64_t now = wd_now();
    size_t ended = 0;
    struct wd_proc *next;
    *left = 0;
    for (struct wd_proc *proc = wd->procs; proc; proc = next) {
        next = proc->next;
        if (proc->pidfd < 0 && is_gone(proc->pid)) {
            wd_proc_ended(wd, proc);
            ended++;
        } else if (proc->young_until > now) {
            ++*left;
        } else if (proc->young_until) {
            grow_up(wd, proc);
        }
    }
    return ended;
}

size_t wd_procs_young(struct wd *wd, size_t *left)
{
    struct epoll_event events[32];
    size_t ended = 0;
    int n;
    do {
        n = epoll_wait(wd->young, events, 32, 0);
        for (int i = 0; i < n; i++, ended++)
            wd_proc_ended(wd, events[i].data.ptr);
    } while (n == 32);
    return ended + look_after_young(wd, left);
}

/* It may be a moment from its record of its end to the end. */
static int is_running(const struct wd_proc *proc)
{
    struct pollfd end = {.fd = proc->pidfd, .events = POLLIN};
    if (is_gone(proc->pid) || (proc->pidfd >= 0 && poll(&end, 1, 0) == 1))
        return 0;
    for (const struct wd_node *node = proc->nodes; node; node = node->next)
        if (atomic_load(&node->ring->state) != PT_SLOT_ENDED)
            return 1;
    return 0;
}

size_t wd_procs_running(struct wd *wd)
{
    size_t n = 0;
    for (const struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        n += (size_t)is_running(proc);
    return n;
}

/* A new thread; the first of a process brings the process with it. */
static void arrive(struct wd *wd, uint32_t slot)
{
    const struct pt_ring *ring = wd->rings[slot];
    struct wd_proc *proc = find_pid(wd, ring->pid);
    int is_new = ring->first || !proc;
    if (is_new && proc) /* it has called exec: another program, the same pid */
        wd_proc_ended(wd, proc);
    if (is_new)
        proc = proc_create(wd, ring);
    if (proc)
        node_create(wd, proc, slot);
    if (proc && is_new)
        proc_watch(wd, proc);
}

/* 1: a thread is there that we do not know; -1: one is about to be there. */
static int is_newcomer(struct wd *wd, uint32_t slot)
{
    pid_t owner = atomic_load(&wd->memory->owner[slot]);
    if (!owner || wd->slots[slot])
        return 0;
    struct pt_ring *ring = wd_memory_ring(wd, slot);
    if (!ring)
        return 0;
    if (atomic_load_explicit(&ring->state, memory_order_acquire) != PT_SLOT_FREE)
        return 1;
    if (!is_gone(owner))
        return -1;
    if (atomic_load_explicit(&ring->state, memory_order_acquire) != PT_SLOT_FREE)
        return 1;
    wd_memory_free(wd, slot); /* killed on its way in */
    return 0;
}

static int arrival_order(const void *a, const void *b, void *arg)
{
    const struct wd *wd = arg;
    uint32_t x = wd->rings[*(const uint32_t *)a]->arrival;
    uint32_t y = wd->rings[*(const uint32_t *)b]->arrival;
    return (x > y) - (x < y);
}

void wd_procs_look(struct wd *wd)
{
    static uint32_t newcomers[PT_MAX_SLOTS];
    uint32_t n = 0, arrivals = atomic_load(&wd->memory->arrivals);
    int more = 0;
    if (arrivals == wd->arrivals)
        return;
    for (uint32_t slot = 0; slot < wd->nslots; slot++) {
        int is_new = is_newcomer(wd, slot);
        if (is_new > 0)
            newcomers[n++] = slot;
        more |= is_new < 0;
    }
    qsort_r(newcomers, n, sizeof(newcomers[0]), arrival_order, wd);
    for (uint32_t i = 0; i < n; i++)
        arrive(wd, newcomers[i]);
    if (!more)
        wd->arrivals = arrivals;
    wd_memory_prepare(wd);
}
