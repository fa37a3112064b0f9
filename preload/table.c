#include "config.h"

#include <sys/mman.h>

#include "preload/table.h"

static void *map_zeroes(size_t bytes)
{
    long p = pt_sys(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p < 0 && p > -4096 ? NULL : (void *)p;
}

void *pt_table_make(pt_table *table, size_t bytes)
{
    void *none = NULL, *made = pt_table_get(table);
    if (made || !(made = map_zeroes(bytes)))
        return made;
    if (atomic_compare_exchange_strong(table, &none, made))
        return made;
    pt_sys(SYS_munmap, made, bytes); /* another thread was faster */
    return none;
}
