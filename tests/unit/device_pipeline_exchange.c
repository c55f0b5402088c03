/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests pipelines whose gradients go to other processes. A gradient is given as
 * soon as it is complete, last stage first, while earlier stages still go
 * backwards, and it is waited for before the update. Failures are tested, too.
 * Threads, one a gradient, play the other process and double each gradient.
 */
#include "suite.h"

#include <pthread.h>

#include "pipelined.h"

enum { MOST = 2 * LAYERS };

/* A gradient that has been given and not yet come back. */
struct parcel {
    pthread_t thread;
    float *data;
    int64_t count;
};

static struct other {
    struct parcel parcels[MOST];
    int nparcels;
    int calls, waits,
        failures; /* calls of ready, of wait, and of wait for failed runs */
    int ready_fails_at, wait_fails_at; /* calls; 0: never */
    int position[MOST]; /* position of the gradient's stage, by the variable's
                           number */
    char reason[1024];
} other;

static void *double_it(void *argument)
{
    const struct parcel *p = argument;

    for (int64_t i = 0; i < p->count; i++)
        p->data[i] += p->data[i];
    return NULL;
}

/* Stages from the gradient's on have gone backwards with all mini-batches; each
 * earlier stage has done fewer, by the number of slots to come. */
static void expect_progress(int position, int64_t update)
{
    int64_t all = (update + 1) * options.count * options.replicas;

    for (int i = 0; i < options.nstages; i++) {
        int64_t done = stage_info(i).backward_executions, left;

        left = i >= position                              ? 0
               : options.schedule == IPU_SCHEDULE_GROUPED ? position - i
               : options.schedule == IPU_SCHEDULE_INTERLEAVED
                   ? (position - i + 1) / 2
                   : 1;
        ck_assert_int_eq(done, all - left * options.replicas);
    }
}

static int take_gradient(void *context, int32_t number, const char *variable,
                         float *values, int64_t count)
{
    struct other *o = context;
    struct parcel *p = &o->parcels[o->nparcels];

    ck_assert_str_eq(variable, ipu_pipeline_variable(pipeline, number));
    /* The numbers go from the last to 0, and again. */
    ck_assert_int_eq(number, MOST - 1 - o->nparcels);
    expect_progress(o->position[number], o->waits);
    if (++o->calls == o->ready_fails_at)
        return -4;
    p->data = values;
    p->count = count;
    ck_assert_int_eq(pthread_create(&p->thread, NULL, double_it, p), 0);
    o->nparcels++;
    return 0;
}

static int wait_for_all(void *context, int status)
{
    struct other *o = context;

    for (int i = 0; i < o->nparcels; i++)
        pthread_join(o->parcels[i].thread, NULL);
    if (status < 0) {
        o->failures++;
        snprintf(o->reason, sizeof o->reason, "%s", ipu_last_error());
    } else {
        ck_assert_int_eq(o->nparcels, MOST);
        o->waits++;
    }
    o->nparcels = 0;
    return status == 0 && o->waits == o->wait_fails_at ? -5 : 0;
}

static void exchange(int nstages, int replicas)
{
    static ipu_system pod;

    memset(&other, 0, sizeof other);
    cut(nstages, 0);
    pod.size = sizeof pod;
    MUST(ipu_system_find("Pod16", &pod));
    options.system = &pod;
    ipu_infeed_free(options.infeed);
    options.infeed = infeed_of(&data, replicas);
    options.replicas = replicas;
    options.sink = NULL;
    options.ready = take_gradient;
    options.wait = wait_for_all;
    options.exchange_context = &other;
    for (int i = 0; i < MOST; i++)
        for (int k = 0; k < nstages; k++)
            if (i / 2 >= cuts[k].first)
                other.position[i] = k;
}

/* Expects training by twice the mean over replicas of each update's sums. */
static void expect_doubled(int updates, float tolerance)
{
    expect_training(updates, options.replicas, 2.0 / options.replicas,
                    tolerance);
    expect_same_replicas();
}

