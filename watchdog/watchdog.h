/*
 * The watchdog: one per host and step.  It owns the rings of the traced
 * processes, drains them into the run file and judges the holds.
 */
#ifndef PT_WATCHDOG_H
#define PT_WATCHDOG_H

#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "common/anon.h"
#include "common/hosts.h"
#include "common/ring.h"
#include "common/spec.h"
#include "common/trace.h"
#include "watchdog/path.h"

/* What the plugin (or the command line) says about the step. */
struct wd_options {
    const char *socket, *out, *host, *user, *spec_text, *preload;
    const char *root;     /* the user's own directory, to be made before `out`; NULL: none */
    int anonymise;        /* names are not to be written; the plugin sends the key */
    const char *key_file; /* the same, with the key in this file; NULL: no */
    uint64_t max_size;    /* of the run file, bytes; 0: no limit */
    uint64_t max_time;    /* of recording, ns; 0: no limit */
    const char *job, *step, *array_job, *array_task;
    int control; /* descriptor, -1: none */
    int hostid, nhosts, ntasks, restart;
    struct pt_ports ports; /* for the connection with other hosts */
    enum pt_munge munge;
    const char *munge_socket;
    const char *claim;  /* names the step to its other hosts and nobody else; NULL: no step */
    int script;         /* the step of a batch script or a login shell, not one of srun's */
    const char *rather; /* the run directory's name if no other step has taken that; or NULL */
    char **command;     /* run this ourselves; NULL: tasks are started by others */
};

struct wd_hosts;
struct wd_judge;
struct wd_proc;

/* What /proc tells about a thread. */
enum wd_proc_file { WD_PROC_STAT, WD_PROC_SCHEDSTAT, WD_PROC_WCHAN, WD_PROC_STATUS, WD_PROC_FILES };

/* A ring in use, and the thread whose records are being drained from it. */
struct wd_node {
    struct wd_node *next; /* of the process */
    struct wd_proc *proc;
    struct pt_name name;
    int32_t tid;
    struct pt_ring *ring;
    uint32_t slot;
    uint32_t id;                /* in the run file */
    uint64_t tail;              /* our own: the shared one is only for the tracer to read */
    uint64_t events;            /* written */
    uint64_t last_end;          /* of the last event drained, ns */
    uint64_t last_ticks;        /* the same, as the records have it */
    uint32_t last_file;         /* of the last short form */
    uint64_t last_busy;         /* the same, sleeps not counted */
    int announced;              /* to the run file */
    int silent;                 /* it came after recording has ended: not in the file */
    uint64_t unwritten;         /* events since then */
    uint64_t lost;              /* events that were dropped, in all of the ring's life */
    int ended;                  /* it has said so, and nothing came since */
    uint64_t end, end_cpu;      /* when, and the CPU time in the gap before; ns */
    uint64_t asked;             /* since when it wants to be held, 0: it does not */
    int proc_fd[WD_PROC_FILES]; /* opened when needed; -1: not yet */
    int32_t looked_at;          /* thread id of those */
};

struct wd_proc {
    struct wd_proc *next;
    pid_t pid;
    int pidfd;            /* -1: there is none */
    uint64_t young_until; /* when we shall want to be woken by its end; 0: we are */
    struct pt_name name;
    uint64_t start;
    char *exe, *cwd;
    unsigned passed;       /* enum wd_served: has come out of it */
    struct wd_node *nodes; /* in the order in which they came */
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
    struct rlimit files; /* how many one may open, as it was for us */
    int rundir;          /* descriptor: place.dir */
    struct wd_place place;
    char rundir_name[4096];
    int epoll;
    int young; /* epoll: processes whose end does not wake us */
    int listen_fd, bell_fd /* eventfd */, tick_fd;
    struct pt_memory *memory;
    uint32_t nslots, ring_size; /* our own: what is in the memory is not believed */
    uint64_t slot_size, first_slot;
    uint32_t prepared;          /* slots before this one have had memory at some time */
    struct pt_plan_entry *plan; /* sorted; nplan 0: there is none */
    size_t nplan;
    int memory_error;                    /* errno: there is not a single slot */
    struct pt_ring *rings[PT_MAX_SLOTS]; /* as far as they are mapped */
    struct wd_node *slots[PT_MAX_SLOTS]; /* who writes there; NULL: nobody that we know */
    uint32_t arrivals;                   /* that we have seen */
    struct wd_proc *procs;               /* newest first */
    uint32_t next_id;
    uint64_t started_real, started;
    struct pt_anon_key key;
    int anonymous; /* names are written as what `key` makes of them */

