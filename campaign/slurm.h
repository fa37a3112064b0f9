/*
 * Slurm, through its programs.
 */
#ifndef PT_CAMPAIGN_SLURM_H
#define PT_CAMPAIGN_SLURM_H

#include "campaign/campaign.h"
#include "campaign/util.h"

enum queued { QUEUED_NO, QUEUED_PENDING, QUEUED_RUNNING };

/* A snapshot of the user's jobs. */
struct queue {
    struct queue_job {
        struct job job;
        enum queued state;
        char *reason;
    } * jobs; /* by id and task */
    size_t n;
};

/* 0, or -1 and err if Slurm's programs are not there. */
int slurm_check(struct pt_err *err);

/*
 * sbatch with these options; returns the job's id, or -1 and err.  `env` replaces
 * our environment if it is not NULL.
 */
long slurm_submit(const struct list *options, const char *cwd, char **env, const char *script,
                  const char *arg, struct pt_err *err);

int slurm_queue(struct queue *q, struct pt_err *err);
void slurm_queue_clear(struct queue *q);

/* Parses the output of squeue -o '%i|%T|%r'. */
void slurm_queue_parse(struct queue *q, const char *text);

/* The job's entry; without a task also any element of the array; NULL if not queued. */
const struct queue_job *slurm_queue_find(const struct queue *q, struct job job);

int slurm_cancel(const struct list *ids, struct pt_err *err);

/* The greatest number of an array's element. */
long slurm_max_index(void);

/*
 * The environment for an sbatch from within a job: ours without the variables that
 * this job got, but with those that the campaign was submitted with.  For
 * list_clear().
 */
void slurm_outer_env(const struct campaign *c, struct list *env);

/* The variables of Slurm in our environment. */
void slurm_own_env(struct list *env);

#endif
