#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hdf5store/store_column.h"

struct pt_store {
    char *path;
    hid_t file;
    hsize_t file_size;
    char *names; /* with a NUL behind its end */
    size_t names_len;
    struct pt_call_desc *calls;
    size_t ncalls;
    struct pt_store_node *nodes;
    size_t nnodes;
    struct pt_store_file *files;
    size_t nfiles;
    struct pt_store_edge *edges;
    size_t nedges;
    struct pt_store_barrier *barriers;
    size_t nbarriers;
    struct pt_store_member *members;
    struct pt_store_run *runs;
    size_t nruns;
    struct store_reader events;
};

/* ---- attributes ------------------------------------------------------------- */

static int is_our_format(hid_t file)
{
    char text[sizeof(STORE_FORMAT)] = "";
    hid_t attr = H5Aopen(file, "format", H5P_DEFAULT);
    hid_t type = attr < 0 ? -1 : H5Aget_type(attr);
    hid_t memory = H5Tcopy(H5T_C_S1);
    int ok = type >= 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
             H5Tget_size(type) == sizeof(text) && H5Aget_storage_size(attr) == sizeof(text) &&
             H5Tset_size(memory, sizeof(text)) >= 0 && H5Aread(attr, memory, text) >= 0 &&
             !memcmp(text, STORE_FORMAT, sizeof(text));

    H5Tclose(memory);
    H5Tclose(type);
    H5Aclose(attr);
    return ok;
}

static int get_version(hid_t file, uint32_t *version)
{
    hid_t attr = H5Aopen(file, "version", H5P_DEFAULT);
    hid_t type = attr < 0 ? -1 : H5Aget_type(attr);
    int ok = type >= 0 && H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) <= 8 &&
             H5Aget_storage_size(attr) == H5Tget_size(type) &&
             H5Aread(attr, H5T_NATIVE_UINT32, version) >= 0;

    H5Tclose(type);
    H5Aclose(attr);
    return ok ? 0 : -1;
}

static int check_head(hid_t file, struct pt_err *err)
{
    uint32_t version;

    if (!is_our_format(file))
        return pt_err_set(err, "an HDF5 file, but not a paratrace store");
    if (get_version(file, &version) < 0 || version == 0)
        return pt_err_set(err, "damaged: attribute 'version'");
    if (version > PT_STORE_VERSION)
        return pt_err_set(err, "version %u; this program reads up to %d", version,
                          PT_STORE_VERSION);
    return 0;
}

/* ---- tables --------------------------------------------------------------- */

static void *load(struct pt_store *s, enum store_table_id id, size_t *n, struct pt_err *err)
{
    struct store_reader t = {0};
    void *rows = NULL;

    if (store_reader_open(&t, &store_tables[id], s->file, s->file_size, err) == 0)
        rows = store_reader_load(&t, err);
    *n = t.rows;
    store_reader_close(&t);
    return rows;
}

static int load_names(struct pt_store *s, struct pt_err *err)
{
    s->names = load(s, STORE_NAMES, &s->names_len, err);
    if (!s->names)
        return -1;
    if (s->names_len && s->names[s->names_len - 1])
        return pt_err_set(err, "damaged: the last string of '/names' is not terminated");
    return 0;
}

static int find_name(const struct pt_store *s, uint64_t offset, const char *what, size_t row,
                     const char **name, struct pt_err *err)
{
    if (offset >= s->names_len) {
        pt_err_set(err, "damaged: %s of row %zu is not in '/names'", what, row);
        return -1;
    }
    *name = s->names + offset;
    return 0;
}

static int parse_fields(struct pt_call_desc *call, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, ",");
        char name[PT_NAME_MAX];

        if (call->nfields == PT_MAX_FIELDS || n >= sizeof(name))
            return -1;
        memcpy(name, text, n);
        name[n] = '\0';
        int field = pt_field_by_name(name);
        call->string[call->nfields] = field >= 0 && pt_field_is_string(field);
        call->fields[call->nfields++] = field;
        text += n + (text[n] == ',');
    }
    return 0;
}

static int load_call(const struct pt_store *s, size_t i, const struct store_call_row *row,
                     struct pt_call_desc *call, struct pt_err *err)
{
    const char *name, *class, *replay, *fields;
    int cls;

