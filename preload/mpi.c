#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/spec.h"
#include "preload/mpi.h"
#include "preload/record.h"
#include "preload/sys.h"

PT_FAR struct pt_mpi pt_mpi;

/* Of the library; they are the real ones, our wrappers do not see them. */
static PT_FAR struct {
    int (*query_thread)(int *);
    int (*comm_rank)(void *, int *);
    int (*comm_size)(void *, int *);
    int (*comm_remote_size)(void *, int *);
    int (*comm_test_inter)(void *, int *);
    int (*comm_group)(void *, void **);
    int (*comm_remote_group)(void *, void **);
    int (*group_size)(void *, int *);
    int (*group_translate)(void *, int, const int *, void *, int *);
    int (*group_free)(void **);
    int (*type_size)(void *, int *);
} lib;

/* ---- the library ----------------------------------------------------------------------- */

/* A program may have its own copy of the library's data: that one is meant. */
static void *find_data(const char *name)
{
    void *data = dlsym(RTLD_DEFAULT, name);
    return data ? data : pt_real_mpi(name);
}

static int find_library(void)
{
    pt_mpi.world = find_data("ompi_mpi_comm_world");
    pt_mpi.self = find_data("ompi_mpi_comm_self");
    pt_mpi.null_comm = find_data("ompi_mpi_comm_null");
    pt_mpi.null_request = find_data("ompi_request_null");
    pt_mpi.no_message = find_data("ompi_message_no_proc");
#define FIND(member, name) lib.member = (__typeof__(lib.member))pt_real_mpi(name)
    FIND(query_thread, "PMPI_Query_thread");
    FIND(comm_rank, "PMPI_Comm_rank");
    FIND(comm_size, "PMPI_Comm_size");
    FIND(comm_remote_size, "PMPI_Comm_remote_size");
    FIND(comm_test_inter, "PMPI_Comm_test_inter");
    FIND(comm_group, "PMPI_Comm_group");
    FIND(comm_remote_group, "PMPI_Comm_remote_group");
    FIND(group_size, "PMPI_Group_size");
    FIND(group_translate, "PMPI_Group_translate_ranks");
    FIND(group_free, "PMPI_Group_free");
#undef FIND
    return pt_mpi.world && pt_mpi.self && pt_mpi.null_comm && pt_mpi.null_request &&
           pt_mpi.no_message && lib.query_thread && lib.comm_rank && lib.comm_size &&
           lib.comm_remote_size && lib.comm_test_inter && lib.comm_group && lib.comm_remote_group &&
           lib.group_size && lib.group_translate && lib.group_free;
}

/* The largest so far: a wait does not know what was begun before. */
void pt_mpi_judged_call(struct pt_thread *t, int64_t bytes)
{
    static PT_FAR _Atomic int64_t largest;
    int64_t known = atomic_load(&largest);
    while (known < bytes && !atomic_compare_exchange_weak(&largest, &known, bytes))
        ;
    atomic_store(&t->ring->transfer, (uint64_t)atomic_load(&largest));
    if (t->inner)
        pt_set_phase(t, PT_PHASE_INSIDE, 0);
}

int64_t pt_mpi_bytes(int n, void *type)
{
    int size = 0;
    if (!lib.type_size)
        lib.type_size = (int (*)(void *, int *))pt_real_mpi("PMPI_Type_size");
    return lib.type_size && lib.type_size(type, &size) == 0 && size > 0 ? (int64_t)n * size : 0;
}

/* ---- marks ------------------------------------------------------------------------------- */

/* A mark takes no time of the program's. */
static uint64_t *mark_begin(struct pt_thread *t, uint16_t op, unsigned words)
{
    struct pt_pass pass = {.cls = PT_CLASS_NAME, .begin = t->end};
    return pt_record_begin(t, &pass, op, words, t->end, 0, 0);
}

static void mark_done(struct pt_thread *t, const struct pt_mpi_done *done)
{
    uint64_t *w = mark_begin(t, PT_OP_MPI_done, 3);
    if (!w)
        return;
    *w++ = (uint64_t)done->number;
    *w++ = (uint64_t)done->peer;
    *w++ = (uint64_t)done->tag;
    pt_pass_commit(t);
}

static void mark_comm(struct pt_thread *t, int64_t number, int64_t parent, int rank,
                      const char *members)
{
    size_t n = pt_string_length(members);
    uint64_t *w = mark_begin(t, PT_OP_MPI_Comm, 3 + pt_string_words(n));
    if (!w)
        return;
    *w++ = (uint64_t)number;
    *w++ = (uint64_t)parent;
    *w++ = (uint64_t)(int64_t)rank;
    pt_put_string(w, members, n);
    pt_pass_commit(t);
}

