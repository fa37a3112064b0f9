/*
 * What must be there before a replay: which files, and how large.  The events of
 * all nodes are followed in the order of time.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "hdf5store/merge.h"

struct touch {
    const struct pt_store_event *event;
    const struct merge_named *named; /* of an event with names */
    uint32_t process;
    size_t order; /* of those that began at the same time */
};

struct file_state {
    int known;      /* whether it was there at first is decided */
    int open_first; /* ... by an open with O_CREAT, which lasted until: */
    uint64_t first_end;
    uint64_t written; /* end of what the trace wrote into it */
};

struct survey {
    const struct merge *m;
    struct pt_store_file *files;
    struct file_state *states;
    size_t nfiles;
    struct map positions; /* process and handle -> file position */
};

static int compare_touches(const void *pa, const void *pb)
{
    const struct touch *a = pa, *b = pb;

    if (a->event->begin_ns != b->event->begin_ns)
        return a->event->begin_ns < b->event->begin_ns ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* ---- was it there? ---------------------------------------------------------------- */

static void decide(struct survey *s, uint32_t file, int made, uint64_t size)
{
    if (file >= s->nfiles || s->states[file].known)
        return;
    s->states[file].known = 1;
    s->files[file].made = made;
    s->files[file].size = made ? 0 : size;
}

/* The first open creates if asked to and the file is empty then (existed or not: no matter). */
static void touch_open(struct survey *s, const struct touch *t)
{
    const struct pt_store_event *e = t->event;
    struct file_state *state = &s->states[e->file];
    struct pt_store_file *file = &s->files[e->file];
    int creates = e->oflags & O_CREAT && t->named->fsize == 0;

    if (e->oflags & O_DIRECTORY && (e->oflags & O_TMPFILE) != O_TMPFILE)
        file->dir = 1;
    if (!file->ino) {
        file->dev = t->named->dev;
        file->ino = t->named->ino;
    }
    if (!state->known) {
        state->open_first = (e->oflags & O_CREAT) != 0;
        state->first_end = e->begin_ns + e->dur_ns;
        decide(s, e->file, creates || (e->oflags & O_EXCL && e->oflags & O_CREAT), t->named->fsize);
    } else if (state->open_first && e->begin_ns < state->first_end && creates) {
        /* another node's open at the same time found it empty: so it was */
        file->made = 1;
        file->size = 0;
    }
}

static void touch_failed(struct survey *s, const struct touch *t)
{
    const struct pt_store_event *e = t->event;

    if (e->err == ENOENT && e->file2 == PT_NO_FILE)
        decide(s, e->file, 1, 0);
    else if (e->err == EEXIST)
        decide(s, e->file, 0, t->named ? t->named->fsize : 0);
}

static void touch_name(struct survey *s, const struct touch *t)
{
    const struct pt_store_event *e = t->event;

    switch (s->m->calls[e->op].replay) {
    case PT_REPLAY_OPEN:
        touch_open(s, t);
        break;
    case PT_REPLAY_MKDIR:
        decide(s, e->file, 1, 0);
        s->files[e->file].dir = 1;
        break;
    case PT_REPLAY_RMDIR:
        s->files[e->file].dir = 1;
        decide(s, e->file, 0, 0);
        break;
    case PT_REPLAY_RENAME:
        decide(s, e->file, 0, 0);
        decide(s, e->file2, 1, 0);
        break;
    default:
        decide(s, e->file, 0, 0);
    }
}

/* ---- how large? ----------------------------------------------------------------------- */

static uint64_t key_of(const struct touch *t, uint32_t handle)
{
    return (uint64_t)t->process << 32 | handle;
}

/* A copy shares its original's position: it is kept once, under the original's key. */
#define COPY_OF (1ULL << 63)

static uint64_t *position_of(struct survey *s, const struct touch *t)
{
    uint64_t *at = map_get(&s->positions, key_of(t, t->event->handle));

    for (int hops = 0; at && *at & COPY_OF && hops < 100; hops++)
        at = map_get(&s->positions, key_of(t, (uint32_t)*at));
    return at && !(*at & COPY_OF) ? at : NULL;
}

static void cover(struct survey *s, const struct pt_store_event *e, uint64_t end, int writes)
{
    struct file_state *state = &s->states[e->file];
    struct pt_store_file *file = &s->files[e->file];

    if (writes) {
        if (state->written < end)
            state->written = end;
    } else if (!file->made && end > state->written && end > file->size) {
        file->size = end;
    }
}

static void touch_data(struct survey *s, const struct touch *t, enum pt_replay replay)
{
    const struct pt_store_event *e = t->event;
    int writes = replay == PT_REPLAY_WRITE || replay == PT_REPLAY_PWRITE;
    uint64_t *at;

    if (e->ret < 0)
        return;
    if (replay == PT_REPLAY_PREAD || replay == PT_REPLAY_PWRITE) {
        if (e->ret > 0 && e->off >= 0 && e->off <= INT64_MAX - e->ret)
            cover(s, e, (uint64_t)e->off + e->ret, writes);
        return;
    }
    at = position_of(s, t);
    if (!at)
        return;
    if (replay == PT_REPLAY_SEEK) {
        *at = e->ret;
    } else if (e->ret > 0 && *at <= (uint64_t)(INT64_MAX - e->ret)) {
        *at += e->ret;
        cover(s, e, *at, writes);
    }
}

static int touch_handle(struct survey *s, const struct touch *t, enum pt_replay replay)
{
    const struct pt_store_event *e = t->event;

    switch (replay) {
    case PT_REPLAY_OPEN:
        return e->handle ? map_put(&s->positions, key_of(t, e->handle), 0) : 0;
    case PT_REPLAY_DUP:
        return e->handle2 && e->handle2 != e->handle
                   ? map_put(&s->positions, key_of(t, e->handle2), COPY_OF | e->handle)
                   : 0;
    case PT_REPLAY_TRUNCATE:
        if (e->len > 0)
            cover(s, e, e->len, 1);
        return 0;
    case PT_REPLAY_READ:
    case PT_REPLAY_WRITE:
    case PT_REPLAY_PREAD:
    case PT_REPLAY_PWRITE:
    case PT_REPLAY_SEEK:
        touch_data(s, t, replay);
        return 0;
    default:
        return 0;
    }
}

static int touch(struct survey *s, const struct touch *t)
{
    if (t->event->file >= s->nfiles)
        return 0;
    if (t->event->err) {
        touch_failed(s, t);
        return 0;
    }
    if (t->named && t->named->path != NAMES_NONE)
        touch_name(s, t);
    return touch_handle(s, t, s->m->calls[t->event->op].replay);
}

/* ---- all events in the order of time -------------------------------------------------- */

static void add_touches(struct touch *touches, size_t *n, const struct merge_node *node,
                        uint32_t process)
{
    size_t k = 0;

    for (size_t i = 0; i < node->nevents; i++) {
        const struct merge_named *named = NULL;

        while (k < node->nnamed &&
               (node->named[k].event == MERGE_CHDIR || node->named[k].event < i))
            k++;
        if (k < node->nnamed && node->named[k].event == i)
            named = &node->named[k];
        if (node->events[i].file != PT_NO_FILE) {
            touches[*n] = (struct touch){&node->events[i], named, process, *n};
            ++*n;
        }
    }
}

static struct touch *sort_touches(const struct merge_run *run, size_t *n)
{
    size_t total = 0;
    uint32_t process = 0;
    struct touch *touches;

    for (size_t i = 0; i < run->nnodes; i++)
        total += run->nodes[i].nevents;
    touches = calloc(total + 1, sizeof(*touches));
    if (!touches)
        return NULL;
    *n = 0;
    for (size_t i = 0; i < run->nnodes; i++) {
        const struct pt_name *name = &run->nodes[i].name;
        if (i > 0 && (name->rank != run->nodes[i - 1].name.rank ||
                      name->process != run->nodes[i - 1].name.process))
            process++;
        add_touches(touches, n, &run->nodes[i], process);
    }
    qsort(touches, *n, sizeof(*touches), compare_touches);
    return touches;
}

struct pt_store_file *merge_find_files(const struct merge *m, const struct merge_run *base,
                                       size_t n, struct pt_err *err)
{
    struct survey s = {.m = m, .nfiles = n};
    size_t ntouches = 0;
    struct touch *touches = sort_touches(base, &ntouches);
    int rc = 0;

    s.files = calloc(n + 1, sizeof(*s.files));
    s.states = calloc(n + 1, sizeof(*s.states));
    if (!touches || !s.files || !s.states)
        rc = -1;
    for (size_t i = 0; i < n && rc == 0; i++)
        s.files[i].path = names_text(&m->files, i);
    for (size_t i = 0; i < ntouches && rc == 0; i++)
        rc = touch(&s, &touches[i]);
    if (rc < 0) {
        pt_err_set(err, "not enough memory for the files of '%s'", base->dir);
        free(s.files);
        s.files = NULL;
    }
    map_free(&s.positions);
    free(s.states);
    free(touches);
    return s.files;
}
