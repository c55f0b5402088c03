/* SPDX-License-Identifier: Apache-2.0 */
/* Queues in programs: elements in, elements out, in loops and without, while
 * the device runs and afterwards. */
#include <pthread.h>
#include <time.h>

#include "check_main.h"
#include "device.h"
#include "feeds.h"

/* The names by which tests know an element. */
static const char *const d_names[] = {"d1", "d2"};

/* ---------------------------------------------------- the chapter's program */

/* counter + 1; d1 = x1 + x2, d2 = x1 - x2 to the outfeed. */
static int sum_and_difference(ipu_graph *g, void *context, int32_t ninputs,
                              const ipu_tensor *in, int32_t noutputs,
                              ipu_tensor *out)
{
    ipu_tensor d[2];

    (void)noutputs;
    ck_assert_int_eq(ninputs, 3);
    d[0] = ipu_add(g, in[1], in[2]);
    d[1] = ipu_subtract(g, in[1], in[2]);
    out[0] = ipu_add(g, in[0], ipu_fill(g, IPU_INT32, 0, NULL, 1));
    return ipu_outfeed_enqueue(g, context, 2, d_names, d);
}

static void build_chapter(struct device *d, int64_t count, ipu_infeed *infeed,
                          ipu_outfeed *outfeed)
{
    ipu_tensor zero = ipu_fill(d->graph, IPU_INT32, 0, NULL, 0), counter;

    MUST(ipu_repeat(d->graph, count, sum_and_difference, outfeed, 1, &zero,
                    infeed, &counter));
    MUST(ipu_output(d->graph, "counter", counter));
    device_load(d);
}

static void check_all(const ipu_results *results, const char *name,
                      int64_t count, float value)
{
    int64_t shape[IPU_MAX_RESULT_DIMS];
    const void *data;
    ipu_dtype dtype;

    ck_assert_int_eq(ipu_results_tensor(results, name, &dtype, shape, &data),
                     2);
    ck_assert_int_eq(dtype, IPU_FLOAT32);
    ck_assert_int_eq(shape[0], count);
    ck_assert_int_eq(shape[1], 800);
    for (int64_t i = 0; i < count * 800; i++)
        ck_assert_float_eq(((const float *)data)[i], value);
}

START_TEST(ten_iterations_of_the_chapter)
{
    struct device d = device_new();
    struct source source = source_of(1, 0);
    ipu_infeed *infeed = infeed_of(&source, 2, 800);
    ipu_outfeed *outfeed = outfeed_of(IPU_OUTFEED_ALL);
    ipu_results *results;
    int32_t counter = -1;

    build_chapter(&d, 10, infeed, outfeed);
    device_connect(&d, "counter", &counter, 1);
    MUST(ipu_infeed_start(infeed));
    for (int run = 0; run < 2; run++) {
        MUST(ipu_engine_run(d.engine));
        ck_assert_int_eq(counter, 10);
        MUST(ipu_outfeed_dequeue(outfeed, 0, &results));
        ck_assert_int_eq(ipu_results_count(results), 10);
        check_all(results, "d1", 10, 2.0f);
        check_all(results, "d2", 10, 0.0f);
        MUST_FAIL(ipu_results_tensor(results, "d3", NULL, NULL, NULL),
                  IPU_ERR_NAME, "there is no tensor 'd3' in: 'd1', 'd2'");
        MUST_FAIL(ipu_results_tensor(results, NULL, NULL, NULL, NULL),
                  IPU_ERR_NAME, "'d1', 'd2'");
        ipu_results_free(results);
    }
    MUST(ipu_outfeed_dequeue(outfeed, 0, &results));
    ck_assert_int_eq(ipu_results_count(results), 0);
    ipu_results_free(results);
    device_free(&d);
    MUST(ipu_infeed_delete(infeed));
    MUST(ipu_outfeed_delete(outfeed));
    ck_assert_int_eq(source.closed, 1);
}
END_TEST

