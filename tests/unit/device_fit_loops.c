/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a program that trains within a loop, from a queue, with rows of a
 * remote buffer, and does not fit. The prediction for each remedy must match
 * the rewritten program within 5 %.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>

#include "device.h"

enum { ROWS = 1024, WIDTH = 256, LAYERS = 8, ITERATIONS = 8, TABLE = 16 };

/* Ways in which the author may write the program. */
struct way {
    int parts; /* parts of the batch, and mini-batches in an update; 0: no
                  region */
    ipu_dtype dtype;
    ipu_offload offload,
        others; /* offloading of state, and of weights and accumulators */
    bool recompute, placed, sgd;
};

static const struct way plain = {.dtype = IPU_FLOAT32,
                                 .offload = IPU_OFFLOAD_OFF};

static struct device d, other;
static ipu_target target;
static const struct way *way;
static ipu_tensor w[LAYERS];
static ipu_remote_buffer table;
static ipu_infeed *feeds[2];
static int nfeeds;

static void set_up(void)
{
    memset(&other, 0, sizeof other);
    d = device_new();
    nfeeds = 0;
    ipu_target_init(&target, sizeof target);
    target.tiles = 64;
    target.bytes_per_tile = 120 * 1024;
}

static void tear_down(void)
{
    device_free(&d);
    device_free(&other);
    for (int i = 0; i < nfeeds; i++)
        ipu_infeed_free(feeds[i]);
}

static int next(void *context, void *const *buffers)
{
    (void)context, (void)buffers;
    return 0; /* it is not run */
}

static int rows_of_way(void)
{
    return way->parts ? ROWS / way->parts : ROWS;
}

static ipu_infeed *feed(void)
{
    const ipu_feed_tensor x = {.name = "x",
                               .dtype = way->dtype,
                               .ndim = 2,
                               .shape = {rows_of_way(), WIDTH}};
    ipu_infeed_options o;

    ipu_infeed_options_init(&o, sizeof o);
    o.name = nfeeds ? "second" : "first";
    o.ntensors = 1;
    o.tensors = &x;
    o.source.next = next;
    MUST(ipu_infeed_new(&o, &feeds[nfeeds]));
    return feeds[nfeeds++];
}

static int step(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *inputs, int32_t noutputs, ipu_tensor *outputs)
{
    const ipu_optimizer adam = {.size = sizeof adam,
                                .kind = way->sgd ? IPU_OPTIMIZER_SGD
                                                 : IPU_OPTIMIZER_ADAM,
                                .rate = ipu_fill(g, way->dtype, 0, NULL, 0.01)};
    const ipu_update_options u = {
        .size = sizeof u,
        .offload = way->offload,
        .offload_weights = way->others,
        .accumulation = {.size = sizeof u.accumulation,
                         .offload = way->others}};
    ipu_tensor h = inputs[0], slopes[LAYERS], loss, row;

    (void)context, (void)ninputs, (void)noutputs, (void)outputs;
    MUST(ipu_allow_recompute(g, way->recompute));
    row = ipu_remote_load(g, table, ipu_fill(g, IPU_INT32, 0, NULL, 3));
    h = ipu_bias_add(g, h, row);
    for (int i = 0; i < LAYERS; i++)
        h = ipu_relu(g, ipu_matmul(g, h, w[i]));
    loss = ipu_square(g, h);
    if (way->dtype != IPU_FLOAT32)
        loss = ipu_cast(g, loss, IPU_FLOAT32);
    loss = ipu_reduce_sum(g, loss, 1.0 / ROWS);
    MUST(ipu_gradients(g, loss, LAYERS, w, slopes));
    return way->parts ? ipu_accumulating_optimizer(g, &adam, LAYERS, w, slopes,
                                                   way->parts, &u)
                      : ipu_optimize(g, &adam, LAYERS, w, slopes);
}

static void build(ipu_graph *g, const struct way *how)
{
    char name[] = "w0";

    way = how;
    for (int i = 0; i < LAYERS; i++, name[1]++) {
        w[i] = ipu_variable(g, name, way->dtype, 2, SHAPE(WIDTH, WIDTH));
        if (way->placed)
            ipu_map(g, w[i], 0, target.tiles / 2);
    }
    table =
        ipu_remote_buffer_new(g, "table", way->dtype, TABLE, 1, SHAPE(WIDTH));
    MUST(ipu_repeat(g, ITERATIONS * (way->parts ? way->parts : 1), step, NULL,
                    0, NULL, feed(), NULL));
}

