/* SPDX-License-Identifier: Apache-2.0 */
/* Tests queues of replicated programs. Each replica takes its own elements and
 * gives its part, with threads and one after the other. After a stopped reader,
 * the end of the data, or a failure, all of it runs again. */
#include "suite.h"

#include <pthread.h>

#include "device.h"
#include "feeds.h"

enum { REPLICAS = 3, ITERATIONS = 10 };

/* The body: carried + x; x goes to the outfeed. */
static int add_up(ipu_graph *g, void *context, int32_t ninputs,
                  const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], in[1]);
    return ipu_outfeed_enqueue(g, context, 1, NULL, &in[1]);
}

struct fed {
    struct device d;
    struct source source;
    ipu_infeed *infeed;
    ipu_outfeed *outfeed;
    ipu_replicas *replicas;
};

static void fed_init_with(struct fed *f, int32_t threads,
                          ipu_outfeed_options out)
{
    ipu_feed_tensor tensors[2];
    ipu_infeed_options in;
    ipu_replicas_options options;
    ipu_tensor zero, total;

    *f = (struct fed){.d = device_new(), .source = source_of(0, 1)};
    in = infeed_options(&f->source, tensors, 1, 1);
    in.replicas = out.replicas = REPLICAS;
    MUST(ipu_infeed_new(&in, &f->infeed));
    MUST(ipu_outfeed_new(&out, &f->outfeed));
    zero = ipu_fill(f->d.graph, IPU_FLOAT32, 1, SHAPE(1), 0);
    MUST(ipu_repeat(f->d.graph, ITERATIONS, add_up, f->outfeed, 1, &zero,
                    f->infeed, &total));
    MUST(ipu_output(f->d.graph, "total",
                    ipu_cross_replica_sum(f->d.graph, total, 0)));
    MUST(ipu_compile(f->d.graph, NULL, &f->d.executable));
    ipu_replicas_options_init(&options, sizeof options);
    options.ipus = REPLICAS;
    options.threads = threads;
    MUST(ipu_replicas_new(f->d.executable, &options, &f->replicas));
}

static void fed_init(struct fed *f, int32_t threads)
{
    fed_init_with(f, threads, outfeed_options(IPU_OUTFEED_ALL));
}

static void fed_free(struct fed *f)
{
    ipu_replicas_free(f->replicas);
    device_free(&f->d);
    ipu_infeed_free(f->infeed);
    ipu_outfeed_free(f->outfeed);
}

static void check_fed(int32_t threads)
{
    enum { N = REPLICAS * ITERATIONS };
    int64_t shape[IPU_MAX_RESULT_DIMS];
    float totals[REPLICAS];
    ipu_results *results;
    const void *data;
    struct fed f;

    fed_init(&f, threads);
    MUST(ipu_replicas_connect(f.replicas, "total", totals, sizeof totals));
    MUST(ipu_infeed_start(f.infeed));
    MUST(ipu_replicas_run(f.replicas));
    for (int r = 0; r < REPLICAS; r++)
        ck_assert_float_eq(totals[r], (float)(N * (N - 1) / 2));
    MUST(ipu_outfeed_dequeue(f.outfeed, 1, &results));
    ck_assert_int_eq(ipu_results_tensor(results, "0", NULL, shape, &data), 3);
    ck_assert_int_eq(shape[0], ITERATIONS);
    ck_assert_int_eq(shape[1], REPLICAS);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(((const float *)data)[i], (float)i);
    ipu_results_free(results);
    fed_free(&f);
}

TEST(each_takes_its_elements)
{
    check_fed(1);
    check_fed(REPLICAS);
}

TEST(data_ends_for_one)
{
    struct fed f;

    fed_init(&f, 1);
    f.source.last = REPLICAS * ITERATIONS - 1;
    MUST(ipu_infeed_start(f.infeed));
    MUST_FAIL(ipu_replicas_run(f.replicas), IPU_ERR_END,
              "replica 2: repeat: iteration 9: the data of infeed 'data'");
    f.source.last = 0;
    MUST(ipu_outfeed_clear(f.outfeed));
    MUST(ipu_infeed_start(f.infeed));
    MUST(ipu_replicas_run(f.replicas));
    ck_assert_int_eq(ipu_outfeed_count(f.outfeed), ITERATIONS);
    fed_free(&f);
}

/* ----------------------------------------------------------------- failures */

