/*
 * The watchdog: one per host and step.  It owns the rings of the traced
 * processes, drains them into the run file and judges the holds.
 */
#ifndef PT_WATCHDOG_H
#define PT_WATCHDOG_H

#include <stdint.h>
#include <sys/types.h>

#include "common/ring.h"
#include "common/spec.h"
#include "common/trace.h"

/* What the plugin (or the command line) says about the step. */
struct wd_options {
    const char *socket, *out, *host, *user, *spec_text, *preload;
    const char *job, *step, *array_job, *array_task;
    int control; /* descriptor, -1: none */
    int hostid, nhosts, ntasks, restart;
    char **command; /* run this ourselves; NULL: tasks are started by others */
};

struct wd_judge;
struct wd_proc;

struct wd_node {
    struct wd_proc *proc;
    struct pt_name name;
    struct pt_ring *ring;
    uint32_t id;           /* in the run file */
    uint64_t tail;         /* our own: the shared one is only for the tracer to read */
    uint64_t events;       /* written */
    uint64_t last_end;     /* of the last event drained, ns */
    int announced;         /* to the run file */
    uint64_t lost;         /* events that were dropped */
    int stat_fd, sched_fd; /* of /proc, opened at the first judgement; -1: not yet */
};

struct wd_proc {
    struct wd_proc *next;
    pid_t pid;
    int pidfd;
    int memfd; /* until it is handed over, else -1 */
    struct pt_shm *shm;
    size_t shm_size;
    struct pt_name name;
    uint64_t start;
    char *exe, *cwd;
    uint32_t nslots, ring_size;
    struct wd_node *nodes; /* one a slot */
};

/* The clock of the records; see clock.c. */
struct wd_clock {
    int tsc; /* 0: records are in ns */
    uint64_t mult;
    uint64_t ticks, ns;             /* the same moment on both */
    uint64_t first_ticks, first_ns; /* and at the start */
};

struct wd {
    struct wd_options opt;
    struct pt_spec spec;
    struct pt_writer *writer;
    int rundir; /* descriptor */
    char rundir_name[4096];
    int epoll;
    int listen_fd, bell_fd /* eventfd */, bell_memfd, tick_fd;
    struct pt_bell *bell;
    struct wd_proc *procs; /* newest first */
    struct wd_proc *spare; /* made ready for the next one to come */
    uint32_t next_id;
    uint64_t started_real, started;

    /* for the record */
    uint64_t nodes, events, lost, holds, holds_timed_out, hold_ns, untraced_threads;
    uint64_t refused;       /* greetings of others */
    uint64_t blind;         /* things that could not be seen */
    char blind_reason[300]; /* the first of them */
    struct wd_rank *ranks;  /* that have greeted */
    size_t nranks;
    int write_error;       /* errno: the run file could not be written */
    struct wd_exit *exits; /* of tasks, as the plugin tells them */
    size_t nexits;
    struct wd_judge *judge;
    struct wd_clock clock;
};

struct wd_rank {
    int rank, processes; /* how many of its processes have come */
};

struct wd_exit {
    int task, status; /* wait status */
};

uint64_t wd_now(void);

/* ---- options.c ------------------------------------------------------------- */

/* Fills *o; ends the program on --help, --version and wrong use. */
void wd_options_parse(int argc, char **argv, struct wd_options *o);

/* ---- rundir.c -------------------------------------------------------------- */

/* Makes the run directory and the run file in it. */
int wd_rundir_begin(struct wd *wd, struct pt_err *err);
/* Completes the run file and run.json. */
int wd_rundir_end(struct wd *wd, struct pt_err *err);
/* One line about the run, for its user. */
void wd_rundir_summary(const struct wd *wd, char *buf, size_t size);

/* ---- clock.c --------------------------------------------------------------- */

void wd_clock_begin(struct wd_clock *clock);
/* Sets the counter to CLOCK_MONOTONIC again. */
void wd_clock_anchor(struct wd_clock *clock);
/* A record's time as CLOCK_MONOTONIC, and a duration; ns. */
uint64_t wd_clock_time(const struct wd_clock *clock, uint64_t ticks);
uint64_t wd_clock_span(const struct wd_clock *clock, uint64_t ticks);

/* ---- bell.c ---------------------------------------------------------------- */

/* Makes the bell and the thread that turns its ringing into wd->bell_fd. */
int wd_bell_begin(struct wd *wd, struct pt_err *err);

/* ---- command.c ------------------------------------------------------------- */

/* Starts opt.command under the tracer; its pid, or -1. */
pid_t wd_command_start(struct wd *wd, struct pt_err *err);

/* ---- procs.c --------------------------------------------------------------- */

/* Accepts one greeting on the listening socket and answers it. */
void wd_greet(struct wd *wd);
/* Makes memory ready for the next process. */
void wd_proc_prepare(struct wd *wd);
/* The process is gone: drains what it left and closes its nodes. */
void wd_proc_ended(struct wd *wd, struct wd_proc *proc);
void wd_proc_all_ended(struct wd *wd);
/* How many of its slots are taken. */
uint32_t wd_proc_nodes(const struct wd_proc *proc);
/* Is it still there?  An event of this round may have ended it. */
int wd_proc_known(const struct wd *wd, const struct wd_proc *proc);
int wd_rank_joined(const struct wd *wd, int rank);
/* Tasks that have ended and were never heard of. */
size_t wd_tasks_unseen(const struct wd *wd);

/* ---- drain.c ---------------------------------------------------------------- */

void wd_drain_all(struct wd *wd);
void wd_drain_proc(struct wd *wd, struct wd_proc *proc);
/* Writes the end of a node that could not do it itself. */
void wd_node_close(struct wd *wd, struct wd_node *node);

/* ---- judge.c ---------------------------------------------------------------- */

struct wd_judge *wd_judge_create(struct wd *wd);
void wd_judge_destroy(struct wd_judge *j);
/* Looks at the held node, if there is one; 1: it wants to look again soon. */
int wd_judge_tick(struct wd_judge *j);
/* A node is about to disappear: the judge forgets it. */
void wd_judge_forget(struct wd_judge *j, const struct wd_node *node);

#endif
