#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hdf5store/store_table.h"
#include "hdf5store/store_write.h"

#define DEFLATE_LEVEL  4
#define SMALLEST_CHUNK 64 /* rows */

struct column_writer {
    hid_t set;
    unsigned char *buf; /* one chunk */
};

struct table_writer {
    const struct store_table *table;
    hid_t file;
    int created;
    struct column_writer columns[STORE_MAX_COLUMN];
    hsize_t written; /* rows in the file */
    size_t buffered; /* rows in buf */
};

struct pt_store_writer {
    char *path, *temporary;
    hid_t file;
    uint64_t next_name; /* offset of the next string in /names */
    struct table_writer tables[STORE_NTABLES];
};

/* ---- columns ------------------------------------------------------------- */

static hid_t create_dataset(hid_t file, const struct store_table *table,
                            const struct store_column *column, hsize_t chunk, struct pt_err *err)
{
    char path[100];
    hsize_t none = 0, unlimited = H5S_UNLIMITED;
    hid_t space = H5Screate_simple(1, &none, &unlimited);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t set = -1;

    snprintf(path, sizeof(path), "%s/%s", table->group, column->name);
    if (space >= 0 && plist >= 0 && H5Pset_chunk(plist, 1, &chunk) >= 0 &&
        H5Pset_shuffle(plist) >= 0 && H5Pset_deflate(plist, DEFLATE_LEVEL) >= 0)
        set = H5Dcreate2(file, path, store_column_file_type(column), space, H5P_DEFAULT, plist,
                         H5P_DEFAULT);
    if (set < 0)
        store_fail(err, "cannot create dataset '%s'", path);
    H5Pclose(plist);
    H5Sclose(space);
    return set;
}

static int table_init(struct table_writer *t, const struct store_table *table, hid_t file,
                      struct pt_err *err)
{
    t->file = file;
    for (size_t i = 0; i < table->ncolumns; i++) {
        t->columns[i].buf = malloc(table->chunk * table->columns[i].size);
        if (!t->columns[i].buf)
            return pt_err_set(err, "not enough memory");
    }
    return 0;
}

/* A table that fits into less than a chunk gets smaller ones. */
static hsize_t choose_chunk(const struct table_writer *t)
{
    hsize_t chunk = t->table->chunk;

    while (chunk / 2 >= t->buffered && chunk / 2 >= SMALLEST_CHUNK)
        chunk /= 2;
    return chunk;
}

/* Makes the datasets, when the first rows are to be written. */
static int table_create(struct table_writer *t, struct pt_err *err)
{
    const struct store_table *table = t->table;

    if (t->created)
        return 0;
    if (table->group[0]) {
        hid_t group = H5Gcreate2(t->file, table->group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (group < 0)
            return store_fail(err, "cannot create group '%s'", table->group);
        H5Gclose(group);
    }
    for (size_t i = 0; i < table->ncolumns; i++) {
        t->columns[i].set =
            create_dataset(t->file, table, &table->columns[i], choose_chunk(t), err);
        if (t->columns[i].set < 0)
            return -1;
    }
    t->created = 1;
    return 0;
}

static int column_flush(const struct table_writer *t, size_t i, struct pt_err *err)
{
    const struct store_column *column = &t->table->columns[i];
    hid_t set = t->columns[i].set;
    hsize_t start = t->written, count = t->buffered, total = start + count;
    hid_t memory = H5Screate_simple(1, &count, NULL);
    hid_t space = H5Dset_extent(set, &total) < 0 ? -1 : H5Dget_space(set);
    int rc = 0;

    if (memory < 0 || space < 0 ||
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL) < 0 ||
        H5Dwrite(set, store_column_memory_type(column), memory, space, H5P_DEFAULT,
                 t->columns[i].buf) < 0)
        rc = store_fail(err, "cannot write '%s/%s'", t->table->group, column->name);
    H5Sclose(space);
    H5Sclose(memory);
    return rc;
}

static int table_flush(struct table_writer *t, struct pt_err *err)
{
    if (table_create(t, err) < 0)
        return -1;
    for (size_t i = 0; t->buffered && i < t->table->ncolumns; i++)
        if (column_flush(t, i, err) < 0)
            return -1;
    t->written += t->buffered;
    t->buffered = 0;
    return 0;
}

/* Splits rows into the columns' buffers. */
static int table_append(struct table_writer *t, const void *rows, size_t n, struct pt_err *err)
{
    const struct store_table *table = t->table;
    const unsigned char *row = rows;

    while (n) {
        size_t now = table->chunk - t->buffered;
        if (now > n)
            now = n;
        for (size_t i = 0; i < table->ncolumns; i++) {
            const struct store_column *c = &table->columns[i];
            unsigned char *to = t->columns[i].buf + t->buffered * c->size;
            for (size_t k = 0; k < now; k++)
                memcpy(to + k * c->size, row + k * table->row_size + c->offset, c->size);
        }
        t->buffered += now;
        row += now * table->row_size;
        n -= now;
        if (t->buffered == table->chunk && table_flush(t, err) < 0)
            return -1;
    }
    return 0;
}

