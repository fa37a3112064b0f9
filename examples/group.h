/*
 * The processes of an example without MPI: forked by the program itself, or tasks of a Slurm step.
 *
 * With --procs, or outside Slurm, rank 0 is the first process and forks the others. Otherwise each
 * task is one rank, with rank and size from SLURM_PROCID and SLURM_NTASKS; such tasks find
 * each other by names made from the job and step id, and have to be on one host.
 */
#ifndef EXAMPLES_GROUP_H
#define EXAMPLES_GROUP_H

#include "common.h"

struct group {
    int rank;
    int size;
    bool slurm;      /* tasks of a step, not forked */
    char tag[64];    /* "JOB.STEP" or "pPID": part of the names by which tasks find each other */
    double timeout;  /* seconds after which a wait for a peer is given up */
    pid_t *children; /* rank 0: the forked processes */
};

/* The options of all these programs; 'procs' 0 stands for "not given". */
#define GROUP_OPTS(procs, timeout)                                                            \
    {"procs", EX_COUNT, &(procs), "processes to fork; 0: none if Slurm tasks, else 4"},       \
    {                                                                                         \
        "timeout", EX_TIME, &(timeout), "give up waiting for another process after this time" \
    }

/* Set ex_name and keep all Slurm tasks but the first quiet about options. Before ex_parse(). */
void group_begin(const char *name);

/* Find out rank, size and tag. Forks nothing yet: set up what the processes shall inherit next. */
void group_plan(struct group *g, unsigned procs, double timeout);

/* Like group_plan(), for programs that can not be spread over Slurm tasks. */
void group_plan_forked(struct group *g, unsigned procs, double timeout);

/* Fork, unless the ranks are Slurm tasks. Returns in each process with its own g->rank. */
void group_fork(struct group *g);

/*
 * Rank 0 waits for the processes that it forked and fails if one of them did. The others end here
 * when forked, and return when they are tasks.
 */
void group_join(struct group *g);

/* ex_die() with the reason that a peer did not come in time. */
void group_timed_out(const struct group *g, const char *what) __attribute__((noreturn));

#endif
