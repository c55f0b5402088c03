/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suite.h - tests that list themselves, and the main of a unit test program.
 *
 *     TEST(empty_lines_are_skipped)
 *     {
 *         ...
 *     }
 *
 *     LOOP_TEST(wrong_lines_are_refused, 0, LINES)
 *     {
 *         ... lines[_i] ...
 *     }
 *
 *     TEST_MAIN("core_settings", .set_up = open_table, .seconds = 60)
 *
 * All tests of the file run, in the order of their lines. Check's environment
 * variables (CK_FORK, CK_VERBOSITY) work as usual. The exit status says whether
 * every test passed.
 */
#ifndef HVD_TESTS_SUITE_H
#define HVD_TESTS_SUITE_H

#include "checks.h"

struct suite {
    const char *name;
    void (*set_up)(void); /* before and after each test, in its process */
    void (*tear_down)(void);
    void (*set_up_once)(void); /* before and after all, in the parent */
    void (*tear_down_once)(void);
    double
        seconds; /* limit of each test, which finds hangs; 0: that of Check */
};

/* Adds a test for each number from first to end - 1. Only constructors call
 * this. The test is borrowed for ever. */
void suite_add(const TTest *test, int first, int end);

/* Gives all tests that were added to the case. */
void suite_fill(TCase *tcase, const struct suite *suite);

int suite_main(const struct suite *suite);

#define TEST(name) LOOP_TEST(name, 0, 1)

/* The test runs for each _i from first to end - 1. */
#define LOOP_TEST(name, first, end)                                            \
    static void name(int _i);                                                  \
    __attribute__((constructor)) static void name##_add(void)                  \
    {                                                                          \
        static const TTest test = {#name, name, __FILE__, __LINE__};           \
        suite_add(&test, (int)(first), (int)(end));                            \
    }                                                                          \
    static void name(int _i CK_ATTRIBUTE_UNUSED)

/* TEST_MAIN(name, .set_up = ..., ...) has members of struct suite. */
#define TEST_MAIN(...)                                                         \
    int main(void)                                                             \
    {                                                                          \
        return suite_main(&(struct suite){.name = __VA_ARGS__});               \
    }

#endif
