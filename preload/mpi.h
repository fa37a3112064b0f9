/*
 * What MPI's handles stand for: communicators and requests get numbers, in tables that
 * need no lock.  A communicator's number and members are recorded when it is made, a
 * request's number when it is posted and when it is completed; ptmerge finds out which
 * message or collective was which.
 */
#ifndef PT_PRELOAD_MPI_H
#define PT_PRELOAD_MPI_H

#include "common/mpi_abi.h"
#include "preload/tracer.h"

/* ---- the library -------------------------------------------------------------------- */

struct pt_mpi {
    int known;    /* the library is one whose handles and constants we know */
    int match;    /* requests are followed */
    int multiple; /* several threads may be in the library at once */
    void *world, *self, *null_comm;
    void *null_request, *no_message;
    void *world_group;
    int judged; /* I/Os are held in this run */
};

extern struct pt_mpi pt_mpi __attribute__((visibility("hidden")));

/* After MPI_Init: finds the library's handles, records the world. */
void pt_mpi_begin(struct pt_thread *t);
/* Before MPI_Finalize: leaves nothing behind in the library. */
void pt_mpi_end(void);

/* ---- communicators and windows --------------------------------------------------------- */

/* The number of one that is neither the world nor self; -1 if it is not known. */
int64_t pt_mpi_comm_slow(void *handle);

static inline int64_t pt_mpi_comm(void *handle)
{
    if (PT_LIKELY(handle == pt_mpi.world))
        return PT_MPI_WORLD;
    return handle == pt_mpi.self ? PT_MPI_SELF : pt_mpi_comm_slow(handle);
}

/*
 * `made` was made from the communicator `parent` (NULL: from two): records its members.
 * `same`: they are those of the parent, which a window's are, too.
 */
void pt_mpi_comm_made(struct pt_thread *t, void *parent, void *made, int same);
/* Forgets it, before it is freed; returns its number. */
int64_t pt_mpi_comm_gone(void *handle);
/* Records the members of a group (of window `win`). */
void pt_mpi_group(struct pt_thread *t, void *win, void *group);

/* How many of an array with a count for each member are not zero; that of ourselves. */
int64_t pt_mpi_nonzero(const int *counts, void *comm);
int64_t pt_mpi_own_count(const int *counts, void *comm);

/* Bytes; 0 if they are not known. */
int64_t pt_mpi_bytes(int n, void *type);

/*
 * In runs in which I/Os are held: what the judge has to know of a call that begins.  `bytes`
 * is what it may have to move.
 */
void pt_mpi_judged_call(struct pt_thread *t, int64_t bytes);

/* ---- requests ------------------------------------------------------------------------------ */

enum {
    PT_REQ_RECV = 1,
    PT_REQ_WILD = 2,       /* its source or tag is known when it is complete */
    PT_REQ_PERSISTENT = 4, /* stays when it is complete */
    PT_REQ_QUIET = 8,      /* its completion tells nothing */
};

#define PT_REQ_RECEIVES(peer, tag) \
    (PT_REQ_RECV | ((peer) == PT_MPI_ANY || (tag) == PT_MPI_ANY ? PT_REQ_WILD : 0))
#define PT_REQ_SENDS(bytes) ((bytes) <= PT_MPI_SMALL ? PT_REQ_QUIET : 0)

/* The call (that returned `ret`) has made *req: numbers it; 0 if that was not possible. */
int64_t pt_mpi_posted(int ret, void *req, int flags);
/* The number of a request or message, 0 if it is not known; the second forgets it. */
int64_t pt_mpi_number(void *handle);
int64_t pt_mpi_take(void *handle);
/* *req goes on with the number that a message had; returns it. */
int64_t pt_mpi_renumber(int ret, void *req, int64_t number, int flags);

/* One that was completed: what is recorded of it. */
struct pt_mpi_done {
    int64_t number;
    int64_t peer, tag;
};

#define PT_MPI_NOT_DONE ((struct pt_mpi_done){0, PT_MPI_AS_ASKED, PT_MPI_AS_ASKED})

/*
 * What the table says of a request before a call that may complete it: afterwards another
 * thread may have been given the same handle.  0 where that cannot be, it is looked up later.
 */