/* ---- members, as text ------------------------------------------------------------------------ */

/*
 * World ranks in order, "0-3,7,10-30/5" (every fifth), or "=N", the same as number N has; an
 * intercommunicator has its two groups, "LOCAL|REMOTE".  "?" stands for what is not of this
 * world or too long.
 */
#define MEMBERS_MAX PT_STRING_MAX
#define CHUNK       64

struct text {
    char s[MEMBERS_MAX];
    size_t n;
    int unknown;
    int first, last; /* of the range that is not written yet; first < 0: none */
    int step;        /* between its ranks; 0: it has one */
};

static void add_char(struct text *text, char c)
{
    if (text->n + 1 < sizeof(text->s))
        text->s[text->n++] = c;
    else
        text->unknown = 1;
}

static void add_number(struct text *text, uint64_t number)
{
    char digits[20];
    int n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n)
        add_char(text, digits[--n]);
}

static void end_range(struct text *text)
{
    if (text->first < 0)
        return;
    if (text->n && text->s[text->n - 1] != '|')
        add_char(text, ',');
    add_number(text, (uint64_t)text->first);
    if (text->step) {
        int two = text->last - text->first == text->step;
        add_char(text, two && text->step > 1 ? ',' : '-');
        add_number(text, (uint64_t)text->last);
        if (!two && text->step > 1) {
            add_char(text, '/');
            add_number(text, (uint64_t)text->step);
        }
    }
    text->first = -1;
}

static void add_rank(struct text *text, int rank)
{
    if (rank < 0) {
        text->unknown = 1;
    } else if (text->first >= 0 && rank > text->last &&
               (!text->step || rank == text->last + text->step)) {
        text->step = rank - text->last;
        text->last = rank;
    } else {
        end_range(text);
        text->first = text->last = rank;
        text->step = 0;
    }
}

static void add_group(struct text *text, void *group)
{
    int size = 0, ranks[CHUNK], world[CHUNK];
    text->first = -1;
    if (lib.group_size(group, &size))
        text->unknown = 1;
    for (int i = 0; i < size && !text->unknown;) {
        int n = 0;
        for (; n < CHUNK && i < size; n++, i++)
            ranks[n] = i;
        if (lib.group_translate(group, n, ranks, pt_mpi.world_group, world))
            text->unknown = 1;
        for (int k = 0; k < n && !text->unknown; k++)
            add_rank(text, world[k]);
    }
    end_range(text);
}

static void add_members(struct text *text, void *comm)
{
    void *group;
    int inter = 0;
    if (lib.comm_group(comm, &group)) {
        text->unknown = 1;
        return;
    }
    add_group(text, group);
    lib.group_free(&group);
    lib.comm_test_inter(comm, &inter);
    if (!inter || text->unknown)
        return;
    add_char(text, '|');
    if (lib.comm_remote_group(comm, &group)) {
        text->unknown = 1;
        return;
    }
    add_group(text, group);
    lib.group_free(&group);
}

static const char *end_text(struct text *text)
{
    text->s[text->n] = 0;
    return text->unknown ? "?" : text->s;
}

/* ---- communicators ---------------------------------------------------------------------- */

static _Atomic uint64_t comms_made = PT_MPI_SELF + 1;

/* Values are numbers + 1. */
int64_t pt_mpi_comm_slow(void *handle)
{
    return (int64_t)pt_mpi_table_get(PT_MPI_COMMS, handle) - 1;
}

int64_t pt_mpi_comm_gone(void *handle)
{
    return (int64_t)pt_mpi_table_take(PT_MPI_COMMS, handle) - 1;
}

void pt_mpi_comm_made(struct pt_thread *t, void *parent, void *made, int same)
{
    if (!pt_mpi.known || !made || made == pt_mpi.null_comm)
        return;
    int error = errno, rank = -1;
    int64_t number = (int64_t)atomic_fetch_add(&comms_made, 1);
    int64_t from = parent ? pt_mpi_comm(parent) : -1;
    struct text text = {.n = 0};

    if (pt_mpi_table_put(PT_MPI_COMMS, made, (uint64_t)number + 1))
        return;
    if (same && from >= 0) {
        add_char(&text, '=');
        add_number(&text, (uint64_t)from);
        lib.comm_rank(parent, &rank);
    } else {
        add_members(&text, made);
        lib.comm_rank(made, &rank);
    }
    mark_comm(t, number, from, rank, end_text(&text));
    errno = error;
}

