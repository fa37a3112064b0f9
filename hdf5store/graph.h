/*
 * The graph of dependencies: the events of each node in program order, and edges
 * between nodes.  Pure functions over arrays of edges.
 */
#ifndef PT_GRAPH_H
#define PT_GRAPH_H

#include "hdf5store/store.h"

/* Sorts by dst_node, dst_event, src_node, src_event. */
void graph_sort_edges(struct pt_store_edge *edges, size_t n);

/*
 * Sorts, and of the edges from one node to one event keeps the one from the
 * latest event (the others are implied), with all their `by`.  Returns how many
 * are left.
 */
size_t graph_unite_edges(struct pt_store_edge *edges, size_t n);

/*
 * 0 if edges and program order have no cycle, else -1 and err, which names the
 * edges of one ("1:2 waits for 0:3, 0:1 waits for 1:4", node:event).  Edges as left by
 * graph_unite_edges(), between different nodes below nnodes.
 */
int graph_check_acyclic(size_t nnodes, const struct pt_store_edge *edges, size_t n,
                        struct pt_err *err);

/*
 * Drops every edge that the others and program order imply; *n becomes the
 * number of those left, in the same order.  Edges as left by graph_unite_edges().
 * -1 and err for a cyclic graph or lack of memory.
 */
int graph_reduce(size_t nnodes, struct pt_store_edge *edges, size_t *n, struct pt_err *err);

struct graph_barriers {
    size_t nbarriers;
    struct pt_store_barrier *barriers; /* by their first member */
    struct pt_store_member *members;
};

/*
 * Finds groups of at least `min` events on different nodes of which each has an
 * edge from the event before every other one, takes those edges out of the array
 * (*n becomes smaller) and returns the groups.  No event is in two of them.
 * *out is freed with graph_free_barriers().
 */
int graph_find_barriers(struct pt_store_edge *edges, size_t *n, size_t min,
                        struct graph_barriers *out, struct pt_err *err);
void graph_free_barriers(struct graph_barriers *b);

#endif
