/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests replicated pipelines: elements go to the replicas in turn, gradients
 * are averaged once an update, and weights are then equal in all replicas, and
 * equal up to rounding to those of one program that has all elements.
 */
#include "suite.h"

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

/* Builds a stage that gives the replica's index in place of the rate, or a sum
 * over replicas. */
static int build_indexed(void *context, ipu_graph *graph, int32_t ninputs,
                         const ipu_tensor *inputs, ipu_tensor *outputs)
{
    int count = build_layers(context, graph, ninputs, inputs, outputs);
    ipu_tensor *rate = &outputs[count == 2];

    *rate = ipu_add(graph, *rate,
                    ipu_cast(graph, ipu_replica_index(graph), IPU_FLOAT32));
    return count;
}

static int build_sum(void *context, ipu_graph *graph, int32_t ninputs,
                     const ipu_tensor *inputs, ipu_tensor *outputs)
{
    int count = build_layers(context, graph, ninputs, inputs, outputs);

    outputs[0] = ipu_cross_replica_sum(graph, outputs[0], 0);
    return count;
}

static float rates[4];

static int take_rate(void *context, int32_t replica, int64_t mini_batch,
                     int32_t count, const void *const *outputs)
{
    (void)context, (void)mini_batch;
    ck_assert_int_eq(count, 2);
    memcpy(&rates[replica], outputs[1], sizeof *rates);
    return 0;
}

TEST(stages_know_which_replica_they_are_in)
{
    cut(2, 0);
    replicate(4);
    options.optimizer = NULL;
    options.sink = take_rate;
    stages[0].build = stages[1].build = build_indexed;
    start();
    MUST(ipu_pipeline_run(pipeline));
    for (int r = 0; r < 4; r++)
        ck_assert_float_eq_tol(rates[r], 0.05f + 2 * (float)r, 1e-6f);
    finish();
}

static int apply_mean(void *context, ipu_graph *graph, int32_t noutputs,
                      const ipu_tensor *outputs, int32_t count,
                      const ipu_tensor *variables, const ipu_tensor *gradients)
{
    ipu_tensor means[2 * LAYERS];

    MUST(ipu_cross_replica_gradients(graph, count, gradients, means));
    return apply(context, graph, noutputs, outputs, count, variables, means);
}

/* Sums over replicas are refused: each stage compiles for one replica, where
 * they would be sums of one. */
TEST(sums_over_replicas_are_refused)
{
    cut(2, 0);
    stages[1].build = build_sum;
    start(); /* with one replica, they are just that */
    ipu_pipeline_free(pipeline);
    pipeline = NULL;
    replicate(2);
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), IPU_ERR_ARGUMENT,
              "stage 1 has a sum over replicas, cross_replica:");
    stages[1].build = build_layers;
    options.optimizer = apply_mean;
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), IPU_ERR_ARGUMENT,
              "the optimizer has a sum over replicas");
    ipu_infeed_free(options.infeed);
}

/* The mean over replicas of sums is the sum of means. _i is schedule and 2 or 4
 * replicas. */
LOOP_TEST(replicas_of_a_pipeline_train_as_one_program, 0, 6)
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

TEST_MAIN("device_pipeline_replicas", .set_up = begin, .seconds = 120)
