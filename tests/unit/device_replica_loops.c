/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replicas that run loops: they meet in each iteration, fail together, and
 * their account of what they exchange holds for any number of iterations.
 */
#include "suite.h"

#include <math.h>

#include "replicated.h"

struct descent {
    int32_t fails_in; /* the replica whose call of the host fails; -1: none */
};

static int may_fail(void *context, const char *name, void *data, int64_t count)
{
    const struct descent *descent = context;
    static _Thread_local int calls;

    (void)name, (void)count;
    return *(const int32_t *)data == descent->fails_in && ++calls == 3 ? -6 : 0;
}

/* The program: w -= 0.1 mean (w - x); the host gets the index each time. */
static int descend(ipu_graph *graph, void *context, int32_t ninputs,
                   const ipu_tensor *inputs, int32_t noutputs,
                   ipu_tensor *outputs)
{
    ipu_tensor w = ipu_variable(graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    ipu_tensor slope = ipu_subtract(graph, w, inputs[0]);

    (void)ninputs, (void)noutputs;
    MUST(ipu_host_call(graph, "look", ipu_replica_index(graph), may_fail,
                       context));
    slope = ipu_cross_replica_mean(graph, slope, 0);
    MUST(ipu_assign(graph, w,
                    ipu_subtract(graph, w, ipu_scale(graph, slope, 0.1, 0))));
    outputs[0] = inputs[0];
    return 0;
}

/* _i is the number of replicas. */
LOOP_TEST(replicas_meet_in_loops, 1, 9)
{
    struct descent descent = {-1};
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(3)), out;
    float values[8][3], got[8][3], w[3];
    double mean[3] = {0}, expected[3] = {0};

    MUST(ipu_repeat(d.graph, 25, descend, &descent, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    options.threads = 1; /* one thread runs all replicas */
    start(_i);
    connect("x", values, 3 * (size_t)_i);
    connect("y", got, 3 * (size_t)_i);
    for (int r = 0; r < _i; r++)
        for (int k = 0; k < 3; k++) {
            values[r][k] = (float)(r * 3 + k);
            mean[k] += (double)values[r][k] / _i;
        }
    MUST(ipu_replicas_run(replicas));
    MUST(ipu_replicas_run(replicas));
    for (int i = 0; i < 50; i++)
        for (int k = 0; k < 3; k++)
            expected[k] -= 0.1 * (expected[k] - mean[k]);
    MUST(ipu_replicas_check_equal(replicas));
    MUST(ipu_replicas_read(replicas, _i - 1, "w", w, sizeof w));
    for (int k = 0; k < 3; k++)
        ck_assert_double_le(fabs(expected[k] - (double)w[k]), 1e-4);
    ck_assert_int_eq(stats().done, 50);
    ck_assert_int_eq(stats().collectives, 25);
}

TEST(a_failure_in_a_loop_ends_all)
{
    struct descent descent = {2};
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(3)), out;
    float values[4][3] = {{0}}, got[4][3];

    MUST(ipu_repeat(d.graph, 25, descend, &descent, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    start(4);
    connect("x", values, 12);
    connect("y", got, 12);
    MUST_FAIL(ipu_replicas_run(replicas), IPU_ERR_CALLBACK, "replica 2: ");
    ck_assert_int_eq(ipu_replicas_callback_status(replicas), -6);
    MUST(ipu_replicas_check_equal(replicas));
    descent.fails_in = -1;
    MUST(ipu_replicas_run(replicas));
}

/* Returns whether iterations are left. The loop carries their number next to
 * its sum. */
static int goes_on(ipu_graph *graph, void *context, int32_t ninputs,
                   const ipu_tensor *inputs, int32_t noutputs,
                   ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] =
        ipu_greater(graph, inputs[0], ipu_fill(graph, IPU_INT32, 0, NULL, 0));
    return 0;
}

static int sum_up(ipu_graph *graph, void *context, int32_t ninputs,
                  const ipu_tensor *inputs, int32_t noutputs,
                  ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] =
        ipu_subtract(graph, inputs[0], ipu_fill(graph, IPU_INT32, 0, NULL, 1));
    outputs[1] = ipu_cross_replica_sum(graph, inputs[1], 0);
    return 0;
}

/* Each replica goes around two loops three times in all, but not the first as
 * often as the other: it comes to a sum of other tensors. */
TEST(replicas_that_come_to_different_sums_fail)
{
    ipu_tensor one = ipu_fill(d.graph, IPU_INT32, 0, NULL, 1), in[2], out[2];
    ipu_tensor index = ipu_replica_index(d.graph);
    float small[2], large[2 * COUNT], got[2 * COUNT];

    in[0] = ipu_add(d.graph, one, index); /* 1, 2 */
    in[1] = device_floats(&d, "small", 1, SHAPE(1));
    MUST(ipu_while(d.graph, 9, goes_on, sum_up, NULL, 2, in, NULL, out));
    MUST(ipu_output(d.graph, "sum", out[1]));
    in[0] = ipu_subtract(d.graph, ipu_fill(d.graph, IPU_INT32, 0, NULL, 2),
                         index); /* 2, 1 */
    in[1] = device_floats(&d, "large", 1, SHAPE(COUNT));
    MUST(ipu_while(d.graph, 9, goes_on, sum_up, NULL, 2, in, NULL, out));
    MUST(ipu_output(d.graph, "large_sum", out[1]));
    start(2);
    device_fill(small, 2, 1);
    device_fill(large, 2 * COUNT, 2);
    connect("small", small, 2);
    connect("large", large, 2 * COUNT);
    connect("large_sum", got, 2 * COUNT);
    MUST_FAIL(ipu_replicas_run(replicas), IPU_ERR_STATE,
              "come to different sums over replicas");
    MUST_FAIL(ipu_replicas_run(replicas), IPU_ERR_STATE, "different sums");
}

/* The loop goes on while the sum over replicas is small. */
static int all_are_small(ipu_graph *graph, void *context, int32_t ninputs,
                         const ipu_tensor *inputs, int32_t noutputs,
                         ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_less(graph, ipu_cross_replica_sum(graph, inputs[0], 0),
                          ipu_fill(graph, IPU_FLOAT32, 0, NULL, 100));
    return 0;
}

static int doubled(ipu_graph *graph, void *context, int32_t ninputs,
                   const ipu_tensor *inputs, int32_t noutputs,
                   ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_scale(graph, inputs[0], 2, 0);
    return 0;
}

TEST(replicas_meet_in_conditions)
{
    ipu_tensor in = device_floats(&d, "x", 0, NULL), out;
    float values[] = {1, 2, 3}, got[3];

    MUST(ipu_while(d.graph, 9, all_are_small, doubled, NULL, 1, &in, NULL,
                   &out));
    MUST(ipu_output(d.graph, "y", out));
    start(3);
    connect("x", values, 3);
    connect("y", got, 3);
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 3; r++) /* 6 2^5 > 100 */
        ck_assert_float_eq(got[r], values[r] * 32);
    ck_assert_int_eq(stats().done, 6);
    ck_assert_int_eq(stats().collectives, 10);
}

