/*
 * Run files: what one watchdog writes of one step on one host.
 *
 * Layout (all integers little-endian):
 *
 *   8 bytes "PTRUN\r\n\032", u32 version, u32 zero
 *   blocks:  u32 type, u32 length, u32 crc32 of the payload, u32 node; payload
 *
 * The first block is the META text ("key=value" lines), the second the table of
 * calls as text, so that a reader with another table understands the file.  An
 * EVENTS block holds events of one node and can be decoded by itself.  A file
 * without an END block at its end was cut off: everything before is valid.
 *
 * An event, in an EVENTS block (v: varint, z: zigzag varint):
 *
 *   v op, v flags, v gap, v duration, [v busy] [v cpu] [v hold] [v polls] [v waited]
 *   [v errno] [z result]
 *   v mask of the fields that differ from the last event of the same op in this
 *   block, then each of those as z difference, strings as v length and bytes
 */
#ifndef PT_TRACE_H
#define PT_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/calls.h"
#include "common/err.h"

#define PT_RUN_VERSION 1
#define PT_RUN_SUFFIX  ".ptrun"

/* A node's name: one thread of one process of one rank. */
struct pt_name {
    int32_t rank;
    int32_t process; /* in the order in which they were created: preload/lineage.h */
    int32_t thread;  /* in the order in which the process' threads came */
};

enum {
    PT_EV_INNER = 1 << 0, /* made below an MPI-IO call: kept, not replayed */
    PT_EV_SYNC = 1 << 1,  /* an FDIO call on a pipe or socket */
    PT_EV_IDLE = 1 << 9,  /* a call that waits for descriptors, without any: it sleeps */
};

struct pt_event {
    uint16_t op;     /* index into the reader's table, not the compiled one */
    uint16_t flags;  /* PT_EV_* */
    int32_t err;     /* errno of a failed call, else 0 */
    uint64_t begin;  /* CLOCK_MONOTONIC of the host, ns */
    uint64_t dur;    /* ns */
    uint64_t cpu;    /* CPU time used since the end of the last event, ns */
    uint64_t busy;   /* CPU time used in the call itself, ns */
    uint64_t polls;  /* unsuccessful ones that are folded into this event */
    uint64_t waited; /* how long they took, if they came before `begin`, ns */
    uint64_t hold;   /* how long the call was held, before `waited`, ns */
    int64_t ret;
    int64_t field[PT_NFIELDS];    /* those that the call's row names */
    const char *str[PT_NSTRINGS]; /* by pt_field_string(), or NULL */
};

/* Where a node was when a held I/O found everybody at rest. */
enum pt_hold_state {
    PT_STATE_BLOCKED, /* waits in a sync call */
    PT_STATE_GONE,    /* has ended, or is not traced any more */
    PT_STATE_BUSY,    /* still at work when hold-max ran out */
    PT_STATE_ASSUMED, /* longer without progress than the maxima say */
};

struct pt_hold_peer {
    struct pt_name name;
    uint64_t io_done; /* I/O events completed: it is stuck before this one */
    enum pt_hold_state state;
};

struct pt_hold {
    struct pt_name name; /* who was held */
    uint64_t io_event;   /* before which of its I/O events, from 0 */
    uint64_t ns;         /* for how long */
    int timed_out;
    size_t npeers;
    const struct pt_hold_peer *peers;
};

struct pt_node {
    struct pt_name name;
    int32_t pid, tid;
    uint64_t start;  /* CLOCK_MONOTONIC, ns: where its first think time begins */
    const char *exe; /* path of the program */
    const char *cwd; /* working directory at the start */
};

struct pt_loss {
    uint64_t after; /* events of that node before the loss */
    uint64_t count;
};

struct pt_call_desc {
    char name[PT_NAME_MAX];
    enum pt_class cls;
    enum pt_replay replay; /* by name from our own table; NONE for unknown calls */
    uint8_t nfields;
    int8_t fields[PT_MAX_FIELDS];  /* enum pt_field; -1: one that we do not know */
    uint8_t string[PT_MAX_FIELDS]; /* the field is a string */
};

