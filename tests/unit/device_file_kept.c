/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files keep replicas, shards and rounding. The depth of loops in them is
 * limited, and files of an older version can be read.
 */
#include "device_file.h"
#include "feeds.h"
#include "suite.h"

static void set_up(void)
{
    folder_make();
}

static void tear_down(void)
{
    folder_remove();
}

static int add_up(ipu_graph *g, void *context, int32_t ninputs,
                  const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], in[1]);
    return ipu_outfeed_enqueue(g, context, 1, NULL, &in[1]);
}

/* Each replica of a loaded program takes elements in turn. */
TEST(replicas_run_a_loaded_program)
{
    struct source source = source_of(0, 1);
    ipu_feed_tensor tensors[2];
    ipu_infeed_options in = infeed_options(&source, tensors, 1, 1);
    ipu_outfeed_options out = outfeed_options(IPU_OUTFEED_ALL);
    ipu_replicas_options options;
    struct device d = device_new();
    ipu_replicas *replicas = NULL;
    ipu_executable *x = NULL;
    ipu_infeed *infeed[2];
    ipu_outfeed *outfeed[2];
    ipu_tensor zero, total;
    float totals[3];

    in.replicas = out.replicas = 3;
    for (int i = 0; i < 2; i++) {
        MUST(ipu_infeed_new(&in, &infeed[i]));
        MUST(ipu_outfeed_new(&out, &outfeed[i]));
    }
    zero = ipu_fill(d.graph, IPU_FLOAT32, 1, SHAPE(1), 0);
    MUST(ipu_repeat(d.graph, 4, add_up, outfeed[0], 1, &zero, infeed[0],
                    &total));
    MUST(
        ipu_output(d.graph, "total", ipu_cross_replica_sum(d.graph, total, 0)));
    file_compile(d.graph, &d.executable);
    MUST(ipu_executable_save(d.executable, in_folder("program")));
    MUST(ipu_executable_load(in_folder("program"), &x));
    ipu_replicas_options_init(&options, sizeof options);
    options.ipus = 3;
    MUST_FAIL(ipu_replicas_new(x, &options, &replicas), IPU_ERR_STATE,
              "outfeed 'results' of the loaded program is only a description");
    MUST(ipu_executable_connect_infeed(x, infeed[1]));
    MUST(ipu_executable_connect_outfeed(x, outfeed[1]));
    MUST(ipu_replicas_new(x, &options, &replicas));
    MUST(ipu_replicas_connect(replicas, "total", totals, sizeof totals));
    MUST(ipu_infeed_start(infeed[1]));
    MUST(ipu_replicas_run(replicas));
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(totals[i], 11 * 12 / 2);
    ipu_replicas_free(replicas);
    ipu_executable_free(x);
    device_free(&d);
    for (int i = 0; i < 2; i++) {
        ipu_infeed_free(infeed[i]);
        ipu_outfeed_free(outfeed[i]);
    }
}

/* A file keeps the chip of each tensor. */
TEST(shards_are_kept)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(4, 4)), w, found;
    ipu_graph *loaded = NULL;
    ipu_executable *compiled_shards = NULL, *again = NULL;

    MUST(ipu_shard(d.graph, 0));
    x = ipu_matmul(d.graph, x,
                   ipu_variable(d.graph, "v", IPU_FLOAT32, 2, SHAPE(4, 4)));
    MUST(ipu_shard(d.graph, 1));
    w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(4, 4));
    MUST(ipu_output(d.graph, "y", ipu_matmul(d.graph, x, w)));
    file_compile(d.graph, &compiled_shards);
    ck_assert_int_eq(ipu_executable_shards(compiled_shards), 2);
    MUST(ipu_executable_save(compiled_shards, in_folder("x0")));
    MUST(ipu_graph_save(d.graph, in_folder("graph")));
    MUST(ipu_graph_load(in_folder("graph"), &loaded));
    MUST(ipu_graph_find(loaded, "w", &found));
    ck_assert_int_eq(ipu_tensor_shard(loaded, found), 1);
    MUST(ipu_graph_find(loaded, "v", &found));
    ck_assert_int_eq(ipu_tensor_shard(loaded, found), 0);
    file_compile(loaded, &again);
    MUST(ipu_executable_save(again, in_folder("x1")));
    files_equal(in_folder("x0"), in_folder("x1"));
    ipu_executable_free(again);
    MUST(ipu_executable_load(in_folder("x0"), &again));
    ck_assert_int_eq(ipu_executable_shards(again), 2);
    ipu_executable_free(again);
    ipu_executable_free(compiled_shards);
    ipu_graph_free(loaded);
    device_free(&d);
}

/* Ops that are added after the load are rounded as those before the save. */
TEST(rounding_is_kept)
{
    struct device d = device_new();
    ipu_graph *graphs[2] = {d.graph, NULL};
    ipu_tensor x = ipu_variable(d.graph, "x", IPU_FLOAT16, 1, SHAPE(8));

    MUST(ipu_stochastic_rounding(d.graph, 1, 0x8877665544332211u,
                                 ipu_counter(d.graph, "step")));
    MUST(ipu_graph_save(d.graph, in_folder("empty")));
    MUST(ipu_graph_load(in_folder("empty"), &graphs[1]));
    for (int i = 0; i < 2; i++) {
        MUST(ipu_graph_find(graphs[i], "x", &x));
        MUST(ipu_output(graphs[i], "y", ipu_square(graphs[i], x)));
        MUST(ipu_graph_save(graphs[i], in_folder(i ? "b" : "a")));
    }
    files_equal(in_folder("a"), in_folder("b"));
    ipu_graph_free(graphs[1]);
    device_free(&d);
}

