#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/store_column.h"

#define BATCH         16384       /* rows read at a time */
#define DEFLATE_RATIO 1100        /* deflate never does better than 1032:1 */
#define CHUNK_MAX     (64u << 20) /* bytes */

static int has_type(hid_t set, const struct store_column *column)
{
    hid_t type = H5Dget_type(set);
    int ok = type >= 0 && H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == column->size &&
             H5Tget_sign(type) == (column->is_signed ? H5T_SGN_2 : H5T_SGN_NONE);

    H5Tclose(type);
    return ok;
}

/* Can that many rows be in the file at all?  Guards against forged sizes. */
static int is_plausible(hid_t set, hsize_t rows, size_t size, hsize_t file_size)
{
    hsize_t stored = rows ? H5Dget_storage_size(set) : 0;

    return stored <= file_size && rows / DEFLATE_RATIO <= (stored + file_size) / size;
}

/* Rows of an open dataset, -1 if it is not a list. */
static int get_rows(hid_t set, hsize_t *rows)
{
    hid_t space = H5Dget_space(set);
    int ok = space >= 0 && H5Sget_simple_extent_ndims(space) == 1 &&
             H5Sget_simple_extent_dims(space, rows, NULL) == 1;

    H5Sclose(space);
    return ok ? 0 : -1;
}

/* Notes how the dataset is stored; -1 if no sane writer stores it so. */
static int get_layout(struct store_reader *t, size_t i)
{
    hid_t plist = H5Dget_create_plist(t->sets[i]);
    int ok = plist >= 0;

    if (ok && H5Pget_layout(plist) == H5D_CHUNKED) {
        int nfilters = H5Pget_nfilters(plist);

        ok = H5Pget_chunk(plist, 1, &t->chunks[i]) == 1 && t->chunks[i] > 0 &&
             t->chunks[i] <= CHUNK_MAX / t->table->columns[i].size && nfilters >= 0;
        for (int k = 0; k < nfilters; k++)
            if (H5Pget_filter2(plist, k, NULL, NULL, NULL, 0, NULL, NULL) == H5Z_FILTER_DEFLATE)
                t->deflated[i] = 1;
    }
    H5Pclose(plist);
    return ok ? 0 : -1;
}

/*
 * HDF5 trusts a chunk that claims not to be filtered, and reads beyond its end if
 * it is smaller than a chunk: look at those that hold the rows first.
 */
static int check_chunks(const struct store_reader *t, size_t i, hsize_t first, hsize_t count)
{
#if H5_VERSION_GE(1, 10, 5)
    hsize_t chunk = t->chunks[i], at = chunk ? first - first % chunk : 0;

    for (; chunk && at < first + count; at += chunk) {
        unsigned skipped = 0;
        haddr_t where;
        hsize_t size;

        if (H5Dget_chunk_info_by_coord(t->sets[i], &at, &skipped, &where, &size) < 0 ||
            where == HADDR_UNDEF || skipped)
            return -1;
        if (!t->deflated[i] && size < chunk * t->table->columns[i].size)
            return -1;
    }
#endif
    return 0;
}

static int open_column(struct store_reader *t, size_t i, hid_t file, hsize_t file_size,
                       struct pt_err *err)
{
    const struct store_column *column = &t->table->columns[i];
    char path[100];
    hsize_t rows;

    snprintf(path, sizeof(path), "%s/%s", t->table->group, column->name);
    t->sets[i] = H5Dopen2(file, path, H5P_DEFAULT);
    if (t->sets[i] < 0)
        return pt_err_set(err, "dataset '%s' is missing or damaged", path);
    if (!has_type(t->sets[i], column))
        return pt_err_set(err, "dataset '%s' is not of %s %zu-bit integers", path,
                          column->is_signed ? "signed" : "unsigned", column->size * 8);
    if (get_rows(t->sets[i], &rows) < 0)
        return pt_err_set(err, "dataset '%s' is not one-dimensional", path);
    if (!is_plausible(t->sets[i], rows, column->size, file_size))
        return pt_err_set(err, "dataset '%s' claims more rows than the file can hold", path);
    if (get_layout(t, i) < 0)
        return pt_err_set(err, "dataset '%s' has a damaged layout", path);
    if (i > 0 && rows != t->rows)
        return pt_err_set(err, "dataset '%s' has %llu rows, not %llu", path,
                          (unsigned long long)rows, (unsigned long long)t->rows);
    t->rows = rows;
    return 0;
}

int store_reader_open(struct store_reader *t, const struct store_table *table, hid_t file,
                      hsize_t file_size, struct pt_err *err)
{
    *t = (struct store_reader){.table = table};
    for (size_t i = 0; i < STORE_MAX_COLUMN; i++)
        t->sets[i] = -1;
    for (size_t i = 0; i < table->ncolumns; i++)
        if (open_column(t, i, file, file_size, err) < 0)
            return -1;
    return 0;
}

void store_reader_close(struct store_reader *t)
{
    for (size_t i = 0; t->table && i < t->table->ncolumns; i++)
        if (t->sets[i] >= 0)
            H5Dclose(t->sets[i]);
    t->table = NULL;
}

static int read_column(const struct store_reader *t, size_t i, hsize_t first, hsize_t count,
                       void *buf, struct pt_err *err)
{
    const struct store_column *column = &t->table->columns[i];
    hid_t memory = H5Screate_simple(1, &count, NULL);
    hid_t space = H5Dget_space(t->sets[i]);
    int rc = 0;

    if (check_chunks(t, i, first, count) < 0)
        rc = pt_err_set(err, "dataset '%s/%s' has a damaged chunk", t->table->group, column->name);
    else if (memory < 0 || space < 0 ||
             H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL) < 0 ||
             H5Dread(t->sets[i], store_column_memory_type(column), memory, space, H5P_DEFAULT,
                     buf) < 0)
        rc = store_fail(err, "cannot read '%s/%s'", t->table->group, column->name);
    H5Sclose(space);
    H5Sclose(memory);
    return rc;
}

static int read_batch(const struct store_reader *t, hsize_t first, size_t count, void *buf,
                      unsigned char *rows, struct pt_err *err)
{
    for (size_t i = 0; i < t->table->ncolumns; i++) {
        const struct store_column *c = &t->table->columns[i];

        if (read_column(t, i, first, count, buf, err) < 0)
            return -1;
        for (size_t k = 0; k < count; k++)
            memcpy(rows + k * t->table->row_size + c->offset, (char *)buf + k * c->size, c->size);
    }
    return 0;
}

int store_reader_read(const struct store_reader *t, hsize_t first, hsize_t count, void *rows,
                      struct pt_err *err)
{
    unsigned char *to = rows;
    int rc = 0;
    void *buf = malloc(BATCH * sizeof(uint64_t));

    if (!buf)
        return pt_err_set(err, "not enough memory");
    while (count && rc == 0) {
        size_t now = count < BATCH ? count : BATCH;
        rc = read_batch(t, first, now, buf, to, err);
        first += now;
        count -= now;
        to += now * t->table->row_size;
    }
    free(buf);
    return rc;
}

void *store_reader_load(const struct store_reader *t, struct pt_err *err)
{
    void *rows = calloc(t->rows + 1, t->table->row_size);

    if (!rows) {
        pt_err_set(err, "not enough memory for '%s'", t->table->group);
        return NULL;
    }
    if (store_reader_read(t, 0, t->rows, rows, err) < 0) {
        free(rows);
        return NULL;
    }
    return rows;
}
