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
int root_rename(const struct root *root, const char *from, const char *to);

#endif
