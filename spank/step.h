/*
 * What Slurm tells slurmstepd of a step, as far as the watchdog is to know it.
 */
#ifndef PT_STEP_H
#define PT_STEP_H

#include <slurm/spank.h>

#include "common/err.h"
#include "common/spec.h"
#include "spank/policy.h"

#define PT_STEP_HOST_MAX 64
#define PT_STEP_LIST_MAX 32768 /* of a list of hosts, or LD_PRELOAD */

/*
 * Traced are the steps that srun starts, and the script of a job: mpirun runs ranks
 * there.  Not the one that only keeps a job's place (extern).
 */
enum pt_step_kind { PT_STEP_NONE, PT_STEP_SRUN, PT_STEP_SCRIPT };

struct pt_step {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* Slurm's */
    int ngroups;
    enum pt_step_kind kind;
    struct pt_spec_ids ids;
    int in_array;
    uint32_t nodeid, nnodes, tasks, restart;
    char user[PT_WHO_NAME], name[256], host[PT_STEP_HOST_MAX];
    char id[PT_SPEC_STEP_MAX]; /* of the step, as people read it */
    char key[64];              /* the same on all its hosts, and no other step's */
};

enum pt_step_kind pt_step_kind(spank_t sp);

/* -1 and err if Slurm does not say.  Points into itself: do not copy. */
int pt_step_get(spank_t sp, struct pt_step *s, struct pt_err *err);

/* The name in Slurm of the step's `index`-th host; -1 if Slurm does not say. */
int pt_step_host(spank_t sp, uint32_t index, char *host, size_t size);

/* What the user's umask was; a strict one if Slurm does not say. */
mode_t pt_step_umask(spank_t sp);

#endif
