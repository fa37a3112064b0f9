/*
 * Out of the job's cgroups: what the watchdog needs is not to be counted against the job's
 * memory, and what ends a step's processes is not to end it before it has saved the trace.
 * No Slurm in here, and nothing that is not async-signal-safe.
 */
#ifndef PT_CGROUP_H
#define PT_CGROUP_H

#include <stddef.h>

/*
 * For one line of /proc/self/cgroup of a process in a job of Slurm's: the file that has to
 * be written to leave the job for the part of Slurm's own processes.  0; -1 if there is
 * nothing to leave.
 */
int pt_cgroup_way_out(const char *line, char *file, size_t size);

/* Leaves, for as many as can be left; needs root. */
void pt_cgroup_leave(void);

#endif
