/* SPDX-License-Identifier: Apache-2.0 */
/* Tests queues by themselves: refusals, replicas, and the measured speed of a
 * data set. */
#include <jansson.h>
#include <pthread.h>
#include <time.h>

#include "device.h"
#include "feeds.h"
#include "streams/streams.h"
#include "suite.h"

/* ------------------------------------------------------------- the refusals */

static void check_infeed(ipu_infeed_options options, int status,
                         const char *words)
{
    ipu_infeed *infeed;

    MUST_FAIL(ipu_infeed_new(&options, &infeed), status, words);
}

TEST(infeeds_that_cannot_be)
{
    struct source source = source_of(1, 0);
    ipu_feed_tensor tensors[2];
    const ipu_infeed_options good = infeed_options(&source, tensors, 2, 4);
    ipu_infeed_options o = good;

    o.prefetch_depth = 0;
    check_infeed(o, IPU_ERR_ARGUMENT, "prefetch depth 0: it must be 1 to 255");
    o.prefetch_depth = 256;
    check_infeed(o, IPU_ERR_ARGUMENT, "prefetch depth 256");
    o = good;
    o.replicas = 0;
    check_infeed(o, IPU_ERR_ARGUMENT, "0 replicas");
    o = good;
    o.name = NULL;
    check_infeed(o, IPU_ERR_ARGUMENT, "the infeed has no name");
    o = good;
    o.source.next = NULL;
    check_infeed(o, IPU_ERR_ARGUMENT, "the source has no next function");
    o = good;
    o.source.rewind = NULL;
    o.repeat = 1;
    check_infeed(o, IPU_ERR_ARGUMENT, "without a rewind function");
    o = good;
    o.ntensors = 0;
    check_infeed(o, IPU_ERR_ARGUMENT, "0 tensors");
    o = good;
    o.size = 8;
    check_infeed(o, IPU_ERR_ARGUMENT, "the infeed options's size is 8");
    tensors[1].name = "x1";
    check_infeed(good, IPU_ERR_NAME, "two tensors are called 'x1'");
    tensors[1].name = "";
    check_infeed(good, IPU_ERR_NAME, "tensor 1 has no name");
}

TEST(elements_that_cannot_be)
{
    struct source source = source_of(1, 0);
    ipu_feed_tensor tensors[2];
    const ipu_infeed_options o = infeed_options(&source, tensors, 2, 4);

    tensors[1].shape[0] = -1;
    check_infeed(o, IPU_ERR_SHAPE,
                 "the shape of tensor 'x2' is not fully defined: dimension 0 "
                 "is -1; batches must all be of one size (drop the remainder)");
    tensors[1].shape[0] = 0;
    check_infeed(o, IPU_ERR_SHAPE, "'x2' has a dimension of size 0");
    tensors[1].shape[0] = 4;
    tensors[1].dtype = IPU_INT64;
    check_infeed(o, IPU_ERR_SHAPE,
                 "unsupported datatype int64 on index 1 of the feed: cast it "
                 "to int32");
    tensors[1].dtype = IPU_FLOAT64;
    check_infeed(o, IPU_ERR_SHAPE,
                 "float64 on index 1 of the feed: cast it to "
                 "float32");
    tensors[1].dtype = 99;
    check_infeed(o, IPU_ERR_ARGUMENT, "dtype 99 is none");
}

TEST(outfeeds_that_cannot_be)
{
    ipu_outfeed_options o = outfeed_options(2);
    ipu_outfeed *outfeed;

    MUST_FAIL(ipu_outfeed_new(&o, &outfeed), IPU_ERR_ARGUMENT,
              "mode 2 is neither ALL nor LAST");
    o = outfeed_options(IPU_OUTFEED_ALL);
    o.buffer_depth = 0;
    MUST_FAIL(ipu_outfeed_new(&o, &outfeed), IPU_ERR_ARGUMENT,
              "buffer depth 0: it must be 1 to 255");
    o = outfeed_options(IPU_OUTFEED_ALL);
    o.timeout_seconds = -1;
    MUST_FAIL(ipu_outfeed_new(&o, &outfeed), IPU_ERR_ARGUMENT,
              "a limit is less than 0");
    MUST_FAIL(ipu_outfeed_new(NULL, &outfeed), IPU_ERR_ARGUMENT,
              "options is NULL");
}

