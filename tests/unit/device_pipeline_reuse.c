/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests failures of pipelines with replicas: a consumer that stops reading,
 * data that ends in the middle of a round of replicas, a callback of one
 * replica, stages that do not fit together. The text says where, no thread
 * hangs, all replicas are as the last update left them, and the same queues
 * serve the next run, or another pipeline, as if nothing had failed. _i is 1 to
 * 3 replicas, and 1 to 3 threads.
 */
#include "suite.h"

#include <pthread.h>

#include "pipelined.h"

enum { CASES = 9, RUNS = 3 };

static ipu_outfeed *losses_of;

static int replicas_of(int number)
{
    return 1 + number % 3;
}

static void replicate(int number, int dropout)
{
    static ipu_system pod;

    cut(4, dropout);
    pod.size = sizeof pod;
    MUST(ipu_system_find("Pod16", &pod));
    options.system = &pod;
    ipu_infeed_free(options.infeed);
    options.replicas = replicas_of(number);
    options.infeed = infeed_of(&data, options.replicas);
    options.threads = 1 + number / 3;
    options.sink = NULL;
    losses_of = NULL;
}

static void with_outfeed(const ipu_outfeed_options *given)
{
    static const char *const names[] = {"loss", "rate"};
    ipu_outfeed_options o = *given;

    o.name = "losses";
    o.replicas = options.replicas;
    MUST(ipu_outfeed_new(&o, &losses_of));
    options.outfeed = losses_of;
    options.outfeed_names = names;
    options.noutfeed_names = 2;
}

static ipu_outfeed_options plain_outfeed(void)
{
    ipu_outfeed_options o;

    ipu_outfeed_options_init(&o, sizeof o);
    return o;
}

/* Checks that replicas train to their mean. */
static void expect_mean(int updates)
{
    expect_training(updates, options.replicas, 1.0 / options.replicas,
                    options.replicas == 1 ? 0 : 1e-4f);
    expect_same_replicas();
}

/* Checks that the results have all elements of the last run, and of no
 * other. */
static void expect_losses(int64_t elements)
{
    int64_t shape[IPU_MAX_RESULT_DIMS];
    ipu_results *results = NULL;
    const void *values;

    MUST(ipu_outfeed_dequeue(losses_of, 0, &results));
    ck_assert_int_eq(ipu_results_count(results), elements);
    MUST(ipu_results_tensor(results, "loss", NULL, shape, &values));
    ck_assert_int_eq(shape[0], elements);
    if (options.replicas > 1)
        ck_assert_int_eq(shape[1], options.replicas);
    for (int64_t i = 0; i < elements * options.replicas; i++)
        ck_assert(((const float *)values)[i] > 0);
    ipu_results_free(results);
}

static void restart_data(void)
{
    MUST(ipu_infeed_stop(options.infeed));
    data = (struct data){0};
    MUST(ipu_infeed_start(options.infeed));
}

/* After the failure the pipeline goes on as if there had been none. */
static void expect_it_goes_on(void)
{
    restart_data();
    if (losses_of)
        MUST(ipu_outfeed_clear(losses_of));
    for (int i = 0; i < RUNS; i++) {
        MUST(ipu_pipeline_run(pipeline));
        if (losses_of)
            expect_losses(options.count);
    }
    expect_mean(RUNS);
    finish();
    ipu_outfeed_free(losses_of);
}

/* ---------------------------------------------- consumers that stop reading */

LOOP_TEST(memory_for_what_nobody_reads_has_an_end, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();

    replicate(_i, 0);
    o.most_elements = options.count + 2;
    with_outfeed(&o);
    start();
    MUST(ipu_pipeline_run(pipeline));
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_STATE,
              "stage 3, mini-batch 2, replica ");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "losses"));
    MUST(ipu_outfeed_clear(losses_of));
    /* The update before it stays. */
    expect_mean(1);
    restart_data();
    for (int i = 0; i < 2 * LAYERS; i++) {
        float values[MOST_WIDTH * MOST_WIDTH];
        char name[16];

        first_values(i, values);
        MUST(ipu_pipeline_write(pipeline, name_of(i, name), values,
                                (size_t)count_of(i) * 4));
    }
    expect_it_goes_on();
}

LOOP_TEST(a_device_does_not_wait_for_ever, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();

    replicate(_i, 0);
    o.blocking = 1;
    o.buffer_depth = 3;
    o.timeout_seconds = 0.05;
    with_outfeed(&o);
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_STATE,
              "stage 3, mini-batch 3, replica ");
    MUST(ipu_outfeed_clear(losses_of));
    finish();
    ipu_outfeed_free(losses_of);
}

