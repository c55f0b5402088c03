/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests remedies for a network that does not fit. The author's program is
 * written anew for each remedy: recomputation, part of the batch with
 * accumulated gradients, float16, optimiser state in memory off the chip,
 * several chips by hand and automatically, no mapping by hand. Its bytes and
 * time are then compared, within 5 %, with the predictions of ipu_remedy_try,
 * and these with the text of the refusal.
 */
#include "suite.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "one_device.h"

enum { MOST = 32, ROWS = 4096, WIDTH = 1024, LAYERS = 16 };

/* Remedies that the author of a program may apply. */
struct way {
    int32_t parts; /* of the batch */
    int32_t mini;  /* number of mini-batches in an update region; 0: none */
    ipu_dtype dtype;
    ipu_offload offload,
        others; /* offloading of state, and of weights and accumulators */
    bool recompute;
    int32_t shards; /* 0: none */
    bool by_hand;   /* the author has chosen the shards */
    bool placed;    /* some weights are mapped to the wrong tiles */
};

static const struct way plain = {
    .parts = 1, .dtype = IPU_FLOAT32, .offload = IPU_OFFLOAD_OFF};

static ipu_target target;

static void set_up(void)
{
    d = device_new();
    ipu_target_init(&target, sizeof target);
    MUST(ipu_target_find("mk1", &target));
}

/* Builds dense layers with relu, a loss and an optimiser. */
static ipu_tensor dense(ipu_graph *graph, const struct way *way, int rows,
                        int layers, ipu_tensor *w)
{
    ipu_tensor x = ipu_input(graph, "x", way->dtype, 2, SHAPE(rows, WIDTH));
    ipu_tensor labels = ipu_input(graph, "labels", IPU_INT32, 1, SHAPE(rows));
    char name[16];

    for (int i = 0; i < layers; i++) {
        if (way->by_hand)
            MUST(ipu_shard(graph, i * way->shards / layers));
        snprintf(name, sizeof name, "w%d", i);
        w[i] = ipu_variable(graph, name, way->dtype, 2, SHAPE(WIDTH, WIDTH));
        if (way->placed)
            ipu_map(graph, w[i], 0, target.tiles / 2);
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
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    const ipu_optimizer o = {.size = sizeof o,
                             .kind = kind,
                             .rate =
                                 ipu_fill(graph, way->dtype, 0, NULL, 0.01)};
    const ipu_update_options u = {
        .size = sizeof u,
        .offload = way->offload,
        .offload_weights = way->others,
        .accumulation = {.size = sizeof u.accumulation,
                         .offload = way->others}};
    ipu_tensor w[MOST], slopes[MOST], loss;

    MUST(ipu_allow_recompute(graph, way->recompute));
    loss = dense(graph, way, rows / way->parts, layers, w);
    if (way->by_hand)
        MUST(ipu_shard(graph, -1));
    MUST(ipu_gradients(graph, loss, layers, w, slopes));
    MUST(way->mini ? ipu_accumulating_optimizer(graph, &o, layers, w, slopes,
                                                way->mini, &u)
                   : ipu_optimize(graph, &o, layers, w, slopes));
    MUST(ipu_output(graph, "loss", loss));
    if (way->shards && !way->by_hand)
        MUST(ipu_shard_by_time(graph, &options, way->shards));
}

/* ---------------------------------------------------------- the predictions */

/* A network, and the way in which it is written at first. */
struct network {
    ipu_optimizer_kind kind;
    int rows, layers;
    const struct way *way;
};

static const struct network activations = {IPU_OPTIMIZER_SGD, ROWS, LAYERS,
                                           &plain};

/* The text is kept until the next call. */
static const char *refusal(const struct network *n)
{
    static char text[4096];

    build(d.graph, n->way, n->kind, n->rows, n->layers);
    ck_assert_int_eq(ipu_compile(d.graph, &target, &d.executable),
                     IPU_ERR_FULL);
    snprintf(text, sizeof text, "%s", ipu_last_error());
    return text;
}

/* Checks that the refusal's text about a remedy has the numbers that
 * ipu_remedy_try gives: "...; what: N bytes, [COUNT runs, of ]X ms [in all
 * ]instead of Y". Returns those numbers. */
static ipu_remedy told(const char *text, ipu_remedy_kind kind, const char *what)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_remedy r = {.size = sizeof r};
    char said[96];

    snprintf(said, sizeof said, what, (int)r.parts);
    MUST(ipu_remedy_try(d.graph, &options, kind, 0, &r));
    ck_assert_int_eq(r.kind, kind);
    ck_assert_int_eq(r.bytes_per_tile, target.bytes_per_tile);
    ck_assert_int_eq(r.fits, r.tile_bytes <= r.bytes_per_tile);
    ck_assert_int_eq(r.fits, 1);
    snprintf(said, sizeof said, what, (int)r.parts);
    snprintf(said + strlen(said), sizeof said - strlen(said),
             ": %" PRId64 " bytes, ", r.tile_bytes);
    ck_assert_msg(strstr(text, said) != NULL, "'%s' is not in: %s", said, text);
    if (r.runs > 1)
        snprintf(said, sizeof said, "%d runs, of %.4g ms in all", (int)r.runs,
                 1e3 * r.seconds);
    else
        snprintf(said, sizeof said, " %.4g ms instead of", 1e3 * r.seconds);
    ck_assert_msg(strstr(text, said) != NULL, "'%s' is not in: %s", said, text);
    return r;
}

