/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.h - computes in double what a tensor should be, and compares y with
 * that, for tests of ops.
 */
#ifndef HVD_TESTS_VALUES_H
#define HVD_TESTS_VALUES_H

#include "differences.h"

static float y[MOST];
static double wanted[MOST];

/* Returns the first element of y whose error is more than tolerance times the
 * wanted size (at least 1); -1: none. NaN must be NaN. */
static inline int64_t first_wrong(int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++) {
        double got = (double)y[i], error = fabs(got - wanted[i]);
        double size = fabs(wanted[i]) > 1 ? fabs(wanted[i]) : 1;

        if (got == wanted[i] || (isnan(got) && isnan(wanted[i])))
            continue;
        if (!(error <= tolerance * size))
            return i;
    }
    return -1;
}

static inline void check_values(int64_t count, double tolerance)
{
    int64_t i = first_wrong(count, tolerance);

    ck_assert_msg(i < 0, "element %d is %.9g, not %.9g", (int)i,
                  (double)y[i < 0 ? 0 : i], wanted[i < 0 ? 0 : i]);
}

#endif