void pt_mpi_group(struct pt_thread *t, void *win, void *group)
{
    if (!pt_mpi.match)
        return;
    int error = errno;
    struct text text = {.n = 0};
    add_group(&text, group);
    const char *members = end_text(&text);
    size_t n = pt_string_length(members);
    uint64_t *w = mark_begin(t, PT_OP_MPI_Group, 1 + pt_string_words(n));
    if (w) {
        *w++ = (uint64_t)pt_mpi_comm(win);
        pt_put_string(w, members, n);
        pt_pass_commit(t);
    }
    errno = error;
}

int64_t pt_mpi_nonzero(const int *counts, void *comm)
{
    int n = 0, inter = 0;
    int64_t found = 0;
    if (!pt_mpi.match || !counts)
        return 0;
    lib.comm_test_inter(comm, &inter);
    if ((inter ? lib.comm_remote_size : lib.comm_size)(comm, &n))
        return 0;
    for (int i = 0; i < n; i++)
        found += counts[i] > 0;
    return found;
}

int64_t pt_mpi_own_count(const int *counts, void *comm)
{
    int rank;
    return pt_mpi.match && counts && lib.comm_rank(comm, &rank) == 0 ? counts[rank] : 0;
}

/* ---- the beginning ---------------------------------------------------------------------- */

/*
 * The world's members and the launcher's name for it: one step may start several MPI
 * programs, one after the other, with the same ranks.
 */
static void record_world(struct pt_thread *t)
{
    struct text text = {.n = 0};
    const char *name = getenv("PMIX_NAMESPACE");
    int rank = -1;
    add_group(&text, pt_mpi.world_group);
    add_char(&text, '@');
    for (; name && *name; name++)
        add_char(&text, *name);
    lib.comm_rank(pt_mpi.world, &rank);
    mark_comm(t, PT_MPI_WORLD, -1, rank, end_text(&text));
    text = (struct text){.n = 0};
    add_number(&text, rank < 0 ? 0 : (uint64_t)rank);
    mark_comm(t, PT_MPI_SELF, -1, 0, end_text(&text));
}

void pt_mpi_end(void)
{
    if (pt_mpi.known)
        lib.group_free(&pt_mpi.world_group);
    pt_mpi.known = pt_mpi.match = 0;
}

void pt_mpi_begin(struct pt_thread *t)
{
    const struct pt_memory *memory = pt_process_memory();
    int error = errno, level = 0;
    if (memory && find_library() && lib.comm_group(pt_mpi.world, &pt_mpi.world_group) == 0) {
        pt_mpi.known = 1;
        lib.query_thread(&level);
        pt_mpi.multiple = level == PT_MPI_MULTIPLE;
        pt_mpi.match = memory->match_mpi != 0;
        pt_mpi.judged = memory->throttle != PT_THROTTLE_NONE;
        record_world(t);
    }
    errno = error;
}

/* ---- requests ------------------------------------------------------------------------------- */

#define FLAG_BITS 8

static _Atomic uint64_t requests_made = 1; /* never used twice, so that nothing can be mistaken */

static int64_t remember(void *req, uint64_t number, int flags)
{
    void *handle = *(void **)req;
    if (handle == pt_mpi.null_request || handle == pt_mpi.no_message ||
        pt_mpi_table_put(PT_MPI_REQUESTS, handle, number << FLAG_BITS | (uint64_t)flags))
        return 0;
    return (int64_t)number;
}

int64_t pt_mpi_posted(int ret, void *req, int flags)
{
    if (ret || !pt_mpi.match)
        return 0;
    return remember(req, atomic_fetch_add_explicit(&requests_made, 1, memory_order_relaxed), flags);
}

int64_t pt_mpi_renumber(int ret, void *req, int64_t number, int flags)
{
    return ret || !number ? 0 : remember(req, (uint64_t)number, flags);
}

int64_t pt_mpi_number(void *handle)
{
    return (int64_t)(pt_mpi_table_get(PT_MPI_REQUESTS, handle) >> FLAG_BITS);
}

int64_t pt_mpi_take(void *handle)
{
    return (int64_t)(pt_mpi_table_take(PT_MPI_REQUESTS, handle) >> FLAG_BITS);
}

