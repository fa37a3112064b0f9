/*
 * A store as text: per event, in the order of a replay: computing, the SIGNALs of
 * the event before, computing, BARRIER and WAITs, computing, the call.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "hdf5store/dump.h"
#include "hdf5store/format.h"
#include "hdf5store/store.h"

#define BATCH 4096

struct barrier_ref {
    struct pt_store_member member;
    size_t barrier;
};

struct dumper {
    const struct dump_options *o;
    struct pt_store *store;
    FILE *out;
    struct pt_store_edge *by_source;
    struct barrier_ref *barriers; /* by node, event */
    size_t nbarriers;
    struct pt_store_event *batch;
    size_t node; /* the one being printed */
};

/* ---- who waits for whom ----------------------------------------------------------- */

static int compare_sources(const void *pa, const void *pb)
{
    const struct pt_store_edge *a = pa, *b = pb;

    if (a->src_node != b->src_node)
        return a->src_node < b->src_node ? -1 : 1;
    if (a->src_event != b->src_event)
        return a->src_event < b->src_event ? -1 : 1;
    if (a->dst_node != b->dst_node)
        return a->dst_node < b->dst_node ? -1 : 1;
    return a->dst_event < b->dst_event ? -1 : a->dst_event > b->dst_event;
}

static int compare_refs(const void *pa, const void *pb)
{
    const struct pt_store_member *a = &((const struct barrier_ref *)pa)->member;
    const struct pt_store_member *b = &((const struct barrier_ref *)pb)->member;

    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    return a->event < b->event ? -1 : a->event > b->event;
}

static int index_edges(struct dumper *d, struct pt_err *err)
{
    size_t n = pt_store_nedges(d->store), members = 0;

    for (size_t i = 0; i < pt_store_nbarriers(d->store); i++)
        members += pt_store_barrier(d->store, i)->nmembers;
    d->by_source = calloc(n + 1, sizeof(*d->by_source));
    d->barriers = calloc(members + 1, sizeof(*d->barriers));
    d->batch = calloc(BATCH, sizeof(*d->batch));
    if (!d->by_source || !d->barriers || !d->batch)
        return pt_err_set(err, "not enough memory");
    memcpy(d->by_source, pt_store_edges(d->store), n * sizeof(*d->by_source));
    qsort(d->by_source, n, sizeof(*d->by_source), compare_sources);
    for (size_t i = 0; i < pt_store_nbarriers(d->store); i++) {
        const struct pt_store_barrier *b = pt_store_barrier(d->store, i);
        for (size_t k = 0; k < b->nmembers; k++)
            d->barriers[d->nbarriers++] = (struct barrier_ref){b->members[k], i};
    }
    qsort(d->barriers, d->nbarriers, sizeof(*d->barriers), compare_refs);
    return 0;
}

/* The first edge (sorted by source, or by destination) of an event or behind. */
static size_t first_edge(const struct pt_store_edge *edges, size_t n, uint32_t node, uint64_t event,
                         int by_source)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        uint32_t its_node = by_source ? edges[mid].src_node : edges[mid].dst_node;
        uint64_t its_event = by_source ? edges[mid].src_event : edges[mid].dst_event;
        if (its_node < node || (its_node == node && its_event < event))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static const struct pt_store_barrier *find_barrier(const struct dumper *d, uint64_t event,
                                                   size_t *number)
{
    struct barrier_ref key = {.member = {d->node, event}};
    const struct barrier_ref *ref =
        bsearch(&key, d->barriers, d->nbarriers, sizeof(*d->barriers), compare_refs);

    if (!ref)
        return NULL;
    *number = ref->barrier;
    return pt_store_barrier(d->store, ref->barrier);
}

static const char *node_name(const struct dumper *d, size_t node, char buf[PT_NAME_LEN])
{
    return pt_name_format(buf, &pt_store_node(d->store, node)->name);
}

/* ---- text --------------------------------------------------------------------------- */

static void print_think(const struct dumper *d, const char *what, uint64_t ns)
{
    if (ns >= 1000)
        fprintf(d->out, "%8s %s(%.6f)\n", "", what, ns / 1e9);
}

/* Who has found it; holding is not mentioned. */
static const char *by_text(uint8_t by)
{
    return by == PT_BY_MPI ? " by mpi" : by & PT_BY_MPI ? " by hold and mpi" : "";
}