/* ---- reading ------------------------------------------------------------ */

enum pt_item_kind {
    PT_ITEM_NODE, /* `node` numbers it; its events follow in later items */
    PT_ITEM_EVENT,
    PT_ITEM_HOLD,
    PT_ITEM_LOSS,
    PT_ITEM_END, /* the file is complete */
};

struct pt_item {
    enum pt_item_kind kind;
    uint32_t node; /* NODE, EVENT, LOSS: number within this file */
    union {
        struct pt_node info;
        struct pt_event event;
        struct pt_hold hold;
        struct pt_loss loss;
    };
};

struct pt_reader;

/* Opens a run file; NULL and err for one that is damaged, foreign or newer. */
struct pt_reader *pt_reader_open(const char *path, struct pt_err *err);
void pt_reader_close(struct pt_reader *r);

/*
 * Reads the next item: 1, or 0 at the end, or -1 and err if the file is damaged.
 * What the item points to is valid until the next call.  A file that was cut off
 * (its writer was killed) ends after its last whole block, without PT_ITEM_END.
 */
int pt_reader_next(struct pt_reader *r, struct pt_item *item, struct pt_err *err);

/* The table of calls that the file was written with. */
const struct pt_call_desc *pt_reader_call(const struct pt_reader *r, unsigned op);
unsigned pt_reader_ncalls(const struct pt_reader *r);

/*
 * A value of the META block: host, job, step, array_job, array_task, restart,
 * nhosts, hostid, ntasks, user, uid, spec, note, version, realtime (ns since
 * 1970 at `monotonic`), monotonic (ns); after PT_ITEM_END also exit.TASK (wait
 * status) and lost.  NULL if it is not there.  Valid until the next item is read.
 */
const char *pt_reader_meta(const struct pt_reader *r, const char *key);

/* ---- writing ------------------------------------------------------------ */

struct pt_writer;

/* Creates the file (which must not exist) and writes META and CALLS. */
struct pt_writer *pt_writer_create(int dirfd, const char *name, const char *meta,
                                   struct pt_err *err);

/* Each returns 0, or -1 and errno once writing has failed; then nothing more is written. */
int pt_writer_node(struct pt_writer *w, uint32_t node, const struct pt_node *info);
int pt_writer_event(struct pt_writer *w, uint32_t node, const struct pt_event *ev);
int pt_writer_hold(struct pt_writer *w, const struct pt_hold *hold);
int pt_writer_loss(struct pt_writer *w, uint32_t node, const struct pt_loss *loss);
int pt_writer_flush(struct pt_writer *w);
/* How large the file has become; up to a block (64 KiB) of each node is still to come. */
uint64_t pt_writer_size(const struct pt_writer *w);
/* How many events were given to the writer and are not in the file, after a flush. */
uint64_t pt_writer_lost(const struct pt_writer *w);
/* No more events of this node: its memory is freed. */
int pt_writer_node_end(struct pt_writer *w, uint32_t node);

/* Writes the END block and closes.  `text` holds "key=value" lines about the end. */
int pt_writer_close(struct pt_writer *w, const char *text);

/* "RANK" or "RANK.PROCESS.THREAD"; returns buf. */
#define PT_NAME_LEN 40
char *pt_name_format(char buf[PT_NAME_LEN], const struct pt_name *name);

/* The order of nodes everywhere; inline because the tracer needs it, too: plans are sorted by it.
 */
static inline int pt_name_compare(const struct pt_name *a, const struct pt_name *b)
{
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

/* An event's class: resolves by the event's flags what the row leaves open. */
static inline enum pt_class pt_event_class(const struct pt_call_desc *call,
                                           const struct pt_event *ev)
{
    if (ev->flags & PT_EV_IDLE)
        return PT_CLASS_IDLE;
    if (call->cls != PT_CLASS_FDIO)
        return call->cls;
    return ev->flags & PT_EV_SYNC ? PT_CLASS_SYNC : PT_CLASS_IO;
}

#endif
