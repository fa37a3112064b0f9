#include "config.h"

#include <string.h>

#include "common/glob.h"
#include "preload/passed.h"

/*
 * Which files are traced.  Every call with a name comes here, and most names match nothing: so
 * what the usual globs ask of a name ("/dir/" and a star is a prefix, a star and ".so" a suffix, a
 * star on both sides a part) is looked at first, for all of them at once.  Only a name that
 * may match one of them goes through the list.
 */
#define MAX_FILTERS 64
#define MAX_PARTS   4
#define LANES       16 /* bytes of a name that are compared at a time, */
#define KEY         3  /* with the first bytes of a part */

enum kind { PREFIX, SUFFIX, PART, GLOB };

struct filter {
    char sign;
    unsigned char kind;
    unsigned short len;
    const char *text; /* without the stars; GLOB: all of it */
};

struct prefix {
    uint32_t len, key; /* `key`: its last bytes, in which they differ most */
};

#define LEAST_PREFIX sizeof(uint32_t) /* what is shorter is no prefix but a glob */

typedef unsigned char lanes __attribute__((vector_size(LANES)));

static PT_NEAR struct filter filters[MAX_FILTERS];
static PT_NEAR unsigned nfilters;
static PT_NEAR int only; /* there are "+GLOB"s: what matches none is not traced */

/* What all names are tested for. */
static PT_NEAR struct prefix prefixes[MAX_FILTERS];
static PT_NEAR uint16_t suffixes[MAX_FILTERS]; /* the last two bytes */
static PT_NEAR lanes parts[MAX_PARTS][KEY];    /* their first bytes, each in all lanes */
static PT_NEAR unsigned nprefixes, nsuffixes, nparts;
static PT_NEAR uint64_t begins; /* how prefixes begin: few names begin like one of them */
static PT_NEAR int more; /* there are filters that can only be told by going through the list */

static inline uint32_t four_bytes(const char *text)
{
    uint32_t key;
    __builtin_memcpy(&key, text, sizeof(key));
    return key;
}

static inline uint16_t two_bytes(const char *text)
{
    uint16_t key;
    __builtin_memcpy(&key, text, sizeof(key));
    return key;
}

static inline uint64_t begin_bit(const char *text)
{
    return (uint64_t)1 << (((unsigned char)text[1] * 7u + (unsigned char)text[2]) % 64);
}

/* ---- the list ---------------------------------------------------------------------------- */

static struct filter make_filter(const char *f)
{
    const char *glob = f + 1;
    size_t n = strlen(glob), stars = 0;
    for (size_t i = 0; i < n; i++)
        stars += glob[i] == '*' || glob[i] == '?';
    int before = *glob == '*', behind = n && glob[n - 1] == '*';
    if (stars == 1 && behind && n > LEAST_PREFIX)
        return (struct filter){*f, PREFIX, (unsigned short)(n - 1), glob};
    if (stars == 1 && before && n > sizeof(uint16_t))
        return (struct filter){*f, SUFFIX, (unsigned short)(n - 1), glob + 1};
    if (stars == 2 && before && behind && n - 2 >= KEY && nparts < MAX_PARTS)
        return (struct filter){*f, PART, (unsigned short)(n - 2), glob + 1};
    return (struct filter){*f, GLOB, 0, glob};
}

static void add_test(const struct filter *f)
{
    const char *end = f->text + f->len;
    switch (f->kind) {
    case PREFIX:
        prefixes[nprefixes++] = (struct prefix){f->len, four_bytes(end - sizeof(uint32_t))};
        begins |= begin_bit(f->text);
        break;
    case SUFFIX:
        suffixes[nsuffixes++] = two_bytes(end - sizeof(uint16_t));
        break;
    case PART:
        for (int i = 0; i < KEY; i++)
            memset(&parts[nparts][i], f->text[i], LANES);
        nparts++;
        break;
    default:
        more = 1;
    }
}

void pt_filter_prepare(const char *list)
{
    nfilters = nprefixes = nsuffixes = nparts = 0;
    only = more = 0;
    begins = 0;
    for (const char *f = list; *f && nfilters < MAX_FILTERS; f += strlen(f) + 1) {
        filters[nfilters] = make_filter(f);
        add_test(&filters[nfilters++]);
        only |= *f == '+';
    }
}

static int matches(const struct filter *f, const char *path, size_t n)
{
    switch (f->kind) {
    case PREFIX:
        return n >= f->len && !memcmp(path, f->text, f->len);
    case SUFFIX:
        return n >= f->len && !memcmp(path + n - f->len, f->text, f->len);
    case PART:
        return n >= f->len && memmem(path, n, f->text, f->len) != NULL;
    default:
        return pt_glob_match(f->text, path);
    }
}

/* The first filter that matches decides: "-GLOB" no, "+GLOB" and "!GLOB" yes. */
static __attribute__((noinline)) int decide(const char *path, size_t n)
{
    for (unsigned i = 0; i < nfilters; i++)
        if (matches(&filters[i], path, n))
            return filters[i].sign != '-';
    return !only;
}

/* ---- the tests ----------------------------------------------------------------------------- */

static inline int may_have_prefix(const char *path, size_t n)
{
    int found = 0;
    if (n < LEAST_PREFIX || !(begins & begin_bit(path)))
        return 0;
    for (const struct prefix *p = prefixes, *end = p + nprefixes; p < end; p++)
        found |= n >= p->len && four_bytes(path + p->len - sizeof(p->key)) == p->key;
    return found;
}

static inline int may_have_suffix(const char *path, size_t n)
{
    int found = 0;
    for (unsigned i = 0; n >= sizeof(uint16_t) && i < nsuffixes; i++)
        found |= two_bytes(path + n - sizeof(uint16_t)) == suffixes[i];
    return found;
}

/* Does a part begin at one of the LANES bytes from here on?  KEY - 1 more are looked at. */
static inline int part_begins_at(const char *at)
{
    lanes bytes[KEY], found = {0};
    for (int i = 0; i < KEY; i++)
        __builtin_memcpy(&bytes[i], at + i, LANES);
    for (unsigned i = 0; i < nparts; i++)
        found |= (bytes[0] == parts[i][0]) & (bytes[1] == parts[i][1]) & (bytes[2] == parts[i][2]);
    uint64_t words[LANES / sizeof(uint64_t)];
    __builtin_memcpy(words, &found, LANES);
    return (words[0] | words[1]) != 0;
}

static inline int may_have_part(const char *path, size_t n)
{
    if (!nparts)
        return 0;
    if (n < LANES + KEY - 1) {
        char longer[LANES + KEY - 1] = {0};
        memcpy(longer, path, n);
        return part_begins_at(longer);
    }
    const char *last = path + n - (LANES + KEY - 1);
    for (const char *at = path; at < last; at += LANES)
        if (part_begins_at(at))
            return 1;
    return part_begins_at(last);
}

int pt_filter_path(const char *path, size_t n)
{
    if (!pt_is_address(path))
        return 0;
    if (more | may_have_prefix(path, n) | may_have_suffix(path, n) | may_have_part(path, n))
        return decide(path, n);
    return !only;
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
