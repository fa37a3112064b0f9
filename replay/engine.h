/*
 * What makes the calls of a replay: a function for each of the replayer's operations.
 */
#ifndef PT_REPLAY_ENGINE_H
#define PT_REPLAY_ENGINE_H

#include <stdint.h>

#include "common/calls.h"
#include "hdf5store/store.h"
#include "replay/root.h"

enum { ENGINE_NOPS = PT_REPLAY_RMDIR + 1 };

struct engine_call {
    const struct root *root;
    const struct pt_store_event *event;
    const char *path, *path2; /* below the root; NULL if the call has none */
    int fd;                   /* the live descriptor; -1 if the call has none */
    void *buffer;             /* to read into or to write from, event->len bytes */
};

/* Makes the call: its result (open and dup: a descriptor), or -1 and errno. */
typedef int64_t engine_fn(const struct engine_call *call);

struct engine {
    const char *name;
    engine_fn *op[ENGINE_NOPS]; /* NULL: cannot be replayed */
};

extern const struct engine engine_posix;

static inline int engine_can(const struct engine *engine, enum pt_replay op)
{
    return (unsigned)op < ENGINE_NOPS && engine->op[op];
}

#endif
