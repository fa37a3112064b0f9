/*
 * Tables that few programs need.  They are mapped when they are needed first: as part of the
 * library they would have to be mapped into every process, and in one that lives for a
 * millisecond that takes as long as all that it does with its ring.
 */
#ifndef PT_TABLE_H
#define PT_TABLE_H

#include <stdatomic.h>
#include <stddef.h>

#include "preload/tracer.h"

typedef void *_Atomic pt_table; /* NULL: not made yet */

/* Makes it, of zeroes, if it is not there; NULL: there is no memory.  It is never taken back. */
void *pt_table_make(pt_table *table, size_t bytes);

static inline void *pt_table_get(pt_table *table)
{
    return atomic_load_explicit(table, memory_order_acquire);
}

#endif
