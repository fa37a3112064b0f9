/*
 * From the events of a run file to those of a store: only I/O stays, what lies
 * between becomes think time.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/merge.h"

void *merge_grow(void *array, size_t n, size_t *size, size_t element, struct pt_err *err)
{
    size_t want = *size ? *size * 2 : 16;
    void *bigger;

    if (n < *size)
        return array;
    bigger = want < SIZE_MAX / element ? realloc(array, want * element) : NULL;
    if (!bigger) {
        pt_err_set(err, "not enough memory");
        return NULL;
    }
    *size = want;
    return bigger;
}

int merge_opens(enum pt_replay replay)
{
    return replay == PT_REPLAY_OPEN || replay == PT_REPLAY_OPENDIR || replay == PT_REPLAY_FOPEN;
}

/* ---- think time ------------------------------------------------------------ */

/* Part 0 until a sync call came; what follows one is part 2 until the next comes. */
static int current_part(const struct merge_think *t)
{
    return t->syncs ? 2 : 0;
}

static void think_sync(struct merge_think *t, uint64_t ns, uint64_t cpu_ns)
{
    if (t->syncs) {
        t->compute[1] += t->compute[2];
        t->idle[1] += t->idle[2];
        t->compute[2] = t->idle[2] = 0;
    }
    t->syncs++;
    t->sync_ns += ns;
    t->sync_cpu_ns += cpu_ns;
}

static void take_think(struct merge_think *t, struct pt_store_event *e)
{
    e->compute0_ns = t->compute[0];
    e->compute1_ns = t->compute[1];
    e->compute2_ns = t->compute[2];
    e->idle0_ns = t->idle[0];
    e->idle1_ns = t->idle[1];
    e->idle2_ns = t->idle[2];
    e->sync_ns = t->sync_ns;
    e->sync_cpu_ns = t->sync_cpu_ns;
    e->syncs = t->syncs;
    *t = (struct merge_think){0};
}

/*
 * The events `from` was before have become one wait: all that happened since is
 * time in a sync call.
 */
static void fold_think(const struct pt_store_event *from, struct merge_think *since)
{
    struct merge_think t = {
        .compute = {from->compute0_ns, from->compute1_ns, from->compute2_ns},
        .idle = {from->idle0_ns, from->idle1_ns, from->idle2_ns},
        .sync_ns = from->sync_ns,
        .sync_cpu_ns = from->sync_cpu_ns + since->sync_cpu_ns,
        .syncs = from->syncs,
    };
    uint64_t waited = from->dur_ns + since->sync_ns;

    for (int i = 0; i < 3; i++)
        waited += since->compute[i] + since->idle[i];
    think_sync(&t, waited, 0);
    t.syncs += since->syncs;
    *since = t;
}

/* ---- events ------------------------------------------------------------------ */

int merge_has_field(const struct pt_call_desc *call, int field)
{
    for (unsigned i = 0; i < call->nfields; i++)
        if (call->fields[i] == field)
            return 1;
    return 0;
}

static void fill_event(struct pt_store_event *e, const struct pt_call_desc *call, unsigned op,
                       const struct pt_event *ev, int64_t clock)
{
    const int64_t *f = ev->field;

    *e = (struct pt_store_event){
        .op = op,
        .flags = ev->flags,
        .err = ev->err,
        .begin_ns = ev->begin + (uint64_t)clock,
        .dur_ns = ev->dur,
        .fd = -1,
        .fd2 = -1,
        .file = PT_NO_FILE,
        .file2 = PT_NO_FILE,
        .off = f[PT_F_OFF],
        .off2 = f[PT_F_OFF2],
        .len = f[PT_F_LEN],
        .whence = f[PT_F_WHENCE],
        .oflags = f[PT_F_FLAGS],
        .mode = f[PT_F_MODE],
        .addr = (uint64_t)f[PT_F_ADDR],
        .ret = ev->ret,
    };
    if (merge_has_field(call, PT_F_FD)) {
        e->fd = PT_FD_OF(f[PT_F_FD]);
        e->handle = PT_HANDLE_OF(f[PT_F_FD]);
    }
    if (merge_has_field(call, PT_F_FD2)) {
        e->fd2 = PT_FD_OF(f[PT_F_FD2]);
        e->handle2 = PT_HANDLE_OF(f[PT_F_FD2]);
    }
    if (merge_has_field(call, PT_F_HANDLE)) {
        e->handle = f[PT_F_HANDLE];
        if (!ev->err && call->cls == PT_CLASS_IO)
            e->fd = ev->ret;
    }
}

