#include "config.h"

#include <string.h>

#include "common/filter.h"

static struct pt_filter make_filter(const struct pt_filters *all, const char *list, uint32_t at)
{
    const char *glob = list + at + 1;
    size_t n = strlen(glob), stars = 0;
    for (size_t i = 0; i < n; i++)
        stars += glob[i] == '*' || glob[i] == '?';
    int before = *glob == '*', behind = n && glob[n - 1] == '*';
    struct pt_filter f = {list[at], PT_FILTER_GLOB, 0, at + 1};
    if (stars == 1 && behind && n > PT_FILTER_PREFIX) {
        f.kind = PT_FILTER_IS_PREFIX;
        f.len = (uint16_t)(n - 1);
    } else if (stars == 1 && before && n > PT_FILTER_SUFFIX) {
        f.kind = PT_FILTER_IS_SUFFIX;
        f.len = (uint16_t)(n - 1);
        f.text++;
    } else if (stars == 2 && before && behind && n - 2 >= PT_FILTER_KEY &&
               all->nparts < PT_FILTER_PARTS) {
        f.kind = PT_FILTER_IS_PART;
        f.len = (uint16_t)(n - 2);
        f.text++;
    }
    return f;
}

static void add_test(struct pt_filters *all, const char *list, const struct pt_filter *f)
{
    const char *text = list + f->text, *end = text + f->len;
    switch (f->kind) {
    case PT_FILTER_IS_PREFIX:
        all->prefixes[all->nprefixes++] =
            (struct pt_prefix){f->len, pt_four_bytes(end - PT_FILTER_PREFIX)};
        all->begins |= pt_begin_bit(text);
        break;
    case PT_FILTER_IS_SUFFIX:
        all->suffixes[all->nsuffixes++] = pt_two_bytes(end - PT_FILTER_SUFFIX);
        break;
    case PT_FILTER_IS_PART:
        for (int i = 0; i < PT_FILTER_KEY; i++)
            memset(&all->parts[all->nparts][i], text[i], PT_FILTER_LANES);
        all->nparts++;
        break;
    default:
        all->more = 1;
    }
}

void pt_filters_prepare(struct pt_filters *all, const char *list)
{
    all->n = all->nprefixes = all->nsuffixes = all->nparts = 0;
    all->only = all->more = 0;
    all->begins = 0;
    for (uint32_t at = 0; list[at] && all->n < PT_MAX_FILTERS;
         at += (uint32_t)strlen(list + at) + 1) {
        struct pt_filter *f = &all->filter[all->n++];
        *f = make_filter(all, list, at);
        add_test(all, list, f);
        all->only |= f->sign == '+';
    }
}
