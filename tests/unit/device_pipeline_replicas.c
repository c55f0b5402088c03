/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replicated pipelines: elements go to the replicas in turn, gradients are
 * averaged once an update, weights are equal afterwards, and those of one
 * program that has all elements to rounding.
 */
#include "check_main.h"

#include "pipelined.h"

static int64_t seen[4][4096], nseen[4];

static int take_replicas(void *context, int32_t replica, int64_t mini_batch,
                         int32_t count, const void *const *outputs)
{
    (void)context, (void)outputs;
    ck_assert_int_eq(count, 2);
    seen[replica][nseen[replica]++] = mini_batch;
    return 0;
}

static void replicate(int replicas)
{
    static ipu_system pod;

    pod.size = sizeof pod;
    MUST(ipu_system_find("Pod16", &pod));
    options.system = &pod;
    ipu_infeed_free(options.infeed);
    options.infeed = infeed_of(&data, replicas);
    options.replicas = replicas;
    options.sink = take_replicas;
    memset(nseen, 0, sizeof nseen);
}

/* The mean over replicas of sums is the sum of means. Number: schedule and 2 or
 * 4 replicas. */
START_TEST(replicas_of_a_pipeline_train_as_one_program)
{
    int count = 2 << _i / 3, per_update;
    ipu_pipeline_info info = {.size = sizeof info};
    float a[MOST_WIDTH * MOST_WIDTH], b[MOST_WIDTH * MOST_WIDTH];
    char name[16];

    which = ADAM;
    cut(2, 0);
    replicate(count);
    options.schedule = _i % 3;
    per_update = (int)options.count * count;
    start();
    for (int i = 0; i < 30; i++)
        MUST(ipu_pipeline_run(pipeline));
    plain_new(&plain, which, 0);
    plain.rate = 0.05f;
    for (int64_t i = 0; i < 30 * per_update; i++) {
        plain_add(&plain, i, 1, 1 / (double)count);
        if (i % per_update == per_update - 1)
            plain_apply(&plain);
    }
    expect_same_weights(2e-4f);
    for (int i = 0; i < 2 * LAYERS; i++)
        for (int r = 1; r < count; r++) {
            size_t bytes = (size_t)count_of(i) * 4;

            MUST(ipu_pipeline_read(pipeline, 0, name_of(i, name), a, bytes));
            MUST(ipu_pipeline_read(pipeline, r, name, b, bytes));
            ck_assert_mem_eq(a, b, bytes);
        }
    MUST(ipu_pipeline_stats(pipeline, &info));
    ck_assert_int_eq(info.exchanges, 30 * 2 * LAYERS);
    ck_assert_int_eq(info.mini_batches, 30 * per_update);
    ck_assert_int_eq(info.ipus, 2 * count);
    ck_assert_int_gt(info.replica_bytes, 0);
    for (int r = 0; r < count; r++)
        ck_assert_int_eq(nseen[r], 30 * options.count);
    plain_free(&plain);
    finish();
}
END_TEST

static TCase *tcase_replicas(void)
{
    TCase *tcase = tcase_create("replicas");

    tcase_add_checked_fixture(tcase, begin, NULL);
    tcase_add_loop_test(tcase, replicas_of_a_pipeline_train_as_one_program, 0,
                        6);
    tcase_set_timeout(tcase, 120);
    return tcase;
}

HVD_TEST_MAIN("device_pipeline_replicas", tcase_replicas)
