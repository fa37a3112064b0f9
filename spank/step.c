#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <slurm/slurm.h>

#include "spank/step.h"

_Static_assert(PT_SPEC_STEP_BATCH == SLURM_BATCH_SCRIPT, "the number of the batch step");
_Static_assert(PT_SPEC_STEP_INTERACTIVE == SLURM_INTERACTIVE_STEP, "that of salloc's shell");

enum pt_step_kind pt_step_kind(spank_t sp)
{
    uint32_t step;

    if (spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS)
        return PT_STEP_NONE;
    if (step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP)
        return PT_STEP_SCRIPT;
    return step < SLURM_MAX_NORMAL_STEP_ID ? PT_STEP_SRUN : PT_STEP_NONE;
}

/* ---- hosts ------------------------------------------------------------------------ */

/* The step's hosts; a script's step has no list of its own, it runs on the job's first. */
static int get_hosts(spank_t sp, char *list, size_t size)
{
    return spank_getenv(sp, "SLURM_STEP_NODELIST", list, size) == ESPANK_SUCCESS ||
                   spank_getenv(sp, "SLURM_JOB_NODELIST", list, size) == ESPANK_SUCCESS
               ? 0
               : -1;
}

int pt_step_host(spank_t sp, uint32_t index, char *host, size_t size)
{
    char list[PT_STEP_LIST_MAX], *name = NULL;

    if (get_hosts(sp, list, sizeof(list)) < 0)
        return -1;
    __auto_type hosts = slurm_hostlist_create(list); /* its type depends on the release */
    if (!hosts)
        return -1;
    for (uint32_t i = 0; i <= index; i++) {
        free(name);
        name = slurm_hostlist_shift(hosts);
        if (!name)
            break;
    }
    slurm_hostlist_destroy(hosts);
    if (!name)
        return -1;
    snprintf(host, size, "%s", name);
    free(name);
    return 0;
}

/* Our own name, if it is one of the step's hosts. */
static int own_host(spank_t sp, char *host, size_t size)
{
    char list[PT_STEP_LIST_MAX], own[256] = "";
    int found = 0;

    if (gethostname(own, sizeof(own) - 1) < 0 || get_hosts(sp, list, sizeof(list)) < 0)
        return -1;
    own[strcspn(own, ".")] = '\0';
    __auto_type hosts = slurm_hostlist_create(list);
    if (!hosts)
        return -1;
    found = slurm_hostlist_find(hosts, own) >= 0;
    slurm_hostlist_destroy(hosts);
    if (!found)
        return -1;
    snprintf(host, size, "%s", own);
    return 0;
}

/*
 * The host's name in Slurm.  Its own first: in a heterogeneous step the list is that of all
 * components, the number that of one.  But several slurmds may share a machine.
 */
static void find_host(spank_t sp, struct pt_step *s)
{
    if (own_host(sp, s->host, sizeof(s->host)) < 0 &&
        pt_step_host(sp, s->nodeid, s->host, sizeof(s->host)) < 0)
        gethostname(s->host, sizeof(s->host) - 1);
    for (char *p = s->host; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            *p = '_';
    }
}

/* ---- the rest ----------------------------------------------------------------------- */

static void find_array(spank_t sp, struct pt_step *s)
{
    struct pt_spec_ids *ids = &s->ids;

    ids->array_job = 0;
    ids->array_task = NO_VAL;
    spank_get_item(sp, S_JOB_ARRAY_ID, &ids->array_job);
    spank_get_item(sp, S_JOB_ARRAY_TASK_ID, &ids->array_task);
    s->in_array = ids->array_job != 0 && ids->array_task != NO_VAL;
    if (!s->in_array) {
        ids->array_job = ids->job;
        ids->array_task = 0;
    }
}

/*
 * Two components of a step may have the job's and the step's number in common (srun ... : ...
 * within a job), but never the port at which srun waits for them.
 */
static void make_key(spank_t sp, struct pt_step *s)
{
    char port[16];

    if (spank_getenv(sp, "SLURM_STEP_LAUNCHER_PORT", port, sizeof(port)) != ESPANK_SUCCESS)
        port[0] = '\0';
    snprintf(s->key, sizeof(s->key), "%u.%s.%u.%s", s->ids.job, s->id, s->restart, port);
}

/*
 * Slurm 22.05 does not know it in slurmstepd, but steps inherit it from the script.  That
 * itself gets it too late for us, and a run directory with the next free number.
 */
static uint32_t find_restart(spank_t sp)
{
    uint32_t count = 0;
    char text[16];

    if (spank_get_item(sp, S_SLURM_RESTART_COUNT, &count) == ESPANK_SUCCESS && count)
        return count;
    if (spank_getenv(sp, "SLURM_RESTART_COUNT", text, sizeof(text)) != ESPANK_SUCCESS)
        return 0;
    return strtoul(text, NULL, 10) & INT32_MAX;
}

int pt_step_get(spank_t sp, struct pt_step *s, struct pt_err *err)
{
    struct pt_spec_ids *ids = &s->ids;
    char buf[PT_SPEC_STEP_MAX];
    struct pt_who who;

    memset(s, 0, sizeof(*s));
    if (spank_get_item(sp, S_JOB_UID, &s->uid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_GID, &s->gid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &s->groups, &s->ngroups) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_ID, &ids->job) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_STEPID, &ids->step) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_NODEID, &s->nodeid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_NNODES, &s->nnodes) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_LOCAL_TASK_COUNT, &s->tasks) != ESPANK_SUCCESS)
        return pt_err_set(err, "Slurm does not describe the step");
    s->restart = find_restart(sp);
    s->kind = pt_step_kind(sp);
    if (s->kind == PT_STEP_SCRIPT) { /* whatever the job has, a script runs on one host */
        s->nodeid = 0;
        s->nnodes = 1;
    }
    find_array(sp, s);
    pt_who_set_user(&who, s->uid);
    snprintf(s->user, sizeof(s->user), "%s", who.user);
    if (spank_getenv(sp, "SLURM_JOB_NAME", s->name, sizeof(s->name)) != ESPANK_SUCCESS)
        strcpy(s->name, "job");
    ids->user = s->user;
    ids->name = s->name;
    snprintf(s->id, sizeof(s->id), "%s", pt_spec_step(ids->step, buf));
    find_host(sp, s);
    make_key(sp, s);
    return 0;
}

mode_t pt_step_umask(spank_t sp)
{
    char text[16], *end;
    unsigned long mask;

    if (spank_getenv(sp, "SLURM_UMASK", text, sizeof(text)) != ESPANK_SUCCESS)
        return 077;
    mask = strtoul(text, &end, 8);
    return *end || mask > 0777 ? 077 : mask;
}
