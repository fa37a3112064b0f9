#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "replay/root.h"

/* What openat2, unlike open, insists on: no unknown flags. */
#define KNOWN_FLAGS                                                                        \
    (O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_DSYNC | \
     O_SYNC | O_DIRECT | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE)
#define PATH_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct root {
    int fd;
    bool walk; /* no openat2 */
    char *path;
};

static int beneath(int dirfd, const char *name, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags,
        .mode = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? mode & 07777 : 0,
        .resolve = RESOLVE_BENEATH,
    };
    long fd;

    do {
        fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
    } while (fd < 0 && errno == EAGAIN && !(flags & O_NONBLOCK));
    return (int)fd;
}

struct root *root_create(const char *path, struct pt_err *err)
{
    struct root *root = calloc(1, sizeof(*root));
    int fd;

    if (!root || !(root->path = strdup(path))) {
        free(root);
        pt_err_set(err, "cannot open root '%s': no memory", path);
        return NULL;
    }
    root->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root->fd < 0) {
        pt_err_errno(err, "cannot open root '%s'", path);
        root_destroy(root);
        return NULL;
    }
    fd = getenv("PTREPLAY_WALK") ? -1 : beneath(root->fd, ".", O_PATH | O_CLOEXEC, 0);
    root->walk = fd < 0;
    if (fd >= 0)
        close(fd);
    return root;
}

void root_destroy(struct root *root)
{
    int saved = errno;

    if (!root)
        return;
    if (root->fd >= 0)
        close(root->fd);
    free(root->path);
    free(root);
    errno = saved;
}

const char *root_path(const struct root *root)
{
    return root->path;
}

void root_without_openat2(struct root *root)
{
    root->walk = true;
}

/* Takes the last component off what has been written to `out`. */
static char *drop_component(char *out, char *end)
{
    while (end > out && *--end != '/')
        ;
    return end;
}

char *root_relative(const char *path)
{
    size_t len = strlen(path);
    char *out = malloc(len + 2), *end = out;

    if (!out)
        return NULL;
    while (*path) {
        size_t n = strcspn(path, "/");

        if (n == 2 && path[0] == '.' && path[1] == '.') {
            end = drop_component(out, end);
        } else if (n > 0 && !(n == 1 && path[0] == '.')) {
            if (end > out)
                *end++ = '/';
            memcpy(end, path, n);
            end += n;
        }
        path += n;
        path += strspn(path, "/");
    }
    if (end == out)
        *end++ = '.';
    *end = '\0';
    return out;
}