static void check_near(const char *what, double is, double told)
{
    ck_assert_msg(fabs(is / told - 1) <= 0.05, "%s: %g, and %g was told", what,
                  is, told);
}

/* Adds the bytes and seconds of a program on several chips. */
static void add_shards(const ipu_executable *e, int64_t *bytes, double *seconds)
{
    ipu_sharding_info all = {.size = sizeof all};
    ipu_system system = {.size = sizeof system};

    MUST(ipu_system_find("M2000", &system));
    system.ipu = target;
    MUST(ipu_executable_sharding(e, &system, &all));
    *seconds = all.seconds;
    *bytes = 0;
    for (int s = 0; s < all.shards; s++) {
        ipu_shard_info info = {.size = sizeof info};

        MUST(ipu_executable_shard(e, s, &info));
        if (*bytes < info.tile_bytes)
            *bytes = info.tile_bytes;
    }
}

/* Writes the program in this way and compiles it for the same chip; it must
 * fit. */
static void check_told(const struct network *n, const struct way *way,
                       ipu_remedy r)
{
    struct device other = device_new();
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_program_cycles cycles = {.size = sizeof cycles};
    int64_t bytes;
    double seconds;

    build(other.graph, way, n->kind, n->rows, n->layers);
    MUST(ipu_compile(other.graph, &target, &other.executable));
    MUST(ipu_executable_memory(other.executable, &memory));
    MUST(ipu_executable_cycles(other.executable, &cycles));
    bytes = memory.fullest_tile_bytes;
    seconds = ipu_model_seconds(
        &target, cycles.total + (r.runs - 1) * (cycles.total - cycles.update));
    if (way->shards)
        add_shards(other.executable, &bytes, &seconds);
    check_near("bytes", (double)bytes, (double)r.tile_bytes);
    check_near("ms", 1e3 * seconds, 1e3 * r.seconds);
    ck_assert_int_eq(memory.remote_bytes, r.remote_bytes);
    ck_assert_int_le(bytes, target.bytes_per_tile);
    device_free(&other);
}

/* Returns the time of the unchanged program, which the engine would run
 * although it does not fit. */