static int indexed(ipu_graph *graph, void *context, int32_t ninputs,
                   const ipu_tensor *inputs, int32_t noutputs,
                   ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_add(graph, inputs[0], ipu_replica_index(graph));
    return 0;
}

/* Two bodies and the graph around them ask. */
TEST(loops_know_which_replica_they_are)
{
    ipu_tensor n = ipu_fill(d.graph, IPU_INT32, 0, NULL, 0);
    int32_t got[2];

    MUST(ipu_repeat(d.graph, 3, indexed, NULL, 1, &n, NULL, &n));
    MUST(ipu_repeat(d.graph, 4, indexed, NULL, 1, &n, NULL, &n));
    n = ipu_add(d.graph, n, ipu_replica_index(d.graph));
    MUST(ipu_output(d.graph, "n", n));
    start(2);
    connect("n", got, 2);
    MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(got[0], 0);
    ck_assert_int_eq(got[1], 8);
}

/* A loop may run as often as a number can say: the account does not wrap
 * around. */
TEST(endless_loops_have_an_account)
{
    struct descent descent = {-1};
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(3)), out;

    MUST(ipu_repeat(d.graph, INT64_MAX, descend, &descent, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    start(2);
    ck_assert_int_eq(stats().collectives, INT32_MAX);
    ck_assert_int_eq(stats().exchanges, INT32_MAX);
    ck_assert_int_gt(stats().sent_bytes, INT64_C(1) << 55);
    ck_assert_int_gt(stats().total_cycles, INT64_C(1) << 55);
}

/* A sum in an update that is due in one replica only cannot be made over
 * all. */
LOOP_TEST(updates_are_due_in_all_replicas, 0, 2)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(1)), sum;
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(1));
    ipu_tensor due = ipu_input(d.graph, "due", IPU_INT32, 0, NULL);
    float values[] = {1, 2}, got;
    int32_t flags[] = {1, 0};

    MUST(ipu_update_begin_if(d.graph, 1, due));
    sum = ipu_cross_replica_sum(d.graph, in, 0);
    MUST(ipu_assign(d.graph, v, ipu_add(d.graph, v, sum)));
    MUST(ipu_update_end(d.graph));
    start(2);
    connect("x", values, 2);
    connect("due", flags, 2);
    flags[_i] = 1;
    flags[!_i] = 0;
    MUST_FAIL(ipu_replicas_run(replicas), IPU_ERR_STATE,
              _i ? "due in replica 1 and not in replica 0"
                 : "due in replica 0 and not in replica 1");
    flags[0] = flags[1] = 1;
    MUST(ipu_replicas_run(replicas));
    flags[0] = flags[1] = 0;
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 2; r++) {
        MUST(ipu_replicas_read(replicas, r, "v", &got, 4));
        ck_assert_float_eq(got, 3);
    }
}

TEST_MAIN("device_replica_loops", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
