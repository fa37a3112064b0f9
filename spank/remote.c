/*
 * slurmstepd: one watchdog for each traced step, and the tracer in its tasks.
 *
 * Everything here logs and returns 0, for a failure could drain the host; the step
 * then runs untraced.  Called as root (user_init: with the user's effective id;
 * task_init: as the user, in the task), so nothing that the user named is opened or
 * executed in this process.
 */
#include "config.h"

#include <ctype.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
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
#include "spank/watchd.h"

#define READY_MS    5000
#define FINISH_MS   10000
#define HOST_MAX    64
#define LISTED_MAX  32768 /* of a list of hosts, or LD_PRELOAD */
#define SOCKET_NAME "paratrace.%u.%u.%.48s.%016" PRIx64

/* What Slurm tells of the step. */
struct step {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* Slurm's */
    int ngroups;
    struct pt_spec_ids ids;
    int in_array;
    uint32_t nodeid, nnodes, tasks, restart;
    char user[64], name[256], host[HOST_MAX];
};

static struct pt_options options;
static int trace; /* this step is to be traced */
static struct pt_spec spec;
static char spec_text[PT_SPEC_MAX];
static struct pt_watchd *watchd;
static char socket_name[108];
static uint32_t nodeid, tasks_left;

/* ---- before the tasks ----------------------------------------------------------- */

int pt_remote_init(int argc, char **argv)
{
    struct pt_err err;

    pt_options_init(&options);
    for (int i = 0; i < argc; i++) {
        if (pt_options_argument(&options, argv[i], &err) < 0)
            pt_log(PT_LOG_INFO, "%s", err.text);
    }
    return 0;
}

int pt_remote_option(const char *text)
{
    struct pt_err err;

    if (pt_options_request(&options, text, &err) < 0)
        pt_log(PT_LOG_ERROR, "--ptrace: %s", err.text);
    return 0;
}

/* Batch, extern and interactive steps are not traced: only what srun starts. */
static int is_srun_step(spank_t sp)
{
    uint32_t step;

    return spank_get_item(sp, S_JOB_STEPID, &step) == ESPANK_SUCCESS &&
           step < SLURM_MAX_NORMAL_STEP_ID;
}

/* The site's file is read here, where no container hides it yet. */
int pt_remote_init_post_opt(spank_t sp)
{
    char env[PT_SPEC_MAX];
    struct pt_err err;
    int has_env;

    if (!is_srun_step(sp))
        return 0;
    if (pt_options_load(&options, &err) < 0) {
        pt_log(options.requested ? PT_LOG_ERROR : PT_LOG_INFO, "not traced: %s", err.text);
        return 0;
    }
    pt_log_set_level(options.conf->log_level);
    has_env = spank_getenv(sp, PT_OPTIONS_ENV, env, sizeof(env)) == ESPANK_SUCCESS;
    trace = pt_options_decide(&options, has_env ? env : NULL, &spec, spec_text, &err);
    if (trace < 0) {
        pt_log(PT_LOG_ERROR, "not traced: --ptrace: %s", err.text);
        trace = 0;
    }
    return 0;
}

/* The host's name in Slurm, which is not always its own; -1 if Slurm does not say. */
static int find_host(spank_t sp, uint32_t index, char *host, size_t size)
{
    char list[LISTED_MAX], *name = NULL;

    if (spank_getenv(sp, "SLURM_STEP_NODELIST", list, sizeof(list)) != ESPANK_SUCCESS)
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

static void find_user(uid_t uid, char *user, size_t size)
{
    struct passwd pw, *found = NULL;
    char buf[4096];

    if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) == 0 && found)
        snprintf(user, size, "%s", pw.pw_name);
    else
        snprintf(user, size, "%u", (unsigned)uid);
}

static int get_step(spank_t sp, struct step *s, struct pt_err *err)
{
    struct pt_spec_ids *ids = &s->ids;

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
    spank_get_item(sp, S_SLURM_RESTART_COUNT, &s->restart);

    ids->array_job = 0;
    ids->array_task = NO_VAL;
    spank_get_item(sp, S_JOB_ARRAY_ID, &ids->array_job);
    spank_get_item(sp, S_JOB_ARRAY_TASK_ID, &ids->array_task);
    s->in_array = ids->array_job != 0 && ids->array_task != NO_VAL;
    if (!s->in_array) {
        ids->array_job = ids->job;
        ids->array_task = 0;
    }

    find_user(s->uid, s->user, sizeof(s->user));
    if (spank_getenv(sp, "SLURM_JOB_NAME", s->name, sizeof(s->name)) != ESPANK_SUCCESS)
        strcpy(s->name, "job");
    ids->user = s->user;
    ids->name = s->name;

    if (find_host(sp, s->nodeid, s->host, sizeof(s->host)) < 0)
        gethostname(s->host, sizeof(s->host) - 1);
    for (char *p = s->host; *p; p++) {
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            *p = '_';
    }
    return 0;
}

