/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checks.h - Check, whose assertions cost next to nothing while they hold.
 * Check itself writes the place of each one to a file, so that the report of a
 * crash can say where the test was last: a system call for every element that a
 * test compares. Here the place is written only if it was not among the last
 * few thousand. Every test includes this in place of check.h.
 */
#ifndef HVD_TESTS_CHECKS_H
#define HVD_TESTS_CHECKS_H

#include <check.h>

/* Tells Check where the test is, unless it was there a short time ago. */
void checks_pass(const char *file, int line);

/* GCC 12 and later are wrong about some of the pointers that assertions print,
 * and would not say so in a system header. */
#if defined(__GNUC__) && __GNUC__ >= 12
#pragma GCC diagnostic ignored "-Wdangling-pointer"
#endif

/* All of Check's assertions are made of this one. */
#undef ck_assert_msg
#define ck_assert_msg(expression, ...)                                         \
    ((expression) ? checks_pass(__FILE__, __LINE__)                            \
                  : _ck_assert_failed(__FILE__, __LINE__,                      \
                                      "Assertion '" #expression "' failed",    \
                                      ##__VA_ARGS__))

#endif