static double ms_of_plain(const struct network *n)
{
    struct device other = device_new();
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .allow_out_of_memory = 1};
    ipu_program_cycles cycles = {.size = sizeof cycles};

    build(other.graph, n->way, n->kind, n->rows, n->layers);
    MUST(ipu_compile_with(other.graph, &options, &other.executable));
    MUST(ipu_executable_cycles(other.executable, &cycles));
    device_free(&other);
    return 1e3 * cycles.seconds;
}

/* -------------------------------------------------------------------- tests */

/* Activations take too much memory here. */
TEST(activations_can_be_computed_again)
{
    const char *text = refusal(&activations);
    ipu_remedy r = told(text, IPU_REMEDY_RECOMPUTE,
                        "recomputing results that only later steps need");
    struct way way = plain;
    char before[48];

    way.recompute = true;
    snprintf(before, sizeof before, "ms instead of %.4g;",
             ms_of_plain(&activations));
    ck_assert_msg(strstr(text, before) != NULL, "%s: %s", before, text);
    check_told(&activations, &way, r);
}

TEST(gradients_can_be_accumulated)
{
    ipu_remedy r = told(refusal(&activations), IPU_REMEDY_ACCUMULATE,
                        "1/%d of the batch, gradients accumulated");
    struct way way = plain;

    ck_assert_int_ge(r.parts, 2);
    ck_assert_int_eq(r.parts, r.runs);
    way.parts = way.mini = r.parts;
    check_told(&activations, &way, r);
}

TEST(numbers_can_be_half_as_long)
{
    ipu_remedy r =
        told(refusal(&activations), IPU_REMEDY_HALF, "float16 throughout");
    struct way way = plain;

    way.dtype = IPU_FLOAT16;
    check_told(&activations, &way, r);
}

/* The optimiser's state takes too much memory here; the chip has streaming
 * memory for it. */
TEST(state_can_lie_beside_the_chip)
{
    const struct network state = {IPU_OPTIMIZER_ADAM, 256, 24, &plain};
    struct way way = plain;
    ipu_remedy r;

    target.streaming_bytes_per_second = 20e9;
    r = told(refusal(&state), IPU_REMEDY_OFFLOAD,
             "offloading what only the update uses");
    ck_assert_int_gt(r.remote_bytes, 0);
    way.mini = 1;
    way.offload = IPU_OFFLOAD_ON;
    check_told(&state, &way, r);
}

/* Weights, too, leave the chip between their uses. */
TEST(weights_can_lie_beside_the_chip)
{
    const struct network state = {IPU_OPTIMIZER_ADAM, 256, 24, &plain};
    struct way way = plain;
    ipu_remedy few, r;
    const char *text;

    target.streaming_bytes_per_second = 20e9;
    text = refusal(&state);
    few =
        told(text, IPU_REMEDY_OFFLOAD, "offloading what only the update uses");
    r = told(text, IPU_REMEDY_OFFLOAD_ALL,
             "offloading weights and accumulators, too");
    ck_assert_int_lt(r.tile_bytes, few.tile_bytes);
    ck_assert(r.seconds > few.seconds);
    way.mini = 1;
    way.offload = way.others = IPU_OFFLOAD_ON;
    check_told(&state, &way, r);
}

/* The program is spread over as many chips as it takes, or over more;
 * automatically, or by hand. */
LOOP_TEST(several_chips_can_share_it, 0, 4)
{
    const struct network state = {IPU_OPTIMIZER_ADAM, 256, 24, &plain};
    const struct network *n = _i & 1 ? &state : &activations;
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_remedy r = told(refusal(n), IPU_REMEDY_SHARD, "sharding over %d chips");
    struct way way = plain;

    ck_assert_int_eq(r.parts, 2);
    way.by_hand = _i & 2;
    way.shards = r.parts;
    check_told(n, &way, r);
    way.shards = 4;
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_SHARD, 4, &r));
    ck_assert_int_eq(r.parts, 4);
    check_told(n, &way, r);
}

