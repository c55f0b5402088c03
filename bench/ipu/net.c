/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - the networks of ipu-bench, and the figures that the model computes
 * for them.
 *
 * A network is built from the ops of graphs and compiled for the chip. The
 * cycles of a mini-batch come from the compiler, and so do those of an update,
 * divided by the mini-batches of the update. The rest is added here:
 *
 *   replicas   add up gradients once per update: reduce-scatter and
 *              all-gather over all chips of the system
 *   stages     of a pipeline send activations on and derivatives back, over
 *              the links of neighbours, instead of to the host. The table
 *              shows the slowest stage. A pipeline of n mini-batches is busy
 *              for n / (n + stages - 1) of the time
 *
 * The arrangements are those of the published runs, as their configurations in
 * Graphcore's examples have them. The published figures are only compared with;
 * the model does not use them.
 */
#include "ipu/net.h"

#include <string.h>

#define BERT(n, samples, length, elements, parts)                              \
    {                                                                          \
        .layers = n, .batch = samples, .tokens = length, .width = elements,    \
        .heads = parts                                                         \
    }
#define TOKENS(count, before)                                                  \
    {                                                                          \
        .layers = 1, .batch = 1, .tokens = count, .width = 768, .heads = 12,   \
        .causal = before                                                       \
    }
#define IMAGES(samples, side, unlike)                                          \
    {                                                                          \
        .batch = samples, .tokens = side, .classes = 1000, .differ = unlike    \
    }
#define MLP(samples, elements)                                                 \
    {                                                                          \
        .batch = samples, .width = elements, .classes = 10                     \
    }

/* Published: Graphcore's performance results of March 2022 (ResNet-50,
 * BERT-Large) and SDK 3.1 (SQuAD, BERT-Base), float16, of Bow Pods;
 * ByteMLPerf's reports of one C600 (inference). */
const struct net_case net_cases[] = {
    {"ResNet-50", "training", "Bow-Pod16", NULL, net_resnet50,
     IMAGES(20, 224, false), true, false, 16, 1, 6, 0, 42029},
    {"ResNet-50", "training", "Bow-Pod64", NULL, net_resnet50,
     IMAGES(20, 224, false), true, false, 64, 1, 2, 0, 145287},
    {"ResNet-50", "inference", "Bow-2000", NULL, net_resnet50,
     IMAGES(4, 224, false), false, false, 4, 1, 1, 0, 0},
    {"ResNet-50", "inference", "model", "c600", net_resnet50,
     IMAGES(4, 224, false), false, false, 1, 1, 1, 64, 7062},
    {"ResNet-50", "inference", "model", "c600", net_resnet50,
     IMAGES(32, 224, false), false, false, 1, 1, 1, 64, 13542},
    {"BERT-Large, 128 tokens", "training", "Bow-Pod16", NULL, net_transformer,
     BERT(7, 8, 128, 1024, 16), true, true, 4, 4, 2048, 0, 5179},
    {"BERT-Large, 128 tokens", "training", "Bow-Pod64", NULL, net_transformer,
     BERT(7, 8, 128, 1024, 16), true, true, 16, 4, 512, 0, 19353},
    {"BERT-Large, 384 tokens", "training", "Bow-Pod16", NULL, net_transformer,
     BERT(7, 2, 384, 1024, 16), true, true, 4, 4, 2048, 0, 1470},
    {"BERT-Large, SQuAD", "training", "Bow-Pod16", NULL, net_transformer,
     BERT(4, 4, 384, 1024, 16), true, false, 2, 8, 32, 0, 1183},
    {"BERT-Base, 128 tokens", "training", "Bow-Pod16", NULL, net_transformer,
     BERT(4, 32, 128, 768, 12), true, true, 4, 4, 512, 0, 16391},
    {"BERT-Base, 512 tokens", "training", "Bow-Pod16", NULL, net_transformer,
     BERT(4, 8, 512, 768, 12), true, true, 4, 4, 512, 0, 3656},
    {"ResNeXt-101", "training", "Bow-Pod16", NULL, net_resnext101,
     IMAGES(6, 224, true), true, false, 8, 2, 16, 0, 12277},
    {"EfficientNet-B4, G16", "training", "Bow-Pod16", NULL, net_efficientnet,
     IMAGES(3, 380, true), true, false, 8, 2, 256, 32, 9000},
    {"BERT-Base, a layer", "inference", "model", NULL, net_transformer,
     TOKENS(128, false), false, false, 1, 1, 1, 0, 0},
    {"GPT-2 small, a layer", "inference", "model", NULL, net_transformer,
     TOKENS(1024, true), false, false, 1, 1, 1, 0, 0},
    {"MNIST MLP", "training", "model", NULL, net_mlp, MLP(32, 128), true, false,
     1, 1, 1, 0, 0},
    {.name = NULL},
};

