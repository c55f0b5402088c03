/* SPDX-License-Identifier: Apache-2.0 */
/* Tests outfeeds of programs: elements come out while the device runs and
 * afterwards, readers wait, and several things end their waiting. */
#include <pthread.h>

#include "adder.h"
#include "device.h"
#include "feeds.h"
#include "suite.h"

/* The names by which tests know an element. */
static const char *const d_names[] = {"d1", "d2"};

TEST(the_last_value)
{
    const ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_LAST);
    int64_t shape[IPU_MAX_RESULT_DIMS];
    ipu_results *results;
    const void *data;
    struct adder a;

    adder_init(&a, 10, 0, &options);
    MUST_FAIL(ipu_outfeed_dequeue(a.outfeed, 0, &results), IPU_ERR_STATE,
              "there is no last value before a program has been run");
    MUST_FAIL(ipu_outfeed_next(a.outfeed, 0, &results), IPU_ERR_STATE,
              "cannot be iterated over");
    MUST(ipu_engine_run(a.d.engine));
    for (int i = 0; i < 2; i++) { /* it stays */
        MUST(ipu_outfeed_dequeue(a.outfeed, 0, &results));
        ck_assert_int_eq(ipu_results_tensor(results, NULL, NULL, shape, &data),
                         0);
        ck_assert_float_eq(*(const float *)data, 55);
        ipu_results_free(results);
    }
    adder_free(&a);
}

TEST(iterating_over_results)
{
    const ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    ipu_results *results;
    const void *data;
    struct adder a;
    float sum = 0;
    int n = 0, got;

    adder_init(&a, 10, 0, &options);
    MUST(ipu_engine_run(a.d.engine));
    while ((got = ipu_outfeed_next(a.outfeed, 0, &results)) > 0) {
        ck_assert_int_eq(ipu_results_tensor(results, "0", NULL, NULL, &data),
                         0);
        sum += *(const float *)data;
        n++;
        ipu_results_free(results);
    }
    ck_assert_int_eq(got, 0);
    ck_assert_int_eq(n, 10);
    ck_assert_float_eq(sum, 220); /* 1 + 3 + 6 + ... */
    adder_free(&a);
}

TEST(outfeeds_that_nobody_enqueues)
{
    ipu_outfeed *outfeed = outfeed_of(IPU_OUTFEED_ALL);
    ipu_results *results;

    MUST_FAIL(ipu_outfeed_dequeue(outfeed, 0, &results), IPU_ERR_STATE,
              "outfeed 'results' is dequeued, but no program enqueues into it");
    MUST_FAIL(ipu_outfeed_next(outfeed, -1, &results), IPU_ERR_STATE,
              "no program enqueues into it");
    MUST_FAIL(ipu_outfeed_delete(outfeed), IPU_ERR_NAME,
              "no program enqueues into it");
    ipu_outfeed_free(outfeed);
}

TEST(outfeeds_in_use)
{
    const ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    struct device other = device_new();
    ipu_tensor x;
    struct adder a;

    adder_init(&a, 2, 0, &options);
    MUST_FAIL(ipu_outfeed_delete(a.outfeed), IPU_ERR_STATE,
              "outfeed 'results' cannot be deleted while 1 engine uses it");
    x = device_floats(&other, "x", 1, SHAPE(3));
    MUST_FAIL(ipu_outfeed_enqueue(other.graph, a.outfeed, 1, NULL, &x),
              IPU_ERR_STATE, "with other names, dtypes or shapes");
    device_free(&other);
    adder_free(&a);
}

struct reader {
    ipu_outfeed *outfeed;
    int64_t wanted, seen, seen_before_the_end;
    atomic_int *running;
    int status;
};

static void *read_losses(void *argument)
{
    struct reader *r = argument;
    ipu_results *results;

    while (r->seen < r->wanted) {
        r->status = ipu_outfeed_next(r->outfeed, -1, &results);
        if (r->status < 0)
            break;
        ipu_results_free(results);
        r->seen++;
        r->seen_before_the_end += atomic_load(r->running);
    }
    return NULL;
}