/* An update that a condition may leave out adds gradients that are accumulated
 * whatever the condition is. */
TEST(a_region_within_another_is_kept)
{
    enum { COUNT = 2, RUNS = 8 };
    struct device d = device_new();
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 1, SHAPE(3));
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3));
    ipu_tensor c = ipu_input(d.graph, "c", IPU_INT32, 0, NULL);
    ipu_tensor sum = ipu_accumulate(d.graph, w, x, COUNT, NULL);
    const float values[3] = {1, 2, 3};
    float found[3], want = 0;
    int32_t condition;

    MUST(ipu_update_begin_if(d.graph, COUNT, c));
    MUST(ipu_assign(d.graph, w, ipu_add(d.graph, w, sum)));
    MUST(ipu_update_end(d.graph));
    MUST(ipu_graph_save(d.graph, in_folder("graph")));
    ipu_graph_free(d.graph);
    MUST(ipu_graph_load(in_folder("graph"), &d.graph));
    device_load(&d);
    device_connect(&d, "x", (float *)(uintptr_t)values, 3);
    MUST(ipu_engine_connect(d.engine, "c", &condition, sizeof condition));
    for (int run = 0; run < RUNS; run++) {
        condition = run % 3 != 0;
        MUST(ipu_engine_run(d.engine));
        want += run % COUNT == COUNT - 1 && condition ? COUNT : 0;
        MUST(ipu_engine_read(d.engine, "w", found, sizeof found));
        for (int i = 0; i < 3; i++)
            ck_assert(found[i] == want * values[i]);
    }
    ck_assert(want > 0 && want < RUNS);
    device_free(&d);
}

/* ----------------------------------------------------------------- refused */

static int save_body(ipu_graph *g, void *context, int32_t ninputs,
                     const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = in[0];
    MUST_FAIL(ipu_graph_save(g, in_folder("graph")), IPU_ERR_STATE,
              "this is the body of a loop: save the graph around it");
    MUST_FAIL(ipu_graph_save(context, in_folder("graph")), IPU_ERR_STATE,
              "the body of a loop of this graph is being built");
    return 0;
}

TEST(a_graph_is_saved_when_its_loops_are_built)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2)), y;

    MUST(ipu_repeat(d.graph, 1, save_body, d.graph, 1, &x, NULL, &y));
    MUST(ipu_graph_save(d.graph, in_folder("graph")));
    device_free(&d);
}

static int nest(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    int *left = context;

    (void)ninputs, (void)noutputs;
    if (--*left > 0)
        return ipu_repeat(g, 1, nest, left, 1, in, NULL, out);
    out[0] = ipu_square(g, in[0]);
    return 0;
}

TEST(loops_are_nested_up_to_a_depth)
{
    for (int deep = 64; deep <= 65; deep++) {
        struct device d = device_new();
        ipu_tensor x = device_floats(&d, "x", 1, SHAPE(2)), y;
        ipu_graph *loaded = NULL;
        int left = deep;

        MUST(ipu_repeat(d.graph, 1, nest, &left, 1, &x, NULL, &y));
        MUST(ipu_output(d.graph, "y", y));
        file_compile(d.graph, &d.executable);
        if (deep == 64) {
            MUST(ipu_graph_save(d.graph, in_folder("graph")));
            MUST(ipu_graph_load(in_folder("graph"), &loaded));
            MUST(ipu_executable_save(d.executable, in_folder("program")));
        } else {
            MUST_FAIL(ipu_graph_save(d.graph, in_folder("graph")),
                      IPU_ERR_STATE, "loops are nested more than 64 deep");
            MUST_FAIL(ipu_executable_save(d.executable, in_folder("program")),
                      IPU_ERR_STATE, "loops are nested more than 64 deep");
        }
        ipu_graph_free(loaded);
        device_free(&d);
    }
}

/* Versions 2 and 3 added only ends to files, which are all 0 here. */
static void read_version(uint32_t version, size_t of_graph, size_t of_program)
{
    ipu_executable *x = NULL;
    ipu_graph *g = NULL;
    struct file_bytes b;

    MUST(ipu_graph_new(&g));
    file_build(g);
    file_compile(g, &x);
    MUST(ipu_graph_save(g, in_folder("graph")));
    MUST(ipu_executable_save(x, in_folder("program")));
    ipu_graph_free(g);
    ipu_executable_free(x);
    for (int i = 0; i < 2; i++) {
        b = file_read(in_folder(i ? "program" : "graph"));
        b.count -= i ? of_program : of_graph;
        memcpy(b.data + 12, &version, sizeof version);
        file_sign(b);
        file_write(in_folder(i ? "x1" : "g1"), b.data, b.count);
        free(b.data);
    }
    MUST(ipu_graph_load(in_folder("g1"), &g));
    MUST(ipu_graph_save(g, in_folder("again")));
    files_equal(in_folder("graph"), in_folder("again"));
    MUST(ipu_executable_load(in_folder("x1"), &x));
    MUST(ipu_executable_save(x, in_folder("again")));
    files_equal(in_folder("program"), in_folder("again"));
    ipu_graph_free(g);
    ipu_executable_free(x);
}

TEST(files_of_older_versions_are_read)
{
    enum { MODULES = 4, ROUNDING_AND_LISTS = 32, LISTS = 8 };

    read_version(2, MODULES, MODULES);
    read_version(1, ROUNDING_AND_LISTS + MODULES, LISTS + MODULES);
}

TEST_MAIN("device_file_kept", .set_up = set_up, .tear_down = tear_down,
          .seconds = 60)
