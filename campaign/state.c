#include "config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "campaign/json_read.h"
#include "campaign/spawn.h"
#include "campaign/state.h"
#include "common/json.h"

#define RUN_JSON_MAX ((size_t)64 << 20)
#define RECORD_MAX   4096
#define RESTARTS_MAX 16
#define READ_TRIES   5

const char *const state_names[] = {"pending", "running", "done", "failed", "missing"};
const char *const overall_names[] = {"running", "done", "failed", "cancelled"};

const char *state_job_text(struct job job, char buf[JOB_TEXT])
{
    if (job.id <= 0)
        snprintf(buf, JOB_TEXT, "-");
    else if (job.task < 0)
        snprintf(buf, JOB_TEXT, "%ld", job.id);
    else
        snprintf(buf, JOB_TEXT, "%ld_%ld", job.id, job.task);
    return buf;
}

char *state_rundir(const struct campaign *c, size_t k)
{
    for (int i = RESTARTS_MAX; i > 0; i--) {
        char *dir = campaign_path(c, "runs/%03zu.r%d", k, i);
        if (access(dir, F_OK) == 0)
            return dir;
        free(dir);
    }
    return campaign_path(c, "runs/%03zu", k);
}

/* ---- records ------------------------------------------------------------------ */

int state_write_record(const struct campaign *c, const char *name, const struct record *r,
                       struct pt_err *err)
{
    char *path = campaign_path(c, "log/%s.exit", name);
    char *text = xasprintf("{\"job\": %ld, \"task\": %ld, \"status\": %d}\n", r->job.id,
                           r->job.task, r->status);
    int rc = file_write(path, text, strlen(text), 0644, err);
    free(text);
    free(path);
    return rc;
}

static struct json *read_json(const char *path, size_t max, struct pt_err *err)
{
    size_t len;
    struct pt_err reason;
    char *text = file_read(path, max, &len, err);
    struct json *j = text ? json_parse(text, len, &reason) : NULL;

    if (text && !j)
        pt_err_set(err, "cannot read '%s': %s", path, reason.text);
    free(text);
    return j;
}

/* The record of that job; -1 if there is none, or only that of an earlier one. */
static int read_record(const struct campaign *c, const char *name, struct job job, struct record *r)
{
    char *path = campaign_path(c, "log/%s.exit", name);
    struct json *j = read_json(path, RECORD_MAX, NULL);

    r->job.id = (long)json_get_integer(j, "job", 0);
    r->job.task = (long)json_get_integer(j, "task", -1);
    r->status = (int)json_get_integer(j, "status", -1);
    json_destroy(j);
    free(path);
    return r->job.id == job.id && r->job.task == job.task && r->status >= 0 ? 0 : -1;
}

/* ---- a run --------------------------------------------------------------------- */

static void fail(struct info *info, const char *why)
{
    if (info->state == STATE_FAILED)
        return;
    info->state = STATE_FAILED;
    snprintf(info->why, sizeof(info->why), "%.199s", why); /* cut if longer */
}

/* The tasks' ends, as one host saw them. */
static void check_exits(const struct json *exits, struct info *info)
{
    char end[64], why[128];

    for (size_t i = 0; exits && exits->type == JSON_OBJECT && i < exits->n; i++) {
        const struct json *v = &exits->items[i];
        if (v->type == JSON_NUMBER && v->integer != 0) {
            snprintf(why, sizeof(why), "task %.20s: %s", exits->keys[i],
                     spawn_describe((int)v->integer, end));
            fail(info, why);
        }
    }
}

static void check_run_json(const struct json *j, struct info *info)
{
    const struct json *hosts = json_get(j, "hosts");
    int64_t begin = json_get_integer(j, "started_ns", 0), end = json_get_integer(j, "ended_ns", 0);
    int64_t lost = 0;

    if (strcmp(json_get_string(j, "format", ""), "paratrace-run"))
        fail(info, "run.json is not of a run");
    for (size_t i = 0; hosts && hosts->type == JSON_ARRAY && i < hosts->n; i++) {
        const struct json *host = &hosts->items[i];
        check_exits(json_get(host, "exits"), info);
        info->holds += json_get_integer(host, "holds", 0);
        info->timed_out += json_get_integer(host, "holds_timed_out", 0);
        info->events += json_get_integer(host, "events", 0);
        lost += json_get_integer(host, "lost", 0);
    }
    if (!json_get_bool(j, "complete", 0)) {
        char why[100];
        snprintf(why, sizeof(why), "the trace is incomplete (%lld events lost)", (long long)lost);
        fail(info, why);
    }
    if (end > begin)
        info->seconds = (double)(end - begin) / 1e9;
}

