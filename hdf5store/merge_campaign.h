/*
 * All runs of a campaign, merged, and written as a store.
 */
#ifndef PT_MERGE_CAMPAIGN_H
#define PT_MERGE_CAMPAIGN_H

#include "hdf5store/graph.h"
#include "hdf5store/merge.h"
#include "hdf5store/store_write.h"

struct merge_options {
    int strict;          /* an incomplete run is a failure */
    uint64_t rendezvous; /* bytes: larger MPI sends wait for their receive; 0: none does */
};

#define MERGE_RENDEZVOUS 65536

struct merge_campaign {
    struct merge m;
    struct merge_run *base; /* gives events and think times */
    size_t nfiles;
    struct pt_store_file *files;
    size_t nfound;   /* edges that holds and MPI gave */
    size_t nrefuted; /* how often another run proved one wrong */
    size_t nunited;  /* ... from different events to different events */
    size_t nreduced; /* ... not implied by others */
    size_t nedges;   /* ... not in barriers */
    struct pt_store_edge *edges;
    struct graph_barriers barriers;
    size_t nruns;
    struct pt_store_run *runs; /* in the order of the directories */
    uint64_t *identity;        /* when each was started, two words a run */
    int mpi_done; /* a run has given MPI's edges: one is enough, and another may differ */
    size_t nwarnings;
    char **warnings;
};

/*
 * Merges the run directories.  What is missing in incomplete runs becomes a
 * warning, or a failure.  *c is freed with merge_campaign_free(),
 * after a failure too.
 */
int merge_campaign_load(struct merge_campaign *c, char *const *dirs, size_t n,
                        const struct merge_options *options, struct pt_err *err);
void merge_campaign_free(struct merge_campaign *c);

/* Events of all nodes. */
uint64_t merge_campaign_events(const struct merge_campaign *c);

/* When the first node started, ns since 1970: begin_ns 0 of the store. */
uint64_t merge_campaign_epoch(const struct merge_campaign *c);

/* Writes everything; begin and commit are the caller's. */
int merge_campaign_write(const struct merge_campaign *c, struct pt_store_writer *w,
                         struct pt_err *err);

#endif
