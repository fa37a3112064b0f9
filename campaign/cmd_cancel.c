#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "campaign/command.h"
#include "campaign/slurm.h"
#include "campaign/state.h"

static const char help[] = "Usage: ptcampaign cancel DIR\n\n"
                           "Ends the campaign's jobs.  What is done stays; 'ptcampaign resume' "
                           "goes on with it.\n";

/* Each job once: an array as a whole. */
static void add_job(struct list *ids, const struct queue *q, struct job job, long *last)
{
    job.task = -1;
    if (job.id == *last || !slurm_queue_find(q, job))
        return;
    *last = job.id;
    list_take(ids, xasprintf("%ld", job.id));
}

static int cancel(struct campaign *c, size_t *n, struct pt_err *err)
{
    struct queue q;
    struct list ids = {0};
    long last = 0;

    if (slurm_queue(&q, err))
        return -1;
    /* First those that wait for others, lest they start. */
    for (int i = NSTAGES - 1; i >= 0; i--)
        add_job(&ids, &q, c->stage[i], &last);
    for (size_t k = c->nruns; k-- > 0;)
        add_job(&ids, &q, c->runs[k].job, &last);
    *n = ids.n;
    c->cancelled = 1;
    int rc = campaign_save(c, err);
    if (!rc)
        rc = slurm_cancel(&ids, err);
    slurm_queue_clear(&q);
    list_clear(&ids);
    return rc;
}

int cmd_cancel(int argc, char **argv)
{
    struct pt_err err;
    int code = 0;
    size_t n = 0;
    const char *dir = parse_dir_args(argc, argv, help, NULL, NULL, &code);

    if (!dir)
        return code;
    struct campaign *c = campaign_load(dir, &err);
    int lock = c ? campaign_lock(c->dir, &err) : -1;
    campaign_destroy(c);
    c = lock < 0 ? NULL : campaign_load(dir, &err);
    if (!c || cancel(c, &n, &err))
        code = complain("%s", err.text);
    else
        printf("campaign '%s': %zu job%s cancelled\n", c->dir, n, n == 1 ? "" : "s");
    campaign_destroy(c);
    if (lock >= 0)
        close(lock);
    return code;
}
