/* SPDX-License-Identifier: Apache-2.0 */
/* Rows with their indices, and which rows have changed since when. */
#include "strategy/changes.h"
#include "strategy/rows.h"

#include <stdbool.h>
#include <string.h>

#include "suite.h"

enum { ROWS = 23, WIDTH = 3, MOST = 60 };

static uint64_t state = 12345;

static int64_t any_below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* ---------------------------------------------------------------- combining */

static void combine(int64_t n)
{
    int64_t indices[MOST], distinct = 0;
    float values[MOST * WIDTH], sums[ROWS][WIDTH] = {0};
    bool given[ROWS] = {false};
    struct hvd__rows rows = {0};

    for (int64_t i = 0; i < n; i++) {
        indices[i] = any_below(ROWS);
        distinct += !given[indices[i]];
        given[indices[i]] = true;
        for (int k = 0; k < WIDTH; k++) {
            values[i * WIDTH + k] = (float)any_below(100);
            sums[indices[i]][k] += values[i * WIDTH + k];
        }
    }
    ck_assert_int_eq(hvd__rows_combine(&rows, indices, values, n, WIDTH), 0);
    ck_assert_int_eq(rows.n, distinct);
    ck_assert_int_eq(hvd__rows_misplaced(&rows, 0, ROWS), -1);
    for (int64_t i = 0; i < rows.n; i++) {
        ck_assert(given[rows.indices[i]]);
        for (int k = 0; k < WIDTH; k++)
            ck_assert_float_eq(rows.values[i * WIDTH + k],
                               sums[rows.indices[i]][k]);
    }
    hvd__rows_free(&rows);
    ck_assert_int_eq(rows.n, 0);
}

TEST(rows_of_one_index_are_added)
{
    for (int64_t n = 0; n <= MOST; n++)
        for (int repeat = 0; repeat < 20; repeat++)
            combine(n);
}

/* 1 + 2^-24 is lost in every other order than this one. */
TEST(sums_are_in_the_order_of_the_input)
{
    static const int64_t indices[] = {9, 4, 9, 4, 9};
    static const float values[] = {0x1p-24F, 7, 0x1p-24F, 8, 1};
    struct hvd__rows rows;

    ck_assert_int_eq(hvd__rows_combine(&rows, indices, values, 5, 1), 0);
    ck_assert_int_eq(rows.n, 2);
    ck_assert_float_eq(rows.values[0], 15);
    ck_assert_float_eq(rows.values[1], 1 + 0x1p-23F);
    hvd__rows_free(&rows);
}

TEST(slices_are_all_rows)
{
    static const int64_t indices[] = {0, 3, 4, 9, 12};
    static const float values[] = {1, 2, 3, 4, 5};
    struct hvd__rows rows, slice;

    ck_assert_int_eq(hvd__rows_combine(&rows, indices, values, 5, 1), 0);
    for (int64_t first = 0; first <= 13; first++)
        for (int64_t end = first; end <= 13; end++) {
            int64_t next = 0;

            ck_assert_int_eq(hvd__rows_slice(&slice, &rows, 1, first, end), 0);
            for (int i = 0; i < 5; i++)
                if (indices[i] >= first && indices[i] < end) {
                    ck_assert_int_eq(slice.indices[next], indices[i]);
                    ck_assert_float_eq(slice.values[next++], values[i]);
                }
            ck_assert_int_eq(slice.n, next);
            hvd__rows_free(&slice);
        }
    hvd__rows_free(&rows);
}

TEST(misplaced_rows_are_found)
{
    int64_t indices[] = {3, 5, 6};
    struct hvd__rows rows = {3, indices, NULL};

    ck_assert_int_eq(hvd__rows_misplaced(&rows, 3, 7), -1);
    ck_assert_int_eq(hvd__rows_misplaced(&rows, 4, 7), 0);
    ck_assert_int_eq(hvd__rows_misplaced(&rows, 3, 6), 2);
    indices[2] = 5;
    ck_assert_int_eq(hvd__rows_misplaced(&rows, 3, 7), 2);
    indices[1] = 2;
    ck_assert_int_eq(hvd__rows_misplaced(&rows, 0, 7), 1);
    indices[0] = INT64_MIN;
    ck_assert_int_eq(hvd__rows_misplaced(&rows, 0, 7), 0);
}

TEST(rows_are_copied_from_and_to_their_places)
{
    static const int64_t indices[] = {11, 13};
    static const float values[] = {1, 2, 3, 4};
    float variable[8] = {0, 0, 9, 9, 0, 0, 9, 9};
    struct hvd__rows rows;

    ck_assert_int_eq(hvd__rows_combine(&rows, indices, values, 2, 2), 0);
    hvd__rows_scatter(&rows, variable, 2, 11);
    ck_assert_int_eq(
        memcmp(variable, (float[]){1, 2, 9, 9, 3, 4, 9, 9}, sizeof variable),
        0);
    variable[4] = 7;
    hvd__rows_gather(&rows, variable, 2, 11);
    ck_assert_float_eq(rows.values[2], 7);
    hvd__rows_free(&rows);
}

/* ------------------------------------------------------------------ changes */

/* Compares the list with a table of versions. */
static void check_changes(const struct hvd__changes *changes,
                          const int64_t *versions, int64_t nrows, int64_t now)
{
    int64_t listed[ROWS], next;

    for (int64_t since = 0; since <= now; since++) {
        next = 0;
        memset(listed, 0xff, sizeof listed);
        hvd__changes_list(changes, since, 100, listed);
        for (int64_t row = 0; row < nrows; row++)
            if (versions[row] > since)
                ck_assert_int_eq(listed[next++], 100 + row);
        ck_assert_int_eq(hvd__changes_count(changes, since), next);
        ck_assert(next == ROWS || listed[next] == -1);
    }
}

TEST(changes_are_those_since_a_version)
{
    for (int64_t nrows = 1; nrows <= ROWS; nrows += 11) {
        struct hvd__changes changes;
        int64_t versions[ROWS] = {0};

        ck_assert_int_eq(hvd__changes_init(&changes, nrows), 0);
        check_changes(&changes, versions, nrows, 0);
        for (int64_t now = 1; now < 40; now++) {
            for (int64_t n = any_below(5); n > 0; n--) {
                int64_t row = any_below(nrows);

                versions[row] = now;
                hvd__changes_note(&changes, row, now);
            }
            check_changes(&changes, versions, nrows, now);
        }
        hvd__changes_fini(&changes);
    }
}

TEST_MAIN("strategy_rows")
