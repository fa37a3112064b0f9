#include "config.h"

#include <stddef.h>

#include "preload/lineage.h"
#include "preload/tracer.h"

#define NUMBER_BITS  31
#define NUMBER(left) ((int32_t)((left)&INT32_MAX))

static PT_NEAR int32_t own;
static PT_NEAR struct pt_rank_entry *rank; /* NULL: this process has no number */
static PT_NEAR _Atomic uint32_t
    children; /* numbered so far; of a rank's first process the rank knows */

/* ---- numbers -------------------------------------------------------------------------------- */

#define ANY \
    1000000000 /* from here on numbers tell nothing but the order in which they were given */

/* The numbers of a process' children: their distance, and how many there may be. */
struct brood {
    int32_t distance, most;
};

static struct brood brood_of(int32_t number)
{
    if (!number)
        return (struct brood){1, 9999};
    if (number < 10000)
        return (struct brood){10000, 999};
    if (number < 10000000)
        return (struct brood){10000000, 99};
    return (struct brood){0, 0};
}

static int32_t child_of(struct pt_rank_entry *in, int32_t number)
{
    struct brood brood = brood_of(number);
    _Atomic uint32_t *counter = number ? &children : &in->processes;
    int64_t k = (int64_t)atomic_fetch_add(counter, 1) + !!number;
    if (k <= brood.most)
        return number + (int32_t)k * brood.distance;
    return ANY + (int32_t)(atomic_fetch_add(&in->any, 1) % ANY);
}

int32_t pt_lineage_next(void)
{
    return rank ? child_of(rank, own) : 0;
}

/* ---- what is left in the shared memory: whom it is for, and a number ------------------------- */

#define RANK_BITS 10
_Static_assert(PT_MAX_RANKS == 1 << RANK_BITS, "a rank's place is part of what is left");

enum heir { ITSELF, ITS_CHILD };

/* Process ids have 22 bits at most. */
static uint64_t heir_of(const struct pt_memory *m, const struct pt_rank_entry *in, long pid,
                        enum heir heir)
{
    return ((uint64_t)pid << 1 | heir) << RANK_BITS | (uint64_t)(in - m->ranks);
}

static uint64_t leave(struct pt_memory *m, uint64_t heir, int32_t number)
{
    uint64_t left = heir << NUMBER_BITS | (uint32_t)number;
    if (!number)
        return 0;
    for (size_t i = 0; i < PT_MAX_COMING; i++) {
        uint64_t none = 0;
        if (atomic_compare_exchange_strong(&m->coming[i], &none, left))
            return left;
    }
    /* Many have been killed before they came, it seems. */
    atomic_store(&m->coming[(uint32_t)number % PT_MAX_COMING], left);
    return left;
}

/* 1 if it was still there. */
static int withdraw(struct pt_memory *m, uint64_t left)
{
    for (size_t i = 0; i < PT_MAX_COMING; i++) {
        uint64_t it = left;
        if (atomic_compare_exchange_strong(&m->coming[i], &it, 0))
            return 1;
    }
    return 0;
}

/* The smallest number that was left for that one; 0: none. */
static int32_t take_for(struct pt_memory *m, uint64_t heir)
{
    uint64_t least = 0;
    do {
        least = 0;
        for (size_t i = 0; i < PT_MAX_COMING; i++) {
            uint64_t left = atomic_load(&m->coming[i]);
            if (left >> NUMBER_BITS == heir && NUMBER(left) && (!least || left < least))
                least = left;
        }
    } while (least && !withdraw(m, least));
    return NUMBER(least);
}

/* For this process; again at the end, for meanwhile its parent may have learned its id. */
static int32_t take(struct pt_memory *m, const struct pt_rank_entry *in)
{
    uint64_t itself = heir_of(m, in, pt_sys(SYS_getpid), ITSELF);
    int32_t number = take_for(m, itself);
    if (!number)
        number = take_for(m, heir_of(m, in, pt_sys(SYS_getppid), ITS_CHILD));
    return number ? number : take_for(m, itself);
}

uint64_t pt_lineage_leave(int32_t number)
{
    struct pt_memory *m = pt_process_memory();
    return rank ? leave(m, heir_of(m, rank, pt_sys(SYS_getpid), ITSELF), number) : 0;
}

uint64_t pt_lineage_leave_to_child(void)
{
    struct pt_memory *m = pt_process_memory();
    if (!pt_thread_traced(&pt_self) || !rank)
        return 0;
    return leave(m, heir_of(m, rank, pt_sys(SYS_getpid), ITS_CHILD), pt_lineage_next());
}

/* The child may come at any time: it finds one of them, or both, of which it takes one. */
void pt_lineage_hand_on(uint64_t left, int32_t child)
{
    struct pt_memory *m = pt_process_memory();
    if (!left)
        return;
    uint64_t again = leave(m, heir_of(m, rank, child, ITSELF), NUMBER(left));
    if (!withdraw(m, left))
        withdraw(m, again);
}

void pt_lineage_withdraw(uint64_t left)
{
    if (left)
        withdraw(pt_process_memory(), left);
}

/* ---- this process ------------------------------------------------------------------------ */

int32_t pt_lineage_begin(struct pt_memory *m, struct pt_rank_entry *in, int32_t given)
{
    if (given <= 0)
        given = take(m, in);
    if (given <= 0) /* the rank's first one is 0 */
        given = child_of(in, 0);
    atomic_store(&children, 0);
    rank = in;
    own = given;
    return own;
}

void pt_lineage_drop(struct pt_memory *m, const struct pt_rank_entry *in)
{
    take(m, in);
}
