/*
 * The little of libc that the tracer needs all the time, hidden in the library.
 *
 * For each function that comes from elsewhere the loader searches all objects of every program
 * that starts, half a microsecond each and more in cold caches; a program may have put one of its
 * own in front, as shells do with getenv; and one that a signal handler is the first to call would
 * be bound there.  What is seldom called still comes from libc, and is bound when it is.
 *
 * Words are read whole, so bytes behind a string's end are read, but none of another page.
 */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "preload/sys.h"

/* The test of these functions has other names for them. */
#ifndef PT_OWN
#define PT_OWN(name) name
#endif

/* The compiler would call the function that it is compiling. */
#if defined(__GNUC__) && !defined(__clang__)
#define NO_CALLS __attribute__((optimize("no-tree-loop-distribute-patterns")))
#else
#define NO_CALLS
#endif

void *PT_OWN(memcpy)(void *restrict to, const void *restrict from, size_t n);
void *PT_OWN(memmove)(void *to, const void *from, size_t n);
void *PT_OWN(memset)(void *at, int byte, size_t n);
int PT_OWN(memcmp)(const void *a, const void *b, size_t n);
void *PT_OWN(memmem)(const void *in, size_t n, const void *what, size_t len);
void *PT_OWN(memchr)(const void *in, int byte, size_t n);
size_t PT_OWN(strlen)(const char *s);
size_t PT_OWN(strnlen)(const char *s, size_t most);
int PT_OWN(strcmp)(const char *a, const char *b);
int PT_OWN(strncmp)(const char *a, const char *b, size_t n);
char *PT_OWN(strchr)(const char *s, int c);
char *PT_OWN(strrchr)(const char *s, int c);
char *PT_OWN(strstr)(const char *in, const char *what);
size_t PT_OWN(strcspn)(const char *s, const char *set);
size_t PT_OWN(strspn)(const char *s, const char *set);
char *PT_OWN(getenv)(const char *name);

/* ---- memory ------------------------------------------------------------------------------- */

/* Of memory at any address; not by a function that the compiler might call for it: it is here. */
typedef uint64_t sixteen __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t eight __attribute__((aligned(1), may_alias));
typedef uint32_t four __attribute__((aligned(1), may_alias));

#define MOVE(type, to, from) (*(type *)(to) = *(const type *)(from))

/* So many bytes or up to twice as many, in two steps that may overlap. */
#define MOVE_ENDS(type, to, from, n)                                        \
    do {                                                                    \
        MOVE(type, to, from);                                               \
        MOVE(type, (to) + (n) - sizeof(type), (from) + (n) - sizeof(type)); \
    } while (0)

static inline void move_less_than_16(char *to, const char *from, size_t n)
{
    if (n >= 8)
        MOVE_ENDS(eight, to, from, n);
    else if (n >= 4)
        MOVE_ENDS(four, to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
}

NO_CALLS void *PT_OWN(memcpy)(void *restrict to_, const void *restrict from_, size_t n)
{
    char *to = to_;
    const char *from = from_;
    if (n < 16) {
        move_less_than_16(to, from, n);
        return to_;
    }
    const char *last = from + n - 16;
    char *end = to + n - 16;
    for (; from < last; from += 16, to += 16)
        MOVE(sixteen, to, from);
    MOVE(sixteen, end, last);
    return to_;
}

NO_CALLS void *PT_OWN(memmove)(void *to_, const void *from_, size_t n)
{
    char *to = to_;
    const char *from = from_;
    if ((uintptr_t)to - (uintptr_t)from >= n) { /* forwards does */
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    } else {
        while (n--)
            to[n] = from[n];
    }
    return to_;
}

NO_CALLS void *PT_OWN(memset)(void *at_, int byte, size_t n)
{
    char *at = at_;
    uint64_t bytes = (unsigned char)byte * UINT64_C(0x0101010101010101);
    for (; n >= sizeof(eight); n -= sizeof(eight), at += sizeof(eight))
        *(eight *)at = bytes;
    for (size_t i = 0; i < n; i++)
        at[i] = (char)byte;
    return at_;
}

NO_CALLS int PT_OWN(memcmp)(const void *a_, const void *b_, size_t n)
{
    const unsigned char *a = a_, *b = b_;
    for (; n >= sizeof(eight); n -= sizeof(eight), a += sizeof(eight), b += sizeof(eight))
        if (*(const eight *)a != *(const eight *)b)
            break;
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] - b[i];
    return 0;
}

