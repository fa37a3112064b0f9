/*
 * Numbers of communicators are a process' own.  Two of different processes are the same if
 * they have the same members, were made from the same one, and equally many such were made
 * before: making one is collective, so all members agree on that.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5store/merge_mpi.h"

#define RANKS_MAX (1 << 24)

/* ---- lists of ranks ------------------------------------------------------------------ */

static const char *parse_number(const char *s, const char *end, int32_t *number)
{
    int64_t v = 0;
    const char *p = s;

    for (; p < end && *p >= '0' && *p <= '9' && v < RANKS_MAX; p++)
        v = v * 10 + (*p - '0');
    *number = (int32_t)v;
    return p > s && v < RANKS_MAX ? p : NULL;
}

/* "A", "A-B" or "A-B/STEP" and what follows it. */
static const char *parse_range(const char *s, const char *end, int32_t *first, int32_t *last,
                               int32_t *step)
{
    s = parse_number(s, end, first);
    *last = *first;
    *step = 1;
    if (s && s < end && *s == '-')
        s = parse_number(s + 1, end, last);
    if (s && s < end && *s == '/')
        s = parse_number(s + 1, end, step);
    if (!s || *last < *first || *step < 1 || (s < end && *s != ','))
        return NULL;
    return s < end ? s + 1 : s;
}

int32_t *mpi_parse_ranks(const char *text, size_t len, size_t *n)
{
    const char *end = text + len;
    int32_t *ranks = NULL, first, last, step;
    size_t size = 0;

    *n = 0;
    for (const char *s = text; s < end;) {
        s = parse_range(s, end, &first, &last, &step);
        if (!s || *n + (size_t)(last - first) >= RANKS_MAX) {
            free(ranks);
            return NULL;
        }
        for (int32_t rank = first; rank <= last; rank += step) {
            int32_t *more = merge_grow(ranks, *n, &size, sizeof(*more), NULL);
            if (!more) {
                free(ranks);
                return NULL;
            }
            ranks = more;
            ranks[(*n)++] = rank;
        }
    }
    return ranks;
}

/* ---- communicators ---------------------------------------------------------------------- */

static int parse_members(struct mpi_comm *comm, const char *text)
{
    size_t len = strcspn(text, "|@");

    comm->inter = text[len] == '|';
    comm->members[0] = mpi_parse_ranks(text, len, &comm->n[0]);
    if (comm->inter)
        comm->members[1] = mpi_parse_ranks(text + len + 1, strlen(text + len + 1), &comm->n[1]);
    return comm->members[0] && (!comm->inter || comm->members[1]) ? 0 : -1;
}

static int copy_members(struct mpi_comm *comm, const struct mpi_comm *from)
{
    comm->inter = from->inter;
    for (int side = 0; side < 1 + from->inter; side++) {
        size_t bytes = from->n[side] * sizeof(int32_t);
        comm->n[side] = from->n[side];
        comm->members[side] = malloc(bytes + 1);
        if (!comm->members[side])
            return -1;
        memcpy(comm->members[side], from->members[side], bytes);
    }
    return 0;
}

static void free_members(struct mpi_comm *comm)
{
    free(comm->members[0]);
    free(comm->members[1]);
}

/* Both groups write an intercommunicator with their own in front. */
static void sort_groups(struct mpi_comm *comm)
{
    if (comm->inter && comm->members[0][0] > comm->members[1][0]) {
        struct mpi_comm old = *comm;
        for (int side = 0; side < 2; side++) {
            comm->n[side] = old.n[1 - side];
            comm->members[side] = old.members[1 - side];
        }
    }
}

/* The same text for all members; "A|B" and "B|A" are one. */
static char *canonical(const struct mpi_comm *comm, const char *text)
{
    const char *bar = strchr(text, '|');
    char *out;
    int swapped = bar && atoi(text) != comm->members[0][0];
    int rc = swapped ? asprintf(&out, "%s|%.*s", bar + 1, (int)(bar - text), text)
                     : asprintf(&out, "%s", text);

    return rc < 0 ? NULL : out;
}

/* The number of the communicator with that key, which becomes *made if it is new. */
static uint32_t add_comm(struct mpi_comms *c, const char *key, struct mpi_comm *made,
                         struct pt_err *err)
{
    uint32_t known = names_find(&c->keys, key), number;
    struct mpi_comm *comms;

