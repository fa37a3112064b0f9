#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "campaign/command.h"
#include "campaign/json_read.h"
#include "campaign/state.h"
#include "common/json.h"

static const char help[] =
    "Usage: ptcampaign report DIR [--json]\n\n"
    "Prints for each run how long it took, compared to the baseline, and its holds; then\n"
    "what the merge says of the store, and what the replay check measured.\n";

#define RESULT_MAX ((size_t)64 << 20)

/* The summary that a program left in log/NAME.json; NULL if there is none. */
static struct json *read_summary(const struct campaign *c, const char *name)
{
    size_t len;
    char *path = campaign_path(c, "log/%s.json", name);
    char *text = file_read(path, RESULT_MAX, &len, NULL);
    struct json *j = text ? json_parse(text, len, NULL) : NULL;

    free(text);
    free(path);
    return j;
}

/* ---- text ---------------------------------------------------------------------- */

static void print_value(const char *key, const struct json *v)
{
    switch (v->type) {
    case JSON_NUMBER:
        if (v->whole)
            printf("  %-16s %lld\n", key, (long long)v->integer);
        else
            printf("  %-16s %.6g\n", key, v->number);
        break;
    case JSON_STRING:
        printf("  %-16s %s\n", key, v->string);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        printf("  %-16s %s\n", key, v->type == JSON_TRUE ? "yes" : "no");
        break;
    default: /* details */
        break;
    }
}

static void print_summary(const char *title, const struct json *j)
{
    if (!j || j->type != JSON_OBJECT)
        return;
    printf("\n%s\n", title);
    for (size_t i = 0; i < j->n; i++)
        print_value(j->keys[i], &j->items[i]);
    const struct json *warnings = json_get(j, "warnings");
    for (size_t i = 0; warnings && warnings->type == JSON_ARRAY && i < warnings->n; i++)
        if (warnings->items[i].type == JSON_STRING)
            printf("  warning: %s\n", warnings->items[i].string);
}

static void print_run(const struct status *s, size_t k, double base)
{
    const struct info *info = &s->runs[k];

    printf("%03zu   %-10s %-8s", k, k ? s->campaign->runs[k].node : "baseline",
           state_names[info->state]);
    if (info->state == STATE_DONE) {
        printf(" %9.3f", info->seconds);
        if (base > 0)
            printf(" %9.2f", info->seconds / base);
        else
            printf(" %9s", "-");
        printf(" %7lld", (long long)info->holds);
        if (info->timed_out)
            printf(" (%lld timed out)", (long long)info->timed_out);
    } else if (*info->why) {
        printf(" %s", info->why);
    }
    putchar('\n');
}

static void print(const struct status *s, const struct json *merge, const struct json *replay)
{
    const struct campaign *c = s->campaign;
    double base = s->runs[0].state == STATE_DONE ? s->runs[0].seconds : 0, total = 0;
    long long holds = 0;

    printf("campaign '%s': %s\n", c->dir, overall_names[s->overall]);
    printf("script %s, %ld ranks, %zu of %zu runs done\n\n", c->script, c->ranks,
           s->count[STATE_DONE], c->nruns);
    printf("%-5s %-10s %-8s %9s %9s %7s\n", "RUN", "NODE", "STATE", "SECONDS", "SLOWDOWN", "HOLDS");
    for (size_t k = 0; k < c->nruns; k++) {
        print_run(s, k, base);
        total += s->runs[k].seconds;
        holds += s->runs[k].holds;
    }
    printf("%-5s %-10s %-8s %9.3f %9s %7lld\n", "all", "", "", total, "", holds);
    for (size_t i = 0; i < c->notes.n; i++)
        printf("note: %s\n", c->notes.v[i]);
    print_summary("store", merge);
    print_summary("replay", replay);
}

/* ---- JSON ----------------------------------------------------------------------- */

static void put_json(FILE *f, const struct json *j)
{
    if (!j || j->type == JSON_NULL)
        fputs("null", f);
    else if (j->type == JSON_NUMBER && j->whole)
        fprintf(f, "%lld", (long long)j->integer);
    else if (j->type == JSON_NUMBER)
        fprintf(f, "%.17g", j->number);
    else if (j->type == JSON_STRING)
        pt_json_string(f, j->string);
    else if (j->type == JSON_TRUE || j->type == JSON_FALSE)
        fputs(j->type == JSON_TRUE ? "true" : "false", f);
    else {
        fputc(j->type == JSON_ARRAY ? '[' : '{', f);
        for (size_t i = 0; i < j->n; i++) {
            fputs(i ? ", " : "", f);
            if (j->type == JSON_OBJECT) {
                pt_json_string(f, j->keys[i]);
                fputs(": ", f);
            }
            put_json(f, &j->items[i]);
        }
        fputc(j->type == JSON_ARRAY ? ']' : '}', f);
    }
}

static void print_json(const struct status *s, const struct json *merge, const struct json *replay)
{
    fputs("{\"status\": ", stdout);
    status_print_json(stdout, s);
    fputs(", \"store\": ", stdout);
    put_json(stdout, merge);
    fputs(", \"replay\": ", stdout);
    put_json(stdout, replay);
    fputs("}\n", stdout);
}

int cmd_report(int argc, char **argv)
{
    struct status s;
    struct pt_err err;
    int json = 0, code = 0, asked;
    const char *dir = parse_dir_args(argc, argv, help, &json, NULL, &code);

    if (!dir)
        return code;
    if (status_get(&s, dir, &asked, &err)) {
        /* A report can be read long after, where there is no Slurm. */
        struct campaign *c = asked ? campaign_load(dir, &err) : NULL;
        if (!c)
            return complain("%s", err.text);
        complain("%s: taken as if no job were left", err.text);
        status_find(&s, c, &(struct queue){0});
    }
    struct json *merge = read_summary(s.campaign, "merge");
    struct json *replay = s.campaign->replay ? read_summary(s.campaign, "replay") : NULL;
    (json ? print_json : print)(&s, merge, replay);
    json_destroy(merge);
    json_destroy(replay);
    status_clear(&s);
    return EXIT_DONE;
}