/* _i is schedule; 2 and 4 stages; 1 to 3 replicas. */
LOOP_TEST(gradients_leave_as_stages_end, 0, 18)
{
    exchange(_i / 3 % 2 ? 4 : 2, 1 + _i / 6);
    options.schedule = _i % 3;
    start();
    for (int i = 0; i < 5; i++)
        MUST(ipu_pipeline_run(pipeline));
    ck_assert_int_eq(other.calls, 5 * MOST);
    ck_assert_int_eq(other.waits, 5);
    ck_assert_int_eq(other.failures, 0);
    /* The mean of replicas is rounded in another place. */
    expect_doubled(5, options.replicas == 1 ? 0 : 1e-4f);
    finish();
}

/* Any number of threads must give the same bits. */
LOOP_TEST(threads_change_no_bit, 1, 5)
{
    exchange(4, 1);
    options.threads = _i;
    options.repeat_count = 5;
    start();
    MUST(ipu_pipeline_run(pipeline));
    expect_doubled(5, 0);
    finish();
}

/* Halves go as float32, and come back rounded. */
static ipu_dtype all_half(void *context, const char *variable, ipu_dtype dtype)
{
    (void)context, (void)variable, (void)dtype;
    return IPU_FLOAT16;
}

TEST(halves_travel_as_floats)
{
    exchange(2, 2);
    options.accumulator_of = all_half;
    options.optimizer = apply_cast;
    start();
    for (int i = 0; i < 3; i++)
        MUST(ipu_pipeline_run(pipeline));
    expect_doubled(3, 2e-2f);
    finish();
}

/* ----------------------------------------------------- variables of several */

/* Both stages multiply with the same matrix. */
static int build_tied(void *context, ipu_graph *graph, int32_t ninputs,
                      const ipu_tensor *inputs, ipu_tensor *outputs)
{
    const int *last = context;
    ipu_tensor w = ipu_variable(graph, "tied", IPU_FLOAT32, 2, SHAPE(5, 5));
    ipu_tensor own =
        ipu_variable(graph, *last ? "b" : "a", IPU_FLOAT32, 1, SHAPE(5));
    ipu_tensor x = ipu_matmul(graph, inputs[1], w);

    (void)ninputs;
    x = ipu_tanh(graph, ipu_bias_add(graph, x, own));
    outputs[0] = *last ? ipu_reduce_sum(graph, x, 1) : inputs[0];
    outputs[1] = *last ? inputs[0] : x;
    outputs[2] = inputs[2];
    return *last ? 2 : 3;
}

static int note_gradient(void *context, int32_t number, const char *variable,
                         float *values, int64_t count)
{
    struct other *o = context;
    static const char *const order[] = {"b", "a", "tied"};

    (void)number, (void)values, (void)count;
    ck_assert_str_eq(variable, order[o->calls++ % 3]);
    ck_assert_int_eq(stage_info(0).backward_executions,
                     (o->waits + 1) * options.count - (variable[0] == 'b'));
    return 0;
}

static int note_wait(void *context, int status)
{
    struct other *o = context;

    ck_assert_int_eq(status, 0);
    o->waits++;
    return 0;
}

/* A variable of two stages is complete when the first of them is. */
TEST(a_shared_variable_is_given_once)
{
    static int sides[] = {0, 1};
    static const int32_t one_ipu[] = {0, 0};
    float values[25], rate = 0.05f;

    exchange(2, 1);
    for (int i = 0; i < 2; i++) {
        stages[i].build = build_tied;
        stages[i].context = &sides[i];
    }
    options.device_mapping = one_ipu;
    options.nmappings = 2;
    options.ready = note_gradient;
    options.wait = note_wait;
    MUST(ipu_pipeline_new(&options, &pipeline));
    MUST(ipu_infeed_start(options.infeed));
    MUST(ipu_pipeline_argument(pipeline, "rate", &rate, sizeof rate));
    device_fill(values, 25, 4);
    MUST(ipu_pipeline_write(pipeline, "tied", values, sizeof values));
    ck_assert_str_eq(ipu_pipeline_variable(pipeline, 0), "tied");
    ck_assert_str_eq(ipu_pipeline_variable(pipeline, 1), "a");
    ck_assert_str_eq(ipu_pipeline_variable(pipeline, 2), "b");
    ck_assert_ptr_null(ipu_pipeline_variable(pipeline, 3));
    ck_assert_ptr_null(ipu_pipeline_variable(pipeline, -1));
    for (int i = 0; i < 3; i++)
        MUST(ipu_pipeline_run(pipeline));
    ck_assert_int_eq(other.calls, 9);
    ck_assert_int_eq(other.waits, 3);
    finish();
}