/* ---------------------------------------------------------------- compiling */

/* Returns the cycles of the host that a run of that many cycles does not hide:
 * with I/O tiles, only those beyond the run. */
static double host_cycles(const struct net_case *net, double host, double run)
{
    if (net->stages > 1)
        return 0;
    if (net->io_tiles == 0)
        return host;
    return host > run ? host - run : 0;
}

static int compile_stage(const struct net_case *net, const ipu_target *target,
                         ipu_executable **executable, struct net_result *result)
{
    const ipu_compile_options options = {
        .size = sizeof options, .target = target, .allow_out_of_memory = 1};
    struct net made = {.training = net->training,
                       .offload = net->offload,
                       .stage = result->stage};
    int status = ipu_graph_new(&made.graph);

    if (status >= 0)
        status = net->build(&made, &net->size, net->mini_batches);
    if (status >= 0)
        status = ipu_compile_with(made.graph, &options, executable);
    ipu_graph_free(made.graph);
    result->parameters = made.parameters;
    result->boundary = made.boundary;
    return status;
}

/* Cycles of a mini-batch, with its share of an update. */
struct cycles {
    double compute, waiting, exchange, sync, outside, estimated, flops;
};

static bool leaves_chip(const ipu_step_info *step)
{
    return strncmp(step->op, "host_", 5) == 0 ||
           strncmp(step->op, "remote_", 7) == 0;
}

static struct cycles sum_steps(const ipu_executable *executable)
{
    ipu_step_info step = {.size = sizeof step};
    struct cycles sum = {0};

    for (int32_t i = 0; ipu_executable_step(executable, i, &step) >= 0; i++) {
        double part = 1.0 / step.update_count;

        sum.compute += part * (double)step.compute_cycles;
        sum.waiting += part * (double)step.waiting_cycles;
        sum.sync += part * (double)step.sync_cycles;
        *(leaves_chip(&step) ? &sum.outside : &sum.exchange) +=
            part * (double)step.exchange_cycles;
        sum.flops += part * step.flops;
        if (step.estimate)
            sum.estimated += part * (double)step.total_cycles;
    }
    return sum;
}

static int64_t fullest_tile(const ipu_executable *executable, int32_t tiles)
{
    ipu_tile_info tile = {.size = sizeof tile};
    int64_t most = 0;

    for (int32_t t = 0; t < tiles; t++)
        if (ipu_executable_tile(executable, t, &tile) >= 0 &&
            tile.peak_bytes > most)
            most = tile.peak_bytes;
    return most;
}

/* -------------------------------------------------------- between the chips */

/* Computes the cycles of one update that sum gradients over all replicas. */
static int reduce_cycles(const struct net_case *net, const ipu_system *system,
                         int64_t parameters, int64_t *cycles)
{
    ipu_sharding_cost cost = {.size = sizeof cost};
    int status = IPU_OK;

    *cycles = 0;
    if (!net->training || net->replicas == 1)
        return IPU_OK;
    status = ipu_sharding_cost_get(system, net->replicas, net->stages,
                                   parameters, IPU_FLOAT16, &cost);
    if (status >= 0)
        *cycles = cost.scatter_cycles + cost.gather_cycles;
    return status;
}

