/*
 * Reading a run directory.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/merge_mpi.h"

void merge_free(struct merge *m)
{
    names_free(&m->files);
    free(m->calls);
    free(m->mpi);
    *m = (struct merge){0};
}

void merge_free_run(struct merge_run *run)
{
    if (!run)
        return;
    for (size_t i = 0; i < run->nnodes; i++) {
        free(run->nodes[i].events);
        free(run->nodes[i].named);
        free(run->nodes[i].io);
        free(run->nodes[i].mpi);
        map_free(&run->nodes[i].aio);
    }
    free(run->nodes);
    free(run->waits);
    names_free(&run->names);
    names_free(&run->blind);
    free(run->dir);
    free(run->spec);
    free(run->hosts);
    free(run);
}

/* ---- the directory ------------------------------------------------------------- */

static int is_run_file(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name), suffix = strlen(PT_RUN_SUFFIX);

    return n > suffix && !strcmp(entry->d_name + n - suffix, PT_RUN_SUFFIX);
}

static void free_list(struct dirent **list, int n)
{
    for (int i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

/* The run files of a directory, sorted; their number, or -1 and err. */
static int list_run_files(const char *dir, struct dirent ***list, struct pt_err *err)
{
    int n = scandir(dir, list, is_run_file, alphasort);

    if (n < 0)
        return pt_err_errno(err, "cannot open run directory '%s'", dir);
    if (n == 0) {
        free(*list);
        return pt_err_set(err, "cannot merge '%s': no run files (*%s) in it", dir, PT_RUN_SUFFIX);
    }
    return n;
}

static struct pt_reader *open_in(const char *dir, const char *name, struct pt_err *err)
{
    char *path;
    struct pt_reader *r;

    if (asprintf(&path, "%s/%s", dir, name) < 0) {
        pt_err_set(err, "not enough memory");
        return NULL;
    }
    r = pt_reader_open(path, err);
    free(path);
    return r;
}

char *merge_peek_spec(const char *dir, struct pt_err *err)
{
    struct dirent **list;
    int n = list_run_files(dir, &list, err);
    struct pt_reader *r;
    char *spec = NULL;

    if (n < 0)
        return NULL;
    r = open_in(dir, list[0]->d_name, err);
    if (r) {
        const char *text = pt_reader_meta(r, "spec");
        spec = strdup(text ? text : "");
        if (!spec)
            pt_err_set(err, "not enough memory");
    }
    pt_reader_close(r);
    free_list(list, n);
    return spec;
}

/* ---- one file ------------------------------------------------------------------- */

struct loader {
    struct merge *m;
    struct merge_run *run;
    struct pt_reader *r;
    const char *file;
    unsigned *ops; /* the file's table of calls -> ours */
    int64_t clock; /* to be added to the host's clock: ns since 1970 */
    uint32_t host;
    struct map numbers; /* the file's numbers of nodes -> rows of run->nodes */
    size_t nodes_size;
    int ended;
};

static uint64_t meta_number(const struct loader *l, const char *key, uint64_t otherwise)
{
    const char *text = pt_reader_meta(l->r, key);
    char *end;
    unsigned long long value;

    if (!text || !*text)
        return otherwise;
    value = strtoull(text, &end, 10);
    return *end ? otherwise : value;
}

static int read_clock(struct loader *l, struct pt_err *err)
{
    uint64_t realtime = meta_number(l, "realtime", 0);
    uint64_t monotonic = meta_number(l, "monotonic", 0);

    if (!realtime || !pt_reader_meta(l->r, "monotonic"))
        return pt_err_set(err, "run file '%s/%s' is damaged: it does not say what its clock showed",
                          l->run->dir, l->file);
    l->clock = (int64_t)(realtime - monotonic);
    if (!l->run->nfiles) {
        l->run->realtime = realtime;
        l->run->monotonic = monotonic;
    }
    return 0;
}

static int add_host(struct loader *l, struct pt_err *err)
{
    const char *host = pt_reader_meta(l->r, "host");
    struct merge_run *run = l->run;
    char *hosts;

    if (!host)
        host = "";
    if (asprintf(&hosts, "%s%s%s", run->hosts ? run->hosts : "", run->hosts ? "," : "", host) < 0)
        return pt_err_set(err, "not enough memory");
    free(run->hosts);
    run->hosts = hosts;
    l->host = names_add(&run->names, host);
    return l->host == NAMES_NONE ? pt_err_set(err, "not enough memory") : 0;
}

static int read_identity(struct loader *l, struct pt_err *err)
{
    struct merge_run *run = l->run;
    const char *spec = pt_reader_meta(l->r, "spec");
    uint64_t job = meta_number(l, "job", 0), step = meta_number(l, "step", 0);
    uint64_t restart = meta_number(l, "restart", 0);

    if (!run->nfiles) {
        run->job = job;
        run->step = step;
        run->restart = restart;
        run->array_job = meta_number(l, "array_job", 0);
        run->array_task = meta_number(l, "array_task", 0);
        run->nhosts = meta_number(l, "nhosts", 0);
        run->spec = strdup(spec ? spec : "");
        return run->spec ? 0 : pt_err_set(err, "not enough memory");
    }
    if (job != run->job || step != run->step || restart != run->restart)
        return pt_err_set(err, "cannot merge '%s': '%s' is of another run", run->dir, l->file);
    return 0;
}

static int same_call(const struct pt_call_desc *a, const struct pt_call_desc *b)
{
    return !strcmp(a->name, b->name) && a->cls == b->cls;
}

static int map_calls(struct loader *l, struct pt_err *err)
{
    struct merge *m = l->m;
    unsigned n = pt_reader_ncalls(l->r);
    struct pt_call_desc *calls = realloc(m->calls, (m->ncalls + n + 1) * sizeof(*calls));
    const struct mpi_call **mpi = realloc(m->mpi, (m->ncalls + n + 1) * sizeof(*mpi));

    if (calls)
        m->calls = calls;
    if (mpi)
        m->mpi = mpi;
    l->ops = calloc(n + 1, sizeof(*l->ops));
    if (!calls || !mpi || !l->ops)
        return pt_err_set(err, "not enough memory");
    for (unsigned i = 0; i < n; i++) {
        const struct pt_call_desc *call = pt_reader_call(l->r, i);
        unsigned op = 0;

        while (op < m->ncalls && !same_call(call, &m->calls[op]))
            op++;
        if (op > UINT16_MAX)
            return pt_err_set(err, "cannot merge '%s': too many calls", l->run->dir);
        if (op == m->ncalls) {
            m->mpi[m->ncalls] = mpi_find_call(call->name);
            m->calls[m->ncalls++] = *call;
        }
        l->ops[i] = op;
    }
    return 0;
}

static int add_node(struct loader *l, uint32_t number, const struct pt_node *info,
                    struct pt_err *err)
{
    struct merge_run *run = l->run;
    struct merge_node *nodes;

    nodes = merge_grow(run->nodes, run->nnodes, &l->nodes_size, sizeof(*nodes), err);
    if (!nodes)
        return -1;
    run->nodes = nodes;
    nodes += run->nnodes;
    *nodes = (struct merge_node){
        .name = info->name,
        .host = l->host,
        .exe = names_add(&run->names, info->exe ? info->exe : ""),
        .cwd = names_add(&run->names, info->cwd ? info->cwd : "/"),
        .start = info->start + (uint64_t)l->clock,
        .valid = SIZE_MAX,
        .loss_after = UINT64_MAX,
    };
    if (map_put(&l->numbers, number, run->nnodes) < 0 || nodes->exe == NAMES_NONE ||
        nodes->cwd == NAMES_NONE)
        return pt_err_set(err, "not enough memory");
    run->nnodes++;
    return 0;
}

/* Who did not exist then waits, too: whoever was to create it was stuck. */
static int add_unborn(struct merge_run *run, const struct pt_hold *hold, struct pt_err *err)
{
    struct merge_wait *waits =
        merge_grow(run->waits, run->nwaits, &run->waits_size, sizeof(*waits), err);

    if (!waits)
        return -1;
    run->waits = waits;
    waits[run->nwaits++] = (struct merge_wait){hold->name, MERGE_UNBORN, hold->io_event, 0};
    return 0;
}

static int add_hold(struct merge_run *run, const struct pt_hold *hold, struct pt_err *err)
{
    run->holds++;
    run->timed_out += hold->timed_out != 0;
    if (hold->timed_out) /* who was stuck may have waited for one that was at work */
        return 0;
    for (size_t i = 0; i < hold->npeers; i++) {
        const struct pt_hold_peer *peer = &hold->peers[i];
        struct merge_wait *waits;

        if (peer->state != PT_STATE_BLOCKED && peer->state != PT_STATE_ASSUMED)
            continue;
        waits = merge_grow(run->waits, run->nwaits, &run->waits_size, sizeof(*waits), err);
        if (!waits)
            return -1;
        run->waits = waits;
        waits[run->nwaits++] =
            (struct merge_wait){hold->name, peer->name, hold->io_event, peer->io_done};
    }
    return add_unborn(run, hold, err);
}

/* A loss may be read before the events that came ahead of it. */
static void check_loss(struct merge_node *node)
{
    if (node->raw >= node->loss_after && node->valid > node->nevents) {
        node->valid = node->nevents;
        node->mpi_valid = node->nmpi;
    }
}

static void add_loss(struct merge_run *run, struct merge_node *node, const struct pt_loss *loss)
{
    if (loss->after < node->loss_after)
        node->loss_after = loss->after;
    node->lost += loss->count;
    run->lost += loss->count;
    check_loss(node);
}

static int add_item(struct loader *l, const struct pt_item *item, struct pt_err *err)
{
    struct merge_node *node = NULL;

    if (item->kind == PT_ITEM_EVENT || item->kind == PT_ITEM_LOSS) {
        const uint64_t *row = map_get(&l->numbers, item->node);
        if (!row)
            return pt_err_set(err, "run file '%s/%s' is damaged: events of an unknown node",
                              l->run->dir, l->file);
        node = &l->run->nodes[*row];
    }
    switch (item->kind) {
    case PT_ITEM_NODE:
        return add_node(l, item->node, &item->info, err);
    case PT_ITEM_EVENT:
        check_loss(node);
        node->raw++;
        return merge_add_event(l->m, l->run, node, l->ops[item->event.op], &item->event, l->clock,
                               err);
    case PT_ITEM_HOLD:
        return add_hold(l->run, &item->hold, err);
    case PT_ITEM_LOSS:
        add_loss(l->run, node, &item->loss);
        return 0;
    case PT_ITEM_END:
        l->ended = 1;
        l->run->untraced_threads += meta_number(l, "untraced_threads", 0);
        l->run->running += meta_number(l, "running", 0);
    }
    return 0;
}

static int read_items(struct loader *l, struct pt_err *err)
{
    struct pt_item item;
    int rc;

    while ((rc = pt_reader_next(l->r, &item, err)) > 0)
        if (add_item(l, &item, err) < 0)
            return -1;
    if (!l->ended)
        l->run->complete = 0;
    return rc;
}

static int load_file(struct merge *m, struct merge_run *run, size_t *nodes_size, const char *file,
                     struct pt_err *err)
{
    struct loader l = {.m = m, .run = run, .file = file, .nodes_size = *nodes_size};
    int rc = -1;

    l.r = open_in(run->dir, file, err);
    if (l.r && read_identity(&l, err) == 0 && read_clock(&l, err) == 0 && add_host(&l, err) == 0 &&
        map_calls(&l, err) == 0)
        rc = read_items(&l, err);
    run->nfiles++;
    *nodes_size = l.nodes_size;
    map_free(&l.numbers);
    free(l.ops);
    pt_reader_close(l.r);
    return rc;
}

/* ---- the run --------------------------------------------------------------------- */

static int compare_nodes(const void *a, const void *b)
{
    return pt_name_compare(&((const struct merge_node *)a)->name,
                           &((const struct merge_node *)b)->name);
}

static int finish_nodes(struct merge_run *run, struct pt_err *err)
{
    char name[PT_NAME_LEN];

    if (!run->nnodes)
        return pt_err_set(err, "cannot merge '%s': nothing was traced", run->dir);
    qsort(run->nodes, run->nnodes, sizeof(*run->nodes), compare_nodes);
    for (size_t i = 0; i < run->nnodes; i++) {
        struct merge_node *node = &run->nodes[i];
        if (i > 0 && !compare_nodes(node - 1, node))
            return pt_err_set(err, "cannot merge '%s': node %s is there twice", run->dir,
                              pt_name_format(name, &node->name));
        if (node->valid > node->nevents)
            node->valid = node->nevents;
    }
    return 0;
}

struct merge_node *merge_find_node(const struct merge_run *run, const struct pt_name *name)
{
    struct merge_node key = {.name = *name};

    return bsearch(&key, run->nodes, run->nnodes, sizeof(*run->nodes), compare_nodes);
}

struct merge_run *merge_load_run(struct merge *m, const char *dir, struct pt_err *err)
{
    struct dirent **list;
    struct merge_run *run = calloc(1, sizeof(*run));
    size_t nodes_size = 0;
    int n, rc = 0;

    if (!run || !(run->dir = strdup(dir))) {
        pt_err_set(err, "not enough memory");
        merge_free_run(run);
        return NULL;
    }
    n = list_run_files(dir, &list, err);
    if (n < 0) {
        merge_free_run(run);
        return NULL;
    }
    run->complete = 1;
    for (int i = 0; i < n && rc == 0; i++)
        rc = load_file(m, run, &nodes_size, list[i]->d_name, err);
    free_list(list, n);
    if (rc == 0)
        rc = finish_nodes(run, err);
    if (rc < 0) {
        merge_free_run(run);
        return NULL;
    }
    if (run->nfiles < run->nhosts)
        run->complete = 0;
    return run;
}