/* ------------------------------------------------------------------- places */

static float places[2][MOST][MOST_WIDTH * MOST_WIDTH];

static int in_its_place(void *context, int32_t number, const char *variable,
                        float *values, int64_t count)
{
    ck_assert_ptr_eq(values, places[1][number]);
    return take_gradient(context, number, variable, values, count);
}

/* Weights and gradients lie in memory of the host. _i is the number of
 * replicas. */
LOOP_TEST(variables_live_where_they_are_placed, 1, 3)
{
    float values[MOST_WIDTH * MOST_WIDTH];
    char name[16], sum[32];

    exchange(4, _i);
    options.ready = in_its_place;
    start();
    for (int i = 0; i < MOST; i++) {
        size_t bytes = (size_t)count_of(i) * 4;

        MUST(ipu_pipeline_place(pipeline, name_of(i, name), places[0][i],
                                bytes));
        snprintf(sum, sizeof sum, "%s/accumulator", name);
        MUST(ipu_pipeline_place(pipeline, sum, places[1][i], bytes));
        first_values(i, values);
        ck_assert_mem_eq(places[0][i], values, bytes);
        /* The source is the placed memory itself. */
        MUST(ipu_pipeline_write(pipeline, name, places[0][i], bytes));
    }
    for (int i = 0; i < 5; i++)
        MUST(ipu_pipeline_run(pipeline));
    expect_doubled(5, _i == 1 ? 0 : 1e-4f);
    for (int i = 0; i < MOST; i++) {
        size_t bytes = (size_t)count_of(i) * 4;

        MUST(ipu_pipeline_read(pipeline, 0, name_of(i, name), values, bytes));
        ck_assert_mem_eq(places[0][i], values, bytes);
        /* The elements move back with the place. */
        MUST(ipu_pipeline_place(pipeline, name, NULL, 0));
        memset(places[0][i], 0x77, bytes);
        snprintf(sum, sizeof sum, "%s/accumulator", name);
        MUST(ipu_pipeline_place(pipeline, sum, NULL, 0));
    }
    expect_doubled(5, _i == 1 ? 0 : 1e-4f);
    finish();
}

static int place_within(void *context, int32_t number, const char *variable,
                        float *values, int64_t count)
{
    (void)context, (void)number, (void)count;
    MUST_FAIL(ipu_pipeline_place(pipeline, variable, values, 4), IPU_ERR_STATE,
              "is running");
    return 0;
}

TEST(places_are_checked)
{
    int64_t shape[IPU_MAX_DIMS];
    ipu_dtype dtype;
    float values[64];

    which = ADAM;
    exchange(2, 1);
    options.ready = place_within;
    options.wait = note_wait;
    start();
    MUST_FAIL(ipu_pipeline_place(pipeline, "w9", values, 4), IPU_ERR_NAME,
              "no variable 'w9'");
    MUST_FAIL(ipu_pipeline_place(pipeline, "b0", values, 4), IPU_ERR_SHAPE,
              "'b0' takes 28 bytes, not 4");
    MUST_FAIL(ipu_pipeline_place(pipeline, "b0", (char *)values + 1, 28),
              IPU_ERR_ARGUMENT, "'b0' cannot be placed at an address");
    MUST_FAIL(ipu_pipeline_place(pipeline, "updates", values, 4), IPU_ERR_STATE,
              "IPUs 0 and 1 have a variable 'updates' each");
    MUST_FAIL(ipu_pipeline_place(pipeline, NULL, values, 4), IPU_ERR_ARGUMENT,
              "pipeline: the name of a variable is NULL");
    MUST_FAIL(ipu_pipeline_place(NULL, "b0", values, 28), IPU_ERR_ARGUMENT,
              "the pipeline is NULL");
    ck_assert_int_eq(
        ipu_pipeline_variable_info(pipeline, "w1/accumulator", &dtype, shape),
        2);
    ck_assert_int_eq(dtype, IPU_FLOAT32);
    ck_assert_int_eq(shape[0], 7);
    ck_assert_int_eq(shape[1], 6);
    ck_assert_int_eq(ipu_pipeline_variable_info(pipeline, "b2", NULL, NULL), 1);
    MUST_FAIL(ipu_pipeline_variable_info(pipeline, "w9", NULL, NULL),
              IPU_ERR_NAME, "no variable 'w9'");
    MUST_FAIL(ipu_pipeline_variable_info(pipeline, NULL, NULL, NULL),
              IPU_ERR_ARGUMENT, "pipeline: the name of a variable is NULL");
    MUST(ipu_pipeline_run(pipeline));
    finish();
}

