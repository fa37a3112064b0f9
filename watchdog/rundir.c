#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "watchdog/watchdog.h"

#define LOCK_FILE ".lock"

/* Makes the directory and those above it that are missing. */
static int make_path(const char *dir)
{
    char path[4096];
    size_t len = strlen(dir);
    if (len >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (size_t i = 1; i <= len; i++) {
        if (i < len && dir[i] != '/')
            continue;
        memcpy(path, dir, i);
        path[i] = 0;
        if (mkdir(path, i == len ? 0755 : 0777) && errno != EEXIST)
            return -1;
    }
    return 0;
}

/* A run directory belongs to the user and is no link: nothing planted is followed. */
static int open_rundir(const char *dir, struct pt_err *err)
{
    struct stat st;
    if (make_path(dir))
        return pt_err_errno(err, "cannot make run directory '%s'", dir);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return pt_err_errno(err, "cannot open run directory '%s'", dir);
    if (fstat(fd, &st) || st.st_uid != geteuid()) {
        close(fd);
        return pt_err_set(err, "cannot use run directory '%s': it belongs to another user", dir);
    }
    return fd;
}

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
    fprintf(f, "uid=%u\nhostid=%d\nnhosts=%d\nntasks=%d\nrestart=%d\n", (unsigned)geteuid(),
            wd->opt.hostid, wd->opt.nhosts, wd->opt.ntasks, wd->opt.restart);
    fprintf(f, "realtime=%lu\nmonotonic=%lu\n", wd->started_real, wd->started);
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

int wd_rundir_begin(struct wd *wd, struct pt_err *err)
{
    char name[300];
    int n = snprintf(wd->rundir_name, sizeof(wd->rundir_name), "%s", wd->opt.out);
    if (wd->opt.restart > 0) /* a requeued job keeps what its earlier life has traced */
        n = snprintf(wd->rundir_name, sizeof(wd->rundir_name), "%s.r%d", wd->opt.out,
                     wd->opt.restart);
    while (n > 1 && wd->rundir_name[n - 1] == '/')
        wd->rundir_name[--n] = 0;
    wd->rundir = open_rundir(wd->rundir_name, err);
    if (wd->rundir < 0)
        return -1;
    snprintf(name, sizeof(name), "%s" PT_RUN_SUFFIX, wd->opt.host);
    char *meta = make_meta(wd);
    if (!meta)
        return pt_err_errno(err, "cannot describe the run");
    wd->writer = pt_writer_create(wd->rundir, name, meta, err);
    free(meta);
    return wd->writer ? 0 : -1;
}

/* ---- the end ---------------------------------------------------------------------- */

static int complete(const struct wd *wd)
{
    return !wd->lost && !wd->write_error && !wd->untraced_threads && !wd->blind &&
           !wd_tasks_unseen(wd);
}

/* Why the run is not complete, in a few words. */
static const char *reason(const struct wd *wd, char *buf, size_t size)
{
    *buf = 0;
    if (wd->write_error)
        snprintf(buf, size, "cannot write: %s", strerror(wd->write_error));
    else if (wd->lost)
        snprintf(buf, size, "%lu events were dropped", wd->lost);
    else if (wd->blind)
        snprintf(buf, size, "not seen: %s", wd->blind_reason);
    else if (wd_tasks_unseen(wd))
        snprintf(buf, size, "%zu tasks were never seen: static programs?", wd_tasks_unseen(wd));
    else if (wd->untraced_threads)
        snprintf(buf, size, "%lu threads too many", wd->untraced_threads);
    return buf;
}

static char *make_end(const struct wd *wd)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    fprintf(f, "nodes=%lu\nevents=%lu\nlost=%lu\nuntraced_threads=%lu\n", wd->nodes, wd->events,
            wd->lost, wd->untraced_threads);
    fprintf(f, "holds=%lu\nholds_timed_out=%lu\nhold_ns=%lu\nrefused=%lu\n", wd->holds,
            wd->holds_timed_out, wd->hold_ns, wd->refused);
    char why[400];
    fprintf(f, "complete=%d\nreason=%s\n", complete(wd), reason(wd, why, sizeof(why)));
    fprintf(f, "ended=%lu\n", wd->started_real + (wd_now() - wd->started));
    for (size_t i = 0; i < wd->nexits; i++)
        fprintf(f, "exit.%d=%d\n", wd->exits[i].task, wd->exits[i].status);
    if (fclose(f)) {
        free(text);
        return NULL;
    }
    return text;
}

/* This host's entry of run.json. */
static void put_host(const struct wd *wd, FILE *f)
{
    fputs("    {\"host\": ", f);
    pt_json_string(f, wd->opt.host);
    fprintf(f,
            ", \"nodes\": %lu, \"events\": %lu, \"lost\": %lu, \"untraced_threads\": %lu, "
            "\"holds\": %lu, \"holds_timed_out\": %lu, \"hold_ns\": %lu, \"complete\": %s, "
            "\"reason\": ",
            wd->nodes, wd->events, wd->lost, wd->untraced_threads, wd->holds, wd->holds_timed_out,
            wd->hold_ns, complete(wd) ? "true" : "false");
    char why[400];
    pt_json_string(f, reason(wd, why, sizeof(why)));
    fputs(", \"exits\": {", f);
    for (size_t i = 0; i < wd->nexits; i++)
        fprintf(f, "%s\"%d\": %d", i ? ", " : "", wd->exits[i].task, wd->exits[i].status);
    fputs("}}", f);
}