uint64_t pt_mpi_value(void *handle);
struct pt_mpi_done pt_mpi_completed(void *handle, uint64_t value,
                                    const struct pt_mpi_status *status);

/* ---- tables: handle -> value, without locks (mpi_table.c) ----------------------------- */

enum pt_mpi_table { PT_MPI_COMMS, PT_MPI_REQUESTS, PT_MPI_NTABLES };

/* Puts or replaces; -1 if there is no room.  A value is not 0. */
int pt_mpi_table_put(enum pt_mpi_table table, void *handle, uint64_t value);
/* 0 if it is not there; the second takes it out. */
uint64_t pt_mpi_table_get(enum pt_mpi_table table, void *handle);
uint64_t pt_mpi_table_take(enum pt_mpi_table table, void *handle);
/* Takes it out if it still has that value. */
void pt_mpi_table_drop(enum pt_mpi_table table, void *handle, uint64_t value);

/* ---- many at once ---------------------------------------------------------------------------- */

#define PT_MPI_FEW 64

/* The requests of a call before it overwrites them, and statuses if the program wants none. */
struct pt_mpi_many {
    void **handles;   /* NULL: not followed */
    uint64_t *values; /* pt_mpi_value() of each */
    void *few[PT_MPI_FEW];
    uint64_t few_values[PT_MPI_FEW];
    struct pt_mpi_status statuses[PT_MPI_FEW];
};

/* Copies the handles; *status becomes ours if the program has none.  nstatuses: n or 0. */
void pt_mpi_remember(struct pt_thread *t, struct pt_mpi_many *many, int n, void *reqs,
                     int nstatuses, void **status);
/* Marks those that were completed: the first n, or those of the indexes. */
void pt_mpi_mark_all(struct pt_thread *t, const struct pt_mpi_many *many, int n,
                     const void *statuses);
void pt_mpi_mark_some(struct pt_thread *t, const struct pt_mpi_many *many, int n,
                      const int *indexes, const void *statuses);
/* Marks persistent requests that were started. */
void pt_mpi_mark_started(struct pt_thread *t, int n, void *reqs);

/* Memory for many requests goes with its thread. */
void pt_mpi_thread_end(struct pt_thread *t);

/* ---- the odd rows of calls_mpi.def: before the call, after it, when it is recorded ------ */

#define STATUS                                                           \
    struct pt_mpi_status own __attribute__((unused)) = {.cancelled = 0}; \
    if (!status && pt_mpi.match)                                         \
        status = &own;
#define WILD_STATUS(peer, tag)                                                    \
    struct pt_mpi_status own __attribute__((unused));                             \
    if (!status && pt_mpi.match && ((peer) == PT_MPI_ANY || (tag) == PT_MPI_ANY)) \
        status = &own;
/* What a wildcard has matched is recorded in its place. */
#define MATCHED(from, with)                                                                  \
    if (PT_UNLIKELY((from) == PT_MPI_ANY || (with) == PT_MPI_ANY) && pt_mpi.match && !ret && \
        status) {                                                                            \
        (from) = ((struct pt_mpi_status *)status)->source;                                   \
        (with) = ((struct pt_mpi_status *)status)->tag;                                      \
    }
#define ONE_REQUEST                            \
    struct pt_mpi_done done = PT_MPI_NOT_DONE; \
    void *handle = *(void **)req;              \
    uint64_t value = pt_mpi_value(handle);     \
    STATUS
#define MANY_REQUESTS(nstatuses) \
    struct pt_mpi_many many;     \
    pt_mpi_remember(t, &many, n, req, nstatuses, &status);
#define ANY_REQUEST                            \
    struct pt_mpi_done done = PT_MPI_NOT_DONE; \
    STATUS MANY_REQUESTS(0)
#define ANY_DONE(success)                                                \
    if (!ret && (success) && *index != PT_MPI_UNDEFINED && many.handles) \
        done = pt_mpi_completed(many.handles[*index], many.values[*index], status);

#define BEFORE_Init
#define AFTER_Init
#define THEN_Init \
    if (!ret)     \
        pt_mpi_begin(t);
#define BEFORE_Init_thread
#define AFTER_Init_thread
#define THEN_Init_thread THEN_Init

#define BEFORE_Finalize pt_mpi_end();
#define AFTER_Finalize
#define THEN_Finalize