/* The blocking outfeed keeps the program from ending before something has been
 * read. */
TEST(results_are_seen_while_it_runs)
{
    ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    atomic_int running = 1;
    struct reader reader = {.wanted = 100, .running = &running};
    pthread_t thread;
    struct adder a;

    options.blocking = 1;
    options.buffer_depth = 3;
    adder_init(&a, 100, 0, &options);
    reader.outfeed = a.outfeed;
    pthread_create(&thread, NULL, read_losses, &reader);
    MUST(ipu_engine_run(a.d.engine));
    atomic_store(&running, 0);
    pthread_join(thread, NULL);
    ck_assert_int_ge(reader.status, 0);
    ck_assert_int_eq(reader.seen, 100);
    /* The reader saw all elements before the end, except those in the queue and
     * the one just taken. */
    ck_assert_int_ge(reader.seen_before_the_end, 100 - 3 - 1);
    ck_assert_int_eq(ipu_outfeed_count(a.outfeed), 0);
    adder_free(&a);
}

static void *dequeue_and_wait(void *argument)
{
    struct reader *r = argument;
    ipu_results *results = NULL;

    /* The run begins some time. */
    while (ipu_outfeed_count(r->outfeed) == 0)
        sched_yield();
    r->status = ipu_outfeed_dequeue(r->outfeed, 1, &results);
    r->seen = ipu_results_count(results);
    ipu_results_free(results);
    return NULL;
}

/* Waiting for the end takes what comes meanwhile, so that a device that waits
 * for room is not waited for. */
TEST(dequeuing_waits_for_the_end)
{
    ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    struct reader reader = {0};
    pthread_t thread;
    struct adder a;

    options.blocking = 1;
    adder_init(&a, 100, 0, &options);
    reader.outfeed = a.outfeed;
    pthread_create(&thread, NULL, dequeue_and_wait, &reader);
    MUST(ipu_engine_run(a.d.engine));
    pthread_join(thread, NULL);
    MUST(reader.status);
    ck_assert_int_eq(reader.seen, 100);
    adder_free(&a);
}

TEST(nobody_reads_and_there_is_a_time_limit)
{
    ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    struct adder a;

    options.blocking = 1;
    options.buffer_depth = 4;
    options.timeout_seconds = 0.05;
    adder_init(&a, 10, 0, &options);
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_STATE,
              "repeat: iteration 4: outfeed 'results' is full: nobody has "
              "dequeued for 0.05 seconds");
    ck_assert_int_eq(ipu_outfeed_count(a.outfeed), 4);
    MUST(ipu_outfeed_clear(a.outfeed));
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_STATE, "is full");
    adder_free(&a);
}

TEST(nobody_reads_and_there_is_a_limit)
{
    ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    ipu_results *results;
    struct adder a;

    options.most_elements = 15;
    adder_init(&a, 10, 0, &options);
    MUST(ipu_engine_run(a.d.engine));
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_STATE,
              "nobody has dequeued the 15 elements it may keep");
    MUST(ipu_outfeed_dequeue(a.outfeed, 0, &results));
    ck_assert_int_eq(ipu_results_count(results), 15);
    ipu_results_free(results);
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_int_eq(ipu_outfeed_count(a.outfeed), 10);
    adder_free(&a);
}

static void *read_three_and_abort(void *argument)
{
    struct reader *r = argument;

    read_losses(r);
    ipu_outfeed_abort(r->outfeed);
    return NULL;
}