static void check_near(const char *what, double is, double told)
{
    ck_assert_msg(fabs(is / told - 1) <= 0.05, "%s: %g, and %g was told", what,
                  is, told);
}

static const struct {
    ipu_remedy_kind kind;
    struct way first, way;
} cases[] = {
    {IPU_REMEDY_HALF, {.dtype = IPU_FLOAT32}, {.dtype = IPU_FLOAT16}},
    {IPU_REMEDY_ACCUMULATE,
     {.sgd = true},
     {.parts = 4, .offload = IPU_OFFLOAD_OFF, .sgd = true}},
    {IPU_REMEDY_RECOMPUTE, {.dtype = IPU_FLOAT32}, {.recompute = true}},
    {IPU_REMEDY_OFFLOAD,
     {.dtype = IPU_FLOAT32},
     {.parts = 1, .offload = IPU_OFFLOAD_ON}},
    {IPU_REMEDY_OFFLOAD_ALL,
     {.dtype = IPU_FLOAT32},
     {.parts = 1, .offload = IPU_OFFLOAD_ON, .others = IPU_OFFLOAD_ON}},
    {IPU_REMEDY_PLACEMENT, {.placed = true}, {.dtype = IPU_FLOAT32}},
};

LOOP_TEST(a_loop_is_what_was_told, 0, sizeof cases / sizeof *cases)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};
    int parts = cases[_i].way.parts > 1 ? cases[_i].way.parts : 1;
    ipu_remedy r = {.size = sizeof r};
    ipu_memory_info memory = {.size = sizeof memory}, before = memory;
    ipu_program_cycles cycles = {.size = sizeof cycles};

    build(d.graph, &cases[_i].first);
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    MUST(ipu_executable_memory(d.executable, &before));
    MUST(ipu_remedy_try(d.graph, &options, cases[_i].kind, parts, &r));
    ck_assert_int_eq(r.runs, 1);
    ck_assert_int_lt(r.tile_bytes, before.fullest_tile_bytes);
    other = device_new();
    build(other.graph, &cases[_i].way);
    MUST(ipu_compile_with(other.graph, &options, &other.executable));
    MUST(ipu_executable_memory(other.executable, &memory));
    MUST(ipu_executable_cycles(other.executable, &cycles));
    check_near("bytes", (double)memory.fullest_tile_bytes,
               (double)r.tile_bytes);
    check_near("cycles", (double)cycles.total, (double)r.cycles);
    ck_assert_int_eq(memory.remote_bytes, r.remote_bytes);
}

TEST(the_refusal_names_them)
{
    int compiled = 0;
    const char *at;

    build(d.graph, &plain);
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              "What would not; shard: it has loops, each of which is on one "
              "chip; pipeline: stages have no loops, nor remote buffers");
    for (at = ipu_last_error(); (at = strstr(at, "instead of")); at++)
        compiled++;
    ck_assert_int_eq(compiled, IPU_NUM_REMEDIES - 3);
}

/* An update that a loop makes every fourth time is counted every fourth
 * time. */
TEST(updates_are_counted_as_often_as_they_are_made)
{
    static const struct way apart = {
        .parts = 4, .dtype = IPU_FLOAT32, .offload = IPU_OFFLOAD_ON};
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};
    const ipu_executable *body = NULL;
    ipu_program_cycles all = {.size = sizeof all}, one = all;
    int64_t runs = 4 * ITERATIONS, control;
    int32_t loop = 0;

    build(d.graph, &apart);
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    MUST(ipu_executable_cycles(d.executable, &all));
    while (ipu_executable_body(d.executable, loop, &body, NULL) == 0)
        loop++;
    ck_assert_ptr_nonnull(body);
    MUST(ipu_executable_cycles(body, &one));
    ck_assert_int_gt(one.update, 0);
    control = all.total - (runs * one.total - (runs - ITERATIONS) * one.update);
    ck_assert_int_ge(control, 0);
    ck_assert_int_lt(control, 100 * runs);
    ck_assert_int_eq(all.total,
                     all.compute + all.exchange + all.sync + all.host);
    ck_assert_int_gt(all.streaming_bytes, 0);
    /* Each iteration moves rows of the table, and Adam's means there and
     * back. */
    ck_assert_int_eq(all.streaming_bytes,
                     runs * WIDTH * 4 +
                         (int64_t)ITERATIONS * LAYERS * 4 * WIDTH * WIDTH * 4);
}

TEST_MAIN("device_fit_loops", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