static uint64_t larger(uint64_t than, const struct json *host, const char *key)
{
    int64_t value = json_get_integer(host, key, 0);
    return value > 0 && (uint64_t)value > than ? (uint64_t)value : than;
}

void state_longest(const struct campaign *c, uint64_t *gap, uint64_t *call)
{
    struct pt_err err;
    char *rundir = state_rundir(c, 0), *path = xasprintf("%s/run.json", rundir);
    struct json *j = read_json(path, RUN_JSON_MAX, &err);
    const struct json *hosts = json_get(j, "hosts");

    *gap = *call = 0;
    for (size_t i = 0; hosts && hosts->type == JSON_ARRAY && i < hosts->n; i++) {
        *gap = larger(*gap, &hosts->items[i], "longest_gap_ns");
        *call = larger(*call, &hosts->items[i], "longest_call_ns");
    }
    json_destroy(j);
    free(path);
    free(rundir);
}

void state_of_run(const struct campaign *c, size_t k, struct info *info)
{
    struct record record;
    struct pt_err err;
    char name[32], why[64];
    char *rundir = state_rundir(c, k), *path = xasprintf("%s/run.json", rundir);

    snprintf(name, sizeof(name), "%03zu", k);
    info->state = STATE_DONE;
    int recorded = read_record(c, name, c->runs[k].job, &record) == 0;
    if (recorded && record.status)
        fail(info, spawn_describe(record.status, why));
    struct json *j = read_json(path, RUN_JSON_MAX, &err);
    if (j)
        check_run_json(j, info);
    if (!recorded)
        fail(info, "the job was ended before its script (cancelled, time limit or host failure)");
    else if (!j && access(path, F_OK))
        fail(info, "no trace was written: no srun in the script, or not traced (see the log)");
    else if (!j)
        fail(info, err.text);
    json_destroy(j);
    free(path);
    free(rundir);
}

/* ---- all of it ------------------------------------------------------------------ */

static bool find_queued(struct status *s, const struct queue *q, struct job job, struct info *info)
{
    const struct queue_job *entry = slurm_queue_find(q, job);

    if (!entry)
        return false;
    info->state = entry->state == QUEUED_PENDING ? STATE_PENDING : STATE_RUNNING;
    if (entry->state == QUEUED_PENDING)
        snprintf(info->why, sizeof(info->why), "%s", entry->reason);
    s->queued++;
    return true;
}

static void find_run(struct status *s, const struct queue *q, size_t k)
{
    const struct campaign *c = s->campaign;
    struct info *info = &s->runs[k];

    snprintf(info->log, sizeof(info->log), "log/%03zu.out", k);
    if (find_queued(s, q, c->runs[k].job, info))
        return;
    if (c->runs[k].job.id > 0)
        state_of_run(c, k, info);
    else
        info->state = STATE_MISSING;
}

static void find_stage(struct status *s, const struct queue *q, enum stage stage)
{
    const struct campaign *c = s->campaign;
    struct info *info = &s->stages[stage];
    struct record record;

    snprintf(info->log, sizeof(info->log), "log/%s.out", stage_names[stage]);
    if (find_queued(s, q, c->stage[stage], info))
        return;
    info->state = STATE_MISSING;
    if (c->stage[stage].id <= 0)
        return;
    info->state = STATE_DONE;
    char *store = campaign_path(c, "store.h5");
    if (read_record(c, stage_names[stage], c->stage[stage], &record))
        fail(info, "not run: what it depends on failed, or the job was ended");
    else if (record.status)
        fail(info, spawn_describe(record.status, (char[64]){0}));
    else if (stage == STAGE_MERGE && access(store, F_OK))
        fail(info, "store.h5 is gone");
    free(store);
}

static bool all_done(const struct status *s)
{
    const struct campaign *c = s->campaign;
    return c->planned && s->count[STATE_DONE] == c->nruns &&
           s->stages[STAGE_MERGE].state == STATE_DONE &&
           (!c->replay || s->stages[STAGE_REPLAY].state == STATE_DONE);
}

