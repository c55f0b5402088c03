/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_main.h - defines the main of a unit test program.
 *
 *     static TCase *tcase_parse(void) { ... }
 *     HVD_TEST_MAIN("core_settings", tcase_parse, tcase_units)
 *
 * Every argument after the name makes one TCase of the program's one suite.
 * Check's own environment variables (CK_FORK, CK_RUN_CASE, CK_VERBOSITY) work
 * as usual. The exit status says whether every test passed.
 */
#ifndef HVD_TESTS_CHECK_MAIN_H
#define HVD_TESTS_CHECK_MAIN_H

#include <check.h>
#include <stdlib.h>

#define HVD_TEST_MAIN(name, ...)                                               \
    int main(void)                                                             \
    {                                                                          \
        TCase *(*const makers[])(void) = {__VA_ARGS__};                        \
        Suite *suite = suite_create(name);                                     \
        for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)            \
            suite_add_tcase(suite, makers[i]());                               \
        SRunner *runner = srunner_create(suite);                               \
        srunner_run_all(runner, CK_ENV);                                       \
        int failed = srunner_ntests_failed(runner);                            \
        srunner_free(runner);                                                  \
        return failed ? EXIT_FAILURE : EXIT_SUCCESS;                           \
    }

#endif
