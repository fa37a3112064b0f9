/*
 * What is said of a run when it ends: each host's part, run.json made of them, and one line
 * for the user.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/json.h"
#include "watchdog/watchdog.h"

#define LOCK_FILE ".lock"

int wd_run_complete(const struct wd *wd)
{
    return !wd->lost && !wd->write_error && !wd->untraced_threads && !wd->blind && !wd->running &&
           !wd_tasks_unseen(wd);
}

const char *wd_run_reason(const struct wd *wd, char *buf, size_t size)
{
    *buf = 0;
    if (wd->write_error)
        snprintf(buf, size, "cannot write: %s", strerror(wd->write_error));
    else if (wd->lost && wd->limit)
        wd_site_reason(wd, buf, size);
    else if (wd->lost)
        snprintf(buf, size, "%lu events were dropped", wd->lost);
    else if (wd->memory_error)
        snprintf(buf, size, "no memory for rings: %s", strerror(wd->memory_error));
    else if (wd->blind)
        snprintf(buf, size, "not seen: %s", wd->blind_reason);
    else if (wd_tasks_unseen(wd))
        snprintf(buf, size, "%zu tasks were never seen: static programs?", wd_tasks_unseen(wd));
    else if (wd->untraced_threads)
        snprintf(buf, size, "%lu threads could not be traced", wd->untraced_threads);
    else if (wd->running)
        snprintf(buf, size, "%lu processes ran on after the tasks", wd->running);
    return buf;
}

/* ---- run.json ------------------------------------------------------------------------- */

/* This host's entry of run.json. */
static void put_host(const struct wd *wd, FILE *f)
{
    fputs("    {\"host\": ", f);
    pt_json_string(f, wd->opt.host);
    fprintf(f,
            ", \"nodes\": %lu, \"events\": %lu, \"lost\": %lu, \"untraced_threads\": %lu, "
            "\"holds\": %lu, \"holds_timed_out\": %lu, \"holds_refused\": %lu, "
            "\"hold_ns\": %lu, \"longest_gap_ns\": %lu, \"longest_call_ns\": %lu, "
            "\"complete\": %s, "
            "\"reason\": ",
            wd->nodes, wd->events, wd->lost, wd->untraced_threads, wd->holds, wd->holds_timed_out,
            wd->holds_refused, wd->hold_ns, wd->longest_gap, wd->longest_call,
            wd_run_complete(wd) ? "true" : "false");
    char why[400];
    pt_json_string(f, wd_run_reason(wd, why, sizeof(why)));
    fputs(", \"exits\": {", f);
    for (size_t i = 0; i < wd->nexits; i++)
        fprintf(f, "%s\"%d\": %d", i ? ", " : "", wd->exits[i].task, wd->exits[i].status);
    fputs("}", f);
    wd_hosts_put(wd, f);
    fputs("}", f);
}

static void put_json(FILE *f, const char *key, const char *value)
{
    fprintf(f, "  \"%s\": ", key);
    pt_json_string(f, value);
    fputs(",\n", f);
}

/*
 * Of what is in the run directory nothing is followed or waited for, though it is ours: a
 * group may be able to write there.
 */
static FILE *open_file(int dir, const char *name, int flags, const char *mode)
{
    struct stat st;
    int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EEXIST;
        return NULL;
    }
    FILE *f = fd < 0 ? NULL : fdopen(fd, mode);
    if (!f && fd >= 0)
        close(fd);
    return f;
}

static FILE *create_at(int dir, const char *name)
{
    unlinkat(dir, name, 0); /* of an earlier try, or planted */
    return open_file(dir, name, O_WRONLY | O_CREAT | O_EXCL, "w");
}

static uint64_t number_in(const char *line, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
    const char *at = strstr(line, quoted);
    return at ? strtoull(at + strlen(quoted), NULL, 10) : 0;
}

/* Adds the numbers of a host's entry, which begins with them. */
static void add_host(struct wd_totals *t, const char *line)
{
    t->hosts++;
    t->nodes += number_in(line, "nodes");
    t->events += number_in(line, "events");
    t->lost += number_in(line, "lost");
    t->holds += number_in(line, "holds");
    t->holds_timed_out += number_in(line, "holds_timed_out");
    const char *why = strstr(line, "\"complete\": false, \"reason\": \"");
    if (!why)
        return;
    t->incomplete++;
    if (!*t->reason) {
        why = strstr(why, "reason") + strlen("reason\": \"");
        snprintf(t->reason, sizeof(t->reason), "%.*s", (int)strcspn(why, "\""), why);
    }
}