#define BEFORE_Recv WILD_STATUS(peer, tag)
#define AFTER_Recv  MATCHED(peer, tag)
#define THEN_Recv
#define BEFORE_Sendrecv WILD_STATUS(peer2, tag2)
#define AFTER_Sendrecv  MATCHED(peer2, tag2)
#define THEN_Sendrecv
#define BEFORE_Sendrecv_replace WILD_STATUS(peer2, tag2)
#define AFTER_Sendrecv_replace  MATCHED(peer2, tag2)
#define THEN_Sendrecv_replace
#define BEFORE_Probe WILD_STATUS(peer, tag)
#define AFTER_Probe  MATCHED(peer, tag)
#define THEN_Probe
#define BEFORE_Mprobe WILD_STATUS(peer, tag)
#define AFTER_Mprobe  MATCHED(peer, tag)
#define THEN_Mprobe
#define BEFORE_Iprobe WILD_STATUS(peer, tag)
#define AFTER_Iprobe       \
    if (*flag) {           \
        MATCHED(peer, tag) \
    }
#define THEN_Iprobe
#define BEFORE_Improbe WILD_STATUS(peer, tag)
#define AFTER_Improbe  AFTER_Iprobe
#define THEN_Improbe
#define BEFORE_Mrecv int64_t number = pt_mpi_take(*(void **)message);
#define AFTER_Mrecv
#define THEN_Mrecv
#define BEFORE_Imrecv int64_t number = pt_mpi_take(*(void **)message);
#define AFTER_Imrecv
#define THEN_Imrecv

#define BEFORE_Wait ONE_REQUEST
#define AFTER_Wait \
    if (!ret)      \
        done = pt_mpi_completed(handle, value, status);
#define THEN_Wait
#define BEFORE_Test ONE_REQUEST
#define AFTER_Test     \
    if (!ret && *flag) \
        done = pt_mpi_completed(handle, value, status);
#define THEN_Test
#define BEFORE_Waitany ANY_REQUEST
#define AFTER_Waitany  ANY_DONE(1)
#define THEN_Waitany
#define BEFORE_Testany ANY_REQUEST
#define AFTER_Testany  ANY_DONE(*flag)
#define THEN_Testany
#define BEFORE_Waitall MANY_REQUESTS(n)
#define AFTER_Waitall
#define THEN_Waitall \
    if (!ret)        \
        pt_mpi_mark_all(t, &many, n, status);
#define BEFORE_Testall MANY_REQUESTS(n)
#define AFTER_Testall
#define THEN_Testall   \
    if (!ret && *flag) \
        pt_mpi_mark_all(t, &many, n, status);
#define BEFORE_Waitsome MANY_REQUESTS(n)
#define AFTER_Waitsome
#define THEN_Waitsome \
    if (!ret)         \
        pt_mpi_mark_some(t, &many, *done, index, status);
#define BEFORE_Testsome MANY_REQUESTS(n)
#define AFTER_Testsome
#define THEN_Testsome THEN_Waitsome

#define BEFORE_Startall
#define AFTER_Startall
#define THEN_Startall \
    if (!ret)         \
        pt_mpi_mark_started(t, n, req);
#define BEFORE_Request_free int64_t number = pt_mpi_take(*(void **)req);
#define AFTER_Request_free
#define THEN_Request_free
#define BEFORE_Comm_free int64_t number = pt_mpi_comm_gone(*(void **)comm);
#define AFTER_Comm_free
#define THEN_Comm_free
#define BEFORE_Comm_disconnect int64_t number = pt_mpi_comm_gone(*(void **)comm);
#define AFTER_Comm_disconnect
#define THEN_Comm_disconnect
#define BEFORE_Win_free int64_t number = pt_mpi_comm_gone(*(void **)win);
#define AFTER_Win_free
#define THEN_Win_free
#define BEFORE_Win_start
#define AFTER_Win_start
#define THEN_Win_start \
    if (!ret)          \
        pt_mpi_group(t, win, group);
#define BEFORE_Win_post
#define AFTER_Win_post
#define THEN_Win_post THEN_Win_start
#define BEFORE_Win_test
#define AFTER_Win_test
#define THEN_Win_test

#endif
