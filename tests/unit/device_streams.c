/* SPDX-License-Identifier: Apache-2.0 */
/* Tests infeeds of programs in loops and without: elements, the end of data,
 * failures and stops. */
#include <pthread.h>
#include <time.h>

#include "adder.h"
#include "device.h"
#include "feeds.h"
#include "suite.h"

/* The names by which tests know an element. */
static const char *const d_names[] = {"d1", "d2"};

/* The body: counter + 1; d1 = x1 + x2, d2 = x1 - x2 to the outfeed. */
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

TEST(ten_iterations_of_the_chapter)
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

TEST(elements_come_in_their_order)
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

/* The data ends in mid-run: variables and elements of the completed iterations
 * stay. After a restart everything is as it was. */
TEST(data_ends_in_mid_run)
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

TEST(sources_fail)
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

TEST(runs_before_the_start_and_after_a_stop)
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

TEST(runs_without_a_start)
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

/* Freed by its maker, a queue lives as long as what uses it; but it does not
 * run. */
TEST(queues_outlive_their_makers)
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

TEST(stopped_while_the_device_waits)
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

TEST(iterators_make_their_queues)
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

static int refused(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)g, (void)context, (void)ninputs, (void)in, (void)noutputs, (void)out;
    return 0;
}

TEST(what_programs_refuse_of_queues)
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

/* The host's cycles are those of each iteration's element. With I/O tiles they
 * overlap the rest, and the slower side counts. */
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

TEST(streams_cost_in_each_iteration)
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

TEST_MAIN("device_streams")