/* Takes some elements, then no more. */
static void *read_some(void *context)
{
    ipu_results *results = NULL;

    for (int i = 0; i < *(const int *)context; i++) {
        ck_assert_int_eq(ipu_outfeed_next(losses_of, -1, &results), 1);
        ipu_results_free(results);
    }
    ipu_outfeed_abort(losses_of);
    return NULL;
}

/* Takes them all. */
static void *read_all(void *context)
{
    ipu_results *results = NULL;

    for (int i = 0; i < *(const int *)context; i++) {
        if (ipu_outfeed_next(losses_of, -1, &results) != 1)
            return losses_of;
        ipu_results_free(results);
    }
    return NULL;
}

LOOP_TEST(a_reader_that_gives_up_ends_the_run, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();
    int some = 2, all;
    pthread_t thread;
    void *failed;

    replicate(_i, 0);
    o.blocking = 1;
    with_outfeed(&o);
    start();
    ck_assert_int_eq(pthread_create(&thread, NULL, read_some, &some), 0);
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_STATE, "stage 3, mini-batch");
    pthread_join(thread, NULL);
    MUST(ipu_outfeed_clear(losses_of));
    restart_data();
    all = RUNS * (int)options.count;
    ck_assert_int_eq(pthread_create(&thread, NULL, read_all, &all), 0);
    for (int i = 0; i < RUNS; i++)
        MUST(ipu_pipeline_run(pipeline));
    pthread_join(thread, &failed);
    ck_assert_ptr_null(failed);
    expect_mean(RUNS);
    finish();
    ipu_outfeed_free(losses_of);
}

/* Whoever waits for an element hears that the run has failed. */
static void *read_until_failure(void *context)
{
    ipu_results *results = NULL;
    int64_t *taken = context;

    while (ipu_outfeed_next(losses_of, -1, &results) == 1) {
        ipu_results_free(results);
        ++*taken;
    }
    return NULL;
}

LOOP_TEST(readers_hear_of_a_run_that_fails, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();
    int64_t taken = 0;
    pthread_t thread;

    replicate(_i, 0);
    o.blocking = 1;
    with_outfeed(&o);
    data.end = 6 * options.replicas;
    start();
    ck_assert_int_eq(pthread_create(&thread, NULL, read_until_failure, &taken),
                     0);
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, "mini-batch 6 of 8");
    pthread_join(thread, NULL);
    /* The mini-batches that had left the last stage by then are there. */
    ck_assert_int_eq(taken, 6 - 3);
    MUST(ipu_outfeed_clear(losses_of));
    finish();
    ipu_outfeed_free(losses_of);
}

/* ------------------------------------------------------------- the data set */

/* The data ends in the middle of a mini-batch of all replicas, and of the
 * second update. */
LOOP_TEST(data_that_ends_is_told, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();
    char text[96];

    replicate(_i, 0);
    with_outfeed(&o);
    data.end = options.replicas * (options.count + 2) + options.replicas - 1;
    options.repeat_count = 2;
    start();
    snprintf(text, sizeof text,
             "slot 2, stage 0, mini-batch 2 of %d, after 1 of 2 updates: the "
             "data of infeed 'data' has ended",
             (int)options.count);
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, text);
    expect_mean(1);
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, "slot 0, stage 0");
    expect_mean(1);
    finish();
    ipu_outfeed_free(losses_of);
}

LOOP_TEST(data_that_ends_may_begin_anew, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();

    replicate(_i, 0);
    with_outfeed(&o);
    data.end = 2 * options.replicas + options.replicas / 2;
    options.schedule = _i % IPU_NUM_SCHEDULES;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, "mini-batch 2 of 8");
    expect_it_goes_on();
}

LOOP_TEST(data_that_fails_is_told, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();

    replicate(_i, 0);
    with_outfeed(&o);
    data.status = -33;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK, "slot 0, stage 0");
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -33);
    expect_it_goes_on();
}

/* ---------------------------------------------------------------- callbacks */

/* Counts calls of all replicas together; one of them fails. */
static _Atomic int calls, fails_at;

static int host_call(void *context, const char *name, void *values,
                     int64_t count)
{
    (void)context, (void)name, (void)values, (void)count;
    return calls++ == fails_at ? -12 : 0;
}

static int build_calling(void *context, ipu_graph *graph, int32_t ninputs,
                         const ipu_tensor *inputs, ipu_tensor *outputs)
{
    int n = build_layers(context, graph, ninputs, inputs, outputs);

    ipu_host_call(graph, "look", outputs[1], host_call, NULL);
    return n;
}

