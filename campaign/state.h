/*
 * How far a campaign has come: from its run directories, the records that its jobs
 * leave, and the queue.
 */
#ifndef PT_CAMPAIGN_STATE_H
#define PT_CAMPAIGN_STATE_H

#include <stdio.h>

#include "campaign/campaign.h"
#include "campaign/slurm.h"

/* MISSING: over without having been submitted. */
enum state { STATE_PENDING, STATE_RUNNING, STATE_DONE, STATE_FAILED, STATE_MISSING };

/* Of a run or a stage. */
struct info {
    enum state state;
    char why[200];  /* it failed, or is pending */
    char log[32];   /* name of its output below the campaign's directory */
    double seconds; /* of a run that is done */
    int64_t holds, timed_out, events;
};

enum overall { OVERALL_RUNNING, OVERALL_DONE, OVERALL_FAILED, OVERALL_CANCELLED };

struct status {
    struct campaign *campaign;
    enum overall overall;
    struct info *runs;
    struct info stages[NSTAGES];
    size_t count[STATE_MISSING + 1]; /* of the runs */
    size_t queued;                   /* jobs in the queue, elements counted one by one */
};

extern const char *const state_names[];
extern const char *const overall_names[];

/*
 * The campaign in `dir` and its state; -1 and err.  *asked: it is a campaign, but Slurm
 * did not answer.
 */
int status_get(struct status *s, const char *dir, int *asked, struct pt_err *err);
void status_clear(struct status *s);

/* The same for a campaign that is loaded, and a queue. */
void status_find(struct status *s, struct campaign *c, const struct queue *q);

/*
 * What became of run k, whose job is over: DONE or FAILED, and the figures.
 */
void state_of_run(const struct campaign *c, size_t k, struct info *info);

/* The directory of run k, that of its last restart if the job was requeued; for free(). */
char *state_rundir(const struct campaign *c, size_t k);
/* The longest that a node of the baseline run was at work and in a call, ns; 0: not known. */
void state_longest(const struct campaign *c, uint64_t *gap, uint64_t *call);

/* How a job ended: DIR/log/NAME.exit. */
struct record {
    struct job job;
    int status; /* of wait() */
};

int state_write_record(const struct campaign *c, const char *name, const struct record *r,
                       struct pt_err *err);

#define JOB_TEXT 48

/* "12" or "12_3"; "-" if there is none. */
const char *state_job_text(struct job job, char buf[JOB_TEXT]);

void status_print_json(FILE *f, const struct status *s);

#endif