/* A queue reads as far ahead as it is deep, and not further. */
TEST(read_ahead)
{
    struct source source = source_of(1, 1);
    ipu_infeed *infeed = infeed_of(&source, 1, 4);
    ipu_infeed_stats stats = {.size = sizeof stats};
    float x[4];
    void *buffers[] = {x};

    MUST(ipu_infeed_start(infeed));
    do
        MUST(ipu_infeed_get_stats(infeed, &stats));
    while (stats.produced < 3);
    MUST(ipu__infeed_take(infeed, 0, buffers, NULL));
    ck_assert_float_eq(x[3], 1);
    do
        MUST(ipu_infeed_get_stats(infeed, &stats));
    while (stats.produced < 4);
    ck_assert_int_eq(stats.consumed, 1);
    ck_assert_int_eq(stats.depth, 3);
    /* The producer is in the call for the fifth's place, not beyond. */
    ck_assert_int_eq(atomic_load(&source.given), 4);
    ipu_infeed_free(infeed);
}

/* The data begins anew at its end; an empty data set ends. */
TEST(data_repeats)
{
    struct source source = source_of(1, 1);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options o = infeed_options(&source, tensors, 1, 1);
    ipu_infeed *infeed;
    float x;
    void *buffers[] = {&x};

    source.last = 3;
    o.repeat = 1;
    MUST(ipu_infeed_new(&o, &infeed));
    MUST(ipu_infeed_start(infeed));
    for (int i = 0; i < 10; i++) {
        MUST(ipu__infeed_take(infeed, 0, buffers, NULL));
        ck_assert_float_eq(x, (float)(i % 3 + 1));
    }
    MUST(ipu_infeed_stop(infeed));
    source.last = -1;
    MUST(ipu_infeed_start(infeed));
    MUST_FAIL(ipu__infeed_take(infeed, 0, buffers, NULL), IPU_ERR_END,
              "the data of infeed 'data' has ended");
    ipu_infeed_free(infeed);
}

/* Another queue has read all of the source: that is no empty data set. */
TEST(a_source_at_its_end_is_begun_again)
{
    struct source source = source_of(1, 1);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options o = infeed_options(&source, tensors, 1, 1);
    ipu_infeed *infeed;
    float x;
    void *buffers[] = {&x};

    source.last = 3;
    atomic_store(&source.given, 3);
    o.repeat = 1;
    MUST(ipu_infeed_new(&o, &infeed));
    MUST(ipu_infeed_start(infeed));
    MUST(ipu__infeed_take(infeed, 0, buffers, NULL));
    ck_assert_float_eq(x, 1);
    ipu_infeed_free(infeed);
}

/* A data set that takes its time, and knows if two threads are in it. */
struct slow {
    struct source source;
    atomic_int begun, inside, together;
};

static int slow_next(void *context, void *const *buffers)
{
    struct slow *s = context;
    int got;

    if (atomic_fetch_add(&s->inside, 1) > 0)
        atomic_store(&s->together, 1);
    atomic_store(&s->begun, 1);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    got = source_next(&s->source, buffers);
    atomic_fetch_sub(&s->inside, 1);
    return got;
}

static int slow_rewind(void *context)
{
    struct slow *s = context;

    if (atomic_load(&s->inside) > 0)
        atomic_store(&s->together, 1);
    return source_rewind(&s->source);
}

static void *stop(void *infeed)
{
    MUST(ipu_infeed_stop(infeed));
    return NULL;
}

/* While one thread waits for the producer's end, another must not start a new
 * producer. */