    if (find_name(s, row->name, "/calls/name", i, &name, err) < 0 ||
        find_name(s, row->class, "/calls/class", i, &class, err) < 0 ||
        find_name(s, row->replay, "/calls/replay", i, &replay, err) < 0 ||
        find_name(s, row->fields, "/calls/fields", i, &fields, err) < 0)
        return -1;
    cls = pt_class_by_name(class);
    if (cls < 0 || strlen(name) >= sizeof(call->name))
        return pt_err_set(err, "damaged: row %zu of '/calls'", i);
    strcpy(call->name, name);
    call->cls = cls;
    int known = pt_replay_by_name(replay);
    call->replay = known < 0 ? PT_REPLAY_NONE : (enum pt_replay)known;
    if (parse_fields(call, fields) < 0)
        return pt_err_set(err, "damaged: row %zu of '/calls/fields'", i);
    return 0;
}

static int load_calls(struct pt_store *s, struct pt_err *err)
{
    struct store_call_row *rows = load(s, STORE_CALLS, &s->ncalls, err);
    int rc = 0;

    if (!rows)
        return -1;
    s->calls = calloc(s->ncalls + 1, sizeof(*s->calls));
    if (!s->calls)
        rc = pt_err_set(err, "not enough memory");
    for (size_t i = 0; i < s->ncalls && rc == 0; i++)
        rc = load_call(s, i, &rows[i], &s->calls[i], err);
    free(rows);
    return rc;
}

static int load_node(const struct pt_store *s, size_t i, const struct store_node_row *row,
                     struct pt_store_node *node, struct pt_err *err)
{
    if (find_name(s, row->host, "/nodes/host", i, &node->host, err) < 0 ||
        find_name(s, row->exe, "/nodes/exe", i, &node->exe, err) < 0)
        return -1;
    if (row->first > s->events.rows || row->count > s->events.rows - row->first)
        return pt_err_set(err, "damaged: node %zu has events beyond the table's end", i);
    node->name = (struct pt_name){row->rank, row->process, row->thread};
    node->first = row->first;
    node->count = row->count;
    node->start_ns = row->start_ns;
    return 0;
}

static int load_nodes(struct pt_store *s, struct pt_err *err)
{
    struct store_node_row *rows = load(s, STORE_NODES, &s->nnodes, err);
    int rc = 0;

    if (!rows)
        return -1;
    s->nodes = calloc(s->nnodes + 1, sizeof(*s->nodes));
    if (!s->nodes)
        rc = pt_err_set(err, "not enough memory");
    if (s->nnodes > UINT32_MAX)
        rc = pt_err_set(err, "damaged: too many nodes");
    for (size_t i = 0; i < s->nnodes && rc == 0; i++)
        rc = load_node(s, i, &rows[i], &s->nodes[i], err);
    free(rows);
    return rc;
}

static int load_files(struct pt_store *s, struct pt_err *err)
{
    struct store_file_row *rows = load(s, STORE_FILES, &s->nfiles, err);
    int rc = 0;

    if (!rows)
        return -1;
    s->files = calloc(s->nfiles + 1, sizeof(*s->files));
    if (!s->files)
        rc = pt_err_set(err, "not enough memory");
    for (size_t i = 0; i < s->nfiles && rc == 0; i++) {
        struct pt_store_file *file = &s->files[i];
        rc = find_name(s, rows[i].path, "/files/path", i, &file->path, err);
        file->dev = rows[i].dev;
        file->ino = rows[i].ino;
        file->size = rows[i].size;
        file->made = rows[i].made <= PT_MADE_UNKNOWN ? rows[i].made : PT_MADE_UNKNOWN;
        file->dir = rows[i].dir <= PT_KIND_LINK ? rows[i].dir : PT_KIND_FILE;
    }
    free(rows);
    return rc;
}

static int load_runs(struct pt_store *s, struct pt_err *err)
{
    struct store_run_row *rows = load(s, STORE_RUNS, &s->nruns, err);
    int rc = 0;

    if (!rows)
        return -1;
    s->runs = calloc(s->nruns + 1, sizeof(*s->runs));
    if (!s->runs)
        rc = pt_err_set(err, "not enough memory");
    for (size_t i = 0; i < s->nruns && rc == 0; i++) {
        struct pt_store_run *run = &s->runs[i];
        if (find_name(s, rows[i].dir, "/runs/dir", i, &run->dir, err) < 0 ||
            find_name(s, rows[i].spec, "/runs/spec", i, &run->spec, err) < 0 ||
            find_name(s, rows[i].host, "/runs/host", i, &run->host, err) < 0)
            rc = -1;
        run->job = rows[i].job;
        run->step = rows[i].step;
        run->complete = rows[i].complete != 0;
        run->lost = rows[i].lost;
    }
    free(rows);
    return rc;
}