static void put_json(FILE *f, const char *key, const char *value)
{
    fprintf(f, "  \"%s\": ", key);
    pt_json_string(f, value);
    fputs(",\n", f);
}

static FILE *create_at(int dir, const char *name)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 ? NULL : fdopen(fd, "w");
}

/* Copies the entries of all hosts that have ended; returns how many, and whether all are whole. */
static int put_hosts(const struct wd *wd, FILE *f, int *whole)
{
    int found = 0;
    *whole = 1;
    for (int i = 0; i < wd->opt.nhosts; i++) {
        char name[64], line[8192];
        snprintf(name, sizeof(name), ".host.%d", i);
        int fd = openat(wd->rundir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        FILE *part = fd < 0 ? NULL : fdopen(fd, "r");
        if (!part)
            continue;
        fputs(found++ ? ",\n" : "\n", f);
        while (fgets(line, sizeof(line), part)) {
            fputs(line, f);
            *whole &= !strstr(line, "\"complete\": false");
        }
        fclose(part);
    }
    return found;
}

static int write_run_json(const struct wd *wd, int *all_here)
{
    int whole;
    FILE *f = create_at(wd->rundir, ".run.json");
    if (!f)
        return -1;
    fputs("{\n", f);
    put_json(f, "format", "paratrace-run");
    put_json(f, "version", PACKAGE_VERSION);
    put_json(f, "user", wd->opt.user);
    put_json(f, "job", wd->opt.job);
    put_json(f, "step", wd->opt.step);
    put_json(f, "array_job", wd->opt.array_job);
    put_json(f, "array_task", wd->opt.array_task);
    put_json(f, "spec", wd->opt.spec_text);
    put_json(f, "note", *wd->spec.note ? wd->spec.note : NULL);
    fprintf(f, "  \"restart\": %d,\n  \"nhosts\": %d,\n", wd->opt.restart, wd->opt.nhosts);
    fprintf(f, "  \"started_ns\": %lu,\n  \"ended_ns\": %lu,\n  \"hosts\": [", wd->started_real,
            wd->started_real + (wd_now() - wd->started));
    *all_here = put_hosts(wd, f, &whole) == wd->opt.nhosts;
    fprintf(f, "\n  ],\n  \"complete\": %s\n}\n", *all_here && whole ? "true" : "false");
    if (fflush(f) || ferror(f)) {
        fclose(f);
        return -1;
    }
    return fclose(f) || renameat(wd->rundir, ".run.json", wd->rundir, "run.json") ? -1 : 0;
}

/*
 * Each host leaves its part and then writes run.json from all parts there are; under
 * the lock, so that the last one to come sees and writes everything.
 */
static int write_parts(const struct wd *wd)
{
    char name[64];
    int all_here = 0, rc = -1;
    int lock = openat(wd->rundir, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (lock < 0)
        return -1;
    flock(lock, LOCK_EX);
    snprintf(name, sizeof(name), ".host.%d", wd->opt.hostid);
    FILE *f = create_at(wd->rundir, name);
    if (f) {
        put_host(wd, f);
        rc = fclose(f) ? -1 : write_run_json(wd, &all_here);
    }
    for (int i = 0; all_here && !rc && i < wd->opt.nhosts; i++) {
        snprintf(name, sizeof(name), ".host.%d", i);
        unlinkat(wd->rundir, name, 0);
    }
    int error = errno;
    if (rc) { /* a full disk: nothing half-written stays */
        snprintf(name, sizeof(name), ".host.%d", wd->opt.hostid);
        unlinkat(wd->rundir, name, 0);
        unlinkat(wd->rundir, ".run.json", 0);
    }
    if ((all_here && !rc) || wd->opt.nhosts == 1)
        unlinkat(wd->rundir, LOCK_FILE, 0);
    close(lock);
    errno = error;
    return rc;
}

int wd_rundir_end(struct wd *wd, struct pt_err *err)
{
    char *end = make_end(wd);
    int rc = end ? pt_writer_close(wd->writer, end) : -1;
    free(end);
    wd->writer = NULL;
    if (rc && !wd->write_error)
        wd->write_error = errno;
    if (write_parts(wd) && !rc)
        rc = pt_err_errno(err, "cannot write '%s/run.json'", wd->rundir_name);
    else if (rc)
        pt_err_set(err, "cannot write the run file in '%s': %s", wd->rundir_name,
                   strerror(wd->write_error));
    return rc;
}

void wd_rundir_summary(const struct wd *wd, char *buf, size_t size)
{
    int n = snprintf(buf, size, "%s: %lu nodes, %lu events, %lu lost, %s", wd->rundir_name,
                     wd->nodes, wd->events, wd->lost, complete(wd) ? "complete" : "incomplete");
    if (n < 0 || (size_t)n >= size)
        return;
    char why[400];
    if (!complete(wd))
        n += snprintf(buf + n, size - (size_t)n, " (%s)", reason(wd, why, sizeof(why)));
    if (wd->holds && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, "; %lu holds%s", wd->holds,
                 wd->holds_timed_out ? ", some timed out" : "");
}
