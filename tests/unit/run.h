/*
 * How every unit test ends.
 */
#ifndef PT_TESTS_RUN_H
#define PT_TESTS_RUN_H

#include <check.h>
#include <stdlib.h>

/* Runs the suite; returns main()'s status. */
static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
