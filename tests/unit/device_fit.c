/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network that does not fit, made to fit by each of the remedies that the
 * compiler names, with the bytes and the time that it foretells.
 *
 * The author's program is written anew for each: with recomputation, with a
 * part of the batch and accumulated gradients, in float16, with the
 * optimiser's state beside the chip. What it then has is compared with what was
 * said of it, within 5 %.
 */
#include "check_main.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "device.h"

enum { MOST = 32, ROWS = 4096, WIDTH = 1024, LAYERS = 16 };

/* What the author may do about it. */
struct way {
    int32_t parts; /* of the batch */
    int32_t mini;  /* mini-batches in an update region; 0: none */
    ipu_dtype dtype;
    ipu_offload offload;
    bool recompute;
};

static const struct way plain = {
    .parts = 1, .dtype = IPU_FLOAT32, .offload = IPU_OFFLOAD_OFF};

static struct device d;
static ipu_target target;

static void set_up(void)
{
    d = device_new();
    ipu_target_init(&target, sizeof target);
    MUST(ipu_target_find("mk1", &target));
}

static void tear_down(void)
{
    device_free(&d);
}

/* Dense layers with relu, a loss, an optimiser. */
static ipu_tensor dense(ipu_graph *graph, const struct way *way, int rows,
                        int layers, ipu_tensor *w)
{
    ipu_tensor x = ipu_input(graph, "x", way->dtype, 2, SHAPE(rows, WIDTH));
    ipu_tensor labels = ipu_input(graph, "labels", IPU_INT32, 1, SHAPE(rows));
    char name[16];

    for (int i = 0; i < layers; i++) {
        snprintf(name, sizeof name, "w%d", i);
        w[i] = ipu_variable(graph, name, way->dtype, 2, SHAPE(WIDTH, WIDTH));
        x = ipu_relu(graph, ipu_matmul(graph, x, w[i]));
    }
    x = ipu_softmax_cross_entropy(graph, x, labels);
    if (way->dtype != IPU_FLOAT32)
        x = ipu_cast(graph, x, IPU_FLOAT32);
    return ipu_reduce_sum(graph, x, 1.0 / rows);
}

static void build(ipu_graph *graph, const struct way *way,
                  ipu_optimizer_kind kind, int rows, int layers)
{
    const ipu_optimizer o = {.size = sizeof o,
                             .kind = kind,
                             .rate =
                                 ipu_fill(graph, way->dtype, 0, NULL, 0.01)};
    const ipu_update_options u = {.size = sizeof u, .offload = way->offload};
    ipu_tensor w[MOST], slopes[MOST], loss;

    MUST(ipu_allow_recompute(graph, way->recompute));
    loss = dense(graph, way, rows / way->parts, layers, w);
    MUST(ipu_gradients(graph, loss, layers, w, slopes));
    MUST(way->mini ? ipu_accumulating_optimizer(graph, &o, layers, w, slopes,
                                                way->mini, &u)
                   : ipu_optimize(graph, &o, layers, w, slopes));
    MUST(ipu_output(graph, "loss", loss));
}

/* ----------------------------------------------------- what is said of them */

struct told {
    int32_t parts;
    int64_t bytes;
    double ms, before;
};

static const char *refusal(ipu_optimizer_kind kind, int rows, int layers)
{
    build(d.graph, &plain, kind, rows, layers);
    ck_assert_int_eq(ipu_compile(d.graph, &target, &d.executable),
                     IPU_ERR_FULL);
    return ipu_last_error();
}

/* "...; what: N bytes, [so many runs, of ]X ms [in all ]instead of Y" */
static struct told find(const char *text, const char *what)
{
    struct told t = {.parts = 1};
    const char *at = strstr(text, what), *ms;
    char *end;

    ck_assert_msg(at != NULL, "'%s' is not in: %s", what, text);
    at += strlen(what);
    t.bytes = strtoll(at, &end, 10);
    ck_assert_msg(strncmp(end, " bytes, ", 8) == 0,
                  "it does not fit with that: %s", text);
    at = end + 8;
    ms = strstr(at, "of ");
    if (ms && ms < strstr(at, " ms")) {
        t.parts = (int32_t)strtol(at, NULL, 10);
        at = ms + 3;
    }
    t.ms = strtod(at, &end);
    at = strstr(end, "instead of ");
    ck_assert_ptr_nonnull(at);
    t.before = strtod(at + 11, NULL);
    return t;
}

static void check_near(const char *what, double is, double told)
{
    ck_assert_msg(fabs(is / told - 1) <= 0.05, "%s: %g, and %g was told", what,
                  is, told);
}

