/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.c - trains the same network on the same batches with each of the
 * tools.
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

#include "memory/parts.h"
#include "output/profile.h"

#include <stdlib.h>

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

static void fini_training(struct training *t)
{
    if (t->backend)
        t->backend->functions->fini(t->backend);
    ipu_graph_free(t->graph);
    free(t->x);
    free(t->labels);
    free(t->directions);
}

/* ------------------------------------------------------------------- running
 */

static int make_engine(struct training *t)
{
    const struct engine_settings settings = {.executable = t->executable,
                                             .feed = training_feed(t),
                                             .steps = t->parts,
                                             .record =
                                                 t->settings->profile != NULL};

    t->backend = &t->engine.base;
    return engine_init(&t->engine, &settings);
}

static int make_replicas(struct training *t)
{
    const struct replicas_settings settings = {.executable = t->executable,
                                               .feed = training_feed(t),
                                               .replicas = t->parts};

    t->backend = &t->replicas.base;
    return replicas_init(&t->replicas, &settings);
}

static int make_backend(struct training *t)
{
    int status;

    if (t->tool == TOOL_PIPELINE)
        return training_make_pipeline(t);
    status = training_build(t);
    if (status >= 0)
        status = ipu_compile(t->graph, &t->settings->target, &t->executable);
    if (status < 0)
        return status;
    return t->tool == TOOL_SHARD ? make_replicas(t) : make_engine(t);
}

static int train_network(struct training *t, double *loss)
{
    int status = training_write_weights(t);

    for (int u = 0; u < t->settings->updates && status >= 0; u++)
        status =
            t->backend->functions->update(t->backend, t->settings->rate, loss);
    return status;
}

/* Accounts a program on several chips: its time, and the fullest tile. */
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

/* Accounts memory and time on the chip. */
static int account_program(const struct training *t, struct training_result *r)
{
    ipu_memory_info memory = {.size = sizeof memory};
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_replicas_info info = {.size = sizeof info};
    int status = ipu_executable_memory(t->executable, &memory);
    const bool replicated = t->tool == TOOL_SHARD;
    int64_t runs = replicated ? 1 : t->parts;

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
    if (replicated && ipu_replicas_stats(t->replicas.devices, &info) >= 0)
        r->ms = 1e3 * info.seconds;
    if (t->tool == TOOL_CHIPS)
        status = account_chips(t, r);
    return status;
}

/* Gets the memory of the plain program with the tool from the compiler. */
static int ask_compiler(const struct training_settings *settings,
                        enum tool tool, struct training_result *r)
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
        [TOOL_HALF] = -1, /* the remedy differs: it keeps nothing in float32 */
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
    status = training_build(&plain);
    if (status >= 0)
        status = ipu_remedy_try(plain.graph, &options, kinds[tool],
                                counted ? settings->parts : 1, &remedy);
    r->told_bytes = remedy.tile_bytes;
    r->told_ms = 1e3 * remedy.seconds;
    fini_training(&plain);
    return status;
}

static int add_profile(const struct training *t)
{
    struct profile_program program = {.name = training_tool_name(t->tool)};

    t->backend->functions->describe(t->backend, &program);
    return profile_add(t->settings->profile, &program);
}

static int run_tool(struct training *t, struct training_result *result)
{
    int status = make_backend(t);

    if (status >= 0)
        status = train_network(t, &result->loss);
    if (status >= 0)
        status = training_read_weights(t, result->weights);
    if (status >= 0)
        status = t->tool == TOOL_PIPELINE ? training_account_pipeline(t, result)
                                          : account_program(t, result);
    if (status >= 0 && t->settings->profile)
        status = add_profile(t);
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
    if (tool == TOOL_PIPELINE)
        t.parts = 2 * settings->parts; /* mini-batches */
    t.rows = settings->rows / t.parts;
    for (int i = 0; i < settings->layers; i++)
        result->nweights +=
            (int64_t)(training_layer_bytes(&t, i) / sizeof(float));
    result->weights = calloc((size_t)result->nweights, sizeof(float));
    status = result->weights && training_allocate(&t) ? 0 : IPU_ERR_MEMORY;
    if (status >= 0)
        status = run_tool(&t, result);
    if (status >= 0)
        status = ask_compiler(settings, tool, result);
    fini_training(&t);
    return status;
}
