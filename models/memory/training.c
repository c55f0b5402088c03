/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.c - the same network and the same batches, with each of the tools.
 *
 * A batch of rows makes an update, whichever the tool: accumulation takes it in
 * parts, one after the other, and so does a pipeline; replicas take a part
 * each. Gradients are means over the batch, so the weights become the same, to
 * rounding where sums are added in another order.
 *
 * With float16 the weights are kept in float32 and cast for each run, the loss
 * is scaled, and updates by gradients that are not finite are left out.
 */
#include "memory/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 10, MOST_LAYERS = 64 };

static const struct {
    const char *name, *text;
} tools[TOOLS] = {
    [TOOL_PLAIN] = {"plain", "everything is kept"},
    [TOOL_RECOMPUTE] = {"recompute", "activations are computed again"},
    [TOOL_ACCUMULATE] = {"accumulate", "gradients of parts of the batch, in "
                                       "float32"},
    [TOOL_OFFLOAD] = {"offload", "Adam's state beside the chip"},
    [TOOL_OFFLOAD_ALL] = {"offload-all", "weights and accumulators, too"},
    [TOOL_CHIPS] = {"chips", "layers on several chips, one after the other"},
    [TOOL_PIPELINE] = {"pipeline", "layers in stages, a chip each, which work "
                                   "at the same time"},
    [TOOL_SHARD] = {"shard", "Adam's state shared by replicas, beside the "
                             "chips"},
    [TOOL_HALF] = {"float16", "activations and products in float16, the loss "
                              "scaled"},
};

const char *training_tool_name(enum tool tool)
{
    return tools[tool].name;
}

const char *training_tool_text(enum tool tool)
{
    return tools[tool].text;
}

/* Torn down together. */
struct training {
    const struct training_settings *settings;
    enum tool tool;
    int rows;  /* of a run of one replica */
    int parts; /* runs, or replicas, in an update */
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
    ipu_replicas *replicas;
    ipu_pipeline *pipeline;
    ipu_infeed *infeed;
    int next;          /* part of the batch that a pipeline takes */
    float *x, *losses; /* of a batch, of its parts */
    int32_t *labels;
    float *directions; /* [CLASSES, width] */
    uint64_t state;    /* of random numbers */
};

static void fini(struct training *t)
{
    ipu_replicas_free(t->replicas);
    ipu_pipeline_free(t->pipeline);
    ipu_infeed_free(t->infeed);
    ipu_engine_free(t->engine);
    ipu_executable_free(t->executable);
    ipu_graph_free(t->graph);
    free(t->x);
    free(t->losses);
    free(t->labels);
    free(t->directions);
}

/* --------------------------------------------------------------- the network
 */

static ipu_dtype dtype_of(const struct training *t)
{
    return t->tool == TOOL_HALF ? IPU_FLOAT16 : IPU_FLOAT32;
}

static ipu_tensor layer(const struct training *t, ipu_tensor x, int i,
                        int outputs, ipu_tensor *w)
{
    const int64_t shape[] = {t->settings->width, outputs};
    char name[16];
    ipu_tensor used;

    snprintf(name, sizeof name, "w%d", i);
    *w = ipu_variable(t->graph, name, IPU_FLOAT32, 2, shape);
    used = t->tool == TOOL_HALF ? ipu_cast(t->graph, *w, IPU_FLOAT16) : *w;
    x = ipu_matmul(t->graph, x, used);
    if (outputs == CLASSES)
        return x;
    x = ipu_relu(t->graph, x);
    return i % 2 ? ipu_recomputation_checkpoint(t->graph, x) : x;
}

