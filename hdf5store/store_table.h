/*
 * The tables of a store as data, for its reader and its writer: a table is an
 * HDF5 group with one dataset for each member of a row.  Rows hold strings as
 * offsets in /names.
 */
#ifndef PT_STORE_TABLE_H
#define PT_STORE_TABLE_H

#include <hdf5.h>

#include "hdf5store/store.h"

#define STORE_FORMAT     "paratrace-store"
#define STORE_MAX_COLUMN 32 /* columns of a table */

#define STORE_NAME_COLUMNS(COLUMN) COLUMN(uint8_t, names)

#define STORE_CALL_COLUMNS(COLUMN) \
    COLUMN(uint64_t, name)         \
    COLUMN(uint64_t, class)        \
    COLUMN(uint64_t, replay)       \
    COLUMN(uint64_t, fields) /* comma-separated, in the order in which they are printed */

#define STORE_NODE_COLUMNS(COLUMN) \
    COLUMN(int32_t, rank)          \
    COLUMN(int32_t, process)       \
    COLUMN(int32_t, thread)        \
    COLUMN(uint64_t, host)         \
    COLUMN(uint64_t, exe)          \
    COLUMN(uint64_t, first)        \
    COLUMN(uint64_t, count)        \
    COLUMN(uint64_t, start_ns)

#define STORE_FILE_COLUMNS(COLUMN) \
    COLUMN(uint64_t, path)         \
    COLUMN(uint64_t, dev)          \
    COLUMN(uint64_t, ino)          \
    COLUMN(uint64_t, size)         \
    COLUMN(uint8_t, made)          \
    COLUMN(uint8_t, dir)

#define STORE_EDGE_COLUMNS(COLUMN) \
    COLUMN(uint32_t, src_node)     \
    COLUMN(uint64_t, src_event)    \
    COLUMN(uint32_t, dst_node)     \
    COLUMN(uint64_t, dst_event)    \
    COLUMN(uint8_t, by)

#define STORE_BARRIER_COLUMNS(COLUMN) \
    COLUMN(uint64_t, first)           \
    COLUMN(uint64_t, count)           \
    COLUMN(uint8_t, by)

#define STORE_MEMBER_COLUMNS(COLUMN) \
    COLUMN(uint32_t, node)           \
    COLUMN(uint64_t, event)

#define STORE_RUN_COLUMNS(COLUMN) \
    COLUMN(uint64_t, dir)         \
    COLUMN(uint64_t, spec)        \
    COLUMN(uint64_t, host)        \
    COLUMN(uint64_t, job)         \
    COLUMN(uint64_t, step)        \
    COLUMN(uint8_t, complete)     \
    COLUMN(uint64_t, lost)

#define STORE_MEMBER(type, name) type name;
struct store_call_row {
    STORE_CALL_COLUMNS(STORE_MEMBER)
};
struct store_node_row {
    STORE_NODE_COLUMNS(STORE_MEMBER)
};
struct store_file_row {
    STORE_FILE_COLUMNS(STORE_MEMBER)
};
struct store_barrier_row {
    STORE_BARRIER_COLUMNS(STORE_MEMBER)
};
struct store_run_row {
    STORE_RUN_COLUMNS(STORE_MEMBER)
};
struct store_name_row {
    STORE_NAME_COLUMNS(STORE_MEMBER)
};
#undef STORE_MEMBER

enum store_table_id {
    STORE_NAMES,
    STORE_CALLS,
    STORE_NODES,
    STORE_EVENTS, /* rows are struct pt_store_event */
    STORE_FILES,
    STORE_EDGES, /* struct pt_store_edge */
    STORE_BARRIERS,
    STORE_MEMBERS, /* struct pt_store_member */
    STORE_RUNS,
    STORE_NTABLES
};

struct store_column {
    const char *name;
    size_t offset; /* in a row */
    size_t size;   /* bytes of the integer */
    int is_signed;
};

struct store_table {
    const char *group;
    size_t row_size;
    size_t ncolumns;
    hsize_t chunk; /* rows */
    struct store_column columns[STORE_MAX_COLUMN];
};

extern const struct store_table store_tables[STORE_NTABLES];

/* The type in memory, and in a file, of a column. */
hid_t store_column_memory_type(const struct store_column *column);
hid_t store_column_file_type(const struct store_column *column);

/* HDF5 prints nothing any more. */
void store_silence_hdf5(void);

/* Sets err to the message and HDF5's innermost reason; returns -1. */
int store_fail(struct pt_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