/* Write the program so, and compile it for the same chip: it fits. */
static void check_told(const struct way *way, struct told t,
                       ipu_optimizer_kind kind, int rows, int layers)
{
    struct device other = device_new();
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_program_cycles cycles = {.size = sizeof cycles};
    double seconds;

    build(other.graph, way, kind, rows, layers);
    MUST(ipu_compile(other.graph, &target, &other.executable));
    MUST(ipu_executable_memory(other.executable, &memory));
    MUST(ipu_executable_cycles(other.executable, &cycles));
    seconds = ipu_model_seconds(
        &target, cycles.total + (t.parts - 1) * (cycles.total - cycles.update));
    check_near("bytes", (double)memory.fullest_tile_bytes, (double)t.bytes);
    check_near("ms", 1e3 * seconds, t.ms);
    ck_assert_int_le(memory.fullest_tile_bytes, target.bytes_per_tile);
    device_free(&other);
}

/* What the program takes as it is, which the engine would run all the same. */
static double ms_of_plain(ipu_optimizer_kind kind, int rows, int layers)
{
    struct device other = device_new();
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};
    ipu_program_cycles cycles = {.size = sizeof cycles};

    build(other.graph, &plain, kind, rows, layers);
    MUST(ipu_compile_with(other.graph, &options, &other.executable));
    MUST(ipu_executable_cycles(other.executable, &cycles));
    device_free(&other);
    return 1e3 * cycles.seconds;
}

/* --------------------------------------------------------------------- tests
 */

/* Activations are what is too much. */
START_TEST(activations_can_be_computed_again)
{
    const char *text = refusal(IPU_OPTIMIZER_SGD, ROWS, LAYERS);
    struct told t = find(text, "recomputing results that only later steps "
                               "need: ");
    struct way way = plain;

    way.recompute = true;
    check_near("before", ms_of_plain(IPU_OPTIMIZER_SGD, ROWS, LAYERS),
               t.before);
    check_told(&way, t, IPU_OPTIMIZER_SGD, ROWS, LAYERS);
}
END_TEST

START_TEST(gradients_can_be_accumulated)
{
    const char *text = refusal(IPU_OPTIMIZER_SGD, ROWS, LAYERS);
    struct told t = find(text, " of the batch, gradients accumulated: ");
    struct way way = plain;

    ck_assert_int_ge(t.parts, 2);
    way.parts = way.mini = t.parts;
    check_told(&way, t, IPU_OPTIMIZER_SGD, ROWS, LAYERS);
}
END_TEST

START_TEST(numbers_can_be_half_as_long)
{
    const char *text = refusal(IPU_OPTIMIZER_SGD, ROWS, LAYERS);
    struct told t = find(text, "float16 throughout: ");
    struct way way = plain;

    way.dtype = IPU_FLOAT16;
    check_told(&way, t, IPU_OPTIMIZER_SGD, ROWS, LAYERS);
}
END_TEST

/* The optimiser's state is what is too much; and there is memory beside the
 * chip. */
START_TEST(state_can_lie_beside_the_chip)
{
    enum { FEW = 256, DEEP = 24 };
    struct way way = plain;
    struct told t;

    target.streaming_bytes_per_second = 20e9;
    t = find(refusal(IPU_OPTIMIZER_ADAM, FEW, DEEP),
             "offloading what only the update uses: ");
    way.mini = 1;
    way.offload = IPU_OFFLOAD_ON;
    check_told(&way, t, IPU_OPTIMIZER_ADAM, FEW, DEEP);
}
END_TEST

static ipu_tensor images(ipu_graph *g, ipu_tensor *w)
{
    const ipu_conv_options same = {
        .size = sizeof same, .stride = {1, 1}, .same = 1};
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 4, SHAPE(16, 12, 12, 8));
    ipu_tensor mean = ipu_variable(g, "mean", IPU_FLOAT32, 1, SHAPE(32));
    ipu_tensor spread = ipu_variable(g, "variance", IPU_FLOAT32, 1, SHAPE(32));

    w[0] = ipu_variable(g, "k", IPU_FLOAT32, 4, SHAPE(3, 3, 8, 32));
    w[1] = ipu_variable(g, "scale", IPU_FLOAT32, 1, SHAPE(32));
    w[2] = ipu_variable(g, "offset", IPU_FLOAT32, 1, SHAPE(32));
    w[3] = ipu_variable(g, "dense", IPU_FLOAT32, 2, SHAPE(288, 64));
    x = ipu_conv2d(g, x, w[0], &same);
    x = ipu_batch_norm(g, x, w[1], w[2], mean, spread, 0.9, 1e-3);
    x = ipu_avg_pool2d(g, ipu_max_pool2d(g, ipu_relu(g, x), 2), 2);
    x = ipu_dropout(g, ipu_reshape(g, x, 2, SHAPE(16, 288)), 0.1, 7,
                    ipu_counter(g, "step"));
    x = ipu_mean_squared_error(g, ipu_matmul(g, x, w[3]),
                               ipu_fill(g, IPU_FLOAT32, 2, SHAPE(16, 64), 0));
    return x;
}

