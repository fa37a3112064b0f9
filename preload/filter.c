#include "config.h"

#include <string.h>

#include "common/glob.h"
#include "preload/tracer.h"

/*
 * Which files are traced.  Every call with a name comes here, so the usual globs are told
 * apart once: "/dir/" and a star is a prefix, a star and ".so" a suffix, a star on both
 * sides a part; only the rest goes through the matcher.
 */
#define MAX_FILTERS 64

enum kind { PREFIX, SUFFIX, PART, GLOB };

struct filter {
    char sign;
    unsigned char kind;
    unsigned short len;
    const char *text; /* without the stars; GLOB: all of it */
    uint32_t key;     /* PREFIX: its first bytes, which tell most names apart without a call */
};

#define KEY_BYTES sizeof(uint32_t)

static inline uint32_t key_of(const char *text)
{
    uint32_t key;
    __builtin_memcpy(&key, text, sizeof(key));
    return key;
}

static PT_NEAR struct filter filters[MAX_FILTERS];
static PT_NEAR unsigned nfilters;
static PT_NEAR int only; /* there are "+GLOB"s: what matches none is not traced */

static struct filter make_filter(const char *f)
{
    const char *glob = f + 1;
    size_t n = strlen(glob), stars = 0;
    for (size_t i = 0; i < n; i++)
        stars += glob[i] == '*' || glob[i] == '?';
    int before = *glob == '*', behind = n && glob[n - 1] == '*';
    if (stars == 1 && behind && n > KEY_BYTES)
        return (struct filter){*f, PREFIX, (unsigned short)(n - 1), glob, key_of(glob)};
    if (stars == 1 && before && n > 1)
        return (struct filter){*f, SUFFIX, (unsigned short)(n - 1), glob + 1, 0};
    if (stars == 2 && before && behind && n > 2)
        return (struct filter){*f, PART, (unsigned short)(n - 2), glob + 1, 0};
    return (struct filter){*f, GLOB, 0, glob, 0};
}

void pt_filter_prepare(const char *list)
{
    nfilters = 0;
    only = 0;
    for (const char *f = list; *f && nfilters < MAX_FILTERS; f += strlen(f) + 1) {
        filters[nfilters++] = make_filter(f);
        only |= *f == '+';
    }
}

static inline int matches(const struct filter *f, const char *path, size_t n)
{
    switch (f->kind) {
    case PREFIX:
        return n >= f->len && key_of(path) == f->key && !memcmp(path, f->text, f->len);
    case SUFFIX:
        return n >= f->len && path[n - 1] == f->text[f->len - 1] &&
               !memcmp(path + n - f->len, f->text, f->len);
    case PART:
        return n >= f->len && memmem(path, n, f->text, f->len) != NULL;
    default:
        return pt_glob_match(f->text, path);
    }
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

/* The first filter that matches decides: "-GLOB" no, "+GLOB" and "!GLOB" yes. */
int pt_filter_path(const char *path)
{
    if (!path)
        return 0;
    size_t n = strnlen(path, PT_STRING_MAX);
    for (unsigned i = 0; i < nfilters; i++)
        if (matches(&filters[i], path, n))
            return filters[i].sign != '-';
    return !only;
}
