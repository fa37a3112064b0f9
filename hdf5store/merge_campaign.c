#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/spec.h"
#include "hdf5store/merge_campaign.h"
#include "hdf5store/merge_mpi.h"

#define SMALLEST_BARRIER 2

/* A warning, or the failure. */
__attribute__((format(printf, 4, 5))) static int complain(struct merge_campaign *c, int strict,
                                                          struct pt_err *err, const char *fmt, ...)
{
    char **warnings = realloc(c->warnings, (c->nwarnings + 1) * sizeof(*warnings));
    char *text = NULL;
    va_list ap;
    int rc;

    if (warnings)
        c->warnings = warnings;
    va_start(ap, fmt);
    rc = vasprintf(&text, fmt, ap);
    va_end(ap);
    if (rc < 0 || !warnings)
        return pt_err_set(err, "not enough memory");
    if (strict) {
        pt_err_set(err, "%s", text);
        free(text);
        return -1;
    }
    warnings[c->nwarnings++] = text;
    return 0;
}

struct count {
    uint64_t n;
    const char *what;
};

/* Of those that are not 0; `how` follows the run's name. */
static int complain_of(struct merge_campaign *c, const struct merge_run *run, const char *how,
                       const struct count *counts, size_t n, int strict, struct pt_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (counts[i].n && complain(c, strict, err, "run '%s'%s: %" PRIu64 " %s", run->dir, how,
                                    counts[i].n, counts[i].what) < 0)
            return -1;
    return 0;
}

/* ---- one run ------------------------------------------------------------------ */

static int check_complete(struct merge_campaign *c, const struct merge_run *run, int strict,
                          struct pt_err *err)
{
    if (run->nhosts && run->nfiles < run->nhosts) {
        if (complain(c, strict, err, "run '%s' is incomplete: files of %zu of %" PRIu64 " hosts",
                     run->dir, run->nfiles, run->nhosts) < 0)
            return -1;
    } else if (!run->complete) {
        if (complain(c, strict, err, "run '%s' is incomplete: a file was cut off", run->dir) < 0)
            return -1;
    }
    const struct count missing[] = {
        {run->lost, "events were lost"},
        {run->untraced_threads, "threads were not traced"},
        {run->running, "processes ran on after the tasks"},
    };
    if (complain_of(c, run, " is incomplete", missing, sizeof(missing) / sizeof(missing[0]), strict,
                    err) < 0)
        return -1;
    for (uint32_t i = 0; i < run->blind.n; i++)
        if (complain(c, strict, err, "run '%s': not seen: %s", run->dir,
                     names_text(&run->blind, i)) < 0)
            return -1;
    if (run->lost_names)
        return complain(c, 0, err,
                        "run '%s': %" PRIu64 " names are relative to an unknown directory; "
                        "the working directory was taken",
                        run->dir, run->lost_names);
    return 0;
}

static int remember(struct merge_campaign *c, const struct merge_run *run, size_t slot,
                    struct pt_err *err)
{
    struct pt_store_run *row = &c->runs[slot];
    uint64_t *id = &c->identity[slot * 2];

    for (size_t i = 0; i < c->nruns; i++)
        if (c->runs[i].dir && c->identity[i * 2] == run->realtime &&
            c->identity[i * 2 + 1] == run->monotonic && c->runs[i].job == run->job &&
            c->runs[i].step == run->step && !strcmp(c->runs[i].host, run->hosts))
            return pt_err_set(err, "cannot merge '%s': the same run as '%s'", run->dir,
                              c->runs[i].dir);
    *row = (struct pt_store_run){
        .dir = strdup(run->dir),
        .spec = strdup(run->spec),
        .host = strdup(run->hosts),
        .job = run->job,
        .step = run->step,
        .complete =
            run->complete && !run->lost && !run->blind.n && !run->untraced_threads && !run->running,
        .lost = run->lost,
    };
    id[0] = run->realtime;
    id[1] = run->monotonic;
    return row->dir && row->spec && row->host ? 0 : pt_err_set(err, "not enough memory");
}