/* The data from its beginning, nothing in the queue: all of it is there. */
static void expect_a_run(struct fed *f)
{
    float totals[REPLICAS];
    int n = REPLICAS * ITERATIONS;

    MUST(ipu_infeed_stop(f->infeed));
    MUST(ipu_outfeed_clear(f->outfeed));
    MUST(ipu_infeed_start(f->infeed));
    MUST(ipu_replicas_connect(f->replicas, "total", totals, sizeof totals));
    MUST(ipu_replicas_run(f->replicas));
    for (int r = 0; r < REPLICAS; r++)
        ck_assert_float_eq(totals[r], (float)(n * (n - 1) / 2));
    MUST(ipu_replicas_connect(f->replicas, "total", NULL, 0));
}

/* _i is the number of threads. */
LOOP_TEST(memory_for_what_nobody_reads_has_an_end, 1, REPLICAS + 1)
{
    ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_ALL);
    struct fed f;

    out.most_elements = ITERATIONS + 4;
    fed_init_with(&f, _i, out);
    MUST(ipu_infeed_start(f.infeed));
    MUST(ipu_replicas_run(f.replicas));
    MUST_FAIL(ipu_replicas_run(f.replicas), IPU_ERR_STATE,
              "nobody has dequeued the 14 elements");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "replica "));
    expect_a_run(&f);
    ck_assert_int_eq(ipu_outfeed_count(f.outfeed), ITERATIONS);
    fed_free(&f);
}

LOOP_TEST(a_device_does_not_wait_for_ever, 1, REPLICAS + 1)
{
    ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_ALL);
    struct fed f;

    out.blocking = 1;
    out.buffer_depth = ITERATIONS;
    out.timeout_seconds = 0.05;
    fed_init_with(&f, _i, out);
    MUST(ipu_infeed_start(f.infeed));
    MUST(ipu_replicas_run(f.replicas));
    MUST_FAIL(ipu_replicas_run(f.replicas), IPU_ERR_STATE,
              "nobody has dequeued for 0.05 seconds");
    expect_a_run(&f);
    fed_free(&f);
}

static atomic_int over; /* the run */

/* Takes two elements, then gives up. An abort is of the run that goes on, which
 * may not have begun yet: again, until it has ended. */
static void *read_two(void *context)
{
    ipu_outfeed *outfeed = context;
    ipu_results *results;

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ipu_outfeed_next(outfeed, -1, &results), 1);
        ipu_results_free(results);
    }
    while (!atomic_load(&over)) {
        ipu_outfeed_abort(outfeed);
        sched_yield();
    }
    return NULL;
}

LOOP_TEST(a_reader_that_gives_up_ends_the_run, 1, REPLICAS + 1)
{
    ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_ALL);
    pthread_t reader;
    struct fed f;

    out.blocking = 1;
    out.buffer_depth = ITERATIONS;
    fed_init_with(&f, _i, out);
    MUST(ipu_infeed_start(f.infeed));
    MUST(ipu_replicas_run(f.replicas));
    ck_assert_int_eq(pthread_create(&reader, NULL, read_two, f.outfeed), 0);
    MUST_FAIL(ipu_replicas_run(f.replicas), IPU_ERR_STATE, "was aborted");
    atomic_store(&over, 1);
    pthread_join(reader, NULL);
    expect_a_run(&f);
    fed_free(&f);
}

LOOP_TEST(data_that_fails_is_told, 1, REPLICAS + 1)
{
    struct fed f;

    fed_init(&f, _i);
    f.source.fail_at = 8;
    MUST(ipu_infeed_start(f.infeed));
    MUST_FAIL(ipu_replicas_run(f.replicas), IPU_ERR_CALLBACK, "replica ");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "'data'"));
    ck_assert_int_eq(ipu_replicas_callback_status(f.replicas), -5);
    MUST(ipu_infeed_stop(f.infeed));
    f.source.fail_at = 0;
    expect_a_run(&f);
    fed_free(&f);
}

LOOP_TEST(data_that_ends_is_told, 1, REPLICAS + 1)
{
    struct fed f;

    fed_init(&f, _i);
    f.source.last = REPLICAS * 4 + 1;
    MUST(ipu_infeed_start(f.infeed));
    MUST_FAIL(ipu_replicas_run(f.replicas), IPU_ERR_END,
              "the data of infeed 'data' has ended");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "replica "));
    MUST(ipu_infeed_stop(f.infeed));
    f.source.last = 0;
    expect_a_run(&f);
    fed_free(&f);
}

TEST(what_replicas_refuse)
{
    struct fed f;
    ipu_engine *engine;

    fed_init(&f, 1);
    MUST_FAIL(ipu_engine_new(f.d.executable, &engine), IPU_ERR_STATE,
              "has replication factor 3, the program 1");
    fed_free(&f);
}

TEST_MAIN("device_streams_replicas")
