/*
 * Replaying one node.
 */
#ifndef PT_REPLAY_NODE_H
#define PT_REPLAY_NODE_H

#include <stdint.h>
#include <stdio.h>

#include "replay/burn.h"
#include "replay/engine.h"
#include "replay/options.h"
#include "replay/plan.h"
#include "replay/root.h"
#include "replay/schedule.h"
#include "replay/sync.h"

#define NODE_NOT_TIMED UINT64_MAX

enum { NODE_MAX_DIFFS = 5 };

/* What the nodes of a rank have in common. */
struct node_common {
    const struct plan *plan;
    const struct schedule *schedule;
    const struct engine *engine;
    const struct root *root;
    struct sync *sync; /* NULL in modes without dependencies */
    enum replay_mode mode;
    uint64_t first_begin; /* of all nodes of all ranks, in the trace */
    uint64_t start;       /* when the replay started, CLOCK_MONOTONIC */
};

/* A result that is not the trace's. */
struct node_diff {
    uint64_t event;
    int64_t ret;
    int err;
};

struct node_diffs {
    uint64_t count;
    struct node_diff first[NODE_MAX_DIFFS];
};

struct node_times {
    uint64_t io, compute, idle, wait; /* ns */
};

struct node_run {
    const struct node_common *common;
    const struct plan_node *node;
    const struct sched_node *acts;
    size_t next_signal, next_arrival, next_wait, next_pass;
    struct burn burn;
    char *read_buffer, *write_buffer;
    uint64_t *durations; /* ns by event, or NODE_NOT_TIMED */
    struct node_times times;
    uint64_t bytes_read, bytes_written;
    struct node_diffs mismatches; /* another result */
    struct node_diffs errors;     /* failed, and did not in the trace */
    uint64_t end;                 /* of the last event, CLOCK_MONOTONIC */
};

/* Gets memory for the run; -1 and err. */
int node_create(struct node_run *r, const struct node_common *common, const struct plan_node *node,
                struct pt_err *err);
void node_destroy(struct node_run *r);

/* Opens what the process inherited, before the clock starts. */
void node_open_inherited(struct node_run *r);

/* Replays all events, from common->start on. */
void node_replay(struct node_run *r);

/* A line for each difference, at most `max` of each kind. */
void node_print_mismatches(const struct node_run *r, size_t max, const char *prefix, FILE *out);
void node_print_errors(const struct node_run *r, size_t max, const char *prefix, FILE *out);

#endif
