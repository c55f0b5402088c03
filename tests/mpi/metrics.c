/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of several ranks, each with another number of rows, have the results
 * of one rank with all rows.
 */
#include "metrics.h"
#include "ranks.h"

/* Rank 0 has one row in ten, or none, and the others share the rest unevenly.
 */
static int owner_of(int64_t row, int n)
{
    return n == 1                    ? 0
           : row % 10 == 0 && n != 3 ? 0
                                     : 1 + (int)(row * row % (n - 1));
}

TEST(unequal_shares_merge_into_the_whole)
{
    hvd_metric *mine[HVD_METRIC_KINDS], *all[HVD_METRIC_KINDS];
    double results[HVD_METRIC_KINDS], theirs[HVD_METRIC_KINDS];

    for (int k = 0; k < HVD_METRIC_KINDS; k++) {
        mine[k] = metric_of(k);
        all[k] = metric_of(k);
        for (int64_t row = 0; row < METRIC_ROWS; row++) {
            metric_count(all[k], k, row, row + 1);
            if (owner_of(row, ranks_size()) == ranks_rank())
                metric_count(mine[k], k, row, row + 1);
        }
    }
    ck_hvd(hvd_metric_merge_ranks(mine, HVD_METRIC_KINDS, 0));
    for (int k = 0; k < HVD_METRIC_KINDS; k++) {
        results[k] = theirs[k] = hvd_metric_result(mine[k]);
        ck_assert_double_eq_tol(results[k], hvd_metric_result(all[k]), 1e-13);
    }
    ck_hvd(hvd_broadcast(theirs, HVD_METRIC_KINDS, HVD_FLOAT64, 0));
    ck_assert_mem_eq(results, theirs, sizeof results);
    for (int k = 0; k < HVD_METRIC_KINDS; k++) {
        hvd_metric_free(mine[k]);
        hvd_metric_free(all[k]);
    }
}

TEST(a_process_set_merges_its_own_rows)
{
    const int32_t first[] = {0, 1};
    hvd_metric *metric = metric_of(HVD_METRIC_MEAN);
    const float value = (float)ranks_rank();
    int set;

    if (ranks_size() < 3) {
        hvd_metric_free(metric);
        return;
    }
    set = hvd_add_process_set(first, 2);
    ck_hvd(set);
    ck_assert_int_eq(hvd_metric_update(metric, &value, NULL, NULL, 1, 1), 0);
    if (ranks_rank() < 2)
        ck_hvd(hvd_metric_merge_ranks(&metric, 1, set));
    ck_assert_double_eq(hvd_metric_result(metric),
                        ranks_rank() < 2 ? 0.5 : ranks_rank());
    hvd_metric_free(metric);
    ck_hvd(hvd_remove_process_set(set));
}

/* Every rank fails, also those that have what most have. The kinds have as many
 * sums, or not. */
TEST(different_metrics_are_told_apart)
{
    for (int i = 0; i < 2 && ranks_size() > 1; i++) {
        hvd_metric *metric =
            metric_of(ranks_rank() != ranks_size() - 1 ? HVD_METRIC_MEAN
                      : i                              ? HVD_METRIC_AUC
                                                       : HVD_METRIC_RECALL);

        ck_hvd_fails(hvd_metric_merge_ranks(&metric, 1, 0), HVD_ERR_MISMATCH);
        ck_assert_double_eq(hvd_metric_result(metric), 0);
        hvd_metric_free(metric);
    }
}

TEST(bad_arguments_are_refused)
{
    hvd_metric *none = NULL;

    ck_hvd_fails(hvd_metric_merge_ranks(&none, 1, 0), HVD_ERR_ARGUMENT);
    ck_hvd_fails(hvd_metric_merge_ranks(NULL, 1, 0), HVD_ERR_ARGUMENT);
    ck_hvd(hvd_metric_merge_ranks(NULL, 0, 0));
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_metrics")
