/*
 * The directory that a replay is confined to.
 *
 * Names are relative to it and must be as root_relative() makes them.  No name
 * leads out: a symbolic link that would is refused with EXDEV (with ELOOP, as any
 * symbolic link, on kernels without openat2).
 */
#ifndef PT_REPLAY_ROOT_H
#define PT_REPLAY_ROOT_H

#include <sys/stat.h>
#include <sys/types.h>

#include "common/err.h"

struct root;

/* Opens an existing directory; NULL and err. */
struct root *root_create(const char *path, struct pt_err *err);
void root_destroy(struct root *root);

/* The path as the user gave it. */
const char *root_path(const struct root *root);

/* From now on as on a kernel without openat2, for tests. */
void root_without_openat2(struct root *root);

/*
 * A trace's absolute path as a name below the root: no leading slash, no "." and
 * "..", which at the top stays at the top.  "." for the root itself.  For the
 * caller to free; NULL if there is no memory.
 */
char *root_relative(const char *path);

/* As open, mkdir, ...; -1 and errno. */
int root_open(const struct root *root, const char *name, int flags, mode_t mode);
int root_stat(const struct root *root, const char *name, struct stat *st); /* as lstat */
int root_mkdir(const struct root *root, const char *name, mode_t mode);
int root_unlink(const struct root *root, const char *name);
int root_rmdir(const struct root *root, const char *name);
int root_rename(const struct root *root, const char *from, const char *to, unsigned flags);
int root_link(const struct root *root, const char *from, const char *to);
int root_link_fd(const struct root *root, int fd, const char *to);
int root_symlink(const struct root *root, const char *target, const char *name);
ssize_t root_readlink(const struct root *root, const char *name, char *target, size_t size);
int root_touch(const struct root *root, const char *name); /* of a link, too */

/* As chmod, but of a symbolic link, which is not followed: EOPNOTSUPP. */
int root_chmod(const struct root *root, const char *name, mode_t mode);

/*
 * A descriptor (O_PATH) of what the name leads to, links followed as far as they do not
 * leave the root; for calls on what was found.
 */
int root_pin(const struct root *root, const char *name);

/*
 * The target for a symbolic link `name`, so that it leads below the root: an absolute one,
 * and one that climbs out, become relative to the link's directory.  For the caller to
 * free; NULL if there is no memory.
 */
char *root_target(const char *name, const char *target);

#endif