/* The program has put all weights on half of the tiles. */
TEST(the_compiler_may_place_it_better)
{
    static const struct way heaped = {.parts = 1,
                                      .dtype = IPU_FLOAT32,
                                      .offload = IPU_OFFLOAD_OFF,
                                      .placed = true};
    const struct network n = {IPU_OPTIMIZER_SGD, 256, 30, &heaped};
    ipu_remedy r = told(refusal(&n), IPU_REMEDY_PLACEMENT,
                        "the compiler's placement, not the program's");

    check_told(&n, &plain, r);
}

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

/* Builds a layer norm and one head of attention over 24 tokens. */
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

/* Every remedy is offered except a new mapping: nothing has been mapped by
 * hand. */
LOOP_TEST(all_kinds_of_networks_can_be_changed, 0, 2)
{
    const ipu_optimizer o = {.size = sizeof o,
                             .kind = IPU_OPTIMIZER_ADAM,
                             .rate =
                                 ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 0.01)};
    const char *at;
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
    for (at = ipu_last_error(); (at = strstr(at, "instead of")); at++)
        compiled++;
    ck_assert_msg(compiled == IPU_NUM_REMEDIES - 1, "%s", ipu_last_error());
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "What would not; "
                                                   "placement: the compiler "
                                                   "has placed all of it"));
}

/* A remedy that cannot be applied is named, with the reason. */
TEST(what_a_program_cannot_have_is_said)
{
    static const struct {
        ipu_remedy_kind kind;
        const char *why;
    } cannot[] = {
        {IPU_REMEDY_ACCUMULATE, "accumulate: no batch of a multiple of 2"},
        {IPU_REMEDY_RECOMPUTE, "recompute: the program has no gradients"},
        {IPU_REMEDY_OFFLOAD, "offload: 'mk1' has no memory beside the chip"},
        {IPU_REMEDY_OFFLOAD_ALL,
         "offload all: 'mk1' has no memory beside the chip"},
        {IPU_REMEDY_PLACEMENT, "placement: the compiler has placed all of it"},
    };
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(90000001));
    ipu_remedy r = {.size = sizeof r};

    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, x)));
    for (size_t i = 0; i < sizeof cannot / sizeof *cannot; i++) {
        MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
                  cannot[i].why);
        MUST_FAIL(ipu_remedy_try(d.graph, &options, cannot[i].kind, 0, &r),
                  IPU_ERR_STATE, cannot[i].why);
    }
}

/* A program that asks for no remedies gets the reason alone. */
TEST(a_refusal_may_be_brief)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .brief = 1};

    build(d.graph, &plain, IPU_OPTIMIZER_SGD, ROWS, LAYERS);
    MUST_FAIL(ipu_compile_with(d.graph, &options, &d.executable), IPU_ERR_FULL,
              "largest there: ");
    ck_assert_ptr_null(strstr(ipu_last_error(), "What would"));
}

/* Counts the orderings of steps. */
static int count_orders(void *context, const char *phase, int64_t done,
                        int64_t total)
{
    int *orders = context;

    (void)total;
    *orders += strcmp(phase, "order") == 0 && done == 0;
    return 0;
}

/* If variables alone are too large, the compiler says so without looking for an
 * order of steps. ipu_remedy_try still computes everything. */
TEST(what_is_hopeless_is_given_up)
{
    static const char hopeless[] =
        "float16 throughout: %" SCNd64 " bytes at least (still too many)%n";
    ipu_compile_options options = {
        .size = sizeof options, .target = &target, .progress = count_orders};
    ipu_remedy r = {.size = sizeof r};
    int64_t alone = 0;
    int orders = 0, end = 0;
    const char *at;

    target.bytes_per_tile = 20 * 1024;
    build(d.graph, &plain, IPU_OPTIMIZER_SGD, 256, LAYERS);
    options.progress_context = &orders;
    MUST_FAIL(ipu_compile_with(d.graph, &options, &d.executable), IPU_ERR_FULL,
              "float16 throughout: ");
    at = strstr(ipu_last_error(), "float16 throughout: ");
    sscanf(at, hopeless, &alone, &end);
    ck_assert_msg(end > 0, "%s", at);
    ck_assert_ptr_null(strstr(at, "1/4 of the batch"));
    orders = 0;
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_HALF, 0, &r));
    ck_assert_int_eq(orders, 1);
    ck_assert_int_eq(r.fits, 0);
    ck_assert_int_gt(alone, target.bytes_per_tile);
    ck_assert_int_lt(alone, r.tile_bytes);
}