/* Computes the cycles per mini-batch to the next stage, and back in
 * training. */
static int link_cycles(const struct net_case *net, const ipu_system *system,
                       int64_t boundary, int64_t *cycles)
{
    int64_t bytes = 2 * boundary;
    ipu_cycles link = {.size = sizeof link};
    int status;

    *cycles = 0;
    if (net->stages == 1)
        return IPU_OK;
    status = ipu_model_link(system, 0, 1,
                            (bytes + system->ipu.tiles - 1) / system->ipu.tiles,
                            1, &link);
    *cycles = link.total * (net->training ? 2 : 1);
    return status;
}

/* ------------------------------------------------------------------- a case */

static int count_cycles(const struct net_case *net, const ipu_system *system,
                        const ipu_executable *executable, struct net_result *r)
{
    ipu_program_cycles program = {.size = sizeof program};
    ipu_target_peaks peaks = {.size = sizeof peaks};
    struct cycles c = sum_steps(executable);
    double steps = c.compute + c.exchange + c.sync + c.outside, all, full;
    int64_t links, reduction;
    int status = ipu_executable_cycles(executable, &program);

    if (status >= 0)
        status = link_cycles(net, system, r->boundary, &links);
    if (status >= 0)
        status = reduce_cycles(net, system, r->parameters, &reduction);
    if (status >= 0)
        status = ipu_target_get_peaks(&system->ipu, &peaks);
    if (status < 0)
        return status;
    c.outside += (double)links + (double)reduction / net->mini_batches +
                 host_cycles(net, (double)program.host, steps);
    all = c.compute + c.exchange + c.sync + c.outside;
    full = (double)net->mini_batches / (net->mini_batches + net->stages - 1);
    r->cycles = (int64_t)all;
    r->compute = (c.compute - c.waiting) / all;
    r->waiting = c.waiting / all;
    r->exchange = c.exchange / all;
    r->sync = c.sync / all;
    r->outside = c.outside / all;
    r->estimated = c.estimated / steps;
    all /= full * system->ipu.clock_hz; /* seconds, of the whole pipeline */
    r->samples_per_second = net->size.batch * (double)net->replicas / all;
    r->tflops = c.flops / all / 1e12;
    r->utilisation =
        c.flops / all /
        (net->build == net_mlp ? peaks.flops_float32 : peaks.flops_float16);
    r->tile_bytes = fullest_tile(executable, system->ipu.tiles);
    r->fits = r->tile_bytes <= system->ipu.bytes_per_tile;
    return IPU_OK;
}

static int model_stage(const struct net_case *net, const ipu_system *system,
                       int32_t stage, struct net_result *result)
{
    ipu_executable *executable = NULL;
    int status;

    *result = (struct net_result){.ipus = net->replicas * net->stages,
                                  .stage = stage};
    status = compile_stage(net, &system->ipu, &executable, result);
    if (status >= 0)
        status = count_cycles(net, system, executable, result);
    ipu_executable_free(executable);
    return status;
}

int net_model(const struct net_case *net, struct net_result *result)
{
    ipu_system system = {.size = sizeof system};
    int status = ipu_system_find(net->system, &system);
    struct net_result other;

    if (status >= 0 && net->chip)
        status = ipu_target_find(net->chip, &system.ipu);
    system.ipu.tiles -= net->io_tiles;
    system.ipu.io_tiles = net->io_tiles;
    if (status >= 0)
        status = model_stage(net, &system, 0, result);
    for (int32_t i = 1; net->size.differ && i < net->stages && status >= 0;
         i++) {
        status = model_stage(net, &system, i, &other);
        if (status >= 0 && other.cycles > result->cycles)
            *result = other;
    }
    return status;
}