/* ------------------------------------------------------- adding up elements */

/* What the tests below run: total = total + x, w = w + x, x to the outfeed. */
struct adder {
    struct device d;
    struct source source;
    ipu_infeed *infeed;
    ipu_outfeed *outfeed;
    ipu_tensor w;
    float total;
};

static int add_up(ipu_graph *g, void *context, int32_t ninputs,
                  const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const struct adder *a = context;
    ipu_tensor x = ipu_reduce_sum(g, in[1], 1);

    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], x);
    MUST(ipu_assign(g, a->w, ipu_add(g, a->w, x)));
    return a->outfeed ? ipu_outfeed_enqueue(g, a->outfeed, 1, NULL, &out[0])
                      : 0;
}

/* Elements 1, 2, ... up to last (0: without end). */
static void adder_init(struct adder *a, int64_t count, int last,
                       const ipu_outfeed_options *options)
{
    ipu_tensor zero, total;

    *a = (struct adder){.d = device_new(), .source = source_of(1, 1)};
    a->source.last = last;
    a->infeed = infeed_of(&a->source, 1, 1);
    if (options)
        MUST(ipu_outfeed_new(options, &a->outfeed));
    a->w = ipu_variable(a->d.graph, "w", IPU_FLOAT32, 0, NULL);
    zero = ipu_fill(a->d.graph, IPU_FLOAT32, 0, NULL, 0);
    MUST(ipu_repeat(a->d.graph, count, add_up, a, 1, &zero, a->infeed, &total));
    MUST(ipu_output(a->d.graph, "total", total));
    device_load(&a->d);
    device_connect(&a->d, "total", &a->total, 1);
    MUST(ipu_infeed_start(a->infeed));
}

static float adder_w(struct adder *a)
{
    float w;

    MUST(ipu_engine_read(a->d.engine, "w", &w, sizeof w));
    return w;
}

static void adder_free(struct adder *a)
{
    device_free(&a->d);
    ipu_infeed_free(a->infeed);
    ipu_outfeed_free(a->outfeed);
    ck_assert_int_eq(a->source.closed, 1);
}

START_TEST(elements_come_in_their_order)
{
    struct adder a;

    adder_init(&a, 10, 0, NULL);
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_float_eq(a.total, 55);
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_float_eq(a.total, 155);
    ck_assert_float_eq(adder_w(&a), 210);
    adder_free(&a);
}
END_TEST

/* The data ends in mid-run: variables of the iterations that were completed
 * stay, and so do their elements. Started again, all is as it was. */
START_TEST(data_ends_in_mid_run)
{
    const ipu_outfeed_options options = outfeed_options(IPU_OUTFEED_ALL);
    ipu_results *results;
    struct adder a;

    adder_init(&a, 10, 7, &options);
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_END,
              "repeat: iteration 7: the data of infeed 'data' has ended");
    ck_assert_float_eq(adder_w(&a), 28);
    ck_assert_int_eq(ipu_outfeed_count(a.outfeed), 7);
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_END, "iteration 0");
    ck_assert_float_eq(adder_w(&a), 28);
    MUST(ipu_outfeed_clear(a.outfeed));
    a.source.last = 10;
    MUST(ipu_infeed_start(a.infeed));
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_float_eq(a.total, 55);
    ck_assert_float_eq(adder_w(&a), 28 + 55);
    MUST(ipu_outfeed_dequeue(a.outfeed, 1, &results));
    ck_assert_int_eq(ipu_results_count(results), 10);
    ipu_results_free(results);
    adder_free(&a);
}
END_TEST

START_TEST(sources_fail)
{
    struct adder a;

    adder_init(&a, 10, 0, NULL);
    MUST(ipu_infeed_stop(a.infeed));
    a.source.fail_at = 4;
    MUST(ipu_infeed_start(a.infeed));
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_CALLBACK,
              "the next function of its source returned -5");
    ck_assert_int_eq(ipu_engine_callback_status(a.d.engine), -5);
    ck_assert_float_eq(adder_w(&a), 1 + 2 + 3);
    a.source.fail_at = 0;
    MUST(ipu_infeed_start(a.infeed));
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_float_eq(a.total, 55);
    adder_free(&a);
}
END_TEST