void *PT_OWN(memmem)(const void *in, size_t n, const void *what, size_t len)
{
    for (const char *at = in; n >= len; n--, at++)
        if (!len || (*at == *(const char *)what && !PT_OWN(memcmp)(at, what, len)))
            return (void *)(uintptr_t)at;
    return NULL;
}

/* ---- strings ------------------------------------------------------------------------------ */

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* The highest bits of its bytes that are 0; above the first it may be wrong. */
static inline uint64_t zeroes(uint64_t word)
{
    return (word - ONES) & ~word & HIGHS;
}

/* Where the first byte is that is 0 in `s` with `mask` laid over each of its words, or `most`. */
static inline size_t first_zero(const char *s, uint64_t mask, size_t most)
{
    typedef uint64_t __attribute__((may_alias)) word;
    unsigned before = (uintptr_t)s % sizeof(word); /* little-endian: the lowest bytes */
    const word *at = (const word *)(uintptr_t)(s - before);
    if (!most)
        return 0;
    uint64_t found = zeroes((*at ^ mask) | ((UINT64_C(1) << 8 * before) - 1));
    while (!found && (size_t)((const char *)(at + 1) - s) < most)
        found = zeroes(*++at ^ mask);
    size_t n = (size_t)((const char *)at - s) + (found ? (size_t)__builtin_ctzll(found) / 8 : 8);
    return n < most ? n : most;
}

NO_CALLS size_t PT_OWN(strnlen)(const char *s, size_t most)
{
    return first_zero(s, 0, most);
}

NO_CALLS void *PT_OWN(memchr)(const void *in, int byte, size_t n)
{
    const char *s = in;
    size_t at = first_zero(s, (unsigned char)byte * ONES, n);
    return at < n ? (void *)(uintptr_t)(s + at) : NULL;
}

size_t PT_OWN(strlen)(const char *s)
{
    return PT_OWN(strnlen)(s, SIZE_MAX);
}

int PT_OWN(strncmp)(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] || !a[i])
            return (unsigned char)a[i] - (unsigned char)b[i];
    return 0;
}

int PT_OWN(strcmp)(const char *a, const char *b)
{
    return PT_OWN(strncmp)(a, b, SIZE_MAX);
}

char *PT_OWN(strchr)(const char *s, int c)
{
    while (*s && *s != (char)c)
        s++;
    return *s == (char)c ? (char *)(uintptr_t)s : NULL;
}

char *PT_OWN(strrchr)(const char *s, int c)
{
    for (size_t n = PT_OWN(strlen)(s) + 1; n--;)
        if (s[n] == (char)c)
            return (char *)(uintptr_t)(s + n);
    return NULL;
}

char *PT_OWN(strstr)(const char *in, const char *what)
{
    return PT_OWN(memmem)(in, PT_OWN(strlen)(in), what, PT_OWN(strlen)(what));
}

/* How many characters at the beginning are in the set, or are not. */
static size_t span(const char *s, const char *set, int in_set)
{
    size_t n = 0;
    while (s[n] && (PT_OWN(strchr)(set, s[n]) != NULL) == in_set)
        n++;
    return n;
}

size_t PT_OWN(strspn)(const char *s, const char *set)
{
    return span(s, set, 1);
}

size_t PT_OWN(strcspn)(const char *s, const char *set)
{
    return span(s, set, 0);
}

/* ---- paths -------------------------------------------------------------------------------- */

static char *put_text(char *at, const char *s)
{
    while (*s)
        *at++ = *s++;
    return at;
}

static char *put_number(char *at, uint32_t n)
{
    char digits[10];
    int count = 0;
    do
        digits[count++] = (char)('0' + n % 10);
    while (n /= 10);
    while (count)
        *at++ = digits[--count];
    return at;
}

void pt_proc_path(char path[PT_PROC_PATH], const char *begin, uint32_t n, const char *more,
                  int64_t last)
{
    path = put_text(put_number(put_text(path, begin), n), more);
    if (last >= 0)
        path = put_number(path, (uint32_t)last);
    *path = 0;
}

/* ---- the environment ---------------------------------------------------------------------- */

char *PT_OWN(getenv)(const char *name)
{
    size_t n = PT_OWN(strlen)(name);
    for (char **e = environ; e && *e; e++)
        if (**e == *name && !PT_OWN(strncmp)(*e, name, n) && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}
