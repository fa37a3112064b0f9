#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "replay/ops.h"
#include "replay/plan.h"
#include "replay/resolve.h"
#include "replay/root.h"
#include "replay/schedule.h"

/* The most that Linux moves in one call. */
#define MAX_TRANSFER 0x7ffff000

static bool starts_with_any(const char *path, const char *const *starts)
{
    for (; *starts; starts++)
        if (!strncmp(path, *starts, strlen(*starts)))
            return true;
    return false;
}

bool plan_file_is_special(const struct pt_store_file *file)
{
    static const char *const kernel[] = {"/proc/", "/sys/", NULL};
    static const char *const endless[] = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                                          "/dev/urandom", "/dev/tty",  "/dev/pts/", "/dev/ptmx",
                                          "/dev/fd/",     "/dev/std",  NULL};
    const char *path = file->path;

    if (path[0] != '/' || starts_with_any(path, kernel) || starts_with_any(path, endless))
        return true;
    /* A device with a size is a disk, and a file in its place does as well. */
    return !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9) && file->size == 0;
}

static int make_paths(struct plan *plan, struct pt_err *err)
{
    size_t n = pt_store_nfiles(plan->store);

    plan->paths = calloc(n + 1, sizeof(*plan->paths));
    if (!plan->paths)
        return pt_err_errno(err, "cannot plan %zu files", n);
    for (size_t i = 0; i < n; i++) {
        plan->paths[i] = root_relative(pt_store_file(plan->store, i)->path);
        if (!plan->paths[i])
            return pt_err_errno(err, "cannot plan %zu files", n);
    }
    return 0;
}

static int pick_nodes(struct plan *plan, struct pt_err *err)
{
    size_t n = pt_store_nnodes(plan->store);

    for (size_t i = 0; i < n; i++)
        plan->nnodes += schedule_owner(plan->store, i, plan->nranks) == plan->rank;
    plan->nodes = calloc(plan->nnodes + 1, sizeof(*plan->nodes));
    if (!plan->nodes)
        return pt_err_errno(err, "cannot plan %zu nodes", plan->nnodes);
    plan->nnodes = 0;
    for (size_t i = 0; i < n; i++)
        if (schedule_owner(plan->store, i, plan->nranks) == plan->rank)
            plan->nodes[plan->nnodes++] =
                (struct plan_node){.node = i, .info = pt_store_node(plan->store, i)};
    return 0;
}

/* Numbers the processes and finds how much later than its rank a node started. */
static void relate_nodes(struct plan *plan)
{
    for (size_t i = 0; i < plan->nnodes; i++) {
        struct plan_node *n = &plan->nodes[i];
        uint64_t first = n->info->start_ns;

        n->process = (uint32_t)plan->nprocesses;
        for (size_t k = 0; k < plan->nnodes; k++) {
            const struct plan_node *o = &plan->nodes[k];

            if (o->info->name.rank != n->info->name.rank)
                continue;
            if (k < i && o->info->name.process == n->info->name.process)
                n->process = o->process;
            if (o->info->start_ns < first)
                first = o->info->start_ns;
        }
        n->delay_ns = n->info->start_ns - first;
        plan->nprocesses += n->process == plan->nprocesses;
    }
}

static int read_node(struct plan *plan, struct plan_node *n, struct pt_err *err)
{
    uint64_t count = n->info->count;

    if (count < SIZE_MAX / sizeof(*n->events)) {
        n->events = calloc((size_t)count + 1, sizeof(*n->events));
        n->steps = calloc((size_t)count + 1, sizeof(*n->steps));
    }
    if (!n->events || !n->steps)
        return pt_err_set(err, "cannot read %llu events of node %zu ahead: no memory",
                          (unsigned long long)count, n->node);
    if (count > 0 && pt_store_read_events(plan->store, n->node, 0, count, n->events, err) < 0)
        return -1;
    n->nevents = count;
    return 0;
}

static bool file_is_there(const struct plan *plan, uint32_t file)
{
    return file == PT_NO_FILE || file < pt_store_nfiles(plan->store);
}

/* A line: as long as it was, not as there was room for; at the end, looked for in vain. */
static bool reads_line(const struct pt_call_desc *call)
{
    return strstr(call->name, "fgets") || strstr(call->name, "fgetws");
}