START_TEST(runs_before_the_start_and_after_a_stop)
{
    struct adder a;

    adder_init(&a, 3, 0, NULL);
    MUST_FAIL(ipu_infeed_start(a.infeed), IPU_ERR_STATE,
              "infeed 'data' has been started: ipu_infeed_stop it first");
    MUST(ipu_infeed_stop(a.infeed));
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_STATE,
              "infeed 'data' has been stopped");
    MUST(ipu_infeed_start(a.infeed));
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_float_eq(a.total, 6);
    adder_free(&a);
}
END_TEST

START_TEST(runs_without_a_start)
{
    struct device d = device_new();
    struct source source = source_of(1, 0);
    ipu_infeed *infeed = infeed_of(&source, 1, 4);
    ipu_tensor x;
    float y[4];

    MUST(ipu_infeed_dequeue(d.graph, infeed, &x));
    MUST(ipu_output(d.graph, "y", x));
    device_load(&d);
    device_connect(&d, "y", y, 4);
    MUST_FAIL(ipu_engine_run(d.engine), IPU_ERR_STATE,
              "infeed 'data' has not been started: call ipu_infeed_start");
    MUST_FAIL(ipu_infeed_delete(infeed), IPU_ERR_NAME,
              "infeed 'data' cannot be deleted: it has never been started");
    MUST(ipu_infeed_start(infeed));
    MUST_FAIL(ipu_infeed_delete(infeed), IPU_ERR_STATE,
              "infeed 'data' cannot be deleted while 1 engine uses it");
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(y[3], 1);
    device_free(&d);
    MUST(ipu_infeed_delete(infeed));
}
END_TEST

/* Freed by its maker, a queue lives as long as what uses it; but it does not
 * run. */
START_TEST(queues_outlive_their_makers)
{
    struct adder a;
    ipu_engine *other;

    adder_init(&a, 3, 0, NULL);
    ipu_infeed_free(a.infeed);
    a.infeed = NULL;
    MUST_FAIL(ipu_engine_run(a.d.engine), IPU_ERR_STATE, "has been stopped");
    MUST_FAIL(ipu_engine_new(a.d.executable, &other), IPU_ERR_STATE,
              "infeed 'data' has been deleted");
    ck_assert_int_eq(a.source.closed, 0);
    adder_free(&a);
}
END_TEST

/* ----------------------------------------------------------------- outfeeds */

START_TEST(the_last_value)
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
END_TEST

START_TEST(iterating_over_results)
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
END_TEST

static int refused(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)g, (void)context, (void)ninputs, (void)in, (void)noutputs, (void)out;
    return 0;
}

START_TEST(outfeeds_that_nobody_enqueues)
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
END_TEST

START_TEST(outfeeds_in_use)
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
END_TEST

/* ------------------------------------------------------- while it still runs
 */

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

/* An outfeed by which the program cannot end before something has been read. */
START_TEST(results_are_seen_while_it_runs)
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
    /* All but what the queue can hold, and the one that has just been taken. */
    ck_assert_int_ge(reader.seen_before_the_end, 100 - 3 - 1);
    ck_assert_int_eq(ipu_outfeed_count(a.outfeed), 0);
    adder_free(&a);
}
END_TEST

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
START_TEST(dequeuing_waits_for_the_end)
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
END_TEST

/* ------------------------------------------- a consumer that stops reading */

START_TEST(nobody_reads_and_there_is_a_time_limit)
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
END_TEST

START_TEST(nobody_reads_and_there_is_a_limit)
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
END_TEST

static void *read_three_and_abort(void *argument)
{
    struct reader *r = argument;

    read_losses(r);
    ipu_outfeed_abort(r->outfeed);
    return NULL;
}

