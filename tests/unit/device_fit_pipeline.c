/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a network that does not fit, written as the pipeline that the compiler
 * suggests. Its author writes the stages and runs an update; bytes and cycles
 * must match the prediction within 5 %.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>

#include "one_device.h"

enum { ROWS = 256, WIDTH = 256, LAYERS = 8, CLASSES = 10 };

static ipu_target target;
static ipu_optimizer_kind kind;
static bool drops;      /* after each layer */
static int first_times; /* the first layer is applied so many times, */
static int turns;       /* and then so many ops by element */
static int border; /* of two stages: the first layer of the second; 0: in the
                      middle */

static void set_up(void)
{
    d = device_new();
    ipu_target_init(&target, sizeof target);
    MUST(ipu_target_find("mk2", &target));
    target.tiles = 64;
    target.bytes_per_tile = 160 * 1024;
    target.streaming_bytes_per_second = 0;
    kind = IPU_OPTIMIZER_ADAM;
    drops = false;
    first_times = 1;
    turns = 0;
    border = 0;
}

/* Layer number i; where: of the counter's name. */
static ipu_tensor layer(ipu_graph *g, ipu_tensor h, int i, ipu_tensor step,
                        ipu_tensor *w)
{
    int64_t outputs = i == LAYERS - 1 ? CLASSES : WIDTH;
    char name[16];

    snprintf(name, sizeof name, "w%d", i);
    *w = ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(WIDTH, outputs));
    if (i == LAYERS - 1)
        return ipu_matmul(g, h, *w);
    for (int k = 0; k < (i ? 1 : first_times); k++)
        h = ipu_relu(g, ipu_matmul(g, h, *w));
    for (int k = 0; i == 0 && k < turns; k++)
        h = ipu_tanh(g, h);
    return drops ? ipu_dropout(g, h, 0.1, (uint64_t)i, step) : h;
}

static ipu_tensor loss_of(ipu_graph *g, ipu_tensor h, ipu_tensor labels,
                          int rows)
{
    return ipu_reduce_sum(g, ipu_softmax_cross_entropy(g, h, labels),
                          1.0 / rows);
}

static int optimize(ipu_graph *g, ipu_tensor rate, int32_t count,
                    const ipu_tensor *w, const ipu_tensor *slopes)
{
    const ipu_optimizer o = {.size = sizeof o, .kind = kind, .rate = rate};

    return ipu_optimize(g, &o, count, w, slopes);
}

/* Builds the whole network on one chip. */
static void whole(ipu_graph *g)
{
    ipu_tensor rate = ipu_input(g, "rate", IPU_FLOAT32, 0, NULL);
    ipu_tensor h = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    ipu_tensor labels = ipu_input(g, "labels", IPU_INT32, 1, SHAPE(ROWS));
    ipu_tensor step = drops ? ipu_counter(g, "step") : rate;
    ipu_tensor w[LAYERS], slopes[LAYERS], loss;

    for (int i = 0; i < LAYERS; i++)
        h = layer(g, h, i, step, &w[i]);
    loss = loss_of(g, h, labels, ROWS);
    MUST(ipu_gradients(g, loss, LAYERS, w, slopes));
    MUST(optimize(g, rate, LAYERS, w, slopes));
    MUST(ipu_output(g, "loss", loss));
}

/* ---------------------------------------------------- as the author has it */

struct stage {
    int number, of, rows;
};

/* Returns the first layer of a stage. */
static int first_layer(const struct stage *s, int number)
{
    return number == 1 && border ? border : number * LAYERS / s->of;
}

/* Builds a stage: rate, labels, h -> rate, labels, h; the last: loss, rate. */
static int build_stage(void *context, ipu_graph *g, int32_t ninputs,
                       const ipu_tensor *in, ipu_tensor *out)
{
    const struct stage *s = context;
    ipu_tensor h = in[s->number ? 2 : 1], labels = in[s->number ? 1 : 2], w;
    ipu_tensor step = in[0];
    char name[16];

    ck_assert_int_eq(ninputs, 3);
    snprintf(name, sizeof name, "step%d", s->number);
    if (drops)
        step = ipu_counter(g, name);
    for (int i = first_layer(s, s->number); i < first_layer(s, s->number + 1);
         i++)
        h = layer(g, h, i, step, &w);
    if (s->number == s->of - 1) {
        out[0] = loss_of(g, h, labels, s->rows);
        out[1] = in[0];
        return 2;
    }
    out[0] = in[0];
    out[1] = labels;
    out[2] = h;
    return 3;
}

