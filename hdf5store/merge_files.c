/*
 * What must be there before a replay: which files, and how large.  The events of
 * all nodes are followed in the order of time.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    int opened, followed; /* as a file, or by a call that follows links */
    int read_link;        /* its target was read: of so many bytes */
    uint64_t link_len;
    int moved;        /* a directory that was renamed to this, or a link: not what it seems */
    uint64_t written; /* end of what the trace wrote into it */
};

struct survey {
    const struct merge *m;
    struct pt_store_file *files;
    struct file_state *states;
    uint32_t *links; /* where a symbolic link that the trace made leads, or PT_NO_FILE */
    size_t nfiles;
    struct names flat;    /* the names without "..", by which files are told apart */
    uint32_t *same;       /* file -> the first with the same flat name */
    struct map by_flat;   /* number in `flat` -> file */
    struct map positions; /* process and handle -> file position */
};

static int compare_touches(const void *pa, const void *pb)
{
    const struct touch *a = pa, *b = pb;

    if (a->event->begin_ns != b->event->begin_ns)
        return a->event->begin_ns < b->event->begin_ns ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* ---- names ------------------------------------------------------------------------- */

static int flatten(struct survey *s)
{
    for (size_t i = 0; i < s->nfiles; i++) {
        char *path = merge_flat_path(s->files[i].path);
        uint32_t number = path ? names_add(&s->flat, path) : NAMES_NONE;
        const uint64_t *first;

        free(path);
        if (number == NAMES_NONE)
            return -1;
        first = map_get(&s->by_flat, number);
        s->same[i] = first ? (uint32_t)*first : (uint32_t)i;
        if (!first && map_put(&s->by_flat, number, i) < 0)
            return -1;
    }
    return 0;
}

typedef int parent_fn(struct survey *s, uint32_t parent);

/* Calls fn for each file of the table that is a directory on the way to `file`. */
static int each_parent(struct survey *s, uint32_t file, parent_fn *fn)
{
    char *path = merge_flat_path(s->files[file].path), *slash = path;
    int rc = path ? 0 : -1;

    while (rc == 0 && (slash = strchr(slash + 1, '/'))) {
        uint32_t number;
        const uint64_t *parent;

        *slash = '\0';
        number = names_find(&s->flat, path);
        parent = number == NAMES_NONE ? NULL : map_get(&s->by_flat, number);
        if (parent)
            rc = fn(s, (uint32_t)*parent);
        *slash = '/';
    }
    free(path);
    return rc;
}

/* The file that a name of the trace leads to. */
static uint32_t target_of(const struct survey *s, uint32_t file)
{
    for (int hops = 0; hops < 8 && s->links[file] != PT_NO_FILE; hops++)
        file = s->links[file];
    return file;
}

/* ---- was it there? ---------------------------------------------------------------- */

static int is_moved(struct survey *s, uint32_t parent)
{
    return s->states[parent].moved;
}

/* What lies below a renamed directory or a link was there under another name, if at all. */
static void decide(struct survey *s, uint32_t file, enum pt_store_made made, uint64_t size)
{
    if (s->states[file].known)
        return;
    s->states[file].known = 1;
    s->files[file].made = made;
    if (made == PT_MADE_BEFORE && each_parent(s, file, is_moved))
        s->files[file].made = PT_MADE_UNKNOWN;
    s->files[file].size = made == PT_MADE_BEFORE ? size : 0;
}

static void is_dir(struct survey *s, uint32_t file)
{
    s->files[file].dir = PT_KIND_DIR;
}

/* The first open creates if asked to and the file is empty then (existed or not: no matter). */
static void touch_open(struct survey *s, const struct touch *t, uint32_t f)
{
    const struct pt_store_event *e = t->event;
    struct file_state *state = &s->states[f];
    struct pt_store_file *file = &s->files[f];
    uint64_t fsize = t->named->fsize;
    int creates = e->oflags & O_CREAT && fsize == 0;

    if (e->oflags & O_DIRECTORY || s->m->calls[e->op].replay == PT_REPLAY_OPENDIR)
        is_dir(s, f);
    if (!file->ino) {
        file->dev = t->named->dev;
        file->ino = t->named->ino;
    }
    if (!state->known) {
        state->open_first = (e->oflags & O_CREAT) != 0;
        state->first_end = e->begin_ns + e->dur_ns;
        decide(s, f, creates || (e->oflags & O_EXCL && e->oflags & O_CREAT), fsize);
    } else if (state->open_first && e->begin_ns < state->first_end && creates) {
        /* another node's open at the same time found it empty: so it was */
        file->made = PT_MADE_BY_TRACE;
        file->size = 0;
    } else if (!state->opened && !state->written && file->made == PT_MADE_BEFORE &&
               file->size < fsize) {
        file->size = fsize; /* was only looked at before */
    }
    state->opened = 1;
}

static void touch_exists(struct survey *s, const struct touch *t)
{
    const struct pt_store_event *e = t->event;
    enum pt_replay replay = s->m->calls[e->op].replay;
    uint32_t file = s->same[e->file];

    if (replay == PT_REPLAY_LINK && e->file2 < s->nfiles)
        decide(s, s->same[e->file2], PT_MADE_BEFORE, 0);
    if (replay == PT_REPLAY_RENAME)
        return;
    decide(s, file, PT_MADE_BEFORE, t->named ? t->named->fsize : 0);
    if (replay == PT_REPLAY_MKDIR && !s->states[file].opened)
        is_dir(s, file);
}

static void touch_failed(struct survey *s, const struct touch *t)
{
    const struct pt_store_event *e = t->event;
    enum pt_replay replay = s->m->calls[e->op].replay;
    uint32_t file = s->same[e->file];

    if (replay == PT_REPLAY_NONE)
        return;
    switch (e->err) {
    case ENOENT: /* of two names it is not known which */
        if (e->file2 == PT_NO_FILE)
            decide(s, target_of(s, file), PT_MADE_BY_TRACE, 0);
        break;
    case EEXIST:
        touch_exists(s, t);
        break;
    case EISDIR:
    case ENOTEMPTY:
        if (replay == PT_REPLAY_RENAME || replay == PT_REPLAY_LINK)
            break;
        decide(s, file, PT_MADE_BEFORE, 0);
        is_dir(s, file);
        break;
    case EINVAL:
        if (replay == PT_REPLAY_READLINK)
            decide(s, file, PT_MADE_BEFORE, 0);
        break;
    default:
        break;
    }
}

static void touch_rename(struct survey *s, uint32_t from, uint32_t to)
{
    decide(s, from, PT_MADE_BEFORE, 0);
    decide(s, to, PT_MADE_BY_TRACE, 0);
    s->links[to] = s->links[from];
    s->links[from] = PT_NO_FILE;
    if (s->files[from].dir == PT_KIND_DIR) {
        is_dir(s, to);
        s->states[to].moved = 1;
    }
}

static void touch_removed(struct survey *s, uint32_t file, int dir)
{
    decide(s, file, PT_MADE_BEFORE, 0);
    s->links[file] = PT_NO_FILE;
    if (dir)
        is_dir(s, file);
}

/* Whether the call is about what a link leads to, not about the link. */
static int follows(const struct pt_call_desc *call, const struct pt_store_event *e)
{
    if (e->handle) /* about a descriptor */
        return 0;
    if (call->replay == PT_REPLAY_ATTRIBUTE || call->replay == PT_REPLAY_UTIME)
        if (call->name[0] == 'l' && strncmp(call->name, "list", 4))
            return 0; /* lchown, lutimes, llistxattr ... */
    return call->replay == PT_REPLAY_ACCESS || !(e->oflags & AT_SYMLINK_NOFOLLOW);
}

/* A successful call with a name. */
static void touch_name(struct survey *s, const struct touch *t)
{
    const struct pt_store_event *e = t->event;
    enum pt_replay replay = s->m->calls[e->op].replay;
    uint32_t file = s->same[e->file], file2 = PT_NO_FILE;

    if (e->file2 < s->nfiles)
        file2 = s->same[e->file2];
    switch (replay) {
    case PT_REPLAY_NONE:
        break;
    case PT_REPLAY_OPEN:
    case PT_REPLAY_FOPEN:
    case PT_REPLAY_OPENDIR:
        touch_open(s, t, target_of(s, file));
        break;
    case PT_REPLAY_MKDIR:
        decide(s, file, PT_MADE_BY_TRACE, 0);
        is_dir(s, file);
        break;
    case PT_REPLAY_RMDIR:
        touch_removed(s, file, 1);
        break;
    case PT_REPLAY_UNLINKAT:
        touch_removed(s, file, e->oflags & AT_REMOVEDIR);
        break;
    case PT_REPLAY_UNLINK:
    case PT_REPLAY_REMOVE:
        touch_removed(s, file, 0);
        break;
    case PT_REPLAY_RENAME:
        if (file2 != PT_NO_FILE)
            touch_rename(s, file, file2);
        break;
    case PT_REPLAY_LINK:
        decide(s, file, PT_MADE_BEFORE, 0);
        if (file2 != PT_NO_FILE)
            decide(s, file2, PT_MADE_BY_TRACE, 0);
        break;
    case PT_REPLAY_SYMLINK:
        decide(s, file, PT_MADE_BY_TRACE, 0);
        s->links[file] = file2 == file ? PT_NO_FILE : file2;
        s->states[file].moved = 1;
        break;
    case PT_REPLAY_READLINK:
        decide(s, file, PT_MADE_BEFORE, 0);
        s->states[file].read_link = 1;
        s->states[file].link_len = e->ret;
        break;
    case PT_REPLAY_LSTAT:
        decide(s, file, PT_MADE_BEFORE, 0);
        break;
    default:
        if (follows(&s->m->calls[e->op], e)) {
            file = target_of(s, file);
            s->states[file].followed = 1;
        }
        decide(s, file, PT_MADE_BEFORE, 0);
        if (replay == PT_REPLAY_SCANDIR)
            is_dir(s, file);
    }
}

/* ---- how large? ----------------------------------------------------------------------- */

static uint64_t key_of(const struct touch *t, uint32_t handle)
{
    return (uint64_t)t->process << 32 | handle;
}

/* A copy shares its original's position: it is kept once, under the original's key. */
#define COPY_OF (1ULL << 63)

static uint64_t *position_of(struct survey *s, const struct touch *t, uint32_t handle)
{
    uint64_t *at = map_get(&s->positions, key_of(t, handle));

    for (int hops = 0; at && *at & COPY_OF && hops < 100; hops++)
        at = map_get(&s->positions, key_of(t, (uint32_t)*at));
    return at && !(*at & COPY_OF) ? at : NULL;
}

static void cover(struct survey *s, uint32_t number, uint64_t end, int writes)
{
    struct file_state *state = &s->states[number];
    struct pt_store_file *file = &s->files[number];

    if (writes) {
        if (state->written < end)
            state->written = end;
    } else if (file->made == PT_MADE_BEFORE && end > state->written && end > file->size) {
        file->size = end;
    }
}

static uint32_t file_of(const struct survey *s, uint32_t file)
{
    return target_of(s, s->same[file]);
}

/* `n` bytes at `off`, or at the position if off is negative, which they move. */
static void cover_range(struct survey *s, const struct touch *t, uint32_t file, uint32_t handle,
                        int64_t off, int64_t n, int writes)
{
    uint64_t *at = off < 0 ? position_of(s, t, handle) : NULL;

    if (n <= 0 || file >= s->nfiles)
        return;
    if (off >= 0) {
        if (off <= INT64_MAX - n)
            cover(s, file_of(s, file), (uint64_t)off + n, writes);
    } else if (at && *at <= (uint64_t)(INT64_MAX - n)) {
        *at += n;
        cover(s, file_of(s, file), *at, writes);
    }
}

/* A stream's seek does not say where it came to. */
static void touch_fseek(struct survey *s, const struct touch *t)
{
    const struct pt_store_event *e = t->event;
    uint64_t *at = position_of(s, t, e->handle);
    uint32_t file = file_of(s, e->file);
    int64_t base = 0;

    if (!at || e->ret < 0)
        return;
    if (e->whence == SEEK_CUR)
        base = (int64_t)*at;
    else if (e->whence == SEEK_END)
        base = (int64_t)(s->files[file].size > s->states[file].written ? s->files[file].size
                                                                       : s->states[file].written);
    if (e->off > INT64_MAX - base || base + e->off < 0)
        return;
    *at = (uint64_t)(base + e->off);
}

static void touch_seek(struct survey *s, const struct touch *t)
{
    uint64_t *at = position_of(s, t, t->event->handle);

    if (at && t->event->ret >= 0)
        *at = (uint64_t)t->event->ret;
}

static void touch_copy(struct survey *s, const struct touch *t, int64_t off2)
{
    const struct pt_store_event *e = t->event;

    cover_range(s, t, e->file, e->handle, e->off, e->ret, 0);
    cover_range(s, t, e->file2, e->handle2, off2, e->ret, 1);
}

/*
 * What a call does to the size needed, and to positions.  A mapping needs no more than
 * the size at the open, which counts already: beyond there is nothing to see in it.
 */
static int touch_data(struct survey *s, const struct touch *t, enum pt_replay replay)
{
    const struct pt_store_event *e = t->event;
    int writes = replay == PT_REPLAY_WRITE || replay == PT_REPLAY_FWRITE;

    switch (replay) {
    case PT_REPLAY_OPEN:
    case PT_REPLAY_FOPEN:
        return e->handle ? map_put(&s->positions, key_of(t, e->handle), 0) : 0;
    case PT_REPLAY_DUP:
        return e->handle2 && e->handle2 != e->handle
                   ? map_put(&s->positions, key_of(t, e->handle2), COPY_OF | e->handle)
                   : 0;
    case PT_REPLAY_TRUNCATE:
    case PT_REPLAY_TRUNCATENAME:
        if (e->len > 0)
            cover(s, file_of(s, e->file), e->len, 1);
        return 0;
    case PT_REPLAY_ALLOCATE:
        if (!(e->oflags & FALLOC_FL_KEEP_SIZE) && e->ret == 0 && e->off >= 0)
            cover_range(s, t, e->file, 0, e->off, e->len, 1);
        return 0;
    case PT_REPLAY_PREAD:
    case PT_REPLAY_PWRITE:
        if (e->off >= 0 || e->ret > 0)
            cover_range(s, t, e->file, e->handle, e->off, e->ret, replay == PT_REPLAY_PWRITE);
        return 0;
    case PT_REPLAY_READ:
    case PT_REPLAY_FREAD:
    case PT_REPLAY_WRITE:
    case PT_REPLAY_FWRITE:
        cover_range(s, t, e->file, e->handle, -1, e->ret, writes);
        return 0;
    case PT_REPLAY_SENDFILE:
        touch_copy(s, t, -1);
        return 0;
    case PT_REPLAY_COPYRANGE:
        touch_copy(s, t, e->off2);
        return 0;
    case PT_REPLAY_SEEK:
        touch_seek(s, t);
        return 0;
    case PT_REPLAY_FSEEK:
        touch_fseek(s, t);
        return 0;
    case PT_REPLAY_FTELL:
        if (e->ret > 0)
            touch_seek(s, t);
        return 0;
    case PT_REPLAY_READDIR:
    case PT_REPLAY_REWINDDIR:
        is_dir(s, file_of(s, e->file));
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
    return touch_data(s, t, s->m->calls[t->event->op].replay);
}

/* ---- what all of it tells ------------------------------------------------------------ */

static int parent_is_dir(struct survey *s, uint32_t parent)
{
    if (s->links[parent] == PT_NO_FILE)
        is_dir(s, parent);
    return 0;
}

static int conclude(struct survey *s)
{
    for (size_t i = 0; i < s->nfiles; i++) {
        struct pt_store_file *f = &s->files[i];
        const struct file_state *state = &s->states[i];

        if (s->same[i] != i)
            continue;
        if (!state->known)
            f->made = PT_MADE_UNKNOWN;
        else if (each_parent(s, (uint32_t)i, parent_is_dir) < 0)
            return -1;
        if (!strcmp(f->path, "/")) {
            f->made = PT_MADE_BEFORE;
            f->dir = PT_KIND_DIR;
        }
    }
    for (size_t i = 0; i < s->nfiles; i++) {
        struct pt_store_file *f = &s->files[s->same[i]];
        const struct file_state *state = &s->states[s->same[i]];
        const char *path = s->files[i].path;

        if (state->read_link && !state->opened && !state->followed && f->dir == PT_KIND_FILE &&
            f->made == PT_MADE_BEFORE) {
            f->dir = PT_KIND_LINK;
            f->size = state->link_len;
        }
        if (s->same[i] != i)
            s->files[i] = *f;
        s->files[i].path = path;
    }
    return 0;
}

/* ---- all events in the order of time -------------------------------------------------- */

static void add_touches(struct touch *touches, size_t *n, const struct merge_node *node,
                        uint32_t process)
{
    size_t k = 0;

    for (size_t i = 0; i < node->nevents; i++) {
        const struct merge_named *named = NULL;

        while (k < node->nnamed &&
               (node->named[k].event >= MERGE_IDENTITY || node->named[k].event < i))
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

static int survey_create(struct survey *s)
{
    s->files = calloc(s->nfiles + 1, sizeof(*s->files));
    s->states = calloc(s->nfiles + 1, sizeof(*s->states));
    s->links = calloc(s->nfiles + 1, sizeof(*s->links));
    s->same = calloc(s->nfiles + 1, sizeof(*s->same));
    if (!s->files || !s->states || !s->links || !s->same)
        return -1;
    for (size_t i = 0; i < s->nfiles; i++) {
        s->files[i].path = names_text(&s->m->files, (uint32_t)i);
        s->links[i] = PT_NO_FILE;
    }
    return flatten(s);
}

/* All but the files. */
static void survey_free(struct survey *s)
{
    free(s->states);
    free(s->links);
    free(s->same);
    names_free(&s->flat);
    map_free(&s->by_flat);
    map_free(&s->positions);
}

struct pt_store_file *merge_find_files(const struct merge *m, const struct merge_run *base,
                                       size_t n, struct pt_err *err)
{
    struct survey s = {.m = m, .nfiles = n};
    size_t ntouches = 0;
    struct touch *touches = sort_touches(base, &ntouches);
    int rc = touches ? survey_create(&s) : -1;

    for (size_t i = 0; i < ntouches && rc == 0; i++)
        rc = touch(&s, &touches[i]);
    if (rc == 0)
        rc = conclude(&s);
    if (rc < 0) {
        pt_err_set(err, "not enough memory for the files of '%s'", base->dir);
        free(s.files);
        s.files = NULL;
    }
    survey_free(&s);
    free(touches);
    return s.files;
}
