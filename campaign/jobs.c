#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign/jobs.h"
#include "campaign/slurm.h"
#include "campaign/spawn.h"

#define RUN_SCRIPT "run.sbatch"

/* ---- scripts -------------------------------------------------------------------- */

static int write_script(const struct campaign *c, const char *name, const struct list *lines,
                        const char *self, const char *what, struct pt_err *err)
{
    const char *const words[] = {self, "job", what, c->dir, NULL};
    char *text = script_make(lines, words), *path = campaign_path(c, "%s", name);
    int rc = text ? file_write(path, text, strlen(text), 0755, err)
                  : pt_err_errno(err, "cannot write '%s'", path);
    free(path);
    free(text);
    return rc;
}

int jobs_write_scripts(const struct campaign *c, const struct script *s, struct pt_err *err)
{
    char *self = spawn_self(err);

    if (!self)
        return -1;
    int rc = write_script(c, RUN_SCRIPT, &s->lines, self, "run", err);
    if (!rc)
        rc = write_script(c, "plan.sbatch", NULL, self, "plan", err);
    if (!rc)
        rc = write_script(c, "merge.sbatch", NULL, self, "merge", err);
    if (!rc && c->replay)
        rc = write_script(c, "replay.sbatch", &s->lines, self, "replay", err);
    free(self);
    return rc;
}

/* ---- options -------------------------------------------------------------------- */

static void add(struct list *options, char *option)
{
    list_take(options, option);
}

/* Where the output goes: DIR/log/NAME.out, NAME with Slurm's patterns. */
static void add_output(const struct campaign *c, struct list *options, const char *name)
{
    char *dir = script_pattern(c->dir);

    add(options, xasprintf("--output=%s/log/%s.out", dir, name));
    add(options, xasprintf("--error=%s/log/%s.out", dir, name));
    add(options, xstrdup("--open-mode=truncate"));
    free(dir);
}

/* Of a job that runs the user's script, or with the same resources. */
static void add_users(const struct campaign *c, struct list *options)
{
    for (size_t i = 0; i < c->sbatch.n; i++)
        list_add(options, c->sbatch.v[i]);
}

/* Of a small job: what the user's job says of where to run, and nothing else. */
static int add_small(const struct campaign *c, struct list *options, struct pt_err *err)
{
    struct script s;
    size_t len;
    char *path = campaign_path(c, "job.sh"), *text = file_read(path, CAMPAIGN_MAX, &len, err);
    int rc = text ? script_read(&s, text, &c->sbatch, err) : -1;

    if (!rc) {
        for (size_t i = 0; i < s.placement.n; i++)
            list_add(options, s.placement.v[i]);
        script_clear(&s);
        list_add(options, "--ntasks=1");
        list_add(options, "--nodes=1");
        list_add(options, "--export=ALL");
    }
    free(text);
    free(path);
    return rc;
}

static long submit(const struct campaign *c, struct list *options, char **env, const char *script,
                   const char *arg, struct pt_err *err)
{
    char *path = campaign_path(c, "%s", script);
    long id = slurm_submit(options, c->cwd, env, path, arg, err);

    free(path);
    list_clear(options);
    return id;
}

static int submit_stage(struct campaign *c, enum stage stage, struct list *options, char **env,
                        struct pt_err *err)
{
    char *script = xasprintf("%s.sbatch", stage_names[stage]);

    add(options, xasprintf("--job-name=%s.%s", c->name, stage_names[stage]));
    add(options, xstrdup("--kill-on-invalid-dep=yes"));
    add_output(c, options, stage_names[stage]);
    long id = submit(c, options, env, script, NULL, err);
    free(script);
    if (id > 0)
        c->stage[stage] = (struct job){id, -1};
    return id > 0 ? 0 : -1;
}

/* ---- jobs ------------------------------------------------------------------------ */

