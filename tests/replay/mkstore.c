/*
 * mkstore STORE.h5 < DESCRIPTION: makes a store by hand, for tests.  Lines:
 *
 *   file PATH [size=N] [made|unknown] [dir|link]       numbered from 0
 *   node RANK [PROCESS [THREAD]]          events that follow are its own
 *   OP [key=value]...                     an event; OP is a call's name
 *   edge SRC_NODE SRC_EVENT DST_NODE DST_EVENT
 *   barrier NODE:EVENT...
 *
 * Keys of an event are the names of the store's columns; times are in milliseconds
 * and without their "_ns".  flags= takes letters: r, w, b (both), c (O_CREAT),
 * t (O_TRUNC), x (O_EXCL), a (O_APPEND), d (O_DIRECT), D (O_DIRECTORY), T (O_TMPFILE).
 * text= takes the text itself.  The handle of an event is also its descriptor.
 */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/store_write.h"

enum { MAX_NODES = 64, MAX_FILES = 64, MAX_EVENTS = 20000, MAX_EDGES = 1000, MAX_MEMBERS = 64 };

static struct pt_store_node nodes[MAX_NODES];
static struct pt_store_file files[MAX_FILES];
static struct pt_store_event events[MAX_EVENTS];
static struct pt_store_edge edges[MAX_EDGES];
static struct pt_store_barrier barriers[MAX_EDGES];
static struct pt_store_member members[MAX_EDGES][MAX_MEMBERS];
static char *texts[MAX_EVENTS];
static size_t nnodes, nfiles, nevents, nedges, nbarriers;
static uint64_t now_ns; /* of the node in hand */

static _Noreturn void die(const char *what, const char *object)
{
    fprintf(stderr, "mkstore: %s '%s'\n", what, object);
    exit(1);
}

static const struct {
    const char *name;
    size_t offset, size;
    uint64_t unit;
} columns[] = {
#define COLUMN(type, name) {#name, offsetof(struct pt_store_event, name), sizeof(type), 1},
    PT_STORE_EVENT_COLUMNS(COLUMN)
#undef COLUMN
#define MS(name) {#name, offsetof(struct pt_store_event, name##_ns), sizeof(uint64_t), 1000000},
        MS(begin) MS(dur) MS(compute0) MS(compute1) MS(compute2) MS(idle0) MS(idle1) MS(idle2)
            MS(sync)
#undef MS
};

static int64_t parse_flags(const char *letters)
{
    int flags = 0;

    for (; *letters; letters++)
        flags |= *letters == 'w'   ? O_WRONLY
                 : *letters == 'b' ? O_RDWR
                 : *letters == 'c' ? O_CREAT
                 : *letters == 't' ? O_TRUNC
                 : *letters == 'x' ? O_EXCL
                 : *letters == 'a' ? O_APPEND
                 : *letters == 'd' ? O_DIRECT
                 : *letters == 'D' ? O_DIRECTORY
                 : *letters == 'T' ? O_TMPFILE
                                   : O_RDONLY;
    return flags;
}

static void set(struct pt_store_event *ev, const char *key, const char *value)
{
    if (!strcmp(key, "flags")) {
        ev->oflags = (int32_t)parse_flags(value);
        return;
    }
    if (!strcmp(key, "text")) {
        texts[ev - events] = strdup(value);
        return;
    }
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
        int64_t v = (int64_t)(atof(value) * (double)columns[i].unit);

        if (strcmp(key, columns[i].name))
            continue;
        if (columns[i].unit == 1)
            v = strtoll(value, NULL, 0);
        memcpy((char *)ev + columns[i].offset, &v, columns[i].size);
        if (!strcmp(key, "handle"))
            ev->fd = (int32_t)v;
        if (!strcmp(key, "handle2"))
            ev->fd2 = (int32_t)v;
        return;
    }
    die("unknown key", key);
}

static void add_event(const char *name)
{
    struct pt_store_event *ev = &events[nevents++];
    int op = pt_op_by_name(name);
    char *word;

    if (op < 0 || nnodes == 0 || nevents == MAX_EVENTS)
        die("no such call, or no node for it", name);
    *ev = (struct pt_store_event){.op = (uint16_t)op,
                                  .fd = -1,
                                  .fd2 = -1,
                                  .file = PT_NO_FILE,
                                  .file2 = PT_NO_FILE,
                                  .dur_ns = 1000};
    while ((word = strtok(NULL, " \n"))) {
        char *value = strchr(word, '=');

        if (!value)
            die("no value for", word);
        *value++ = '\0';
        set(ev, word, value);
    }
    if (ev->err)
        ev->ret = -1;
    now_ns += ev->compute0_ns + ev->compute1_ns + ev->compute2_ns + ev->idle0_ns + ev->idle1_ns +
              ev->idle2_ns + ev->sync_ns;
    if (ev->begin_ns == 0)
        ev->begin_ns = now_ns;
    now_ns = ev->begin_ns + ev->dur_ns;
    nodes[nnodes - 1].count++;
}

