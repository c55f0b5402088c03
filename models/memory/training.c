/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.c - the same network and the same batches, with each of the tools.
 *
 * A batch of rows makes an update, whichever the tool: accumulation takes it in
 * parts, one after the other; replicas take a part each. Gradients are means
 * over the batch, so the weights become the same, to rounding where sums are
 * added in another order.
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
    float *x, *losses; /* of a batch, of its parts */
    int32_t *labels;
    float *directions; /* [CLASSES, width] */
    uint64_t state;    /* of random numbers */
};

static void fini(struct training *t)
{
    ipu_replicas_free(t->replicas);
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
        .offload = t->tool == TOOL_OFFLOAD || t->tool == TOOL_SHARD
                       ? IPU_OFFLOAD_ON
                       : IPU_OFFLOAD_OFF,
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
    if (t->tool == TOOL_HALF)
        ipu_scaled_gradients(t->graph, "scaling", loss, layers, w, NULL,
                             gradients, &scaling);
    else
        ipu_gradients(t->graph, loss, layers, w, gradients);
    add_update(t, w, gradients, scaling.finite);
    ipu_output(t->graph, "loss", loss);
    return ipu_compile(t->graph, &t->settings->target, &t->executable);
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
        status = t->replicas ? ipu_replicas_write(t->replicas, name, w, bytes)
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
    if (t->settings->profile)
        status =
            ipu_profile_add(t->settings->profile, training_tool_name(t->tool),
                            0, t->executable, t->engine);
    return status;
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
    t.rows = settings->rows / t.parts;
    for (int i = 0; i < settings->layers; i++)
        result->nweights += (int64_t)(bytes_of_layer(&t, i) / sizeof(float));
    result->weights = calloc((size_t)result->nweights, sizeof(float));
    status = result->weights && allocate(&t) ? build(&t) : IPU_ERR_MEMORY;
    if (status >= 0)
        status = train(&t, &result->loss);
    if (status >= 0)
        status = read_weights(&t, result->weights);
    if (status >= 0)
        status = account(&t, result);
    fini(&t);
    return status;
}
