/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own_time.h"
#include "suite.h"

TEST(what_passes_between_looks_is_limited)
{
    struct hvd__own_time time = {0};

    ck_assert_int_eq(hvd__own_time_pass(&time, 1000, 10), 0);
    ck_assert_int_eq(hvd__own_time_pass(&time, 1004, 10), 4);
    ck_assert_int_eq(hvd__own_time_pass(&time, 1014, 10), 10);
    ck_assert_int_eq(hvd__own_time_pass(&time, 2014, 10), 10);
    ck_assert_int_eq(hvd__own_time_pass(&time, 2015, 10), 1);
}

TEST(gaps_do_not_count_for_what_began_before)
{
    struct hvd__own_time time = {0};

    hvd__own_time_pass(&time, 1000, 10);
    hvd__own_time_pass(&time, 2010, 10); /* 1000 were lost */
    ck_assert_int_eq(hvd__own_time_since(&time, 990, 2020), 30);
    ck_assert_int_eq(hvd__own_time_since(&time, 2010, 2020), 10);
    ck_assert_int_eq(hvd__own_time_since(&time, 2015, 2020), 5);
    /* The start lies within the gap, so the rest of the gap does not count. */
    ck_assert_int_eq(hvd__own_time_since(&time, 1500, 2020), 10);
}

TEST(any_number_of_gaps)
{
    struct hvd__own_time time = {0};
    int64_t now = 1;

    hvd__own_time_pass(&time, now, 10);
    for (int i = 0; i < 5 * HVD__GAPS; i++)
        hvd__own_time_pass(&time, now += 1010, 10);
    ck_assert_int_eq(hvd__own_time_since(&time, 1, now), 5 * HVD__GAPS * 10);
    ck_assert_int_eq(hvd__own_time_since(&time, now, now), 0);
    ck_assert_int_eq(hvd__own_time_since(&time, now - 5, now + 1), 1);
}

TEST_MAIN("base_own_time")
