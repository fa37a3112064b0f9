/*
 * What makes the calls of a replay: a function for each of the replayer's operations.
 */
#ifndef PT_REPLAY_ENGINE_H
#define PT_REPLAY_ENGINE_H

#include <stdint.h>

#include "common/calls.h"
#include "hdf5store/store.h"
#include "replay/handles.h"
#include "replay/mappings.h"
#include "replay/root.h"

struct engine_call {
    const struct root *root;
    const struct pt_store_event *event;
    const char *path, *path2; /* below the root; NULL if the call has none */
    const char *text;         /* the event's; NULL if it has none */
    struct handle_live live;  /* what its handle stands for; fd -1 if the call has none */
    int fd2;                  /* the second descriptor, -1 if there is none */
    struct handles *handles;  /* for what belongs to the handle: */
    uint32_t slot;
    void *buffer; /* to read into or to write from, event->len bytes */
    struct mappings *mappings;
    uint32_t process;         /* whose mappings */
    struct handle_live *made; /* an open's result, all of it */
};

/* Makes the call: its result (open and dup: a descriptor), or -1 and errno. */
typedef int64_t engine_fn(const struct engine_call *call);

struct engine {
    const char *name;
    engine_fn *op[PT_NREPLAYS]; /* NULL: cannot be replayed */
};

extern const struct engine engine_posix;

static inline int engine_can(const struct engine *engine, enum pt_replay op)
{
    return (unsigned)op < PT_NREPLAYS && engine->op[op];
}

#endif
