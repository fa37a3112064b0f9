#include "config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "campaign/slurm.h"
#include "campaign/spawn.h"

#define DEFAULT_MAX_ARRAY 1001 /* Slurm's MaxArraySize */

int slurm_check(struct pt_err *err)
{
    static const char *const programs[] = {"sbatch", "squeue", "scancel", "scontrol"};

    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        char *path = spawn_find(programs[i], NULL);
        if (!path)
            return pt_err_set(err, "cannot find program '%s': no Slurm in PATH", programs[i]);
        free(path);
    }
    return 0;
}

/* Runs a program of Slurm's; its output, or NULL and err if it failed. */
static char *run(char *const argv[], const struct spawn *how, struct pt_err *err)
{
    char *text = NULL, why[64];
    int status = spawn_run(argv, how, &text, err);

    if (status == 0)
        return text;
    if (status > 0)
        pt_err_set(err, "%s failed: %s", argv[0], spawn_describe(status, why));
    free(text);
    return NULL;
}

/* ---- submitting ------------------------------------------------------------ */

long slurm_submit(const struct list *options, const char *cwd, char **env, const char *script,
                  const char *arg, struct pt_err *err)
{
    struct list argv = {0};
    struct pt_err reason;
    long id = -1;

    list_add(&argv, "sbatch");
    list_add(&argv, "--parsable");
    for (size_t i = 0; i < options->n; i++)
        list_add(&argv, options->v[i]);
    list_add(&argv, script);
    if (arg)
        list_add(&argv, arg);
    char *text = run(argv.v, &(struct spawn){.cwd = cwd, .env = env}, &reason);
    if (text) {
        text[strcspn(text, ";\n")] = '\0'; /* "ID" or "ID;CLUSTER" */
        if (parse_number(text, 1, INT_MAX, &id)) {
            id = -1;
            pt_err_set(&reason, "sbatch answered '%.60s'", text);
        }
    }
    if (id < 0)
        pt_err_set(err, "cannot submit '%s': %s", script, reason.text);
    free(text);
    list_clear(&argv);
    return id;
}

long slurm_max_index(void)
{
    static const char key[] = "\nMaxArraySize";
    char *argv[] = {"scontrol", "show", "config", NULL};
    char *text = run(argv, NULL, NULL);
    const char *at = text ? strstr(text, key) : NULL;
    long size = DEFAULT_MAX_ARRAY;

    if (at && (at = strchr(at + 1, '=')))
        size = strtol(at + 1, NULL, 10);
    free(text);
    return size > 1 ? size - 1 : 1;
}

/* ---- the queue -------------------------------------------------------------- */

static int compare_jobs(const struct job *a, const struct job *b)
{
    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->task == b->task ? 0 : a->task < b->task ? -1 : 1;
}

static int compare_entries(const void *a, const void *b)
{
    return compare_jobs(&((const struct queue_job *)a)->job, &((const struct queue_job *)b)->job);
}

/* "12", "12_3" or, for what -r does not take apart, "12_[3-5]"; -1 if it is none. */
static int parse_id(char *text, struct job *job)
{
    char *task = strchr(text, '_');

    job->task = -1;
    if (task) {
        *task++ = '\0';
        if (parse_number(task, 0, INT_MAX, &job->task))
            job->task = -1;
    }
    return parse_number(text, 1, INT_MAX, &job->id);
}

static enum queued parse_state(const char *state)
{
    static const char *const pending[] = {"PENDING",     "REQUEUED",     "REQUEUE_HOLD",
                                          "REQUEUE_FED", "SPECIAL_EXIT", NULL};
    static const char *const over[] = {
        "BOOT_FAIL",     "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
        "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT",   "REVOKED",  NULL};

    for (int i = 0; pending[i]; i++)
        if (strcmp(state, pending[i]) == 0)
            return QUEUED_PENDING;
    for (int i = 0; over[i]; i++)
        if (strcmp(state, over[i]) == 0)
            return QUEUED_NO;
    return QUEUED_RUNNING;
}

void slurm_queue_parse(struct queue *q, const char *text)
{
    char *copy = xstrdup(text), *save = NULL;

    *q = (struct queue){0};
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct queue_job entry;
        char *state = strchr(line, '|'), *reason = state ? strchr(state + 1, '|') : NULL;
        if (!reason)
            continue;
        *state++ = '\0';
        *reason++ = '\0';
        entry.state = parse_state(state);
        if (entry.state == QUEUED_NO || parse_id(line, &entry.job))
            continue;
        entry.reason = xstrdup(strcmp(reason, "None") ? reason : "");
        q->jobs = xrealloc(q->jobs, q->n + 1, sizeof(*q->jobs));
        q->jobs[q->n++] = entry;
    }
    if (q->n)
        qsort(q->jobs, q->n, sizeof(*q->jobs), compare_entries);
    free(copy);
}

int slurm_queue(struct queue *q, struct pt_err *err)
{
    char uid[32];
    char *argv[] = {"squeue", "-h", "-r", "-u", uid, "-o", "%i|%T|%r", NULL};

    snprintf(uid, sizeof(uid), "%u", (unsigned)getuid());
    *q = (struct queue){0};
    char *text = run(argv, NULL, err);
    if (!text)
        return -1;
    slurm_queue_parse(q, text);
    free(text);
    return 0;
}

void slurm_queue_clear(struct queue *q)
{
    for (size_t i = 0; i < q->n; i++)
        free(q->jobs[i].reason);
    free(q->jobs);
    *q = (struct queue){0};
}

const struct queue_job *slurm_queue_find(const struct queue *q, struct job job)
{
    size_t low = 0, high = q->n;

    if (job.id <= 0)
        return NULL;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_jobs(&q->jobs[mid].job, &job) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == q->n || q->jobs[low].job.id != job.id)
        return NULL;
    return job.task < 0 || q->jobs[low].job.task == job.task ? &q->jobs[low] : NULL;
}

int slurm_cancel(const struct list *ids, struct pt_err *err)
{
    struct list argv = {0};

    if (!ids->n)
        return 0;
    list_add(&argv, "scancel");
    for (size_t i = 0; i < ids->n; i++)
        list_add(&argv, ids->v[i]);
    char *text = run(argv.v, NULL, err);
    int rc = text ? 0 : -1;
    free(text);
    list_clear(&argv);
    return rc;
}

/* ---- the environment --------------------------------------------------------- */

/* But for those that are the same in a job, or not to be written down. */
static bool is_slurms(const char *variable)
{
    return strncmp(variable, "SLURM", 5) == 0 && strncmp(variable, "SLURM_CONF=", 11) &&
           strncmp(variable, "SLURM_JWT=", 10);
}

void slurm_own_env(struct list *env)
{
    for (char **e = environ; *e; e++)
        if (is_slurms(*e))
            list_add(env, *e);
}

void slurm_outer_env(const struct campaign *c, struct list *env)
{
    for (char **e = environ; *e; e++)
        if (!is_slurms(*e))
            list_add(env, *e);
    for (size_t i = 0; i < c->env.n; i++)
        list_add(env, c->env.v[i]);
}
