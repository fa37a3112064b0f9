/*
 * The measured part: all nodes of this rank, each in a thread of its own if there
 * are several.
 */
#ifndef PT_REPLAY_RUN_H
#define PT_REPLAY_RUN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "replay/node.h"

struct run {
    struct node_common common;
    size_t nnodes;
    struct node_run *nodes;
    size_t nthreads;
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum { RUN_WAITING, RUN_STARTED, RUN_CANCELLED } state;
};

/*
 * Gets everything that the nodes need: memory, inherited descriptors, threads, which
 * wait.  `common` is copied.  -1 and err, and nothing to destroy.
 */
int run_create(struct run *run, const struct node_common *common, struct pt_err *err);

/* Calls `together`, starts the clock and replays; returns when all nodes are done. */
void run_replay(struct run *run, void (*together)(void));

/* Not replayed or replayed: ends the threads and frees everything. */
void run_destroy(struct run *run);

#endif
