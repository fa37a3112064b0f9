#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "campaign/command.h"
#include "campaign/state.h"

static const char help[] =
    "Usage: ptcampaign status DIR [--json]\n\n"
    "Prints the state of each run: pending, running, done, failed, or missing if it was\n"
    "never submitted; and of the planning, the merge and the replay check.\n";

static void print_row(const struct status *s, const char *what, const char *node, struct job job,
                      const struct info *info)
{
    char text[JOB_TEXT], seconds[32] = "";

    if (info->state == STATE_DONE && info->seconds > 0)
        snprintf(seconds, sizeof(seconds), "%.3f", info->seconds);
    printf("%-7s %-10s %-12s %-8s %9s", what, node, state_job_text(job, text),
           state_names[info->state], seconds);
    if (*info->why)
        printf("  %s", info->why);
    if (info->state == STATE_FAILED) {
        char *log = campaign_path(s->campaign, "%s", info->log);
        if (access(log, F_OK) == 0)
            printf("; log: %s", log);
        free(log);
    }
    putchar('\n');
}

static void print(const struct status *s)
{
    const struct campaign *c = s->campaign;

    printf("campaign '%s': %s", c->dir, overall_names[s->overall]);
    if (c->planned)
        printf(", %zu of %zu runs done", s->count[STATE_DONE], c->nruns);
    printf("\n%-7s %-10s %-12s %-8s %9s\n", "RUN", "NODE", "JOB", "STATE", "SECONDS");
    print_row(s, "000", "baseline", c->runs[0].job, &s->runs[0]);
    print_row(s, "plan", "", c->stage[STAGE_PLAN], &s->stages[STAGE_PLAN]);
    for (size_t k = 1; k < c->nruns; k++) {
        char number[32];
        snprintf(number, sizeof(number), "%03zu", k);
        print_row(s, number, c->runs[k].node, c->runs[k].job, &s->runs[k]);
    }
    print_row(s, "merge", "", c->stage[STAGE_MERGE], &s->stages[STAGE_MERGE]);
    if (c->replay)
        print_row(s, "replay", "", c->stage[STAGE_REPLAY], &s->stages[STAGE_REPLAY]);
    for (size_t i = 0; i < c->notes.n; i++)
        printf("note: %s\n", c->notes.v[i]);
}

int cmd_status(int argc, char **argv)
{
    struct status s;
    struct pt_err err;
    int json = 0, code = 0, asked;
    const char *dir = parse_dir_args(argc, argv, help, &json, NULL, &code);

    if (!dir)
        return code;
    if (status_get(&s, dir, &asked, &err))
        return complain("%s", err.text);
    if (json)
        status_print_json(stdout, &s);
    else
        print(&s);
    status_clear(&s);
    return EXIT_DONE;
}
