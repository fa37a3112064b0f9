#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "replay/node.h"

/* What an event is about: its file as the trace names it, or else its descriptor. */
static void print_object(const struct node_run *r, const struct pt_store_event *ev, FILE *out)
{
    if (ev->file != PT_NO_FILE)
        fputs(pt_store_file(r->common->plan->store, ev->file)->path, out);
    else
        fprintf(out, "descriptor %d", ev->fd);
}

static void print_result(FILE *out, int64_t ret, int err)
{
    if (ret < 0)
        fprintf(out, "%s", strerror(err));
    else
        fprintf(out, "%" PRId64, ret);
}

static void print_diff(const struct node_run *r, const struct node_diff *d, const char *prefix,
                       FILE *out)
{
    const struct pt_store_event *ev = &r->node->events[d->event];
    char name[PT_NAME_LEN];

    fprintf(out, "%s: node %s event %" PRIu64 " %s '", prefix,
            pt_name_format(name, &r->node->info->name), d->event,
            plan_call(r->common->plan, ev)->name);
    print_object(r, ev, out);
    fputs("': ", out);
    if (r->node->steps[d->event].action == PLAN_UNSUPPORTED) {
        fputs("this call cannot be replayed\n", out);
        return;
    }
    print_result(out, d->ret, d->err);
    fputs(", in the trace ", out);
    print_result(out, ev->err ? -1 : ev->ret, ev->err);
    if (d->ret < 0 && d->err == EINVAL && ev->oflags & O_DIRECT)
        fputs(" (the file system refuses O_DIRECT)", out);
    fputc('\n', out);
}

static void print_diffs(const struct node_run *r, const struct node_diffs *diffs, size_t max,
                        const char *prefix, FILE *out)
{
    for (size_t i = 0; i < max && i < diffs->count && i < NODE_MAX_DIFFS; i++)
        print_diff(r, &diffs->first[i], prefix, out);
}

void node_print_mismatches(const struct node_run *r, size_t max, const char *prefix, FILE *out)
{
    print_diffs(r, &r->mismatches, max, prefix, out);
}

void node_print_errors(const struct node_run *r, size_t max, const char *prefix, FILE *out)
{
    print_diffs(r, &r->errors, max, prefix, out);
}
