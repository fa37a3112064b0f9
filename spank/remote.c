/*
 * slurmstepd: one watchdog for each traced step, and the tracer in its tasks.
 *
 * Everything here logs and returns 0, for a failure could drain the host; the step
 * then runs untraced.  Called as root (user_init: with the user's effective id;
 * task_init: as the user, in the task), so nothing that the user named is opened or
 * executed in this process.
 */
#include "config.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <slurm/slurm.h>

#include "common/anon.h"
#include "common/env.h"
#include "spank/contexts.h"
#include "spank/log.h"
#include "spank/options.h"
#include "spank/step.h"
#include "spank/watchd.h"

#define READY_MS    5000
#define FINISH_MS   10000
#define SOCKET_NAME "paratrace.%u.%u.%.48s.%016" PRIx64

static struct pt_options options;
static int trace;                   /* this step is to be traced */
static int asked;                   /* the user has said something about it */
static struct pt_err why_not;       /* it should be traced and is not; "": nothing to say */
static struct pt_anon_key anon_key; /* if the site wants anonymous names */
static struct pt_spec spec;
static char spec_text[PT_SPEC_MAX];
static struct pt_watchd *watchd;
static char socket_name[108];
static uint32_t tasks_left;

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

/* Whose step it is, for the site's policy. */
static void find_who(spank_t sp, struct pt_options *o)
{
    struct pt_who *who = &o->who;
    gid_t *groups = NULL;
    uid_t uid;

    if (spank_get_item(sp, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_GID, &who->gid) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_SUPPLEMENTARY_GIDS, &groups, &who->ngroups) != ESPANK_SUCCESS)
        return;
    who->groups = groups;
    pt_who_set_user(who, uid);
    spank_getenv(sp, "SLURM_JOB_PARTITION", who->partition, sizeof(who->partition));
    spank_getenv(sp, "SLURM_JOB_ACCOUNT", who->account, sizeof(who->account));
    o->who_known = 1;
}

/* The key that this user's names are hidden with: of the site's file, as root. */
static int find_anon_key(struct pt_err *err)
{
    struct pt_err reason;

    if (options.conf->anonymise == PT_ANONYMISE_NO)
        return 0;
    if (pt_anon_read_key(options.conf->anonymise_key, &anon_key, &reason) < 0)
        return pt_err_set(err, "anonymise_key: %s", reason.text);
    if (options.conf->anonymise == PT_ANONYMISE_USER)
        pt_anon_user_key(&anon_key, options.who.uid, &anon_key);
    return 0;
}

int pt_remote_option(const char *text)
{
    struct pt_err err;

    if (pt_options_request(&options, text, &err) < 0)
        pt_log(PT_LOG_ERROR, "--ptrace: %s", err.text);
    return 0;
}

/* The site's file is read here, where no container hides it yet. */
int pt_remote_init_post_opt(spank_t sp)
{
    char env[PT_SPEC_MAX];
    struct pt_err err;
    int has_env;

    if (pt_step_kind(sp) == PT_STEP_NONE)
        return 0;
    has_env = spank_getenv(sp, PT_OPTIONS_ENV, env, sizeof(env)) == ESPANK_SUCCESS;
    asked = options.requested || has_env;
    if (pt_options_load(&options, &err) < 0) {
        why_not = err;
        return 0;
    }
    pt_log_set_level(options.conf->log_level);
    if (!asked && !pt_policy_has_unasked(options.conf))
        return 0;
    find_who(sp, &options);
    trace = pt_options_decide(&options, has_env ? env : NULL, &spec, spec_text, &err);
    if (trace < 0)
        pt_err_set(&why_not, "--ptrace: %s", err.text);
    if (trace < 0 || (trace && find_anon_key(&why_not) < 0))
        trace = 0;
    return 0;
}

/* The run directory: its name, and for a script that which it may have if nobody else has. */
struct out {
    char path[2 * PATH_MAX];
    char rather[2 * PATH_MAX]; /* "": that is the name */
};

/*
 * out= as an absolute path: relative ones are below the step's working directory.  Where
 * it does not name the step, it is that of the steps that srun starts.
 */
static int find_out(const struct pt_step *s, const char *cwd, struct out *out, struct pt_err *err)
{
    char expanded[PATH_MAX];
    size_t len;
    int n;

    if (pt_spec_expand(spec.out, &s->ids, expanded, sizeof(expanded), err) < 0)
        return -1;
    len = strlen(expanded);
    while (len > 1 && expanded[len - 1] == '/')
        expanded[--len] = '\0';
    n = expanded[0] == '/' ? snprintf(out->path, sizeof(out->path), "%s", expanded)
                           : snprintf(out->path, sizeof(out->path), "%s/%s", cwd, expanded);
    out->rather[0] = '\0';
    if (s->kind == PT_STEP_SCRIPT && !pt_spec_names_step(spec.out) && n < (int)sizeof(out->path)) {
        strcpy(out->rather, out->path);
        n += snprintf(out->path + n, sizeof(out->path) - n, ".%s", s->id);
    }
    if ((size_t)n >= PATH_MAX)
        return pt_err_set(err, "out=%.60s...: the path is too long", expanded);
    return 0;
}