START_TEST(a_consumer_gives_up)
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
END_TEST

/* Who waits for a run that fails is told. */
START_TEST(a_run_fails_while_someone_waits)
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
END_TEST

/* A device that waits for its data is woken by a stop. */
static void *stop_after_a_while(void *argument)
{
    struct adder *a = argument;

    while (a->source.given < 3)
        sched_yield();
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&a->source.release, 1);
    MUST(ipu_infeed_stop(a->infeed));
    return NULL;
}

START_TEST(stopped_while_the_device_waits)
{
    pthread_t thread;
    struct adder a;
    int status;

    adder_init(&a, 10, 0, NULL);
    MUST(ipu_infeed_stop(a.infeed));
    atomic_store(&a.source.given, 0);
    a.source.block_at = 4;
    MUST(ipu_infeed_start(a.infeed));
    pthread_create(&thread, NULL, stop_after_a_while, &a);
    status = ipu_engine_run(a.d.engine);
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, IPU_ERR_STATE);
    a.source.block_at = 0;
    MUST(ipu_infeed_start(a.infeed));
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_float_eq(a.total, 55);
    adder_free(&a);
}
END_TEST

/* ------------------------------------------------------ without a loop; more
 */

/* One element a run; an unused tensor of it; what is enqueued of a variable is
 * what it was when the run began. */
START_TEST(one_element_a_run)
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
END_TEST

START_TEST(iterators_make_their_queues)
{
    struct adder a;
    struct source source = source_of(1, 1);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options options = infeed_options(&source, tensors, 1, 1);
    ipu_tensor zero, total;

    a = (struct adder){.d = device_new(), .source = source_of(1, 1)};
    options.name = NULL;
    MUST(ipu_iterator_new(&options, &a.infeed));
    a.w = ipu_variable(a.d.graph, "w", IPU_FLOAT32, 0, NULL);
    zero = ipu_fill(a.d.graph, IPU_FLOAT32, 0, NULL, 0);
    MUST(ipu_repeat(a.d.graph, 10, add_up, &a, 1, &zero, a.infeed, &total));
    MUST(ipu_output(a.d.graph, "total", total));
    device_load(&a.d);
    device_connect(&a.d, "total", &a.total, 1);
    MUST(ipu_engine_run(a.d.engine));
    ck_assert_float_eq(a.total, 55);
    device_free(&a.d);
    ipu_infeed_free(a.infeed);
    ck_assert_int_eq(source.closed, 1);
}
END_TEST

/* The host's cycles are those of each iteration's element; with I/O tiles they
 * go on beside the rest, and who is slower is what counts. */
static ipu_program_cycles cycles_with(int32_t io_tiles, int64_t count)
{
    struct device d = device_new();
    struct source source = source_of(1, 0);
    ipu_infeed *infeed = infeed_of(&source, 2, 800);
    ipu_outfeed *outfeed = outfeed_of(IPU_OUTFEED_ALL);
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_tensor zero = ipu_fill(d.graph, IPU_INT32, 0, NULL, 0), counter;
    ipu_target target;

    ipu_target_init(&target, sizeof target);
    target.io_tiles = io_tiles;
    target.tiles -= io_tiles;
    MUST(ipu_repeat(d.graph, count, sum_and_difference, outfeed, 1, &zero,
                    infeed, &counter));
    MUST(ipu_compile(d.graph, &target, &d.executable));
    MUST(ipu_executable_cycles(d.executable, &cycles));
    device_free(&d);
    ipu_infeed_free(infeed);
    ipu_outfeed_free(outfeed);
    return cycles;
}

