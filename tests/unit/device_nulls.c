/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests every argument that must not be NULL. The message names it and nothing
 * else happens. Builders refuse NULL graphs too, which cannot remember a
 * failure.
 */
#include "device.h"
#include "feeds.h"
#include "suite.h"

static struct device d;
static ipu_system pod;
static ipu_infeed *infeed;
static ipu_outfeed *outfeed;
static struct source source;
static ipu_tensor x;

/* A loaded program, a system, and queues that no program has. */
static void set_up(void)
{
    ipu_tensor y;

    d = device_new();
    x = device_floats(&d, "x", 1, SHAPE(2));
    y = ipu_square(d.graph, x);
    MUST(ipu_output(d.graph, "y", y));
    device_load(&d);
    pod = (ipu_system){.size = sizeof pod};
    MUST(ipu_system_find("M2000", &pod));
    source = source_of(0, 1);
    infeed = infeed_of(&source, 1, 2);
    outfeed = outfeed_of(IPU_OUTFEED_ALL);
}

static void tear_down(void)
{
    ipu_outfeed_free(outfeed);
    ipu_infeed_free(infeed);
    device_free(&d);
}

/* Compares the whole text. */
#define REFUSED(call, text)                                                    \
    do {                                                                       \
        ck_assert_int_eq((int)(call), IPU_ERR_ARGUMENT);                       \
        ck_assert_str_eq(ipu_last_error(), (text));                            \
    } while (0)

/* Compares the text for an op, which returns no status. */
#define REFUSED_OP(tensor, text)                                               \
    do {                                                                       \
        ck_assert_int_lt((tensor).id, 0);                                      \
        ck_assert_str_eq(ipu_last_error(), (text));                            \
    } while (0)

TEST(graphs)
{
    ipu_tensor y;

    REFUSED_OP(ipu_constant(NULL, IPU_FLOAT32, 0, NULL, &y),
               "constant: the graph is NULL");
    REFUSED_OP(ipu_remote_buffer_new(NULL, "rows", IPU_FLOAT32, 1, 0, NULL),
               "remote buffer: the graph is NULL");
    REFUSED(ipu_infeed_dequeue(NULL, infeed, &y), "dequeue: the graph is NULL");
    REFUSED(ipu_outfeed_enqueue(NULL, outfeed, 1, NULL, &x),
            "enqueue: the graph is NULL");
    REFUSED(ipu_stochastic_rounding(NULL, 1, 1, x),
            "stochastic rounding: the graph is NULL");
    REFUSED(ipu_shard(NULL, 0), "shard: the graph is NULL");
    REFUSED(ipu_tensor_shard(NULL, x), "shard: the graph is NULL");
    REFUSED(ipu_shard_automatically(NULL, 2), "shard: the graph is NULL");
    REFUSED(ipu_compile_shards(NULL, NULL, 2, NULL),
            "compile: the graph is NULL");
    REFUSED(ipu_cross_replica_gradients(NULL, 1, &x, &y),
            "cross-replica gradients: the graph is NULL");
}

TEST(executables)
{
    const ipu_executable *body;
    ipu_engine *engine = NULL;
    ipu_block_info block = {.size = sizeof block};
    ipu_shard_info shard = {.size = sizeof shard};
    int64_t count;

    REFUSED(ipu_engine_new(NULL, &engine), "engine: the executable is NULL");
    REFUSED(ipu_engine_new(d.executable, NULL),
            "engine: the place for an engine is NULL");
    ck_assert_ptr_null(engine);
    REFUSED(ipu_executable_block(NULL, 0, &block),
            "block: the executable is NULL");
    REFUSED(ipu_executable_body(NULL, 0, &body, &count),
            "body: the executable is NULL");
    REFUSED(ipu_executable_shards(NULL), "shards: the executable is NULL");
    REFUSED(ipu_executable_shard(NULL, 0, &shard),
            "shards: the executable is NULL");
    REFUSED(ipu_executable_shard(d.executable, 0, NULL),
            "shards: the place for an account is NULL");
}

