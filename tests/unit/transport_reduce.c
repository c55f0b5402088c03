/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every algorithm that reduces gives the right sums on simulated ranks
 * (simulated_run.h), for many numbers of ranks and sizes, whatever is late.
 */
#include <string.h>

#include "simulated_run.h"
#include "suite.h"

static const struct hvd__algorithm *const reductions[] = {
    &hvd__reduce_hosts,         &hvd__reduce_hosts_doubling,
    &hvd__reduce_hosts_halving, &hvd__reduce_hosts_chain,
    &hvd__reduce_direct,        &hvd__reduce_doubling,
    &hvd__reduce_halving,       &hvd__reduce_scatter,
    &hvd__scatter_hosts,        NULL};
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

struct sum {
    enum hvd__motion motion;
    hvd_dtype dtype; /* HVD_INT32 or HVD_FLOAT32 */
    int size;
    const int *widths;
    int nwidths;
    int64_t count;
    int root;
};

static void put(hvd_dtype dtype, void *data, int64_t i, int value)
{
    if (dtype == HVD_INT32)
        ((int32_t *)data)[i] = value;
    else
        ((float *)data)[i] = (float)value;
}

static int get(hvd_dtype dtype, const void *data, int64_t i)
{
    return dtype == HVD_INT32 ? ((const int32_t *)data)[i]
                              : (int)((const float *)data)[i];
}

static void check_sum(const struct sum *sum, const struct member *m, int rank)
{
    struct hvd__slice part = {0, sum->count};

    if (sum->motion == HVD__REDUCE_TO_ROOT && rank != sum->root)
        return;
    if (sum->motion == HVD__REDUCE_TO_SHARES)
        part = hvd__slice_of(sum->count, rank, sum->size);
    for (int64_t i = 0; i < part.count; i++)
        SIMULATED_ASSERT(get(sum->dtype, m->output, i) ==
                         sum_of(sum->size, part.start + i));
}

/* Reduces with one algorithm, if it applies. Every second rank works in
 * place. */
static void reduce(const struct sum *sum,
                   const struct hvd__algorithm *algorithm)
{
    struct run run = run_begin(sum->size, sum->widths, sum->nwidths,
                               (int)sum->count + sum->size);
    size_t bytes = (size_t)sum->count * 4;
    bool applies = true;

    for (int i = 0; i < sum->size; i++) {
        struct member *m = &run.members[i];
        struct hvd__collective *c = &m->collective;

        give(m, bytes, bytes,
             i % 2 == 0 && sum->motion != HVD__REDUCE_TO_SHARES);
        c->motion = sum->motion;
        c->reduction.dtype = sum->dtype;
        c->reduction.op = HVD_SUM;
        c->count = sum->count;
        c->root = sum->root;
        applies = !algorithm || algorithm->applies(c);
    }
    if (applies) {
        for (int i = 0; i < sum->size; i++)
            for (int64_t k = 0; k < sum->count; k++)
                put(sum->dtype, run.members[i].input, k, given(i, k));
        run_all(&run, algorithm);
        for (int i = 0; i < sum->size; i++)
            check_sum(sum, &run.members[i], i);
    }
    run_end(&run);
}

static const enum hvd__motion motions[] = {
    HVD__REDUCE_TO_ALL, HVD__REDUCE_TO_ROOT, HVD__REDUCE_TO_SHARES};

/* Of all numbers of ranks. */
LOOP_TEST(reductions_are_right, 0, REDUCTIONS)
{
    static const int64_t counts[] = {1, 2, 33, 1001};

    for (int n = 2; n <= MOST_RANKS; n += n > 9 && n % 8 == 1 ? 6 : 1)
        for (int m = 0; m < 3; m++)
            for (int k = 0; k < 4; k++)
                reduce(&(struct sum){.motion = motions[m],
                                     .dtype = m ? HVD_FLOAT32 : HVD_INT32,
                                     .size = n,
                                     .count = counts[k],
                                     .root = (int)(counts[k] % n)},
                       reductions[_i]);
}

/* Of several segments. */
LOOP_TEST(large_reductions_are_right, 0, REDUCTIONS)
{
    static const int sizes[] = {2, 3, 4, 7};

    for (int k = 0; k < 4; k++)
        for (int m = 0; m < 3; m++)
            reduce(&(struct sum){.motion = motions[m],
                                 .dtype = HVD_FLOAT32,
                                 .size = sizes[k],
                                 .count = 1500007,
                                 .root = sizes[k] - 1},
                   reductions[_i]);
}

/* With a few partners at a time, in many segments. Children of a broadcast
 * need more transfers. */
LOOP_TEST(reductions_with_little_memory_are_right, 0, REDUCTIONS)
{
    has_little = true;
    for (int n = 2; n <= MOST_RANKS; n += n > 9 && n % 8 == 1 ? 6 : 3)
        for (int m = 0; m < 3; m++)
            reduce(&(struct sum){.motion = motions[m],
                                 .dtype = HVD_INT32,
                                 .size = n,
                                 .count = 10007,
                                 .root = n - 1},
                   reductions[_i]);
}

LOOP_TEST(reductions_over_hosts_are_right, 0, REDUCTIONS *LAYOUTS)
{
    static const int64_t counts[] = {1, 33, 1001, 70001};
    int l = _i / REDUCTIONS;

    for (int n = 2; n <= 13; n = after(n))
        for (int m = 0; m < 3; m++)
            for (int k = 0; k < 4; k++)
                reduce(&(struct sum){.motion = motions[m],
                                     .dtype = HVD_INT32,
                                     .size = n,
                                     .widths = layouts[l].widths,
                                     .nwidths = layouts[l].n,
                                     .count = counts[k],
                                     .root = n / 2},
                       reductions[_i % REDUCTIONS]);
}

static const int pairs[] = {2};

/* Two hosts of two ranks tell each other their sums, once. */
TEST(sums_of_hosts_cross_a_link_once)
{
    static const int64_t counts[] = {5000, 16384, 100000};

    for (int k = 0; k < 3; k++) {
        struct run run = run_begin(4, pairs, 1, k);
        size_t bytes = (size_t)counts[k] * sizeof(float);
        int64_t sent = 0;

        for (int i = 0; i < 4; i++) {
            struct hvd__collective *c = &run.members[i].collective;

            c->motion = HVD__REDUCE_TO_ALL;
            c->count = counts[k];
            c->reduction.dtype = HVD_FLOAT32;
            c->reduction.op = HVD_SUM;
            give(&run.members[i], bytes, bytes, false);
            memset(run.members[i].input, 0, bytes);
        }
        run_all(&run, NULL);
        for (int i = 0; i < 4; i++)
            sent += simulated_sent(run.simulated, i, true).bytes;
        ck_assert_int_eq(sent, 2 * (int64_t)bytes);
        run_end(&run);
    }
}

TEST_MAIN("transport_reduce", .set_up = keep_memory, .set_up_once = make_data,
          .seconds = 200)
