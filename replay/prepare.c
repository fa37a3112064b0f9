#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/noise.h"
#include "replay/prepare.h"

enum { PIECE = 1 << 20 };

static const char marker_text[] =
    "This directory belongs to ptreplay, which makes and removes files in it.\n";

void prepare_init(struct prepare *p, const struct root *root, struct prepare_file *files,
                  size_t nfiles)
{
    *p = (struct prepare){.root = root, .files = files, .nfiles = nfiles};
}

void prepare_free(struct prepare *p)
{
    for (size_t i = 0; i < p->ndirs; i++)
        free(p->dirs[i]);
    free(p->dirs);
    p->dirs = NULL;
    p->ndirs = 0;
}

/* The reason of a failure below the root; a link that leads out has an odd errno. */
static int failed(const struct prepare *p, const char *what, const char *name, struct pt_err *err)
{
    if (errno == EXDEV || errno == ELOOP)
        return pt_err_set(err, "cannot %s '%s/%s': a symbolic link leads out of the root", what,
                          root_path(p->root), name);
    return pt_err_errno(err, "cannot %s '%s/%s'", what, root_path(p->root), name);
}

/* Whether the root is empty, apart from what mkfs puts there: 1, 0, or -1 and errno. */
static int root_is_empty(const struct root *root)
{
    int fd = root_open(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), empty = 1;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *d;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    while ((d = readdir(dir)))
        if (strcmp(d->d_name, ".") && strcmp(d->d_name, "..") && strcmp(d->d_name, "lost+found"))
            empty = 0;
    closedir(dir);
    return empty;
}

static int write_marker(struct prepare *p, struct pt_err *err)
{
    int fd = root_open(p->root, PREPARE_MARKER, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    int rc = 0;

    if (fd < 0)
        return failed(p, "create", PREPARE_MARKER, err);
    p->marked = true;
    if (write(fd, marker_text, sizeof(marker_text) - 1) < 0)
        rc = failed(p, "write", PREPARE_MARKER, err);
    close(fd);
    return rc;
}

int prepare_claim(struct prepare *p, bool force, struct pt_err *err)
{
    struct stat st;
    int empty;

    if (root_stat(p->root, PREPARE_MARKER, &st) == 0 && S_ISREG(st.st_mode))
        return 0;
    empty = root_is_empty(p->root);
    if (empty < 0)
        return failed(p, "read", ".", err);
    if (empty)
        return write_marker(p, err);
    if (force)
        return 0;
    return pt_err_set(err,
                      "cannot use root '%s': it holds files that are not ptreplay's "
                      "(--force uses it all the same)",
                      root_path(p->root));
}

/* ---- names --------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    const struct prepare_file *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

struct prepare_list prepare_select(const struct prepare *p, unsigned needs)
{
    struct prepare_list list = {.files = malloc((p->nfiles + 1) * sizeof(*list.files))};

    for (size_t i = 0; list.files && i < p->nfiles; i++)
        if (needs >> p->files[i].need & 1)
            list.files[list.n++] = &p->files[i];
    if (list.files)
        qsort(list.files, list.n, sizeof(*list.files), compare_names);
    return list;
}

struct prepare_file *prepare_find(const struct prepare_list *list, const char *name)
{
    struct prepare_file key = {.name = name}, *pkey = &key;
    struct prepare_file **found =
        bsearch(&pkey, list->files, list->n, sizeof(*list->files), compare_names);

    return found ? *found : NULL;
}

#define ABSENT_NEEDS (1u << NEED_ABSENT | 1u << NEED_MADE | 1u << NEED_MADE_DIR)

static int remove_one(const struct root *root, const char *name)
{
    if (root_unlink(root, name) == 0 || errno == ENOENT || errno == ENOTDIR)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    return root_rmdir(root, name) == 0 || errno == ENOENT ? 0 : -1;
}

static int remove_absent(const struct prepare *p, struct pt_err *err)
{
    struct prepare_list list = prepare_select(p, ABSENT_NEEDS);
    int rc = 0;

    if (!list.files)
        return pt_err_errno(err, "cannot prepare the files");
    /* From the end: what is in a directory before the directory. */
    for (size_t i = list.n; rc == 0 && i-- > 0;)
        if (remove_one(p->root, list.files[i]->name) < 0)
            rc = failed(p, "remove", list.files[i]->name, err);
    free(list.files);
    return rc;
}

static int note_dir(struct prepare *p, const char *name)
{
    char **more = realloc(p->dirs, (p->ndirs + 1) * sizeof(*more));

    if (!more)
        return -1;
    p->dirs = more;
    p->dirs[p->ndirs] = strdup(name);
    if (!p->dirs[p->ndirs])
        return -1;
    p->ndirs++;
    return 0;
}

