/*
 * Getting the files under the root into the state that the trace found them in.
 *
 * Files are made and removed only in a root that is ours: one that was empty, which
 * then gets a marker file, or that has the marker.
 */
#ifndef PT_REPLAY_PREPARE_H
#define PT_REPLAY_PREPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "replay/root.h"

#define PREPARE_MARKER ".ptreplay"

enum prepare_need {
    NEED_NOTHING,
    NEED_ABSENT,   /* must not be there, and the trace does not make it */
    NEED_MADE,     /* must not be there: the trace makes it */
    NEED_MADE_DIR, /* the same, a directory */
    NEED_FILE,     /* must be there with its size */
    NEED_DIR,
    NEED_LINK, /* a symbolic link with a target of so many bytes, which leads nowhere */
};

struct prepare_file {
    const char *name; /* below the root */
    uint64_t size;
    enum prepare_need need;
    bool created; /* by this rank */
};

struct prepare {
    const struct root *root;
    size_t nfiles;
    struct prepare_file *files;
    bool marked; /* the marker is of this run */
    size_t ndirs;
    char **dirs; /* created by prepare_tree(), outer before inner */
};

/* `files` belongs to the caller and must stay. */
void prepare_init(struct prepare *p, const struct root *root, struct prepare_file *files,
                  size_t nfiles);
void prepare_free(struct prepare *p);

/*
 * Makes sure that the root is ours: refuses one that holds files and no marker, except
 * by force.  Force leaves no marker.
 */
int prepare_claim(struct prepare *p, bool force, struct pt_err *err);

/* Files in the order of their names. */
struct prepare_list {
    struct prepare_file **files;
    size_t n;
};

/* Those with one of the needs (1 << NEED_...); no `files` if there is no memory. */
struct prepare_list prepare_select(const struct prepare *p, unsigned needs);
/* The one of that name; NULL: there is none. */
struct prepare_file *prepare_find(const struct prepare_list *list, const char *name);

/* Removes what must not be there and makes directories and links; for one rank. */
int prepare_tree(struct prepare *p, struct pt_err *err);

/*
 * Makes every `step`-th file from `first` on, with data, on stable storage and out of
 * the page cache.  A file that is there with its size and all blocks stays.
 */
int prepare_data(struct prepare *p, size_t first, size_t step, struct pt_err *err);

/*
 * Instead of the two above, for files that are taken as they are: refuses a pipe, socket
 * or device among every `step`-th file from `first` on, which could block the replay.
 */
int prepare_verify(const struct prepare *p, size_t first, size_t step, struct pt_err *err);

/*
 * The reverse: removes what this run created, or the trace made.  First each rank the
 * files that it made, then one rank the rest.  What cannot be removed stays.
 */
void prepare_clean_data(struct prepare *p);
void prepare_clean_tree(struct prepare *p);

#endif
