/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelined.h - a pipeline of the layers of pipelines.h, and the same training
 * as one program, for tests:
 *
 *     begin();
 *     cut(4, 0);              4 stages; then change what differs in options
 *     start();                make it, with the first weights
 *     MUST(ipu_pipeline_run(pipeline));
 *     train_plain(...);
 *     expect_same_weights(0);
 *     finish();
 */
#ifndef HVD_TESTS_PIPELINED_H
#define HVD_TESTS_PIPELINED_H

#include "pipelines.h"

static struct layers cuts[LAYERS];
static ipu_stage stages[LAYERS];
static enum optimizer which;
static struct data data;
static ipu_pipeline_options options;
static ipu_pipeline *pipeline;
static struct plain plain;
static float losses[4096];
static int64_t nlosses;

static const ipu_feed_tensor rate_argument = {"rate", IPU_FLOAT32, 0, {0}};

static inline int take_loss(void *context, int32_t replica, int64_t mini_batch,
                            int32_t count, const void *const *outputs)
{
    (void)context, (void)replica;
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(mini_batch,
                     nlosses % (options.count * options.repeat_count));
    memcpy(&losses[nlosses++ % 4096], outputs[0], sizeof *losses);
    return 0;
}

static inline void begin(void)
{
    which = SGD;
    data = (struct data){0};
    nlosses = 0;
    pipeline = NULL;
}

/* Makes nstages stages of about as many layers each. */
static inline void cut(int nstages, int dropout)
{
    for (int i = 0; i < nstages; i++) {
        cuts[i].first = i * LAYERS / nstages;
        cuts[i].count = (i + 1) * LAYERS / nstages - cuts[i].first;
        cuts[i].dropout = dropout;
        stages[i] = (ipu_stage){
            .build = build_layers, .context = &cuts[i], .inputs = 3};
    }
    ipu_pipeline_options_init(&options, sizeof options);
    options.nstages = nstages;
    options.stages = stages;
    options.count = 2 * nstages;
    options.narguments = 1;
    options.arguments = &rate_argument;
    options.optimizer = apply;
    options.optimizer_context = &which;
    options.sink = take_loss;
    options.infeed = infeed_of(&data, 1);
}

static inline void start(void)
{
    float values[MOST_WIDTH * MOST_WIDTH], rate = 0.05f;
    char name[16];

    MUST(ipu_pipeline_new(&options, &pipeline));
    MUST(ipu_infeed_start(options.infeed));
    MUST(ipu_pipeline_argument(pipeline, "rate", &rate, sizeof rate));
    for (int i = 0; i < 2 * LAYERS; i++) {
        first_values(i, values);
        MUST(ipu_pipeline_write(pipeline, name_of(i, name), values,
                                (size_t)count_of(i) * 4));
    }
}

static inline void finish(void)
{
    ipu_pipeline_free(pipeline);
    pipeline = NULL;
    ipu_infeed_free(options.infeed);
}

/* Trains the plain program by the same updates, of count elements each. */
static inline void train_plain(int updates, int64_t count,
                               ipu_reduction reduction, int dropout)
{
    plain_new(&plain, which, dropout);
    plain.rate = 0.05f;
    for (int64_t i = 0; i < updates * count; i++) {
        int64_t n = i % count;

        plain_add(&plain, i,
                  reduction == IPU_REDUCTION_RUNNING_MEAN
                      ? (double)n / (double)(n + 1)
                      : 1,
                  reduction == IPU_REDUCTION_SUM    ? 1
                  : reduction == IPU_REDUCTION_MEAN ? 1 / (double)count
                                                    : 1 / (double)(n + 1));
        if (n == count - 1)
            plain_apply(&plain);
    }
}

static inline ipu_pipeline_stage_info stage_info(int stage)
{
    ipu_pipeline_stage_info info = {.size = sizeof info};

    MUST(ipu_pipeline_stage(pipeline, stage, &info));
    return info;
}

static inline ipu_pipeline_info run_info(void)
{
    ipu_pipeline_info info = {.size = sizeof info};

    MUST(ipu_pipeline_stats(pipeline, &info));
    return info;
}

static inline void expect_same_weights(float tolerance)
{
    float a[MOST_WIDTH * MOST_WIDTH], b[MOST_WIDTH * MOST_WIDTH];
    char name[16];

    for (int i = 0; i < 2 * LAYERS; i++) {
        size_t bytes = (size_t)count_of(i) * 4;

        MUST(ipu_pipeline_read(pipeline, 0, name_of(i, name), a, bytes));
        MUST(ipu_engine_read(plain.u.engine, name, b, bytes));
        for (int k = 0; k < count_of(i); k++)
            ck_assert_msg(fabsf(a[k] - b[k]) <= tolerance,
                          "%s[%d] is %.9g, of one program %.9g", name, k,
                          (double)a[k], (double)b[k]);
    }
}

/* Checks that the weights are those of one program after `updates` updates.
 * Each has the elements of `parts` parts, all replicas of all ranks, and its
 * sums are multiplied by `weight`. */
static inline void expect_training(int updates, int parts, double weight,
                                   float tolerance)
{
    int64_t per_update = options.count * parts;

    plain_new(&plain, which, 0);
    plain.rate = 0.05f;
    for (int64_t i = 0; i < updates * per_update; i++) {
        plain_add(&plain, i, 1, weight);
        if (i % per_update == per_update - 1)
            plain_apply(&plain);
    }
    expect_same_weights(tolerance);
    plain_free(&plain);
}

static inline void expect_same_replicas(void)
{
    float a[MOST_WIDTH * MOST_WIDTH], b[MOST_WIDTH * MOST_WIDTH];
    char name[16];

    for (int i = 0; i < 2 * LAYERS; i++)
        for (int r = 1; r < options.replicas; r++) {
            size_t bytes = (size_t)count_of(i) * 4;

            MUST(ipu_pipeline_read(pipeline, 0, name_of(i, name), a, bytes));
            MUST(ipu_pipeline_read(pipeline, r, name, b, bytes));
            ck_assert_mem_eq(a, b, bytes);
        }
}

/* -------------------------------------------------- optimisers that do more */

/* Applies an update with casts: gradients are not of their variables' dtype. */
static inline int apply_cast(void *context, ipu_graph *graph, int32_t noutputs,
                             const ipu_tensor *outputs, int32_t count,
                             const ipu_tensor *variables,
                             const ipu_tensor *gradients)
{
    ipu_tensor wide[2 * LAYERS];

    for (int32_t i = 0; i < count; i++)
        wide[i] = ipu_cast(graph, gradients[i], IPU_FLOAT32);
    return apply(context, graph, noutputs, outputs, count, variables, wide);
}

static int update_status; /* the status that the next callback returns */

static inline int update_call(void *context, const char *name, void *values,
                              int64_t count)
{
    (void)context, (void)name, (void)values, (void)count;
    return update_status;
}

/* Applies an update that calls the host in the middle. */
static inline int apply_calling(void *context, ipu_graph *graph,
                                int32_t noutputs, const ipu_tensor *outputs,
                                int32_t count, const ipu_tensor *variables,
                                const ipu_tensor *gradients)
{
    ipu_host_call(graph, "look", gradients[0], update_call, NULL);
    return apply(context, graph, noutputs, outputs, count, variables,
                 gradients);
}

#endif
