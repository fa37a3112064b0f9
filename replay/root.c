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
    fd = beneath(root->fd, ".", O_PATH | O_CLOEXEC, 0);
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

int root_rename(const struct root *root, const char *from, const char *to)
{
    const char *from_base, *to_base;
    int from_dir = open_parent(root, from, &from_base), to_dir;

    if (from_dir < 0)
        return -1;
    to_dir = open_parent(root, to, &to_base);
    if (to_dir < 0)
        return leave(from_dir, -1);
    return leave(from_dir, leave(to_dir, renameat(from_dir, from_base, to_dir, to_base)));
}