/* ----------------------------------------------------------------- failures */

LOOP_TEST(both_functions_are_needed, 0, 2)
{
    exchange(2, 1);
    if (_i)
        options.ready = NULL;
    else
        options.wait = NULL;
    MUST_FAIL(ipu_pipeline_new(&options, &pipeline), IPU_ERR_ARGUMENT,
              _i ? "ready is NULL, and wait is not"
                 : "wait is NULL, and ready is not");
    finish();
}

/* The pipeline goes on as if it had not failed, but for lost elements. */
static void expect_it_goes_on(void)
{
    MUST(ipu_infeed_stop(options.infeed));
    data = (struct data){0};
    MUST(ipu_infeed_start(options.infeed));
    other.calls = other.waits = other.ready_fails_at = other.wait_fails_at = 0;
    for (int i = 0; i < 3; i++)
        MUST(ipu_pipeline_run(pipeline));
    expect_doubled(3, options.replicas == 1 ? 0 : 1e-4f);
    finish();
}

/* Executions go on counting, so those of before a failure are not expected. */
static int plain_gradient(void *context, int32_t number, const char *variable,
                          float *values, int64_t count)
{
    struct other *o = context;
    struct parcel *p = &o->parcels[o->nparcels];

    (void)variable;
    ck_assert_int_eq(number, MOST - 1 - o->nparcels);
    if (++o->calls == o->ready_fails_at)
        return -4;
    *p = (struct parcel){.data = values, .count = count};
    ck_assert_int_eq(pthread_create(&p->thread, NULL, double_it, p), 0);
    o->nparcels++;
    return 0;
}

/* _i is the number of replicas. */
LOOP_TEST(a_gradient_that_is_not_taken_ends_the_run, 1, 3)
{
    exchange(4, _i);
    options.ready = plain_gradient;
    other.ready_fails_at = 7;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK,
              "the gradient of 'b4' is complete");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "returned -4"));
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -4);
    ck_assert_int_eq(other.failures, 1);
    ck_assert_ptr_nonnull(strstr(other.reason, "'b4'"));
    ck_assert_int_eq(other.waits, 0);
    expect_it_goes_on();
}

LOOP_TEST(a_wait_that_fails_ends_the_run, 1, 3)
{
    exchange(4, _i);
    options.ready = plain_gradient;
    other.wait_fails_at = 1;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK,
              "waiting for the gradients of other processes returned -5");
    ck_assert_int_eq(ipu_pipeline_callback_status(pipeline), -5);
    ck_assert_int_eq(other.failures, 0); /* it knows */
    expect_it_goes_on();
}

/* A run fails in the first update, or in the second, with one or two
 * replicas. */
LOOP_TEST(others_hear_of_a_run_that_fails, 0, 4)
{
    exchange(4, 1 + _i / 2);
    options.ready = plain_gradient;
    data.end = options.replicas * (1 + _i % 2 * options.count);
    options.repeat_count = 2;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, "mini-batch 1 of 8");
    ck_assert_int_eq(other.waits, _i % 2);
    ck_assert_int_eq(other.failures, 1);
    ck_assert_str_eq(other.reason, ipu_last_error());
    /* No gradient is on its way, and each run that fails says so once. */
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_END, "mini-batch 0");
    ck_assert_int_eq(other.failures, 2);
    finish();
}

/* The others have all gradients of this update by then, so only the next ones
 * will not come. */
LOOP_TEST(others_hear_of_an_update_that_fails, 1, 3)
{
    exchange(4, _i);
    options.ready = plain_gradient;
    options.optimizer = apply_calling;
    update_status = -12;
    start();
    MUST_FAIL(ipu_pipeline_run(pipeline), IPU_ERR_CALLBACK,
              "the weight update on IPU 0");
    ck_assert_int_eq(other.waits, 1);
    ck_assert_int_eq(other.failures, 1);
    ck_assert_ptr_nonnull(strstr(other.reason, "the weight update"));
    update_status = 0;
    expect_it_goes_on();
}

TEST_MAIN("device_pipeline_exchange", .set_up = begin, .seconds = 120)
