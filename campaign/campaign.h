/*
 * A campaign: its plan and state, kept in DIR/campaign.json.
 *
 *   DIR/campaign.json  this, always written whole under another name and renamed
 *   DIR/job.sh         copy of the user's script
 *   DIR/NAME.sbatch    the batch scripts made from it
 *   DIR/runs/NNN       run directories: 000 the baseline, then one for each node
 *   DIR/log/NAME.out   output of the jobs;  DIR/log/NAME.exit  how they ended
 *   DIR/store.h5       the result
 *
 * Who changes campaign.json holds the lock from reading to writing it.
 */
#ifndef PT_CAMPAIGN_H
#define PT_CAMPAIGN_H

#include <stdint.h>

#include "campaign/util.h"

#define CAMPAIGN_FILE "campaign.json"
#define CAMPAIGN_MAX  ((size_t)64 << 20) /* bytes of campaign.json */
#define RUNS_MAX      1000000

/* A job of Slurm: id 0 if there is none; task -1 if it is no element of an array. */
struct job {
    long id;
    long task;
};

struct run {
    char *node; /* who is held; NULL: the baseline */
    struct job job;
};

/* What is not a run. */
enum stage { STAGE_PLAN, STAGE_MERGE, STAGE_REPLAY, NSTAGES };
extern const char *const stage_names[NSTAGES];

struct campaign {
    char *dir; /* absolute */
    /* As submitted. */
    char *name;               /* of the job */
    char *script;             /* where it came from */
    char *cwd;                /* where the jobs run */
    char *spec;               /* further items */
    char *nodes;              /* "all" or a list */
    char *replay;             /* --root of the replay check, or NULL */
    char *ptmerge, *ptreplay; /* programs; ptreplay only if there is a replay check */
    long period;              /* 0: the site's */
    long max_parallel;
    long created;       /* seconds since 1970 */
    struct list args;   /* of the script */
    struct list sbatch; /* options for its jobs */
    struct list env;    /* Slurm's variables when it was submitted */
    /* State. */
    int planned; /* the runs are known */
    int cancelled;
    long ranks;        /* seen in the baseline */
    struct list notes; /* what a person should know of the plan */
    struct job stage[NSTAGES];
    struct run *runs; /* runs[0] is the baseline */
    size_t nruns;
    uint64_t generation; /* counts the times it was saved */
};

/* Ready with nothing but the baseline as its only run. */
struct campaign *campaign_create(void);
void campaign_destroy(struct campaign *c);

/* The campaign in `dir`; NULL and err if it is none. */
struct campaign *campaign_load(const char *dir, struct pt_err *err);
int campaign_save(struct campaign *c, struct pt_err *err);

/* The same from and to text, without files; dir is not part of it. */
struct campaign *campaign_from_json(const char *text, size_t len, struct pt_err *err);
char *campaign_to_json(const struct campaign *c);

/* Forgets all runs but the baseline. */
void campaign_reset_runs(struct campaign *c);
void campaign_add_run(struct campaign *c, const char *node);

/*
 * Waits for the lock of the campaign in `dir`, for a minute at most.  The lock is
 * gone when the returned descriptor is closed; -1 and err on failure.
 */
int campaign_lock(const char *dir, struct pt_err *err);

/* A name below the campaign's directory, for free(). */
char *campaign_path(const struct campaign *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
