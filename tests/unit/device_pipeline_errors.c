/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests failures in the middle of a pipeline's run: their text, that nothing
 * hangs, and that afterwards everything is as the last update left it.
 */
#include "suite.h"

#include "pipelined.h"

static int fail_at;

static int stop_there(void *context, int32_t replica, int64_t mini_batch,
                      int32_t count, const void *const *outputs)
{
    (void)context, (void)replica, (void)count, (void)outputs;
    return mini_batch == fail_at ? -9 : 0;
}

static int host_call_fails(void *context, const char *name, void *values,
                           int64_t count)
{
    (void)context, (void)name, (void)values, (void)count;
    return fail_at-- == 0 ? -12 : 0;
}

/* Builds a stage whose host call may fail. */
static int build_calling(void *context, ipu_graph *graph, int32_t ninputs,
                         const ipu_tensor *inputs, ipu_tensor *outputs)
{
    int n = build_layers(context, graph, ninputs, inputs, outputs);

    ipu_host_call(graph, "look", outputs[1], host_call_fails, NULL);
    return n;
}

/* After the failure the pipeline goes on as if there had been none. */
static void expect_it_goes_on(void)
{
    MUST(ipu_infeed_stop(options.infeed));
    data = (struct data){0};
    fail_at = -1;
    MUST(ipu_infeed_start(options.infeed));
    for (int i = 0; i < 3; i++)
        MUST(ipu_pipeline_run(pipeline));
    train_plain(3, options.count, IPU_REDUCTION_SUM, 1);
    expect_same_weights(0);
    plain_free(&plain);
    finish();
}

LOOP_TEST(an_infeed_that_ends_is_named, 0, 3)
{
    cut(4, 1);
    data.end = 5;
    options.schedule = _i;
    options.sink = NULL;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END,
              "stage 0, mini-batch 5 of 8, after 0 of 1 updates");
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, "mini-batch 0");
    expect_it_goes_on();
}

TEST(an_infeed_that_fails_is_named)
{
    cut(4, 1);
    data.status = -33;
    options.sink = NULL;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK, "slot 0, stage 0");
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -33);
    expect_it_goes_on();
}

LOOP_TEST(a_host_call_that_fails_is_named, 0, 3)
{
    cut(4, 1);
    fail_at = 3;
    stages[2].build = build_calling;
    stages[2].name = "third";
    options.schedule = _i;
    options.sink = NULL;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK,
              "stage third, forwards, mini-batch 3");
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -12);
    expect_it_goes_on();
}

TEST(a_sink_that_fails_ends_the_run)
{
    cut(4, 1);
    fail_at = 2;
    options.sink = stop_there;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK,
              "the sink returned -9 for mini-batch 2");
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -9);
    expect_it_goes_on();
}

/* Nobody dequeues, and the queue has room for three. */
TEST(an_outfeed_that_nobody_reads_ends_the_run)
{
    ipu_outfeed_options o;

    cut(4, 1);
    ipu_outfeed_options_init(&o, sizeof o);
    o.name = "losses";
    o.most_elements = 3;
    options.sink = NULL;
    MUST(ipu_outfeed_new(&o, &options.outfeed));
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_STATE, "mini-batch 3");
    MUST(ipu_outfeed_clear(options.outfeed));
    MUST_FAIL(ipu_outfeed_delete(options.outfeed), IPU_ERR_STATE, "");
    ipu_pipeline_free(pipeline);
    ipu_infeed_free(options.infeed);
    MUST(ipu_outfeed_delete(options.outfeed));
}

struct optimized {
    int32_t count;
    const ipu_tensor *variables, *gradients;
};

/* Each iteration makes half of the step; the host looks at the first half. */
static int descend(ipu_graph *graph, void *context, int32_t ninputs,
                   const ipu_tensor *inputs, int32_t noutputs,
                   ipu_tensor *outputs)
{
    const struct optimized *o = context;
    ipu_tensor rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.01);

    (void)ninputs, (void)inputs, (void)noutputs, (void)outputs;
    for (int32_t i = 0; i < o->count; i++)
        MUST(ipu_sgd(graph, o->variables[i], o->gradients[i], rate, NULL));
    return ipu_host_call(graph, "look", rate, host_call_fails, NULL);
}

static int optimize_in_a_loop(void *context, ipu_graph *graph, int32_t noutputs,
                              const ipu_tensor *outputs, int32_t count,
                              const ipu_tensor *variables,
                              const ipu_tensor *gradients)
{
    struct optimized o = {count, variables, gradients};

    (void)context, (void)noutputs, (void)outputs;
    return ipu_repeat(graph, 2, descend, &o, 0, NULL, NULL, NULL);
}

/* The update of the third of four IPUs fails in its second iteration. */
TEST(an_update_that_fails_in_a_loop_is_taken_back)
{
    float before[MOST_WIDTH * MOST_WIDTH], after[MOST_WIDTH * MOST_WIDTH];
    char name[16];

    cut(4, 0);
    fail_at = 5;
    options.sink = NULL;
    options.threads = 1;
    options.optimizer = optimize_in_a_loop;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK,
              "the weight update on IPU");
    for (int i = 0; i < 2 * LAYERS; i++) {
        size_t bytes = (size_t)count_of(i) * 4;

        first_values(i, before);
        MUST(ipu_pipeline_read(pipeline, 0, name_of(i, name), after, bytes));
        ck_assert_mem_eq(before, after, bytes);
    }
    fail_at = -1;
    MUST(ipu_pipeline_run(pipeline));
    finish();
}

static int run_within(void *context, int32_t replica, int64_t mini_batch,
                      int32_t count, const void *const *outputs)
{
    (void)context, (void)replica, (void)mini_batch, (void)count, (void)outputs;
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_STATE, "is running");
    return 0;
}

TEST(a_sink_cannot_run_the_pipeline)
{
    cut(4, 0);
    options.sink = run_within;
    start();
    MUST(ipu_pipeline_run(pipeline));
    finish();
}

TEST_MAIN("device_pipeline_errors", .set_up = begin, .seconds = 60)
