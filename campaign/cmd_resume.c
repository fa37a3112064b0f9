#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "campaign/command.h"
#include "campaign/jobs.h"
#include "campaign/slurm.h"
#include "campaign/state.h"

static const char help[] =
    "Usage: ptcampaign resume DIR\n\n"
    "Submits again the runs that failed or are missing, then the merge.  What is done or\n"
    "still in the queue is left alone; directories of failed runs become NNN.old.N.\n";

/* What was submitted. */
struct tally {
    int baseline, plan, merge;
    size_t runs;
};

/* Sets aside what an earlier attempt at run k has left. */
static int move_away(const struct campaign *c, size_t k, struct pt_err *err)
{
    int rc = 0;

    for (;;) {
        char *from = state_rundir(c, k), *to = NULL;
        if (access(from, F_OK)) {
            free(from);
            return 0;
        }
        for (int i = 1; !to || access(to, F_OK) == 0; i++) {
            free(to);
            to = campaign_path(c, "runs/%03zu.old.%d", k, i);
        }
        if (rename(from, to))
            rc = pt_err_errno(err, "cannot rename '%s'", from);
        free(from);
        free(to);
        if (rc)
            return rc;
    }
}

static int resume_baseline(struct campaign *c, struct tally *t, struct pt_err *err)
{
    for (size_t k = 0; k < c->nruns; k++)
        if (move_away(c, k, err))
            return -1;
    campaign_reset_runs(c);
    for (int i = 0; i < NSTAGES; i++)
        c->stage[i] = (struct job){0, -1};
    t->baseline = t->plan = 1;
    return jobs_submit_baseline(c, NULL, err);
}

static int is_queued(const struct queue *q, struct job job)
{
    return slurm_queue_find(q, job) != NULL;
}

/* Adds an id that is not there yet; returns how many there are. */
static size_t add_id(long *ids, size_t n, long id)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return n;
    ids[n] = id;
    return n + 1;
}

/* An earlier merge must not run before the repeated runs. */
static int drop_merge(const struct campaign *c, const struct queue *q, struct pt_err *err)
{
    struct list ids = {0};

    for (int i = STAGE_REPLAY; i >= STAGE_MERGE; i--)
        if (is_queued(q, c->stage[i]))
            list_take(&ids, xasprintf("%ld", c->stage[i].id));
    int rc = slurm_cancel(&ids, err);
    list_clear(&ids);
    return rc;
}

static int resume_runs(struct campaign *c, const struct status *s, const struct queue *q,
                       struct tally *t, struct pt_err *err)
{
    size_t *which = xcalloc(c->nruns, sizeof(*which)), n = 0, nafter = 0;
    long *after = xcalloc(c->nruns, sizeof(*after));
    int rc = 0;

    for (size_t k = 1; k < c->nruns && !rc; k++) {
        if (s->runs[k].state == STATE_DONE || is_queued(q, c->runs[k].job))
            continue;
        rc = move_away(c, k, err);
        which[n++] = k;
    }
    int merge = n > 0 || (!is_queued(q, c->stage[STAGE_MERGE]) &&
                          (s->stages[STAGE_MERGE].state != STATE_DONE ||
                           (c->replay && s->stages[STAGE_REPLAY].state != STATE_DONE &&
                            !is_queued(q, c->stage[STAGE_REPLAY]))));
    if (!rc && merge)
        rc = drop_merge(c, q, err);
    if (!rc && n)
        rc = jobs_submit_runs(c, which, n, NULL, err);
    for (size_t i = 0; i < n; i++)
        nafter = add_id(after, nafter, c->runs[which[i]].job.id);
    for (size_t k = 1; k < c->nruns; k++)
        if (is_queued(q, c->runs[k].job))
            nafter = add_id(after, nafter, c->runs[k].job.id);
    if (!rc && merge)
        rc = jobs_submit_merge(c, after, nafter, NULL, err);
    t->runs = n;
    t->merge = merge;
    free(after);
    free(which);
    return rc;
}

static int resume(struct campaign *c, struct tally *t, struct pt_err *err)
{
    struct queue q;
    struct status s;
    int rc = 0;

    if (slurm_queue(&q, err))
        return -1;
    status_find(&s, c, &q);
    c->cancelled = 0;
    if (is_queued(&q, c->runs[0].job) || is_queued(&q, c->stage[STAGE_PLAN])) {
        ; /* the rest comes by itself */
    } else if (s.runs[0].state != STATE_DONE) {
        rc = resume_baseline(c, t, err);
    } else if (!c->planned) {
        t->plan = 1;
        rc = jobs_submit_plan(c, 0, NULL, err);
    } else {
        rc = resume_runs(c, &s, &q, t, err);
    }
    struct pt_err why;
    if (campaign_save(c, &why) && !rc)
        rc = pt_err_set(err, "%s", why.text);
    free(s.runs);
    slurm_queue_clear(&q);
    return rc;
}

static void tell(const struct campaign *c, const struct tally *t)
{
    printf("campaign '%s': ", c->dir);
    if (t->baseline)
        puts("submitted the baseline and the plan");
    else if (t->plan)
        puts("submitted the plan");
    else if (t->runs)
        printf("submitted %zu run%s and the merge\n", t->runs, t->runs == 1 ? "" : "s");
    else if (t->merge)
        puts("submitted the merge");
    else
        puts("nothing to do");
}

int cmd_resume(int argc, char **argv)
{
    struct pt_err err;
    struct tally tally = {0};
    int code = 0;
    const char *dir = parse_dir_args(argc, argv, help, NULL, NULL, &code);

    if (!dir)
        return code;
    struct campaign *c = campaign_load(dir, &err);
    int lock = c ? campaign_lock(c->dir, &err) : -1;
    campaign_destroy(c);
    c = lock < 0 ? NULL : campaign_load(dir, &err);
    if (!c || slurm_check(&err) || resume(c, &tally, &err))
        code = complain("%s", err.text);
    else
        tell(c, &tally);
    campaign_destroy(c);
    if (lock >= 0)
        close(lock);
    return code;
}
