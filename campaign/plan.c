#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "campaign/plan.h"
#include "campaign/script.h"
#include "common/spec.h"

/* ---- the baseline ------------------------------------------------------------ */

/* Node numbers of one file -> our nodes. */
struct map {
    size_t *index;
    size_t n;
};

#define NOWHERE SIZE_MAX

static void add_node(struct plan *p, struct map *map, uint32_t number, const struct pt_name *name)
{
    if (number >= map->n) {
        size_t n = (size_t)number + 1;
        map->index = xrealloc(map->index, n, sizeof(*map->index));
        while (map->n < n)
            map->index[map->n++] = NOWHERE;
    }
    p->nodes = xrealloc(p->nodes, p->n + 1, sizeof(*p->nodes));
    p->nodes[p->n] = (struct plan_node){.name = *name};
    map->index[number] = p->n++;
}

static void add_event(struct plan *p, const struct map *map, const struct pt_reader *r,
                      const struct pt_item *item)
{
    const struct pt_call_desc *call = pt_reader_call(r, item->event.op);

    if (!call || item->node >= map->n || map->index[item->node] == NOWHERE)
        return;
    if (pt_event_class(call, &item->event) == PT_CLASS_IO && !(item->event.flags & PT_EV_INNER))
        p->nodes[map->index[item->node]].io++;
}

/* All files must be of one step: a second srun on other hosts ends up beside the first. */
static int check_step(const struct pt_reader *r, const char *path, char **step, struct pt_err *err)
{
    const char *own = pt_reader_meta(r, "step");

    if (!own)
        return 0;
    if (!*step)
        *step = xstrdup(own);
    if (strcmp(*step, own))
        return pt_err_set(err, "cannot use '%s': it is of step %s, others of step %s", path, own,
                          *step);
    return 0;
}

int plan_add_file(struct plan *p, const char *path, char **step, struct pt_err *err)
{
    struct map map = {0};
    struct pt_item item;
    struct pt_reader *r = pt_reader_open(path, err);

    if (!r)
        return -1;
    int rc = check_step(r, path, step, err);
    while (rc == 0 && (rc = pt_reader_next(r, &item, err)) > 0) {
        rc = 0;
        if (item.kind == PT_ITEM_NODE)
            add_node(p, &map, item.node, &item.info.name);
        else if (item.kind == PT_ITEM_EVENT)
            add_event(p, &map, r, &item);
        else if (item.kind == PT_ITEM_END)
            break;
    }
    pt_reader_close(r);
    free(map.index);
    return rc;
}

static int compare_nodes(const void *a, const void *b)
{
    return pt_name_compare(&((const struct plan_node *)a)->name,
                           &((const struct plan_node *)b)->name);
}

static bool is_run_file(const char *name)
{
    size_t n = strlen(name), suffix = strlen(PT_RUN_SUFFIX);
    return *name != '.' && n > suffix && strcmp(name + n - suffix, PT_RUN_SUFFIX) == 0;
}

int plan_read(struct plan *p, const char *rundir, struct pt_err *err)
{
    char *step = NULL;
    int rc = 0, files = 0;
    DIR *dir = opendir(rundir);

    *p = (struct plan){0};
    if (!dir)
        return pt_err_errno(err, "cannot open run directory '%s'", rundir);
    for (struct dirent *entry; !rc && (entry = readdir(dir));) {
        if (!is_run_file(entry->d_name))
            continue;
        char *path = xasprintf("%s/%s", rundir, entry->d_name);
        rc = plan_add_file(p, path, &step, err);
        files++;
        free(path);
    }
    closedir(dir);
    free(step);
    if (!rc && !files)
        rc = pt_err_set(err, "cannot use run directory '%s': no run file in it", rundir);
    if (rc) {
        plan_clear(p);
        return -1;
    }
    if (p->n)
        qsort(p->nodes, p->n, sizeof(*p->nodes), compare_nodes);
    for (size_t i = 0; i < p->n; i++)
        p->ranks += i == 0 || p->nodes[i].name.rank != p->nodes[i - 1].name.rank;
    return 0;
}

void plan_clear(struct plan *p)
{
    free(p->nodes);
    *p = (struct plan){0};
}

/* ---- which nodes ------------------------------------------------------------- */

/* Takes a name off the list: 1, 0 at the end, -1 if it is wrong. */
static int next_name(const char **list, struct pt_name *name)
{
    char word[PT_NAME_LEN];
    size_t n = strcspn(*list, ",");
    struct pt_spec spec;

    if (n == 0 || n >= sizeof(word))
        return -1;
    memcpy(word, *list, n);
    word[n] = '\0';
    *list += n;
    if (**list == ',')
        (*list)++;
    else
        *list = NULL;
    /* A node's name is what throttle: takes. */
    char *item = xasprintf("throttle:%s", word);
    pt_spec_init(&spec);
    int rc = pt_spec_parse(&spec, item, NULL);
    free(item);
    if (rc || spec.throttle != PT_THROTTLE_NODE)
        return -1;
    *name = (struct pt_name){spec.node[0], spec.node[1], spec.node[2]};
    return 1;
}