TEST(a_consumer_gives_up)
{
    ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    atomic_int running = 1;
    struct reader reader = {.wanted = 3, .running = &running};
    pthread_t thread;
    struct adder a;

    options.blocking = 1;
    adder_init(&a, 100, 0, &options);
    reader.outfeed = a.outfeed;
    pthread_create(&thread, NULL, read_three_and_abort, &reader);
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_STATE,
              "outfeed 'results' was aborted");
    pthread_join(thread, NULL);
    ck_assert_int_eq(reader.seen, 3);
    /* The next run begins as if nothing had been. */
    MUST(ipu_outfeed_clear(a.outfeed));
    reader = (struct reader){
        .outfeed = a.outfeed, .wanted = 100, .running = &running};
    pthread_create(&thread, NULL, read_losses, &reader);
    MUST(ipu_engine_run(a.d.engine));
    pthread_join(thread, NULL);
    ck_assert_int_eq(reader.seen, 100);
    adder_free(&a);
}

/* A thread that waits for a failing run gets its error. */
TEST(a_run_fails_while_someone_waits)
{
    const ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    atomic_int running = 1;
    struct reader reader = {.wanted = 100, .running = &running};
    pthread_t thread;
    struct adder a;

    adder_init(&a, 10, 7, &options);
    reader.outfeed = a.outfeed;
    pthread_create(&thread, NULL, read_losses, &reader);
    ck_assert_int_eq(ipu_engine_run(a.d.engine), IPU_ERR_END);
    pthread_join(thread, NULL);
    ck_assert_int_eq(reader.status, IPU_ERR_STATE);
    ck_assert_int_eq(reader.seen, 7);
    adder_free(&a);
}

/* Each run enqueues one element with an unused tensor. An enqueued variable has
 * its value from the beginning of the run. */
TEST(one_element_a_run)
{
    struct device d = device_new();
    struct source source = source_of(1, 1);
    ipu_infeed *infeed = infeed_of(&source, 2, 3);
    ipu_outfeed *outfeed = outfeed_of(IPU_OUTFEED_ALL);
    ipu_tensor x[2], given[2], w;
    ipu_results *results;
    const void *data;

    MUST(ipu_infeed_dequeue(d.graph, infeed, x));
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    given[0] = w;
    given[1] = x[0];
    MUST(ipu_outfeed_enqueue(d.graph, outfeed, 2, d_names, given));
    MUST(ipu_assign(d.graph, w, ipu_add(d.graph, w, x[0])));
    device_load(&d);
    MUST(ipu_infeed_start(infeed));
    for (int i = 0; i < 3; i++)
        MUST(ipu_engine_run(d.engine));
    MUST(ipu_outfeed_dequeue(outfeed, 0, &results));
    ck_assert_int_eq(ipu_results_count(results), 3);
    MUST(ipu_results_tensor(results, "d1", NULL, NULL, &data));
    ck_assert_float_eq(((const float *)data)[2], 0);
    ck_assert_float_eq(((const float *)data)[5], 1);
    ck_assert_float_eq(((const float *)data)[8], 3);
    MUST(ipu_results_tensor(results, "d2", NULL, NULL, &data));
    ck_assert_float_eq(((const float *)data)[8], 3);
    ipu_results_free(results);
    device_free(&d);
    ipu_infeed_free(infeed);
    ipu_outfeed_free(outfeed);
}

TEST(programs_enqueue_once)
{
    struct device d = device_new();
    ipu_outfeed *outfeed = outfeed_of(IPU_OUTFEED_ALL);
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3));

    MUST(ipu_outfeed_enqueue(d.graph, outfeed, 1, NULL, &x));
    MUST_FAIL(ipu_outfeed_enqueue(d.graph, outfeed, 1, NULL, &x), IPU_ERR_STATE,
              "an outfeed can be enqueued only once");
    ipu_graph_free(d.graph);
    d = device_new();
    x = device_floats(&d, "x", 1, SHAPE(0));
    MUST_FAIL(ipu_outfeed_enqueue(d.graph, outfeed, 1, NULL, &x), IPU_ERR_SHAPE,
              "dimension of size 0");
    ipu_graph_free(d.graph);
    ipu_outfeed_free(outfeed);
}

TEST_MAIN("device_streams_outfeeds")
