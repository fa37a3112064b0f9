/*
 * The plan of a campaign: just these I/Os are held.  A line for each, "NODE EVENT": the
 * node's name, and how many I/Os it has done before.  '#' begins a comment.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

#define MAX_ENTRIES 1000000

static int order(const void *a, const void *b)
{
    const struct pt_plan_entry *x = a, *y = b;
    int by_name = pt_name_compare(&x->name, &y->name);
    return by_name ? by_name : (x->io_event > y->io_event) - (x->io_event < y->io_event);
}

/* 1: an entry, 0: an empty line, -1: neither. */
static int read_line(char *line, struct pt_plan_entry *entry)
{
    char name[64], rest[2];
    line[strcspn(line, "#\n")] = 0;
    *entry = (struct pt_plan_entry){0};
    int n = sscanf(line, "%63s %lu %1s", name, &entry->io_event, rest);
    if (n <= 0)
        return 0;
    if (n != 2)
        return -1;
    int32_t *part[] = {&entry->name.rank, &entry->name.process, &entry->name.thread};
    char *at = name;
    for (int i = 0; i < 3; i++) {
        char *end;
        long v = strtol(at, &end, 10);
        if (end == at || v < 0 || v > INT32_MAX)
            return -1;
        *part[i] = (int32_t)v;
        if (!*end)
            return i == 0 || i == 2 ? 1 : -1;
        if (*end != '.')
            return -1;
        at = end + 1;
    }
    return -1;
}

static int read_plan(struct wd *wd, FILE *f, struct pt_err *err)
{
    char line[256];
    size_t room = 0;
    for (int number = 1; fgets(line, sizeof(line), f); number++) {
        struct pt_plan_entry entry;
        int rc = read_line(line, &entry);
        if (rc < 0)
            return pt_err_set(err, "'%s', line %d: not 'NODE EVENT'", wd->spec.plan, number);
        if (!rc)
            continue;
        if (wd->nplan == MAX_ENTRIES)
            return pt_err_set(err, "'%s': more than %d I/Os", wd->spec.plan, MAX_ENTRIES);
        if (wd->nplan == room) {
            room = room ? 2 * room : 256;
            struct pt_plan_entry *more = realloc(wd->plan, room * sizeof(*more));
            if (!more)
                return pt_err_errno(err, "cannot keep '%s'", wd->spec.plan);
            wd->plan = more;
        }
        wd->plan[wd->nplan++] = entry;
    }
    if (ferror(f))
        return pt_err_errno(err, "cannot read '%s'", wd->spec.plan);
    if (wd->nplan)
        qsort(wd->plan, wd->nplan, sizeof(*wd->plan), order);
    return 0;
}

int wd_plan_read(struct wd *wd, struct pt_err *err)
{
    if (!*wd->spec.plan)
        return 0;
    FILE *f = fopen(wd->spec.plan, "re");
    if (!f)
        return pt_err_errno(err, "cannot read '%s'", wd->spec.plan);
    int rc = read_plan(wd, f, err);
    fclose(f);
    return rc;
}

int wd_plan_write(const struct wd *wd, int fd, uint64_t offset)
{
    const char *at = (const char *)wd->plan;
    size_t left = wd->nplan * sizeof(*wd->plan);
    while (left) {
        ssize_t n = pwrite(fd, at, left, (off_t)offset);
        if (n <= 0)
            return -1;
        at += n;
        left -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}