/* One head of attention over 24 tokens, and a layer norm before it. */
static ipu_tensor tokens(ipu_graph *g, ipu_tensor *w)
{
    ipu_tensor ids = ipu_input(g, "ids", IPU_INT32, 2, SHAPE(16, 24)), x, a;
    ipu_tensor labels = ipu_input(g, "labels", IPU_INT32, 1, SHAPE(16 * 24));

    w[0] = ipu_variable(g, "table", IPU_FLOAT32, 2, SHAPE(100, 64));
    w[1] = ipu_variable(g, "scale", IPU_FLOAT32, 1, SHAPE(64));
    w[2] = ipu_variable(g, "offset", IPU_FLOAT32, 1, SHAPE(64));
    w[3] = ipu_variable(g, "out", IPU_FLOAT32, 2, SHAPE(64, 100));
    x = ipu_layer_norm(g, ipu_embedding(g, w[0], ids), w[1], w[2], 1e-5);
    a = ipu_softmax(g, ipu_batch_matmul(g, x, x, 0, 1));
    x = ipu_add(g, x, ipu_batch_matmul(g, a, x, 0, 0));
    x = ipu_matmul(g, ipu_reshape(g, x, 2, SHAPE(16 * 24, 64)), w[3]);
    x = ipu_softmax_cross_entropy(g, x, labels);
    return ipu_reduce_sum(g, x, 1.0 / (16 * 24));
}

/* Every remedy is one that was compiled. */
START_TEST(all_kinds_of_networks_can_be_changed)
{
    const ipu_optimizer o = {.size = sizeof o,
                             .kind = IPU_OPTIMIZER_ADAM,
                             .rate =
                                 ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.01)};
    const char *text, *at;
    ipu_tensor w[4], slopes[4], loss;
    int compiled = 0;

    target.tiles = 16;
    target.bytes_per_tile = 32768;
    target.streaming_bytes_per_second = 20e9;
    loss = _i ? tokens(d.graph, w) : images(d.graph, w);
    MUST(ipu_gradients(d.graph, loss, 4, w, slopes));
    MUST(ipu_optimize(d.graph, &o, 4, w, slopes));
    MUST(ipu_output(d.graph, "loss", loss));
    ck_assert_int_eq(ipu_compile(d.graph, &target, &d.executable),
                     IPU_ERR_FULL);
    text = ipu_last_error();
    for (at = text; (at = strstr(at, "instead of")); at++)
        compiled++;
    ck_assert_msg(compiled == 4, "%s", text);
}
END_TEST

/* What cannot be changed so is judged by what lies on the tile. */
START_TEST(programs_of_another_kind_are_told_less)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(90000001));

    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, x)));
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              "What would change that");
    ck_assert_ptr_null(strstr(ipu_last_error(), "computing"));
    ck_assert_ptr_null(strstr(ipu_last_error(), "offloading"));
    ck_assert_ptr_null(strstr(ipu_last_error(), "in all instead of"));
}
END_TEST

static int32_t stop_at_remedies(void *context, const char *phase, int64_t done,
                                int64_t total)
{
    (void)total;
    *(int *)context += strcmp(phase, "remedies") == 0;
    return strcmp(phase, "remedies") == 0 && done == 2;
}

/* Remedies are tried one after the other, until somebody has enough. */
START_TEST(the_search_can_be_stopped)
{
    int seen = 0;
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target,
                                         .progress = stop_at_remedies,
                                         .progress_context = &seen};

    build(d.graph, &plain, IPU_OPTIMIZER_SGD, ROWS, LAYERS);
    ck_assert_int_eq(ipu_compile_with(d.graph, &options, &d.executable),
                     IPU_ERR_CALLBACK);
    ck_assert_int_eq(seen, 3);
}
END_TEST

static TCase *tcase_fit(void)
{
    TCase *tc = tcase_create("fit");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, activations_can_be_computed_again);
    tcase_add_test(tc, gradients_can_be_accumulated);
    tcase_add_test(tc, numbers_can_be_half_as_long);
    tcase_add_test(tc, state_can_lie_beside_the_chip);
    tcase_add_loop_test(tc, all_kinds_of_networks_can_be_changed, 0, 2);
    tcase_add_test(tc, the_search_can_be_stopped);
    tcase_add_test(tc, programs_of_another_kind_are_told_less);
    return tc;
}

HVD_TEST_MAIN("device_fit", tcase_fit)