/* ---- edges and barriers ------------------------------------------------------ */

static int is_event(const struct pt_store *s, uint32_t node, uint64_t event)
{
    return node < s->nnodes && event < s->nodes[node].count;
}

static int by_destination(const void *pa, const void *pb)
{
    const struct pt_store_edge *a = pa, *b = pb;

    if (a->dst_node != b->dst_node)
        return a->dst_node < b->dst_node ? -1 : 1;
    if (a->dst_event != b->dst_event)
        return a->dst_event < b->dst_event ? -1 : 1;
    return a->src_node < b->src_node ? -1 : a->src_node > b->src_node;
}

static int load_edges(struct pt_store *s, struct pt_err *err)
{
    s->edges = load(s, STORE_EDGES, &s->nedges, err);
    if (!s->edges)
        return -1;
    for (size_t i = 0; i < s->nedges; i++) {
        const struct pt_store_edge *e = &s->edges[i];
        if (!is_event(s, e->src_node, e->src_event) || !is_event(s, e->dst_node, e->dst_event) ||
            e->src_node == e->dst_node)
            return pt_err_set(err, "damaged: edge %zu is not between events of two nodes", i);
    }
    qsort(s->edges, s->nedges, sizeof(*s->edges), by_destination);
    return 0;
}

static int check_barrier(const struct pt_store *s, size_t i, struct pt_err *err)
{
    const struct pt_store_barrier *b = &s->barriers[i];

    if (b->nmembers < 2)
        return pt_err_set(err, "damaged: barrier %zu has less than two members", i);
    for (size_t k = 0; k < b->nmembers; k++) {
        const struct pt_store_member *m = &b->members[k];
        if (m->event == 0 || !is_event(s, m->node, m->event))
            return pt_err_set(err, "damaged: barrier %zu has a member that is no event", i);
        if (k > 0 && m->node <= b->members[k - 1].node)
            return pt_err_set(err, "damaged: the members of barrier %zu are not sorted", i);
    }
    return 0;
}

static int load_barriers(struct pt_store *s, struct pt_err *err)
{
    size_t nmembers = 0;
    struct store_barrier_row *rows = load(s, STORE_BARRIERS, &s->nbarriers, err);
    int rc = 0;

    if (!rows)
        return -1;
    s->members = load(s, STORE_MEMBERS, &nmembers, err);
    s->barriers = calloc(s->nbarriers + 1, sizeof(*s->barriers));
    if (!s->members)
        rc = -1;
    else if (!s->barriers)
        rc = pt_err_set(err, "not enough memory");
    for (size_t i = 0; i < s->nbarriers && rc == 0; i++) {
        if (rows[i].first > nmembers || rows[i].count > nmembers - rows[i].first) {
            rc = pt_err_set(err, "damaged: barrier %zu has members beyond the table's end", i);
            break;
        }
        s->barriers[i] =
            (struct pt_store_barrier){rows[i].count, s->members + rows[i].first, rows[i].by};
        rc = check_barrier(s, i, err);
    }
    free(rows);
    return rc;
}

/* ---- the store ---------------------------------------------------------------- */

