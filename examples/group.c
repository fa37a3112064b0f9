/* The processes of an example without MPI; see group.h. */
#define _GNU_SOURCE
#include "group.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The group whose processes a failing rank 0 takes along. */
static struct group *current;

/* A rank 0 that fails would leave its children waiting, or spinning, until their time is over. */
static void leave(int code)
{
    if (current->children && current->rank == 0) {
        for (int r = 1; r < current->size; r++)
            if (current->children[r] > 0 && kill(current->children[r], SIGTERM) == 0)
                waitpid(current->children[r], NULL, 0);
    }
    exit(code);
}

void group_begin(const char *name)
{
    const char *id = getenv("SLURM_PROCID");

    ex_name = name;
    ex_quiet = id && strcmp(id, "0") != 0;
}

static int number_from(const char *var, int least)
{
    const char *s = getenv(var);
    char *end;
    long n;

    if (!s)
        return -1;
    n = strtol(s, &end, 10);
    if (end == s || *end || n < least || n > INT_MAX)
        ex_die("cannot use %s='%s': not a rank or size", var, s);
    return (int)n;
}

void group_plan_forked(struct group *g, unsigned procs, double timeout)
{
    *g = (struct group){.size = procs ? (int)procs : 4, .timeout = timeout};
    snprintf(g->tag, sizeof(g->tag), "p%ld", (long)getpid());
    current = g;
    ex_leave = leave;
}

void group_plan(struct group *g, unsigned procs, double timeout)
{
    const char *job = getenv("SLURM_JOB_ID"), *step = getenv("SLURM_STEP_ID");
    int rank, size;

    group_plan_forked(g, procs, timeout);
    if (procs)
        return;
    rank = number_from("SLURM_PROCID", 0);
    size = number_from("SLURM_NTASKS", 1);
    if (rank < 0 || size < 0)
        return;
    if (rank >= size)
        ex_die("cannot use SLURM_PROCID=%d: there are %d tasks", rank, size);
    g->slurm = true;
    g->rank = rank;
    g->size = size;
    snprintf(g->tag, sizeof(g->tag), "%.20s.%.20s", job ? job : "0", step ? step : "0");
}

void group_fork(struct group *g)
{
    if (g->slurm)
        return;
    g->children = calloc((size_t)g->size, sizeof(*g->children));
    if (!g->children)
        ex_fail("allocate", "the list of processes");
    for (int r = 1; r < g->size; r++) {
        pid_t pid = fork();
        if (pid < 0)
            ex_fail("start", "a process");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM); /* a killed rank 0 takes the others along, too */
            free(g->children);
            g->children = NULL;
            g->rank = r;
            return;
        }
        g->children[r] = pid;
    }
}

void group_join(struct group *g)
{
    int failed = 0;

    if (g->slurm)
        return;
    if (g->rank > 0)
        exit(0);
    for (int r = 1; r < g->size; r++) {
        int status;
        while (waitpid(g->children[r], &status, 0) < 0)
            if (errno != EINTR)
                ex_fail("wait for", "a process");
        g->children[r] = 0;
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    if (failed)
        ex_die("%d of %d processes failed", failed, g->size);
    free(g->children);
    g->children = NULL;
}

void group_timed_out(const struct group *g, const char *what)
{
    ex_die("rank %d gave up waiting for %s after %g s", g->rank, what, g->timeout);
}