static struct merge_run *load(struct merge_campaign *c, const char *dir, size_t slot, int strict,
                              struct pt_err *err)
{
    struct merge_run *run = merge_load_run(&c->m, dir, err);

    if (run && merge_resolve_names(&c->m, run, err) == 0 && remember(c, run, slot, err) == 0 &&
        check_complete(c, run, strict, err) == 0)
        return run;
    merge_free_run(run);
    return NULL;
}

/* ---- edges ---------------------------------------------------------------------- */

/* Checks the edges from `first` to before `last` against a run. */
static int weaken_edges(struct merge_campaign *c, const struct merge_run *run, size_t first,
                        size_t last, struct pt_err *err)
{
    size_t n = last - first;

    if (merge_weaken_edges(c->base, run, c->edges + first, &n, &c->nrefuted, err) < 0)
        return -1;
    memmove(c->edges + first + n, c->edges + last, (c->nfound - last) * sizeof(*c->edges));
    c->nfound -= last - first - n;
    return 0;
}

/* What MPI's calls could not tell. */
static int warn_mpi(struct merge_campaign *c, const struct merge_run *run,
                    const struct mpi_report *r, struct pt_err *err)
{
    const struct count rows[] = {
        {run->untraced_threads, "threads may have called MPI unseen; no order is taken from it"},
        {r->twice, "processes have the same MPI rank as another; no order is taken from MPI"},
        {r->missing_ranks, "MPI ranks were not traced; no order with them is known"},
        {r->cut, "MPI calls behind lost events were left out"},
        {r->mixed, "communicators: the ranks' collectives do not fit together"},
        {r->doubtful, "MPI messages were sent or received by several threads at once"},
        {r->unknown, "MPI calls on communicators whose members are not known"},
        {r->sends, "MPI messages were sent, but no receive of them was seen"},
        {r->receives, "MPI messages were received, but no send of them was seen"},
        {r->open_receives, "MPI receives from anybody were never seen to end"},
    };

    return complain_of(c, run, "", rows, sizeof(rows) / sizeof(rows[0]), 0, err);
}

static int wants_mpi(const struct merge_run *run)
{
    struct pt_spec spec;

    pt_spec_init(&spec);
    return pt_spec_parse(&spec, run->spec, NULL) == 0 && spec.discover != PT_DISCOVER_HOLD;
}

static int collect_edges(struct merge_campaign *c, const struct merge_run *run, uint64_t rendezvous,
                         struct pt_err *err)
{
    struct mpi_report report = {0};

    if (merge_collect_edges(c->base, run, &c->edges, &c->nfound, err) < 0)
        return -1;
    if (c->mpi_done || !wants_mpi(run))
        return 0;
    c->mpi_done = 1;
    if (mpi_collect_edges(c->base, run, rendezvous, &c->edges, &c->nfound, &report, err) < 0)
        return -1;
    return warn_mpi(c, run, &report, err);
}

/* The run's edges, checked against the baseline, and all earlier ones against the run. */
static int add_edges(struct merge_campaign *c, const struct merge_run *run, uint64_t rendezvous,
                     struct pt_err *err)
{
    size_t before = c->nfound;

    if (collect_edges(c, run, rendezvous, err) < 0 ||
        weaken_edges(c, c->base, before, c->nfound, err) < 0)
        return -1;
    return weaken_edges(c, run, 0, before, err);
}

static int add_run(struct merge_campaign *c, const char *dir, size_t slot,
                   const struct merge_options *o, struct pt_err *err)
{
    struct merge_run *run = load(c, dir, slot, o->strict, err);
    int rc = -1;

    if (run && merge_compare_runs(&c->m, c->base, run, err) == 0)
        rc = add_edges(c, run, o->rendezvous, err);
    merge_free_run(run);
    return rc;
}

/*
 * If a run has refuted edges of an earlier one, earlier ones may refute edges of later
 * ones: a second look at all runs, which programs without races are spared.
 */
static int look_again(struct merge_campaign *c, char *const *dirs, size_t n, size_t base,
                      struct pt_err *err)
{
    int rc = 0;

