/*
 * Anonymous names: of files, programs and users, made with a keyed hash.
 *
 * The same name becomes the same one wherever the same key is used, and different names
 * stay different.  A path is treated name by name, so that directories, relative names
 * and what lies in which directory remain what they were.  Kept: slashes, ".", "..", a
 * leading dot, an extension of up to 8 letters and digits, and the names of what no
 * installation is without, such as /dev/null (the tools know these).
 */
#ifndef PT_ANON_H
#define PT_ANON_H

#include <stddef.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/siphash.h"

struct pt_anon_key {
    unsigned char bytes[PT_SIPHASH_KEY];
};

/*
 * The key that follows from a file's content, of at least 16 bytes.  The file must be a
 * regular one of root's or our own that nobody else can read.  -1 and err if it is not.
 */
int pt_anon_read_key(const char *path, struct pt_anon_key *key, struct pt_err *err);

/* The key of one user, from which the site's cannot be found. */
void pt_anon_user_key(const struct pt_anon_key *site, uid_t uid, struct pt_anon_key *user);

/* As 32 hexadecimal digits, and back; -1 if it is none. */
#define PT_ANON_HEX (2 * PT_SIPHASH_KEY + 1)
void pt_anon_format_key(const struct pt_anon_key *key, char hex[PT_ANON_HEX]);
int pt_anon_parse_key(const char *hex, struct pt_anon_key *key);

/*
 * The anonymous path, which is cut nowhere: if it does not fit into `size` (100 at
 * least), one name stands for all that is left of it.
 */
void pt_anon_path(const struct pt_anon_key *key, const char *path, char *out, size_t size);

/* Of an extended attribute: "user." and the like are kept, as the kernel needs them. */
void pt_anon_attribute(const struct pt_anon_key *key, const char *name, char *out, size_t size);

/* Leaves out of a valid SPEC the items that name something; text[] becomes no longer. */
void pt_anon_spec(char *text);

#endif
