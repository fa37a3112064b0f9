#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "watchdog/path.h"

#define MAX_LINKS 40 /* as the kernel has it */
#define ENTRY     (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/* Where we are, and what is still to go. */
struct walk {
    struct wd_place *place;
    const char *path; /* all of it, for messages */
    char rest[2 * PATH_MAX];
    int links;
};

static int failed(const struct walk *w, struct pt_err *err)
{
    return pt_err_errno(err, "run directory '%s'", w->path);
}

/* From here the walk goes on in `dir`. */
static void enter(struct walk *w, int dir)
{
    if (w->place->parent >= 0)
        close(w->place->parent);
    w->place->parent = w->place->dir;
    w->place->dir = dir;
}

/* Back to the start of an absolute path, or to where we are for a relative one. */
static int start_at(struct walk *w, const char *path)
{
    int dir = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    enter(w, dir);
    return 0;
}

/* The next name; 0: there is none. */
static int next_name(struct walk *w, char *name, size_t size)
{
    size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/");
    if (n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(name, w->rest + skip, n);
    name[n] = 0;
    memmove(w->rest, w->rest + skip + n, strlen(w->rest + skip + n) + 1);
    return n > 0;
}

static int is_last(const struct walk *w)
{
    return !w->rest[strspn(w->rest, "/")];
}

/* Whoever can create things in a directory may have planted this one. */
static int is_planted(int dir, const struct stat *st)
{
    struct stat above;
    if (fstat(dir, &above))
        return 1;
    return above.st_mode & S_IWOTH && st->st_uid != 0 && st->st_uid != geteuid();
}

static int open_or_make(struct walk *w, const char *name)
{
    int dir = w->place->dir, fd = openat(dir, name, ENTRY | O_DIRECTORY);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    if (mkdirat(dir, name, is_last(w) ? 0755 : 0777) && errno != EEXIST)
        return -1;
    return openat(dir, name, ENTRY | O_DIRECTORY);
}

/* Puts what the link says in front of the rest. */
static int follow(struct walk *w, const char *name, struct pt_err *err)
{
    char target[PATH_MAX], rest[sizeof(w->rest)];
    struct stat st;
    ssize_t n = -1;
    int link = openat(w->place->dir, name, ENTRY);

    if (link >= 0 && !fstat(link, &st))
        n = S_ISLNK(st.st_mode) ? readlinkat(link, "", target, sizeof(target) - 1)
                                : (errno = ENOTDIR, -1);
    if (link >= 0)
        close(link);
    if (n <= 0)
        return failed(w, err);
    if (is_last(w))
        return pt_err_set(err, "run directory '%s': it is a symbolic link", w->path);
    if (is_planted(w->place->dir, &st))
        return pt_err_set(err, "run directory '%s': '%s' is a link of another user's", w->path,
                          name);
    target[n] = 0;
    errno = ++w->links > MAX_LINKS ? ELOOP : ENAMETOOLONG;
    if (w->links > MAX_LINKS ||
        (size_t)snprintf(rest, sizeof(rest), "%s/%s", target, w->rest) >= sizeof(rest))
        return failed(w, err);
    memcpy(w->rest, rest, sizeof(rest));
    return *target == '/' && start_at(w, target) ? failed(w, err) : 0;
}

static int go(struct walk *w, const char *name, struct pt_err *err)
{
    struct stat st;
    int fd = open_or_make(w, name);
    if (fd < 0)
        return errno == ENOTDIR || errno == ELOOP ? follow(w, name, err) : failed(w, err);
    if (strcmp(name, "..") && (fstat(fd, &st) || is_planted(w->place->dir, &st))) {
        close(fd);
        return pt_err_set(err, "run directory '%s': '%s' belongs to another user", w->path, name);
    }
    enter(w, fd);
    snprintf(w->place->name, sizeof(w->place->name), "%s", name);
    return 0;
}

/* What was only looked at so far is opened to be used. */
static int arrive(struct walk *w, struct pt_err *err)
{
    struct stat st;
    int fd = openat(w->place->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        failed(w, err);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    close(w->place->dir);
    w->place->dir = fd;
    if (st.st_uid != geteuid())
        return pt_err_set(err, "run directory '%s': it belongs to another user", w->path);
    if (st.st_mode & S_IWOTH)
        return pt_err_set(err, "run directory '%s': all may write to it", w->path);
    return 0;
}

int wd_path_open(const char *path, struct wd_place *place, struct pt_err *err)
{
    struct walk w = {.place = place, .path = path};
    char name[NAME_MAX + 1];
    int more, rc = -1;

    *place = (struct wd_place){-1, -1, "."};
    if ((size_t)snprintf(w.rest, sizeof(w.rest), "%s", path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return failed(&w, err);
    }
    if (start_at(&w, path))
        return failed(&w, err);
    while ((more = next_name(&w, name, sizeof(name))) > 0)
        if (strcmp(name, ".") && go(&w, name, err))
            break;
    if (!more)
        rc = arrive(&w, err);
    else if (more < 0)
        failed(&w, err);
    if (rc)
        wd_path_close(place);
    return rc;
}

void wd_path_close(struct wd_place *place)
{
    int saved = errno;
    if (place->dir >= 0)
        close(place->dir);
    if (place->parent >= 0)
        close(place->parent);
    place->dir = place->parent = -1;
    errno = saved;
}
