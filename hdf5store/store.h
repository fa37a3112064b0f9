/*
 * The store: one HDF5 file with the I/O of all nodes of an application and the
 * dependencies between them.
 *
 * One-dimensional, chunked, shuffled and deflated datasets for all nodes
 * together; /nodes/first and /nodes/count say which rows of /events are whose.
 *
 *   /            attributes format="paratrace-store", version, created, generator,
 *                epoch_ns (begin_ns 0 in ns since 1970)
 *   /calls/      name class replay fields           (op is an index into these)
 *   /nodes/      rank process thread host exe first count start_ns
 *   /events/     one dataset for each member of struct pt_store_event
 *   /files/      path dev ino size made dir
 *   /names       all strings, NUL-terminated, as bytes; the first is empty
 *   /edges/      src_node src_event dst_node dst_event by
 *   /barriers/   first count by                     (rows of /barrier_members)
 *   /barrier_members/  node event
 *   /runs/       dir spec host job step complete lost
 *
 * Every string column (name class replay fields host exe path dir spec, text of an
 * event) holds offsets in /names.  /files/dir is a number, enum pt_store_kind.
 *
 * A barrier replaces the edges between its members: each member's `event` starts
 * only after the event before it is done on every other member.  An event is in
 * one barrier at most.  A member arrives at its barrier as soon as its event
 * before is done, that is ahead of its WAITs: arriving after them could deadlock.
 */
#ifndef PT_STORE_H
#define PT_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "common/calls.h"
#include "common/err.h"
#include "common/trace.h"

#define PT_STORE_VERSION 1
#define PT_NO_FILE       UINT32_MAX

/*
 * Columns of /events: COLUMN(type, name).  Think time, what lies between the end
 * of the I/O event before and `begin`, is in three parts: before the first sync
 * call (0), between the first and the last (1), after the last (2); without a sync
 * call all of it is part 0.  A SIGNAL of the event before fires after part 0, the
 * event's WAITs come before part 2.
 */
#define PT_STORE_EVENT_COLUMNS(COLUMN)                                                           \
    COLUMN(uint16_t, op)       /* row of /calls */                                               \
    COLUMN(uint16_t, flags)    /* PT_EV_* */                                                     \
    COLUMN(int32_t, err)       /* errno, 0: succeeded */                                         \
    COLUMN(uint64_t, begin_ns) /* since the first node's start, all hosts on one clock */        \
    COLUMN(uint64_t, dur_ns)                                                                     \
    COLUMN(uint64_t, compute0_ns) /* CPU time */                                                 \
    COLUMN(uint64_t, compute1_ns)                                                                \
    COLUMN(uint64_t, compute2_ns)                                                                \
    COLUMN(uint64_t, idle0_ns) /* asleep by itself */                                            \
    COLUMN(uint64_t, idle1_ns)                                                                   \
    COLUMN(uint64_t, idle2_ns)                                                                   \
    COLUMN(uint64_t, sync_ns)     /* in sync calls */                                            \
    COLUMN(uint64_t, sync_cpu_ns) /* CPU time in them: does it spin or sleep while it waits? */  \
    COLUMN(uint32_t, syncs)       /* how many of them */                                         \
    COLUMN(int32_t, fd)           /* -1: none */                                                 \
    COLUMN(uint32_t, handle)      /* which open of the process fd stands for; an open's own */   \
    COLUMN(int32_t, fd2)                                                                         \
    COLUMN(uint32_t, handle2)                                                                    \
    COLUMN(uint32_t, file)  /* row of /files, PT_NO_FILE: none */                                \
    COLUMN(uint32_t, file2) /* second name, a link's target, or the file of fd2 */               \
    COLUMN(int64_t, off)                                                                         \
    COLUMN(int64_t, off2) /* in fd2; -1: at its position, as with off */                         \
    COLUMN(int64_t, len)                                                                         \
    COLUMN(int32_t, whence)                                                                      \
    COLUMN(int32_t, oflags)                                                                      \
    COLUMN(uint32_t, mode)                                                                       \
    COLUMN(uint64_t, addr) /* of a mapping */                                                    \
    COLUMN(uint64_t, text) /* a link's target, an attribute's name: offset in /names, 0: none */ \
    COLUMN(int64_t, ret)

