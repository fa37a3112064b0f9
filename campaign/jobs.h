/*
 * The jobs of a campaign: what is submitted, and what depends on what.
 */
#ifndef PT_CAMPAIGN_JOBS_H
#define PT_CAMPAIGN_JOBS_H

#include "campaign/campaign.h"
#include "campaign/script.h"

/* Writes the batch scripts that the functions below submit. */
int jobs_write_scripts(const struct campaign *c, const struct script *s, struct pt_err *err);

/*
 * Each submits, and enters the job's id into the campaign (which the caller saves, also
 * on failure).  `env`: see slurm_submit().
 */
int jobs_submit_baseline(struct campaign *c, char **env, struct pt_err *err);

/* The planning job; after the baseline if that is a job > 0. */
int jobs_submit_plan(struct campaign *c, long baseline, char **env, struct pt_err *err);

/* Throttled runs (numbers from 1, ascending), as one array if Slurm's limit allows. */
int jobs_submit_runs(struct campaign *c, const size_t *which, size_t n, char **env,
                     struct pt_err *err);

/* The merge job, after the arrays `after`, and the replay check if there is one. */
int jobs_submit_merge(struct campaign *c, const long *after, size_t n, char **env,
                      struct pt_err *err);

/* Numbers as sbatch's --array takes them: "1-3,7"; for free(). */
char *jobs_ranges(const long *numbers, size_t n);

#endif
