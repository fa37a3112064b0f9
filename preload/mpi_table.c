/*
 * The tables of handles: sets of WAYS places, chosen by the handle.
 *
 * The library may hand out a handle again, to another thread, as soon as it has freed it,
 * which is before the one who knew it has come back to take it out.  So one only takes out
 * the value that one has seen, and whoever finds an old value replaces it.  A place whose
 * value is 0 is on its way in or out.
 */
#include "config.h"

#include <stdatomic.h>

#include "preload/mpi.h"
#include "preload/table.h"

#define WAYS      16 /* places at which a handle may be */
#define COMM_SETS 512
#define REQ_SETS  8192

struct place {
    _Atomic(void *) handle;
    _Atomic uint64_t value;
};

static PT_FAR pt_table tables[PT_MPI_NTABLES];
static const uint64_t nsets[PT_MPI_NTABLES] = {
    [PT_MPI_COMMS] = COMM_SETS,
    [PT_MPI_REQUESTS] = REQ_SETS,
};

/* NULL: the table has not been made yet. */
static inline struct place *find_set(enum pt_mpi_table table, const void *handle)
{
    struct place *places = pt_table_get(&tables[table]);
    uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 40;
    return places ? places + hash % nsets[table] * WAYS : NULL;
}

/* The handle's place, and its value, which is not 0. */
static struct place *find(enum pt_mpi_table table, const void *handle, uint64_t *value)
{
    struct place *place = find_set(table, handle);
    for (int i = 0; place && i < WAYS; i++) {
        if (atomic_load_explicit(&place[i].handle, memory_order_acquire) != handle)
            continue;
        *value = atomic_load_explicit(&place[i].value, memory_order_acquire);
        if (*value)
            return &place[i];
    }
    return NULL;
}

int pt_mpi_table_put(enum pt_mpi_table table, void *handle, uint64_t value)
{
    uint64_t old;
    if (!pt_table_make(&tables[table], nsets[table] * WAYS * sizeof(struct place)))
        return -1;
    struct place *place = find(table, handle, &old);
    if (place && atomic_compare_exchange_strong(&place->value, &old, value))
        return 0;
    place = find_set(table, handle);
    for (int i = 0; i < WAYS; i++) {
        void *none = NULL;
        if (atomic_load_explicit(&place[i].handle, memory_order_relaxed))
            continue;
        if (atomic_compare_exchange_strong(&place[i].handle, &none, handle)) {
            atomic_store_explicit(&place[i].value, value, memory_order_release);
            return 0;
        }
    }
    return -1;
}

uint64_t pt_mpi_table_get(enum pt_mpi_table table, void *handle)
{
    uint64_t value = 0;
    return handle && find(table, handle, &value) ? value : 0;
}

void pt_mpi_table_drop(enum pt_mpi_table table, void *handle, uint64_t value)
{
    uint64_t seen;
    struct place *place = handle ? find(table, handle, &seen) : NULL;
    if (place && seen == value && atomic_compare_exchange_strong(&place->value, &seen, 0))
        atomic_store_explicit(&place->handle, NULL, memory_order_release);
}

uint64_t pt_mpi_table_take(enum pt_mpi_table table, void *handle)
{
    uint64_t value = pt_mpi_table_get(table, handle);
    if (value)
        pt_mpi_table_drop(table, handle, value);
    return value;
}