int jobs_submit_plan(struct campaign *c, long baseline, char **env, struct pt_err *err)
{
    struct list options = {0};

    if (add_small(c, &options, err)) {
        list_clear(&options);
        return -1;
    }
    if (baseline > 0)
        add(&options, xasprintf("--dependency=afterok:%ld", baseline));
    return submit_stage(c, STAGE_PLAN, &options, env, err);
}

int jobs_submit_baseline(struct campaign *c, char **env, struct pt_err *err)
{
    struct list options = {0};

    add_users(c, &options);
    add(&options, xasprintf("--job-name=%s", c->name));
    add_output(c, &options, "000");
    long id = submit(c, &options, env, RUN_SCRIPT, NULL, err);
    if (id < 0)
        return -1;
    c->runs[0].job = (struct job){id, -1};
    return jobs_submit_plan(c, id, env, err);
}

char *jobs_ranges(const long *numbers, size_t n)
{
    char *text = NULL;
    size_t size, end;
    FILE *f = open_memstream(&text, &size);

    for (size_t i = 0; f && i < n; i = end) {
        for (end = i + 1; end < n && numbers[end] == numbers[end - 1] + 1; end++)
            ;
        fprintf(f, "%s%ld", i ? "," : "", numbers[i]);
        if (end - i > 1)
            fprintf(f, "-%ld", numbers[end - 1]);
    }
    if (f)
        fclose(f);
    return text ? text : xstrdup("");
}

/* Runs base + 1 .. base + limit, as far as they are in which[0..n). */
static long submit_array(struct campaign *c, const size_t *which, size_t n, size_t base, long after,
                         char **env, struct pt_err *err)
{
    struct list options = {0};
    long *numbers = xcalloc(n, sizeof(*numbers));
    char *arg = xasprintf("%zu", base);

    for (size_t i = 0; i < n; i++)
        numbers[i] = (long)(which[i] - base);
    char *ranges = jobs_ranges(numbers, n);
    add_users(c, &options);
    add(&options, xasprintf("--job-name=%s", c->name));
    add(&options, xasprintf("--array=%s%%%ld", ranges, c->max_parallel));
    if (after > 0)
        add(&options, xasprintf("--dependency=afterany:%ld", after));
    if (base == 0) {
        add_output(c, &options, "%3a");
    } else {
        add_output(c, &options, "array.%A_%a"); /* the numbers of the runs are greater */
    }
    long id = submit(c, &options, env, RUN_SCRIPT, arg, err);
    for (size_t i = 0; id > 0 && i < n; i++)
        c->runs[which[i]].job = (struct job){id, numbers[i]};
    free(ranges);
    free(numbers);
    free(arg);
    return id;
}

int jobs_submit_runs(struct campaign *c, const size_t *which, size_t n, char **env,
                     struct pt_err *err)
{
    size_t limit = (size_t)slurm_max_index();
    long id = 0;

    /* One array after the other, for no more than max_parallel to run at a time. */
    for (size_t i = 0, end; i < n; i = end) {
        size_t base = (which[i] - 1) / limit * limit;
        for (end = i; end < n && which[end] <= base + limit; end++)
            ;
        id = submit_array(c, which + i, end - i, base, id, env, err);
        if (id < 0)
            return -1;
    }
    return 0;
}

int jobs_submit_merge(struct campaign *c, const long *after, size_t n, char **env,
                      struct pt_err *err)
{
    struct list options = {0};

    if (add_small(c, &options, err)) {
        list_clear(&options);
        return -1;
    }
    char *dependency = xstrdup("--dependency=afterany");
    for (size_t i = 0; i < n; i++) {
        char *longer = xasprintf("%s:%ld", dependency, after[i]);
        free(dependency);
        dependency = longer;
    }
    if (n)
        list_add(&options, dependency);
    free(dependency);
    if (submit_stage(c, STAGE_MERGE, &options, env, err))
        return -1;
    if (!c->replay)
        return 0;
    add_users(c, &options);
    add(&options, xasprintf("--dependency=afterok:%ld", c->stage[STAGE_MERGE].id));
    return submit_stage(c, STAGE_REPLAY, &options, env, err);
}