/* The mean over the rows of a run. */
static ipu_tensor loss_of(const struct training *t, ipu_tensor *w)
{
    const int layers = t->settings->layers;
    const int64_t shape[] = {t->rows, t->settings->width};
    ipu_tensor x = ipu_input(t->graph, "x", IPU_FLOAT32, 2, shape);
    ipu_tensor labels = ipu_input(t->graph, "labels", IPU_INT32, 1, shape);

    if (dtype_of(t) != IPU_FLOAT32)
        x = ipu_cast(t->graph, x, dtype_of(t));
    for (int i = 0; i < layers; i++)
        x = layer(t, x, i, i == layers - 1 ? CLASSES : t->settings->width,
                  &w[i]);
    if (dtype_of(t) != IPU_FLOAT32)
        x = ipu_cast(t->graph, x, IPU_FLOAT32);
    x = ipu_softmax_cross_entropy(t->graph, x, labels);
    return ipu_reduce_sum(t->graph, x, 1.0 / t->rows);
}

static bool is_offloaded(const struct training *t)
{
    return t->tool == TOOL_OFFLOAD || t->tool == TOOL_OFFLOAD_ALL ||
           t->tool == TOOL_SHARD;
}

static int add_update(const struct training *t, const ipu_tensor *w,
                      const ipu_tensor *gradients, ipu_tensor finite)
{
    const int layers = t->settings->layers;
    const ipu_optimizer adam = {
        .size = sizeof adam,
        .kind = IPU_OPTIMIZER_ADAM,
        .rate = ipu_fill(t->graph, IPU_FLOAT32, 0, NULL, t->settings->rate)};
    const ipu_dtype wide = IPU_FLOAT32;
    const ipu_update_options options = {
        .size = sizeof options,
        .offload = is_offloaded(t) ? IPU_OFFLOAD_ON : IPU_OFFLOAD_OFF,
        .offload_weights =
            t->tool == TOOL_OFFLOAD_ALL ? IPU_OFFLOAD_ON : IPU_OFFLOAD_AUTO,
        .conditional = t->tool == TOOL_HALF,
        .condition = finite,
        .accumulation = {.size = sizeof options.accumulation,
                         .reduction = IPU_REDUCTION_MEAN,
                         .dtype = &wide}};
    const ipu_replication replication = {
        .size = sizeof replication, .replicas = t->parts, .mean = 1};

    if (t->tool == TOOL_SHARD)
        return ipu_sharded_optimizer(t->graph, &adam, layers, w, gradients, 1,
                                     &options, &replication);
    return ipu_accumulating_optimizer(t->graph, &adam, layers, w, gradients,
                                      t->parts, &options);
}

static int build(struct training *t)
{
    const int layers = t->settings->layers;
    ipu_tensor w[MOST_LAYERS], gradients[MOST_LAYERS], loss;
    ipu_loss_scaling scaling = {.size = sizeof scaling, .finite = {-1}};
    int status = ipu_graph_new(&t->graph);

    if (status < 0)
        return status;
    ipu_allow_recompute(t->graph, t->tool == TOOL_RECOMPUTE);
    loss = loss_of(t, w);
    if (t->tool == TOOL_CHIPS)
        ipu_shard_automatically(t->graph, t->settings->parts);
    if (t->tool == TOOL_HALF)
        ipu_scaled_gradients(t->graph, "scaling", loss, layers, w, NULL,
                             gradients, &scaling);
    else
        ipu_gradients(t->graph, loss, layers, w, gradients);
    add_update(t, w, gradients, scaling.finite);
    return ipu_output(t->graph, "loss", loss);
}

/* ------------------------------------------------------------------ batches
 */

/* The next of a sequence (splitmix64), in [-1, 1). */
static float random_float(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)(int32_t)((z ^ z >> 31) >> 40) / 8388608.0f - 1.0f;
}

static int nearest(const struct training *t, const float *x)
{
    const int width = t->settings->width;
    int best = 0;
    float most = 0;

    for (int c = 0; c < CLASSES; c++) {
        float sum = 0;

        for (int i = 0; i < width; i++)
            sum += x[i] * t->directions[c * width + i];
        if (c == 0 || sum > most) {
            best = c;
            most = sum;
        }
    }
    return best;
}

static void draw_batch(struct training *t)
{
    const int width = t->settings->width;

    for (int r = 0; r < t->settings->rows; r++) {
        float *x = t->x + (ptrdiff_t)r * width;

        for (int i = 0; i < width; i++)
            x[i] = random_float(&t->state);
        t->labels[r] = nearest(t, x);
    }
}

