/* SPDX-License-Identifier: Apache-2.0 */
/* Shards, shuffles and optimisers: what needs no other rank. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "hvd_strategy.h"
#include "strategy/optimizer.h"
#include "suite.h"
#include "textbook.h"

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

static void follow_textbook(const hvd_strategy_options *options, bool spared)
{
    enum { COUNT = 37 };
    float value[COUNT], gradient[COUNT], states[3][COUNT] = {{0}};
    float *const pointers[] = {states[0], states[1], states[2]};
    double w[COUNT], kept[3][COUNT] = {{0}}, slope[COUNT], scratch[COUNT];
    const struct textbook book = {w, kept[0], kept[1], kept[2]};

    ck_assert_int_le(hvd__optimizer_states(options), 3);
    for (int i = 0; i < COUNT; i++)
        w[i] = (double)(value[i] = (float)i / 16);
    for (int t = 1; t <= 50; t++) {
        for (int i = 0; i < COUNT; i++)
            gradient[i] =
                (float)(slope[i] = (double)((i * 7 + t * 3) % 11 - 5) / 4);
        textbook_step(options, t, spared, &book, slope, scratch, COUNT);
        hvd__optimizer_apply(options, t, spared, value, gradient, pointers,
                             COUNT);
        for (int i = 0; i < COUNT; i++)
            ck_assert_msg(fabs((double)value[i] - w[i]) < 5e-5,
                          "%s step %d: %.9g, not %.9g",
                          hvd_optimizer_name(options->optimizer), t,
                          (double)value[i], w[i]);
    }
}

/* Against the textbook, in double, for 50 steps. _i: the optimiser; without and
 * with decay, and with decay of a variable that is spared. */
LOOP_TEST(optimizers_follow_the_textbook, 0, 3 * HVD_NUM_OPTIMIZERS)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    ck_assert_int_eq(hvd_strategy_options_set_optimizer(&options, _i / 3),
                     HVD_OK);
    options.learning_rate = 0.02;
    options.beta1 = 0.8;
    options.beta2 = 0.95;
    options.weight_decay = _i % 3 ? 0.1 : 0;
    follow_textbook(&options, _i % 3 == 2);
}

/* _i: with momentum, centred. */
LOOP_TEST(rmsprop_has_two_additions, 0, 4)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    hvd_strategy_options_set_optimizer(&options, HVD_RMSPROP);
    options.momentum = _i / 2 * 0.7;
    options.centered = _i % 2;
    options.epsilon = 1e-3;
    ck_assert_int_eq(hvd__optimizer_states(&options), 1 + _i / 2 + _i % 2);
    follow_textbook(&options, false);
}

TEST(each_optimizer_has_defaults)
{
    hvd_strategy_options options;

    hvd_strategy_options_init(&options, sizeof options);
    ck_assert_int_eq(options.optimizer, HVD_ADAM);
    ck_assert_double_eq(options.learning_rate, 0.001);
    ck_assert_double_eq(options.epsilon, 1e-7);
    options.serial = 1;
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++) {
        ck_assert_int_eq(hvd_strategy_options_set_optimizer(&options, o), 0);
        ck_assert_int_eq(options.optimizer, o);
        ck_assert_int_eq(hvd__optimizer_check(&options), 0);
        ck_assert_double_eq(options.weight_decay,
                            o == HVD_ADAMW || o == HVD_LAMB ? 0.01 : 0);
        ck_assert_double_eq(options.momentum, o == HVD_RMSPROP ? 0 : 0.9);
        ck_assert_double_eq(options.beta2, o == HVD_LION ? 0.99 : 0.999);
    }
    ck_assert_int_eq(options.serial, 1);
    ck_assert_int_eq(
        hvd_strategy_options_set_optimizer(&options, HVD_NUM_OPTIMIZERS),
        HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_strategy_options_set_optimizer(NULL, 0),
                     HVD_ERR_ARGUMENT);
    options.rho = 1;
    ck_assert_int_eq(hvd__optimizer_check(&options), HVD_ERR_ARGUMENT);
    options.rho = 0.9;
    options.weight_decay = -1;
    ck_assert_int_eq(hvd__optimizer_check(&options), HVD_ERR_ARGUMENT);
    options.weight_decay = 0;
    options.trust = NAN;
    ck_assert_int_eq(hvd__optimizer_check(&options), HVD_ERR_ARGUMENT);
    options.trust = 0;
    options.centered = 2;
    ck_assert_int_eq(hvd__optimizer_check(&options), HVD_ERR_ARGUMENT);
}

/* Programs that were compiled before there was more have shorter options. */
TEST(nothing_is_written_behind_shorter_options)
{
    hvd_strategy_options options;

    memset(&options, 7, sizeof options);
    options.size = offsetof(hvd_strategy_options, rho);
    ck_assert_int_eq(hvd_strategy_options_set_optimizer(&options, HVD_ADAM), 0);
    ck_assert_double_eq(options.beta2, 0.999);
    for (size_t i = options.size; i < sizeof options; i++)
        ck_assert_int_eq(((char *)&options)[i], 7);
}

TEST(optimizers_have_names)
{
    for (hvd_optimizer o = 0; o < HVD_NUM_OPTIMIZERS; o++)
        ck_assert_int_eq(hvd_optimizer_from_name(hvd_optimizer_name(o)), o);
    ck_assert(hvd_optimizer_name(99) == NULL);
    ck_assert_int_eq(hvd_optimizer_from_name("adamax"), HVD_ERR_ARGUMENT);
    ck_assert_int_eq(hvd_optimizer_from_name(NULL), HVD_ERR_ARGUMENT);
}

/* Subnormal numbers would make each later step slow. */
TEST(averages_of_gradients_that_stay_zero_end_at_zero)
{
    hvd_strategy_options options;
    float value[8] = {1}, gradient[8] = {0.5F, -0.5F}, states[2][8] = {{0}};
    float *const pointers[] = {states[0], states[1]};

    hvd_strategy_options_init(&options, sizeof options);
    hvd_strategy_options_set_optimizer(&options, HVD_ADAM);
    for (int t = 1; t <= 1000; t++) {
        hvd__optimizer_apply(&options, t, false, value, gradient, pointers, 8);
        memset(gradient, 0, sizeof gradient);
        ck_assert(states[0][0] >= FLT_MIN || states[0][0] <= 0);
        ck_assert(states[0][1] <= -FLT_MIN || states[0][1] >= 0);
    }
    ck_assert(states[0][0] <= 0 && states[0][1] >= 0);
    ck_assert(states[1][0] > 0.01F * 0.25F * 0.001F);
}

TEST_MAIN("strategy_shard")
