/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that have no more data join, while others go on.
 */
#include <string.h>

#include "ranks.h"

/* Returns what a rank gives in a step. Rank r has r + 1 steps, so ranks s, s +
 * 1, ... take part in step s. */
static double value_of(int rank, int step)
{
    return 2 + rank + 0.5 * step;
}

static double expected(hvd_op op, int step, int contributors)
{
    double result = value_of(step, step);
    int n = ranks_size();

    for (int rank = step + 1; rank < n; rank++) {
        double x = value_of(rank, step);
        result = op == HVD_MIN       ? (x < result ? x : result)
                 : op == HVD_MAX     ? (x > result ? x : result)
                 : op == HVD_PRODUCT ? result * x
                                     : result + x;
    }
    if (op == HVD_AVERAGE)
        result /= contributors ? n - step : n;
    return result;
}

static int reduce(hvd_kind kind, double *value, int64_t count, hvd_op op,
                  int32_t flags, double prescale)
{
    hvd_request request = ranks_sum(HVD_FLOAT64, value, value, &count);

    request.kind = kind;
    request.op = op;
    request.flags = flags;
    request.prescale = prescale;
    return ranks_run(&request);
}

static void check_last(void)
{
    int last = -1;

    ck_hvd(hvd_join(&last));
    /* The last rank's last step needed all others to have joined. */
    ck_assert_int_eq(last, ranks_size() - 1);
}

TEST(the_joined_contribute_nothing)
{
    static const hvd_op ops[] = {HVD_SUM, HVD_AVERAGE, HVD_MIN, HVD_MAX,
                                 HVD_PRODUCT};

    for (int o = 0; o < 5; o++) {
        for (int step = 0; step <= ranks_rank(); step++) {
            double value = value_of(ranks_rank(), step);
            double want = expected(ops[o], step, 0);

            ck_hvd(reduce(HVD_ALLREDUCE, &value, 1, ops[o], 0, 1));
            ck_assert_msg(
                value - want < 1e-12 * want && want - value < 1e-12 * want,
                "%s: %.17g, not %.17g", hvd_op_name(ops[o]), value, want);
        }
        check_last();
    }
}

TEST(an_average_over_those_who_gave)
{
    for (int step = 0; step <= ranks_rank(); step++) {
        double value = value_of(ranks_rank(), step);
        double want = expected(HVD_AVERAGE, step, 1);

        ck_hvd(reduce(HVD_ALLREDUCE, &value, 1, HVD_AVERAGE,
                      HVD_AVERAGE_CONTRIBUTORS, 1));
        ck_assert(value - want < 1e-12 * want && want - value < 1e-12 * want);
    }
    check_last();
}

/* A prescale would spoil an identity: -1 times the largest is no minimum. */
TEST(scales_do_not_matter_to_them)
{
    for (int step = 0; step <= ranks_rank(); step++) {
        double value = value_of(ranks_rank(), step);

        ck_hvd(reduce(HVD_ALLREDUCE, &value, 1, HVD_MIN, 0, -1));
        ck_assert(value == -value_of(ranks_size() - 1, step));
        value = 3;
        ck_hvd(reduce(HVD_ALLREDUCE, &value, 1, HVD_PRODUCT, 0, 0.5));
        for (int rank = step; rank < ranks_size(); rank++)
            value /= 1.5;
        ck_assert(value > 1 - 1e-12 && value < 1 + 1e-12);
    }
    check_last();
}

TEST(large_tensors_and_shares)
{
    enum { COUNT = 30011 };
    static double data[COUNT];
    int n = ranks_size();

    for (int step = 0; step <= ranks_rank(); step++) {
        int64_t each = COUNT / n, rest = COUNT % n, me = ranks_rank();
        int64_t share = each + (me < rest);

        for (int i = 0; i < COUNT; i++)
            data[i] = i + ranks_rank();
        ck_hvd(reduce(HVD_ALLREDUCE, data, COUNT, HVD_SUM, 0, 1));
        for (int i = 0; i < COUNT; i++) {
            double want = 0;
            for (int rank = step; rank < n; rank++)
                want += i + rank;
            if (data[i] != want)
                ck_abort_msg("element %d of step %d: %g, not %g", i, step,
                             data[i], want);
        }
        for (int i = 0; i < COUNT; i++)
            data[i] = i + ranks_rank();
        ck_hvd(reduce(HVD_REDUCESCATTER, data, COUNT, HVD_SUM, 0, 1));
        for (int64_t i = 0; i < share; i++) {
            int64_t at = me * each + (me < rest ? me : rest) + i;
            double want = 0;
            for (int rank = step; rank < n; rank++)
                want += (double)at + rank;
            if (data[i] != want)
                ck_abort_msg("share element %d: %g, not %g", (int)i, data[i],
                             want);
        }
    }
    check_last();
}

TEST(everything_else_says_who_has_joined)
{
    int n = ranks_size();
    float value = 1, all[16];

    if (n == 1)
        return;
    if (ranks_rank() > 0) {
        /* The test goes on only after all but rank 0 know that rank 0 has
         * joined. */
        double one = 1;
        ck_hvd(reduce(HVD_ALLREDUCE, &one, 1, HVD_SUM, 0, 1));
        while (one > n - 1) {
            one = 1;
            ck_hvd(reduce(HVD_ALLREDUCE, &one, 1, HVD_SUM, 0, 1));
        }
        ck_hvd_fails(hvd_allgather(&value, all, 1, HVD_FLOAT32),
                     HVD_ERR_JOINED);
        ck_error_says("rank 0 joined before");
        ck_hvd_fails(hvd_broadcast(&value, 1, HVD_FLOAT32, 1), HVD_ERR_JOINED);
        ck_hvd_fails(hvd_barrier(), HVD_ERR_JOINED);
        ck_hvd_fails(hvd_alltoall(all, all, n, HVD_FLOAT32), HVD_ERR_JOINED);
        ck_hvd_fails(hvd_gather(&value, all, 1, HVD_FLOAT32, 1),
                     HVD_ERR_JOINED);
        ck_hvd_fails(hvd_reduce(&value, &value, 1, HVD_FLOAT32, HVD_SUM, 0),
                     HVD_ERR_JOINED);
        ck_hvd(hvd_reduce(&value, &value, 1, HVD_FLOAT32, HVD_SUM, 1));
        ck_assert(ranks_rank() != 1 || value == (float)(n - 1));
    }
    ck_hvd(hvd_join(NULL));
    ck_hvd(hvd_barrier());
}

/* A join need not be waited for at once; until it is over the rank can submit
 * nothing. */
TEST(a_join_may_be_asynchronous)
{
    int32_t last = -1;
    hvd_request request;
    hvd_handle handle;

    hvd_request_init(&request, sizeof request);
    request.kind = HVD_JOIN;
    request.output = &last;
    if (ranks_rank() == 0 && ranks_size() > 1) {
        ck_hvd(hvd_submit(&request, &handle));
        ck_hvd_fails(hvd_submit(&request, &handle), HVD_ERR_JOINED);
        ck_hvd(hvd_wait(handle));
        ck_hvd(hvd_barrier());
        return;
    }
    ck_hvd(hvd_submit(&request, &handle));
    ck_hvd(hvd_wait(handle));
    ck_assert_int_ge(last, 0);
    ck_hvd(hvd_barrier());
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_join")
