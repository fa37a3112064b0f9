#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "replay/engine.h"
#include "replay/ops.h"
#include "replay/resolve.h"

/* Who opens a slot. */
struct opener {
    size_t node; /* of the plan */
    uint64_t event;
    uint64_t begin_ns;
};

struct resolver {
    struct plan *plan;
    size_t room;
    struct opener *openers; /* by slot */
};

/* One use of a slot that several nodes share. */
struct use {
    uint32_t slot;
    uint64_t begin_ns;
    struct plan_step *step;
    int closes;
};

typedef int visit_fn(struct resolver *r, size_t node, uint64_t event);

static int visit(struct resolver *r, visit_fn *fn)
{
    for (size_t k = 0; k < r->plan->nnodes; k++)
        for (uint64_t i = 0; i < r->plan->nodes[k].nevents; i++)
            if (fn(r, k, i) < 0)
                return -1;
    return 0;
}

static int is_inherited(const struct pt_call_desc *call)
{
    return call->cls == PT_CLASS_NAME && call->replay == PT_REPLAY_OPEN;
}

/*
 * Failures that come from names and arguments, and so come again.  Not ENOTEMPTY: what the
 * trace does not name is not in the directory, which would be removed.
 */
static int failure_repeats(enum pt_replay replay, int err)
{
    switch (err) {
    case ENOENT:
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case EBADF:
        return 1;
    case EINVAL: /* of these, not all arguments are known: they might succeed */
        return !op_is(replay, OP_OPENS | OP_FD2) && replay != PT_REPLAY_MKDIR &&
               replay != PT_REPLAY_DUP;
    case ENODATA: /* also where there is nothing of the kind */
    case ENOTSUP:
        return replay == PT_REPLAY_ATTRIBUTE || replay == PT_REPLAY_FATTRIBUTE;
    case ENXIO: /* no data behind that place */
        return replay == PT_REPLAY_SEEK;
    default:
        return 0;
    }
}

static int is_special(const struct plan *plan, uint32_t file)
{
    return file != PT_NO_FILE && plan_file_is_special(pt_store_file(plan->store, file));
}

static enum plan_action action_of_name(const struct plan *plan, const struct pt_store_event *ev,
                                       const struct pt_call_desc *call)
{
    int second = op_is(call->replay, OP_NAME2);

    if (!op_is(call->replay, OP_NAME)) /* by address, or all streams */
        return PLAN_ISSUE;
    if (ev->file == PT_NO_FILE || (second && ev->file2 == PT_NO_FILE))
        return PLAN_UNSUPPORTED;
    return is_special(plan, ev->file) || (second && is_special(plan, ev->file2)) ? PLAN_IGNORED
                                                                                 : PLAN_ISSUE;
}

static enum plan_action action_of_inherited(const struct plan *plan,
                                            const struct pt_store_event *ev)
{
    const struct pt_store_file *file;

    if (ev->file == PT_NO_FILE)
        return PLAN_IGNORED;
    file = pt_store_file(plan->store, ev->file);
    if (plan_file_is_special(file))
        return PLAN_IGNORED;
    return file->made == PT_MADE_BY_TRACE ? PLAN_REOPEN : PLAN_BEFORE;
}

/* What is to be done as far as the event alone tells. */
static enum plan_action action_of(const struct plan *plan, const struct pt_store_event *ev)
{
    const struct pt_call_desc *call = plan_call(plan, ev);

    if (ev->flags & PT_EV_INNER)
        return PLAN_NOTHING;
    if (is_inherited(call))
        return action_of_inherited(plan, ev);
    if (call->cls != PT_CLASS_IO && call->cls != PT_CLASS_FDIO)
        return PLAN_NOTHING;
    if (!strcmp(call->name, "exit"))
        return PLAN_NOTHING;
    if (call->replay == PT_REPLAY_NONE && !strncmp(call->name, "MPI_", 4))
        return PLAN_MPI_IO;
    if (ev->err && !failure_repeats(call->replay, ev->err))
        return PLAN_FAILED;
    if (!engine_can(&engine_posix, call->replay))
        return PLAN_UNSUPPORTED;
    return op_uses_descriptor(call->replay, ev) ? PLAN_ISSUE : action_of_name(plan, ev, call);
}

