/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the algorithms of sums over replicas. Each gives the same bits; bytes
 * follow from formulas, and cycles from the transfers, by 1 to 8 replicas.
 * Packs divide what is sent together.
 */
#include "suite.h"

#include <math.h>

#include "replicated.h"

static float x[8][COUNT], y[8][COUNT];

/* Starts count replicas that sum two tensors with an algorithm. */
static void build(int32_t algorithm, int count)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(COUNT));
    ipu_tensor twice = ipu_add(d.graph, in, in);

    MUST(ipu_output(d.graph, "sum", ipu_cross_replica_sum(d.graph, in, 0)));
    MUST(
        ipu_output(d.graph, "mean", ipu_cross_replica_mean(d.graph, twice, 0)));
    options.cross_replica_algorithm = algorithm;
    start(count);
}

static void again(void)
{
    int32_t packs = options.packs;

    tear_down();
    set_up();
    options.packs = packs;
}

/* _i is the number of replicas. */
LOOP_TEST(every_algorithm_gives_the_same_bits, 1, 9)
{
    static float ring[8][COUNT], mean[8][COUNT];

    for (int32_t a = 0; a < IPU_NUM_CROSS_REPLICA_ALGORITHMS; a++) {
        again();
        build(a, _i);
        connect("x", x, (size_t)_i * COUNT);
        connect("sum", y, (size_t)_i * COUNT);
        connect("mean", mean, (size_t)_i * COUNT);
        for (int r = 0; r < _i; r++)
            device_fill(x[r], COUNT, (uint64_t)r + 1);
        MUST(ipu_replicas_run(replicas));
        for (int k = 0; k < COUNT; k++) {
            double sum = 0;

            for (int r = 0; r < _i; r++)
                sum += (double)x[r][k];
            ck_assert_double_le(fabs(sum - (double)y[_i - 1][k]), 2e-6);
            ck_assert_double_le(fabs(2 * sum / _i - (double)mean[0][k]), 2e-6);
        }
        if (a == 0)
            memcpy(ring, y, sizeof ring);
        for (int r = 0; r < _i; r++)
            ck_assert_mem_eq(y[r], ring[0], sizeof y[r]);
    }
}

/* Returns the bytes of the replica that sends most, for a tensor of n. */
static int64_t sent(int32_t algorithm, int64_t n, int replicas_)
{
    int64_t pairs = replicas_ / 2, half = n / 2;

    if (replicas_ == 1)
        return 0;
    if (algorithm == IPU_CROSS_REPLICA_RING)
        return 2 * (replicas_ - 1) * ((n + replicas_ - 1) / replicas_);
    if (algorithm == IPU_CROSS_REPLICA_ONE_DEVICE)
        return (replicas_ - 1) * n;
    return 2 * half + 2 * (pairs - 1) * ((half + pairs - 1) / pairs) +
           (replicas_ % 2 ? n : 0);
}

LOOP_TEST(bytes_follow_from_the_algorithm, 1, 9)
{
    for (int32_t a = 0; a < IPU_NUM_CROSS_REPLICA_ALGORITHMS; a++) {
        again();
        build(a, _i);
        ck_assert_int_eq(stats().sent_bytes, 2 * sent(a, COUNT * 4, _i));
        ck_assert_int_eq(stats().exchanges, 2);
        ck_assert_int_eq(stats().exchange_cycles > 0, _i > 1);
        ck_assert_double_eq(stats().mean_exchange_cycles,
                            (double)stats().exchange_cycles);
    }
}

static int64_t cycles_of(int32_t algorithm, int count)
{
    again();
    build(algorithm, count);
    return stats().exchange_cycles;
}

/* With two, a pair is a ring. From four on fewer steps take less, and one
 * device has to wait for each of the others. */
TEST(fewer_steps_take_fewer_cycles)
{
    ck_assert_int_eq(cycles_of(IPU_CROSS_REPLICA_HIERARCHICAL, 2),
                     cycles_of(IPU_CROSS_REPLICA_RING, 2));
    for (int count = 4; count <= 8; count += 2) {
        int64_t ring = cycles_of(IPU_CROSS_REPLICA_RING, count);

        ck_assert_int_lt(cycles_of(IPU_CROSS_REPLICA_HIERARCHICAL, count),
                         ring);
        ck_assert_int_gt(cycles_of(IPU_CROSS_REPLICA_ONE_DEVICE, count), ring);
    }
}

/* Both sums go together, and are cut into equal packs. Three packs cut within
 * a tensor. */
TEST(packs_divide_what_is_ready_together)
{
    static const int packs[] = {1, 2, 3, 5};
    int64_t before = 0;

    for (int i = 0; i < 4; i++) {
        int64_t all = 2 * COUNT * 4, pack = (all + packs[i] - 1) / packs[i];

        options.packs = packs[i];
        again();
        build(IPU_CROSS_REPLICA_ONE_DEVICE, 4);
        ck_assert_int_eq(stats().collectives, 2);
        ck_assert_int_eq(stats().exchanges, (all + pack - 1) / pack);
        ck_assert_int_eq(stats().sent_bytes, 3 * all);
        ck_assert_int_gt(stats().exchange_cycles, before);
        before = stats().exchange_cycles;
    }
}

/* There are never more packs than bytes. */
TEST(a_pack_has_a_byte_at_least)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(1));

    MUST(ipu_output(d.graph, "sum", ipu_cross_replica_sum(d.graph, in, 0)));
    options.packs = 1000;
    start(2);
    ck_assert_int_eq(stats().exchanges, 4);
}

TEST(options_are_checked)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(1));

    MUST(ipu_output(d.graph, "sum", ipu_cross_replica_sum(d.graph, in, 0)));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    options.cross_replica_algorithm = 3;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_ARGUMENT, "no cross-replica algorithm 3");
    options.cross_replica_algorithm = -1;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_ARGUMENT, "no cross-replica algorithm -1");
    options.cross_replica_algorithm = IPU_CROSS_REPLICA_RING;
    options.packs = -2;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_ARGUMENT, "-2 packs");
    options.packs = 2;
    options.maximum_cross_replica_sum_buffer_size = 64;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_ARGUMENT, "set one of them to 0");
    ck_assert_str_eq(ipu_cross_replica_algorithm_name(1), "hierarchical");
    ck_assert_ptr_null(ipu_cross_replica_algorithm_name(3));
    ck_assert_ptr_null(ipu_cross_replica_algorithm_name(-1));
}

TEST_MAIN("device_replica_algorithm", .set_up = set_up, .tear_down = tear_down)
