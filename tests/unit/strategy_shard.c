/* SPDX-License-Identifier: Apache-2.0 */
/* Shards, shuffles and optimisers: what needs no other rank. */
#include <math.h>
#include <string.h>

#include "hvd_strategy.h"
#include "strategy/optimizer.h"
#include "suite.h"

TEST(shards_are_a_partition)
{
    for (int size = 1; size <= 9; size++)
        for (int64_t n = 0; n <= 40; n++) {
            int seen[40] = {0};
            int64_t first, stride, count, before = n;

            for (int rank = 0; rank < size; rank++) {
                ck_assert_int_eq(
                    hvd_shard(n, rank, size, &first, &stride, &count), HVD_OK);
                ck_assert_int_le(count, before);
                before = count;
                for (int64_t i = 0; i < count; i++) {
                    ck_assert_int_lt(first + i * stride, n);
                    seen[first + i * stride]++;
                }
            }
            for (int64_t i = 0; i < n; i++)
                ck_assert_int_eq(seen[i], 1);
        }
}

TEST(shards_that_cannot_be)
{
    int64_t a = 7, b = 7, c = 7;

    ck_assert_int_eq(hvd_shard(10, 3, 3, &a, &b, &c), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_shard(10, -1, 3, &a, &b, &c), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_shard(10, 0, 0, &a, &b, &c), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_shard(-1, 0, 1, &a, &b, &c), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_shard(10, 0, 1, NULL, &b, &c), HVD_ERR_ARGUMENT);
    ck_assert(a == 7 && b == 7 && c == 7);
}

enum { N = 1000 };

TEST(shuffles_are_permutations)
{
    static int64_t first[N], other[N];

    for (int64_t n = 0; n <= N; n += n < 20 ? 1 : 97) {
        int seen[N] = {0};

        ck_assert_int_eq(hvd_shuffle(n, 42, 3, first), HVD_OK);
        for (int64_t i = 0; i < n; i++)
            seen[first[i]]++;
        for (int64_t i = 0; i < n; i++)
            ck_assert_int_eq(seen[i], 1);
        ck_assert_int_eq(hvd_shuffle(n, 42, 3, other), HVD_OK);
        ck_assert_mem_eq(first, other, (size_t)n * sizeof *first);
    }
    hvd_shuffle(N, 42, 3, first);
    hvd_shuffle(N, 42, 4, other);
    ck_assert_mem_ne(first, other, sizeof first);
    hvd_shuffle(N, 43, 3, other);
    ck_assert_mem_ne(first, other, sizeof first);
    /* Epoch 1 of one seed is not epoch 0 of another. */
    hvd_shuffle(N, 0, 1, first);
    hvd_shuffle(N, 1, 0, other);
    ck_assert_mem_ne(first, other, sizeof first);
    ck_assert_int_eq(hvd_shuffle(-1, 0, 0, first), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_shuffle(3, 0, 0, NULL), HVD_ERR_ARGUMENT);
}

/* All 24 orders of four, about equally often. The seeds are fixed: chi-square
 * with 23 degrees of freedom is below 60 in all but 4 of 100,000 cases. */
TEST(shuffles_are_uniform)
{
    enum { ROUNDS = 24000 };
    int counts[256] = {0}, orders = 0;
    double chi = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t p[4];

        hvd_shuffle(4, 7, i, p);
        counts[p[0] * 64 + p[1] * 16 + p[2] * 4 + p[3]]++;
    }
    for (int i = 0; i < 256; i++) {
        if (counts[i] == 0)
            continue;
        orders++;
        chi += pow(counts[i] - ROUNDS / 24.0, 2) / (ROUNDS / 24.0);
    }
    ck_assert_int_eq(orders, 24);
    ck_assert_msg(chi < 60, "chi-square is %g", chi);
}

/* Against the textbook, in double, for 50 steps. */
TEST(optimizers_follow_the_textbook)
{
    enum { COUNT = 37 };

    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++) {
        hvd_strategy_options options;
        float value[COUNT], gradient[COUNT], states[2][COUNT] = {{0}};
        float *const pointers[] = {states[0], states[1]};
        double w[COUNT], m[COUNT] = {0}, v[COUNT] = {0};

        hvd_strategy_options_init(&options, sizeof options);
        options.optimizer = o;
        options.learning_rate = 0.02;
        options.beta1 = 0.8;
        options.beta2 = 0.95;
        for (int i = 0; i < COUNT; i++)
            w[i] = (double)(value[i] = (float)i / 16);
        for (int t = 1; t <= 50; t++) {
            for (int i = 0; i < COUNT; i++) {
                double g = (double)((i * 7 + t * 3) % 11 - 5) / 4;

                gradient[i] = (float)g;
                if (o == HVD_SGD)
                    w[i] -= 0.02 * g;
                else if (o == HVD_MOMENTUM) {
                    m[i] = 0.9 * m[i] + g;
                    w[i] -= 0.02 * m[i];
                } else if (o == HVD_ADAM) {
                    m[i] = 0.8 * m[i] + 0.2 * g;
                    v[i] = 0.95 * v[i] + 0.05 * g * g;
                    w[i] -= 0.02 * (m[i] / (1 - pow(0.8, t))) /
                            (sqrt(v[i] / (1 - pow(0.95, t))) + 1e-7);
                }
            }
            hvd__optimizer_apply(&options, t, value, gradient, pointers, COUNT);
            for (int i = 0; i < COUNT; i++)
                ck_assert_msg(fabs((double)value[i] - w[i]) < 5e-5,
                              "%s step %d: %.9g, not %.9g",
                              hvd_optimizer_name(o), t, (double)value[i], w[i]);
        }
    }
}

TEST(optimizers_have_names)
{
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++)
        ck_assert_int_eq(hvd_optimizer_from_name(hvd_optimizer_name(o)), o);
    ck_assert(hvd_optimizer_name(99) == NULL);
    ck_assert_int_eq(hvd_optimizer_from_name("adagrad"), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_optimizer_from_name(NULL), HVD_ERR_ARGUMENT);
}

TEST_MAIN("strategy_shard")