static int open_file(struct pt_store *s, struct pt_err *err)
{
    int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    htri_t is_hdf5;

    if (fd < 0)
        return pt_err_set(err, "%s", strerror(errno));
    if (fstat(fd, &st) == 0)
        s->file_size = st.st_size;
    close(fd);
    if (!S_ISREG(st.st_mode))
        return pt_err_set(err, "not a regular file");
    is_hdf5 = H5Fis_hdf5(s->path);
    if (is_hdf5 == 0)
        return pt_err_set(err, "not an HDF5 file");
    s->file = H5Fopen(s->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (s->file < 0)
        return store_fail(err, "damaged HDF5 file");
    return check_head(s->file, err);
}

static int load_all(struct pt_store *s, struct pt_err *err)
{
    if (store_reader_open(&s->events, &store_tables[STORE_EVENTS], s->file, s->file_size, err) < 0)
        return -1;
    if (load_names(s, err) < 0 || load_calls(s, err) < 0 || load_nodes(s, err) < 0 ||
        load_files(s, err) < 0 || load_runs(s, err) < 0)
        return -1;
    if (load_edges(s, err) < 0)
        return -1;
    return load_barriers(s, err);
}

struct pt_store *pt_store_open(const char *path, struct pt_err *err)
{
    struct pt_store *s = calloc(1, sizeof(*s));
    struct pt_err why = {""};

    store_silence_hdf5();
    if (!s || !(s->path = strdup(path))) {
        pt_err_set(err, "cannot open store '%s': not enough memory", path);
        free(s);
        return NULL;
    }
    s->file = -1;
    if (open_file(s, &why) < 0 || load_all(s, &why) < 0) {
        pt_err_set(err, "cannot open store '%s': %s", path, why.text);
        pt_store_close(s);
        return NULL;
    }
    return s;
}

void pt_store_close(struct pt_store *s)
{
    int saved = errno;

    if (!s)
        return;
    store_reader_close(&s->events);
    if (s->file >= 0)
        H5Fclose(s->file);
    free(s->names);
    free(s->calls);
    free(s->nodes);
    free(s->files);
    free(s->edges);
    free(s->barriers);
    free(s->members);
    free(s->runs);
    free(s->path);
    free(s);
    errno = saved;
}

static int check_event(const struct pt_store *s, const struct pt_store_event *e)
{
    return e->op < s->ncalls && (e->file == PT_NO_FILE || e->file < s->nfiles) &&
           (e->file2 == PT_NO_FILE || e->file2 < s->nfiles) &&
           (e->text == 0 || e->text < s->names_len);
}

int pt_store_read_events(struct pt_store *s, size_t node, uint64_t first, uint64_t count,
                         struct pt_store_event *out, struct pt_err *err)
{
    struct pt_err why;
    const struct pt_store_node *n;

    if (node >= s->nnodes)
        return pt_err_set(err, "store '%s' has no node %zu", s->path, node);
    n = &s->nodes[node];
    if (first > n->count || count > n->count - first)
        return pt_err_set(err, "node %zu of store '%s' has only %llu events", node, s->path,
                          (unsigned long long)n->count);
    if (store_reader_read(&s->events, n->first + first, count, out, &why) < 0)
        return pt_err_set(err, "cannot read store '%s': %s", s->path, why.text);
    for (uint64_t i = 0; i < count; i++)
        if (!check_event(s, &out[i]))
            return pt_err_set(err, "cannot read store '%s': damaged: event %llu of node %zu",
                              s->path, (unsigned long long)(first + i), node);
    return 0;
}

/* ---- access ---------------------------------------------------------------------- */

size_t pt_store_nnodes(const struct pt_store *s)
{
    return s->nnodes;
}

const struct pt_store_node *pt_store_node(const struct pt_store *s, size_t i)
{
    return i < s->nnodes ? &s->nodes[i] : NULL;
}

size_t pt_store_nfiles(const struct pt_store *s)
{
    return s->nfiles;
}

const struct pt_store_file *pt_store_file(const struct pt_store *s, size_t i)
{
    return i < s->nfiles ? &s->files[i] : NULL;
}

const char *pt_store_text(const struct pt_store *s, uint64_t text)
{
    return text > 0 && text < s->names_len ? s->names + text : NULL;
}

size_t pt_store_ncalls(const struct pt_store *s)
{
    return s->ncalls;
}

const struct pt_call_desc *pt_store_call(const struct pt_store *s, size_t op)
{
    return op < s->ncalls ? &s->calls[op] : NULL;
}

size_t pt_store_nedges(const struct pt_store *s)
{
    return s->nedges;
}

const struct pt_store_edge *pt_store_edges(const struct pt_store *s)
{
    return s->edges;
}

size_t pt_store_nbarriers(const struct pt_store *s)
{
    return s->nbarriers;
}

const struct pt_store_barrier *pt_store_barrier(const struct pt_store *s, size_t i)
{
    return i < s->nbarriers ? &s->barriers[i] : NULL;
}

size_t pt_store_nruns(const struct pt_store *s)
{
    return s->nruns;
}

const struct pt_store_run *pt_store_run(const struct pt_store *s, size_t i)
{
    return i < s->nruns ? &s->runs[i] : NULL;
}
