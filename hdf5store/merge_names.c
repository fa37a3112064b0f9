/*
 * Which file an event is about.  Handles number the opens of a process, so the
 * file behind a descriptor is found whatever thread opened it; names are
 * followed in the order of time.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/merge.h"

char *merge_clean_path(const char *base, const char *path)
{
    size_t base_len = base && path[0] != '/' ? strlen(base) : 0;
    char *out = malloc(base_len + strlen(path) + 3);
    size_t n = 0;

    if (!out)
        return NULL;
    for (int second = base_len == 0; second < 2; second++) {
        const char *p = second ? path : base;
        while (*p) {
            size_t len = strcspn(p, "/");
            if (len && !(len == 1 && *p == '.')) {
                out[n++] = '/';
                memcpy(out + n, p, len);
                n += len;
            }
            p += len + (p[len] == '/');
        }
    }
    if (!n)
        out[n++] = '/';
    out[n] = '\0';
    return out;
}

char *merge_flat_path(const char *path)
{
    char *out = malloc(strlen(path) + 2);
    size_t n = 0;

    if (!out)
        return NULL;
    while (*path) {
        size_t len = strcspn(path, "/");

        if (len == 2 && path[0] == '.' && path[1] == '.') {
            while (n > 0 && out[--n] != '/')
                ;
        } else if (len && !(len == 1 && *path == '.')) {
            out[n++] = '/';
            memcpy(out + n, path, len);
            n += len;
        }
        path += len + (path[len] == '/');
    }
    if (!n)
        out[n++] = '/';
    out[n] = '\0';
    return out;
}

struct step {
    struct merge_node *node;
    struct merge_named *named;
};

/* A process while its names are followed. */
struct process {
    struct merge *m;
    struct merge_run *run;
    char *cwd;
    struct map by_handle, by_fd; /* -> file */
    struct map opens;            /* handle -> the step that opened it */
    struct step *steps;
};

static int compare_steps(const void *pa, const void *pb)
{
    const struct step *a = pa, *b = pb;

    if (a->named->begin != b->named->begin)
        return a->named->begin < b->named->begin ? -1 : 1;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->named < b->named ? -1 : a->named > b->named;
}

/* The directory that a relative name starts from. */
static const char *base_of(struct process *p, int64_t dirfd)
{
    int fd = PT_FD_OF(dirfd);
    uint32_t handle = PT_HANDLE_OF(dirfd);
    const uint64_t *file;

    if (fd == AT_FDCWD)
        return p->cwd;
    file = fd >= 0 && handle ? map_get(&p->by_handle, handle) : map_get(&p->by_fd, (uint32_t)fd);
    if (!file) {
        p->run->lost_names++;
        return p->cwd;
    }
    return names_text(&p->m->files, *file);
}

static char *absolute(struct process *p, int64_t dirfd, uint32_t name)
{
    const char *text = names_text(&p->run->names, name);

    return merge_clean_path(text[0] == '/' ? NULL : base_of(p, dirfd), text);
}

static uint32_t find_file(struct process *p, int64_t dirfd, uint32_t name)
{
    char *path = absolute(p, dirfd, name);
    uint32_t file = path ? names_add(&p->m->files, path) : NAMES_NONE;

    free(path);
    return file;
}

static int set_handle(struct process *p, uint32_t handle, int fd, uint32_t file)
{
    if (handle && map_put(&p->by_handle, handle, file) < 0)
        return -1;
    return fd >= 0 ? map_put(&p->by_fd, (uint32_t)fd, file) : 0;
}

static int follow_chdir(struct process *p, const struct merge_named *named)
{
    char *cwd = absolute(p, named->dirfd, named->path);

    if (!cwd)
        return -1;
    free(p->cwd);
    p->cwd = cwd;
    return 0;
}

static int follow_dup(struct process *p, const struct pt_store_event *e)
{
    const uint64_t *file = map_get(&p->by_handle, e->handle);

    return file && !e->err ? set_handle(p, e->handle2, e->fd2, *file) : 0;
}

/* Where a symbolic link leads, as far as its text alone tells. */
static int follow_target(struct process *p, struct pt_store_event *e)
{
    char *dir = strdup(names_text(&p->m->files, e->file)), *path = NULL;

    if (dir) {
        strrchr(dir, '/')[0] = '\0';
        path = merge_clean_path(dir, names_text(&p->run->names, (uint32_t)(e->text - 1)));
    }
    e->file2 = path ? names_add(&p->m->files, path) : NAMES_NONE;
    free(dir);
    free(path);
    return e->file2 == NAMES_NONE ? -1 : 0;
}

/* No identity: it was no file, and nothing that is replayed was done to it. */
static void follow_identity(struct process *p, const struct merge_named *identity)
{
    const uint64_t *opened = map_get(&p->opens, PT_HANDLE_OF(identity->dirfd));
    struct merge_named *named = opened ? p->steps[*opened].named : NULL;

    if (!named)
        return;
    named->dev = identity->dev;
    named->ino = identity->ino;
    named->fsize = identity->fsize;
    if (!identity->ino)
        p->steps[*opened].node->events[named->event].handle = 0;
}

