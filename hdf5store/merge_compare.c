/*
 * Did two runs make the same I/O?
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/format.h"
#include "hdf5store/merge.h"

/* ---- names --------------------------------------------------------------------- */

static int same_number(uint64_t a, const struct merge_run *run_a, uint64_t b,
                       const struct merge_run *run_b)
{
    return a == b || (a == run_a->job && b == run_b->job) ||
           (a == run_a->array_job && b == run_b->array_job) ||
           (a == run_a->array_task && b == run_b->array_task) ||
           (a == run_a->step && b == run_b->step);
}

int merge_same_name(const char *a, const struct merge_run *run_a, const char *b,
                    const struct merge_run *run_b)
{
    if (!a || !b)
        return a == b;
    if (!strcmp(a, b))
        return 1;
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            char *end_a, *end_b;
            if (!same_number(strtoull(a, &end_a, 10), run_a, strtoull(b, &end_b, 10), run_b))
                return 0;
            a = end_a;
            b = end_b;
        } else if (*a++ != *b++) {
            return 0;
        }
    }
    return *a == *b;
}

/* ---- events ---------------------------------------------------------------------- */

struct side {
    const struct merge *m;
    const struct merge_run *run;
    const struct merge_node *node;
};

static int same_file(const struct side *a, uint32_t file_a, const struct side *b, uint32_t file_b)
{
    if (file_a == file_b)
        return 1;
    return merge_same_name(names_text(&a->m->files, file_a), a->run,
                           names_text(&b->m->files, file_b), b->run);
}

static const char *text_of(const struct side *s, const struct pt_store_event *e)
{
    return e->text ? names_text(&s->run->names, (uint32_t)(e->text - 1)) : NULL;
}

static int same_event(const struct side *a, const struct side *b, size_t i)
{
    const struct pt_store_event *ea = &a->node->events[i], *eb = &b->node->events[i];

    if (strcmp(a->m->calls[ea->op].name, b->m->calls[eb->op].name))
        return 0;
    return ea->len == eb->len && ea->off == eb->off && ea->whence == eb->whence &&
           ea->oflags == eb->oflags && ea->mode == eb->mode && ea->off2 == eb->off2 &&
           merge_same_name(text_of(a, ea), a->run, text_of(b, eb), b->run) &&
           same_file(a, ea->file, b, eb->file) && same_file(a, ea->file2, b, eb->file2);
}

/* The event as ptdump prints it; "nothing" behind the end.  For the caller to free. */
static char *show(const struct side *s, size_t i)
{
    char *text = NULL;
    size_t size;
    FILE *out;

    if (i >= s->node->nevents)
        return strdup("nothing more");
    out = open_memstream(&text, &size);
    if (out) {
        const struct pt_store_event *e = &s->node->events[i];
        struct format_event f;
        format_from_store(&f, &s->m->calls[e->op], e, names_text(&s->m->files, e->file),
                          names_text(&s->m->files, e->file2), text_of(s, e));
        format_call(out, &f, FORMAT_PATHS | FORMAT_NO_DIRFD);
        fclose(out);
    }
    return text;
}

static int report(const struct side *a, const struct side *b, size_t i, struct pt_err *err)
{
    char *left = show(a, i), *right = show(b, i), name[PT_NAME_LEN];
    size_t both = (left ? strlen(left) : 0) + (right ? strlen(right) : 0);
    int most = both > 220 ? 110 : 220; /* so that the second side is shown, too */

    pt_err_set(err, "non-deterministic: node %s, event %zu: %.*s in %.50s, %.*s in %.50s",
               pt_name_format(name, &a->node->name), i, most, left ? left : "?", a->run->dir, most,
               right ? right : "?", b->run->dir);
    free(left);
    free(right);
    return -1;
}

/* Where the node's events end for good: beyond, it may have made more I/O. */
static int ends_early(const struct side *s)
{
    return !s->run->complete || s->node->lost;
}

static int compare_nodes(const struct side *a, const struct side *b, struct pt_err *err)
{
    size_t n = a->node->valid < b->node->valid ? a->node->valid : b->node->valid;

    for (size_t i = 0; i < n; i++)
        if (!same_event(a, b, i))
            return report(a, b, i, err);
    if (a->node->nevents == b->node->nevents || (n == a->node->valid && ends_early(a)) ||
        (n == b->node->valid && ends_early(b)))
        return 0;
    return report(a, b, n, err);
}

static int missing(const struct merge_run *has, const struct merge_run *lacks,
                   const struct merge_node *node, struct pt_err *err)
{
    char name[PT_NAME_LEN];

    return pt_err_set(err,
                      "runs have different nodes: node %s is in %.100s (%zu nodes), "
                      "not in %.100s (%zu nodes)",
                      pt_name_format(name, &node->name), has->dir, has->nnodes, lacks->dir,
                      lacks->nnodes);
}

int merge_compare_runs(const struct merge *m, const struct merge_run *base,
                       const struct merge_run *run, struct pt_err *err)
{
    for (size_t i = 0; i < run->nnodes; i++)
        if (!merge_find_node(base, &run->nodes[i].name) && base->complete)
            return missing(run, base, &run->nodes[i], err);
    for (size_t i = 0; i < base->nnodes; i++) {
        struct side a = {m, base, &base->nodes[i]};
        struct side b = {m, run, merge_find_node(run, &base->nodes[i].name)};

        if (b.node) {
            if (compare_nodes(&a, &b, err) < 0)
                return -1;
        } else if (run->complete) {
            return missing(base, run, &base->nodes[i], err);
        }
    }
    return 0;
}
