/*
 * Mappings of which parts are unmapped.
 */
#include "config.h"

#include <check.h>
#include <sys/mman.h>
#include <unistd.h>

#include "replay/mappings.h"
#include "tests/unit/run.h"

enum { ADDR = 0x10000, PAGES = 8 };

static size_t page;
static struct mappings *mappings;
static char *live;

static void setup(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    mappings = mappings_create();
    live = mmap(NULL, PAGES * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_nonnull(mappings);
    ck_assert(live != MAP_FAILED);
    ck_assert_int_eq(mappings_add(mappings, 1, ADDR, PAGES * page, live), 0);
}

static void teardown(void)
{
    mappings_destroy(mappings);
}

/* Is page i of the trace still known, and there? */
static int is_there(size_t i)
{
    unsigned char in_core;
    size_t len;
    char *p = mappings_find(mappings, 1, ADDR + i * page, &len);
    int mapped = mincore(live + i * page, page, &in_core) == 0;

    ck_assert_int_eq(p != NULL, mapped);
    ck_assert(!p || p == live + i * page);
    return mapped;
}

static void check_pages(const char *expected)
{
    for (size_t i = 0; i < PAGES; i++)
        ck_assert_msg(is_there(i) == (expected[i] == 'x'), "page %zu, expected %s", i, expected);
}

static int cut(size_t first, size_t n)
{
    return mappings_cut(mappings, 1, ADDR + first * page, n * page);
}

START_TEST(test_parts)
{
    ck_assert_int_eq(cut(0, 1), 0);
    check_pages(".xxxxxxx");
    ck_assert_int_eq(cut(7, 1), 0);
    check_pages(".xxxxxx.");
    ck_assert_int_eq(cut(3, 2), 0);
    check_pages(".xx..xx.");
    ck_assert_int_eq(mappings_cut(mappings, 1, ADDR + page, 1), 0); /* a byte is a page */
    check_pages("..x..xx.");
    ck_assert_int_eq(cut(0, PAGES), 0);
    check_pages("........");
}
END_TEST

START_TEST(test_nothing)
{
    ck_assert_int_eq(cut(PAGES, 5), 0);
    ck_assert_int_eq(mappings_cut(mappings, 2, ADDR, PAGES * page), 0); /* another process */
    check_pages("xxxxxxxx");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mappings");
    TCase *tc = tcase_create("cut");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_parts);
    tcase_add_test(tc, test_nothing);
    suite_add_tcase(suite, tc);
    return run_suite(suite);
}
