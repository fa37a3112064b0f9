/*
 * Calls on names.  A name that is the link itself is used in its directory, which is
 * below the root; where a call follows links, the file is pinned first, by an open that
 * does not leave the root, and the call made on what was found.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "replay/engine_posix.h"

/* Ends a call on a pinned file, keeping the call's errno. */
static int64_t leave(int fd, int64_t rc)
{
    int saved = errno;

    close(fd);
    errno = saved;
    return rc;
}

/* A pinned file's name for the calls that have no form for such descriptors. */
struct proc_name {
    char text[32];
};

static struct proc_name proc_name(int fd)
{
    struct proc_name name;

    snprintf(name.text, sizeof(name.text), "/proc/self/fd/%d", fd);
    return name;
}

/* ---- opening ---------------------------------------------------------------------------- */

static int is_unnamed(int flags)
{
    return (flags & O_TMPFILE) == O_TMPFILE;
}

/* Where a file system has no O_TMPFILE, a file that loses its name at once, as libc does. */
static int open_unnamed(const struct engine_call *c)
{
    static _Atomic unsigned next;
    char name[PATH_MAX];
    int flags = (c->event->oflags & ~O_TMPFILE) | O_CREAT | O_EXCL | O_CLOEXEC, fd;

    if (snprintf(name, sizeof(name), "%s/.ptreplay.%d.%u", c->path, (int)getpid(), next++) >=
        (int)sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = root_open(c->root, name, flags, c->event->mode);
    if (fd >= 0)
        root_unlink(c->root, name);
    return fd;
}

int64_t posix_open(const struct engine_call *c)
{
    int flags = c->event->oflags;
    int fd = root_open(c->root, c->path, flags | O_CLOEXEC, c->event->mode);

    if (fd < 0 && is_unnamed(flags) && (errno == EOPNOTSUPP || errno == EISDIR))
        fd = open_unnamed(c);
    return fd;
}

/* ---- making and removing ------------------------------------------------------------------ */

int64_t posix_unlink(const struct engine_call *c)
{
    return root_unlink(c->root, c->path);
}

int64_t posix_unlinkat(const struct engine_call *c)
{
    return c->event->oflags & AT_REMOVEDIR ? root_rmdir(c->root, c->path)
                                           : root_unlink(c->root, c->path);
}

int64_t posix_remove(const struct engine_call *c)
{
    int rc = root_unlink(c->root, c->path);

    return rc < 0 && errno == EISDIR ? root_rmdir(c->root, c->path) : rc;
}

int64_t posix_rename(const struct engine_call *c)
{
    return root_rename(c->root, c->path, c->path2, (unsigned)c->event->oflags);
}

/* The link itself, or what it leads to, or a file without a name. */
int64_t posix_link(const struct engine_call *c)
{
    int fd = c->live.fd;

    if (fd < 0 && !(c->event->oflags & AT_SYMLINK_FOLLOW))
        return root_link(c->root, c->path, c->path2);
    if (fd >= 0)
        return root_link_fd(c->root, fd, c->path2);
    fd = root_pin(c->root, c->path);
    return fd < 0 ? -1 : leave(fd, root_link_fd(c->root, fd, c->path2));
}

int64_t posix_symlink(const struct engine_call *c)
{
    char *target = root_target(c->path, c->text ? c->text : "");
    int rc, saved;

    if (!target)
        return -1;
    rc = root_symlink(c->root, target, c->path);
    saved = errno;
    free(target);
    errno = saved;
    return rc;
}

int64_t posix_mkdir(const struct engine_call *c)
{
    return root_mkdir(c->root, c->path, c->event->mode);
}

int64_t posix_rmdir(const struct engine_call *c)
{
    return root_rmdir(c->root, c->path);
}

int64_t posix_truncatename(const struct engine_call *c)
{
    int fd = root_open(c->root, c->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);

    return fd < 0 ? -1 : leave(fd, ftruncate(fd, c->event->len));
}

/* ---- looking -------------------------------------------------------------------------------- */

int64_t posix_lstat(const struct engine_call *c)
{
    struct stat st;

    return c->live.fd >= 0 ? fstat(c->live.fd, &st) : root_stat(c->root, c->path, &st);
}

int64_t posix_stat(const struct engine_call *c)
{
    struct stat st;
    int fd;

    if (c->live.fd >= 0 || c->event->oflags & AT_SYMLINK_NOFOLLOW)
        return posix_lstat(c);
    fd = root_pin(c->root, c->path);
    return fd < 0 ? -1 : leave(fd, fstatat(fd, "", &st, AT_EMPTY_PATH));
}

int64_t posix_statfs(const struct engine_call *c)
{
    struct statfs st;
    int fd = root_pin(c->root, c->path);

    return fd < 0 ? -1 : leave(fd, fstatfs(fd, &st));
}

int64_t posix_access(const struct engine_call *c)
{
    int mode = c->event->oflags & (R_OK | W_OK | X_OK);
    int fd = c->live.fd >= 0 ? c->live.fd : root_pin(c->root, c->path), rc;

    if (fd < 0)
        return -1;
    rc = faccessat(fd, "", mode, AT_EMPTY_PATH);
    if (rc < 0 && errno == EINVAL)
        rc = access(proc_name(fd).text, mode);
    return fd == c->live.fd ? rc : leave(fd, rc);
}

int64_t posix_readlink(const struct engine_call *c)
{
    char target[PATH_MAX];
    size_t room = sizeof(target);

    if (c->event->len >= 0 && (uint64_t)c->event->len < room)
        room = (size_t)c->event->len;
    if (c->live.fd >= 0)
        return readlinkat(c->live.fd, "", target, room);
    return root_readlink(c->root, c->path, target, room);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Never makes a program that runs as somebody else. */
int64_t posix_chmod(const struct engine_call *c)
{
    mode_t mode = c->event->mode & 01777;
    int fd = c->live.fd, rc;

    if (fd >= 0)
        return chmod(proc_name(fd).text, mode);
    rc = root_chmod(c->root, c->path, mode);
    if (rc == 0 || errno != EOPNOTSUPP)
        return rc;
    fd = root_pin(c->root, c->path); /* a link */
    return fd < 0 ? -1 : leave(fd, chmod(proc_name(fd).text, mode));
}

/* The time that is set is that of the call. */
int64_t posix_utime(const struct engine_call *c)
{
    int fd = c->live.fd, rc;

    if (fd < 0 && c->event->oflags & AT_SYMLINK_NOFOLLOW)
        return root_touch(c->root, c->path);
    if (fd < 0)
        fd = root_pin(c->root, c->path);
    if (fd < 0) /* a link that leads nowhere has a time too */
        return errno == ENOENT ? root_touch(c->root, c->path) : -1;
    rc = utimensat(fd, "", NULL, AT_EMPTY_PATH);
    if (rc < 0 && (errno == EINVAL || errno == ENOENT)) /* before Linux 5.8 */
        rc = utimensat(AT_FDCWD, proc_name(fd).text, NULL, 0);
    return fd == c->live.fd ? rc : leave(fd, rc);
}

static int64_t read_attribute(const char *path, const char *name)
{
    char value[256];

    return getxattr(path, name, value, sizeof(value)) < 0 && errno != ENODATA && errno != ENOTSUP &&
                   errno != ERANGE
               ? -1
               : 0;
}

/* Owners and attributes are only read: to change them needs rights, or their values. */
int64_t posix_attribute(const struct engine_call *c)
{
    int fd;

    if (!c->text || c->live.fd >= 0)
        return c->text ? posix_fattribute(c) : posix_lstat(c);
    fd = root_pin(c->root, c->path);
    /* A link that leads nowhere has attributes too. */
    if (fd < 0)
        return errno == ENOENT ? posix_lstat(c) : -1;
    return leave(fd, read_attribute(proc_name(fd).text, c->text));
}
