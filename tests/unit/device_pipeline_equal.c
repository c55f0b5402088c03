/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests pipelines that recompute, offload, accumulate more, have replicas, or
 * all of it. They train to the same weights as the same network in one program,
 * with SGD, momentum and Adam. Every bit is equal, except with replicas, whose
 * rows are added in another order. They make 20 updates, or 100 if
 * HVD_TEST_FULL is set. device_pipeline.c compares pipelines without these
 * options.
 */
#include "suite.h"

#include "pipelined.h"

enum { PER_RUN = 10 };

static void recompute(void)
{
    options.recompute = 1;
}

static void recompute_in_turn(void)
{
    options.recompute = 1;
    options.recompute_mode = IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED;
}

static void recompute_sequential(void)
{
    options.recompute = 1;
    options.schedule = IPU_SCHEDULE_SEQUENTIAL;
}

static void recompute_interleaved(void)
{
    options.recompute = 1;
    options.schedule = IPU_SCHEDULE_INTERLEAVED;
}

static void offload_state(void)
{
    options.offload_state = IPU_OFFLOAD_ON;
}

static void offload_all(void)
{
    options.offload_state = IPU_OFFLOAD_ON;
    options.offload_activations = IPU_OFFLOAD_ON;
    options.offload_accumulators = IPU_OFFLOAD_ON;
    options.offload_weights = IPU_OFFLOAD_ON;
}

static void accumulate(void)
{
    options.count = 32;
    options.reduction = IPU_REDUCTION_MEAN;
}

static void share_an_ipu(void)
{
    static const int32_t mapping[] = {0, 0, 1, 1};

    options.device_mapping = mapping;
    options.nmappings = 4;
}

static void replicate(void)
{
    static ipu_system pod;

    pod.size = sizeof pod;
    MUST(ipu_system_find("Pod16", &pod));
    options.system = &pod;
    ipu_infeed_free(options.infeed);
    options.infeed = infeed_of(&data, 2);
    options.replicas = 2;
    options.sink = NULL;
}

static void all_of_it(void)
{
    replicate();
    recompute();
    offload_all();
    accumulate();
}

static const struct way {
    void (*set)(void);
    int exact; /* every bit */
} ways[] = {
    {recompute, 1},
    {recompute_in_turn, 1},
    {recompute_sequential, 1},
    {recompute_interleaved, 1},
    {offload_state, 1},
    {offload_all, 1},
    {accumulate, 1},
    {share_an_ipu, 1},
    {replicate, 0},
    {all_of_it, 0},
};

enum { WAYS = sizeof ways / sizeof *ways };

/* _i is optimizer, and way. */
LOOP_TEST(weights_are_those_of_one_program, 0, WAYS *OPTIMIZERS)
{
    const struct way *way = &ways[_i / OPTIMIZERS];
    float rate = 0.005f;
    int64_t runs = getenv("HVD_TEST_FULL") ? 10 : 2, elements;

    which = (enum optimizer)(_i % OPTIMIZERS);
    cut(4, 0);
    way->set();
    elements = options.count * options.replicas;
    options.repeat_count = PER_RUN;
    start();
    MUST(ipu_pipeline_argument(pipeline, "rate", &rate, sizeof rate));
    for (int64_t i = 0; i < runs; i++)
        MUST(ipu_pipeline_run(pipeline));
    plain_new(&plain, which, 0);
    plain.rate = rate;
    for (int64_t i = 0; i < runs * PER_RUN * elements; i++) {
        double weight =
            options.reduction == IPU_REDUCTION_MEAN ? (double)options.count : 1;

        plain_add(&plain, i, 1, 1 / (weight * options.replicas));
        if (i % elements == elements - 1)
            plain_apply(&plain);
    }
    expect_same_weights(way->exact ? 0 : 1e-4f);
    plain_free(&plain);
    finish();
}

TEST_MAIN("device_pipeline_equal", .set_up = begin, .seconds = 240)