static int note_opener(struct resolver *r, uint32_t slot, size_t node, uint64_t event)
{
    const struct pt_store_event *ev = &r->plan->nodes[node].events[event];

    if (slot >= r->room) {
        size_t room = 2 * (size_t)slot + 64;
        struct opener *more = realloc(r->openers, room * sizeof(*more));

        if (!more)
            return -1;
        r->openers = more;
        r->room = room;
    }
    r->openers[slot] = (struct opener){node, event, ev->begin_ns};
    return 0;
}

/* Gives a slot the fate of the event that makes it. */
static int open_slot(struct resolver *r, uint32_t slot, enum plan_action action, size_t node,
                     uint64_t event)
{
    if (slot == HANDLE_NO_SLOT)
        return 0;
    if (action == PLAN_IGNORED)
        handles_set_fate(r->plan->handles, slot, HANDLE_IGNORED);
    else if (action == PLAN_ISSUE || action == PLAN_BEFORE || action == PLAN_REOPEN)
        handles_set_fate(r->plan->handles, slot, HANDLE_OPENED);
    return note_opener(r, slot, node, event);
}

static uint32_t slot_of(struct resolver *r, size_t node, uint32_t handle)
{
    errno = 0;
    return handles_slot(r->plan->handles, r->plan->nodes[node].process, handle);
}

/* First: the action of each event by itself, all slots, and the opens. */
static int visit_opens(struct resolver *r, size_t node, uint64_t event)
{
    struct plan_node *n = &r->plan->nodes[node];
    const struct pt_store_event *ev = &n->events[event];
    struct plan_step *step = &n->steps[event];
    enum pt_replay replay = plan_call(r->plan, ev)->replay;

    *step = (struct plan_step){.slot = HANDLE_NO_SLOT, .slot2 = HANDLE_NO_SLOT};
    step->action = action_of(r->plan, ev);
    errno = 0;
    if (op_uses_descriptor(replay, ev) || (op_is(replay, OP_OPENS) && !ev->err))
        step->slot = slot_of(r, node, ev->handle);
    if (errno != ENOMEM && replay == PT_REPLAY_DUP && !ev->err)
        step->slot2 = slot_of(r, node, ev->handle2 ? ev->handle2 : ev->handle);
    else if (errno != ENOMEM && op_is(replay, OP_FD2))
        step->slot2 = slot_of(r, node, ev->handle2);
    if (errno == ENOMEM)
        return -1;
    if (!op_is(replay, OP_OPENS) || ev->err || ev->flags & PT_EV_INNER)
        return 0;
    return open_slot(r, step->slot, (enum plan_action)step->action, node, event);
}

/* Whether the slot is open by then: opened earlier in this node, or before in another. */
static int opened_before(const struct resolver *r, uint32_t slot, size_t node, uint64_t event)
{
    const struct opener *o = &r->openers[slot];
    const struct plan_node *n = &r->plan->nodes[o->node];

    if (n->steps[o->event].action == PLAN_BEFORE)
        return 1;
    if (o->node == node)
        return o->event < event;
    return o->begin_ns <= r->plan->nodes[node].events[event].begin_ns;
}

static enum plan_action action_on_slot(const struct resolver *r, uint32_t slot, size_t node,
                                       uint64_t event)
{
    switch (handles_fate(r->plan->handles, slot)) {
    case HANDLE_IGNORED:
        return PLAN_IGNORED;
    case HANDLE_OPENED:
        return opened_before(r, slot, node, event) ? PLAN_ISSUE : PLAN_NO_HANDLE;
    default:
        return PLAN_NO_HANDLE;
    }
}

/* Second: the events on descriptors; a dup opens a slot for those behind it. */
static int visit_uses(struct resolver *r, size_t node, uint64_t event)
{
    struct plan_node *n = &r->plan->nodes[node];
    const struct pt_store_event *ev = &n->events[event];
    struct plan_step *step = &n->steps[event];
    enum pt_replay replay = plan_call(r->plan, ev)->replay;

    if (!op_uses_descriptor(replay, ev) ||
        (step->action != PLAN_ISSUE && step->action != PLAN_NO_HANDLE))
        return 0;
    step->action = action_on_slot(r, step->slot, node, event);
    /* A copy to where nothing is replayed only reads. */
    if (step->action == PLAN_ISSUE && op_is(replay, OP_FD2) &&
        action_on_slot(r, step->slot2, node, event) != PLAN_ISSUE)
        step->slot2 = HANDLE_NO_SLOT;
    if (step->action == PLAN_NO_HANDLE && ev->err)
        step->action = PLAN_FAILED;
    if (replay == PT_REPLAY_DUP && !ev->err && step->slot2 != step->slot)
        return open_slot(r, step->slot2, (enum plan_action)step->action, node, event);
    return 0;
}