static int add_named(struct merge_run *run, struct merge_node *node, size_t event,
                     const struct pt_event *ev, uint64_t begin, struct pt_err *err)
{
    struct merge_named *named;

    named = merge_grow(node->named, node->nnamed, &node->named_size, sizeof(*named), err);
    if (!named)
        return -1;
    node->named = named;
    named += node->nnamed;
    *named = (struct merge_named){
        .begin = begin,
        .event = event,
        .path = NAMES_NONE,
        .path2 = NAMES_NONE,
        .dirfd = ev->field[PT_F_DIRFD],
        .dirfd2 = ev->field[PT_F_DIRFD2],
        .dev = ev->field[PT_F_DEV],
        .ino = ev->field[PT_F_INO],
        .fsize = ev->field[PT_F_FSIZE],
    };
    if (ev->str[0] && (named->path = names_add(&run->names, ev->str[0])) == NAMES_NONE)
        return pt_err_set(err, "not enough memory");
    if (ev->str[1] && (named->path2 = names_add(&run->names, ev->str[1])) == NAMES_NONE)
        return pt_err_set(err, "not enough memory");
    node->nnamed++;
    return 0;
}

static int add_event(struct merge_node *node, const struct pt_store_event *e, struct pt_err *err)
{
    struct pt_store_event *events;

    events = merge_grow(node->events, node->nevents, &node->size, sizeof(*events), err);
    if (!events)
        return -1;
    node->events = events;
    events[node->nevents++] = *e;
    return 0;
}

static int add_io(struct merge_node *node, struct pt_err *err)
{
    uint32_t *io;

    if (node->nevents >= MERGE_IO_FOLDED)
        return pt_err_set(err, "a node has too many events");
    io = merge_grow(node->io, node->nio, &node->io_size, sizeof(*io), err);
    if (!io)
        return -1;
    node->io = io;
    io[node->nio++] = node->nevents;
    return 0;
}

/* Calls by which a program waits for a file: until it is there, or, to make it, gone. */
static int may_wait(enum pt_replay replay)
{
    switch (replay) {
    case PT_REPLAY_OPEN:
    case PT_REPLAY_FOPEN:
    case PT_REPLAY_OPENDIR:
    case PT_REPLAY_STAT:
    case PT_REPLAY_LSTAT:
    case PT_REPLAY_ACCESS:
    case PT_REPLAY_MKDIR:
    case PT_REPLAY_LINK:
    case PT_REPLAY_SYMLINK:
        return 1;
    default:
        return 0;
    }
}

static int same_text(const struct merge_run *run, uint32_t name, const char *text)
{
    const char *have = names_text(&run->names, name);

    return have && text ? !strcmp(have, text) : have == text;
}

/* Does this call repeat a failed one that waits for a file to appear or to go? */
static int repeats_last(const struct merge *m, const struct merge_run *run,
                        const struct merge_node *node, const struct pt_store_event *e,
                        const struct pt_event *ev)
{
    const struct pt_store_event *last = node->nevents ? &node->events[node->nevents - 1] : NULL;
    const struct merge_named *named = node->nnamed ? &node->named[node->nnamed - 1] : NULL;

    if (!last || !named || named->event != node->nevents - 1 || !ev->str[0])
        return 0;
    if (!may_wait(m->calls[e->op].replay))
        return 0;
    if (last->err != ENOENT && last->err != EEXIST && last->err != EAGAIN)
        return 0;
    return last->op == e->op && last->oflags == e->oflags && last->mode == e->mode &&
           named->dirfd == ev->field[PT_F_DIRFD] && same_text(run, named->path, ev->str[0]) &&
           named->dirfd2 == ev->field[PT_F_DIRFD2] && same_text(run, named->path2, ev->str[1]);
}

/* Takes the last event back: the new one stands for the whole loop. */
static void fold_last(struct merge_node *node)
{
    const struct pt_store_event *last = &node->events[--node->nevents];

    node->nnamed--;
    fold_think(last, &node->think);
    node->io[node->nio - 1] |= MERGE_IO_FOLDED;
}

/* A read or write that goes on behind the program's back: aio_return tells its result. */
static int is_aio(const struct pt_call_desc *call)
{
    return !strcmp(call->name, "aio_read") || !strcmp(call->name, "aio_write");
}

static void finish_aio(struct merge_node *node, const struct pt_event *ev)
{
    const uint64_t *event = map_get(&node->aio, (uint64_t)ev->field[PT_F_ADDR]);

    if (event && *event < node->nevents && ev->ret >= 0)
        node->events[*event].ret = ev->ret;
}

static int note_blind(struct merge_run *run, const struct pt_event *ev, struct pt_err *err)
{
    const char *reason = ev->str[2] ? ev->str[2] : "?", *program = ev->str[0] ? ev->str[0] : "";
    char *text;
    uint32_t added;

    if (asprintf(&text, "%s%s%s", reason, *program ? ": " : "", program) < 0)
        return pt_err_set(err, "not enough memory");
    added = names_add(&run->blind, text);
    free(text);
    return added == NAMES_NONE ? pt_err_set(err, "not enough memory") : 0;
}