static void add_file(void)
{
    struct pt_store_file *f = &files[nfiles++];
    char *word = strtok(NULL, " \n");

    if (!word || nfiles == MAX_FILES)
        die("no path, or too many", "file");
    *f = (struct pt_store_file){.path = strdup(word), .dev = 1, .ino = nfiles};
    while ((word = strtok(NULL, " \n"))) {
        if (!strncmp(word, "size=", 5))
            f->size = strtoull(word + 5, NULL, 0);
        if (!strcmp(word, "made"))
            f->made = PT_MADE_BY_TRACE;
        if (!strcmp(word, "unknown"))
            f->made = PT_MADE_UNKNOWN;
        if (!strcmp(word, "dir"))
            f->dir = PT_KIND_DIR;
        if (!strcmp(word, "link"))
            f->dir = PT_KIND_LINK;
    }
}

static void add_node(void)
{
    int32_t name[3] = {0};
    char *word;

    if (nnodes == MAX_NODES)
        die("too many", "node");
    for (int i = 0; i < 3 && (word = strtok(NULL, " \n")); i++)
        name[i] = atoi(word);
    nodes[nnodes++] = (struct pt_store_node){
        .name = {name[0], name[1], name[2]}, .host = "host", .exe = "app", .first = nevents};
    now_ns = 0;
}

static uint64_t number(void)
{
    char *word = strtok(NULL, " :\n");

    if (!word)
        die("no number", "edge or barrier");
    return strtoull(word, NULL, 0);
}

static void add_edge(void)
{
    struct pt_store_edge *e = &edges[nedges++];

    if (nedges == MAX_EDGES)
        die("too many", "edge");
    e->src_node = (uint32_t)number();
    e->src_event = number();
    e->dst_node = (uint32_t)number();
    e->dst_event = number();
    e->by = PT_BY_HOLD;
}

static void add_barrier(void)
{
    struct pt_store_barrier *b = &barriers[nbarriers];
    struct pt_store_member *m = members[nbarriers++];
    char *word;

    if (nbarriers == MAX_EDGES)
        die("too many", "barrier");
    b->members = m;
    while ((word = strtok(NULL, " :\n"))) {
        if (b->nmembers == MAX_MEMBERS)
            die("too many", "member");
        m[b->nmembers].node = (uint32_t)strtoul(word, NULL, 0);
        m[b->nmembers++].event = number();
    }
}

static void read_line(char *line)
{
    char *word = strtok(line, " \n");

    if (!word || *word == '#')
        return;
    if (!strcmp(word, "file"))
        add_file();
    else if (!strcmp(word, "node"))
        add_node();
    else if (!strcmp(word, "edge"))
        add_edge();
    else if (!strcmp(word, "barrier"))
        add_barrier();
    else
        add_event(word);
}

static int compare_edges(const void *a, const void *b)
{
    const struct pt_store_edge *x = a, *y = b;

    if (x->dst_node != y->dst_node)
        return x->dst_node < y->dst_node ? -1 : 1;
    return x->dst_event < y->dst_event ? -1 : x->dst_event > y->dst_event;
}

static void make_calls(struct pt_call_desc *calls)
{
    for (int op = 0; op < PT_NOPS; op++) {
        calls[op] = (struct pt_call_desc){.cls = pt_calls[op].cls, .replay = pt_calls[op].replay};
        calls[op].nfields = pt_calls[op].nfields;
        snprintf(calls[op].name, sizeof(calls[op].name), "%s", pt_calls[op].name);
        for (int i = 0; i < pt_calls[op].nfields; i++) {
            calls[op].fields[i] = (int8_t)pt_calls[op].fields[i];
            calls[op].string[i] = (uint8_t)pt_field_is_string(pt_calls[op].fields[i]);
        }
    }
}

static int write_store(const char *path, struct pt_err *err)
{
    static struct pt_call_desc calls[PT_NOPS];
    struct pt_store_writer *w = pt_store_create(path, 0, err);

    if (!w)
        return -1;
    make_calls(calls);
    for (size_t i = 0; i < nevents; i++)
        if (texts[i] && pt_store_write_text(w, texts[i], &events[i].text, err) < 0)
            goto failed;
    if (pt_store_write_calls(w, calls, PT_NOPS, err) < 0 ||
        pt_store_write_nodes(w, nodes, nnodes, err) < 0 ||
        pt_store_write_events(w, events, nevents, err) < 0 ||
        pt_store_write_files(w, files, nfiles, err) < 0 ||
        pt_store_write_edges(w, edges, nedges, err) < 0)
        goto failed;
    for (size_t i = 0; i < nbarriers; i++)
        if (pt_store_write_barrier(w, &barriers[i], err) < 0)
            goto failed;
    return pt_store_commit(w, err);
failed:
    pt_store_abort(w);
    return -1;
}

int main(int argc, char **argv)
{
    struct pt_err err = {""};
    char line[1000];

    if (argc != 2) {
        fprintf(stderr, "mkstore: needs the name of the store\n");
        return 2;
    }
    while (fgets(line, sizeof(line), stdin))
        read_line(line);
    qsort(edges, nedges, sizeof(*edges), compare_edges);
    if (write_store(argv[1], &err) < 0)
        die(err.text, argv[1]);
    return 0;
}