    if (!c->nrefuted)
        return 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct merge_run *run = i == base ? NULL : merge_load_run(&c->m, dirs[i], err);
        if (i == base)
            continue;
        rc = run ? weaken_edges(c, run, 0, c->nfound, err) : -1;
        merge_free_run(run);
    }
    if (rc < 0)
        return -1;
    return complain(c, 0, err,
                    "%zu orders found in one run were the other way round in another, and have "
                    "been weakened (nodes that exclude each other, by a lock?)",
                    c->nrefuted);
}

/* ---- all runs ------------------------------------------------------------------- */

static int is_baseline(const char *text)
{
    struct pt_spec spec;

    pt_spec_init(&spec);
    return pt_spec_parse(&spec, text, NULL) == 0 && spec.throttle == PT_THROTTLE_NONE;
}

/* The first run in which nobody was held, else the first. */
static int find_baseline(char *const *dirs, size_t n, size_t *base, struct pt_err *err)
{
    *base = n;
    for (size_t i = 0; i < n; i++) {
        char *spec = merge_peek_spec(dirs[i], err);
        if (!spec)
            return -1;
        if (*base == n && is_baseline(spec))
            *base = i;
        free(spec);
    }
    if (*base == n)
        *base = 0;
    return 0;
}

/* Ranks of which several processes or threads have made I/O. */
static size_t count_ranks_of_many(const struct merge_run *run)
{
    size_t n = 0, in_rank = 0; /* that have made I/O */

    for (size_t i = 0; i < run->nnodes; i++) { /* in the order of their names */
        const struct merge_node *node = &run->nodes[i];

        if (i > 0 && node->name.rank != node[-1].name.rank)
            in_rank = 0;
        in_rank += node->nio > 0;
        n += node->nio > 0 && in_rank == 2;
    }
    return n;
}

/* What MPI does not tell. */
static int warn_unheld(struct merge_campaign *c, struct pt_err *err)
{
    size_t n = count_ranks_of_many(c->base);

    for (size_t i = 0; i < c->nruns; i++)
        if (!is_baseline(c->runs[i].spec))
            return 0;
    if (!n)
        return 0;
    return complain(c, 0, err,
                    "the order of processes and threads of one rank (%zu have several) is only "
                    "known from runs that hold I/Os (throttle:auto)",
                    n);
}

static int find_order(struct merge_campaign *c, struct pt_err *err)
{
    size_t n = c->base->nnodes;

    c->nunited = graph_unite_edges(c->edges, c->nfound);
    c->nedges = c->nunited;
    if (graph_reduce(n, c->edges, &c->nedges, err) < 0)
        return -1;
    c->nreduced = c->nedges;
    return graph_find_barriers(c->edges, &c->nedges, SMALLEST_BARRIER, &c->barriers, err);
}

