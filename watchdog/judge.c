/*
 * The judge: of the nodes of this host.  It passes on who wants to be held, looks at the
 * others when the referee says so, and lets the held one go.  See verdict.h.
 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "watchdog/look.h"
#include "watchdog/referee.h"
#include "watchdog/watchdog.h"

#define OPEN_NS 15000000000u /* how long the hosts may take to find each other */

struct wd_judge {
    struct wd *wd;
    struct wd_referee *referee; /* NULL: on another host */
    int opened;                 /* all hosts are connected, or there is one only */
    int closed;                 /* there is no referee any more */
    uint64_t unopened;          /* since when somebody waits for that */

    struct wd_looks *looks;
    int looking;
    struct wd_say_look look;
    uint64_t progress; /* of all nodes, when they were at rest in the first round */

    struct wd_peer_list result; /* parts of it that have come */
};

/* ---- talking --------------------------------------------------------------------------- */

static void hear(struct wd_judge *j, uint16_t type, const void *payload, size_t len);

static void say(void *arg, uint16_t type, const void *payload, size_t len)
{
    struct wd_judge *j = arg;
    if (j->referee)
        wd_referee_hear(j->referee, 0, type, payload, len);
    else
        wd_hosts_send(j->wd, 0, type, payload, len);
}

static void referee_says(void *arg, int host, uint16_t type, const void *payload, size_t len)
{
    struct wd_judge *j = arg;
    if (host == 0)
        hear(j, type, payload, len);
    else
        wd_hosts_send(j->wd, host, type, payload, len);
}

struct wd_judge *wd_judge_create(struct wd *wd)
{
    struct wd_judge *j = calloc(1, sizeof(*j));
    if (!j)
        return NULL;
    struct wd_referee_conf conf = {wd->opt.nhosts, wd->spec.hold_max, referee_says, j};
    j->wd = wd;
    j->opened = wd->opt.nhosts == 1;
    j->looks = wd_looks_create(wd);
    j->referee = wd->opt.hostid == 0 ? wd_referee_create(&conf) : NULL;
    if (!j->looks || (wd->opt.hostid == 0 && !j->referee)) {
        wd_judge_destroy(j);
        return NULL;
    }
    return j;
}

void wd_judge_destroy(struct wd_judge *j)
{
    if (!j)
        return;
    wd_referee_destroy(j->referee);
    wd_looks_destroy(j->looks);
    wd_peer_list_free(&j->result);
    free(j);
}

/* ---- the nodes that want to be held ---------------------------------------------------------- */

