/*
 * Reading one table of a store: its datasets, checked, as rows.
 */
#ifndef PT_STORE_COLUMN_H
#define PT_STORE_COLUMN_H

#include "hdf5store/store_table.h"

struct store_reader {
    const struct store_table *table;
    hid_t sets[STORE_MAX_COLUMN];
    hsize_t chunks[STORE_MAX_COLUMN]; /* rows of a chunk; 0: not in chunks */
    int deflated[STORE_MAX_COLUMN];
    hsize_t rows;
};

/*
 * Opens the table's datasets and checks that they are there, of the right type
 * and of one length.  On failure too, store_reader_close() is due.
 */
int store_reader_open(struct store_reader *t, const struct store_table *table, hid_t file,
                      hsize_t file_size, struct pt_err *err);
void store_reader_close(struct store_reader *t);

/* Reads rows [first, first + count), which must be in the table. */
int store_reader_read(const struct store_reader *t, hsize_t first, hsize_t count, void *rows,
                      struct pt_err *err);

/* All rows and a zeroed one behind them; the caller frees. */
void *store_reader_load(const struct store_reader *t, struct pt_err *err);

#endif
