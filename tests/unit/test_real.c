/*
 * The real functions: what the tracer finds by itself is what the loader finds.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "preload/real.c"
#include "tests/unit/run.h"

/* Our own program stands where the tracer would, so that libc is behind it. */
static void check_name(const char *name, int *found)
{
    void *mine = find(name), *loaders = dlsym(RTLD_NEXT, name);
    ck_assert_msg(!mine || mine == loaders, "%s: %p, the loader has %p", name, mine, loaders);
    ck_assert_msg(pt_real(name) == loaders || !strncmp(name, "pthread_cond_", 13), "%s", name);
    *found += mine != NULL;
}

START_TEST(test_libc)
{
    char name[256], path[4096];
    int names = 0, found = 0;
    snprintf(path, sizeof(path), "%s/tests/tracer/libc-symbols.txt", getenv("top_srcdir"));
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(name, sizeof(name), f)) {
        name[strcspn(name, "\n")] = 0;
        if (!*name || *name == '#')
            continue;
        names++;
        check_name(name, &found);
    }
    fclose(f);
    ck_assert_int_gt(names, 500);
    ck_assert_int_gt(found, names * 9 / 10);
}
END_TEST

/* Of several versions the one that a program of today means. */
START_TEST(test_versions)
{
    void *of_old = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.2.5");
    void *wait = find("pthread_cond_wait");
    ck_assert_ptr_nonnull(wait);
    ck_assert_ptr_ne(wait, of_old);
#if defined(__x86_64__)
    ck_assert_ptr_eq(wait, dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2"));
#endif
}
END_TEST

/* Not there, only looked for by libc, or chosen by the loader for this processor. */
START_TEST(test_others)
{
    ck_assert_ptr_null(find("no_such_function"));
    ck_assert_ptr_null(pt_real("no_such_function"));
    ck_assert_ptr_null(find(""));
    ck_assert_ptr_null(find("_rtld_global"));
    ck_assert_ptr_null(find("memcpy"));
    ck_assert_ptr_eq(pt_real("memcpy"), dlsym(RTLD_NEXT, "memcpy"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("real");
    TCase *tc = tcase_create("find");
    tcase_add_test(tc, test_libc);
    tcase_add_test(tc, test_versions);
    tcase_add_test(tc, test_others);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