/* Checks what the replay will use as an index or a size. */
static int check_event(struct plan *plan, const struct plan_node *n, uint64_t i, struct pt_err *err)
{
    struct pt_store_event *ev = &n->events[i];
    enum pt_replay replay;
    size_t *max;

    if (ev->op >= pt_store_ncalls(plan->store) || !file_is_there(plan, ev->file) ||
        !file_is_there(plan, ev->file2))
        return pt_err_set(err, "cannot replay event %llu of node %zu: it names what is not there",
                          (unsigned long long)i, n->node);
    replay = plan_call(plan, ev)->replay;
    if (op_is(replay, OP_OPENS))
        plan->direct += (ev->oflags & O_DIRECT) != 0;
    /* A copy takes a buffer only where its second descriptor is not replayed. */
    if (op_is(replay, OP_FD2) && ev->ret > 0 && (uint64_t)ev->ret > plan->max_read)
        plan->max_read = ev->ret < MAX_TRANSFER ? (size_t)ev->ret : MAX_TRANSFER;
    if (!op_is(replay, OP_READS | OP_WRITES))
        return 0;
    max = op_is(replay, OP_READS) ? &plan->max_read : &plan->max_write;
    if (ev->err && ev->len < 0) /* a print that failed */
        ev->len = 0;
    if (reads_line(plan_call(plan, ev)) && ev->ret >= 0)
        ev->len = ev->ret;
    if (ev->len < 0)
        return pt_err_set(err, "cannot replay event %llu of node %zu: its length is %lld",
                          (unsigned long long)i, n->node, (long long)ev->len);
    if ((uint64_t)ev->len > *max)
        *max = ev->len < MAX_TRANSFER ? (size_t)ev->len : MAX_TRANSFER;
    return 0;
}

static int read_nodes(struct plan *plan, struct pt_err *err)
{
    for (size_t k = 0; k < plan->nnodes; k++) {
        struct plan_node *n = &plan->nodes[k];

        if (read_node(plan, n, err) < 0)
            return -1;
        for (uint64_t i = 0; i < n->nevents; i++)
            if (check_event(plan, n, i, err) < 0)
                return -1;
    }
    return 0;
}

int plan_create(struct plan *plan, struct pt_store *store, int rank, int nranks, struct pt_err *err)
{
    *plan = (struct plan){.rank = rank, .nranks = nranks, .store = store};
    plan->handles = handles_create();
    plan->mappings = mappings_create();
    if (!plan->handles || !plan->mappings) {
        pt_err_errno(err, "cannot plan the handles");
        goto failed;
    }
    if (make_paths(plan, err) < 0 || pick_nodes(plan, err) < 0)
        goto failed;
    relate_nodes(plan);
    if (read_nodes(plan, err) < 0 || resolve_steps(plan, err) < 0)
        goto failed;
    return 0;
failed:
    plan_destroy(plan);
    return -1;
}

void plan_destroy(struct plan *plan)
{
    int saved = errno;

    if (plan->paths)
        for (size_t i = 0; i < pt_store_nfiles(plan->store); i++)
            free(plan->paths[i]);
    free(plan->paths);
    for (size_t k = 0; k < plan->nnodes && plan->nodes; k++) {
        free(plan->nodes[k].events);
        free(plan->nodes[k].steps);
    }
    free(plan->nodes);
    handles_destroy(plan->handles);
    mappings_destroy(plan->mappings);
    memset(plan, 0, sizeof(*plan));
    errno = saved;
}

static enum plan_touch touch_of_failed(const struct pt_store_event *ev, enum pt_replay replay)
{
    if (ev->err == ENOENT)
        return TOUCH_ABSENT;
    if (ev->err == EISDIR || (ev->err == EEXIST && replay == PT_REPLAY_MKDIR))
        return TOUCH_DIR;
    return TOUCH_ANY;
}