TEST(one_producer_at_a_time)
{
    struct slow slow = {.source = source_of(1, 1)};
    ipu_feed_tensor tensors[2];
    ipu_infeed_options o = infeed_options(&slow.source, tensors, 1, 1);
    ipu_infeed *infeed;
    pthread_t thread;
    int status;
    float x;
    void *buffers[] = {&x};

    o.source = (ipu_source){slow_next, slow_rewind, NULL, &slow};
    MUST(ipu_infeed_new(&o, &infeed));
    MUST(ipu_infeed_start(infeed));
    while (!atomic_load(&slow.begun))
        sched_yield();
    ck_assert_int_eq(pthread_create(&thread, NULL, stop, infeed), 0);
    do
        status = ipu_infeed_start(infeed);
    while (status == IPU_ERR_STATE);
    MUST(status);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 3; i++) {
        MUST(ipu__infeed_take(infeed, 0, buffers, NULL));
        ck_assert_float_eq(x, (float)(i + 1));
    }
    ck_assert_int_eq(atomic_load(&slow.together), 0);
    ipu_infeed_free(infeed);
}

/* Replica r of n takes elements r, r + n, ...; an element of an outfeed is
 * there when all replicas have given their part. */
TEST(replicas_take_turns)
{
    struct source source = source_of(0, 1);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options in = infeed_options(&source, tensors, 1, 2);
    ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_ALL);
    int64_t shape[IPU_MAX_RESULT_DIMS];
    ipu_infeed *infeed;
    ipu_outfeed *outfeed;
    ipu_results *results;
    const void *data;
    float x[2];
    void *buffers[] = {x};

    in.replicas = out.replicas = 3;
    MUST(ipu_infeed_new(&in, &infeed));
    MUST(ipu_outfeed_new(&out, &outfeed));
    MUST(ipu__outfeed_describe(outfeed, 1, tensors));
    MUST_FAIL(ipu__infeed_attach(infeed, 2), IPU_ERR_STATE,
              "infeed 'data' has replication factor 3, the program 2");
    MUST_FAIL(ipu__outfeed_attach(outfeed, 1), IPU_ERR_STATE,
              "outfeed 'results' has replication factor 3, the program 1");
    MUST(ipu_infeed_start(infeed));
    ipu__outfeed_begin(outfeed);
    for (int32_t r = 2; r >= 0; r--)
        for (int i = 0; i < 4; i++) {
            /* The others' places fill up meanwhile: no more than prefetched. */
            if (i == 2 && r != 0)
                break;
            MUST(ipu__infeed_take(infeed, r, buffers, NULL));
            ck_assert_float_eq(x[1], (float)(3 * i + r));
            MUST(ipu__outfeed_put(outfeed, r, (const void *const *)buffers));
            ck_assert_int_eq(ipu_outfeed_count(outfeed),
                             r > 0 ? 0 : (i < 2 ? i + 1 : 2));
        }
    ipu__outfeed_end(outfeed, IPU_OK);
    MUST(ipu_outfeed_dequeue(outfeed, 1, &results));
    ck_assert_int_eq(ipu_results_tensor(results, "x1", NULL, shape, &data), 3);
    ck_assert_int_eq(shape[0], 2);
    ck_assert_int_eq(shape[1], 3);
    ck_assert_int_eq(shape[2], 2);
    for (int i = 0; i < 12; i++)
        ck_assert_float_eq(((const float *)data)[i], (float)(i / 2));
    ipu_results_free(results);
    ipu_infeed_free(infeed);
    ipu_outfeed_free(outfeed);
}

/* ----------------------------------------------------------- how fast it is */

static void count_epochs(void *context, int32_t epoch, const char *json)
{
    int *count = context;

    ck_assert_int_eq(epoch, *count);
    ck_assert_int_eq(json[0], '{');
    ++*count;
}

