/*
 * srun, sbatch and salloc: refuse a wrong SPEC, where it costs nothing; and in srun, tell
 * the hosts of a step how they find and know each other.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <slurm/slurm.h>

#include "common/env.h"
#include "spank/contexts.h"
#include "spank/log.h"
#include "spank/options.h"

static struct pt_options options;

int pt_local_init(int argc, char **argv)
{
    struct pt_err err;

    pt_options_init(&options);
    for (int i = 0; i < argc; i++) {
        if (pt_options_argument(&options, argv[i], &err) < 0)
            pt_log(PT_LOG_ERROR, "%s", err.text);
    }
    return 0;
}

/* Who asks, as far as it is known here. */
static void find_who(void)
{
    static gid_t groups[NGROUPS_MAX];
    const char *partition = getenv("SLURM_JOB_PARTITION"), *account = getenv("SLURM_JOB_ACCOUNT");
    struct pt_who *who = &options.who;

    who->gid = getegid();
    who->groups = groups;
    who->ngroups = getgroups(NGROUPS_MAX, groups);
    pt_who_set_user(who, geteuid());
    snprintf(who->partition, sizeof(who->partition), "%s", partition ? partition : "");
    snprintf(who->account, sizeof(who->account), "%s", account ? account : "");
    options.who_known = 1;
}

/* A submit host may have another file than the compute hosts, or none. */
static void load_conf(void)
{
    struct pt_err err;

    if (!options.conf && pt_options_load(&options, &err) < 0)
        pt_log(PT_LOG_INFO, "the job will not be traced: %s", err.text);
    find_who();
}

int pt_local_option(const char *spec)
{
    struct pt_err err;

    load_conf();
    if (pt_options_request(&options, spec, &err) < 0) {
        pt_log(PT_LOG_ERROR, "--ptrace: %s", err.text);
        return -1;
    }
    return 0;
}

/* ---- the hosts of a step -------------------------------------------------------- */

/* Slurm 25.11 has put the numbers of a step into one structure. */
static int get_step(uint32_t job, uint32_t step, job_step_info_response_msg_t **steps)
{
#ifdef PT_SLURM_STEP_ID_API
    slurm_step_id_t id = {.job_id = job, .step_id = step, .step_het_comp = NO_VAL};

    return slurm_get_job_steps(&id, steps, SHOW_ALL);
#else
    return slurm_get_job_steps(0, job, step, steps, SHOW_ALL);
#endif
}

/* The step's first host, if it has several; -1: it has not, or Slurm does not say. */
static int find_first_host(uint32_t job, uint32_t step, char *host, size_t size)
{
    job_step_info_response_msg_t *steps = NULL;
    char *name = NULL;
    int several = 0;

    if (get_step(job, step, &steps) != SLURM_SUCCESS)
        return -1;
    if (steps->job_step_count == 1 && steps->job_steps[0].nodes) {
        __auto_type hosts = slurm_hostlist_create(steps->job_steps[0].nodes);
        if (hosts) {
            several = slurm_hostlist_count(hosts) > 1;
            name = slurm_hostlist_shift(hosts);
            slurm_hostlist_destroy(hosts);
        }
    }
    slurm_free_job_step_info_response_msg(steps);
    if (name)
        snprintf(host, size, "%s", name);
    free(name);
    return name && several ? 0 : -1;
}

/* NodeAddr: a host's name in Slurm need not be one elsewhere. */
static void find_address(char *host, char *address, size_t size)
{
    node_info_msg_t *nodes = NULL;

    snprintf(address, size, "%s", host);
    if (slurm_load_node_single(&nodes, host, 0) != SLURM_SUCCESS)
        return;
    if (nodes->record_count == 1 && nodes->node_array[0].node_addr)
        snprintf(address, size, "%s", nodes->node_array[0].node_addr);
    slurm_free_node_info_msg(nodes);
}

static int is_traced(void)
{
    struct pt_spec spec;
    char text[PT_SPEC_MAX];

    if (!options.conf)
        pt_options_load(&options, NULL); /* a site may trace steps unasked */
    if (!options.conf || (!options.requested && !pt_policy_has_unasked(options.conf)))
        return 0;
    find_who();
    return pt_options_decide(&options, NULL, &spec, text, NULL) == 1;
}

/*
 * In srun because all hosts of the step must get the same secret and none but they; and
 * because one question to the controller is better than one from each host.
 */
int pt_local_user_init(spank_t sp)
{
    unsigned char secret[PT_PEERS_SECRET];
    char value[600], host[256], address[256];
    uint32_t job, step;
    int n = 0;

    unsetenv(PT_ENV_PEERS); /* of a step around this one */
    if (!is_traced() || spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
        find_first_host(job, step, host, sizeof(host)) < 0 ||
        getrandom(secret, sizeof(secret), 0) != sizeof(secret))
        return 0;
    find_address(host, address, sizeof(address));
    for (size_t i = 0; i < sizeof(secret); i++)
        n += snprintf(value + n, sizeof(value) - n, "%02x", secret[i]);
    snprintf(value + n, sizeof(value) - n, " %s %s", host, address);
    setenv(PT_ENV_PEERS, value, 1);
    return 0;
}

int pt_local_exit(void)
{
    pt_options_clear(&options);
    return 0;
}