static const char *by_word(uint8_t by)
{
    return by == PT_BY_MPI ? "mpi" : by & PT_BY_MPI ? "both" : "hold";
}

static void print_signals(const struct dumper *d, uint64_t event)
{
    size_t n = pt_store_nedges(d->store);
    char name[PT_NAME_LEN];

    for (size_t i = first_edge(d->by_source, n, d->node, event, 1); i < n; i++) {
        const struct pt_store_edge *e = &d->by_source[i];
        if (e->src_node != d->node || e->src_event != event)
            break;
        fprintf(d->out, "%8s SIGNAL(%s:%" PRIu64 ")\n", "", node_name(d, e->dst_node, name),
                e->dst_event);
    }
}

static void print_waits(const struct dumper *d, uint64_t event)
{
    const struct pt_store_edge *edges = pt_store_edges(d->store);
    size_t n = pt_store_nedges(d->store), number;
    const struct pt_store_barrier *b = find_barrier(d, event, &number);
    char name[PT_NAME_LEN];

    if (b) {
        fprintf(d->out, "%8s BARRIER(%zu: ", "", number);
        for (size_t i = 0; i < b->nmembers; i++)
            fprintf(d->out, "%s%s", i ? "," : "", node_name(d, b->members[i].node, name));
        fprintf(d->out, ")%s\n", by_text(b->by));
    }
    for (size_t i = first_edge(edges, n, d->node, event, 0); i < n; i++) {
        if (edges[i].dst_node != d->node || edges[i].dst_event != event)
            break;
        fprintf(d->out, "%8s WAIT(%s:%" PRIu64 ")%s\n", "", node_name(d, edges[i].src_node, name),
                edges[i].src_event, by_text(edges[i].by));
    }
}

static const char *path_of(const struct dumper *d, uint32_t file)
{
    return file == PT_NO_FILE ? NULL : pt_store_file(d->store, file)->path;
}

static void prepare(const struct dumper *d, const struct pt_store_event *e, struct format_event *f)
{
    format_from_store(f, pt_store_call(d->store, e->op), e, path_of(d, e->file),
                      path_of(d, e->file2), pt_store_text(d->store, e->text));
}

static void print_event(const struct dumper *d, uint64_t number, const struct pt_store_event *e)
{
    struct format_event f;

    prepare(d, e, &f);
    print_think(d, "COMPUTE", e->compute0_ns);
    print_think(d, "IDLE", e->idle0_ns);
    if (number > 0)
        print_signals(d, number - 1);
    print_think(d, "COMPUTE", e->compute1_ns);
    print_think(d, "IDLE", e->idle1_ns);
    print_waits(d, number);
    print_think(d, "COMPUTE", e->compute2_ns);
    print_think(d, "IDLE", e->idle2_ns);
    fprintf(d->out, "%8" PRIu64 " ", number);
    format_call(d->out, &f, FORMAT_NO_DIRFD | (d->o->paths ? FORMAT_PATHS : 0));
    format_result(d->out, &f);
    putc('\n', d->out);
}

static void print_head(const struct dumper *d, const struct pt_store_node *node)
{
    char name[PT_NAME_LEN];

    fprintf(d->out, "# node %s (host %s, %" PRIu64 " events)\n", node_name(d, d->node, name),
            node->host, node->count);
}

/* ---- JSON --------------------------------------------------------------------------- */

static void json_edges(const struct dumper *d, const char *key, uint64_t event, int by_source)
{
    const struct pt_store_edge *edges = by_source ? d->by_source : pt_store_edges(d->store);
    size_t n = pt_store_nedges(d->store), first = first_edge(edges, n, d->node, event, by_source);

    for (size_t i = first; i < n; i++) {
        const struct pt_store_edge *e = &edges[i];
        char name[PT_NAME_LEN];

        if ((by_source ? e->src_node : e->dst_node) != d->node ||
            (by_source ? e->src_event : e->dst_event) != event)
            break;
        if (i == first)
            fprintf(d->out, ",\"%s\":[", key);
        fprintf(d->out, "%s{\"node\":\"%s\",\"event\":%" PRIu64 ",\"by\":\"%s\"}",
                i == first ? "" : ",", node_name(d, by_source ? e->dst_node : e->src_node, name),
                by_source ? e->dst_event : e->src_event, by_word(e->by));
        if (i + 1 == n || (by_source ? edges[i + 1].src_node : edges[i + 1].dst_node) != d->node ||
            (by_source ? edges[i + 1].src_event : edges[i + 1].dst_event) != event)
            putc(']', d->out);
    }
}