/* An argument vector and the text of its numbers. */
struct args {
    char *v[64];
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

static void make_args(struct args *a, const struct pt_step *s, const struct out *out)
{
    memset(a, 0, sizeof(*a));
    add_arg(a, "ptwatchd", NULL);
    add_number(a, "--control", PT_WATCHD_CONTROL_FD);
    add_arg(a, "--socket", socket_name);
    add_arg(a, "--out", out->path);
    add_arg(a, "--host", s->host);
    add_arg(a, "--claim", s->key);
    if (s->kind == PT_STEP_SCRIPT)
        add_arg(a, "--script", NULL);
    if (out->rather[0])
        add_arg(a, "--rather", out->rather);
    add_number(a, "--hostid", s->nodeid);
    add_number(a, "--nhosts", s->nnodes);
    add_number(a, "--ntasks", s->tasks);
    add_number(a, "--job", s->ids.job);
    add_arg(a, "--step", s->id);
    if (s->in_array) {
        add_number(a, "--array-job", s->ids.array_job);
        add_number(a, "--array-task", s->ids.array_task);
    }
    add_number(a, "--restart", s->restart);
    if (options.conf->ports)
        add_arg(a, "--ports", options.conf->ports);
    if (options.conf->munge)
        add_arg(a, "--munge", options.conf->munge);
    if (options.conf->munge_socket)
        add_arg(a, "--munge-socket", options.conf->munge_socket);
    add_arg(a, "--user", s->user);
    add_arg(a, "--spec", spec_text);
}

static void add_text(struct args *a, const char *name, const char *value)
{
    char *text = a->text + a->used;

    a->used += snprintf(text, sizeof(a->text) - a->used, "%s", value) + 1;
    add_arg(a, name, text);
}

/* What the site wants, see watchdog/site.c. */
static void add_site(struct args *a, const struct pt_conf *conf, const char *root)
{
    char number[PT_SPEC_NUMBER];

    if (conf->output_root && root)
        add_arg(a, "--root", root);
    if (conf->anonymise != PT_ANONYMISE_NO)
        add_arg(a, "--anonymise", NULL);
    if (conf->max_size)
        add_text(a, "--max-size", pt_spec_format_size(number, conf->max_size));
    if (conf->max_time)
        add_text(a, "--max-time", pt_spec_format_time(number, conf->max_time));
}

static struct pt_watchd *start_watchd(spank_t sp, struct pt_err *err)
{
    char cwd[PATH_MAX];
    struct out out;
    struct pt_step step;
    struct args args;
    uint64_t nonce;
    char root[PATH_MAX], key[4 + PT_ANON_HEX + 1] = "key ";
    struct pt_watchd *started;

    if (!getcwd(cwd, sizeof(cwd))) {
        pt_err_errno(err, "no working directory");
        return NULL;
    }
    if (pt_policy_root(options.conf, options.who.user, cwd, root, err) < 0)
        return NULL;
    if (pt_step_get(sp, &step, err) < 0 || find_out(&step, root, &out, err) < 0)
        return NULL;
    if (pt_policy_place(options.conf, root, out.path, err) < 0 ||
        (out.rather[0] && pt_policy_place(options.conf, root, out.rather, err) < 0))
        return NULL;
    if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce)) {
        pt_err_errno(err, "no random number");
        return NULL;
    }
    snprintf(socket_name, sizeof(socket_name), SOCKET_NAME, step.ids.job, step.ids.step, step.host,
             nonce);
    tasks_left = step.tasks;
    make_args(&args, &step, &out);
    add_site(&args, options.conf, pt_conf_is_below(root, out.path) ? root : NULL);
    pt_anon_format_key(&anon_key, key + 4);
    strcat(key, "\n");
    started = pt_watchd_start(
        &(struct pt_watchd_how){
            .program = pt_options_watchdog(&options),
            .argv = args.v,
            .uid = step.uid,
            .gid = step.gid,
            .groups = step.groups,
            .ngroups = step.ngroups,
            .cwd = cwd,
            .first_line = options.conf->anonymise == PT_ANONYMISE_NO ? NULL : key,
            .umask = pt_step_umask(sp),
        },
        READY_MS, err);
    explicit_bzero(key, sizeof(key)); /* tasks are forked from this process */
    explicit_bzero(&anon_key, sizeof(anon_key));
    return started;
}

/*
 * In a heterogeneous step srun knows the first host of one component only, and its secret
 * would be that of all: their watchdogs stay alone.
 */
static int is_component(spank_t sp)
{
    char hosts[16];
    uint32_t own;

    return spank_getenv(sp, "SLURM_STEP_NUM_NODES", hosts, sizeof(hosts)) == ESPANK_SUCCESS &&
           spank_get_item(sp, S_JOB_NNODES, &own) == ESPANK_SUCCESS &&
           strtoul(hosts, NULL, 10) != own;
}

/*
 * Hands the watchdog what srun has sent for it.  The address is that of the first host in
 * srun's eyes; if ours is another one (Slurm's order may differ), its name has to do.
 */
