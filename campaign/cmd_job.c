/*
 * What the campaign's jobs run: ptcampaign job run|plan|merge|replay DIR [BASE]
 *
 * Each leaves a record of how it ended in DIR/log, for Slurm forgets its jobs.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "campaign/command.h"
#include "campaign/jobs.h"
#include "campaign/plan.h"
#include "campaign/slurm.h"
#include "campaign/spawn.h"
#include "campaign/state.h"

#define SPEC_VARIABLE   "SLURM_SPANK__SLURM_SPANK_OPTION_paratrace_ptrace"
#define MAXIMA_FACTOR   10
#define MAXIMA_LEAST_MS 1000
#define LAG_S           30            /* a directory of another host may lag behind */
#define EXITED(code)    ((code) << 8) /* as a wait status */

static long number_from_env(const char *name, long missing)
{
    const char *text = getenv(name);
    long value;
    return text && parse_number(text, 0, INT_MAX, &value) == 0 ? value : missing;
}

/* ---- run --------------------------------------------------------------------------- */

static volatile sig_atomic_t child;

static void pass_on(int sig)
{
    int saved = errno;
    if (child > 0)
        kill(child, sig);
    errno = saved;
}

static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};

/* Runs the user's script; signals to us are meant for it.  Its wait status. */
static int run_script(char *const argv[])
{
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    struct sigaction before[sizeof(passed) / sizeof(passed[0])];
    size_t n = sizeof(passed) / sizeof(passed[0]);
    sigset_t set, old;
    int status;

    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, passed[i]);
    sigprocmask(SIG_BLOCK, &set, &old);
    for (size_t i = 0; i < n; i++)
        sigaction(passed[i], &action, &before[i]);
    pid_t pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < n; i++)
            sigaction(passed[i], &before[i], NULL);
        sigprocmask(SIG_SETMASK, &old, NULL);
        execv(argv[0], argv);
        complain("cannot run '%s': %s", argv[0], strerror(errno));
        _exit(127);
    }
    child = pid;
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (pid < 0) {
        complain("cannot run '%s': %s", argv[0], strerror(errno));
        return EXITED(1);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* The script shall not see that it is an element of an array: all runs are to be alike. */
static void set_environment(const char *spec)
{
    static const char *const array[] = {"SLURM_ARRAY_JOB_ID",     "SLURM_ARRAY_TASK_ID",
                                        "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MAX",
                                        "SLURM_ARRAY_TASK_MIN",   "SLURM_ARRAY_TASK_STEP"};

    for (size_t i = 0; i < sizeof(array) / sizeof(array[0]); i++)
        unsetenv(array[i]);
    setenv(SPEC_VARIABLE, spec, 1);
}

/* Beyond the limit of an array Slurm cannot name the log after the run. */
static void open_log(const struct campaign *c, size_t k)
{
    char *path = campaign_path(c, "log/%03zu.out", k);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);

    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        close(fd);
    }
    free(path);
}

/*
 * For waiting that no call shows: who makes no progress for much longer than ever in the
 * baseline run is taken for stuck.  First, so that items of the user's own win.
 */
static char *with_maxima(const struct campaign *c, char *spec)
{
    uint64_t gap, call;

    state_longest(c, &gap, &call);
    if (!gap || !call)
        return spec;
    gap = gap * MAXIMA_FACTOR / 1000000 + MAXIMA_LEAST_MS;
    call = call * MAXIMA_FACTOR / 1000000 + MAXIMA_LEAST_MS;
    char *both = xasprintf("compute-max=%lums,call-max=%lums,%s", gap, call, spec);
    free(spec);
    return both;
}

static int job_run(struct campaign *c, struct record *r, const char *base, char **name)
{
    struct pt_err err;
    struct list argv = {0};
    long offset = 0;
    size_t k = 0;

    if (base) {
        if (parse_number(base, 0, RUNS_MAX, &offset) || r->job.task < 0)
            return complain("wrong number of a run '%s'", base), EXITED(1);
        k = (size_t)(offset + r->job.task);
    }
    if (k >= c->nruns)
        return complain("campaign '%s' has no run %zu", c->dir, k), EXITED(1);
    *name = xasprintf("%03zu", k);
    if (offset)
        open_log(c, k);
    char *spec = plan_spec(c, k, &err);
    if (!spec)
        return complain("%s", err.text), EXITED(1);
    if (c->runs[k].node)
        spec = with_maxima(c, spec);
    set_environment(spec);
    free(spec);
    list_take(&argv, campaign_path(c, "job.sh"));
    for (size_t i = 0; i < c->args.n; i++)
        list_add(&argv, c->args.v[i]);
    int status = run_script(argv.v);
    list_clear(&argv);
    return status;
}

/* ---- plan -------------------------------------------------------------------------- */

static int wait_for_baseline(const struct campaign *c, struct pt_err *err)
{
    struct info info;

    for (int i = 0; i < LAG_S; i++) {
        info = (struct info){0};
        state_of_run(c, 0, &info);
        if (info.state == STATE_DONE)
            return 0;
        sleep(1);
    }
    return pt_err_set(err, "cannot plan campaign '%s': the baseline failed: %s", c->dir, info.why);
}

static int submit_planned(struct campaign *c, struct pt_err *err)
{
    struct list env = {0};
    size_t n = c->nruns - 1, nafter = 0;
    size_t *which = xcalloc(n, sizeof(*which));
    long *after = xcalloc(n, sizeof(*after));

    for (size_t i = 0; i < n; i++)
        which[i] = i + 1;
    slurm_outer_env(c, &env);
    int rc = jobs_submit_runs(c, which, n, env.v, err);
    for (size_t i = 0; i < n && !rc; i++)
        if (i == 0 || c->runs[i + 1].job.id != c->runs[i].job.id)
            after[nafter++] = c->runs[i + 1].job.id;
    if (!rc)
        rc = jobs_submit_merge(c, after, nafter, env.v, err);
    list_clear(&env);
    free(which);
    free(after);
    return rc;
}