/* Opens a directory component by component, following no symbolic link. */
static int walk(int dirfd, const char *name, size_t len)
{
    char part[NAME_MAX + 1];
    int fd = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next;

    while (fd >= 0 && len > 0) {
        const char *slash = memchr(name, '/', len);
        size_t n = slash ? (size_t)(slash - name) : len;

        if (n > NAME_MAX) {
            close(fd);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, name, n);
        part[n] = '\0';
        next = openat(fd, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        close(fd);
        fd = next;
        n += slash != NULL;
        name += n;
        len -= n;
    }
    return fd;
}

/* Opens the directory that holds `name`; *base is the last component. */
static int open_parent(const struct root *root, const char *name, const char **base)
{
    const char *slash = strrchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : 0;
    char dir[PATH_MAX];

    *base = slash ? slash + 1 : name;
    if (len >= sizeof(dir)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (root->walk)
        return walk(root->fd, name, len);
    memcpy(dir, name, len);
    dir[len] = '\0';
    return beneath(root->fd, len ? dir : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
}

/* Closes a directory after a call in it, keeping the call's errno. */
static int leave(int dirfd, int rc)
{
    int saved = errno;

    close(dirfd);
    errno = saved;
    return rc;
}

int root_open(const struct root *root, const char *name, int flags, mode_t mode)
{
    const char *base;
    int dirfd;

    flags &= flags & O_PATH ? PATH_FLAGS : KNOWN_FLAGS;
    if (!root->walk)
        return beneath(root->fd, name, flags, mode);
    dirfd = open_parent(root, name, &base);
    if (dirfd < 0)
        return -1;
    return leave(dirfd, openat(dirfd, base, flags | O_NOFOLLOW, mode));
}

int root_stat(const struct root *root, const char *name, struct stat *st)
{
    const char *base;
    int dirfd = open_parent(root, name, &base);

    if (dirfd < 0)
        return -1;
    return leave(dirfd, fstatat(dirfd, base, st, AT_SYMLINK_NOFOLLOW));
}

int root_mkdir(const struct root *root, const char *name, mode_t mode)
{
    const char *base;
    int dirfd = open_parent(root, name, &base);

    if (dirfd < 0)
        return -1;
    return leave(dirfd, mkdirat(dirfd, base, mode));
}

static int remove_name(const struct root *root, const char *name, int flags)
{
    const char *base;
    int dirfd = open_parent(root, name, &base);

    if (dirfd < 0)
        return -1;
    return leave(dirfd, unlinkat(dirfd, base, flags));
}

int root_unlink(const struct root *root, const char *name)
{
    return remove_name(root, name, 0);
}

int root_rmdir(const struct root *root, const char *name)
{
    return remove_name(root, name, AT_REMOVEDIR);
}

struct pair {
    int from_dir, to_dir;
    const char *from, *to;
};

/* Opens the directories of two names. */
static int open_pair(const struct root *root, const char *from, const char *to, struct pair *p)
{
    p->from_dir = open_parent(root, from, &p->from);
    if (p->from_dir < 0)
        return -1;
    p->to_dir = open_parent(root, to, &p->to);
    return p->to_dir < 0 ? leave(p->from_dir, -1) : 0;
}

static int leave_pair(const struct pair *p, int rc)
{
    return leave(p->from_dir, leave(p->to_dir, rc));
}

int root_rename(const struct root *root, const char *from, const char *to, unsigned flags)
{
    struct pair p;

    if (open_pair(root, from, to, &p) < 0)
        return -1;
    return leave_pair(&p, flags ? renameat2(p.from_dir, p.from, p.to_dir, p.to, flags)
                                : renameat(p.from_dir, p.from, p.to_dir, p.to));
}

int root_link(const struct root *root, const char *from, const char *to)
{
    struct pair p;

    if (open_pair(root, from, to, &p) < 0)
        return -1;
    return leave_pair(&p, linkat(p.from_dir, p.from, p.to_dir, p.to, 0));
}

int root_link_fd(const struct root *root, int fd, const char *to)
{
    const char *base;
    int dirfd = open_parent(root, to, &base);
    char from[32];

    if (dirfd < 0)
        return -1;
    snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
    return leave(dirfd, linkat(AT_FDCWD, from, dirfd, base, AT_SYMLINK_FOLLOW));
}

int root_symlink(const struct root *root, const char *target, const char *name)
{
    const char *base;
    int dirfd = open_parent(root, name, &base);

    if (dirfd < 0)
        return -1;
    return leave(dirfd, symlinkat(target, dirfd, base));
}

ssize_t root_readlink(const struct root *root, const char *name, char *target, size_t size)
{
    const char *base;
    int dirfd = open_parent(root, name, &base);

    if (dirfd < 0)
        return -1;
    return leave(dirfd, (int)readlinkat(dirfd, base, target, size));
}

int root_touch(const struct root *root, const char *name)
{
    const char *base;
    int dirfd = open_parent(root, name, &base);

    if (dirfd < 0)
        return -1;
    return leave(dirfd, utimensat(dirfd, base, NULL, AT_SYMLINK_NOFOLLOW));
}

int root_chmod(const struct root *root, const char *name, mode_t mode)
{
    const char *base;
    int dirfd = open_parent(root, name, &base);

    if (dirfd < 0)
        return -1;
    return leave(dirfd, fchmodat(dirfd, base, mode, AT_SYMLINK_NOFOLLOW));
}

int root_pin(const struct root *root, const char *name)
{
    int fd = root_open(root, name, O_PATH | O_CLOEXEC, 0);
    struct stat st;

    if (fd < 0 || !root->walk || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode))
        return fd;
    errno = ELOOP; /* the link itself, which must not be followed */
    return leave(fd, -1);
}

/* How many directories there are above the name. */
static int depth_of(const char *name)
{
    int depth = 0;

    for (; *name; name++)
        depth += *name == '/';
    return depth;
}

static bool climbs_out(const char *target, int depth)
{
    while (*target && depth >= 0) {
        size_t n = strcspn(target, "/");

        if (n == 2 && target[0] == '.' && target[1] == '.')
            depth--;
        else if (n > 0 && !(n == 1 && target[0] == '.'))
            depth++;
        target += n;
        target += strspn(target, "/");
    }
    return depth < 0;
}

char *root_target(const char *name, const char *target)
{
    int depth = depth_of(name);
    char *inside, *out, *end;

    if (*target != '/' && !climbs_out(target, depth))
        return strdup(target);
    /* One that climbs out ends where it would at the top: ".." stays there. */
    if (*target == '/') {
        inside = root_relative(target);
    } else {
        const char *slash = strrchr(name, '/');
        char *whole;

        if (asprintf(&whole, "%.*s/%s", slash ? (int)(slash - name) : 0, name, target) < 0)
            return NULL;
        inside = root_relative(whole);
        free(whole);
    }
    out = inside ? malloc(3 * (size_t)depth + strlen(inside) + 1) : NULL;
    if (out) {
        end = out;
        for (int i = 0; i < depth; i++)
            end = stpcpy(end, "../");
        strcpy(end, inside);
    }
    free(inside);
    return out;
}