START_TEST(streams_cost_in_each_iteration)
{
    ipu_program_cycles one = cycles_with(0, 1), ten = cycles_with(0, 10),
                       overlapped = cycles_with(32, 10);

    ck_assert_int_gt(one.host, 0);
    ck_assert_int_eq(ten.host, 10 * one.host);
    ck_assert_int_eq(ten.total,
                     ten.compute + ten.exchange + ten.sync + ten.host);
    ck_assert_int_eq(overlapped.host, ten.host);
    ck_assert_int_lt(overlapped.total, ten.total);
    ck_assert_int_ge(overlapped.total, overlapped.host);
}
END_TEST

START_TEST(what_programs_refuse_of_queues)
{
    struct device d = device_new();
    struct source source = source_of(1, 0), second = source_of(1, 0);
    ipu_infeed *infeed = infeed_of(&source, 1, 4), *same;
    ipu_feed_tensor tensors[2];
    ipu_infeed_options options = infeed_options(&second, tensors, 1, 4);
    ipu_tensor x;

    MUST(ipu_infeed_dequeue(d.graph, infeed, &x));
    MUST_FAIL(ipu_infeed_dequeue(d.graph, infeed, &x), IPU_ERR_STATE,
              "an infeed is dequeued once");
    ipu_graph_free(d.graph);
    for (options.replicas = 1; options.replicas <= 2; options.replicas++) {
        d = device_new();
        MUST(ipu_infeed_new(&options, &same));
        MUST(ipu_infeed_dequeue(d.graph, infeed, &x));
        if (options.replicas == 1)
            MUST_FAIL(ipu_infeed_dequeue(d.graph, same, &x), IPU_ERR_NAME,
                      "another infeed of this program has that name");
        else
            MUST_FAIL(ipu_infeed_dequeue(d.graph, same, &x), IPU_ERR_STATE,
                      "with replication factor 1, not 2");
        ipu_infeed_free(same);
        ipu_graph_free(d.graph);
    }
    d = device_new();
    MUST_FAIL(ipu_repeat(d.graph, 2, refused, NULL, 0, NULL, infeed, NULL),
              IPU_ERR_STATE, "the infeed queue 'data' has not been dequeued");
    ipu_graph_free(d.graph);
    ipu_infeed_free(infeed);
}
END_TEST

START_TEST(programs_enqueue_once)
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
END_TEST

static TCase *tcase_infeeds(void)
{
    TCase *t = tcase_create("infeeds");

    tcase_add_test(t, ten_iterations_of_the_chapter);
    tcase_add_test(t, elements_come_in_their_order);
    tcase_add_test(t, data_ends_in_mid_run);
    tcase_add_test(t, sources_fail);
    tcase_add_test(t, runs_before_the_start_and_after_a_stop);
    tcase_add_test(t, runs_without_a_start);
    tcase_add_test(t, queues_outlive_their_makers);
    tcase_add_test(t, stopped_while_the_device_waits);
    tcase_add_test(t, iterators_make_their_queues);
    tcase_add_test(t, what_programs_refuse_of_queues);
    return t;
}

static TCase *tcase_outfeeds(void)
{
    TCase *t = tcase_create("outfeeds");

    tcase_add_test(t, the_last_value);
    tcase_add_test(t, iterating_over_results);
    tcase_add_test(t, outfeeds_that_nobody_enqueues);
    tcase_add_test(t, outfeeds_in_use);
    tcase_add_test(t, one_element_a_run);
    tcase_add_test(t, programs_enqueue_once);
    tcase_add_test(t, streams_cost_in_each_iteration);
    return t;
}

static TCase *tcase_threads(void)
{
    TCase *t = tcase_create("threads");

    tcase_add_test(t, results_are_seen_while_it_runs);
    tcase_add_test(t, dequeuing_waits_for_the_end);
    tcase_add_test(t, nobody_reads_and_there_is_a_time_limit);
    tcase_add_test(t, nobody_reads_and_there_is_a_limit);
    tcase_add_test(t, a_consumer_gives_up);
    tcase_add_test(t, a_run_fails_while_someone_waits);
    return t;
}

HVD_TEST_MAIN("device_streams", tcase_infeeds, tcase_outfeeds, tcase_threads)