/* out= as an absolute path: relative ones are below the step's working directory. */
static int find_out(const struct step *s, const char *cwd, char *out, size_t size,
                    struct pt_err *err)
{
    char expanded[PATH_MAX];
    int n;

    if (pt_spec_expand(spec.out, &s->ids, expanded, sizeof(expanded), err) < 0)
        return -1;
    n = expanded[0] == '/' ? snprintf(out, size, "%s", expanded)
                           : snprintf(out, size, "%s/%s", cwd, expanded);
    if ((size_t)n >= size)
        return pt_err_set(err, "out=%.60s...: the path is too long", expanded);
    return 0;
}

static mode_t find_umask(spank_t sp)
{
    char text[16], *end;
    unsigned long mask;

    if (spank_getenv(sp, "SLURM_UMASK", text, sizeof(text)) != ESPANK_SUCCESS)
        return 077;
    mask = strtoul(text, &end, 8);
    return *end || mask > 0777 ? 077 : mask;
}

/* An argument vector and the text of its numbers. */
struct args {
    char *v[40];
    unsigned n;
    char text[256];
    size_t used;
};

static void add_arg(struct args *a, const char *name, const char *value)
{
    a->v[a->n++] = (char *)name;
    if (value)
        a->v[a->n++] = (char *)value;
    a->v[a->n] = NULL;
}

static void add_number(struct args *a, const char *name, uint32_t value)
{
    char *text = a->text + a->used;

    a->used += snprintf(text, sizeof(a->text) - a->used, "%u", value) + 1;
    add_arg(a, name, text);
}

static void make_args(struct args *a, const struct step *s, const char *out)
{
    memset(a, 0, sizeof(*a));
    add_arg(a, "ptwatchd", NULL);
    add_number(a, "--control", PT_WATCHD_CONTROL_FD);
    add_arg(a, "--socket", socket_name);
    add_arg(a, "--out", out);
    add_arg(a, "--host", s->host);
    add_number(a, "--hostid", s->nodeid);
    add_number(a, "--nhosts", s->nnodes);
    add_number(a, "--ntasks", s->tasks);
    add_number(a, "--job", s->ids.job);
    add_number(a, "--step", s->ids.step);
    if (s->in_array) {
        add_number(a, "--array-job", s->ids.array_job);
        add_number(a, "--array-task", s->ids.array_task);
    }
    add_number(a, "--restart", s->restart);
    add_arg(a, "--user", s->user);
    add_arg(a, "--spec", spec_text);
}

static struct pt_watchd *start_watchd(spank_t sp, struct pt_err *err)
{
    char cwd[PATH_MAX], out[2 * PATH_MAX];
    struct step step;
    struct args args;
    uint64_t nonce;

    if (!getcwd(cwd, sizeof(cwd))) {
        pt_err_errno(err, "no working directory");
        return NULL;
    }
    if (get_step(sp, &step, err) < 0 || find_out(&step, cwd, out, sizeof(out), err) < 0)
        return NULL;
    if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce)) {
        pt_err_errno(err, "no random number");
        return NULL;
    }
    snprintf(socket_name, sizeof(socket_name), SOCKET_NAME, step.ids.job, step.ids.step, step.host,
             nonce);
    nodeid = step.nodeid;
    tasks_left = step.tasks;
    make_args(&args, &step, out);
    return pt_watchd_start(
        &(struct pt_watchd_how){
            .program = pt_options_watchdog(&options),
            .argv = args.v,
            .uid = step.uid,
            .gid = step.gid,
            .groups = step.groups,
            .ngroups = step.ngroups,
            .cwd = cwd,
            .umask = find_umask(sp),
        },
        READY_MS, err);
}