void status_find(struct status *s, struct campaign *c, const struct queue *q)
{
    *s = (struct status){.campaign = c};
    s->runs = xcalloc(c->nruns, sizeof(*s->runs));
    for (size_t k = 0; k < c->nruns; k++)
        find_run(s, q, k);
    for (int i = 0; i < NSTAGES; i++)
        find_stage(s, q, (enum stage)i);
    /* What is not submitted yet will be, as long as there is a job that can do it. */
    for (size_t k = 0; k < c->nruns; k++) {
        if (s->runs[k].state == STATE_MISSING && s->queued)
            s->runs[k].state = STATE_PENDING;
        s->count[s->runs[k].state]++;
    }
    for (int i = 0; i < NSTAGES; i++)
        if (s->stages[i].state == STATE_MISSING && s->queued)
            s->stages[i].state = STATE_PENDING;
    s->overall = s->queued      ? OVERALL_RUNNING
                 : all_done(s)  ? OVERALL_DONE
                 : c->cancelled ? OVERALL_CANCELLED
                                : OVERALL_FAILED;
}

/*
 * The plan may be submitted between our reading campaign.json and asking for the queue;
 * so read again whether it has changed meanwhile.
 */
int status_get(struct status *s, const char *dir, int *asked, struct pt_err *err)
{
    struct queue q;

    *s = (struct status){0};
    *asked = 0;
    struct campaign *before = campaign_load(dir, err);
    for (int i = 0; before && i < READ_TRIES; i++) {
        struct campaign *after = NULL;
        *asked = 1;
        if (slurm_queue(&q, err) == 0)
            after = campaign_load(dir, err);
        int same = after && after->generation == before->generation;
        campaign_destroy(before);
        before = after;
        if (after && (same || i == READ_TRIES - 1)) {
            status_find(s, after, &q);
            slurm_queue_clear(&q);
            return 0;
        }
        slurm_queue_clear(&q);
    }
    return -1;
}

void status_clear(struct status *s)
{
    campaign_destroy(s->campaign);
    free(s->runs);
    *s = (struct status){0};
}

/* ---- as JSON --------------------------------------------------------------------- */

static void print_common(FILE *f, const struct status *s, struct job job, const struct info *info)
{
    char text[JOB_TEXT];

    fputs(", \"job\": ", f);
    pt_json_string(f, job.id > 0 ? state_job_text(job, text) : NULL);
    fprintf(f, ", \"state\": \"%s\", \"reason\": ", state_names[info->state]);
    pt_json_string(f, *info->why ? info->why : NULL);
    fputs(", \"log\": ", f);
    char *path = campaign_path(s->campaign, "%s", info->log);
    pt_json_string(f, access(path, F_OK) ? NULL : path);
    free(path);
}

void status_print_json(FILE *f, const struct status *s)
{
    const struct campaign *c = s->campaign;
    double base = s->runs[0].state == STATE_DONE ? s->runs[0].seconds : 0;

    fputs("{\n  \"campaign\": ", f);
    pt_json_string(f, c->dir);
    fputs(",\n  \"name\": ", f);
    pt_json_string(f, c->name);
    fprintf(f, ",\n  \"state\": \"%s\",\n  \"planned\": %s,\n  \"ranks\": %ld,\n  \"notes\": [",
            overall_names[s->overall], c->planned ? "true" : "false", c->ranks);
    for (size_t i = 0; i < c->notes.n; i++) {
        fputs(i ? ", " : "", f);
        pt_json_string(f, c->notes.v[i]);
    }
    fputs("],\n  \"runs\": [", f);
    for (size_t k = 0; k < c->nruns; k++) {
        const struct info *info = &s->runs[k];
        fprintf(f, "%s\n    {\"run\": \"%03zu\", \"node\": ", k ? "," : "", k);
        pt_json_string(f, c->runs[k].node);
        print_common(f, s, c->runs[k].job, info);
        if (info->state == STATE_DONE)
            fprintf(f,
                    ", \"seconds\": %.6f, \"events\": %lld, \"holds\": %lld, "
                    "\"holds_timed_out\": %lld",
                    info->seconds, (long long)info->events, (long long)info->holds,
                    (long long)info->timed_out);
        if (info->state == STATE_DONE && base > 0)
            fprintf(f, ", \"slowdown\": %.3f", info->seconds / base);
        fputs("}", f);
    }
    fputs("\n  ],\n  \"stages\": [", f);
    for (int i = 0; i < NSTAGES - !c->replay; i++) {
        fprintf(f, "%s\n    {\"stage\": \"%s\"", i ? "," : "", stage_names[i]);
        print_common(f, s, c->stage[i], &s->stages[i]);
        fputs("}", f);
    }
    fputs("\n  ]\n}\n", f);
}
