/*
 * The plugin's messages, in Slurm's log: in srun and sbatch that is the user's
 * terminal, in slurmstepd the log of slurmd and, for errors, the step's stderr.
 */
#ifndef PT_SPANK_LOG_H
#define PT_SPANK_LOG_H

#include "common/conf.h"

/* Messages less serious than this are left out (default: info). */
void pt_log_set_level(enum pt_log_level level);

void pt_log(enum pt_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