static bool allocate(struct training *t)
{
    const struct training_settings *s = t->settings;
    size_t rows = (size_t)s->rows, width = (size_t)s->width;

    t->x = malloc(rows * width * sizeof *t->x);
    t->labels = malloc(rows * sizeof *t->labels);
    t->losses = calloc((size_t)t->parts, sizeof *t->losses);
    t->directions = malloc(CLASSES * width * sizeof *t->directions);
    if (!t->x || !t->labels || !t->losses || !t->directions)
        return false;
    t->state = s->seed;
    for (size_t i = 0; i < CLASSES * width; i++)
        t->directions[i] = random_float(&t->state);
    return true;
}

/* ------------------------------------------------------------------- running
 */

static size_t bytes_of_layer(const struct training *t, int i)
{
    const struct training_settings *s = t->settings;

    return sizeof(float) * (size_t)s->width *
           (size_t)(i == s->layers - 1 ? CLASSES : s->width);
}

static int write_weights(struct training *t)
{
    float *w = malloc(bytes_of_layer(t, 0) +
                      bytes_of_layer(t, t->settings->layers - 1));
    uint64_t state = t->settings->seed + 1;
    int status = 0;

    for (int i = 0; w && i < t->settings->layers && status >= 0; i++) {
        size_t bytes = bytes_of_layer(t, i);
        char name[16];

        snprintf(name, sizeof name, "w%d", i);
        /* Kaiming He's uniform: sqrt(6 / width) */
        for (size_t k = 0; k < bytes / sizeof *w; k++)
            w[k] = random_float(&state) * 2.4495f /
                   __builtin_sqrtf((float)t->settings->width);
        status = t->replicas   ? ipu_replicas_write(t->replicas, name, w, bytes)
                 : t->pipeline ? ipu_pipeline_write(t->pipeline, name, w, bytes)
                               : ipu_engine_write(t->engine, name, w, bytes);
    }
    free(w);
    return status;
}

static int read_weights(const struct training *t, float *w)
{
    int status = 0;

    for (int i = 0; i < t->settings->layers && status >= 0; i++) {
        size_t bytes = bytes_of_layer(t, i);
        char name[16];

        snprintf(name, sizeof name, "w%d", i);
        status = t->replicas ? ipu_replicas_read(t->replicas, 0, name, w, bytes)
                 : t->pipeline
                     ? ipu_pipeline_read(t->pipeline, 0, name, w, bytes)
                     : ipu_engine_read(t->engine, name, w, bytes);
        w += bytes / sizeof *w;
    }
    return status;
}

/* The runs of one update. */
static int run_parts(struct training *t)
{
    const size_t row = (size_t)t->settings->width * sizeof *t->x;
    const size_t rows = (size_t)t->rows;
    int status = 0;

    for (int p = 0; p < t->parts && status >= 0; p++) {
        size_t first = (size_t)p * rows;

        ipu_engine_connect(t->engine, "x", t->x + first * row / sizeof *t->x,
                           rows * row);
        ipu_engine_connect(t->engine, "labels", t->labels + first,
                           rows * sizeof *t->labels);
        ipu_engine_connect(t->engine, "loss", t->losses + p, sizeof *t->losses);
        status = ipu_engine_run(t->engine);
    }
    return status;
}

static int connect_replicas(struct training *t)
{
    const size_t rows = (size_t)t->settings->rows;
    const size_t width = (size_t)t->settings->width;
    ipu_replicas_options options;
    int status;

    ipu_replicas_options_init(&options, sizeof options);
    options.ipus = t->parts;
    status = ipu_replicas_new(t->executable, &options, &t->replicas);
    if (status >= 0)
        status = ipu_replicas_connect(t->replicas, "x", t->x,
                                      rows * width * sizeof *t->x);
    if (status >= 0)
        status = ipu_replicas_connect(t->replicas, "labels", t->labels,
                                      rows * sizeof *t->labels);
    if (status >= 0)
        status = ipu_replicas_connect(t->replicas, "loss", t->losses,
                                      (size_t)t->parts * sizeof *t->losses);
    return status;
}

