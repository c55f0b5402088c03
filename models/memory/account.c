/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - the memory and the time that a tool takes on the chips, as the
 * compiled program has it, and as the compiler told of the plain program. */
#include "memory/parts.h"
#include "output/device_problem.h"

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

static int account_pipeline(const struct training *t, struct training_result *r)
{
    ipu_pipeline_info info = {.size = sizeof info};
    int status = ipu_pipeline_stats(t->pipeline.device, &info);

    r->ms = 1e3 * info.seconds / t->settings->updates;
    for (int i = 0; i < info.ipus && status >= 0; i++) {
        ipu_pipeline_ipu_info chip = {.size = sizeof chip};
        int64_t tensors;

        status = ipu_pipeline_ipu(t->pipeline.device, i, &chip);
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

int training_account(const struct training *t, struct training_result *r)
{
    return device_status(t->tool == TOOL_PIPELINE ? account_pipeline(t, r)
                                                  : account_program(t, r));
}

int training_ask_compiler(const struct training *t, struct training_result *r)
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
    const struct training_settings *settings = t->settings;
    const enum tool tool = t->tool;
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &settings->target};
    const bool counted =
        tool == TOOL_ACCUMULATE || tool == TOOL_CHIPS || tool == TOOL_PIPELINE;
    struct training plain = {.settings = settings,
                             .net = t->net,
                             .rows = settings->rows,
                             .parts = 1};
    ipu_remedy remedy = {.size = sizeof remedy};
    int status;

    if (kinds[tool] < 0 || (counted && settings->parts == 1))
        return 0;
    status = training_build(&plain);
    if (status >= 0)
        status = device_status(
            ipu_remedy_try(plain.graph, &options, kinds[tool],
                           counted ? settings->parts : 1, &remedy));
    r->told_bytes = remedy.tile_bytes;
    r->told_ms = 1e3 * remedy.seconds;
    ipu_graph_free(plain.graph);
    return status;
}
