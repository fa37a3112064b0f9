/*
 * Which files are traced: a list of globs, and what of them all names can be tested for at once.
 * The watchdog prepares it, in the memory that it shares with the processes.
 */
#ifndef PT_FILTER_H
#define PT_FILTER_H

#include <stdint.h>

#define PT_FILTERS_SIZE  16384 /* bytes of a list, a power of two */
#define PT_MAX_FILTERS   64
#define PT_FILTER_PARTS  4
#define PT_FILTER_LANES  16 /* bytes of a name that are compared at a time, */
#define PT_FILTER_KEY    4  /* with the first bytes of a part */
#define PT_FILTER_PREFIX 4  /* the least; what is shorter is no prefix but a glob */
#define PT_FILTER_SUFFIX 2

enum pt_filter_kind { PT_FILTER_IS_PREFIX, PT_FILTER_IS_SUFFIX, PT_FILTER_IS_PART, PT_FILTER_GLOB };

struct pt_filter {
    char sign;
    uint8_t kind;  /* enum pt_filter_kind */
    uint16_t len;  /* of the text */
    uint32_t text; /* where it is in the list, without the stars; a glob: all of it */
};

struct pt_prefix {
    uint32_t len, key; /* `key`: its last bytes, in which they differ most */
};

typedef unsigned char pt_lanes __attribute__((vector_size(PT_FILTER_LANES)));

struct pt_filters {
    uint32_t n;
    uint32_t only; /* there are "+GLOB"s: what matches none is not traced */
    /* What all names are tested for. */
    uint32_t more; /* there are filters that can only be told by going through the list */
    uint32_t nprefixes, nsuffixes, nparts;
    uint64_t begins; /* how prefixes begin: few names begin like one of them */
    pt_lanes parts[PT_FILTER_PARTS][PT_FILTER_KEY]; /* their first bytes, each in all lanes */
    struct pt_prefix prefixes[PT_MAX_FILTERS];
    uint16_t suffixes[PT_MAX_FILTERS]; /* the last two bytes */
    struct pt_filter filter[PT_MAX_FILTERS];
};

static inline uint32_t pt_four_bytes(const char *text)
{
    uint32_t key;
    __builtin_memcpy(&key, text, sizeof(key));
    return key;
}

static inline uint16_t pt_two_bytes(const char *text)
{
    uint16_t key;
    __builtin_memcpy(&key, text, sizeof(key));
    return key;
}

static inline uint64_t pt_begin_bit(const char *text)
{
    return (uint64_t)1 << (((unsigned char)text[1] * 7u + (unsigned char)text[2]) % 64);
}

/*
 * From a list of "+GLOB", "-GLOB" and "!GLOB" strings, an empty one last.  Those beyond
 * PT_MAX_FILTERS are not looked at.
 */
void pt_filters_prepare(struct pt_filters *filters, const char *list);

#endif