static int train(struct training *t, double *loss)
{
    int status = t->tool == TOOL_SHARD
                     ? connect_replicas(t)
                     : ipu_engine_new(t->executable, &t->engine);

    if (status >= 0 && t->engine && t->settings->profile)
        status = ipu_engine_profile(t->engine, 1);
    if (status >= 0)
        status = write_weights(t);
    for (int u = 0; u < t->settings->updates && status >= 0; u++) {
        draw_batch(t);
        status = t->replicas ? ipu_replicas_run(t->replicas) : run_parts(t);
    }
    *loss = 0;
    for (int p = 0; p < t->parts; p++)
        *loss += (double)t->losses[p] / t->parts;
    return status;
}

/* Of a program on several chips: the fullest, and what passes between. */
static int account_chips(const struct training *t, struct training_result *r)
{
    ipu_sharding_info all = {.size = sizeof all};
    ipu_system system = {.size = sizeof system};
    int status =
        ipu_system_find(t->settings->parts <= 4 ? "M2000" : "Pod64", &system);

    if (status < 0)
        return status;
    system.ipu = t->settings->target;
    status = ipu_executable_sharding(t->executable, &system, &all);
    r->ms = 1e3 * all.seconds;
    r->tile_bytes = 0;
    for (int s = 0; s < all.shards && status >= 0; s++) {
        ipu_shard_info chip = {.size = sizeof chip};

        status = ipu_executable_shard(t->executable, s, &chip);
        if (r->tile_bytes < chip.tile_bytes)
            r->tile_bytes = chip.tile_bytes;
        if (s == 0 ||
            r->tensor_bytes < chip.tile_bytes - chip.code_bytes_per_tile)
            r->tensor_bytes = chip.tile_bytes - chip.code_bytes_per_tile;
    }
    return status;
}

/* What it takes on the chip. */
static int account(const struct training *t, struct training_result *r)
{
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_replicas_info info = {.size = sizeof info};
    int status = ipu_executable_memory(t->executable, &memory);
    int64_t runs = t->replicas ? 1 : t->parts;

    if (status >= 0)
        status = ipu_executable_cycles(t->executable, &cycles);
    if (status < 0)
        return status;
    r->tensor_bytes = memory.bytes_on_fullest_tile;
    r->tile_bytes = memory.fullest_tile_bytes;
    r->remote_bytes = memory.remote_bytes;
    r->ms =
        1e3 * ipu_model_seconds(
                  &t->settings->target,
                  cycles.total + (runs - 1) * (cycles.total - cycles.update));
    if (t->replicas && ipu_replicas_stats(t->replicas, &info) >= 0)
        r->ms = 1e3 * info.seconds;
    if (t->tool == TOOL_CHIPS)
        status = account_chips(t, r);
    if (t->settings->profile && status >= 0)
        status =
            ipu_profile_add(t->settings->profile, training_tool_name(t->tool),
                            0, t->executable, t->engine);
    return status;
}

/* ------------------------------------------------------------- in stages
 */

struct stage {
    struct training *training;
    int number;
};

/* labels, x or what the stage before makes of it; the last: the loss. */
static int build_stage(void *context, ipu_graph *graph, int32_t ninputs,
                       const ipu_tensor *in, ipu_tensor *out)
{
    const struct stage *s = context;
    const int layers = s->training->settings->layers;
    const int stages = s->training->settings->parts;
    struct training t = *s->training;
    ipu_tensor x = in[1], w;

    (void)ninputs;
    t.graph = graph;
    for (int i = s->number * layers / stages;
         i < (s->number + 1) * layers / stages; i++)
        x = layer(&t, x, i, i == layers - 1 ? CLASSES : t.settings->width, &w);
    if (s->number == stages - 1) {
        x = ipu_softmax_cross_entropy(graph, x, in[0]);
        out[0] = ipu_reduce_sum(graph, x, 1.0 / t.rows);
        return 1;
    }
    out[0] = in[0];
    out[1] = x;
    return 2;
}

