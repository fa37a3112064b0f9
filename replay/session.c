#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "replay/check.h"
#include "replay/session.h"

static const char me[] = "ptreplay";

/* ---- loading -------------------------------------------------------------------- */

static int load(struct session *s, struct pt_err *err)
{
    s->store = pt_store_open(s->options->store, err);
    if (!s->store)
        return -1;
    if (plan_create(&s->plan, s->store, s->team.rank, s->team.size, err) < 0)
        return -1;
    if (s->plan.nnodes > 1 && !s->team.threads)
        return pt_err_set(err,
                          "cannot run %zu nodes on one rank: this MPI library has no "
                          "MPI_THREAD_MULTIPLE; use more ranks",
                          s->plan.nnodes);
    return schedule_create(&s->schedule, s->store, s->team.rank, s->team.size, err);
}

/* How many ranks the traced application had. */
static int trace_ranks(const struct pt_store *store)
{
    int max = -1;

    for (size_t i = 0; i < pt_store_nnodes(store); i++)
        if (pt_store_node(store, i)->name.rank > max)
            max = pt_store_node(store, i)->name.rank;
    return max + 1;
}

int session_load(struct session *s, struct pt_err *err)
{
    int rc = load(s, err);

    if (team_agree(&s->team, rc, err) < 0)
        return -1;
    if (s->team.rank == 0 && trace_ranks(s->store) > s->team.size)
        fprintf(stderr, "%s: warning: %d ranks of the trace share %d rank%s\n", me,
                trace_ranks(s->store), s->team.size, s->team.size == 1 ? "" : "s");
    return 0;
}

/* ---- checking ------------------------------------------------------------------- */

int session_check(struct session *s, struct pt_err *err)
{
    size_t n = check_size(s->store);
    uint64_t *counts = calloc(n + 1, sizeof(*counts)), impossible;
    int rc = counts ? 0 : pt_err_errno(err, "cannot check the trace");

    if (team_agree(&s->team, rc, err) == 0) {
        check_count(&s->plan, counts);
        team_sum(counts, n);
        if (s->team.rank == 0)
            check_print(s->store, counts, me, stderr);
        impossible = check_impossible(s->store, counts);
        if (impossible > 0 && !s->options->ignore_errors)
            rc = pt_err_set(err,
                            "cannot replay store '%s': %" PRIu64 " of its events cannot be "
                            "replayed (--ignore-errors leaves them out)",
                            s->options->store, impossible);
    } else {
        rc = -1;
    }
    free(counts);
    return rc;
}

/* ---- replaying ------------------------------------------------------------------ */

/* Brings the ranks' results together. */
static void merge_reports(struct report *r)
{
    team_sum(r->sums, NSUMS);
    team_max(r->max, NTIMES);
    team_max(&r->elapsed, 1);
    team_sum(r->buckets, r->nbuckets);
}

static void print_differences(const struct session *s, const struct run *run)
{
    char *mine = report_differences(run, me), *all;

    all = team_gather(&s->team, mine ? mine : "");
    if (all)
        fputs(all, stderr);
    free(mine);
    free(all);
}

static int report(struct session *s, const struct run *run, struct pt_err *err)
{
    struct report r;
    int rc = report_create(&r, s->options, s->store, run, err);

    if (team_agree(&s->team, rc, err) < 0) {
        report_destroy(&r);
        return -1;
    }
    merge_reports(&r);
    print_differences(s, run);
    s->errors = r.sums[SUM_ERRORS];
    if (s->team.rank == 0)
        rc = report_write(&r, s->options, err);
    report_destroy(&r);
    return team_agree(&s->team, rc, err);
}

static int make_sync(struct session *s, struct sync **sync, struct pt_err *err)
{
    int rc;

    *sync = NULL;
    if (s->options->mode != MODE_CAUSAL)
        return 0;
    *sync = sync_create(&s->schedule, s->store, s->team.rank, s->team.size, err);
    rc = team_agree(&s->team, *sync ? 0 : -1, err);
    if (rc == 0)
        sync_connect(*sync);
    return rc;
}

static int run_and_report(struct session *s, struct sync *sync, struct pt_err *err)
{
    uint64_t first = plan_first_begin(&s->plan);
    struct node_common common = {
        .plan = &s->plan,
        .schedule = &s->schedule,
        .engine = &engine_posix,
        .root = s->root,
        .sync = sync,
        .mode = s->options->mode,
    };
    struct run run;
    int rc;

    team_min(&first, 1);
    common.first_begin = first;
    rc = run_create(&run, &common, err);
    if (team_agree(&s->team, rc, err) < 0) {
        if (rc == 0)
            run_destroy(&run);
        return -1;
    }
    run_replay(&run, team_barrier);
    team_rest();
    rc = report(s, &run, err);
    run_destroy(&run);
    return rc;
}

int session_replay(struct session *s, struct pt_err *err)
{
    struct sync *sync;
    int rc = make_sync(s, &sync, err);

    if (rc == 0)
        rc = run_and_report(s, sync, err);
    sync_destroy(sync);
    /* Where order is not kept, calls may well fail: that is reported, but expected. */
    if (rc == 0 && s->errors > 0 && s->options->mode == MODE_CAUSAL && !s->options->ignore_errors)
        rc = pt_err_set(err, "%" PRIu64 " call%s of store '%s' failed that did not in the trace",
                        s->errors, s->errors == 1 ? "" : "s", s->options->store);
    return rc;
}

/* ---- ending --------------------------------------------------------------------- */

void session_end(struct session *s)
{
    session_clean(s);
    prepare_free(&s->prepare);
    free(s->files);
    root_destroy(s->root);
    schedule_destroy(&s->schedule);
    if (s->store)
        plan_destroy(&s->plan);
    pt_store_close(s->store);
}
