/*
 * Which files are traced: what the tracer tests names for beforehand is the same as going through
 * its list of globs.
 */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/filter.h"
#include "common/glob.h"
#include "preload/tracer.h"
#include "tests/unit/run.h"

/* The default list, as the watchdog writes it. */
static const char usual[] = "!/dev/shm/*\0-/dev/*\0-/proc/*\0-/sys/*\0-*.so\0-*.so.*\0"
                            "-/usr/lib/locale/*\0-/usr/share/locale/*\0-*/gconv/*\0"
                            "-/etc/ld.so*\0-*/ompi.*\0";

static int by_the_list(const char *list, const char *path)
{
    int only = 0;
    for (const char *f = list; *f; f += strlen(f) + 1) {
        if (pt_glob_match(f + 1, path))
            return *f != '-';
        only |= *f == '+';
    }
    return !only;
}

/* The list ends with an empty string. */
static void use_list(const char *list)
{
    static struct pt_filters filters;
    static char copy[PT_FILTERS_SIZE];
    size_t n = 0;
    while (list[n])
        n += strlen(list + n) + 1;
    memcpy(copy, list, n + 1);
    pt_filters_prepare(&filters, copy);
    pt_filter_use(&filters, copy);
}

static int is_traced(const char *name)
{
    return pt_filter_path(name, strlen(name));
}

START_TEST(usual_names)
{
    static const struct {
        const char *path;
        int traced;
    } cases[] = {
        {"", 1},
        {"/", 1},
        {"x", 1},
        {"so", 1},
        {".so", 0},
        {"libm.so", 0},
        {"libm.so.6", 0},
        {"/usr/lib/x86_64-linux-gnu/libm.so.6", 0},
        {"/usr/lib/x86_64-linux-gnu/libm.so6", 1},
        {"/dev/shm/x", 1},
        {"/dev/shm/libm.so", 1},
        {"/dev/shm", 0},
        {"/dev/null", 0},
        {"/dev", 1},
        {"/proc/self/fd/3", 0},
        {"/usr/lib/locale/C.utf8/LC_CTYPE", 0},
        {"/usr/lib/locale", 1},
        {"/usr/lib/gconv/UTF-16", 0},
        {"/a/gconv/", 0},
        {"/gconv", 1},
        {"/tmp/ompi.host.0/pid.1/contact", 0},
        {"/scratch/a/long/way/to/a/name/that/ends/with/ompi", 1},
        {"/scratch/a/long/way/to/a/name/that/ends/with/ompi.", 0},
        {"/scratch/project/run.0001/output.dat", 1},
    };
    use_list(usual);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(is_traced(cases[i].path) == cases[i].traced, "'%s'", cases[i].path);
    ck_assert_int_eq(pt_filter_path(NULL, 0), 0);
}
END_TEST

/* A list of up to seven globs of few letters, so that many names match. */
static void make_list(char *list)
{
    char *at = list;
    for (int globs = rand() % 8; globs > 0; globs--) {
        *at++ = "+-!"[rand() % 3];
        for (int n = 1 + rand() % 7; n > 0; n--)
            *at++ = "ab/.**?"[rand() % 7];
        *at++ = 0;
    }
    *at = 0;
}

/* The name ends where its memory ends: a tool that looks for such things sees who reads on. */
static char *make_name(size_t n)
{
    char *name = malloc(n + 1);
    ck_assert_ptr_nonnull(name);
    for (size_t i = 0; i < n; i++)
        name[i] = "ab/."[rand() % 4];
    name[n] = 0;
    return name;
}

START_TEST(any_names)
{
    char list[100];
    srand(1);
    for (int i = 0; i < 20000; i++) {
        make_list(list);
        use_list(list);
        for (int k = 0; k < 20; k++) {
            char *name = make_name((size_t)rand() % 70);
            ck_assert_msg(is_traced(name) == by_the_list(list, name), "'%s', list '%s'...", name,
                          list);
            free(name);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("filter");
    TCase *tc = tcase_create("filter");

    tcase_add_test(tc, usual_names);
    tcase_add_test(tc, any_names);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