/* Its flags, too. */
static struct pt_mpi_done completed(void *handle, uint64_t value,
                                    const struct pt_mpi_status *status, int *flags)
{
    struct pt_mpi_done done = PT_MPI_NOT_DONE;
    *flags = PT_REQ_QUIET;
    if (!pt_mpi.match || handle == pt_mpi.null_request)
        return done;
    if (!pt_mpi.multiple)
        value = pt_mpi_table_get(PT_MPI_REQUESTS, handle);
    if (!value)
        return done;
    *flags = (int)(value & ((1 << FLAG_BITS) - 1));
    if (!(*flags & PT_REQ_PERSISTENT))
        pt_mpi_table_drop(PT_MPI_REQUESTS, handle, value);
    done.number = (int64_t)(value >> FLAG_BITS);
    if (!(*flags & PT_REQ_RECV) || !status)
        return done;
    if (status->cancelled) {
        done.peer = PT_MPI_CANCELLED;
    } else if (*flags & PT_REQ_WILD) {
        done.peer = status->source;
        done.tag = status->tag;
    }
    return done;
}

struct pt_mpi_done pt_mpi_completed(void *handle, uint64_t value,
                                    const struct pt_mpi_status *status)
{
    int flags;
    return completed(handle, value, status, &flags);
}

uint64_t pt_mpi_value(void *handle)
{
    return pt_mpi.multiple && pt_mpi.match ? pt_mpi_table_get(PT_MPI_REQUESTS, handle) : 0;
}

/* ---- many at once --------------------------------------------------------------------------- */

/* Memory of at least that size that stays with the thread; not the program's heap. */
static void *scratch(struct pt_thread *t, size_t bytes)
{
    if (bytes <= t->scratch_bytes)
        return t->scratch;
    pt_mpi_thread_end(t);
    bytes = (bytes * 2 + 0xffff) & ~(size_t)0xffff;
    long p = pt_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p < 0 && p > -4096)
        return NULL;
    t->scratch = (void *)p;
    t->scratch_bytes = bytes;
    return t->scratch;
}

void pt_mpi_thread_end(struct pt_thread *t)
{
    if (t->scratch)
        pt_sys(SYS_munmap, t->scratch, t->scratch_bytes);
    t->scratch = NULL;
    t->scratch_bytes = 0;
}

void pt_mpi_remember(struct pt_thread *t, struct pt_mpi_many *many, int n, void *reqs,
                     int nstatuses, void **status)
{
    struct pt_mpi_status *statuses = many->statuses;

    many->handles = NULL;
    if (!pt_mpi.match || n <= 0 || !reqs)
        return;
    many->handles = many->few;
    many->values = many->few_values;
    if (n > PT_MPI_FEW) {
        size_t each = sizeof(*many->handles) + sizeof(*many->values) + sizeof(*statuses);
        many->handles = scratch(t, (size_t)n * each);
        if (!many->handles)
            return;
        many->values = (uint64_t *)(many->handles + n);
        statuses = (struct pt_mpi_status *)(many->values + n);
    }
    memcpy(many->handles, reqs, (size_t)n * sizeof(void *));
    for (int i = 0; i < n; i++)
        many->values[i] = pt_mpi_value(many->handles[i]);
    if (nstatuses && !*status) {
        for (int i = 0; i < nstatuses; i++)
            statuses[i].cancelled = 0;
        *status = statuses;
    }
}

static void mark_one(struct pt_thread *t, const struct pt_mpi_many *many, int i,
                     const struct pt_mpi_status *status)
{
    int flags;
    struct pt_mpi_done done = completed(many->handles[i], many->values[i], status, &flags);
    if (!(flags & PT_REQ_QUIET) && done.number)
        mark_done(t, &done);
}

void pt_mpi_mark_all(struct pt_thread *t, const struct pt_mpi_many *many, int n,
                     const void *statuses)
{
    const struct pt_mpi_status *status = statuses;
    for (int i = 0; i < n && many->handles; i++)
        mark_one(t, many, i, status ? &status[i] : NULL);
}

void pt_mpi_mark_some(struct pt_thread *t, const struct pt_mpi_many *many, int n,
                      const int *indexes, const void *statuses)
{
    const struct pt_mpi_status *status = statuses;
    if (n == PT_MPI_UNDEFINED)
        return;
    for (int i = 0; i < n && many->handles; i++)
        mark_one(t, many, indexes[i], status ? &status[i] : NULL);
}

void pt_mpi_mark_started(struct pt_thread *t, int n, void *reqs)
{
    for (int i = 0; i < n && pt_mpi.match; i++) {
        uint64_t *w = mark_begin(t, PT_OP_MPI_started, 1);
        if (!w)
            continue;
        *w = (uint64_t)pt_mpi_number(((void **)reqs)[i]);
        pt_pass_commit(t);
    }
}
