/*
 * What this rank replays: its nodes, all of their events, read ahead, and what is to
 * be done with each event.
 */
#ifndef PT_REPLAY_PLAN_H
#define PT_REPLAY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "hdf5store/store.h"
#include "replay/handles.h"
#include "replay/mappings.h"

enum plan_action {
    PLAN_ISSUE,       /* make the call */
    PLAN_BEFORE,      /* opened before the clock starts: the process inherited it */
    PLAN_REOPEN,      /* inherited, but of a file that the trace makes: opened in its place */
    PLAN_NOTHING,     /* a mark, a call below an MPI-IO call, or one plan_relax() leaves out */
    PLAN_IGNORED,     /* on a terminal, a pipe, a device */
    PLAN_MPI_IO,      /* a call of MPI-IO */
    PLAN_FAILED,      /* failed in the trace in a way that would not repeat */
    PLAN_UNSUPPORTED, /* no engine can make this call */
    PLAN_NO_HANDLE,   /* its descriptor comes from nowhere */
    NPLAN_ACTIONS
};

struct plan_step {
    uint8_t action; /* enum plan_action */
    uint32_t slot;  /* of the handle that is used, or that an open makes */
    uint32_t slot2; /* of the handle that a dup makes, or of a second one that is used */
    uint32_t uses;  /* close: of its handle, before it, by all threads */
};

struct plan_node {
    size_t node; /* of the store */
    const struct pt_store_node *info;
    uint32_t process;  /* number of its process on this rank */
    uint64_t delay_ns; /* start after that of the first node of its trace rank */
    uint64_t nevents;
    struct pt_store_event *events;
    struct plan_step *steps;
};

struct plan {
    int rank, nranks;
    struct pt_store *store;
    size_t nnodes;
    struct plan_node *nodes;
    size_t nprocesses;
    struct handles *handles;
    struct mappings *mappings;
    char **paths; /* of the store's files, relative to the root */
    size_t max_read, max_write;
    size_t direct; /* opens with O_DIRECT */
};

/*
 * Reads everything that this rank will need; the store stays open until the plan is
 * destroyed, but is not read again.  -1 and err.
 */
int plan_create(struct plan *plan, struct pt_store *store, int rank, int nranks,
                struct pt_err *err);
void plan_destroy(struct plan *plan);

/* Whether a file of the store is a device or the like, which no replay can make. */
bool plan_file_is_special(const struct pt_store_file *file);

/*
 * What the nodes' first use of each file says about it, as a word of which the
 * smallest over all ranks counts.  `words` has room for each file of the store.
 */
enum plan_touch {
    TOUCH_ABSENT, /* it was not there */
    TOUCH_MKDIR,  /* it was not there and became a directory */
    TOUCH_DIR,    /* it was a directory */
    TOUCH_ANY,    /* it was there, or this is not known */
};

#define PLAN_UNTOUCHED   UINT64_MAX
#define PLAN_TOUCH(word) ((enum plan_touch)((word)&3))

void plan_first_touch(const struct plan *plan, uint64_t *words);

/*
 * For each file, the first and the last of this rank's nodes that name it, from 1 (UINT64_MAX
 * and 0: none does), and how far their calls reach.
 */
struct plan_users {
    uint64_t *first, *last;
};
void plan_use(const struct plan *plan, const struct plan_users *users, uint64_t *extents);

/*
 * Where order is not kept: the files with a true `shared`, which are there beforehand, are
 * neither emptied by an open, nor insisted on being new, nor removed while another node may still
 * want them.
 */
void plan_relax(struct plan *plan, const bool *shared);

/* When the first event of these nodes began in the trace; UINT64_MAX without events. */
uint64_t plan_first_begin(const struct plan *plan);

static inline const struct pt_call_desc *plan_call(const struct plan *plan,
                                                   const struct pt_store_event *ev)
{
    return pt_store_call(plan->store, ev->op);
}

#endif
