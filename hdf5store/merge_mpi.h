/*
 * Edges from MPI: which send a receive took, which calls were one collective, and what
 * the MPI standard says about their order.
 *
 *   merge_mpi.c     what is kept of a node's MPI calls while its run is read
 *   mpi_comms.c     which communicators of different ranks are the same
 *   mpi_process.c   a process' calls in order: what was posted, what completed it
 *   mpi_match.c     messages and collectives, and their edges
 */
#ifndef PT_MERGE_MPI_H
#define PT_MERGE_MPI_H

#include "common/mpi_abi.h"
#include "hdf5store/merge.h"

/* ---- what a call means ---------------------------------------------------------------- */

enum mpi_role {
    MPI_ROLE_NONE,
    MPI_ROLE_SEND,
    MPI_ROLE_RECV,
    MPI_ROLE_SENDRECV,
    MPI_ROLE_PROBE,  /* sees a message, does not take it */
    MPI_ROLE_MPROBE, /* takes it; an MRECV says when its receive began */
    MPI_ROLE_MRECV,
    MPI_ROLE_COLL,
    MPI_ROLE_START,  /* a persistent request */
    MPI_ROLE_DONE,   /* a request was completed */
    MPI_ROLE_COMM,   /* a communicator was made */
    MPI_ROLE_GROUP,  /* the partners of the window's next epoch */
    MPI_ROLE_ACCESS, /* an epoch of access begins, ends */
    MPI_ROLE_ACCESS_END,
    MPI_ROLE_EXPOSE, /* an epoch of exposure begins, ends */
    MPI_ROLE_EXPOSE_END,
};

/* In which order a collective puts its members: who has begun before who ends. */
enum mpi_order {
    MPI_ORDER_NONE,
    MPI_ORDER_BARRIER,   /* all before all */
    MPI_ORDER_ALL,       /* all before those with a count */
    MPI_ORDER_EACH,      /* all before those with a count for every member */
    MPI_ORDER_FENCE,     /* all before all, unless there was nothing to end */
    MPI_ORDER_FROM_ROOT, /* the root before those with a count */
    MPI_ORDER_TO_ROOT,   /* those with a count before the root */
    MPI_ORDER_LOWER,     /* lower ranks before higher ones, with a count */
};

enum {
    MPI_BEGUN = 1,      /* ends when its request is completed */
    MPI_PERSISTENT = 2, /* begins when its request is started */
    MPI_SYNC = 4,       /* a send that waits for its receive */
    MPI_BUFFERED = 8,   /* a send that never does */
};

struct mpi_call {
    const char *name;
    uint8_t role, order, flags;
};

/* NULL for a call that says nothing about order. */
const struct mpi_call *mpi_find_call(const char *name);

/* ---- what is kept of a call --------------------------------------------------------------- */

struct mpi_record {
    const struct mpi_call *call;
    uint64_t begin, end; /* ns since 1970 */
    int64_t len;         /* of a send: bytes, of a collective: count, of a fence: assertion */
    uint32_t io;         /* I/O events of the node before it */
    uint32_t text;       /* members: number of the run's `names` */
    uint64_t req;
    int32_t comm, parent;
    int32_t peer, tag, peer2, tag2;
};

/* ---- communicators ---------------------------------------------------------------------- */

/* One of the application: the same for all its members. */
struct mpi_comm {
    uint32_t world;
    int inter;           /* it has two groups */
    size_t n[2];         /* members, of the second group only if `inter` */
    int32_t *members[2]; /* world ranks */
};

struct mpi_comms {
    struct mpi_comm *comms;
    size_t n, size;
    struct names keys; /* what tells them apart; a number of these is a communicator */
    struct names kinds;
};

/* What a process knows. */
struct mpi_known {
    struct map comms;  /* its numbers -> ours */
    struct map counts; /* kind -> how many there were */
    uint32_t world;
    int32_t rank; /* in the world; -1: the process is not one of MPI */
};

#define MPI_NO_COMM UINT32_MAX

/* Adds the one that the record (of role COMM) describes.  `process` tells processes apart. */
int mpi_comms_add(struct mpi_comms *c, struct mpi_known *known, const struct mpi_record *r,
                  const char *members, size_t process, struct pt_err *err);
/* Of a process' number; MPI_NO_COMM if it is not known. */
uint32_t mpi_comms_find(const struct mpi_known *known, int32_t number);
/* In which group the world rank is: 0 or 1, and at which place; -1: in none. */
int mpi_comm_side(const struct mpi_comm *comm, int32_t rank, size_t *place);
/* The world rank of a partner in messages, -1 if there is none. */
int32_t mpi_comm_partner(const struct mpi_comm *comm, int32_t self, int32_t peer);
void mpi_comms_free(struct mpi_comms *c);
/* World ranks as the tracer writes them: a new array, NULL without memory or for nonsense. */
int32_t *mpi_parse_ranks(const char *text, size_t len, size_t *n);

/* ---- what happened -------------------------------------------------------------------------- */

#define MPI_NEVER UINT32_MAX

/* Where a node stood. */
struct mpi_point {
    uint32_t node; /* of the run */
    uint32_t io;   /* I/O events before; MPI_NEVER: it never came there */
};

/* A message at one of its ends. */
struct mpi_message {
    uint32_t comm;
    int32_t src, dst, tag;
    uint32_t seq; /* order within the process */
    uint8_t flags;
    uint8_t peeks; /* a probe */
    int64_t len;
    struct mpi_point post, done;
    uint64_t begin, end; /* of the call that posted it */
};

struct mpi_collective {
    uint32_t comm;
    uint32_t turn; /* the how manyeth on that communicator, in this process */
    int32_t rank;
    int32_t peer;
    int64_t len;
    const struct mpi_call *call;
    struct mpi_point post, done;
};

/* All of a run. */
struct mpi_events {
    struct mpi_message *sends, *receives;
    size_t nsends, sends_size, nreceives, receives_size;
    struct mpi_collective *collectives;
    size_t ncollectives, collectives_size;
    struct mpi_comms comms;
};

/* What could not be used; for the warnings. */
struct mpi_report {
    uint64_t edges;
    uint64_t sends, receives; /* without the other end */
    uint64_t open_receives;   /* whose sender is not known: never completed */
    uint64_t unknown;         /* calls on communicators that are not known */
    uint64_t doubtful;        /* messages that several threads sent or received at once */
    uint64_t mixed;           /* communicators on which ranks made different collectives */
    uint64_t missing_ranks;   /* of MPI worlds: not traced */
    uint64_t twice;           /* processes with the rank of another one */
    uint64_t cut;             /* calls behind a loss */
};

/* Reads a process, the nodes [first, end) of the run. */
int mpi_read_process(struct mpi_events *e, const struct merge_run *run, size_t first, size_t end,
                     struct mpi_known *known, struct mpi_report *report, struct pt_err *err);

/*
 * Appends the run's edges to *edges.  A standard send of more than `rendezvous` bytes is
 * taken to wait for its receive; 0: none is.
 */
int mpi_collect_edges(const struct merge_run *base, const struct merge_run *run,
                      uint64_t rendezvous, struct pt_store_edge **edges, size_t *n,
                      struct mpi_report *report, struct pt_err *err);

#endif