static int table_close(struct table_writer *t, struct pt_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < t->table->ncolumns; i++) {
        if (t->columns[i].set >= 0 && H5Dclose(t->columns[i].set) < 0)
            rc =
                store_fail(err, "cannot write '%s/%s'", t->table->group, t->table->columns[i].name);
        t->columns[i].set = -1;
        free(t->columns[i].buf);
        t->columns[i].buf = NULL;
    }
    return rc;
}

/* ---- attributes ----------------------------------------------------------- */

static int put_attribute(hid_t file, const char *name, hid_t file_type, hid_t type,
                         const void *value, struct pt_err *err)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attr = H5Acreate2(file, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    int rc = 0;

    if (attr < 0 || H5Awrite(attr, type, value) < 0)
        rc = store_fail(err, "cannot write attribute '%s'", name);
    H5Aclose(attr);
    H5Sclose(space);
    return rc;
}

static int put_text(hid_t file, const char *name, const char *text, struct pt_err *err)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    int rc;

    H5Tset_size(type, strlen(text) + 1);
    rc = put_attribute(file, name, type, type, text, err);
    H5Tclose(type);
    return rc;
}

static int put_attributes(hid_t file, uint64_t epoch_ns, struct pt_err *err)
{
    uint32_t version = PT_STORE_VERSION;
    time_t now = time(NULL);
    char created[40];
    struct tm tm;

    strftime(created, sizeof(created), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    if (put_text(file, "format", STORE_FORMAT, err) < 0 ||
        put_text(file, "created", created, err) < 0 ||
        put_text(file, "generator", PACKAGE_STRING, err) < 0)
        return -1;
    if (put_attribute(file, "version", H5T_STD_U32LE, H5T_NATIVE_UINT32, &version, err) < 0)
        return -1;
    return put_attribute(file, "epoch_ns", H5T_STD_U64LE, H5T_NATIVE_UINT64, &epoch_ns, err);
}

/* ---- the writer ------------------------------------------------------------ */

static int put_name(struct pt_store_writer *w, const char *text, uint64_t *offset,
                    struct pt_err *err)
{
    size_t n;

    if (!text)
        text = "";
    n = strlen(text) + 1;
    *offset = w->next_name;
    w->next_name += n;
    return table_append(&w->tables[STORE_NAMES], text, n, err);
}

/* A new empty file beside `path`, with the permissions that a new file gets. */
static char *make_temporary(const char *path, struct pt_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    char *name;
    mode_t mask;
    int fd;

    if (!*base) {
        pt_err_set(err, "not a file name");
        return NULL;
    }
    if (asprintf(&name, "%.*s.%s.XXXXXX", (int)(base - path), path, base) < 0) {
        pt_err_set(err, "not enough memory");
        return NULL;
    }
    fd = mkstemp(name);
    if (fd < 0) {
        pt_err_errno(err, "cannot create a file beside it");
        free(name);
        return NULL;
    }
    mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    close(fd);
    return name;
}

struct pt_store_writer *pt_store_create(const char *path, uint64_t epoch_ns, struct pt_err *err)
{
    struct pt_store_writer *w = calloc(1, sizeof(*w));
    uint64_t nothing;

    store_silence_hdf5();
    if (!w || !(w->path = strdup(path))) {
        pt_err_set(err, "not enough memory");
        free(w);
        return NULL;
    }
    w->file = -1;
    for (size_t i = 0; i < STORE_NTABLES; i++) {
        w->tables[i].table = &store_tables[i];
        for (size_t c = 0; c < STORE_MAX_COLUMN; c++)
            w->tables[i].columns[c].set = -1;
    }
    w->temporary = make_temporary(path, err);
    if (!w->temporary)
        goto fail;
    w->file = H5Fcreate(w->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (w->file < 0) {
        store_fail(err, "cannot create");
        goto fail;
    }
    if (put_attributes(w->file, epoch_ns, err) < 0)
        goto fail;
    for (size_t i = 0; i < STORE_NTABLES; i++)
        if (table_init(&w->tables[i], &store_tables[i], w->file, err) < 0)
            goto fail;
    if (put_name(w, "", &nothing, err) < 0) /* offset 0: no text */
        goto fail;
    return w;
fail:
    pt_store_abort(w);
    return NULL;
}

const char *pt_store_temporary(const struct pt_store_writer *w)
{
    return w->temporary;
}

static void list_fields(const struct pt_call_desc *call, char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    for (unsigned i = 0; i < call->nfields && n < size; i++)
        if (call->fields[i] >= 0)
            n += snprintf(out + n, size - n, "%s%s", n ? "," : "", pt_fields[call->fields[i]].name);
}

int pt_store_write_calls(struct pt_store_writer *w, const struct pt_call_desc *calls, size_t n,
                         struct pt_err *err)
{
    for (size_t i = 0; i < n; i++) {
        struct store_call_row row;
        char fields[PT_MAX_FIELDS * PT_NAME_MAX];

        list_fields(&calls[i], fields, sizeof(fields));
        if (put_name(w, calls[i].name, &row.name, err) < 0 ||
            put_name(w, pt_class_names[calls[i].cls], &row.class, err) < 0 ||
            put_name(w, pt_replay_names[calls[i].replay], &row.replay, err) < 0 ||
            put_name(w, fields, &row.fields, err) < 0 ||
            table_append(&w->tables[STORE_CALLS], &row, 1, err) < 0)
            return -1;
    }
    return 0;
}

int pt_store_write_nodes(struct pt_store_writer *w, const struct pt_store_node *nodes, size_t n,
                         struct pt_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct pt_store_node *node = &nodes[i];
        struct store_node_row row = {
            .rank = node->name.rank,
            .process = node->name.process,
            .thread = node->name.thread,
            .first = node->first,
            .count = node->count,
            .start_ns = node->start_ns,
        };
        if (put_name(w, node->host, &row.host, err) < 0 ||
            put_name(w, node->exe, &row.exe, err) < 0 ||
            table_append(&w->tables[STORE_NODES], &row, 1, err) < 0)
            return -1;
    }
    return 0;
}

int pt_store_write_text(struct pt_store_writer *w, const char *text, uint64_t *offset,
                        struct pt_err *err)
{
    return put_name(w, text, offset, err);
}

int pt_store_write_events(struct pt_store_writer *w, const struct pt_store_event *events, size_t n,
                          struct pt_err *err)
{
    return table_append(&w->tables[STORE_EVENTS], events, n, err);
}

int pt_store_write_files(struct pt_store_writer *w, const struct pt_store_file *files, size_t n,
                         struct pt_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct pt_store_file *file = &files[i];
        struct store_file_row row = {
            .dev = file->dev,
            .ino = file->ino,
            .size = file->size,
            .made = file->made,
            .dir = file->dir,
        };
        if (put_name(w, file->path, &row.path, err) < 0 ||
            table_append(&w->tables[STORE_FILES], &row, 1, err) < 0)
            return -1;
    }
    return 0;
}

