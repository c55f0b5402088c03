/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests medians, means of ratios and bandwidths.
 */
#include "tables/result.h"
#include "tables/stats.h"

#include "suite.h"

#include <math.h>

static const double tiny = 1e-12; /* relative; results take a few operations */

static void assert_near(double got, double want)
{
    ck_assert_msg(fabs(got - want) <= tiny * fabs(want), "%.17g, not %.17g",
                  got, want);
}

TEST(the_median_is_the_middle)
{
    double odd[] = {5, -1, 3};
    double even[] = {4, 1, 3, 100};
    double one[] = {7};

    assert_near(stats_median(odd, 3), 3);
    assert_near(stats_median(even, 4), 3.5);
    assert_near(stats_median(one, 1), 7);
    assert_near(stats_median(NULL, 0), 0);
}

TEST(a_median_has_an_interval_of_values)
{
    double values[100], low, high;

    for (int i = 0; i < 100; i++)
        values[i] = i + 1;
    /* The median lies outside of all six values with a probability of 2 / 2^6,
     * and between the 40th and the 61st of 100 with one of 96.5 %. */
    stats_median_interval(values, 6, &low, &high);
    assert_near(low, 1);
    assert_near(high, 6);
    stats_median_interval(values, 100, &low, &high);
    assert_near(low, 40);
    assert_near(high, 61);
    stats_median_interval(values, 0, &low, &high);
    assert_near(low, 0);
}

TEST(ratios_have_a_geometric_mean)
{
    struct stats_geomean mean = {0, 0};

    assert_near(stats_geomean_value(&mean), 0);
    stats_geomean_add(&mean, 4);
    stats_geomean_add(&mean, 0.25);
    assert_near(stats_geomean_value(&mean), 1);
    stats_geomean_add(&mean, 27);
    assert_near(stats_geomean_value(&mean), 3);
}

TEST(what_is_no_ratio_is_left_out)
{
    struct stats_geomean mean = {0, 0};

    stats_geomean_add(&mean, 2);
    stats_geomean_add(&mean, 0);
    stats_geomean_add(&mean, -1);
    stats_geomean_add(&mean, INFINITY);
    stats_geomean_add(&mean, NAN);
    assert_near(stats_geomean_value(&mean), 2);
}

static struct result allreduce_of(double bytes, double seconds)
{
    return (struct result){
        .bytes = (int64_t)bytes,
        .type = bench_dtype_find("float"),
        .op = bench_op_find("sum"),
        .placements = {{.hvd.mean = seconds, .hvd.median = seconds},
                       {.hvd.mean = seconds / 2, .hvd.median = seconds / 2}}};
}

TEST(an_allreduce_crosses_the_bus_twice_but_for_its_own)
{
    const struct result r = allreduce_of(3e9, 1.5);

    assert_near(result_algbw(&r, OUT_OF_PLACE), 2);
    assert_near(result_algbw(&r, IN_PLACE), 4);
    assert_near(result_busbw(&r, OUT_OF_PLACE, 1), 0);
    assert_near(result_busbw(&r, OUT_OF_PLACE, 2), 2);
    assert_near(result_busbw(&r, OUT_OF_PLACE, 4), 3);
    assert_near(result_busbw(&r, IN_PLACE, 3), 4 * 4.0 / 3);
    ck_assert_str_eq(result_redop(&r), "sum");
    ck_assert_int_eq(result_root(&r), -1);
}

TEST(a_broadcast_crosses_the_bus_once)
{
    struct result r = allreduce_of(3e9, 1.5);

    r.kind = HVD_BROADCAST;
    r.op = NULL;
    r.root = 5;
    assert_near(result_busbw(&r, OUT_OF_PLACE, 2), 2);
    assert_near(result_busbw(&r, OUT_OF_PLACE, 8), 2);
    ck_assert_str_eq(result_redop(&r), "none");
    ck_assert_int_eq(result_root(&r), 5);
}

TEST(ratio_and_share_compare_medians)
{
    struct result r = allreduce_of(1e6, 1e-3);

    r.placements[IN_PLACE].hvd.mean = 1; /* an outlier */
    r.placements[IN_PLACE].mpi.median = 2e-3;
    r.placements[IN_PLACE].copy.median = 1e-4;
    assert_near(result_ratio(&r, IN_PLACE), 4);
    assert_near(result_copy_bw(&r, IN_PLACE), 10);
    assert_near(result_share(&r, IN_PLACE, 2), 0.2);
    assert_near(result_share(&r, IN_PLACE, 4), 0.3);
    assert_near(result_ratio(&r, OUT_OF_PLACE), 0);
}

TEST(no_time_is_no_bandwidth)
{
    const struct result r = allreduce_of(1e6, 0);

    assert_near(result_algbw(&r, IN_PLACE), 0);
    assert_near(result_ratio(&r, IN_PLACE), 0);
    assert_near(result_copy_bw(&r, IN_PLACE), 0);
    assert_near(result_share(&r, IN_PLACE, 2), 0);
}

TEST(the_summary_is_over_both_placements)
{
    struct result results[] = {allreduce_of(1e9, 1), allreduce_of(1e9, 0.25)};
    struct summary s;

    results[0].placements[OUT_OF_PLACE].nwrong = 3;
    results[0].placements[IN_PLACE].nwrong = -1;
    results[1].placements[IN_PLACE].nwrong = 4;
    results[0].placements[OUT_OF_PLACE].mpi.median = 2;
    results[1].placements[OUT_OF_PLACE].mpi.median = 2;
    result_summarize(results, 2, 2, &s);
    ck_assert_int_eq(s.nwrong, 7);
    assert_near(s.average_busbw, (1 + 2 + 4 + 8) / 4.0);
    assert_near(s.peak_busbw, 8);
    assert_near(s.ratio[OUT_OF_PLACE], 4);
    assert_near(s.ratio[IN_PLACE], 0);
    result_summarize(results, 0, 2, &s);
    assert_near(s.average_busbw, 0);
}

TEST(percentiles_are_values_of_the_list)
{
    double values[200];
    struct stats_spread spread;

    for (int i = 0; i < 200; i++)
        values[i] = (i * 77) % 200 + 1; /* 1 to 200, mixed */
    stats_spread_of(values, 200, &spread);
    assert_near(spread.mean, 100.5);
    assert_near(spread.least, 1);
    assert_near(spread.median, 100.5);
    assert_near(spread.p95, 190);
    assert_near(spread.p99, 198);
    assert_near(spread.most, 200);
    assert_near(stats_percentile(values, 200, 0), 1);
    assert_near(stats_percentile(values, 200, 100), 200);
    stats_spread_of(values, 1, &spread);
    assert_near(spread.p99, 1);
    stats_spread_of(NULL, 0, &spread);
    assert_near(spread.most, 0);
    assert_near(stats_percentile(NULL, 0, 50), 0);
}

TEST(what_ranks_share_crosses_the_bus_once_but_for_its_own)
{
    struct result r = allreduce_of(4e9, 1);
    static const hvd_kind kinds[] = {HVD_ALLGATHER, HVD_GATHER, HVD_ALLTOALL,
                                     HVD_REDUCESCATTER};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        r.kind = kinds[i];
        assert_near(result_busbw(&r, OUT_OF_PLACE, 4), 3);
        assert_near(result_busbw(&r, OUT_OF_PLACE, 1), 0);
    }
    r.kind = HVD_REDUCE;
    assert_near(result_busbw(&r, OUT_OF_PLACE, 4), 4);
}

TEST_MAIN("bench_result")
