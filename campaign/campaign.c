#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "campaign/campaign.h"
#include "campaign/json_read.h"
#include "common/json.h"

#define FORMAT    "paratrace-campaign"
#define VERSION_1 1
#define LOCK_S    60

const char *const stage_names[NSTAGES] = {"plan", "merge", "replay"};

/* ---- life ------------------------------------------------------------------ */

struct campaign *campaign_create(void)
{
    struct campaign *c = xcalloc(1, sizeof(*c));
    campaign_add_run(c, NULL);
    for (int i = 0; i < NSTAGES; i++)
        c->stage[i].task = -1;
    c->max_parallel = 1;
    return c;
}

static void free_runs(struct campaign *c)
{
    for (size_t i = 0; i < c->nruns; i++)
        free(c->runs[i].node);
    free(c->runs);
    c->runs = NULL;
    c->nruns = 0;
}

void campaign_destroy(struct campaign *c)
{
    int saved = errno;
    if (c) {
        char *strings[] = {c->dir,   c->name,   c->script,  c->cwd,     c->spec,
                           c->nodes, c->replay, c->ptmerge, c->ptreplay};
        for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
            free(strings[i]);
        list_clear(&c->args);
        list_clear(&c->sbatch);
        list_clear(&c->env);
        list_clear(&c->notes);
        free_runs(c);
        free(c);
    }
    errno = saved;
}

void campaign_add_run(struct campaign *c, const char *node)
{
    c->runs = xrealloc(c->runs, c->nruns + 1, sizeof(*c->runs));
    c->runs[c->nruns++] = (struct run){.node = xstrdup(node), .job = {0, -1}};
}

void campaign_reset_runs(struct campaign *c)
{
    struct job baseline = c->runs[0].job;
    free_runs(c);
    campaign_add_run(c, NULL);
    c->runs[0].job = baseline;
    c->planned = 0;
    list_clear(&c->notes);
}

char *campaign_path(const struct campaign *c, const char *fmt, ...)
{
    char *name, *path;
    va_list ap;

    va_start(ap, fmt);
    int n = vasprintf(&name, fmt, ap);
    va_end(ap);
    path = xasprintf("%s/%s", c->dir, n < 0 ? "" : name);
    if (n >= 0)
        free(name);
    return path;
}

/* ---- as text --------------------------------------------------------------- */

static void put_string(FILE *f, const char *key, const char *value)
{
    fprintf(f, "  \"%s\": ", key);
    pt_json_string(f, value);
    fputs(",\n", f);
}

static void put_list(FILE *f, const char *key, const struct list *l)
{
    fprintf(f, "  \"%s\": [", key);
    for (size_t i = 0; i < l->n; i++) {
        fputs(i ? ", " : "", f);
        pt_json_string(f, l->v[i]);
    }
    fputs("],\n", f);
}

char *campaign_to_json(const struct campaign *c)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return NULL;
    fprintf(f, "{\n  \"format\": \"%s\",\n  \"version\": %d,\n", FORMAT, VERSION_1);
    put_string(f, "program", PACKAGE_VERSION);
    put_string(f, "name", c->name);
    put_string(f, "script", c->script);
    put_list(f, "args", &c->args);
    put_string(f, "cwd", c->cwd);
    put_string(f, "spec", c->spec);
    put_string(f, "nodes", c->nodes);
    put_string(f, "replay", c->replay);
    put_string(f, "ptmerge", c->ptmerge);
    put_string(f, "ptreplay", c->ptreplay);
    put_list(f, "sbatch", &c->sbatch);
    put_list(f, "environment", &c->env);
    fprintf(f, "  \"period\": %ld,\n  \"max_parallel\": %ld,\n  \"created\": %ld,\n", c->period,
            c->max_parallel, c->created);
    fprintf(f, "  \"generation\": %llu,\n", (unsigned long long)c->generation);
    fprintf(f, "  \"planned\": %s,\n  \"cancelled\": %s,\n  \"ranks\": %ld,\n",
            c->planned ? "true" : "false", c->cancelled ? "true" : "false", c->ranks);
    put_list(f, "notes", &c->notes);
    for (int i = 0; i < NSTAGES; i++)
        fprintf(f, "  \"%s_job\": %ld,\n", stage_names[i], c->stage[i].id);
    fputs("  \"runs\": [", f);
    for (size_t i = 0; i < c->nruns; i++) {
        fprintf(f, "%s\n    {\"node\": ", i ? "," : "");
        pt_json_string(f, c->runs[i].node);
        fprintf(f, ", \"job\": %ld, \"task\": %ld}", c->runs[i].job.id, c->runs[i].job.task);
    }
    fputs("\n  ]\n}\n", f);
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

/* A number that must be there and in the range. */
static int get_number(const struct json *j, const char *key, long min, long max, long *value,
                      struct pt_err *err)
{
    int64_t v = json_get_integer(j, key, INT64_MIN);
    if (v < min || v > max)
        return pt_err_set(err, "'%s' is missing or wrong", key);
    *value = (long)v;
    return 0;
}

static int get_string(const struct json *j, const char *key, int needed, char **value,
                      struct pt_err *err)
{
    const struct json *v = json_get(j, key);
    if (!v || (v->type != JSON_STRING && (needed || v->type != JSON_NULL)))
        return pt_err_set(err, "'%s' is missing or wrong", key);
    *value = xstrdup(v->string);
    return 0;
}

static int get_list(const struct json *j, const char *key, struct list *l, struct pt_err *err)
{
    const struct json *v = json_get(j, key);
    if (!v || v->type != JSON_ARRAY)
        return pt_err_set(err, "'%s' is missing or wrong", key);
    for (size_t i = 0; i < v->n; i++) {
        if (v->items[i].type != JSON_STRING)
            return pt_err_set(err, "'%s' is missing or wrong", key);
        list_add(l, v->items[i].string);
    }
    return 0;
}