    /* for the record */
    uint64_t nodes, events, lost, holds, holds_timed_out, holds_refused, hold_ns, untraced_threads;
    uint64_t longest_gap, longest_call; /* between two events but sleeps, and of one; ns */
    uint64_t refused;                   /* greetings of others */
    uint64_t running;                   /* processes that were there when we ended */
    uint64_t blind;                     /* things that could not be seen */
    char blind_reason[300];             /* the first of them */
    int write_error;                    /* errno: the run file could not be written */
    const char *limit;                  /* of the site's, that has ended recording; NULL: none */
    struct wd_exit *exits;              /* of tasks, as the plugin tells them */
    size_t nexits;
    struct wd_judge *judge;
    struct wd_hosts *hosts; /* the others; NULL: one host only */
    struct wd_clock clock;
};

struct wd_exit {
    int task, status; /* wait status */
};

/* What all hosts have to say, or those of them that have ended. */
struct wd_totals {
    int hosts, incomplete; /* hosts */
    uint64_t nodes, events, lost, holds, holds_timed_out;
    char reason[400]; /* of the first incomplete one */
};

uint64_t wd_now(void);

/* ---- options.c ------------------------------------------------------------- */

/* Fills *o; ends the program on --help, --version and wrong use. */
void wd_options_parse(int argc, char **argv, struct wd_options *o);

/* ---- rundir.c -------------------------------------------------------------- */

/* Makes the run directory and the run file in it. */
int wd_rundir_begin(struct wd *wd, struct pt_err *err);
/*
 * Completes the run file and run.json; one line about the run, for its user, is in summary[]
 * ("": another host says it, or there is no run).
 */
int wd_rundir_end(struct wd *wd, char *summary, size_t size, struct pt_err *err);

/* ---- claim.c --------------------------------------------------------------- */

/* Is the run directory ours? 0: it is now; 1: another step's; -1 and errno. */
int wd_claim_take(const struct wd *wd);
/* All hosts are done, and what they have left says whose it is. */
void wd_claim_release(const struct wd *wd);

/* ---- parts.c --------------------------------------------------------------- */

/* Has everything on this host been seen and written?  If not, why, in a few words. */
int wd_run_complete(const struct wd *wd);
const char *wd_run_reason(const struct wd *wd, char *buf, size_t size);
/* Adds this host's part to those of the others, and writes run.json of what there is. */
int wd_parts_write(const struct wd *wd, struct wd_totals *totals);
/* How many run files are in the directory; -1 and errno. */
int wd_run_files(int rundir);
/* The line; "" if it is for another host to say. */
void wd_run_summary(const struct wd *wd, const struct wd_totals *all, char *buf, size_t size);

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

/* ---- plan.c ---------------------------------------------------------------- */

/* Reads the file of plan=, if there is one. */
int wd_plan_read(struct wd *wd, struct pt_err *err);
/* Writes it there. */
int wd_plan_write(const struct wd *wd, int fd, uint64_t offset);

/* ---- memory.c -------------------------------------------------------------- */

/* Makes the memory, as descriptor PT_MEMORY_FD. */
int wd_memory_begin(struct wd *wd, struct pt_err *err);
/* The ring of that slot, mapped; NULL: it cannot be. */
struct pt_ring *wd_memory_ring(struct wd *wd, uint32_t slot);
/* Gives the slots that will be claimed next memory: to allocate it takes time. */
void wd_memory_prepare(struct wd *wd);
/* Nobody writes there any more: the next one may have it. */
void wd_memory_free(struct wd *wd, uint32_t slot);
/* Accepts one greeting on the listening socket and answers it. */
void wd_greet(struct wd *wd);

/* ---- procs.c --------------------------------------------------------------- */

