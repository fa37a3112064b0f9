#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "campaign/command.h"
#include "campaign/state.h"

static const char help[] =
    "Usage: ptcampaign watch DIR [--timeout SECONDS]\n\n"
    "Shows the progress until no job of the campaign is left, or until the time is over.\n"
    "Exits 0 if everything is done, 1 if something failed or the time was over.\n";

#define FIRST_WAIT_MS 250
#define LAST_WAIT_MS  5000
#define SILENCE_S     300 /* how long Slurm may fail to answer */
#define CONFIRM       3   /* looks at a failure: directories of other hosts may lag behind */
#define BAR           30

static long now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec;
}

static const char *phase(const struct status *s, char buf[200])
{
    const struct campaign *c = s->campaign;

    for (int i = NSTAGES - 1; i >= 0; i--) {
        if (s->stages[i].state == STATE_RUNNING) {
            snprintf(buf, 200, "%s", stage_names[i]);
            return buf;
        }
    }
    for (size_t k = 0; k < c->nruns; k++) {
        if (s->runs[k].state == STATE_RUNNING) {
            snprintf(buf, 200, k ? "run %03zu (node %s)" : "baseline", k, c->runs[k].node);
            return buf;
        }
    }
    for (size_t k = 0; k < c->nruns; k++) {
        if (s->runs[k].state == STATE_PENDING) {
            snprintf(buf, 200, "waiting%s%.150s", *s->runs[k].why ? ": " : "", s->runs[k].why);
            return buf;
        }
    }
    return "waiting";
}

/* One line, rewritten on a terminal; elsewhere one for each change. */
static void show(const struct status *s, char last[400])
{
    const struct campaign *c = s->campaign;
    char buf[200], bar[BAR + 1], line[400];
    size_t done = s->count[STATE_DONE], all = c->nruns;
    size_t filled = c->planned ? done * BAR / all : 0;

    memset(bar, '.', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    snprintf(line, sizeof(line), "[%s] %zu/%s%.0zu done, %zu failed: %s", bar, done,
             c->planned ? "" : "?", c->planned ? all : 0, s->count[STATE_FAILED],
             s->queued ? phase(s, buf) : overall_names[s->overall]);
    if (strcmp(line, last) == 0)
        return;
    if (isatty(STDOUT_FILENO))
        printf("\r\033[K%s", line);
    else
        printf("%s\n", line);
    fflush(stdout);
    strcpy(last, line);
}

static void explain_one(const struct campaign *c, const char *what, const struct info *info)
{
    if (info->state != STATE_FAILED)
        return;
    char *log = campaign_path(c, "%s", info->log);
    int exists = access(log, F_OK) == 0;
    complain("%s of campaign '%s' failed: %s%s%s", what, c->dir, info->why, exists ? "; log: " : "",
             exists ? log : "");
    free(log);
}

static void explain(const struct status *s)
{
    const struct campaign *c = s->campaign;

    for (size_t k = 0; k < c->nruns; k++) {
        char what[32];
        snprintf(what, sizeof(what), "run %03zu", k);
        explain_one(c, what, &s->runs[k]);
    }
    for (int i = 0; i < NSTAGES; i++)
        explain_one(c, stage_names[i], &s->stages[i]);
    if (s->overall == OVERALL_CANCELLED)
        complain("campaign '%s' was cancelled", c->dir);
}

int cmd_watch(int argc, char **argv)
{
    struct status s;
    struct pt_err err;
    char last[400] = "";
    int code = 0, asked, seen = 0;
    long timeout = -1, wait = FIRST_WAIT_MS, start = now(), answered = start;
    const char *dir = parse_dir_args(argc, argv, help, NULL, &timeout, &code);

    if (!dir)
        return code;
    for (;;) {
        if (status_get(&s, dir, &asked, &err) == 0) {
            answered = now();
            show(&s, last);
            int over = s.overall != OVERALL_RUNNING;
            seen = over ? seen + 1 : 0;
            if (s.overall == OVERALL_DONE || seen >= CONFIRM)
                break;
            if (over)
                wait = FIRST_WAIT_MS;
            status_clear(&s);
        } else if (!asked || now() - answered > SILENCE_S) {
            return complain("%s", err.text);
        }
        if (timeout >= 0 && now() - start >= timeout) {
            if (isatty(STDOUT_FILENO))
                putchar('\n');
            return complain("campaign '%s' is not over after %ld seconds", dir, timeout);
        }
        usleep((useconds_t)wait * 1000);
        wait = wait * 5 / 4 < LAST_WAIT_MS ? wait * 5 / 4 : LAST_WAIT_MS;
    }
    if (isatty(STDOUT_FILENO))
        putchar('\n');
    explain(&s);
    code = s.overall == OVERALL_DONE ? EXIT_DONE : EXIT_FAILED;
    status_clear(&s);
    return code;
}