static enum plan_touch touch_of(const struct pt_store_event *ev, enum pt_replay replay)
{
    if (ev->err)
        return touch_of_failed(ev, replay);
    switch (replay) {
    case PT_REPLAY_MKDIR:
        return TOUCH_MKDIR;
    case PT_REPLAY_RMDIR:
    case PT_REPLAY_OPENDIR:
    case PT_REPLAY_SCANDIR:
        return TOUCH_DIR;
    case PT_REPLAY_SYMLINK:
        return TOUCH_ABSENT;
    case PT_REPLAY_UNLINKAT:
        return ev->oflags & AT_REMOVEDIR ? TOUCH_DIR : TOUCH_ANY;
    case PT_REPLAY_OPEN:
    case PT_REPLAY_FOPEN:
        if ((ev->oflags & O_TMPFILE) == O_TMPFILE)
            return TOUCH_DIR;
        if ((ev->oflags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
            return TOUCH_ABSENT;
        return ev->oflags & O_DIRECTORY ? TOUCH_DIR : TOUCH_ANY;
    default:
        return TOUCH_ANY;
    }
}

static void touch(uint64_t *words, const struct pt_store_event *ev, enum pt_replay replay)
{
    uint64_t word;

    /* Which of two names was not there is not known. */
    if (ev->file == PT_NO_FILE || replay == PT_REPLAY_NONE ||
        (ev->err && (op_is(replay, OP_NAME2) || replay == PT_REPLAY_SYMLINK)))
        return;
    word = ev->begin_ns << 2 | touch_of(ev, replay);
    if (word < words[ev->file])
        words[ev->file] = word;
}

void plan_first_touch(const struct plan *plan, uint64_t *words)
{
    for (size_t i = 0; i < pt_store_nfiles(plan->store); i++)
        words[i] = PLAN_UNTOUCHED;
    for (size_t k = 0; k < plan->nnodes; k++)
        for (uint64_t i = 0; i < plan->nodes[k].nevents; i++) {
            const struct pt_store_event *ev = &plan->nodes[k].events[i];

            touch(words, ev, plan_call(plan, ev)->replay);
        }
}

/* What plan_use() knows of a file while it goes through a node's events. */
struct use {
    uint64_t node; /* that used it last, from 1 */
    uint64_t pos;  /* where its calls without an offset have come to, all descriptors in one */
};

static void note_use(struct use *use, const struct pt_store_event *ev, enum pt_replay replay,
                     uint64_t *extent)
{
    uint64_t end = 0;

    if (ev->ret <= 0)
        return;
    if ((replay == PT_REPLAY_PREAD || replay == PT_REPLAY_PWRITE || op_is(replay, OP_FD2)) &&
        ev->off >= 0)
        end = (uint64_t)ev->off + (uint64_t)ev->ret;
    else if (op_is(replay, OP_READS | OP_WRITES | OP_FD2))
        end = use->pos += (uint64_t)ev->ret;
    if (end > *extent)
        *extent = end;
}

/* Also a directory that is made in vain: another has been faster. */
static bool is_used(const struct pt_store_event *ev, enum pt_replay replay)
{
    return ev->file != PT_NO_FILE && (!ev->err || (ev->err == EEXIST && replay == PT_REPLAY_MKDIR));
}

void plan_use(const struct plan *plan, const struct plan_users *users, uint64_t *extents)
{
    size_t nfiles = pt_store_nfiles(plan->store);
    struct use *uses = calloc(nfiles + 1, sizeof(*uses));

    memset(users->first, 0xff, nfiles * sizeof(*users->first));
    memset(users->last, 0, nfiles * sizeof(*users->last));
    memset(extents, 0, nfiles * sizeof(*extents));
    for (size_t k = 0; uses && k < plan->nnodes; k++)
        for (uint64_t i = 0; i < plan->nodes[k].nevents; i++) {
            const struct pt_store_event *ev = &plan->nodes[k].events[i];
            enum pt_replay replay = plan_call(plan, ev)->replay;
            uint64_t node = plan->nodes[k].node + 1;

            if (!is_used(ev, replay))
                continue;
            if (uses[ev->file].node != node) /* the first time for this node */
                uses[ev->file] = (struct use){.node = node};
            if (node < users->first[ev->file])
                users->first[ev->file] = node;
            if (node > users->last[ev->file])
                users->last[ev->file] = node;
            note_use(&uses[ev->file], ev, replay, &extents[ev->file]);
        }
    free(uses);
}

/* It is there. */
static void expect_in_vain(struct pt_store_event *ev)
{
    ev->err = EEXIST;
    ev->ret = -1;
}

void plan_relax(struct plan *plan, const bool *shared)
{
    for (size_t k = 0; k < plan->nnodes; k++)
        for (uint64_t i = 0; i < plan->nodes[k].nevents; i++) {
            struct pt_store_event *ev = &plan->nodes[k].events[i];
            enum pt_replay replay = plan_call(plan, ev)->replay;

            if (ev->file == PT_NO_FILE || !shared[ev->file])
                continue;
            if (op_is(replay, OP_OPENS))
                ev->oflags &= ~(O_EXCL | O_TRUNC);
            else if (replay == PT_REPLAY_MKDIR && !ev->err)
                expect_in_vain(ev);
            else if (op_is(replay, OP_REMOVES) || replay == PT_REPLAY_RMDIR)
                plan->nodes[k].steps[i].action = PLAN_NOTHING;
        }
}

uint64_t plan_first_begin(const struct plan *plan)
{
    uint64_t first = UINT64_MAX;

    for (size_t k = 0; k < plan->nnodes; k++)
        if (plan->nodes[k].nevents > 0 && plan->nodes[k].events[0].begin_ns < first)
            first = plan->nodes[k].events[0].begin_ns;
    return first;
}
