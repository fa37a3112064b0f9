/*
 * A hash map from numbers to numbers, and a set of strings that numbers them.
 */
#ifndef PT_MAP_H
#define PT_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map {
    uint64_t *keys, *values;
    unsigned char *full;
    size_t n, size; /* size: a power of two, or 0 */
};

/* 0, or -1 without memory. */
int map_put(struct map *m, uint64_t key, uint64_t value);

/* NULL if there is none; valid until the next map_put(). */
uint64_t *map_get(const struct map *m, uint64_t key);
void map_free(struct map *m);

#define NAMES_NONE UINT32_MAX

struct names {
    char **text;
    uint32_t n, size;
    uint32_t *slots; /* number + 1; a power of two of them */
    size_t nslots;
};

/* The number of that string, which is added if it is new; NAMES_NONE without memory. */
uint32_t names_add(struct names *names, const char *text);

/* The number of that string, NAMES_NONE if it is not there. */
uint32_t names_find(const struct names *names, const char *text);

/* NULL for NAMES_NONE. */
const char *names_text(const struct names *names, uint32_t number);
void names_free(struct names *names);

#endif
