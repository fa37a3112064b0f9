/*
 * What the replayer's operations have in common: what they take, and what is compared.
 */
#ifndef PT_REPLAY_OPS_H
#define PT_REPLAY_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/calls.h"
#include "hdf5store/store.h"

enum {
    OP_FD = 1 << 0,      /* works on a descriptor */
    OP_FD2 = 1 << 1,     /* and copies to a second one */
    OP_STREAM = 1 << 2,  /* on the stream behind the descriptor */
    OP_DIR = 1 << 3,     /* on the directory stream behind it */
    OP_NAME = 1 << 4,    /* on a name */
    OP_NAME2 = 1 << 5,   /* and on a second one */
    OP_OPENS = 1 << 6,   /* makes a handle */
    OP_READS = 1 << 7,   /* needs a buffer to read `len` bytes into */
    OP_WRITES = 1 << 8,  /* needs `len` bytes to write */
    OP_REMOVES = 1 << 9, /* takes a name away */
    OP_LOOSE = 1 << 10,  /* results differ from system to system: only failures count */
};

extern const uint16_t op_traits[PT_NREPLAYS];

static inline bool op_is(enum pt_replay op, unsigned traits)
{
    return (op_traits[op] & traits) != 0;
}

/* Whether this event works on a descriptor: some calls with a name may do without it. */
static inline bool op_uses_descriptor(enum pt_replay op, const struct pt_store_event *ev)
{
    if (op == PT_REPLAY_FFLUSH) /* of one stream, or of all */
        return ev->handle != 0;
    return op_is(op, OP_FD) || (op_is(op, OP_NAME) && !op_is(op, OP_OPENS) && ev->handle != 0);
}

#endif
