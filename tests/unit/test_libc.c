/*
 * The functions of libc that the tracer has itself: the same results as libc's, at every alignment,
 * and nothing read beyond a page that a string or a piece of memory ends with.
 */
#define PT_OWN(name) own_##name
#include "preload/libc.c"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/run.h"

#define PAGE 4096
#define MOST 100

static char *page_end; /* behind it is nothing */

static void make_page(void)
{
    char *two = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(two, MAP_FAILED);
    ck_assert_int_eq(mprotect(two + PAGE, PAGE, PROT_NONE), 0);
    page_end = two + PAGE;
}

/* So many characters of few kinds, also of the highest, that end where the page does. */
static char *make_text(size_t n)
{
    char *s = page_end - n;
    for (size_t i = 0; i < n; i++)
        s[i] = "ab/\x80\xff"[rand() % 5];
    return s;
}

static char *make_string(size_t n)
{
    char *s = make_text(n + 1);
    s[n] = 0;
    return s;
}

static int sign(int n)
{
    return (n > 0) - (n < 0);
}

START_TEST(lengths)
{
    for (size_t n = 0; n < MOST; n++) {
        char *s = make_string(n);
        ck_assert_uint_eq(own_strlen(s), n);
        for (size_t most = 0; most < n + 3; most++)
            ck_assert_uint_eq(own_strnlen(s, most), strnlen(s, most));
        memset(s, 'x', n + 1); /* without an end */
        ck_assert_uint_eq(own_strnlen(s, n + 1), n + 1);
    }
}
END_TEST

START_TEST(moves)
{
    char from[MOST + 16], to[MOST + 16], same[MOST + 16];
    for (size_t n = 0; n < MOST; n++)
        for (size_t at = 0; at < 16; at++) {
            for (size_t i = 0; i < sizeof(from); i++)
                from[i] = (char)rand();
            memset(to, 1, sizeof(to));
            memset(same, 1, sizeof(same));
            ck_assert_ptr_eq(own_memcpy(to + at, from, n), to + at);
            memcpy(same + at, from, n);
            ck_assert_int_eq(memcmp(to, same, sizeof(to)), 0);
            memcpy(same, from, sizeof(same));
            own_memmove(from + at, from + 7, n);
            memmove(same + at, same + 7, n);
            ck_assert_int_eq(memcmp(from, same, sizeof(from)), 0);
            ck_assert_ptr_eq(own_memset(to + at, 0xab, n), to + at);
            memset(same + at, 0xab, n);
            ck_assert_int_eq(memcmp(to + at, same + at, n), 0);
        }
    memcpy(from, make_text(MOST), MOST);
    own_memcpy(to, page_end - MOST, MOST);
    ck_assert_int_eq(own_memcmp(to, from, MOST), 0);
}
END_TEST

START_TEST(comparisons)
{
    char other[MOST + 1];
    for (int turn = 0; turn < 20000; turn++) {
        size_t n = (size_t)rand() % MOST;
        char *s = make_string(n);
        memcpy(other, s, n + 1);
        if (turn % 3)
            other[(size_t)rand() % (n + 1)] = (char)rand();
        other[n] = 0;
        ck_assert_int_eq(sign(own_memcmp(s, other, n)), sign(memcmp(s, other, n)));
        ck_assert_int_eq(sign(own_strcmp(s, other)), sign(strcmp(s, other)));
        size_t most = (size_t)rand() % (MOST + 5);
        ck_assert_int_eq(sign(own_strncmp(s, other, most)), sign(strncmp(s, other, most)));
    }
}
END_TEST

START_TEST(searches)
{
    for (int turn = 0; turn < 20000; turn++) {
        size_t n = (size_t)rand() % MOST;
        char part[6];
        memcpy(part, make_text(5), 5);
        part[rand() % 5] = part[5] = 0;
        char *s = make_string(n);
        size_t most = (size_t)rand() % (n + 2); /* its end is one to find, too */
        ck_assert_ptr_eq(own_memchr(s, part[0], most), memchr(s, part[0], most));
        ck_assert_ptr_eq(own_strchr(s, part[0]), strchr(s, part[0]));
        ck_assert_ptr_eq(own_strrchr(s, part[0]), strrchr(s, part[0]));
        ck_assert_ptr_eq(own_strstr(s, part), strstr(s, part));
        ck_assert_uint_eq(own_strcspn(s, part), strcspn(s, part));
        ck_assert_uint_eq(own_strspn(s, part), strspn(s, part));
        ck_assert_ptr_eq(own_memmem(s, n, part, strlen(part)), memmem(s, n, part, strlen(part)));
    }
}
END_TEST

START_TEST(paths)
{
    char path[PT_PROC_PATH];
    pt_proc_path(path, "/proc/", 4294967295u, "/fd/", 100);
    ck_assert_str_eq(path, "/proc/4294967295/fd/100");
    pt_proc_path(path, "/proc/self/fd/", 0, "", -1);
    ck_assert_str_eq(path, "/proc/self/fd/0");
}
END_TEST

START_TEST(environment)
{
    setenv("PT_TEST", "value", 1);
    setenv("PT_TEST_LONGER", "other", 1);
    ck_assert_str_eq(own_getenv("PT_TEST"), "value");
    ck_assert_str_eq(own_getenv("PT_TEST_LONGER"), "other");
    ck_assert_ptr_null(own_getenv("PT_TES"));
    clearenv();
    ck_assert_ptr_null(own_getenv("PT_TEST"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("libc");
    TCase *tc = tcase_create("libc");

    tcase_add_checked_fixture(tc, make_page, NULL);
    tcase_add_test(tc, lengths);
    tcase_add_test(tc, moves);
    tcase_add_test(tc, comparisons);
    tcase_add_test(tc, searches);
    tcase_add_test(tc, paths);
    tcase_add_test(tc, environment);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
