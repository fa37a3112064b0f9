/*
 * What the plugin does in each of Slurm's contexts; plugin.c chooses.  Each returns
 * what Slurm is to be told: 0, or -1 to make srun or sbatch end.
 */
#ifndef PT_CONTEXTS_H
#define PT_CONTEXTS_H

#include <slurm/spank.h>

/* srun, sbatch, salloc: as the user, before anything is submitted. */
int pt_local_init(int argc, char **argv);
int pt_local_option(const char *spec);
int pt_local_user_init(spank_t sp); /* srun only; the step is there, not yet launched */
int pt_local_exit(void);

/* slurmstepd.  Whatever goes wrong there is logged, and the result is 0. */
int pt_remote_init(int argc, char **argv);
int pt_remote_option(const char *spec);
int pt_remote_init_post_opt(spank_t sp);
int pt_remote_user_init(spank_t sp);
int pt_remote_task_init(spank_t sp);
int pt_remote_task_exit(spank_t sp);
int pt_remote_exit(void);

#endif
