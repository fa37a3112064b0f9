/*
 * Globs of SPEC and the site's file: '*' matches anything, slashes too; '?' one
 * character.  No locale, no allocation: the tracer uses it as well.
 */
#ifndef PT_GLOB_H
#define PT_GLOB_H

#include <stddef.h>

static inline int pt_glob_match(const char *glob, const char *s)
{
    const char *star = NULL, *retry = NULL;
    while (*s) {
        if (*glob == '*') {
            star = glob++;
            retry = s;
        } else if (*glob == '?' || *glob == *s) {
            glob++;
            s++;
        } else if (star) {
            glob = star + 1;
            s = ++retry;
        } else {
            return 0;
        }
    }
    while (*glob == '*')
        glob++;
    return !*glob;
}

#endif
