/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests queues that a program cannot have, and sources that fail, with the
 * whole texts.
 */
#include "suite.h"

#include "feeds.h"
#include "no_threads.h"
#include "streams/streams.h"

static struct device d;
static struct source source;
static ipu_infeed *infeed;
static ipu_outfeed *outfeed, *other;
static ipu_tensor x;

static void set_up(void)
{
    d = device_new();
    x = device_floats(&d, "x", 1, SHAPE(2));
    source = source_of(0, 1);
    infeed = infeed_of(&source, 1, 2);
    outfeed = outfeed_of(IPU_OUTFEED_ALL);
    other = outfeed_of(IPU_OUTFEED_ALL); /* of the same name */
}

static void tear_down(void)
{
    ipu_outfeed_free(other);
    ipu_outfeed_free(outfeed);
    ipu_infeed_free(infeed);
    device_free(&d);
}

static void from_no_infeed(ipu_graph *g)
{
    ipu_tensor y;

    ipu_infeed_dequeue(g, NULL, &y);
}

static void to_no_tensors(ipu_graph *g)
{
    ipu_infeed_dequeue(g, infeed, NULL);
}

static void into_no_outfeed(ipu_graph *g)
{
    ipu_outfeed_enqueue(g, NULL, 1, NULL, &x);
}

static void of_no_tensors(ipu_graph *g)
{
    ipu_outfeed_enqueue(g, outfeed, 1, NULL, NULL);
}

static void of_less_than_one(ipu_graph *g)
{
    ipu_outfeed_enqueue(g, outfeed, 0, NULL, &x);
}

static void of_too_many(ipu_graph *g)
{
    ipu_outfeed_enqueue(g, outfeed, IPU_MAX_FEED_TENSORS + 1, NULL, &x);
}

static void of_what_failed(ipu_graph *g)
{
    const ipu_tensor tensors[] = {x, {-1}};

    ipu_outfeed_enqueue(g, outfeed, 2, NULL, tensors);
}

static void into_another_of_the_name(ipu_graph *g)
{
    MUST(ipu_outfeed_enqueue(g, outfeed, 1, NULL, &x));
    ipu_outfeed_enqueue(g, other, 1, NULL, &x);
}

static void twice(ipu_graph *g)
{
    MUST(ipu_outfeed_enqueue(g, outfeed, 1, NULL, &x));
    ipu_outfeed_enqueue(g, outfeed, 1, NULL, &x);
}

static const struct misuse {
    void (*build)(ipu_graph *g);
    int status;
    const char *text;
} misuses[] = {
    {from_no_infeed, IPU_ERR_ARGUMENT, "dequeue: the infeed is NULL"},
    {to_no_tensors, IPU_ERR_ARGUMENT, "dequeue: the place for tensors is NULL"},
    {into_no_outfeed, IPU_ERR_ARGUMENT, "enqueue: the outfeed is NULL"},
    {of_no_tensors, IPU_ERR_ARGUMENT, "enqueue: the array of tensors is NULL"},
    {of_less_than_one, IPU_ERR_ARGUMENT,
     "outfeed 'results': 0 tensors, an element has 1 to 64"},
    {of_too_many, IPU_ERR_ARGUMENT,
     "outfeed 'results': 65 tensors, an element has 1 to 64"},
    {of_what_failed, IPU_ERR_ARGUMENT,
     "outfeed 'results': tensor 1: the tensor is invalid: what made it failed"},
    {into_another_of_the_name, IPU_ERR_NAME,
     "outfeed 'results': another outfeed of this program has that name"},
    {twice, IPU_ERR_STATE,
     "outfeed 'results': an outfeed can be enqueued only once in a program"},
};

LOOP_TEST(programs_cannot_have_them, 0, sizeof misuses / sizeof *misuses)
{
    const struct misuse *m = &misuses[_i];

    m->build(d.graph);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), m->status, m->text);
    /* The text must end so: it begins with the place in the program. */
    ck_assert_str_eq(strstr(ipu_last_error(), m->text), m->text);
}

static int rewinds_to_nowhere(void *context)
{
    (void)context;
    return -6;
}

TEST(a_source_that_does_not_rewind)
{
    ipu_feed_tensor tensors[2];
    ipu_infeed_options o = infeed_options(&source, tensors, 1, 2);
    ipu_infeed *again;

    o.source.rewind = rewinds_to_nowhere;
    MUST(ipu_infeed_new(&o, &again));
    MUST(ipu_infeed_start(again));
    MUST(ipu_infeed_stop(again));
    ck_assert_int_eq(ipu_infeed_start(again), IPU_ERR_CALLBACK);
    ck_assert_str_eq(ipu_last_error(),
                     "infeed 'data': rewinding the source returned -6");
    ipu_infeed_free(again);
}

#ifdef NO_THREADS

/* The queue can be started when there is room again. */
TEST(a_thread_that_cannot_be_made)
{
    struct rlimit before = threads_end();

    ck_assert_int_eq(ipu_infeed_start(infeed), IPU_ERR_MEMORY);
    ck_assert_str_eq(ipu_last_error(),
                     "infeed 'data': a thread cannot be made: Resource "
                     "temporarily unavailable");
    threads_may(&before);
    MUST(ipu_infeed_start(infeed));
    MUST(ipu_infeed_stop(infeed));
}

/* A queue whose data had ended is not started then, so nobody waits for it. */
TEST(a_thread_that_cannot_be_made_again)
{
    struct rlimit before;
    float y[2];
    void *buffers[] = {y};

    source.last = 1;
    MUST(ipu_infeed_start(infeed));
    MUST(ipu__infeed_take(infeed, 0, buffers, NULL));
    MUST_FAIL(ipu__infeed_take(infeed, 0, buffers, NULL), IPU_ERR_END, "ended");
    before = threads_end();
    ck_assert_int_eq(ipu_infeed_start(infeed), IPU_ERR_MEMORY);
    threads_may(&before);
    MUST_FAIL(ipu__infeed_take(infeed, 0, buffers, NULL), IPU_ERR_STATE,
              "infeed 'data' has been stopped");
}

static int sums(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_cross_replica_sum(g, in[0], 0);
    return 0;
}

/* Replicas that meet within a loop wait for each other there. */
TEST(threads_that_replicas_need)
{
    ipu_replicas *replicas = NULL;
    ipu_replicas_options o;
    struct rlimit before;

    MUST(ipu_repeat(d.graph, 2, sums, NULL, 1, &x, NULL, &x));
    MUST(ipu_output(d.graph, "y", x));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    ipu_replicas_options_init(&o, sizeof o);
    before = threads_end();
    ck_assert_int_eq(ipu_replicas_new(d.executable, &o, &replicas),
                     IPU_ERR_MEMORY);
    ck_assert_str_eq(ipu_last_error(),
                     "replicas: of 2 threads, which sums in loops need, there "
                     "can be only 1");
    ck_assert_ptr_null(replicas);
    threads_may(&before);
    MUST(ipu_replicas_new(d.executable, &o, &replicas));
    ipu_replicas_free(replicas);
}

#endif

TEST_MAIN("device_streams_misuse", .set_up = set_up, .tear_down = tear_down)