static int add_io_event(struct merge *m, struct merge_run *run, struct merge_node *node,
                        struct pt_store_event *e, const struct pt_event *ev, struct pt_err *err)
{
    int is_dup = m->calls[e->op].replay == PT_REPLAY_DUP;

    if (repeats_last(m, run, node, e, ev))
        fold_last(node);
    take_think(&node->think, e);
    if (ev->str[2]) {
        uint32_t text = names_add(&run->names, ev->str[2]);

        if (text == NAMES_NONE)
            return pt_err_set(err, "not enough memory");
        e->text = (uint64_t)text + 1;
    }
    if (is_aio(&m->calls[e->op]) && map_put(&node->aio, e->addr, node->nevents) < 0)
        return pt_err_set(err, "not enough memory");
    if ((ev->str[0] || is_dup) && add_named(run, node, node->nevents, ev, e->begin_ns, err) < 0)
        return -1;
    if (add_io(node, err) < 0)
        return -1;
    return add_event(node, e, err);
}

/* An inherited descriptor becomes an event without think time. */
static int add_inherited(struct merge_run *run, struct merge_node *node,
                         const struct pt_store_event *e, const struct pt_event *ev,
                         struct pt_err *err)
{
    if (!ev->str[0] || ev->str[0][0] != '/')
        return 0;
    if (add_named(run, node, node->nevents, ev, e->begin_ns, err) < 0)
        return -1;
    return add_event(node, e, err);
}

/* fchdir names the directory by its descriptor. */
static int add_fchdir(struct merge_run *run, struct merge_node *node,
                      const struct pt_store_event *e, const struct pt_event *ev, struct pt_err *err)
{
    struct pt_event by_fd = *ev;

    by_fd.field[PT_F_DIRFD] = ev->field[PT_F_FD];
    by_fd.str[0] = "";
    return add_named(run, node, MERGE_CHDIR, &by_fd, e->begin_ns, err);
}

/* What an open of this process, perhaps in another thread, has opened. */
static int add_identity(struct merge_run *run, struct merge_node *node,
                        const struct pt_store_event *e, const struct pt_event *ev,
                        struct pt_err *err)
{
    struct pt_event about = *ev;

    about.field[PT_F_DIRFD] = ev->field[PT_F_FD];
    about.str[0] = about.str[1] = NULL;
    return add_named(run, node, MERGE_IDENTITY, &about, e->begin_ns, err);
}

static int add_name_event(struct merge *m, struct merge_run *run, struct merge_node *node,
                          const struct pt_store_event *e, const struct pt_event *ev,
                          struct pt_err *err)
{
    const struct pt_call_desc *call = &m->calls[e->op];

    if (!strcmp(call->name, "blind"))
        return note_blind(run, ev, err);
    if (ev->err)
        return 0;
    if (call->replay == PT_REPLAY_OPEN)
        return add_inherited(run, node, e, ev, err);
    if (!strcmp(call->name, "chdir") && ev->str[0])
        return add_named(run, node, MERGE_CHDIR, ev, e->begin_ns, err);
    if (!strcmp(call->name, "fchdir"))
        return add_fchdir(run, node, e, ev, err);
    if (!strcmp(call->name, "identity"))
        return add_identity(run, node, e, ev, err);
    if (!strcmp(call->name, "aio_return"))
        finish_aio(node, ev);
    return 0;
}

int merge_add_event(struct merge *m, struct merge_run *run, struct merge_node *node, unsigned op,
                    const struct pt_event *ev, int64_t clock, struct pt_err *err)
{
    const struct pt_call_desc *call = &m->calls[op];
    struct merge_think *think = &node->think;
    struct pt_store_event e;

    if (ev->flags & PT_EV_INNER)
        return 0;
    think->compute[current_part(think)] += ev->cpu;
    if (ev->waited) /* for a file, by looking again and again */
        think_sync(think, ev->waited, 0);
    switch (pt_event_class(call, ev)) {
    case PT_CLASS_SYNC:
        think_sync(think, ev->dur, ev->busy);
        return merge_add_mpi(m, run, node, op, ev, clock, err);
    case PT_CLASS_IDLE:
        think->idle[current_part(think)] += ev->dur;
        return 0;
    case PT_CLASS_NAME:
        if (m->mpi[op])
            return merge_add_mpi(m, run, node, op, ev, clock, err);
        fill_event(&e, call, op, ev, clock);
        return add_name_event(m, run, node, &e, ev, err);
    default:
        fill_event(&e, call, op, ev, clock);
        return add_io_event(m, run, node, &e, ev, err);
    }
}
