/* SPDX-License-Identifier: Apache-2.0 */
/* How variables are split into parts, and which servers get them. */
#include "strategy/parts.h"

#include "suite.h"

enum { MOST = 64 };

static struct hvd__part parts[MOST];

/* Checks that parts are neighbours of whole rows, that they are as large as
 * allowed, or a row, and that they differ by a row at most. */
static void check_parts(int64_t rows, int64_t width, int64_t part_bytes)
{
    const int64_t shape[] = {rows, width};
    int64_t n = hvd__parts_of(2, shape, part_bytes), next = 0;
    int64_t least = INT64_MAX, most = 0;

    ck_assert_int_ge(n, 1);
    ck_assert_int_le(n, rows);
    hvd__parts_split(7, 2, shape, n, parts);
    for (int64_t i = 0; i < n; i++) {
        ck_assert_int_eq(parts[i].variable, 7);
        ck_assert_int_eq(parts[i].number, i);
        ck_assert_int_eq(parts[i].offset, next);
        ck_assert_int_eq(parts[i].count % width, 0);
        ck_assert(parts[i].count * 4 <= part_bytes || parts[i].count == width);
        next += parts[i].count;
        least = parts[i].count < least ? parts[i].count : least;
        most = parts[i].count > most ? parts[i].count : most;
    }
    ck_assert_int_eq(next, rows * width);
    ck_assert_int_le(most - least, width);
    /* One part fewer would be too few. */
    ck_assert(n == 1 || (rows + n - 2) / (n - 1) * width * 4 > part_bytes);
}

TEST(parts_are_rows_and_cover_the_variable)
{
    for (int64_t rows = 1; rows <= 20; rows++)
        for (int64_t width = 1; width <= 5; width += 2)
            for (int64_t bytes = 1; bytes < 420; bytes++)
                check_parts(rows, width, bytes);
}

TEST(ten_rows_in_four_parts)
{
    const int64_t shape[] = {10, 1};

    ck_assert_int_eq(hvd__parts_of(2, shape, 12), 4);
    hvd__parts_split(0, 2, shape, 4, parts);
    ck_assert_int_eq(parts[0].count, 3);
    ck_assert_int_eq(parts[1].count, 3);
    ck_assert_int_eq(parts[2].count, 2);
    ck_assert_int_eq(parts[3].count, 2);
}

TEST(scalars_and_empty_variables_are_not_split)
{
    const int64_t empty[] = {3, 0}, vector[] = {100};

    ck_assert_int_eq(hvd__parts_of(0, NULL, 1), 1);
    ck_assert_int_eq(hvd__parts_of(2, empty, 1), 0);
    ck_assert_int_eq(hvd__parts_of(1, vector, 0), 1);
    hvd__parts_split(1, 0, NULL, 1, parts);
    ck_assert_int_eq(parts[0].count, 1);
    ck_assert_int_eq(parts[0].offset, 0);
}

TEST(servers_take_turns_or_the_least_loaded_does)
{
    static const int64_t counts[] = {100, 10, 20, 5, 70, 1};
    static const int32_t turns[] = {0, 1, 2, 0, 1, 2};
    static const int32_t greedy[] = {0, 1, 2, 1, 1, 2};
    int64_t loads[3];

    for (int i = 0; i < 6; i++)
        parts[i] = (struct hvd__part){.count = counts[i]};
    hvd__parts_place(parts, 6, 3, HVD_PLACE_ROUND_ROBIN, loads);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(parts[i].server, turns[i]);
    ck_assert_int_eq(loads[0], 105);
    hvd__parts_place(parts, 6, 3, HVD_PLACE_BY_BYTES, loads);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(parts[i].server, greedy[i]);
    ck_assert_int_eq(loads[1], 85);
}

TEST_MAIN("strategy_parts")