TEST(throughput_as_json)
{
    static const char *const keys[] = {"bandwidth", "elements_per_second",
                                       "elements_processed", "time_elapsed",
                                       "total_bytes_processed"};
    struct source source = source_of(1, 0);
    ipu_feed_tensor tensors[2];
    const ipu_infeed_options data = infeed_options(&source, tensors, 2, 100);
    int printed = 0;
    ipu_benchmark_options o = {.size = sizeof o,
                               .epochs = 10,
                               .elements_per_epoch = 1000,
                               .print = count_epochs,
                               .context = &printed};
    json_t *all, *epochs;
    const char *at;
    char *text;

    for (o.no_memcpy = 0; o.no_memcpy < 2; o.no_memcpy++) {
        printed = 0;
        MUST(ipu_dataset_benchmark(&data, &o, &text));
        ck_assert_int_eq(printed, 10);
        all = json_loads(text, 0, NULL);
        epochs = json_object_get(all, "epochs");
        ck_assert_uint_eq(json_array_size(epochs), 10);
        ck_assert_uint_eq(json_object_size(json_array_get(epochs, 0)), 5);
        at = text;
        for (size_t e = 0; e < 10; e++)
            for (int k = 0; k < 5; k++) {
                double value = json_number_value(
                    json_object_get(json_array_get(epochs, e), keys[k]));

                ck_assert_double_gt(value, 0);
                ck_assert_double_eq((double)(float)value, value);
                at = strstr(at, keys[k]); /* in this order */
                ck_assert_ptr_nonnull(at);
            }
        json_decref(all);
        free(text);
    }
    ck_assert_int_eq(source.closed, 0);
}

TEST(throughput_of_an_infeed)
{
    struct source source = source_of(1, 0);
    ipu_infeed *infeed = infeed_of(&source, 1, 10);
    const ipu_benchmark_options o = {
        .size = sizeof o, .epochs = 2, .elements_per_epoch = 20};
    char *text;

    MUST(ipu_infeed_benchmark(infeed, &o, &text));
    ck_assert_ptr_nonnull(strstr(text, "\"total_bytes_processed\":800"));
    free(text);
    MUST(ipu_infeed_start(infeed)); /* it has been stopped */
    MUST_FAIL(ipu_infeed_benchmark(infeed, &o, &text), IPU_ERR_STATE,
              "has been started");
    ipu_infeed_free(infeed);
}

/* Replicas take turns over all epochs: none falls behind, so that no more is
 * read ahead than the queue is deep for each. */
TEST(throughput_of_replicas)
{
    struct source source = source_of(1, 0);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options data = infeed_options(&source, tensors, 1, 10);
    const ipu_benchmark_options o = {
        .size = sizeof o, .epochs = 100, .elements_per_epoch = 1};
    char *text;

    data.replicas = 3;
    MUST(ipu_dataset_benchmark(&data, &o, &text));
    free(text);
    ck_assert_int_le(atomic_load(&source.given), 100 + 3 * 3 + 1);
}

TEST(throughput_that_cannot_be)
{
    struct source source = source_of(1, 0);
    ipu_feed_tensor tensors[2];
    const ipu_infeed_options data = infeed_options(&source, tensors, 1, 10);
    ipu_benchmark_options o = {
        .size = sizeof o, .epochs = 2, .elements_per_epoch = 20};
    char *text;

    source.last = 39;
    MUST_FAIL(ipu_dataset_benchmark(&data, &o, &text), IPU_ERR_END,
              "has ended");
    source.last = 0;
    source.fail_at = 7;
    atomic_store(&source.given, 0);
    MUST_FAIL(ipu_dataset_benchmark(&data, &o, &text), IPU_ERR_CALLBACK,
              "returned -5");
    tensors[0].shape[0] = 0;
    MUST_FAIL(ipu_dataset_benchmark(&data, &o, &text), IPU_ERR_SHAPE,
              "dimension of size 0");
    o.epochs = 0;
    tensors[0].shape[0] = 10;
    MUST_FAIL(ipu_dataset_benchmark(&data, &o, &text), IPU_ERR_ARGUMENT,
              "0 epochs of 20 elements: both must be 1 or more");
}

TEST_MAIN("device_streams_queues")