/* Notes a use of a slot, if it is shared. */
static void add_use(struct use use, const uint8_t *shared, struct use *uses, size_t *n)
{
    if (use.slot == HANDLE_NO_SLOT || !shared[use.slot])
        return;
    if (uses)
        uses[*n] = use;
    ++*n;
}

static void add_uses(const struct resolver *r, size_t node, uint64_t event, const uint8_t *shared,
                     struct use *uses, size_t *n)
{
    struct plan_node *pn = &r->plan->nodes[node];
    const struct pt_store_event *ev = &pn->events[event];
    struct plan_step *step = &pn->steps[event];
    enum pt_replay replay = plan_call(r->plan, ev)->replay;

    if (step->action != PLAN_ISSUE || !op_uses_descriptor(replay, ev))
        return;
    add_use((struct use){step->slot, ev->begin_ns, step, replay == PT_REPLAY_CLOSE}, shared, uses,
            n);
    if (op_is(replay, OP_FD2))
        add_use((struct use){step->slot2, ev->begin_ns, step, 0}, shared, uses, n);
}

static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a, *y = b;

    if (x->slot != y->slot)
        return x->slot < y->slot ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->closes - y->closes;
}

static void note_user(uint32_t slot, size_t node, uint32_t *user, uint8_t *shared)
{
    if (slot == HANDLE_NO_SLOT)
        return;
    if (user[slot] && user[slot] != node + 1)
        shared[slot] = 1;
    user[slot] = (uint32_t)node + 1;
}

/* Marks the slots that more than one node uses. */
static void find_shared(const struct resolver *r, uint32_t *user, uint8_t *shared)
{
    for (size_t k = 0; k < r->plan->nnodes; k++)
        for (uint64_t i = 0; i < r->plan->nodes[k].nevents; i++) {
            note_user(r->plan->nodes[k].steps[i].slot, k, user, shared);
            note_user(r->plan->nodes[k].steps[i].slot2, k, user, shared);
        }
}

static size_t collect_uses(const struct resolver *r, const uint8_t *shared, struct use *uses)
{
    size_t n = 0;

    for (size_t k = 0; k < r->plan->nnodes; k++)
        for (uint64_t i = 0; i < r->plan->nodes[k].nevents; i++)
            add_uses(r, k, i, shared, uses, &n);
    return n;
}

/* Third: how many uses by any thread a close of a shared slot has to wait for. */
static int count_uses(struct resolver *r)
{
    size_t slots = handles_count(r->plan->handles), n;
    uint32_t *user = calloc(slots + 1, sizeof(*user)), before = 0;
    uint8_t *shared = calloc(slots + 1, sizeof(*shared));
    struct use *uses = NULL;
    int rc = -1;

    if (!user || !shared)
        goto done;
    find_shared(r, user, shared);
    n = collect_uses(r, shared, NULL);
    uses = calloc(n + 1, sizeof(*uses));
    if (!uses)
        goto done;
    collect_uses(r, shared, uses);
    qsort(uses, n, sizeof(*uses), compare_uses);
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && uses[i].slot != uses[i - 1].slot)
            before = 0;
        if (uses[i].closes)
            uses[i].step->uses = before;
        else
            before++;
    }
    rc = 0;
done:
    free(user);
    free(shared);
    free(uses);
    return rc;
}

int resolve_steps(struct plan *plan, struct pt_err *err)
{
    struct resolver r = {.plan = plan};
    int rc = 0;

    /* The uses twice: a dup may serve a thread that was looked at before. */
    if (visit(&r, visit_opens) < 0 || visit(&r, visit_uses) < 0 || visit(&r, visit_uses) < 0 ||
        count_uses(&r) < 0)
        rc = pt_err_set(err, "cannot plan the handles: no memory");
    free(r.openers);
    return rc;
}