static int follow_open(struct process *p, const struct step *step, const struct pt_store_event *e)
{
    if (e->handle && map_put(&p->opens, e->handle, (uint64_t)(step - p->steps)) < 0)
        return -1;
    return set_handle(p, e->handle, e->fd, e->file);
}

static int follow(struct process *p, const struct step *step)
{
    const struct merge_named *named = step->named;
    struct pt_store_event *e;

    if (named->event == MERGE_CHDIR)
        return follow_chdir(p, named);
    if (named->event == MERGE_IDENTITY) /* later: its thread's clock may be behind */
        return 0;
    e = &step->node->events[named->event];
    if (named->path == NAMES_NONE)
        return follow_dup(p, e);
    e->file = find_file(p, named->dirfd, named->path);
    if (e->file == NAMES_NONE)
        return -1;
    /* No name: the call is about the descriptor itself (AT_EMPTY_PATH). */
    if (!*names_text(&p->run->names, named->path) && PT_FD_OF(named->dirfd) >= 0) {
        e->fd = PT_FD_OF(named->dirfd);
        e->handle = PT_HANDLE_OF(named->dirfd);
    }
    if (named->path2 != NAMES_NONE) {
        e->file2 = find_file(p, named->dirfd2, named->path2);
        if (e->file2 == NAMES_NONE)
            return -1;
    }
    if (p->m->calls[e->op].replay == PT_REPLAY_SYMLINK && e->text && follow_target(p, e) < 0)
        return -1;
    if (merge_opens(p->m->calls[e->op].replay) && !e->err)
        return follow_open(p, step, e);
    return 0;
}

/* Events on descriptors: their handle tells the file. */
static void resolve_handles(const struct process *p, struct merge_node *node)
{
    for (size_t i = 0; i < node->nevents; i++) {
        struct pt_store_event *e = &node->events[i];
        enum pt_replay replay = p->m->calls[e->op].replay;
        const uint64_t *file;

        if (e->file == PT_NO_FILE && e->handle) {
            file = map_get(&p->by_handle, e->handle);
            if (file)
                e->file = *file;
        }
        if (replay == PT_REPLAY_SENDFILE || replay == PT_REPLAY_COPYRANGE) {
            file = e->handle2 ? map_get(&p->by_handle, e->handle2) : NULL;
            if (file)
                e->file2 = *file;
        }
    }
}

static struct step *sort_steps(struct merge_node *nodes, size_t n, size_t *nsteps)
{
    struct step *steps;
    size_t total = 0;

    for (size_t i = 0; i < n; i++)
        total += nodes[i].nnamed;
    steps = calloc(total + 1, sizeof(*steps));
    if (!steps)
        return NULL;
    *nsteps = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < nodes[i].nnamed; k++)
            steps[(*nsteps)++] = (struct step){&nodes[i], &nodes[i].named[k]};
    qsort(steps, total, sizeof(*steps), compare_steps);
    return steps;
}

static int resolve_process(struct merge *m, struct merge_run *run, struct merge_node *nodes,
                           size_t n)
{
    struct process p = {.m = m, .run = run};
    size_t nsteps = 0;
    struct step *steps = sort_steps(nodes, n, &nsteps);
    int rc = steps ? 0 : -1;

    p.steps = steps;
    p.cwd = merge_clean_path(NULL, names_text(&run->names, nodes[0].cwd));
    if (!p.cwd)
        rc = -1;
    for (size_t i = 0; i < nsteps && rc == 0; i++)
        rc = follow(&p, &steps[i]);
    for (size_t i = 0; i < nsteps && rc == 0; i++)
        if (steps[i].named->event == MERGE_IDENTITY)
            follow_identity(&p, steps[i].named);
    for (size_t i = 0; i < n && rc == 0; i++)
        resolve_handles(&p, &nodes[i]);
    map_free(&p.by_handle);
    map_free(&p.by_fd);
    map_free(&p.opens);
    free(p.cwd);
    free(steps);
    return rc;
}

static int same_process(const struct merge_node *a, const struct merge_node *b)
{
    return a->name.rank == b->name.rank && a->name.process == b->name.process;
}

int merge_resolve_names(struct merge *m, struct merge_run *run, struct pt_err *err)
{
    for (size_t first = 0, next; first < run->nnodes; first = next) {
        for (next = first + 1; next < run->nnodes; next++)
            if (!same_process(&run->nodes[first], &run->nodes[next]))
                break;
        if (resolve_process(m, run, &run->nodes[first], next - first) < 0)
            return pt_err_set(err, "not enough memory for the names of '%s'", run->dir);
    }
    return 0;
}
