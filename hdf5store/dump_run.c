/*
 * A run file as text: every item as it is, in the order of the file.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/json.h"
#include "hdf5store/dump.h"
#include "hdf5store/format.h"
#include "hdf5store/map.h"

static const char *const states[] = {
    [PT_STATE_BLOCKED] = "blocked",
    [PT_STATE_GONE] = "gone",
    [PT_STATE_BUSY] = "busy",
    [PT_STATE_ASSUMED] = "assumed",
};
static const char *const meta_keys[] = {
    "host",   "job",  "step", "array_job", "array_task", "restart", "nhosts",   "hostid",
    "ntasks", "user", "uid",  "spec",      "note",       "version", "realtime", "monotonic",
};

struct seen {
    struct pt_name name;
    uint64_t start;
    uint64_t events;
};

struct dumper {
    const struct dump_options *o;
    FILE *out;
    struct pt_reader *r;
    struct map rows; /* number in the file -> row of `nodes` */
    struct seen *nodes;
    size_t nnodes;
    size_t printed; /* JSON items */
    int ended;
};

static int is_wanted(const struct dumper *d, const struct pt_name *name)
{
    return !d->o->one_node || !pt_name_compare(name, &d->o->node);
}

static void begin_json_item(struct dumper *d, const char *kind, const struct pt_name *name)
{
    char buf[PT_NAME_LEN];

    fprintf(d->out, "%s{\"item\":\"%s\",\"node\":\"%s\"", d->printed++ ? ",\n" : "", kind,
            pt_name_format(buf, name));
}

static void print_meta(const struct dumper *d)
{
    const char *comma = "";

    for (size_t i = 0; i < sizeof(meta_keys) / sizeof(meta_keys[0]); i++) {
        const char *value = pt_reader_meta(d->r, meta_keys[i]);
        if (!value)
            continue;
        if (d->o->json) {
            fprintf(d->out, "%s\"%s\":", comma, meta_keys[i]);
            pt_json_string(d->out, value);
            comma = ",";
        } else {
            fprintf(d->out, "# %s=%s\n", meta_keys[i], value);
        }
    }
}

/* ---- items ----------------------------------------------------------------------- */

static void print_node(struct dumper *d, const struct pt_node *node)
{
    char name[PT_NAME_LEN];

    if (d->o->json) {
        begin_json_item(d, "node", &node->name);
        fprintf(d->out, ",\"pid\":%d,\"tid\":%d,\"start\":%" PRIu64 ",\"exe\":", node->pid,
                node->tid, node->start);
        pt_json_string(d->out, node->exe ? node->exe : "");
        fputs(",\"cwd\":", d->out);
        pt_json_string(d->out, node->cwd ? node->cwd : "");
        putc('}', d->out);
        return;
    }
    fprintf(d->out, "# node %s (pid %d, tid %d, exe %s, cwd %s)\n",
            pt_name_format(name, &node->name), node->pid, node->tid, node->exe ? node->exe : "?",
            node->cwd ? node->cwd : "?");
}

static int add_node(struct dumper *d, uint32_t number, const struct pt_node *node,
                    struct pt_err *err)
{
    struct seen *nodes = realloc(d->nodes, (d->nnodes + 1) * sizeof(*nodes));

    if (nodes)
        d->nodes = nodes;
    if (!nodes || map_put(&d->rows, number, d->nnodes) < 0)
        return pt_err_set(err, "not enough memory");
    nodes[d->nnodes++] = (struct seen){node->name, node->start, 0};
    if (is_wanted(d, &node->name))
        print_node(d, node);
    return 0;
}

static void print_event_text(const struct dumper *d, const struct seen *node,
                             const struct format_event *f, const char *class)
{
    const struct pt_event *ev = &f->event;
    char name[PT_NAME_LEN];

    fprintf(d->out, "%s:%" PRIu64 " %.6f %-4s ", pt_name_format(name, &node->name),
            node->events - 1, (int64_t)(ev->begin - node->start) / 1e9, class);
    format_call(d->out, f, 0);
    format_result(d->out, f);
    if (ev->cpu)
        fprintf(d->out, " cpu=%.6f", ev->cpu / 1e9);
    if (ev->hold)
        fprintf(d->out, " hold=%.6f", ev->hold / 1e9);
    if (ev->waited)
        fprintf(d->out, " waited=%.6f", ev->waited / 1e9);
    fputs(ev->flags & PT_EV_INNER ? " inner\n" : "\n", d->out);
}