/* Finds out who has come. */
void wd_procs_look(struct wd *wd);
/* The process is gone: drains what it left and closes its nodes. */
void wd_proc_ended(struct wd *wd, struct wd_proc *proc);
void wd_proc_all_ended(struct wd *wd);
/* Takes leave of young processes that have ended; how many those were, and how many are left. */
size_t wd_procs_young(struct wd *wd, size_t *left);
/* How many are there that have not come to their end. */
size_t wd_procs_running(struct wd *wd);
/* Is it still there?  An event of this round may have ended it. */
int wd_proc_known(const struct wd *wd, const struct wd_proc *proc);
/* How many ranks have come. */
size_t wd_ranks_joined(const struct wd *wd);
/* Tasks that have ended and were never heard of. */
size_t wd_tasks_unseen(const struct wd *wd);

/* ---- site.c ---------------------------------------------------------------- */

/* Gets the key and makes the user's directory, before anything is written. */
int wd_site_begin(struct wd *wd, struct pt_err *err);
/* A copy of a path of up to `size` bytes, as it may be written; NULL: no memory. */
char *wd_site_name(const struct wd *wd, const char *path, size_t size);
/* Makes the event one that may be written; its names are valid until the next one. */
void wd_site_hide(const struct wd *wd, struct pt_event *ev);
/* Is the event behind a limit?  Then it is not written, nor are those that follow. */
int wd_site_ends(struct wd *wd, const struct pt_event *ev);
/* Which limit that was, and what it has cost. */
void wd_site_reason(const struct wd *wd, char *buf, size_t size);

/* ---- drain.c ---------------------------------------------------------------- */

void wd_drain_all(struct wd *wd);
void wd_drain_proc(struct wd *wd, struct wd_proc *proc);
/* The same for one that is gone, also what its signal handlers had interrupted for ever. */
void wd_drain_ended(struct wd *wd, struct wd_proc *proc);
/* Writes the end of a node that could not do it itself. */
void wd_node_close(struct wd *wd, struct wd_node *node);

/* ---- hosts.c ---------------------------------------------------------------- */

/* Prepares for other hosts, if there are any; the connection begins when its secret comes. */
int wd_hosts_create(struct wd *wd, struct pt_err *err);
/* What the plugin says: "SECRET ADDRESS", in hex, and of the first host. */
void wd_hosts_connect(struct wd *wd, const char *text);
/* Something has happened at the descriptor that was given to wd->epoll with wd->hosts. */
void wd_hosts_work(struct wd *wd);
/* Takes leave of the others; what is known about them stays. */
void wd_hosts_leave(struct wd *wd);
void wd_hosts_destroy(struct wd *wd);
/* Are all hosts of the step connected? */
int wd_hosts_complete(const struct wd *wd);
/* Why they were not throughout, in a few words; NULL: they were, or there is one host. */
const char *wd_hosts_problem(const struct wd *wd, char *buf, size_t size);
/* Was one of them lost? */
int wd_hosts_lost(const struct wd *wd);
/* Their entry in run.json: ', "peers": {...}', or nothing. */
void wd_hosts_put(const struct wd *wd, FILE *f);

/* Are there hosts that hold I/Os and cannot go on doing so without us? */
int wd_hosts_need_us(const struct wd *wd);
/* Says something to the watchdog of another host; lost if that is not there. */
void wd_hosts_send(struct wd *wd, int host, uint16_t type, const void *payload, size_t len);

/* ---- strangers.c ------------------------------------------------------------ */

/* Are there processes that may soon be traced and are not known yet? */
int wd_strangers(const struct wd *wd);

/* ---- look.c ----------------------------------------------------------------- */

/* The thread that writes into the node's ring now, which may be ahead of node->name. */
struct pt_name wd_node_present(const struct wd_node *node);
/* A new node: nothing has been opened to look at its thread. */
void wd_node_no_thread(struct wd_node *node);
/* Closes what has. */
void wd_node_forget_thread(struct wd_node *node);

/* ---- judge.c ---------------------------------------------------------------- */

struct wd_judge *wd_judge_create(struct wd *wd);
void wd_judge_destroy(struct wd_judge *j);
/* Looks after the holds; 1: it wants to look again soon. */
int wd_judge_tick(struct wd_judge *j);
/* All hosts of the step are connected. */
void wd_judge_open(struct wd_judge *j);
/* The watchdog of another host has said something; it has gone, in good order or not. */
void wd_judge_hear(struct wd_judge *j, int host, uint16_t type, const void *payload, size_t len);
void wd_judge_host_gone(struct wd_judge *j, int host, int in_order);
/* A node is about to disappear: the judge forgets it. */
void wd_judge_forget(struct wd_judge *j, const struct wd_node *node);

#endif