static int get_runs(const struct json *j, struct campaign *c, struct pt_err *err)
{
    const struct json *runs = json_get(j, "runs");
    if (!runs || runs->type != JSON_ARRAY || runs->n < 1 || runs->n > RUNS_MAX)
        return pt_err_set(err, "'runs' is missing or wrong");
    free_runs(c);
    c->runs = xcalloc(runs->n, sizeof(*c->runs));
    c->nruns = runs->n;
    for (size_t i = 0; i < runs->n; i++) {
        struct run *run = &c->runs[i];
        const struct json *from = &runs->items[i];
        if (get_string(from, "node", i > 0, &run->node, err) ||
            get_number(from, "job", 0, INT_MAX, &run->job.id, err) ||
            get_number(from, "task", -1, INT_MAX, &run->job.task, err))
            return -1;
    }
    return 0;
}

static int get_all(const struct json *j, struct campaign *c, struct pt_err *err)
{
    long generation = 0;

    for (int i = 0; i < NSTAGES; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%s_job", stage_names[i]);
        if (get_number(j, key, 0, INT_MAX, &c->stage[i].id, err))
            return -1;
    }
    if (get_number(j, "generation", 0, LONG_MAX, &generation, err))
        return -1;
    c->generation = (uint64_t)generation;
    c->planned = json_get_bool(j, "planned", 0);
    c->cancelled = json_get_bool(j, "cancelled", 0);
    return get_string(j, "name", 1, &c->name, err) || get_string(j, "script", 1, &c->script, err) ||
                   get_list(j, "args", &c->args, err) || get_string(j, "cwd", 1, &c->cwd, err) ||
                   get_string(j, "spec", 0, &c->spec, err) ||
                   get_string(j, "nodes", 1, &c->nodes, err) ||
                   get_string(j, "replay", 0, &c->replay, err) ||
                   get_string(j, "ptmerge", 1, &c->ptmerge, err) ||
                   get_string(j, "ptreplay", 0, &c->ptreplay, err) ||
                   get_list(j, "sbatch", &c->sbatch, err) ||
                   get_list(j, "environment", &c->env, err) ||
                   get_list(j, "notes", &c->notes, err) ||
                   get_number(j, "period", 0, LONG_MAX, &c->period, err) ||
                   get_number(j, "max_parallel", 1, INT_MAX, &c->max_parallel, err) ||
                   get_number(j, "created", 0, LONG_MAX, &c->created, err) ||
                   get_number(j, "ranks", 0, INT_MAX, &c->ranks, err) || get_runs(j, c, err)
               ? -1
               : 0;
}

struct campaign *campaign_from_json(const char *text, size_t len, struct pt_err *err)
{
    struct json *j = json_parse(text, len, err);
    struct campaign *c = NULL;

    if (!j)
        return NULL;
    int64_t version = json_get_integer(j, "version", 0);
    if (strcmp(json_get_string(j, "format", ""), FORMAT)) {
        pt_err_set(err, "not a campaign's");
    } else if (version != VERSION_1) {
        pt_err_set(err, "version %lld, known is %d", (long long)version, VERSION_1);
    } else {
        c = campaign_create();
        if (get_all(j, c, err)) {
            campaign_destroy(c);
            c = NULL;
        }
    }
    json_destroy(j);
    return c;
}

/* ---- on disk --------------------------------------------------------------- */

struct campaign *campaign_load(const char *dir, struct pt_err *err)
{
    struct pt_err reason;
    struct stat st;
    struct campaign *c = NULL;
    size_t len;
    char *absolute = realpath(dir, NULL);

    if (!absolute || stat(absolute, &st)) {
        free(absolute);
        pt_err_errno(err, "cannot open campaign '%s'", dir);
        return NULL;
    }
    char *path = xasprintf("%s/%s", absolute, CAMPAIGN_FILE);
    char *text = file_read(path, CAMPAIGN_MAX, &len, &reason);
    if (text)
        c = campaign_from_json(text, len, &reason);
    if (c) {
        c->dir = absolute;
        absolute = NULL;
    } else if (!text && (errno == ENOENT || errno == ENOTDIR)) {
        pt_err_set(err, "cannot open campaign '%s': %s", dir,
                   S_ISDIR(st.st_mode) ? "no " CAMPAIGN_FILE " in it" : "not a directory");
    } else if (!text) {
        *err = reason;
    } else {
        pt_err_set(err, "cannot read '%s': %s", path, reason.text);
    }
    free(absolute);
    free(path);
    free(text);
    return c;
}

int campaign_save(struct campaign *c, struct pt_err *err)
{
    c->generation++;
    char *text = campaign_to_json(c), *path = campaign_path(c, "%s", CAMPAIGN_FILE);
    int rc = text ? file_write(path, text, strlen(text), 0644, err)
                  : pt_err_errno(err, "cannot write '%s'", path);
    free(path);
    free(text);
    return rc;
}

int campaign_lock(const char *dir, struct pt_err *err)
{
    char *path = xasprintf("%s/.lock", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0) {
        pt_err_errno(err, "cannot lock '%s'", path);
    } else {
        int rc;
        for (int i = 0; (rc = flock(fd, LOCK_EX | LOCK_NB)) && i < LOCK_S * 10; i++)
            usleep(100000);
        if (rc) {
            pt_err_set(err, "cannot lock '%s': another ptcampaign holds it", path);
            close(fd);
            fd = -1;
        }
    }
    free(path);
    return fd;
}