static void let_go(struct wd_node *node)
{
    node->asked = 0;
    atomic_store(&node->ring->hold, PT_HOLD_RELEASED);
    syscall(SYS_futex, &node->ring->hold, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static struct wd_node *find_asking(const struct wd *wd, const struct pt_name *name)
{
    for (struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        for (struct wd_node *node = proc->nodes; node; node = node->next) {
            struct pt_name present = wd_node_present(node);
            if (node->asked && !pt_name_compare(&present, name))
                return node;
        }
    return NULL;
}

static void ask(struct wd_judge *j, struct wd_node *node)
{
    wd_drain_proc(j->wd, node->proc); /* to know what it has done */
    struct wd_say_node about = {
        .name = wd_node_present(node),
        .passed = node->proc->passed,
        .io_event = atomic_load(&node->ring->io_done),
    };
    node->asked = wd_now();
    if (j->closed || j->wd->limit) {
        j->wd->holds_refused++;
        let_go(node);
    } else {
        say(j, WD_SAY_ASK, &about, sizeof(about));
    }
}

static void pass_on_asking(struct wd_judge *j)
{
    for (struct wd_proc *proc = j->wd->procs; proc; proc = proc->next)
        for (struct wd_node *node = proc->nodes; node; node = node->next)
            if (!node->asked && atomic_load(&node->ring->hold) == PT_HOLD_ASKED)
                ask(j, node);
}

static void hear_refused(struct wd_judge *j, const void *payload, size_t len)
{
    struct wd_say_node about;
    if (len != sizeof(about))
        return;
    memcpy(&about, payload, sizeof(about));
    struct wd_node *node = find_asking(j->wd, &about.name);
    if (!node)
        return;
    j->wd->holds_refused++;
    let_go(node);
}

static void write_hold(struct wd_judge *j, const struct wd_node *node,
                       const struct wd_say_state *head)
{
    struct wd *wd = j->wd;
    struct pt_hold hold = {
        .name = head->held,
        .io_event = head->io_event,
        .ns = wd_now() - node->asked,
        .timed_out = head->timed_out != 0,
        .npeers = j->result.n,
        .peers = j->result.peers,
    };
    if (pt_writer_hold(wd->writer, &hold) && !wd->write_error)
        wd->write_error = errno;
    wd->holds++;
    wd->holds_timed_out += (uint64_t)hold.timed_out;
    wd->hold_ns += hold.ns;
}

static void hear_result(struct wd_judge *j, const void *payload, size_t len)
{
    struct wd_say_state head;
    if (wd_peer_list_add(&j->result, payload, len))
        return;
    memcpy(&head, payload, sizeof(head));
    if (head.more)
        return;
    struct wd_node *node = find_asking(j->wd, &head.held);
    if (node) {
        write_hold(j, node, &head);
        let_go(node);
    }
    j->result.n = 0;
}

/* ---- the others -------------------------------------------------------------------------- */

static void say_state(struct wd_judge *j, int moved)
{
    struct wd_say_state head = {
        .hold = j->look.hold,
        .round = j->look.round,
        .moved = (uint32_t)moved,
    };
    size_t n = 0;
    const struct pt_hold_peer *peers = moved ? NULL : wd_looks_peers(j->looks, &n);
    j->looking = 0; /* first: the answer may be the next question */
    wd_say_peers(&head, WD_SAY_STATE, peers, n, say, j);
}

static void take_look(struct wd_judge *j)
{
    const struct wd_node *held = find_asking(j->wd, &j->look.held);
    int confirm = j->look.kind == WD_LOOK_CONFIRM;
    /* Progress is read first: what happens while we look is then seen in the next round. */
    uint64_t progress = wd_looks_progress(j->wd, held);
    enum wd_rest rest = wd_looks_take(j->looks, held, j->look.passed);
    if (confirm && progress != j->progress) {
        say_state(j, 1);
    } else if (rest == WD_REST || j->look.kind == WD_LOOK_NOW) {
        j->progress = progress;
        say_state(j, 0);
    }
}

static void hear_look(struct wd_judge *j, const void *payload, size_t len)
{
    if (len != sizeof(j->look))
        return;
    memcpy(&j->look, payload, sizeof(j->look));
    j->looking = 1;
    if (j->look.kind != WD_LOOK_NOW)
        wd_looks_restart(j->looks);
    if (j->look.kind != WD_LOOK_GATHER) /* at the beginning of a hold others may still be moving */
        take_look(j);
}

static void stop_looking(struct wd_judge *j)
{
    j->looking = 0;
    wd_looks_end(j->looks);
}

static void hear(struct wd_judge *j, uint16_t type, const void *payload, size_t len)
{
    switch (type) {
    case WD_SAY_REFUSED:
        hear_refused(j, payload, len);
        break;
    case WD_SAY_LOOK:
        hear_look(j, payload, len);
        break;
    case WD_SAY_RESULT:
        hear_result(j, payload, len);
        break;
    case WD_SAY_END:
        stop_looking(j);
        break;
    default:
        break;
    }
}

/* ---- other hosts ------------------------------------------------------------------------- */

void wd_judge_hear(struct wd_judge *j, int host, uint16_t type, const void *payload, size_t len)
{
    if (j->referee)
        wd_referee_hear(j->referee, host, type, payload, len);
    else if (host == 0)
        hear(j, type, payload, len);
}

void wd_judge_open(struct wd_judge *j)
{
    j->opened = 1;
    if (j->referee)
        wd_referee_open(j->referee);
}

static void close_down(struct wd_judge *j)
{
    j->closed = 1;
    stop_looking(j);
    if (j->referee)
        wd_referee_close(j->referee);
    for (struct wd_proc *proc = j->wd->procs; proc; proc = proc->next)
        for (struct wd_node *node = proc->nodes; node; node = node->next)
            if (node->asked) {
                j->wd->holds_refused++;
                let_go(node);
            }
}

void wd_judge_host_gone(struct wd_judge *j, int host, int in_order)
{
    if (j->referee && in_order)
        wd_referee_left(j->referee, host);
    else
        close_down(j);
}

/* ---- from time to time ------------------------------------------------------------------- */

static int is_anybody_asking(const struct wd *wd)
{
    for (const struct wd_proc *proc = wd->procs; proc; proc = proc->next)
        for (const struct wd_node *node = proc->nodes; node; node = node->next)
            if (atomic_load(&node->ring->hold) == PT_HOLD_ASKED)
                return 1;
    return 0;
}

/* Who wants to be held while the hosts are not connected yet waits for that, but not for ever. */
static int wait_for_hosts(struct wd_judge *j)
{
    if (j->opened || j->closed || !is_anybody_asking(j->wd))
        return 0;
    if (!j->unopened)
        j->unopened = wd_now();
    if (wd_now() - j->unopened < OPEN_NS)
        return 1;
    close_down(j);
    return 0;
}

int wd_judge_tick(struct wd_judge *j)
{
    wd_procs_look(j->wd);
    if (wait_for_hosts(j))
        return 1;
    pass_on_asking(j);
    if (j->looking)
        take_look(j);
    if (j->referee && wd_referee_tick(j->referee, wd_now()))
        return 1;
    return j->looking;
}

void wd_judge_forget(struct wd_judge *j, const struct wd_node *node)
{
    struct wd_say_node about = {.name = wd_node_present(node)};
    if (node->asked && !j->closed)
        say(j, WD_SAY_GONE, &about, sizeof(about));
    wd_looks_restart(j->looks);
}