LOOP_TEST(a_host_call_of_one_replica_ends_all, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();

    replicate(_i, 0);
    with_outfeed(&o);
    options.schedule = _i % IPU_NUM_SCHEDULES;
    stages[2].build = build_calling;
    stages[2].name = "third";
    calls = 0;
    fails_at = 4 * options.replicas + options.replicas - 1;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK,
              "stage third, forwards, mini-batch 4, replica");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "'look' returned -12"));
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -12);
    fails_at = -1;
    expect_it_goes_on();
}

static int stops_at;

static int sink(void *context, int32_t replica, int64_t mini_batch,
                int32_t count, const void *const *outputs)
{
    (void)context, (void)count, (void)outputs;
    return mini_batch == stops_at && replica == options.replicas - 1 ? -9 : 0;
}

LOOP_TEST(a_sink_that_stops_for_one_replica_ends_all, 0, CASES)
{
    char text[64];

    replicate(_i, 0);
    options.sink = sink;
    stops_at = _i % 8;
    start();
    snprintf(text, sizeof text,
             "the sink returned -9 for mini-batch %d, replica %d", stops_at,
             (int)options.replicas - 1);
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK, text);
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -9);
    stops_at = -1;
    expect_it_goes_on();
}

/* Gives one element, so one replica, a label that is no class. */
static int next_wrong(void *context, void *const *buffers)
{
    struct data *own = context;
    int64_t number = own->next;
    int status = next_element(own, buffers);

    if (number == fails_at)
        ((int32_t *)buffers[1])[1] = CLASSES;
    return status;
}

LOOP_TEST(a_wrong_element_is_told, 0, CASES)
{
    ipu_infeed_options o;
    const ipu_feed_tensor tensors[] = {
        {"x", IPU_FLOAT32, 2, {ROWS, FEATURES}},
        {"labels", IPU_INT32, 1, {ROWS}},
    };
    char text[80];

    replicate(_i, 0);
    ipu_infeed_free(options.infeed);
    ipu_infeed_options_init(&o, sizeof o);
    o.name = "data";
    o.ntensors = 2;
    o.tensors = tensors;
    o.replicas = options.replicas;
    o.source.next = next_wrong;
    o.source.context = &data;
    MUST(ipu_infeed_new(&o, &options.infeed));
    fails_at = 5 * options.replicas + options.replicas - 1;
    start();
    snprintf(text, sizeof text, "stage 3, forwards, mini-batch 5, replica %d: ",
             (int)options.replicas - 1);
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_DATA, text);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "3"));
    fails_at = -1;
    expect_it_goes_on();
}

/* ------------------------------------------------- stages that do not fit */

static int build_wrong_shapes(void *context, ipu_graph *graph, int32_t ninputs,
                              const ipu_tensor *inputs, ipu_tensor *outputs)
{
    ipu_tensor w = ipu_variable(graph, "w", IPU_FLOAT32, 2, SHAPE(99, 3));

    (void)context, (void)ninputs;
    outputs[0] = inputs[0];
    outputs[1] = ipu_matmul(graph, inputs[1], w);
    outputs[2] = inputs[2];
    return 3;
}

/* The queues were not taken, and serve one that is right. */
LOOP_TEST(shapes_that_differ_leave_the_queues_alone, 0, 3)
{
    ipu_outfeed_options o = plain_outfeed();

    replicate(_i, 0);
    with_outfeed(&o);
    stages[1].build = build_wrong_shapes;
    stages[1].name = "body";
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), IPU_ERR_SHAPE,
              "stage body: ");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "99"));
    ck_assert_ptr_null(pipeline);
    stages[1].build = build_layers;
    stages[2].inputs = 4;
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), IPU_ERR_SHAPE,
              "stage 2 takes 4 inputs, but stage body before it gives 3");
    stages[2].inputs = 3;
    start();
    for (int i = 0; i < RUNS; i++) {
        MUST(ipu_pipeline_run(pipeline));
        expect_losses(options.count);
    }
    expect_mean(RUNS);
    finish();
    ipu_outfeed_free(losses_of);
}

/* A second pipeline takes over where the first has failed. */
LOOP_TEST(queues_serve_another_pipeline, 0, CASES)
{
    ipu_outfeed_options o = plain_outfeed();

    replicate(_i, 0);
    with_outfeed(&o);
    data.end = options.replicas;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, "mini-batch 1");
    ipu_pipeline_free(pipeline);
    pipeline = NULL;
    MUST(ipu_infeed_stop(options.infeed));
    data = (struct data){0};
    start();
    expect_it_goes_on();
}

TEST_MAIN("device_pipeline_reuse", .set_up = begin, .seconds = 120)
