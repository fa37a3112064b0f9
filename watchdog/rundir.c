#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

#define MAX_NUMBER 1000 /* of run directories with one name */

static void put_meta(FILE *f, const char *key, const char *value)
{
    if (value)
        fprintf(f, "%s=%s\n", key, value);
}

static char *make_meta(const struct wd *wd)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    put_meta(f, "version", PACKAGE_VERSION);
    put_meta(f, "host", wd->opt.host);
    put_meta(f, "user", wd->opt.user);
    put_meta(f, "job", wd->opt.job);
    put_meta(f, "step", wd->opt.step);
    put_meta(f, "array_job", wd->opt.array_job);
    put_meta(f, "array_task", wd->opt.array_task);
    put_meta(f, "spec", wd->opt.spec_text);
    put_meta(f, "throttle", wd->spec.throttle == PT_THROTTLE_NONE ? "none" : "yes");
    put_meta(f, "note", *wd->spec.note ? wd->spec.note : NULL);
    if (!wd->anonymous)
        fprintf(f, "uid=%u\n", (unsigned)geteuid());
    fprintf(f, "hostid=%d\nnhosts=%d\nntasks=%d\nrestart=%d\n", wd->opt.hostid, wd->opt.nhosts,
            wd->opt.ntasks, wd->opt.restart);
    fprintf(f, "realtime=%lu\nmonotonic=%lu\n", wd->started_real, wd->started);
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

/* A name as it was asked for, but that a requeued job keeps what its earlier life has traced. */
static int make_name(const struct wd *wd, const char *asked, char *name, size_t size)
{
    int len = (int)strlen(asked), n;
    while (len > 1 && asked[len - 1] == '/')
        len--;
    if (wd->opt.restart > 0)
        n = snprintf(name, size, "%.*s.r%d", len, asked, wd->opt.restart);
    else
        n = snprintf(name, size, "%.*s", len, asked);
    return (size_t)n < size ? n : (int)size - 1;
}

/* The first directory that is free or already that of our step: all hosts find the same. */
static int open_rundir(struct wd *wd, struct pt_err *err)
{
    size_t size = sizeof(wd->rundir_name);
    int n = make_name(wd, wd->opt.out, wd->rundir_name, size);
    for (int number = 0; number < MAX_NUMBER; number++) {
        if (number)
            snprintf(wd->rundir_name + n, size - (size_t)n, ".%d", number);
        if (wd_path_open(wd->rundir_name, &wd->place, err))
            return -1;
        wd->rundir = wd->place.dir;
        int taken = wd_claim_take(wd);
        if (!taken)
            return 0;
        if (taken < 0)
            pt_err_errno(err, "run directory '%s'", wd->rundir_name);
        wd_path_close(&wd->place);
        wd->rundir = -1;
        if (taken < 0)
            return -1;
    }
    return pt_err_set(err, "run directory '%.*s': it holds a run, as do those numbered after it", n,
                      wd->rundir_name);
}

static void make_file_name(const struct wd *wd, char *name, size_t size)
{
    snprintf(name, size, "%s" PT_RUN_SUFFIX, wd->opt.host);
}

int wd_rundir_begin(struct wd *wd, struct pt_err *err)
{
    char name[300];
    if (open_rundir(wd, err))
        return -1;
    make_file_name(wd, name, sizeof(name));
    char *meta = make_meta(wd);
    if (!meta)
        return pt_err_errno(err, "cannot describe the run");
    wd->writer = pt_writer_create(wd->rundir, name, meta, err);
    free(meta);
    return wd->writer ? 0 : -1;
}

/* ---- the end ---------------------------------------------------------------------- */

static char *make_end(const struct wd *wd)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f, "nodes=%lu\nevents=%lu\nlost=%lu\nuntraced_threads=%lu\nrunning=%lu\n", wd->nodes,
            wd->events, wd->lost, wd->untraced_threads, wd->running);
    fprintf(f, "holds=%lu\nholds_timed_out=%lu\nhold_ns=%lu\nrefused=%lu\n", wd->holds,
            wd->holds_timed_out, wd->hold_ns, wd->refused);
    char why[400];
    fprintf(f, "complete=%d\nreason=%s\n", wd_run_complete(wd),
            wd_run_reason(wd, why, sizeof(why)));
    fprintf(f, "ended=%lu\n", wd->started_real + (wd_now() - wd->started));
    for (size_t i = 0; i < wd->nexits; i++)
        fprintf(f, "exit.%d=%d\n", wd->exits[i].task, wd->exits[i].status);
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

/* Sends the last events to the file, and counts those that it could not take. */
static void settle(struct wd *wd)
{
    if (pt_writer_flush(wd->writer) && !wd->write_error)
        wd->write_error = errno;
    uint64_t lost = pt_writer_lost(wd->writer);
    wd->lost += lost;
    wd->events -= lost;
}

/* A script that started nothing but launchers and steps has left no trace worth keeping. */
static int is_void(const struct wd *wd)
{
    return wd->opt.script && !wd->events && wd_run_complete(wd);
}

static void remove_run(const struct wd *wd)
{
    char name[300];
    make_file_name(wd, name, sizeof(name));
    unlinkat(wd->rundir, name, 0);
    wd_claim_release(wd);
    unlinkat(wd->place.parent, wd->place.name, AT_REMOVEDIR);
}

/* The name without the step's, if no other step has taken it. */
static void take_better_name(struct wd *wd)
{
    char name[sizeof(wd->rundir_name)];
    if (!wd->opt.rather)
        return;
    make_name(wd, wd->opt.rather, name, sizeof(name));
    const char *base = strrchr(name, '/');
    if (base &&
        !renameat2(wd->place.parent, wd->place.name, wd->place.parent, base + 1, RENAME_NOREPLACE))
        strcpy(wd->rundir_name, name);
}

static int close_run(struct wd *wd, struct wd_totals *totals, struct pt_err *err)
{
    char *end = make_end(wd);
    int rc = end ? pt_writer_close(wd->writer, end) : -1;
    free(end);
    wd->writer = NULL;
    if (rc && !wd->write_error)
        wd->write_error = errno;
    int no_json = wd_parts_write(wd, totals);
    if (no_json)
        pt_err_errno(err, "cannot write %s'%s/run.json'", rc ? "all of the run file, and not " : "",
                     wd->rundir_name);
    else if (rc)
        pt_err_set(err, "cannot write all of the run file in '%s': %s", wd->rundir_name,
                   strerror(wd->write_error));
    return rc || no_json ? -1 : 0;
}

int wd_rundir_end(struct wd *wd, char *summary, size_t size, struct pt_err *err)
{
    struct wd_totals totals;
    *summary = 0;
    settle(wd);
    if (is_void(wd)) {
        pt_writer_close(wd->writer, "");
        wd->writer = NULL;
        remove_run(wd);
        return 0;
    }
    int rc = close_run(wd, &totals, err);
    take_better_name(wd);
    wd_run_summary(wd, &totals, summary, size);
    return rc;
}