static int build_optimizer(void *context, ipu_graph *graph, int32_t noutputs,
                           const ipu_tensor *outputs, int32_t count,
                           const ipu_tensor *w, const ipu_tensor *gradients)
{
    const struct training *t = context;
    const ipu_optimizer adam = {
        .size = sizeof adam,
        .kind = IPU_OPTIMIZER_ADAM,
        .rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, t->settings->rate)};

    (void)noutputs, (void)outputs;
    return ipu_optimize(graph, &adam, count, w, gradients);
}

/* The next part of a batch; a new batch after the last. */
static int next_part(void *context, void *const *buffers)
{
    struct training *t = context;
    const size_t rows = (size_t)t->rows, width = (size_t)t->settings->width;

    if (t->next == 0)
        draw_batch(t);
    memcpy(buffers[0], t->labels + (size_t)t->next * rows,
           rows * sizeof *t->labels);
    memcpy(buffers[1], t->x + (size_t)t->next * rows * width,
           rows * width * sizeof *t->x);
    t->next = (t->next + 1) % t->parts;
    return 1;
}

static int take_loss(void *context, int32_t replica, int64_t mini_batch,
                     int32_t count, const void *const *data)
{
    struct training *t = context;

    (void)replica, (void)count;
    t->losses[mini_batch % t->parts] = *(const float *)data[0];
    return 0;
}

static int new_pipeline(struct training *t, struct stage *parts,
                        ipu_stage *stages)
{
    const ipu_feed_tensor elements[] = {
        {.name = "labels", .dtype = IPU_INT32, .ndim = 1, .shape = {t->rows}},
        {.name = "x",
         .dtype = IPU_FLOAT32,
         .ndim = 2,
         .shape = {t->rows, t->settings->width}}};
    ipu_system system = {.size = sizeof system};
    ipu_infeed_options feed;
    ipu_pipeline_options o;
    int status =
        ipu_system_find(t->settings->parts <= 4 ? "M2000" : "Pod64", &system);

    system.ipu = t->settings->target;
    for (int i = 0; i < t->settings->parts; i++) {
        parts[i] = (struct stage){t, i};
        stages[i] = (ipu_stage){
            .build = build_stage, .context = &parts[i], .inputs = 2};
    }
    ipu_infeed_options_init(&feed, sizeof feed);
    feed.name = "batches";
    feed.ntensors = 2;
    feed.tensors = elements;
    feed.source = (ipu_source){.next = next_part, .context = t};
    ipu_pipeline_options_init(&o, sizeof o);
    o.stages = stages;
    o.nstages = t->settings->parts;
    o.system = &system;
    o.count = t->parts;
    o.reduction = IPU_REDUCTION_MEAN;
    o.optimizer = build_optimizer;
    o.optimizer_context = t;
    o.sink = take_loss;
    o.sink_context = t;
    if (status >= 0)
        status = ipu_infeed_new(&feed, &t->infeed);
    if (status >= 0)
        status = ipu_infeed_start(t->infeed);
    o.infeed = t->infeed;
    return status >= 0 ? ipu_pipeline_new(&o, &t->pipeline) : status;
}

static int account_pipeline(const struct training *t, struct training_result *r)
{
    ipu_pipeline_info info = {.size = sizeof info};
    int status = ipu_pipeline_stats(t->pipeline, &info);

    r->ms = 1e3 * info.seconds / t->settings->updates;
    for (int i = 0; i < info.ipus && status >= 0; i++) {
        ipu_pipeline_ipu_info chip = {.size = sizeof chip};
        int64_t tensors;

        status = ipu_pipeline_ipu(t->pipeline, i, &chip);
        tensors =
            (chip.variable_bytes + chip.stash_bytes + chip.program_bytes) /
            t->settings->target.tiles;
        if (r->tile_bytes < chip.tile_bytes)
            r->tile_bytes = chip.tile_bytes;
        if (r->tensor_bytes < tensors)
            r->tensor_bytes = tensors;
        if (r->remote_bytes < chip.streaming_bytes)
            r->remote_bytes = chip.streaming_bytes;
    }
    return status;
}