static void json_event(const struct dumper *d, uint64_t number, const struct pt_store_event *e)
{
    const struct pt_store_barrier *b;
    struct format_event f;
    size_t barrier;

    prepare(d, e, &f);
    fprintf(d->out, "{\"event\":%" PRIu64 ",", number);
    format_json(d->out, &f, FORMAT_NO_DIRFD);
    fprintf(d->out,
            ",\"compute_ns\":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "],\"idle_ns\":[%" PRIu64
            ",%" PRIu64 ",%" PRIu64 "],\"sync_ns\":%" PRIu64,
            e->compute0_ns, e->compute1_ns, e->compute2_ns, e->idle0_ns, e->idle1_ns, e->idle2_ns,
            e->sync_ns);
    json_edges(d, "waits", number, 0);
    json_edges(d, "signals", number, 1);
    b = find_barrier(d, number, &barrier);
    if (b)
        fprintf(d->out, ",\"barrier\":%zu,\"barrier_by\":\"%s\"", barrier, by_word(b->by));
    putc('}', d->out);
}

static void json_head(const struct dumper *d, const struct pt_store_node *node)
{
    char name[PT_NAME_LEN];

    fprintf(d->out, "{\"node\":\"%s\",\"host\":", node_name(d, d->node, name));
    pt_json_string(d->out, node->host);
    fputs(",\"exe\":", d->out);
    pt_json_string(d->out, node->exe);
    fprintf(d->out, ",\"count\":%" PRIu64 ",\"events\":[", node->count);
}

/* ---- all of it ------------------------------------------------------------------------ */

static void print_batch(const struct dumper *d, uint64_t first, size_t n)
{
    for (size_t i = 0; i < n && !ferror(d->out); i++) {
        if (!d->o->json) {
            print_event(d, first + i, &d->batch[i]);
            continue;
        }
        if (first + i > d->o->first)
            fputs(",\n", d->out);
        json_event(d, first + i, &d->batch[i]);
    }
}

static int print_node(struct dumper *d, struct pt_err *err)
{
    const struct pt_store_node *node = pt_store_node(d->store, d->node);
    uint64_t end = d->o->last < node->count ? d->o->last + 1 : node->count;

    (d->o->json ? json_head : print_head)(d, node);
    for (uint64_t at = d->o->first; at < end && !ferror(d->out);) {
        size_t n = end - at < BATCH ? end - at : BATCH;
        if (pt_store_read_events(d->store, d->node, at, n, d->batch, err) < 0)
            return -1;
        print_batch(d, at, n);
        at += n;
    }
    if (d->o->json)
        fputs("]}", d->out);
    else if (end == node->count && end > d->o->first)
        print_signals(d, end - 1);
    return 0;
}

static int print_nodes(struct dumper *d, struct pt_err *err)
{
    size_t printed = 0;
    char name[PT_NAME_LEN];

    for (d->node = 0; d->node < pt_store_nnodes(d->store); d->node++) {
        const struct pt_store_node *node = pt_store_node(d->store, d->node);
        if (d->o->one_node && pt_name_compare(&node->name, &d->o->node))
            continue;
        if (printed++ && d->o->json)
            fputs(",\n", d->out);
        if (print_node(d, err) < 0)
            return -1;
    }
    if (d->o->one_node && !printed)
        return pt_err_set(err, "cannot dump '%s': it has no node %s", d->o->file,
                          pt_name_format(name, &d->o->node));
    return 0;
}

int dump_store(const struct dump_options *o, FILE *out, struct pt_err *err)
{
    struct dumper d = {.o = o, .out = out};
    int rc = -1;

    d.store = pt_store_open(o->file, err);
    if (d.store && index_edges(&d, err) == 0) {
        if (o->json)
            fputs("{\"nodes\":[", out);
        rc = print_nodes(&d, err);
        if (o->json)
            fputs("]}\n", out);
    }
    free(d.by_source);
    free(d.barriers);
    free(d.batch);
    pt_store_close(d.store);
    return rc;
}