static void print_event_json(struct dumper *d, const struct seen *node,
                             const struct format_event *f, const char *class)
{
    const struct pt_event *ev = &f->event;

    begin_json_item(d, "event", &node->name);
    fprintf(d->out, ",\"event\":%" PRIu64 ",\"class\":\"%s\",", node->events - 1, class);
    format_json(d->out, f, 0);
    fprintf(d->out, ",\"cpu_ns\":%" PRIu64 ",\"hold_ns\":%" PRIu64, ev->cpu, ev->hold);
    if (ev->polls)
        fprintf(d->out, ",\"polls\":%" PRIu64 ",\"waited_ns\":%" PRIu64, ev->polls, ev->waited);
    fprintf(d->out, ",\"inner\":%s}", ev->flags & PT_EV_INNER ? "true" : "false");
}

static void print_event(struct dumper *d, struct seen *node, const struct pt_event *ev)
{
    struct format_event f = {.call = pt_reader_call(d->r, ev->op), .event = *ev};
    uint64_t number = node->events++;
    const char *class = pt_class_names[pt_event_class(f.call, ev)];

    if (!is_wanted(d, &node->name) || number < d->o->first || number > d->o->last)
        return;
    if (d->o->json)
        print_event_json(d, node, &f, class);
    else
        print_event_text(d, node, &f, class);
}

static void print_hold(struct dumper *d, const struct pt_hold *hold)
{
    char name[PT_NAME_LEN];

    if (!is_wanted(d, &hold->name))
        return;
    if (d->o->json) {
        begin_json_item(d, "hold", &hold->name);
        fprintf(d->out, ",\"io_event\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"timed_out\":%s,\"peers\":[",
                hold->io_event, hold->ns, hold->timed_out ? "true" : "false");
    } else {
        fprintf(d->out, "HOLD(%s:%" PRIu64 ") <%.6f>%s", pt_name_format(name, &hold->name),
                hold->io_event, hold->ns / 1e9, hold->timed_out ? " timed out" : "");
    }
    for (size_t i = 0; i < hold->npeers; i++) {
        const struct pt_hold_peer *p = &hold->peers[i];
        pt_name_format(name, &p->name);
        if (d->o->json)
            fprintf(d->out, "%s{\"node\":\"%s\",\"io_done\":%" PRIu64 ",\"state\":\"%s\"}",
                    i ? "," : "", name, p->io_done, states[p->state]);
        else
            fprintf(d->out, "%s %s:%" PRIu64 " %s", i ? "," : ":", name, p->io_done,
                    states[p->state]);
    }
    fputs(d->o->json ? "]}" : "\n", d->out);
}

static void print_loss(struct dumper *d, const struct seen *node, const struct pt_loss *loss)
{
    char name[PT_NAME_LEN];

    if (!is_wanted(d, &node->name))
        return;
    if (d->o->json) {
        begin_json_item(d, "loss", &node->name);
        fprintf(d->out, ",\"after\":%" PRIu64 ",\"count\":%" PRIu64 "}", loss->after, loss->count);
    } else {
        fprintf(d->out, "LOSS(%s:%" PRIu64 ") %" PRIu64 " events\n",
                pt_name_format(name, &node->name), loss->after, loss->count);
    }
}

static int print_item(struct dumper *d, const struct pt_item *item, struct pt_err *err)
{
    const uint64_t *row = NULL;

    if (item->kind == PT_ITEM_EVENT || item->kind == PT_ITEM_LOSS) {
        row = map_get(&d->rows, item->node);
        if (!row)
            return pt_err_set(err, "run file '%s' is damaged: events of an unknown node",
                              d->o->file);
    }
    switch (item->kind) {
    case PT_ITEM_NODE:
        return add_node(d, item->node, &item->info, err);
    case PT_ITEM_EVENT:
        print_event(d, &d->nodes[*row], &item->event);
        break;
    case PT_ITEM_HOLD:
        print_hold(d, &item->hold);
        break;
    case PT_ITEM_LOSS:
        print_loss(d, &d->nodes[*row], &item->loss);
        break;
    case PT_ITEM_END:
        d->ended = 1;
    }
    return 0;
}

static int print_items(struct dumper *d, struct pt_err *err)
{
    struct pt_item item;
    int rc;

    while ((rc = pt_reader_next(d->r, &item, err)) > 0 && !ferror(d->out))
        if (print_item(d, &item, err) < 0)
            return -1;
    return rc < 0 ? -1 : 0;
}

int dump_run(const struct dump_options *o, FILE *out, struct pt_err *err)
{
    struct dumper d = {.o = o, .out = out};
    int rc;

    d.r = pt_reader_open(o->file, err);
    if (!d.r)
        return -1;
    fputs(o->json ? "{\"meta\":{" : "", out);
    print_meta(&d);
    fputs(o->json ? "},\"items\":[" : "", out);
    rc = print_items(&d, err);
    if (o->json)
        fprintf(out, "],\"complete\":%s}\n", d.ended ? "true" : "false");
    else if (rc == 0)
        fputs(d.ended ? "# complete\n" : "# cut off here\n", out);
    map_free(&d.rows);
    free(d.nodes);
    pt_reader_close(d.r);
    return rc;
}