int merge_campaign_load(struct merge_campaign *c, char *const *dirs, size_t n,
                        const struct merge_options *options, struct pt_err *err)
{
    size_t base;

    *c = (struct merge_campaign){0};
    if (find_baseline(dirs, n, &base, err) < 0)
        return -1;
    c->runs = calloc(n, sizeof(*c->runs));
    c->identity = calloc(n, 2 * sizeof(*c->identity));
    if (!c->runs || !c->identity)
        return pt_err_set(err, "not enough memory");
    c->nruns = n;
    c->base = load(c, dirs[base], base, options->strict, err);
    if (!c->base)
        return -1;
    c->nfiles = c->m.files.n;
    if (collect_edges(c, c->base, options->rendezvous, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (i != base && add_run(c, dirs[i], i, options, err) < 0)
            return -1;
    if (look_again(c, dirs, n, base, err) < 0 || warn_unheld(c, err) < 0 || find_order(c, err) < 0)
        return -1;
    c->files = merge_find_files(&c->m, c->base, c->nfiles, err);
    return c->files ? 0 : -1;
}

void merge_campaign_free(struct merge_campaign *c)
{
    for (size_t i = 0; i < c->nruns; i++) {
        free((char *)c->runs[i].dir);
        free((char *)c->runs[i].spec);
        free((char *)c->runs[i].host);
    }
    for (size_t i = 0; i < c->nwarnings; i++)
        free(c->warnings[i]);
    free(c->warnings);
    free(c->runs);
    free(c->identity);
    free(c->files);
    free(c->edges);
    graph_free_barriers(&c->barriers);
    merge_free_run(c->base);
    merge_free(&c->m);
    *c = (struct merge_campaign){0};
}

/* ---- writing --------------------------------------------------------------------- */

uint64_t merge_campaign_events(const struct merge_campaign *c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < c->base->nnodes; i++)
        n += c->base->nodes[i].nevents;
    return n;
}

uint64_t merge_campaign_epoch(const struct merge_campaign *c)
{
    uint64_t epoch = UINT64_MAX;

    for (size_t i = 0; i < c->base->nnodes; i++)
        if (epoch > c->base->nodes[i].start)
            epoch = c->base->nodes[i].start;
    return epoch;
}

static uint64_t since(uint64_t epoch, uint64_t time)
{
    return time > epoch ? time - epoch : 0;
}

/* The texts of events: from numbers of the run's names to offsets in the store. */
struct texts {
    const struct names *names;
    uint64_t *offsets; /* 0: not written yet */
};

static int write_text(struct texts *t, struct pt_store_event *e, struct pt_store_writer *w,
                      struct pt_err *err)
{
    uint64_t number = e->text - 1;

    if (!e->text)
        return 0;
    if (!t->offsets[number] && pt_store_write_text(w, names_text(t->names, (uint32_t)number),
                                                   &t->offsets[number], err) < 0)
        return -1;
    e->text = t->offsets[number];
    return 0;
}

static int write_events(const struct merge_node *node, uint64_t epoch, struct texts *texts,
                        struct pt_store_writer *w, struct pt_err *err)
{
    struct pt_store_event batch[64];
    const size_t most = sizeof(batch) / sizeof(batch[0]);

    for (size_t i = 0; i < node->nevents;) {
        size_t n = 0;
        for (; n < most && i < node->nevents; n++, i++) {
            batch[n] = node->events[i];
            batch[n].begin_ns = since(epoch, batch[n].begin_ns);
            if (write_text(texts, &batch[n], w, err) < 0)
                return -1;
        }
        if (pt_store_write_events(w, batch, n, err) < 0)
            return -1;
    }
    return 0;
}

static int write_all_nodes(const struct merge_campaign *c, struct texts *texts,
                           struct pt_store_writer *w, struct pt_err *err)
{
    uint64_t epoch = merge_campaign_epoch(c), first = 0;

    for (size_t i = 0; i < c->base->nnodes; i++) {
        const struct merge_node *node = &c->base->nodes[i];
        struct pt_store_node row = {
            .name = node->name,
            .host = names_text(&c->base->names, node->host),
            .exe = names_text(&c->base->names, node->exe),
            .first = first,
            .count = node->nevents,
            .start_ns = since(epoch, node->start),
        };
        if (pt_store_write_nodes(w, &row, 1, err) < 0 ||
            write_events(node, epoch, texts, w, err) < 0)
            return -1;
        first += node->nevents;
    }
    return 0;
}

static int write_nodes(const struct merge_campaign *c, struct pt_store_writer *w,
                       struct pt_err *err)
{
    struct texts texts = {&c->base->names, NULL};
    int rc;

    texts.offsets = calloc(c->base->names.n + 1, sizeof(*texts.offsets));
    rc = texts.offsets ? write_all_nodes(c, &texts, w, err) : pt_err_set(err, "not enough memory");
    free(texts.offsets);
    return rc;
}

int merge_campaign_write(const struct merge_campaign *c, struct pt_store_writer *w,
                         struct pt_err *err)
{
    if (pt_store_write_calls(w, c->m.calls, c->m.ncalls, err) < 0 || write_nodes(c, w, err) < 0 ||
        pt_store_write_files(w, c->files, c->nfiles, err) < 0 ||
        pt_store_write_edges(w, c->edges, c->nedges, err) < 0 ||
        pt_store_write_runs(w, c->runs, c->nruns, err) < 0)
        return -1;
    for (size_t i = 0; i < c->barriers.nbarriers; i++)
        if (pt_store_write_barrier(w, &c->barriers.barriers[i], err) < 0)
            return -1;
    return 0;
}