int plan_check_nodes(const char *nodes, struct pt_err *err)
{
    struct pt_name name;

    if (strcmp(nodes, "all") == 0)
        return 0;
    for (const char *p = nodes; p;) {
        if (next_name(&p, &name) < 0)
            return pt_err_set(err, "must be 'all' or nodes such as 0,2,5 or 0.0.1,1.0.1");
    }
    return 0;
}

static const struct plan_node *find_node(const struct plan *p, const struct pt_name *name)
{
    for (size_t i = 0; i < p->n; i++)
        if (pt_name_compare(&p->nodes[i].name, name) == 0)
            return &p->nodes[i];
    return NULL;
}

static bool is_planned(const struct campaign *c, const char *node)
{
    for (size_t i = 1; i < c->nruns; i++)
        if (strcmp(c->runs[i].node, node) == 0)
            return true;
    return false;
}

int plan_make_runs(const struct plan *p, struct campaign *c, struct pt_err *err)
{
    char text[PT_NAME_LEN];
    struct pt_name name;
    int all = strcmp(c->nodes, "all") == 0;

    campaign_reset_runs(c);
    c->ranks = p->ranks;
    for (size_t i = 0; all && i < p->n; i++)
        if (p->nodes[i].io)
            campaign_add_run(c, pt_name_format(text, &p->nodes[i].name));
    for (const char *list = all ? NULL : c->nodes; list;) {
        if (next_name(&list, &name) < 0)
            return pt_err_set(err, "wrong list of nodes '%s'", c->nodes);
        pt_name_format(text, &name);
        const struct plan_node *node = find_node(p, &name);
        if (!node || !node->io)
            list_take(&c->notes, xasprintf("node %s %s", text,
                                           node ? "does no I/O" : "is not in the baseline run"));
        else if (!is_planned(c, text))
            campaign_add_run(c, text);
    }
    if (c->nruns == 1 && !all)
        return pt_err_set(err, "none of the nodes '%s' does I/O in the baseline run", c->nodes);
    if (c->nruns == 1)
        list_add(&c->notes, "no node does I/O");
    if (c->nruns > RUNS_MAX)
        return pt_err_set(err, "%zu nodes do I/O, more than %d: choose with --nodes", c->nruns - 1,
                          RUNS_MAX - 1);
    c->planned = 1;
    return 0;
}

/* ---- SPEC --------------------------------------------------------------------- */

int plan_check_spec(const char *items, struct pt_err *err)
{
    struct pt_spec spec, before;

    pt_spec_init(&spec);
    before = spec;
    if (pt_spec_parse(&spec, items, err))
        return -1;
    if (spec.off || spec.throttle != PT_THROTTLE_NONE || strcmp(spec.out, before.out))
        return pt_err_set(err, "off, throttle: and out= are the campaign's own");
    return 0;
}

char *plan_spec(const struct campaign *c, size_t k, struct pt_err *err)
{
    struct pt_spec spec;
    struct pt_err reason;
    char period[40] = "", expanded[PT_SPEC_OUT_MAX];
    static const struct pt_spec_ids ids = {.user = "", .name = ""};
    char *rundir = campaign_path(c, "runs/%03zu", k);
    char *out = script_spec_value(rundir);
    const char *items = c->spec && *c->spec ? c->spec : NULL;

    if (c->period)
        snprintf(period, sizeof(period), "period=%ld,", c->period);
    /* A later item wins; out= comes last, for no separator to follow the name. */
    char *text =
        xasprintf("discover=hold,%s%sthrottle:%s,%sout=%s", items ? items : "", items ? "," : "",
                  c->runs[k].node ? c->runs[k].node : "none", period, out);
    pt_spec_init(&spec);
    int rc = pt_spec_parse(&spec, text, &reason);
    if (!rc)
        rc = pt_spec_expand(spec.out, &ids, expanded, sizeof(expanded), &reason);
    if (!rc && (strcmp(expanded, rundir) || spec.off ||
                (spec.throttle == PT_THROTTLE_NODE) != (c->runs[k].node != NULL)))
        rc = pt_err_set(&reason, "its items are not read as they were meant");
    if (rc) {
        pt_err_set(err, "cannot make the SPEC of run %03zu: %s", k, reason.text);
        free(text);
        text = NULL;
    }
    free(out);
    free(rundir);
    return text;
}
