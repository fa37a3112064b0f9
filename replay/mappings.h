/*
 * The mappings of the trace and the live ones they stand for, of all processes of a rank.
 */
#ifndef PT_REPLAY_MAPPINGS_H
#define PT_REPLAY_MAPPINGS_H

#include <stddef.h>
#include <stdint.h>

struct mappings;

/* NULL and errno if there is no memory. */
struct mappings *mappings_create(void);

/* Unmaps what is still mapped. */
void mappings_destroy(struct mappings *m);

/* A process of the trace has mapped `len` bytes at `addr`; `live` stands for them. */
int mappings_add(struct mappings *m, uint32_t process, uint64_t addr, size_t len, void *live);

/* The mapping that `addr` is in; *len is what follows in it.  NULL if there is none. */
void *mappings_find(struct mappings *m, uint32_t process, uint64_t addr, size_t *len);

/*
 * Unmaps what stands for those bytes: a part of a mapping, or several.  -1 and errno if
 * that fails; unmapping what is not there is none.
 */
int mappings_cut(struct mappings *m, uint32_t process, uint64_t addr, size_t len);

#endif