int pt_store_write_edges(struct pt_store_writer *w, const struct pt_store_edge *edges, size_t n,
                         struct pt_err *err)
{
    return table_append(&w->tables[STORE_EDGES], edges, n, err);
}

int pt_store_write_barrier(struct pt_store_writer *w, const struct pt_store_barrier *barrier,
                           struct pt_err *err)
{
    const struct table_writer *members = &w->tables[STORE_MEMBERS];
    struct store_barrier_row row = {
        .first = members->written + members->buffered,
        .count = barrier->nmembers,
        .by = barrier->by,
    };

    if (table_append(&w->tables[STORE_BARRIERS], &row, 1, err) < 0)
        return -1;
    return table_append(&w->tables[STORE_MEMBERS], barrier->members, barrier->nmembers, err);
}

int pt_store_write_runs(struct pt_store_writer *w, const struct pt_store_run *runs, size_t n,
                        struct pt_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct pt_store_run *run = &runs[i];
        struct store_run_row row = {
            .job = run->job,
            .step = run->step,
            .complete = run->complete,
            .lost = run->lost,
        };
        if (put_name(w, run->dir, &row.dir, err) < 0 ||
            put_name(w, run->spec, &row.spec, err) < 0 ||
            put_name(w, run->host, &row.host, err) < 0 ||
            table_append(&w->tables[STORE_RUNS], &row, 1, err) < 0)
            return -1;
    }
    return 0;
}

static int close_all(struct pt_store_writer *w, struct pt_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < STORE_NTABLES; i++)
        if (table_close(&w->tables[i], err) < 0)
            rc = -1;
    if (w->file >= 0 && H5Fclose(w->file) < 0)
        rc = store_fail(err, "cannot write");
    w->file = -1;
    return rc;
}

static int sync_file(const char *path, struct pt_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? pt_err_errno(err, "cannot sync") : 0;

    if (fd >= 0)
        close(fd);
    return rc;
}

int pt_store_commit(struct pt_store_writer *w, struct pt_err *err)
{
    int rc = 0;

    for (size_t i = 0; i < STORE_NTABLES && rc == 0; i++)
        rc = table_flush(&w->tables[i], err);
    if (rc == 0)
        rc = close_all(w, err);
    if (rc == 0)
        rc = sync_file(w->temporary, err);
    if (rc == 0 && rename(w->temporary, w->path) < 0)
        rc = pt_err_errno(err, "cannot rename");
    if (rc == 0) {
        free(w->temporary);
        w->temporary = NULL;
    }
    pt_store_abort(w);
    return rc;
}

void pt_store_abort(struct pt_store_writer *w)
{
    int saved = errno;

    if (!w)
        return;
    close_all(w, NULL);
    if (w->temporary)
        unlink(w->temporary);
    free(w->temporary);
    free(w->path);
    free(w);
    errno = saved;
}
