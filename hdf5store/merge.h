/*
 * Merging the runs of a campaign: what is known of a run, and the steps.
 *
 *   merge_load_run      reads a run directory: nodes, I/O events, think time, holds
 *   merge_resolve_names gives every event the absolute name of its file
 *   merge_compare_runs  proves that two runs made the same I/O
 *   merge_collect_edges turns holds into edges between events of the baseline
 *   merge_weaken_edges  takes back what another run proves wrong
 *   merge_find_files    what must be there before a replay
 */
#ifndef PT_MERGE_H
#define PT_MERGE_H

#include "common/trace.h"
#include "hdf5store/map.h"
#include "hdf5store/store.h"

/* What all runs share. */
struct mpi_call;
struct mpi_record;

struct merge {
    struct names files; /* absolute names: `file` of an event is a number of these */
    struct pt_call_desc *calls;
    size_t ncalls;
    const struct mpi_call **mpi; /* what each means in MPI (merge_mpi.h), NULL: nothing */
};

/* An event that has names, or that changes what names and descriptors mean. */
struct merge_named {
    uint64_t begin;       /* ns since 1970 */
    size_t event;         /* number within the node; MERGE_CHDIR, MERGE_IDENTITY: none */
    uint32_t path, path2; /* as the program wrote them: numbers of the run's `names` */
    int64_t dirfd, dirfd2;
    uint64_t dev, ino, fsize;
};

#define MERGE_CHDIR    SIZE_MAX
#define MERGE_IDENTITY (SIZE_MAX - 1) /* of the handle in dirfd */

/* Think time since the last I/O event, while its events are read. */
struct merge_think {
    uint64_t compute[3], idle[3];
    uint64_t sync_ns, sync_cpu_ns;
    uint32_t syncs;
};

#define MERGE_IO_FOLDED 0x80000000u

/*
 * While merging, `text` of an event is a number of the run's `names` plus one.  Events
 * below an MPI-IO call are left out: the tracer does not number them either.
 */
struct merge_node {
    struct pt_name name;
    uint32_t host, exe, cwd; /* numbers of the run's `names` */
    uint64_t start;          /* ns since 1970 */
    struct pt_store_event *events;
    size_t nevents, size;
    size_t valid;             /* events before the first loss */
    uint64_t raw, loss_after; /* events of any class: read, and before the first loss */
    uint64_t lost;
    struct merge_named *named;
    size_t nnamed, named_size;
    uint32_t *io;        /* the store's event of each I/O that the tracer counted */
    size_t nio, io_size; /* ... with MERGE_IO_FOLDED if it was not the last of a poll loop */
    struct merge_think think;
    struct map aio;         /* control block -> event whose result is still to come */
    struct mpi_record *mpi; /* calls of MPI, in order */
    size_t nmpi, mpi_size;
    size_t mpi_valid; /* those before the first loss */
};

/*
 * `src` was held before its I/O src_io, and dst was stuck before its I/O dst_io.
 * MERGE_UNBORN: every node that came into being after it was let go.
 */
#define MERGE_UNBORN ((struct pt_name){-1, -1, -1})

struct merge_wait {
    struct pt_name src, dst;
    uint64_t src_io, dst_io;
};

struct merge_run {
    char *dir;
    char *spec;
    char *hosts; /* comma-separated */
    uint64_t job, step, array_job, array_task, restart;
    uint64_t nhosts;              /* that should have written a file */
    uint64_t realtime, monotonic; /* of the first file, tells runs apart */
    size_t nfiles;
    int complete;
    uint64_t lost;
    uint64_t holds, timed_out;
    uint64_t untraced_threads;
    uint64_t running;    /* processes that ran on after the run */
    uint64_t lost_names; /* names relative to a directory that is not known */
    struct names names;
    struct names blind;       /* what the tracer could not see, and why */
    struct merge_node *nodes; /* by name */
    size_t nnodes;
    struct merge_wait *waits;
    size_t nwaits, waits_size;
};

void merge_free(struct merge *m);

/* The run, or NULL and err.  Events have their think time, but no file yet. */
struct merge_run *merge_load_run(struct merge *m, const char *dir, struct pt_err *err);
void merge_free_run(struct merge_run *run);

/* The value of META's `spec` of a run directory, for the caller to free; NULL and err. */
char *merge_peek_spec(const char *dir, struct pt_err *err);

/* Adds an event of a run file to its node (merge_event.c). */
int merge_add_event(struct merge *m, struct merge_run *run, struct merge_node *node, unsigned op,
                    const struct pt_event *ev, int64_t clock, struct pt_err *err);

/* Keeps what an MPI call says about order (merge_mpi.c). */
int merge_add_mpi(struct merge *m, struct merge_run *run, struct merge_node *node, unsigned op,
                  const struct pt_event *ev, int64_t clock, struct pt_err *err);

/* Whether the call records that field. */
int merge_has_field(const struct pt_call_desc *call, int field);

int merge_resolve_names(struct merge *m, struct merge_run *run, struct pt_err *err);

/*
 * 0 if both made the same I/O, as far as both are complete; else -1 and err shows
 * node, event and both sides.
 */
int merge_compare_runs(const struct merge *m, const struct merge_run *base,
                       const struct merge_run *run, struct pt_err *err);

/* Names that differ only by the run's own job, task or step number are the same. */
int merge_same_name(const char *a, const struct merge_run *run_a, const char *b,
                    const struct merge_run *run_b);

/* Appends the run's edges to *edges (realloc). */
int merge_collect_edges(const struct merge_run *base, const struct merge_run *run,
                        struct pt_store_edge **edges, size_t *n, struct pt_err *err);

/*
 * Moves the destination of edges that the run proves wrong, because there it came first,
 * to the first later event that did not, and drops edges without one.  Counts both.
 */
int merge_weaken_edges(const struct merge_run *base, const struct merge_run *run,
                       struct pt_store_edge *edges, size_t *n, size_t *refuted, struct pt_err *err);

/*
 * The edge from I/O src_io of a node to I/O dst_io of another one, both of `run`; 0 if
 * they or the baseline do not have them.
 */
int merge_make_edge(const struct merge_run *base, const struct merge_run *run,
                    const struct merge_node *src, uint64_t src_io, const struct merge_node *dst,
                    uint64_t dst_io, uint8_t by, struct pt_store_edge *edge);

/* One row for each of the first `n` names of m->files; NULL and err without memory. */
struct pt_store_file *merge_find_files(const struct merge *m, const struct merge_run *base,
                                       size_t n, struct pt_err *err);

/* The node of that name or NULL. */
struct merge_node *merge_find_node(const struct merge_run *run, const struct pt_name *name);

/* Whether the operation makes a handle: opens a file, stream or directory. */
int merge_opens(enum pt_replay replay);

/* An absolute path without ".." and what is ahead of it.  NULL without memory. */
char *merge_flat_path(const char *path);

/*
 * `path` relative to the absolute `base` (NULL: "/"), without "//" and "/./".
 * ".." is kept: what it means depends on symbolic links.  NULL without memory.
 */
char *merge_clean_path(const char *base, const char *path);

/* Makes room for one more: the (moved) array, or NULL and err; the old one is kept then. */
void *merge_grow(void *array, size_t n, size_t *size, size_t element, struct pt_err *err);

#endif