/* Copies the entries of all hosts that have ended, and adds them up. */
static void put_hosts(const struct wd *wd, FILE *f, struct wd_totals *t)
{
    *t = (struct wd_totals){0};
    for (int i = 0; i < wd->opt.nhosts; i++) {
        char name[64], line[8192];
        snprintf(name, sizeof(name), ".host.%d", i);
        FILE *part = open_file(wd->rundir, name, O_RDONLY, "r");
        if (!part)
            continue;
        fputs(t->hosts ? ",\n" : "\n", f);
        for (int first = 1; fgets(line, sizeof(line), part); first = 0) {
            fputs(line, f);
            if (first)
                add_host(t, line);
        }
        fclose(part);
    }
}

static int write_run_json(const struct wd *wd, struct wd_totals *t)
{
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
    put_hosts(wd, f, t);
    fprintf(f, "\n  ],\n  \"complete\": %s\n}\n",
            t->hosts == wd->opt.nhosts && !t->incomplete ? "true" : "false");
    if (fflush(f) || ferror(f)) {
        fclose(f);
        return -1;
    }
    return fclose(f) || renameat(wd->rundir, ".run.json", wd->rundir, "run.json") ? -1 : 0;
}

/* What one host may leave behind when it is done, but for the run itself. */
static void remove_scratch(const struct wd *wd, int all)
{
    char name[64];
    for (int i = all ? 0 : wd->opt.hostid; i < (all ? wd->opt.nhosts : wd->opt.hostid + 1); i++) {
        snprintf(name, sizeof(name), ".host.%d", i);
        unlinkat(wd->rundir, name, 0);
    }
}

/*
 * Each host leaves its part and then writes run.json from all parts there are; under
 * the lock, so that the last one to come sees and writes everything.
 */
int wd_parts_write(const struct wd *wd, struct wd_totals *t)
{
    char name[64];
    int rc = -1;
    *t = (struct wd_totals){0};
    FILE *lock = open_file(wd->rundir, LOCK_FILE, O_RDWR | O_CREAT, "r+");
    if (!lock)
        return -1;
    flock(fileno(lock), LOCK_EX);
    snprintf(name, sizeof(name), ".host.%d", wd->opt.hostid);
    FILE *f = create_at(wd->rundir, name);
    if (f) {
        put_host(wd, f);
        rc = fclose(f) ? -1 : write_run_json(wd, t);
    }
    int all_here = !rc && t->hosts == wd->opt.nhosts, error = errno;
    if (all_here) {
        remove_scratch(wd, 1);
        wd_claim_release(wd);
    }
    if (rc) { /* a full disk: nothing half-written stays */
        remove_scratch(wd, 0);
        unlinkat(wd->rundir, ".run.json", 0);
    }
    if (all_here || wd->opt.nhosts == 1)
        unlinkat(wd->rundir, LOCK_FILE, 0);
    fclose(lock);
    errno = error;
    return rc;
}

int wd_run_files(int rundir)
{
    int files = 0, copy = openat(rundir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (!dir) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    for (const struct dirent *e; (e = readdir(dir));) {
        const char *dot = strrchr(e->d_name, '.');
        files += dot && !strcmp(dot, PT_RUN_SUFFIX);
    }
    closedir(dir);
    return files;
}

/* ---- the line ------------------------------------------------------------------------- */

/* This host's own numbers, where those of all are not to be had. */
static struct wd_totals own_totals(const struct wd *wd)
{
    struct wd_totals t = {.hosts = 1,
                          .nodes = wd->nodes,
                          .events = wd->events,
                          .lost = wd->lost,
                          .holds = wd->holds,
                          .holds_timed_out = wd->holds_timed_out,
                          .incomplete = !wd_run_complete(wd)};
    wd_run_reason(wd, t.reason, sizeof(t.reason));
    return t;
}

void wd_run_summary(const struct wd *wd, const struct wd_totals *all, char *buf, size_t size)
{
    char why[400];
    struct wd_totals t = *all;
    const char *problem = wd_hosts_problem(wd, why, sizeof(why)), *whose = "";

    *buf = 0;
    if (t.hosts < wd->opt.nhosts) {
        /* Where all have begun to write, the last to end has everything and says so. */
        int shared = wd_run_files(wd->rundir) >= wd->opt.nhosts;
        if (wd->opt.hostid || (shared && !wd_hosts_lost(wd)))
            return;
        t = own_totals(wd);
        whose = wd->opt.nhosts > 1 ? " on this host" : "";
    }
    FILE *f = fmemopen(buf, size, "w");
    if (!f)
        return;
    fprintf(f, "%s: %lu nodes, %lu events, %lu lost%s, %s", wd->rundir_name, t.nodes, t.events,
            t.lost, whose, t.incomplete ? "incomplete" : "complete");
    if (t.incomplete)
        fprintf(f, " (%s)", t.reason);
    if (problem && wd->spec.throttle != PT_THROTTLE_NONE)
        fprintf(f, "; hosts not connected: %s", problem);
    if (t.holds)
        fprintf(f, "; %lu holds%s", t.holds, t.holds_timed_out ? ", some timed out" : "");
    fclose(f);
}
