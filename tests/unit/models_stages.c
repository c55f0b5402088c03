/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the partition of pieces into stages with all other partitions.
 */
#include "trainer/model_backend.h"

#include "networks/digit_networks.h"
#include "output/problem.h"
#include "suite.h"

#include <string.h>

enum { MOST_PIECES = 9 };

static int64_t work_of[MOST_PIECES];

static int64_t work(const struct model *model, int piece)
{
    (void)model;
    return work_of[piece];
}

static int64_t sum_of(int first, int end)
{
    int64_t sum = 0;

    for (int i = first; i < end; i++)
        sum += work_of[i];
    return sum;
}

/* Returns the smallest possible maximum of `count` stages, of pieces from
 * `first` on, by trying every first stage. */
static int64_t least(int first, int pieces, int count)
{
    int64_t best = INT64_MAX;

    if (count == 1)
        return sum_of(first, pieces);
    for (int end = first + 1; end <= pieces - (count - 1); end++) {
        int64_t rest = least(end, pieces, count - 1);
        int64_t mine = sum_of(first, end), most = mine > rest ? mine : rest;

        best = most < best ? most : best;
    }
    return best;
}

TEST(statistics_have_no_stages)
{
    const struct trainer_options options = {.partition = {.stages = 2},
                                            .optimizer = {.accumulate = 4}};
    struct backend *backend = NULL;
    struct model *model = NULL;

    ck_assert_int_eq(network_model(NETWORK_CNN_BN, 2, &model), 0);
    ck_assert_int_eq(
        stages_new(&(struct model_backend){.model = model, .options = &options},
                   &backend),
        PROBLEM);
    ck_assert_ptr_null(backend);
    ck_assert_ptr_nonnull(
        strstr(problem_text(), "stages: the network cnn-bn normalises"));
    model_free(model);
}

LOOP_TEST(the_fullest_stage_has_as_little_as_can_be, 0, 200)
{
    unsigned state = 1 + (unsigned)_i;
    struct model model = {.work = work};
    int first[MOST_PIECES + 1];

    model.pieces = 1 + _i % MOST_PIECES;
    for (int i = 0; i < model.pieces; i++) {
        state = state * 1103515245 + 12345;
        work_of[i] = (state >> 16) % (_i % 3 ? 100 : 3);
    }
    for (int count = 1; count <= model.pieces; count++) {
        int64_t most = 0;

        stages_partition(&model, count, first);
        ck_assert_int_eq(first[0], 0);
        ck_assert_int_eq(first[count], model.pieces);
        for (int i = 0; i < count; i++) {
            int64_t sum = sum_of(first[i], first[i + 1]);

            ck_assert_int_lt(first[i], first[i + 1]);
            most = sum > most ? sum : most;
        }
        ck_assert_int_eq(most, least(0, model.pieces, count));
    }
}

TEST(equal_layers_between_small_ends_are_shared_out)
{
    struct model model = {.work = work, .pieces = 6};
    int first[5];

    for (int i = 0; i < 6; i++)
        work_of[i] = i == 0 || i == 5 ? 1 : 100;
    stages_partition(&model, 4, first);
    ck_assert_int_eq(first[1], 2);
    ck_assert_int_eq(first[2], 3);
    ck_assert_int_eq(first[3], 4);
    stages_partition(&model, 2, first);
    ck_assert_int_eq(first[1], 3);
}

TEST_MAIN("models_stages")