static int build_optimizer(void *context, ipu_graph *g, int32_t noutputs,
                           const ipu_tensor *outputs, int32_t count,
                           const ipu_tensor *w, const ipu_tensor *slopes)
{
    (void)context, (void)noutputs;
    return optimize(g, outputs[1], count, w, slopes);
}

static int next(void *context, void *const *buffers)
{
    const struct stage *s = context;
    int32_t *labels = buffers[1];

    device_fill(buffers[0], (size_t)s->rows * WIDTH, 5);
    for (int i = 0; i < s->rows; i++)
        labels[i] = i % CLASSES;
    return 1;
}

struct cost {
    int64_t bytes, cycles;
};

/* Returns the cost of one update of the pipeline. */
static struct cost run(int nstages)
{
    struct stage parts[4];
    ipu_stage stages[4];
    const ipu_feed_tensor rate = {.name = "rate", .dtype = IPU_FLOAT32};
    const int rows = ROWS / (2 * nstages);
    const ipu_feed_tensor elements[] = {
        {.name = "x", .dtype = IPU_FLOAT32, .ndim = 2, .shape = {rows, WIDTH}},
        {.name = "labels", .dtype = IPU_INT32, .ndim = 1, .shape = {rows}}};
    ipu_system system = {.size = sizeof system};
    ipu_infeed_options feed;
    ipu_pipeline_options o;
    ipu_pipeline *p = NULL;
    ipu_pipeline_info info = {.size = sizeof info};
    struct cost cost = {0};

    for (int i = 0; i < nstages; i++) {
        parts[i] = (struct stage){i, nstages, rows};
        stages[i] = (ipu_stage){
            .build = build_stage, .context = &parts[i], .inputs = 3};
    }
    MUST(ipu_system_find("M2000", &system));
    system.ipu = target;
    ipu_infeed_options_init(&feed, sizeof feed);
    feed.name = "data";
    feed.ntensors = 2;
    feed.tensors = elements;
    feed.source = (ipu_source){.next = next, .context = &parts[0]};
    ipu_pipeline_options_init(&o, sizeof o);
    o.stages = stages;
    o.nstages = nstages;
    o.system = &system;
    o.count = 2 * nstages;
    o.narguments = 1;
    o.arguments = &rate;
    o.optimizer = build_optimizer;
    MUST(ipu_infeed_new(&feed, &o.infeed));
    MUST(ipu_infeed_start(o.infeed));
    MUST(ipu_pipeline_new(&o, &p));
    MUST(ipu_pipeline_run(p));
    MUST(ipu_pipeline_stats(p, &info));
    ck_assert_int_eq(info.updates, 1);
    cost.cycles = info.total_cycles;
    for (int i = 0; i < nstages; i++) {
        ipu_pipeline_ipu_info chip = {.size = sizeof chip};

        MUST(ipu_pipeline_ipu(p, i, &chip));
        if (cost.bytes < chip.tile_bytes)
            cost.bytes = chip.tile_bytes;
    }
    ipu_pipeline_free(p);
    ipu_infeed_free(o.infeed);
    return cost;
}

static void check_near(const char *what, int64_t is, int64_t told)
{
    ck_assert_msg(fabs((double)is / (double)told - 1) <= 0.05,
                  "%s: %lld, and %lld was told", what, (long long)is,
                  (long long)told);
}

/* The test runs two and four stages with Adam, with SGD, and with dropout whose
 * steps each stage counts. */
LOOP_TEST(a_pipeline_is_what_was_told, 0, 6)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .brief = 1};
    int nstages = _i % 2 ? 4 : 2;
    ipu_remedy r = {.size = sizeof r};
    struct cost cost;

    kind = _i / 2 == 1 ? IPU_OPTIMIZER_SGD : IPU_OPTIMIZER_ADAM;
    drops = _i / 2 == 2;
    whole(d.graph);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_PIPELINE, nstages, &r));
    ck_assert_int_eq(r.parts, nstages);
    cost = run(nstages);
    check_near("bytes", cost.bytes, r.tile_bytes);
    check_near("cycles", cost.cycles, r.cycles);
    ck_assert_int_eq(r.fits, 1);
    ck_assert(r.seconds > 0);
}

/* No other way to cut the program in two is faster: if the first layer takes as
 * long as all others, and holds as much as one of them; and if several ops of
 * it share a weight, between which no stage may end. */