static int make_plan(struct campaign *c, struct pt_err *err)
{
    struct plan plan;

    if (c->cancelled)
        return pt_err_set(err, "campaign '%s' was cancelled", c->dir);
    if (wait_for_baseline(c, err))
        return -1;
    char *rundir = state_rundir(c, 0);
    int rc = plan_read(&plan, rundir, err);
    free(rundir);
    if (rc)
        return -1;
    rc = plan_make_runs(&plan, c, err);
    if (!rc)
        rc = campaign_save(c, err); /* the runs read it */
    if (!rc) {
        struct pt_err why;
        printf("%zu nodes, %ld ranks; %zu runs\n", plan.n, plan.ranks, c->nruns - 1);
        rc = submit_planned(c, err);
        if (campaign_save(c, &why) && !rc)
            rc = pt_err_set(err, "%s", why.text);
    }
    plan_clear(&plan);
    return rc;
}

static int job_plan(const char *dir)
{
    struct pt_err err;
    int lock = campaign_lock(dir, &err);
    struct campaign *c = lock < 0 ? NULL : campaign_load(dir, &err);
    int rc = c ? make_plan(c, &err) : -1;

    if (rc)
        complain("%s", err.text);
    campaign_destroy(c);
    if (lock >= 0)
        close(lock);
    return EXITED(rc ? 1 : 0);
}

/* ---- merge and replay ---------------------------------------------------------------- */

/* Runs argv with its output in log/NAME.json, which appears if it is done. */
static int run_to_json(const struct campaign *c, const char *name, char *const argv[])
{
    struct pt_err err;
    char *path = campaign_path(c, "log/%s.json", name), *tmp = xasprintf("%s.tmp", path);
    int status = spawn_run(argv, &(struct spawn){.out = tmp}, NULL, &err);

    if (status < 0)
        complain("%s", err.text);
    else if (status == 0 && rename(tmp, path)) {
        complain("cannot rename '%s': %s", tmp, strerror(errno));
        status = -1;
    }
    if (status)
        unlink(tmp);
    free(tmp);
    free(path);
    return status < 0 ? EXITED(1) : status;
}

static int job_merge(const struct campaign *c)
{
    struct list argv = {0};
    size_t left_out = 0;

    list_add(&argv, c->ptmerge);
    list_add(&argv, "--json");
    list_add(&argv, "-o");
    list_take(&argv, campaign_path(c, "store.h5"));
    for (size_t k = 0; k < c->nruns; k++) {
        struct info info = {0};
        state_of_run(c, k, &info);
        if (info.state == STATE_DONE) {
            list_take(&argv, state_rundir(c, k));
        } else {
            complain("run %03zu is left out: %s", k, info.why);
            left_out++;
            if (k == 0)
                break;
        }
    }
    int status = argv.n > 4 ? run_to_json(c, "merge", argv.v) : EXITED(1);
    if (status == 0)
        printf("%zu runs merged, %zu left out\n", argv.n - 4, left_out);
    list_clear(&argv);
    return status;
}

static int job_replay(const struct campaign *c)
{
    struct list argv = {0};

    if (mkdir(c->replay, 0777) && errno != EEXIST)
        return complain("cannot make directory '%s': %s", c->replay, strerror(errno)), EXITED(1);
    setenv(SPEC_VARIABLE, "off", 1);
    list_add(&argv, "srun");
    list_take(&argv, xasprintf("--ntasks=%ld", c->ranks > 0 ? c->ranks : 1));
    list_add(&argv, c->ptreplay);
    list_add(&argv, "--root");
    list_add(&argv, c->replay);
    list_add(&argv, "--json");
    list_take(&argv, campaign_path(c, "store.h5"));
    int status = run_to_json(c, "replay", argv.v);
    list_clear(&argv);
    return status;
}

int cmd_job(int argc, char **argv)
{
    struct pt_err err;
    struct record r = {.job = {number_from_env("SLURM_ARRAY_JOB_ID", 0), -1}};
    char *name = NULL;

    if (argc < 3 || argc > 4)
        return usage_error("", "'job' is for the campaign's own jobs");
    if (r.job.id > 0)
        r.job.task = number_from_env("SLURM_ARRAY_TASK_ID", -1);
    else
        r.job.id = number_from_env("SLURM_JOB_ID", 0);
    struct campaign *c = campaign_load(argv[2], &err);
    if (!c)
        return complain("%s", err.text);
    if (strcmp(argv[1], "run"))
        name = xstrdup(argv[1]);
    if (!strcmp(argv[1], "run"))
        r.status = job_run(c, &r, argc == 4 ? argv[3] : NULL, &name);
    else if (!strcmp(argv[1], "plan"))
        r.status = job_plan(c->dir);
    else if (!strcmp(argv[1], "merge"))
        r.status = job_merge(c);
    else if (!strcmp(argv[1], "replay"))
        r.status = job_replay(c);
    else
        r.status = EXITED(complain("unknown job '%s'", argv[1]));
    fflush(stdout);
    if (name && state_write_record(c, name, &r, &err))
        complain("%s", err.text);
    free(name);
    campaign_destroy(c);
    return WIFEXITED(r.status) ? WEXITSTATUS(r.status) : 128 + WTERMSIG(r.status);
}