TEST(engines)
{
    ipu_replicas_options o;
    ipu_replicas *replicas;

    ipu_replicas_options_init(&o, sizeof o);
    REFUSED(ipu_engine_run(NULL), "run: the engine is NULL");
    MUST(ipu_replicas_new(d.executable, &o, &replicas));
    REFUSED(ipu_replicas_stats(replicas, NULL),
            "replicas: the place for their account is NULL");
    ipu_replicas_free(replicas);
}

TEST(infeeds)
{
    ipu_feed_tensor tensors[2];
    const ipu_infeed_options o = infeed_options(&source, tensors, 1, 2);
    const ipu_benchmark_options b = {.size = sizeof b};
    const ipu_feed_tensor *told;
    ipu_infeed_stats stats = {.size = sizeof stats};
    ipu_infeed *made = NULL;
    char *json = NULL;

    REFUSED(ipu_infeed_new(NULL, &made), "infeed: options is NULL");
    REFUSED(ipu_infeed_new(&o, NULL), "infeed: the place for it is NULL");
    REFUSED(ipu_iterator_new(NULL, &made), "iterator: options is NULL");
    REFUSED(ipu_iterator_new(&o, NULL), "iterator: the place for it is NULL");
    ck_assert_ptr_null(made);
    REFUSED(ipu_infeed_start(NULL), "infeed start: the infeed is NULL");
    REFUSED(ipu_infeed_stop(NULL), "infeed stop: the infeed is NULL");
    REFUSED(ipu_infeed_delete(NULL), "infeed delete: the infeed is NULL");
    REFUSED(ipu_infeed_tensors(NULL, &told),
            "infeed tensors: the infeed is NULL");
    REFUSED(ipu_infeed_get_stats(NULL, &stats),
            "infeed stats: the infeed is NULL");
    REFUSED(ipu_infeed_get_stats(infeed, NULL),
            "infeed stats: the place for them is NULL");
    REFUSED(ipu_infeed_benchmark(NULL, &b, &json),
            "benchmark: the infeed is NULL");
    REFUSED(ipu_infeed_benchmark(infeed, NULL, &json),
            "benchmark: options is NULL");
    REFUSED(ipu_infeed_benchmark(infeed, &b, NULL),
            "benchmark: the place for the text is NULL");
    ck_assert_ptr_null(json);
}

TEST(outfeeds)
{
    ipu_results *results = NULL;

    REFUSED(ipu_outfeed_delete(NULL), "outfeed delete: the outfeed is NULL");
    REFUSED(ipu_outfeed_abort(NULL), "outfeed abort: the outfeed is NULL");
    REFUSED(ipu_outfeed_count(NULL), "outfeed count: the outfeed is NULL");
    REFUSED(ipu_outfeed_clear(NULL), "outfeed clear: the outfeed is NULL");
    REFUSED(ipu_outfeed_dequeue(NULL, 0, &results),
            "dequeue: the outfeed is NULL");
    REFUSED(ipu_outfeed_dequeue(outfeed, 0, NULL),
            "dequeue: the place for results is NULL");
    REFUSED(ipu_outfeed_next(NULL, 0, &results), "next: the outfeed is NULL");
    REFUSED(ipu_outfeed_next(outfeed, 0, NULL),
            "next: the place for results is NULL");
    ck_assert_ptr_null(results);
}

TEST(models)
{
    ipu_system_peaks peaks = {.size = sizeof peaks};
    ipu_cycles c = {.size = sizeof c};
    int64_t cycles;

    REFUSED(ipu_model_link(NULL, 0, 1, 4, 0, &c), "the system is NULL");
    REFUSED(ipu_model_host(NULL, 4, &c), "the system is NULL");
    REFUSED(ipu_model_streaming(NULL, 4, &c), "the system is NULL");
    REFUSED(ipu_model_global_sync(NULL, &cycles), "the system is NULL");
    REFUSED(ipu_model_global_sync(&pod, NULL), "the place for cycles is NULL");
    REFUSED(ipu_system_path(NULL, 0, 1, NULL, NULL), "the system is NULL");
    REFUSED(ipu_system_get_peaks(NULL, &peaks), "the system is NULL");
    REFUSED(ipu_system_get_peaks(&pod, NULL), "the place for peaks is NULL");
    REFUSED(ipu_target_get_peaks(&pod.ipu, NULL),
            "the place for peaks is NULL");
}

TEST_MAIN("device_nulls", .set_up = set_up, .tear_down = tear_down)