struct pt_store_event {
#define COLUMN(type, name) type name;
    PT_STORE_EVENT_COLUMNS(COLUMN)
#undef COLUMN
};

struct pt_store_node {
    struct pt_name name;
    const char *host;
    const char *exe;       /* path of the program */
    uint64_t first, count; /* rows of /events */
    uint64_t start_ns;     /* since the first node's start */
};

/* Whether a file must be there before a replay: /files/made. */
enum pt_store_made {
    PT_MADE_BEFORE,   /* it must be there */
    PT_MADE_BY_TRACE, /* it must not be there: the trace creates it, or finds it absent */
    PT_MADE_UNKNOWN,  /* the trace does not tell */
};

/* What it is: /files/dir. */
enum pt_store_kind {
    PT_KIND_FILE,
    PT_KIND_DIR,
    PT_KIND_LINK, /* symbolic, to a target that is not known but its length, `size` */
};

struct pt_store_file {
    const char *path; /* absolute */
    uint64_t dev, ino;
    uint64_t size; /* it must have before a replay: largest of what is read before written
                      and of the size at its first open, 0 if the trace makes it */
    uint8_t made;  /* enum pt_store_made */
    uint8_t dir;   /* enum pt_store_kind */
};

/* Who has found an edge or barrier: /edges/by, /barriers/by. */
enum { PT_BY_HOLD = 1, PT_BY_MPI = 2 };

/* Event dst_event of dst_node cannot start before src_event of src_node is done. */
struct pt_store_edge {
    uint32_t src_node, dst_node;
    uint64_t src_event, dst_event; /* from 0 within the node */
    uint8_t by;
};

struct pt_store_member {
    uint32_t node;
    uint64_t event;
};

struct pt_store_barrier {
    size_t nmembers;
    const struct pt_store_member *members; /* sorted by node */
    uint8_t by;                            /* of any of its edges */
};

/* A run that was merged. */
struct pt_store_run {
    const char *dir;
    const char *spec; /* argument of --ptrace */
    const char *host; /* comma-separated */
    uint64_t job, step;
    uint8_t complete; /* 0: cut off, or a host's file was missing */
    uint64_t lost;    /* events */
};

struct pt_store;

/*
 * Opens for reading; a damaged, foreign or newer file is refused with a reason:
 * "cannot open store 'PATH': why".  Everything but the events is read and checked
 * here: indexes are within their tables and strings are terminated.
 */
struct pt_store *pt_store_open(const char *path, struct pt_err *err);
void pt_store_close(struct pt_store *s);

size_t pt_store_nnodes(const struct pt_store *s);
const struct pt_store_node *pt_store_node(const struct pt_store *s, size_t i);
size_t pt_store_nfiles(const struct pt_store *s);
const struct pt_store_file *pt_store_file(const struct pt_store *s, size_t i);
size_t pt_store_ncalls(const struct pt_store *s);
const struct pt_call_desc *pt_store_call(const struct pt_store *s, size_t op);
size_t pt_store_nedges(const struct pt_store *s);
const struct pt_store_edge *pt_store_edges(const struct pt_store *s); /* by dst_node, dst_event */
size_t pt_store_nbarriers(const struct pt_store *s);
const struct pt_store_barrier *pt_store_barrier(const struct pt_store *s, size_t i);
size_t pt_store_nruns(const struct pt_store *s);
const struct pt_store_run *pt_store_run(const struct pt_store *s, size_t i);

/* An event's `text`; NULL if it has none. */
const char *pt_store_text(const struct pt_store *s, uint64_t text);

/*
 * Reads `count` events of a node, beginning with its event `first`, into `out`.
 * Their op, file, file2 and text are within the tables; the other columns are as found.
 */
int pt_store_read_events(struct pt_store *s, size_t node, uint64_t first, uint64_t count,
                         struct pt_store_event *out, struct pt_err *err);

#endif
