#include "config.h"

#include <string.h>

#include "common/filter.h"
#include "common/glob.h"
#include "preload/passed.h"

/*
 * Which files are traced.  Every call with a name comes here, and most names match nothing: so
 * what the usual globs ask of a name ("/dir/" and a star is a prefix, a star and ".so" a suffix, a
 * star on both sides a part) is looked at first, for all of them at once.  Only a name that
 * may match one of them goes through the list.
 *
 * What is read here lies in memory that other processes can write to: a number may be any.
 */
static PT_NEAR const struct pt_filters *filters;
static PT_NEAR const char *globs; /* PT_FILTERS_SIZE bytes, from which they were made */

void pt_filter_use(const struct pt_filters *prepared, const char *list)
{
    filters = prepared;
    globs = list;
}

static inline unsigned at_most(unsigned n, unsigned most)
{
    return n < most ? n : most;
}

static int matches(const struct pt_filter *f, const char *path, size_t n)
{
    const char *text = globs + f->text % PT_FILTERS_SIZE;
    switch (f->kind) {
    case PT_FILTER_IS_PREFIX:
        return n >= f->len && !memcmp(path, text, f->len);
    case PT_FILTER_IS_SUFFIX:
        return n >= f->len && !memcmp(path + n - f->len, text, f->len);
    case PT_FILTER_IS_PART:
        return n >= f->len && memmem(path, n, text, f->len) != NULL;
    default:
        return pt_glob_match(text, path);
    }
}

/* The first filter that matches decides: "-GLOB" no, "+GLOB" and "!GLOB" yes. */
static __attribute__((noinline)) int decide(const char *path, size_t n)
{
    for (unsigned i = 0; i < at_most(filters->n, PT_MAX_FILTERS); i++)
        if (matches(&filters->filter[i], path, n))
            return filters->filter[i].sign != '-';
    return !filters->only;
}

/* ---- the tests ----------------------------------------------------------------------------- */

static inline int may_have_prefix(const char *path, size_t n)
{
    int found = 0;
    if (n < PT_FILTER_PREFIX || !(filters->begins & pt_begin_bit(path)))
        return 0;
    const struct pt_prefix *p = filters->prefixes;
    for (unsigned left = at_most(filters->nprefixes, PT_MAX_FILTERS); left; left--, p++)
        found |= n >= p->len && p->len >= PT_FILTER_PREFIX &&
                 pt_four_bytes(path + p->len - PT_FILTER_PREFIX) == p->key;
    return found;
}

static inline int may_have_suffix(const char *path, size_t n)
{
    int found = 0;
    if (n < PT_FILTER_SUFFIX)
        return 0;
    for (unsigned i = 0; i < at_most(filters->nsuffixes, PT_MAX_FILTERS); i++)
        found |= pt_two_bytes(path + n - PT_FILTER_SUFFIX) == filters->suffixes[i];
    return found;
}

/* Does a part begin at one of the lanes from here on?  PT_FILTER_KEY - 1 more are looked at. */
static inline int part_begins_at(const char *at, unsigned nparts)
{
    pt_lanes bytes[PT_FILTER_KEY], found = {0};
    for (int i = 0; i < PT_FILTER_KEY; i++)
        __builtin_memcpy(&bytes[i], at + i, PT_FILTER_LANES);
    for (unsigned i = 0; i < nparts; i++) {
        const pt_lanes *part = filters->parts[i];
        found |= (bytes[0] == part[0]) & (bytes[1] == part[1]) & (bytes[2] == part[2]) &
                 (bytes[3] == part[3]);
    }
    uint64_t words[PT_FILTER_LANES / sizeof(uint64_t)];
    __builtin_memcpy(words, &found, sizeof(words));
    return (words[0] | words[1]) != 0;
}

#define LOOKED_AT (PT_FILTER_LANES + PT_FILTER_KEY - 1)

static inline int may_have_part(const char *path, size_t n)
{
    unsigned nparts = at_most(filters->nparts, PT_FILTER_PARTS);
    if (!nparts)
        return 0;
    if (n < LOOKED_AT) {
        char longer[LOOKED_AT] = {0};
        memcpy(longer, path, n);
        return part_begins_at(longer, nparts);
    }
    const char *last = path + n - LOOKED_AT;
    for (const char *at = path; at < last; at += PT_FILTER_LANES)
        if (part_begins_at(at, nparts))
            return 1;
    return part_begins_at(last, nparts);
}

int pt_filter_path(const char *path, size_t n)
{
    if (!pt_is_address(path))
        return 0;
    if (filters->more | may_have_prefix(path, n) | may_have_suffix(path, n) |
        may_have_part(path, n))
        return decide(path, n);
    return !filters->only;
}

/* A glob without a slash may also be that of the program's name alone. */
int pt_filter_program(const char *list, const char *exe)
{
    const char *base = strrchr(exe, '/');
    int some = 0;
    for (const char *f = list; *f; f += strlen(f) + 1) {
        if (pt_glob_match(f + 1, exe) || (base && pt_glob_match(f + 1, base + 1)))
            return *f != '-';
        some |= *f == '+';
    }
    return !some;
}