int pt_remote_user_init(spank_t sp)
{
    struct pt_err err;

    if (!trace)
        return 0;
    watchd = start_watchd(sp, &err);
    if (!watchd)
        pt_log(PT_LOG_ERROR, "not traced: %s", err.text);
    else
        pt_log(PT_LOG_DEBUG, "watchdog listens at '%s'", socket_name);
    return 0;
}

/* ---- a task ------------------------------------------------------------------------ */

/* Programs built with ASan refuse to start behind a preloaded library, unless told. */
static void allow_asan(spank_t sp)
{
    char old[4096], new[4096 + sizeof(PT_ASAN_OPTION) + 1];

    if (spank_getenv(sp, PT_ENV_ASAN, old, sizeof(old)) != ESPANK_SUCCESS)
        old[0] = '\0';
    if (strstr(old, PT_ASAN_OPTION))
        return;
    snprintf(new, sizeof(new), "%s%s" PT_ASAN_OPTION, old, *old ? ":" : "");
    spank_setenv(sp, PT_ENV_ASAN, new, 1);
}

static int inject(spank_t sp, const char *library, struct pt_err *err)
{
    char old[LISTED_MAX], new[LISTED_MAX];
    spank_err_t rc;

    if (access(library, R_OK) < 0) /* a container may not have it */
        return pt_err_errno(err, "'%s'", library);
    rc = spank_getenv(sp, "LD_PRELOAD", old, sizeof(old));
    if (rc == ESPANK_ENV_NOEXIST)
        old[0] = '\0';
    else if (rc != ESPANK_SUCCESS)
        return pt_err_set(err, "LD_PRELOAD: %s", spank_strerror(rc));
    if (pt_options_ld_preload(old, library, new, sizeof(new)) < 0)
        return pt_err_set(err, "LD_PRELOAD is too long");
    if (spank_setenv(sp, PT_ENV_SOCKET, socket_name, 1) != ESPANK_SUCCESS ||
        spank_setenv(sp, "LD_PRELOAD", new, 1) != ESPANK_SUCCESS)
        return pt_err_set(err, "cannot set the task's environment");
    allow_asan(sp);
    return 0;
}

int pt_remote_task_init(spank_t sp)
{
    struct pt_err err;

    /* A step within a traced step is not to report to the outer one's watchdog. */
    spank_unsetenv(sp, PT_ENV_SOCKET);
    if (watchd && inject(sp, pt_options_preload(&options), &err) < 0)
        pt_log(PT_LOG_ERROR, "task not traced: %s", err.text);
    return 0;
}

/* ---- after the tasks ------------------------------------------------------------------ */

/*
 * One line to the step's stderr, which is slurmstepd's own descriptor 2.  A line fits
 * into the pipe if there is room at all, so this does not wait for a reader.
 */
static void tell_user(const char *text)
{
    struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
    char line[1100];
    int n = snprintf(line, sizeof(line), "paratrace: %s\n", text);

    if (poll(&pfd, 1, 0) != 1 || !(pfd.revents & POLLOUT) || write(STDERR_FILENO, line, n) != n)
        pt_log(PT_LOG_INFO, "%s", text);
}

static void finish(void)
{
    char summary[1024];
    struct pt_err err;

    if (pt_watchd_finish(watchd, FINISH_MS, summary, sizeof(summary), &err) < 0)
        pt_log(PT_LOG_ERROR, "the trace may be incomplete: %s", err.text);
    if (summary[0] && nodeid == 0 && !options.conf->quiet)
        tell_user(summary);
    pt_watchd_destroy(watchd);
    watchd = NULL;
}

/*
 * The watchdog ends here and not in pt_remote_exit(): Slurm waits for whatever is
 * left of the step before it calls that.
 */
int pt_remote_task_exit(spank_t sp)
{
    uint32_t task;
    int status;

    if (!watchd)
        return 0;
    if (spank_get_item(sp, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS &&
        spank_get_item(sp, S_TASK_EXIT_STATUS, &status) == ESPANK_SUCCESS &&
        pt_watchd_send(watchd, "exit %u %d\n", task, status) < 0)
        pt_log(PT_LOG_DEBUG, "the watchdog was not told of the end of task %u", task);
    if (--tasks_left == 0)
        finish();
    return 0;
}

/* Tasks that never started have no task_exit. */
int pt_remote_exit(void)
{
    if (watchd)
        finish();
    pt_options_clear(&options);
    return 0;
}
