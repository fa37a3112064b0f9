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
};

static struct filter filters[MAX_FILTERS];
static unsigned nfilters;
static int only; /* there are "+GLOB"s: what matches none is not traced */

static struct filter make_filter(const char *f)
{
    const char *glob = f + 1;
    size_t n = strlen(glob), stars = 0;
    for (size_t i = 0; i < n; i++)
        stars += glob[i] == '*' || glob[i] == '?';
    int before = *glob == '*', behind = n && glob[n - 1] == '*';
    if (stars == 1 && behind)
        return (struct filter){*f, PREFIX, (unsigned short)(n - 1), glob};
    if (stars == 1 && before)
        return (struct filter){*f, SUFFIX, (unsigned short)(n - 1), glob + 1};
    if (stars == 2 && before && behind && n > 2)
        return (struct filter){*f, PART, (unsigned short)(n - 2), glob + 1};
    return (struct filter){*f, GLOB, 0, glob};
}

void pt_filter_prepare(const struct pt_shm *shm)
{
    nfilters = 0;
    only = 0;
    for (const char *f = shm->filters; *f && nfilters < MAX_FILTERS; f += strlen(f) + 1) {
        filters[nfilters++] = make_filter(f);
        only |= *f == '+';
    }
}

static inline int matches(const struct filter *f, const char *path, size_t n)
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