static int make_dir(struct prepare *p, const char *name, struct pt_err *err)
{
    int fd;

    if (root_mkdir(p->root, name, 0755) == 0) {
        if (note_dir(p, name) < 0)
            return failed(p, "make directory", name, err);
        return 0;
    }
    if (errno != EEXIST)
        return failed(p, "make directory", name, err);
    fd = root_open(p->root, name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return failed(p, "make directory", name, err);
    close(fd);
    return 0;
}

/* What a link leads to is not known, only how long its name is. */
static int make_link(struct prepare *p, struct prepare_file *f, struct pt_err *err)
{
    char target[PATH_MAX];
    size_t len = f->size > 0 && f->size < sizeof(target) ? (size_t)f->size : 1;

    memset(target, '-', len);
    target[len] = '\0';
    if (root_symlink(p->root, target, f->name) == 0)
        f->created = true;
    else if (errno != EEXIST)
        return failed(p, "make link", f->name, err);
    return 0;
}

/* Makes the directories that lead to `name`, as far as the trace does not. */
static int make_parents(struct prepare *p, const char *name, const struct prepare_list *made,
                        struct pt_err *err)
{
    char *dir = strdup(name), *slash = dir;
    int rc = 0;

    if (!dir)
        return pt_err_errno(err, "cannot prepare the files");
    while (rc == 0 && (slash = strchr(slash, '/'))) {
        *slash = '\0';
        if (prepare_find(made, dir))
            break;
        rc = make_dir(p, dir, err);
        *slash++ = '/';
    }
    free(dir);
    return rc;
}

static int make_tree(struct prepare *p, const struct prepare_list *made, struct pt_err *err)
{
    for (size_t i = 0; i < p->nfiles; i++) {
        struct prepare_file *f = &p->files[i];

        if (f->need == NEED_NOTHING || f->need == NEED_ABSENT || !strcmp(f->name, "."))
            continue;
        if (make_parents(p, f->name, made, err) < 0)
            return -1;
        if (f->need == NEED_DIR && make_dir(p, f->name, err) < 0)
            return -1;
        if (f->need == NEED_LINK && make_link(p, f, err) < 0)
            return -1;
    }
    return 0;
}

int prepare_tree(struct prepare *p, struct pt_err *err)
{
    struct prepare_list made;
    int rc;

    if (remove_absent(p, err) < 0)
        return -1;
    made = prepare_select(p, 1u << NEED_MADE_DIR);
    if (!made.files)
        return pt_err_errno(err, "cannot prepare the files");
    rc = make_tree(p, &made, err);
    free(made.files);
    return rc;
}

/* ---- data ---------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

static int fill(int fd, uint64_t size, uint64_t seed)
{
    char *piece = malloc(PIECE);
    int rc = piece ? ftruncate(fd, 0) : -1;

    for (uint64_t done = 0; rc == 0 && done < size; done += PIECE) {
        noise_fill(piece, PIECE, seed ^ done);
        rc = write_all(fd, piece, size - done < PIECE ? (size_t)(size - done) : PIECE);
    }
    free(piece);
    return rc;
}

static bool has_data(const struct stat *st, uint64_t size)
{
    return (uint64_t)st->st_size == size && (uint64_t)st->st_blocks * 512 >= size;
}

static int settle(int fd)
{
    if (fsync(fd) < 0)
        return -1;
    errno = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    return 0;
}

static int make_data(struct prepare *p, struct prepare_file *f, uint64_t seed)
{
    int flags = O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, rc = -1, saved;
    int fd = root_open(p->root, f->name, flags | O_CREAT | O_EXCL, 0755); /* a program, perhaps */
    struct stat st;

    f->created = fd >= 0;
    if (fd < 0 && errno == EEXIST)
        fd = root_open(p->root, f->name, flags, 0);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0) {
        if (!S_ISREG(st.st_mode))
            errno = ENXIO;
        else if (has_data(&st, f->size) || fill(fd, f->size, seed) == 0)
            rc = settle(fd);
    }
    saved = errno;
    if (close(fd) < 0 && rc == 0)
        return -1;
    errno = saved;
    return rc;
}

int prepare_data(struct prepare *p, size_t first, size_t step, struct pt_err *err)
{
    for (size_t i = first; i < p->nfiles; i += step)
        if (p->files[i].need == NEED_FILE && make_data(p, &p->files[i], i) < 0)
            return failed(p, "make file", p->files[i].name, err);
    return 0;
}

/* Whether opening it can do harm; what is not there can not. */
static bool is_odd(const struct root *root, const char *name)
{
    int fd = root_open(root, name, O_PATH | O_CLOEXEC, 0);
    struct stat st;
    bool odd;

    if (fd < 0)
        return false;
    odd = fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) &&
          !S_ISLNK(st.st_mode); /* which is not followed */
    close(fd);
    return odd;
}

int prepare_verify(const struct prepare *p, size_t first, size_t step, struct pt_err *err)
{
    for (size_t i = first; i < p->nfiles; i += step)
        if (p->files[i].need != NEED_NOTHING && is_odd(p->root, p->files[i].name))
            return pt_err_set(err, "cannot use '%s/%s': neither a file nor a directory",
                              root_path(p->root), p->files[i].name);
    return 0;
}

/* ---- afterwards ---------------------------------------------------------------- */

void prepare_clean_data(struct prepare *p)
{
    for (size_t i = 0; i < p->nfiles; i++)
        if (p->files[i].created)
            root_unlink(p->root, p->files[i].name);
}

void prepare_clean_tree(struct prepare *p)
{
    struct prepare_list list = prepare_select(p, ABSENT_NEEDS);

    while (list.files && list.n-- > 0)
        remove_one(p->root, list.files[list.n]->name);
    free(list.files);
    for (size_t i = p->ndirs; i-- > 0;)
        root_rmdir(p->root, p->dirs[i]);
    if (p->marked)
        root_unlink(p->root, PREPARE_MARKER);
}