    if (known != NAMES_NONE) {
        free_members(made);
        return known;
    }
    comms = merge_grow(c->comms, c->n, &c->size, sizeof(*comms), err);
    if (comms)
        c->comms = comms;
    number = comms ? names_add(&c->keys, key) : NAMES_NONE;
    if (number == NAMES_NONE) {
        free_members(made);
        pt_err_set(err, "not enough memory");
        return MPI_NO_COMM;
    }
    comms[c->n++] = *made;
    return number;
}

/* How many of that kind this process has made before. */
static int count_kind(struct mpi_comms *c, struct mpi_known *known, const char *kind,
                      uint64_t *before)
{
    uint32_t number = names_add(&c->kinds, kind);
    const uint64_t *count = number == NAMES_NONE ? NULL : map_get(&known->counts, number);

    *before = count ? *count : 0;
    return number == NAMES_NONE ? -1 : map_put(&known->counts, number, *before + 1);
}

static char *make_key(struct mpi_comms *c, struct mpi_known *known, const struct mpi_record *r,
                      const struct mpi_comm *made, const char *text, size_t process)
{
    char *key = NULL, *kind = NULL, *list = canonical(made, text);
    uint64_t before;
    int rc;

    if (!list)
        return NULL;
    if (r->comm == PT_MPI_WORLD)
        rc = asprintf(&key, "world %s", list);
    else if (r->comm == PT_MPI_SELF)
        rc = asprintf(&key, "self %zu", process);
    else if (asprintf(&kind, "%u %" PRId64 " %s", known->world,
                      r->parent < 0 ? -1 : (int64_t)mpi_comms_find(known, r->parent),
                      *text == '=' ? "=" : list) < 0 ||
             count_kind(c, known, kind, &before) < 0)
        rc = -1;
    else
        rc = asprintf(&key, "%s #%" PRIu64, kind, before);
    free(kind);
    free(list);
    return rc < 0 ? NULL : key;
}

/* 1 if its members are known. */
static int find_members(const struct mpi_comms *c, const struct mpi_known *known,
                        const struct mpi_record *r, const char *text, struct mpi_comm *made)
{
    uint32_t parent = mpi_comms_find(known, r->parent);

    if (r->parent >= 0 && parent == MPI_NO_COMM)
        return 0;
    if (*text == '=')
        return parent != MPI_NO_COMM && copy_members(made, &c->comms[parent]) == 0;
    if (parse_members(made, text) < 0)
        return 0;
    sort_groups(made);
    return 1;
}

int mpi_comms_add(struct mpi_comms *c, struct mpi_known *known, const struct mpi_record *r,
                  const char *members, size_t process, struct pt_err *err)
{
    struct mpi_comm made = {.world = known->world};
    uint32_t number;
    char *key;

    if (!members || !find_members(c, known, r, members, &made)) {
        free_members(&made);
        return 0;
    }
    key = make_key(c, known, r, &made, members, process);
    if (!key) {
        free_members(&made);
        return pt_err_set(err, "not enough memory");
    }
    number = add_comm(c, key, &made, err);
    free(key);
    if (number == MPI_NO_COMM || map_put(&known->comms, (uint64_t)r->comm, number) < 0)
        return pt_err_set(err, "not enough memory");
    if (r->comm == PT_MPI_WORLD) {
        known->world = number;
        known->rank = r->peer;
    }
    return 0;
}

uint32_t mpi_comms_find(const struct mpi_known *known, int32_t number)
{
    const uint64_t *comm = number < 0 ? NULL : map_get(&known->comms, (uint64_t)number);

    return comm ? (uint32_t)*comm : MPI_NO_COMM;
}

int mpi_comm_side(const struct mpi_comm *comm, int32_t rank, size_t *place)
{
    for (int side = 0; side < 1 + comm->inter; side++)
        for (size_t i = 0; i < comm->n[side]; i++)
            if (comm->members[side][i] == rank) {
                *place = i;
                return side;
            }
    return -1;
}

int32_t mpi_comm_partner(const struct mpi_comm *comm, int32_t self, int32_t peer)
{
    size_t place;
    int side = comm->inter ? 1 - mpi_comm_side(comm, self, &place) : 0;

    if (side > 1 || peer < 0 || (size_t)peer >= comm->n[side])
        return -1;
    return comm->members[side][peer];
}

void mpi_comms_free(struct mpi_comms *c)
{
    for (size_t i = 0; i < c->n; i++)
        free_members(&c->comms[i]);
    free(c->comms);
    names_free(&c->keys);
    names_free(&c->kinds);
    *c = (struct mpi_comms){0};
}
