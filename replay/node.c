#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/node.h"
#include "replay/noise.h"
#include "replay/ops.h"

enum {
    PAGE = 4096,
    SHIFTS = 16,             /* writes take their data from as many places */
    POPULATE_MAX = 256 << 20 /* larger buffers get their pages at their first use */
};

/* ---- memory --------------------------------------------------------------------- */

static size_t buffer_size(size_t size)
{
    return (size + SHIFTS * PAGE + PAGE - 1) / PAGE * PAGE;
}

static char *make_buffer(size_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (size <= POPULATE_MAX ? MAP_POPULATE : 0);
    void *p = mmap(NULL, buffer_size(size), PROT_READ | PROT_WRITE, flags, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

int node_create(struct node_run *r, const struct node_common *common, const struct plan_node *node,
                struct pt_err *err)
{
    const struct plan *plan = common->plan;

    *r = (struct node_run){.common = common, .node = node};
    r->acts = &common->schedule->nodes[node->node];
    r->read_buffer = make_buffer(plan->max_read);
    r->write_buffer = make_buffer(plan->max_write);
    r->durations = malloc((node->nevents + 1) * sizeof(*r->durations));
    if (!r->read_buffer || !r->write_buffer || !r->durations) {
        node_destroy(r);
        return pt_err_set(err, "cannot replay node %zu: no memory for buffers of %zu and %zu bytes",
                          node->node, plan->max_read, plan->max_write);
    }
    for (uint64_t i = 0; i < node->nevents; i++)
        r->durations[i] = NODE_NOT_TIMED;
    noise_fill(r->write_buffer, buffer_size(plan->max_write), node->node);
    return 0;
}

void node_destroy(struct node_run *r)
{
    if (r->read_buffer)
        munmap(r->read_buffer, buffer_size(r->common->plan->max_read));
    if (r->write_buffer)
        munmap(r->write_buffer, buffer_size(r->common->plan->max_write));
    free(r->durations);
    *r = (struct node_run){0};
}

/* ---- results -------------------------------------------------------------------- */

static void note(struct node_diffs *diffs, uint64_t event, int64_t ret, int err)
{
    if (diffs->count < NODE_MAX_DIFFS)
        diffs->first[diffs->count] = (struct node_diff){event, ret, err};
    diffs->count++;
}

/* Whether the same result is expected, and not only success. */
static bool is_exact(enum pt_replay replay, const struct pt_store_event *ev)
{
    /* Where data begins and ends depends on the file system. */
    if (replay == PT_REPLAY_SEEK && (ev->whence == SEEK_DATA || ev->whence == SEEK_HOLE))
        return false;
    return !op_is(replay, OP_LOOSE);
}

/* Whether a failure may well come, or not come, elsewhere. */
static bool may_differ(enum pt_replay replay, const struct pt_store_event *ev)
{
    return replay == PT_REPLAY_ATTRIBUTE || replay == PT_REPLAY_FATTRIBUTE ||
           (replay == PT_REPLAY_SEEK && !is_exact(replay, ev));
}

static void compare(struct node_run *r, uint64_t i, enum pt_replay replay, int64_t ret, int err)
{
    const struct pt_store_event *ev = &r->node->events[i];
    bool failed = ev->err != 0;

    if (may_differ(replay, ev))
        return;
    /* A link of which only its target is known is a file here. */
    if (ret < 0 && !failed && !(replay == PT_REPLAY_READLINK && err == EINVAL))
        note(&r->errors, i, ret, err);
    else if (ret < 0 ? err != ev->err : failed || (is_exact(replay, ev) && ret != ev->ret))
        note(&r->mismatches, i, ret, err);
}

static void count_bytes(struct node_run *r, enum pt_replay replay, int64_t ret, bool copied)
{
    if (ret <= 0)
        return;
    if (op_is(replay, OP_READS | OP_FD2))
        r->bytes_read += (uint64_t)ret;
    if (op_is(replay, OP_WRITES) || copied)
        r->bytes_written += (uint64_t)ret;
}

/* ---- calls ---------------------------------------------------------------------- */

static const char *path_of(const struct node_run *r, uint32_t file)
{
    return file == PT_NO_FILE ? NULL : r->common->plan->paths[file];
}

static void *buffer_of(const struct node_run *r, uint64_t i, enum pt_replay replay)
{
    if (op_is(replay, OP_WRITES))
        return r->write_buffer + i % SHIFTS * PAGE;
    return r->read_buffer;
}

/* What a call on descriptors needs; -1 and EBADF if it is not open. */
static int find_live(struct node_run *r, const struct plan_step *step, enum pt_replay replay,
                     struct engine_call *c)
{
    struct handles *h = r->common->plan->handles;
    enum handle_form form = op_is(replay, OP_STREAM) ? HANDLE_STREAM
                            : op_is(replay, OP_DIR)  ? HANDLE_DIR
                                                     : HANDLE_FD;

    if (op_is(replay, OP_FD2) && step->slot2 != HANDLE_NO_SLOT) {
        c->fd2 = handles_get(h, step->slot2);
        if (c->fd2 < 0)
            return -1;
    }
    return replay == PT_REPLAY_CLOSE ? handles_take(h, step->slot, step->uses, &c->live)
                                     : handles_live(h, step->slot, form, &c->live);
}

static void close_live(const struct handle_live *live)
{
    if (live->stream)
        fclose(live->stream);
    else if (live->dir)
        closedir(live->dir);
    else
        close(live->fd);
}

/* Tells the handles what came of a call. */
static void keep_handles(struct node_run *r, const struct plan_step *step, enum pt_replay replay,
                         int64_t ret, struct handle_live *made)
{
    struct handles *h = r->common->plan->handles;

    if (op_is(replay, OP_OPENS)) {
        made->fd = (int)ret;
        if (step->slot != HANDLE_NO_SLOT)
            handles_set_live(h, step->slot, made);
        else if (ret >= 0)
            close_live(made);
        return;
    }
    if (replay == PT_REPLAY_DUP) {
        if (step->slot2 == HANDLE_NO_SLOT && ret >= 0)
            close((int)ret);
        else if (step->slot2 == step->slot && ret >= 0)
            handles_add(h, step->slot, (int)ret);
        else if (step->slot2 != HANDLE_NO_SLOT && step->slot2 != step->slot)
            handles_set(h, step->slot2, (int)ret);
    }
    if (step->slot != HANDLE_NO_SLOT && replay != PT_REPLAY_CLOSE)
        handles_used(h, step->slot);
    if (op_is(replay, OP_FD2) && step->slot2 != HANDLE_NO_SLOT)
        handles_used(h, step->slot2);
}

static int64_t call(struct node_run *r, uint64_t i, enum pt_replay replay,
                    const struct engine_call *c)
{
    uint64_t begin = burn_now();
    int64_t ret = r->common->engine->op[replay](c);

    r->durations[i] = burn_now() - begin;
    return ret;
}

static void issue(struct node_run *r, uint64_t i)
{
    const struct plan *plan = r->common->plan;
    const struct plan_step *step = &r->node->steps[i];
    const struct pt_store_event *ev = &r->node->events[i];
    enum pt_replay replay = plan_call(plan, ev)->replay;
    struct handle_live made = {.fd = -1};
    struct engine_call c = {
        .root = r->common->root,
        .event = ev,
        .path = path_of(r, ev->file),
        .path2 = path_of(r, ev->file2),
        .text = pt_store_text(plan->store, ev->text),
        .live = {.fd = -1},
        .fd2 = -1,
        .handles = plan->handles,
        .slot = step->slot,
        .buffer = buffer_of(r, i, replay),
        .mappings = plan->mappings,
        .process = r->node->process,
        .made = &made,
    };
    int64_t ret = -1;
    int err, ready = 0;

    if (step->slot != HANDLE_NO_SLOT && !op_is(replay, OP_OPENS)) {
        uint64_t begin = burn_now();

        ready = find_live(r, step, replay, &c);
        r->times.wait += burn_now() - begin;
    }
    if (ready == 0)
        ret = call(r, i, replay, &c);
    err = errno;
    keep_handles(r, step, replay, ret, &made);
    if (r->durations[i] != NODE_NOT_TIMED)
        r->times.io += r->durations[i];
    count_bytes(r, replay, ret, c.fd2 >= 0);
    compare(r, i, replay, ret, err);
}

/* Opens a file that the process had open from the start. */
static void reopen(struct node_run *r, uint64_t i)
{
    const struct pt_store_event *ev = &r->node->events[i];
    const struct plan_step *step = &r->node->steps[i];
    struct handle_live made = {.fd = -1};
    int flags = (ev->oflags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_CLOEXEC;
    int fd = root_open(r->common->root, path_of(r, ev->file), flags, 0);

    if (fd < 0 && errno == ENOENT && (flags & O_ACCMODE) != O_RDONLY)
        fd = root_open(r->common->root, path_of(r, ev->file), flags | O_CREAT, 0644);
    if (fd < 0)
        note(&r->errors, i, fd, errno);
    keep_handles(r, step, PT_REPLAY_OPEN, fd, &made);
}

void node_open_inherited(struct node_run *r)
{
    for (uint64_t i = 0; i < r->node->nevents; i++)
        if (r->node->steps[i].action == PLAN_BEFORE)
            reopen(r, i);
}

static void act(struct node_run *r, uint64_t i)
{
    switch ((enum plan_action)r->node->steps[i].action) {
    case PLAN_ISSUE:
        issue(r, i);
        break;
    case PLAN_REOPEN:
        reopen(r, i);
        break;
    case PLAN_UNSUPPORTED:
        note(&r->errors, i, -1, ENOSYS);
        break;
    case PLAN_NO_HANDLE:
        note(&r->errors, i, -1, EBADF);
        break;
    default:
        break;
    }
}

/* ---- think time ------------------------------------------------------------------- */

static void compute(struct node_run *r, uint64_t ns)
{
    burn_cpu(&r->burn, ns);
    r->times.compute += ns;
}

static void idle(struct node_run *r, uint64_t ns)
{
    burn_sleep(&r->burn, ns);
    r->times.idle += ns;
}

static bool is_due(const struct sched_acts *acts, size_t next, uint64_t event)
{
    return next < acts->n && acts->acts[next].event <= event;
}

/* The act at *next, if it is due before that event; NULL else. */
static const struct sched_act *due(const struct sched_acts *acts, size_t *next, uint64_t event)
{
    return is_due(acts, *next, event) ? &acts->acts[(*next)++] : NULL;
}

static void send_signals(struct node_run *r, uint64_t event)
{
    const struct sched_act *a;

    while ((a = due(&r->acts->signals, &r->next_signal, event)))
        sync_signal(r->common->sync, a->what);
    while ((a = due(&r->acts->barriers, &r->next_arrival, event)))
        sync_arrive(r->common->sync, a->what);
}

/* Did the application spin while it waited here? */
static bool spun(const struct pt_store_event *ev)
{
    return ev->sync_cpu_ns > ev->sync_ns / 2;
}

static void wait_for_others(struct node_run *r, uint64_t event)
{
    const struct sched_act *a;
    bool spin = spun(&r->node->events[event]);
    uint64_t begin;

    if (!is_due(&r->acts->waits, r->next_wait, event) &&
        !is_due(&r->acts->barriers, r->next_pass, event))
        return;
    begin = burn_now();
    while ((a = due(&r->acts->waits, &r->next_wait, event)))
        sync_wait(r->common->sync, a->what, spin);
    while ((a = due(&r->acts->barriers, &r->next_pass, event)))
        sync_pass(r->common->sync, a->what, spin);
    r->times.wait += burn_now() - begin;
}

static void think_causal(struct node_run *r, const struct pt_store_event *ev, uint64_t i)
{
    compute(r, ev->compute0_ns);
    idle(r, ev->idle0_ns);
    send_signals(r, i);
    compute(r, ev->compute1_ns);
    idle(r, ev->idle1_ns);
    wait_for_others(r, i);
    compute(r, ev->compute2_ns);
    idle(r, ev->idle2_ns);
}

static void think_fixed(struct node_run *r, const struct pt_store_event *ev, uint64_t i)
{
    (void)i;
    compute(r, ev->compute0_ns + ev->compute1_ns + ev->compute2_ns);
    idle(r, ev->idle0_ns + ev->idle1_ns + ev->idle2_ns + ev->sync_ns);
}

static void think_timed(struct node_run *r, const struct pt_store_event *ev, uint64_t i)
{
    uint64_t when = r->common->start + (ev->begin_ns - r->common->first_begin);
    uint64_t now = burn_now();

    (void)i;
    if (ev->begin_ns < r->common->first_begin || when <= now)
        return;
    burn_sleep_until(when);
    r->times.idle += when - now;
}

static void think_not(struct node_run *r, const struct pt_store_event *ev, uint64_t i)
{
    (void)r;
    (void)ev;
    (void)i;
}

typedef void think_fn(struct node_run *r, const struct pt_store_event *ev, uint64_t i);

static think_fn *const think[NMODES] = {
    [MODE_CAUSAL] = think_causal,
    [MODE_THINK] = think_fixed,
    [MODE_TIMED] = think_timed,
    [MODE_AFAP] = think_not,
};

void node_replay(struct node_run *r)
{
    enum replay_mode mode = r->common->mode;

    burn_thread_init();
    if (mode == MODE_CAUSAL || mode == MODE_THINK)
        idle(r, r->node->delay_ns);
    for (uint64_t i = 0; i < r->node->nevents; i++) {
        think[mode](r, &r->node->events[i], i);
        act(r, i);
    }
    r->end = burn_now();
    if (mode == MODE_CAUSAL) {
        send_signals(r, r->node->nevents);
        wait_for_others(r, r->node->nevents);
    }
}