/* The rows of a batch go through one after the other, without gradients. */
TEST(a_batch_can_be_cut_for_inference)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_tensor w[MOST], loss;
    ipu_remedy whole = {.size = sizeof whole}, r = whole;

    target.bytes_per_tile = 48 * 1024;
    loss = dense(d.graph, &plain, ROWS, 2, w);
    MUST(ipu_output(d.graph, "loss", loss));
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              " of the batch at a time: ");
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_ACCUMULATE, 0, &r));
    ck_assert_int_eq(r.runs, r.parts);
    ck_assert_int_eq(r.fits, 1);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_ACCUMULATE, r.parts / 2,
                        &whole));
    ck_assert_int_eq(whole.fits, 0);
}

TEST(misuse_is_refused)
{
    const ipu_compile_options options = {.size = sizeof options};
    ipu_remedy r = {.size = sizeof r};

    MUST(ipu_output(d.graph, "y",
                    ipu_relu(d.graph, device_floats(&d, "x", 1, SHAPE(64)))));
    MUST_FAIL(ipu_remedy_try(NULL, &options, IPU_REMEDY_HALF, 0, &r),
              IPU_ERR_ARGUMENT, "the graph is NULL");
    MUST_FAIL(ipu_remedy_try(d.graph, NULL, IPU_REMEDY_HALF, 0, &r),
              IPU_ERR_ARGUMENT, "options is NULL");
    MUST_FAIL(ipu_remedy_try(d.graph, &options, IPU_REMEDY_HALF, 0, NULL),
              IPU_ERR_ARGUMENT, "the place for it is NULL");
    MUST_FAIL(ipu_remedy_try(d.graph, &options, -1, 0, &r), IPU_ERR_ARGUMENT,
              "none number -1");
    MUST_FAIL(ipu_remedy_try(d.graph, &options, IPU_NUM_REMEDIES, 0, &r),
              IPU_ERR_ARGUMENT, "there is none number");
    MUST_FAIL(ipu_remedy_try(d.graph, &options, IPU_REMEDY_SHARD, 65, &r),
              IPU_ERR_ARGUMENT, "shard in 65 parts: 0 to 64");
    MUST_FAIL(ipu_remedy_try(d.graph, &options, IPU_REMEDY_HALF, 2, &r),
              IPU_ERR_ARGUMENT, "float16 in 2 parts: 0 to 1");
    r.size = 4;
    MUST_FAIL(ipu_remedy_try(d.graph, &options, IPU_REMEDY_HALF, 0, &r),
              IPU_ERR_ARGUMENT, "size is 4");
    ck_assert_ptr_null(ipu_remedy_name(-1));
    ck_assert_ptr_null(ipu_remedy_name(IPU_NUM_REMEDIES));
    for (int i = 0; i < IPU_NUM_REMEDIES; i++)
        ck_assert_ptr_nonnull(ipu_remedy_name(i));
}

static int32_t stop_at_remedies(void *context, const char *phase, int64_t done,
                                int64_t total)
{
    (void)total;
    *(int *)context += strcmp(phase, "remedies") == 0;
    return strcmp(phase, "remedies") == 0 && done == 2;
}

/* Remedies are tried one after the other until the caller stops. */
TEST(the_search_can_be_stopped)
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

TEST_MAIN("device_fit", .set_up = set_up, .tear_down = one_device_free,
          .seconds = 300)