static void tell_peers(spank_t sp, const char *value)
{
    char secret[2 * PT_PEERS_SECRET + 1], host[256], address[256], first[256];

    if (sscanf(value, "%32[0-9a-f] %255s %255s", secret, host, address) != 3 ||
        strlen(secret) != sizeof(secret) - 1)
        return; /* the watchdog says so if it matters */
    if (pt_step_host(sp, 0, first, sizeof(first)) == 0 && strcmp(first, host) != 0)
        strcpy(address, first);
    if (pt_watchd_send(watchd, "peers %s %s\n", secret, address) < 0)
        pt_log(PT_LOG_INFO, "the watchdog was not told of the other hosts");
    explicit_bzero(secret, sizeof(secret));
}

/*
 * Later than it is known, since only now the step's stderr is there: of its first host, if
 * the user has asked for a trace.
 */
static void tell_why_not(spank_t sp)
{
    uint32_t host = 0;

    if (!why_not.text[0])
        return;
    spank_get_item(sp, S_JOB_NODEID, &host);
    pt_log(asked && host == 0 ? PT_LOG_ERROR : PT_LOG_INFO, "not traced: %s", why_not.text);
}

int pt_remote_user_init(spank_t sp)
{
    char peers[600] = "";
    struct pt_err err;

    /* Taken out here, before anything of the user's runs: tasks, prologs, epilogs. */
    spank_getenv(sp, PT_ENV_PEERS, peers, sizeof(peers));
    spank_unsetenv(sp, PT_ENV_PEERS);
    tell_why_not(sp);
    if (!trace)
        return 0;
    watchd = start_watchd(sp, &err);
    if (!watchd)
        pt_log(PT_LOG_ERROR, "not traced: %s", err.text);
    else
        pt_log(PT_LOG_DEBUG, "watchdog listens at '%s'", socket_name);
    if (watchd && !is_component(sp))
        tell_peers(sp, peers);
    explicit_bzero(peers, sizeof(peers));
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
    char old[PT_STEP_LIST_MAX], new[PT_STEP_LIST_MAX], pid[16];
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
    snprintf(pid, sizeof(pid), "%d", pt_watchd_pid(watchd));
    if (spank_setenv(sp, PT_ENV_SOCKET, socket_name, 1) != ESPANK_SUCCESS ||
        spank_setenv(sp, PT_ENV_WATCHDOG, pid, 1) != ESPANK_SUCCESS ||
        spank_setenv(sp, "LD_PRELOAD", new, 1) != ESPANK_SUCCESS)
        return pt_err_set(err, "cannot set the task's environment");
    allow_asan(sp);
    return 0;
}

/*
 * What a task has of a traced one around it, a batch script's say, is not for it: it would
 * report to that one's watchdog.
 */
static void forget_outer(spank_t sp, const char *library)
{
    char old[PT_STEP_LIST_MAX], new[PT_STEP_LIST_MAX];

    spank_unsetenv(sp, PT_ENV_WATCHDOG);
    if (spank_getenv(sp, PT_ENV_SOCKET, old, sizeof(old)) == ESPANK_ENV_NOEXIST)
        return;
    spank_unsetenv(sp, PT_ENV_SOCKET);
    if (spank_getenv(sp, "LD_PRELOAD", old, sizeof(old)) != ESPANK_SUCCESS)
        return;
    pt_options_ld_preload_without(old, library, new);
    if (*new)
        spank_setenv(sp, "LD_PRELOAD", new, 1);
    else
        spank_unsetenv(sp, "LD_PRELOAD");
}

/* The tasks of a component are counted from 0, but its ranks from where the others end. */
static void tell_rank(spank_t sp)
{
    char rank[16];
    uint32_t task;

    if (spank_get_item(sp, S_TASK_GLOBAL_ID, &task) == ESPANK_SUCCESS &&
        spank_getenv(sp, "SLURM_PROCID", rank, sizeof(rank)) == ESPANK_SUCCESS &&
        strtoul(rank, NULL, 10) != task)
        pt_watchd_send(watchd, "rank %u %s\n", task, rank);
}

int pt_remote_task_init(spank_t sp)
{
    const char *library = pt_options_preload(&options);
    struct pt_err err;

    forget_outer(sp, library);
    if (!watchd)
        return 0;
    if (inject(sp, library, &err) < 0)
        pt_log(PT_LOG_ERROR, "task not traced: %s", err.text);
    else
        tell_rank(sp);
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
    char line[PIPE_BUF];
    int n = snprintf(line, sizeof(line), "paratrace: %.4000s\n", text);

    if (poll(&pfd, 1, 0) != 1 || !(pfd.revents & POLLOUT) || write(STDERR_FILENO, line, n) != n)
        pt_log(PT_LOG_INFO, "%s", text);
}

static void finish(void)
{
    char summary[PT_WATCHD_LINE];
    struct pt_err err;

    if (pt_watchd_finish(watchd, FINISH_MS, summary, sizeof(summary), &err) < 0)
        pt_log(PT_LOG_ERROR, "the trace may be incomplete: %s", err.text);
    if (summary[0] && !options.conf->quiet)
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