LOOP_TEST(the_slowest_stage_is_as_fast_as_can_be, 0, 2)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .brief = 1};
    ipu_remedy r = {.size = sizeof r};
    int64_t cycles[LAYERS] = {0}, best = INT64_MAX;

    first_times = _i ? 16 : 1;
    turns = _i ? 0 : 120;
    target.bytes_per_tile *= 16;
    whole(d.graph);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_PIPELINE, 2, &r));
    for (border = 1; border < LAYERS; border++) {
        cycles[border] = run(2).cycles;
        best = best < cycles[border] ? best : cycles[border];
    }
    check_near("cycles", best, r.cycles);
    ck_assert_int_lt(r.cycles, cycles[LAYERS / 2]);
}

TEST(the_refusal_names_it)
{
    ipu_remedy r = {.size = sizeof r};
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    char words[96];
    static char text[4096];

    whole(d.graph);
    target.bytes_per_tile = 64 * 1024;
    ck_assert_int_eq(ipu_compile(d.graph, &target, &d.executable),
                     IPU_ERR_FULL);
    snprintf(text, sizeof text, "%s", ipu_last_error());
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_PIPELINE, 0, &r));
    snprintf(words, sizeof words,
             "a pipeline of %d stages, %d mini-batches: %lld bytes",
             (int)r.parts, (int)(2 * r.parts), (long long)r.tile_bytes);
    ck_assert_msg(strstr(text, words) != NULL, "'%s' is not in: %s", words,
                  text);
}

/* More stages with the optimiser's state on the chips come before fewer stages
 * with it off the chips. Asked for exactly this number, the remedy counts the
 * transfers of the state. */
TEST(state_stays_on_the_chips_where_more_stages_fit)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = &target, .brief = 1};
    ipu_remedy two = {.size = sizeof two}, found = two;
    int64_t full;

    target.streaming_bytes_per_second = 20e9;
    whole(d.graph);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_PIPELINE, 2, &two));
    ck_assert_int_eq(two.remote_bytes, 0);
    full = two.tile_bytes;
    target.bytes_per_tile = full - 1024;
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_PIPELINE, 2, &two));
    ck_assert_int_eq(two.fits, 1);
    ck_assert_int_gt(two.remote_bytes, 0);
    ck_assert_int_gt(two.streaming_cycles, 0);
    check_near("cycles", run(2).cycles, two.cycles);
    MUST(ipu_remedy_try(d.graph, &options, IPU_REMEDY_PIPELINE, 0, &found));
    ck_assert_int_eq(found.fits, 1);
    ck_assert_int_eq(found.parts, 4);
    ck_assert_int_eq(found.remote_bytes, 0);
    ck_assert_int_eq(found.streaming_cycles, 0);
    ck_assert_int_lt(found.cycles, two.cycles);
}

/* These programs cannot become pipelines. */
LOOP_TEST(some_programs_are_none, 0, 4)
{
    static const char *const why[] = {
        "pipeline: the program has no gradients",
        "pipeline: w is used by several stages",
        "takes gradients that are on other chips",
        "pipeline: it has not so many layers",
    };
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_remedy r = {.size = sizeof r};
    ipu_graph *g = d.graph;
    ipu_tensor h = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    ipu_tensor w[2], slopes[2], loss, step = h;
    int variables = _i == 1 ? 1 : 2;
    static const int32_t parts[] = {2, 4, 2, 32};

    if (_i == 1) {
        w[0] = ipu_variable(g, "w", IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
        for (int i = 0; i < 4; i++)
            h = ipu_relu(g, ipu_matmul(g, h, w[0]));
    } else {
        for (int i = 0; i < 2; i++)
            h = layer(g, h, i, step, &w[i]);
    }
    loss = ipu_reduce_sum(g, ipu_square(g, h), 1);
    if (_i > 0) {
        MUST(ipu_gradients(g, loss, variables, w, slopes));
        if (_i == 2)
            MUST(ipu_clip_by_global_norm(g, 2, slopes, 1, NULL));
        MUST(optimize(g, ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.1), variables, w,
                      slopes));
    }
    MUST(ipu_output(g, "loss", loss));
    MUST_FAIL(ipu_remedy_try(g, &options, IPU_REMEDY_PIPELINE, parts[_i], &r),
              IPU_ERR_STATE, why[_i]);
}

TEST_MAIN("device_fit_pipeline", .set_up = set_up, .tear_down = one_device_free,
          .seconds = 120)
