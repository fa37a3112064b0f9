/*
 * Writing a store.  The file appears under its name when it is complete, never
 * before: it is written under a temporary name in the same directory and renamed.
 *
 * All functions return 0, or -1 and err (the reason without the file's name);
 * after a failure only pt_store_abort() is left.  Tables may be written in any order and in pieces;
 * memory is bounded by one chunk for each column.
 */
#ifndef PT_STORE_WRITE_H
#define PT_STORE_WRITE_H

#include "hdf5store/store.h"

struct pt_store_writer;

/* `epoch_ns`: what begin_ns 0 is in ns since 1970.  NULL and err on failure. */
struct pt_store_writer *pt_store_create(const char *path, uint64_t epoch_ns, struct pt_err *err);

/* The temporary name, for a signal handler to unlink. */
const char *pt_store_temporary(const struct pt_store_writer *w);

int pt_store_write_calls(struct pt_store_writer *w, const struct pt_call_desc *calls, size_t n,
                         struct pt_err *err);
int pt_store_write_nodes(struct pt_store_writer *w, const struct pt_store_node *nodes, size_t n,
                         struct pt_err *err);
/* Keeps a string; *offset is what an event's `text` holds. */
int pt_store_write_text(struct pt_store_writer *w, const char *text, uint64_t *offset,
                        struct pt_err *err);
int pt_store_write_events(struct pt_store_writer *w, const struct pt_store_event *events, size_t n,
                          struct pt_err *err);
int pt_store_write_files(struct pt_store_writer *w, const struct pt_store_file *files, size_t n,
                         struct pt_err *err);
/* Sorted by dst_node, dst_event. */
int pt_store_write_edges(struct pt_store_writer *w, const struct pt_store_edge *edges, size_t n,
                         struct pt_err *err);
int pt_store_write_barrier(struct pt_store_writer *w, const struct pt_store_barrier *barrier,
                           struct pt_err *err);
int pt_store_write_runs(struct pt_store_writer *w, const struct pt_store_run *runs, size_t n,
                        struct pt_err *err);

/* Completes the file, renames it and destroys the writer, on failure too. */
int pt_store_commit(struct pt_store_writer *w, struct pt_err *err);

/* Destroys the writer and removes the temporary file.  NULL is fine. */
void pt_store_abort(struct pt_store_writer *w);

#endif