static int run_pipeline(struct training *t, struct training_result *result)
{
    struct stage parts[IPU_MAX_STAGES];
    ipu_stage stages[IPU_MAX_STAGES];
    int status = new_pipeline(t, parts, stages);

    if (status >= 0)
        status = write_weights(t);
    for (int u = 0; u < t->settings->updates && status >= 0; u++)
        status = ipu_pipeline_run(t->pipeline);
    for (int p = 0; p < t->parts; p++)
        result->loss += (double)t->losses[p] / t->parts;
    if (status >= 0)
        status = read_weights(t, result->weights);
    if (status >= 0)
        status = account_pipeline(t, result);
    if (status >= 0 && t->settings->profile)
        status = ipu_pipeline_profile(t->pipeline, t->settings->profile);
    return status;
}

/* What the compiler tells of the plain program with the tool. */
static int ask(const struct training_settings *settings, enum tool tool,
               struct training_result *r)
{
    static const int kinds[TOOLS] = {
        [TOOL_PLAIN] = -1,
        [TOOL_RECOMPUTE] = IPU_REMEDY_RECOMPUTE,
        [TOOL_ACCUMULATE] = IPU_REMEDY_ACCUMULATE,
        [TOOL_OFFLOAD] = IPU_REMEDY_OFFLOAD,
        [TOOL_OFFLOAD_ALL] = IPU_REMEDY_OFFLOAD_ALL,
        [TOOL_CHIPS] = IPU_REMEDY_SHARD,
        [TOOL_PIPELINE] = IPU_REMEDY_PIPELINE,
        [TOOL_SHARD] = -1,
        [TOOL_HALF] = -1, /* it is another: some of it stays in float32 */
    };
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &settings->target};
    const bool counted =
        tool == TOOL_ACCUMULATE || tool == TOOL_CHIPS || tool == TOOL_PIPELINE;
    struct training plain = {
        .settings = settings, .rows = settings->rows, .parts = 1};
    ipu_remedy remedy = {.size = sizeof remedy};
    int status;

    if (kinds[tool] < 0 || (counted && settings->parts == 1))
        return 0;
    status = build(&plain);
    if (status >= 0)
        status = ipu_remedy_try(plain.graph, &options, kinds[tool],
                                counted ? settings->parts : 1, &remedy);
    r->told_bytes = remedy.tile_bytes;
    r->told_ms = 1e3 * remedy.seconds;
    fini(&plain);
    return status;
}

static int run_program(struct training *t, struct training_result *result)
{
    int status = build(t);

    if (status >= 0)
        status = ipu_compile(t->graph, &t->settings->target, &t->executable);
    if (status >= 0)
        status = train(t, &result->loss);
    if (status >= 0)
        status = read_weights(t, result->weights);
    return status >= 0 ? account(t, result) : status;
}

int training_run(const struct training_settings *settings, enum tool tool,
                 struct training_result *result)
{
    const bool divides = tool == TOOL_ACCUMULATE || tool == TOOL_SHARD;
    struct training t = {.settings = settings,
                         .tool = tool,
                         .parts = divides ? settings->parts : 1};
    int status;

    *result = (struct training_result){.nweights = 0};
    if (tool == TOOL_PIPELINE)
        t.parts = 2 * settings->parts; /* mini-batches */
    t.rows = settings->rows / t.parts;
    for (int i = 0; i < settings->layers; i++)
        result->nweights += (int64_t)(bytes_of_layer(&t, i) / sizeof(float));
    result->weights = calloc((size_t)result->nweights, sizeof(float));
    status = result->weights && allocate(&t) ? 0 : IPU_ERR_MEMORY;
    if (status >= 0)
        status = tool == TOOL_PIPELINE ? run_pipeline(&t, result)
                                       : run_program(&t, result);
    if (status >= 0)
        status = ask(settings, tool, result);
    fini(&t);
    return status;
}
