/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.c - builds the graph of the network with its update, for one program
 * or for each replica.
 */
#include "memory/parts.h"
#include "output/device_problem.h"

#include <stdio.h>

static ipu_dtype dtype_of(const struct training *t)
{
    return t->tool == TOOL_HALF ? IPU_FLOAT16 : IPU_FLOAT32;
}

ipu_tensor training_layer(const struct training *t, ipu_tensor x, int i,
                          int outputs, ipu_tensor *w)
{
    const int64_t shape[] = {t->settings->width, outputs};
    char name[16];
    ipu_tensor used;

    snprintf(name, sizeof name, "w%d", i);
    *w = hvd_net_variable(t->net, name,
                          (hvd_initializer){HVD_INIT_HE_UNIFORM, 0}, 2, shape);
    used = t->tool == TOOL_HALF ? ipu_cast(t->graph, *w, IPU_FLOAT16) : *w;
    x = ipu_matmul(t->graph, x, used);
    if (outputs == CLASSES)
        return x;
    x = ipu_relu(t->graph, x);
    return i % 2 ? ipu_recomputation_checkpoint(t->graph, x) : x;
}

/* Builds the mean loss over the rows of a run. */
static ipu_tensor loss_of(const struct training *t, ipu_tensor *w)
{
    const int layers = t->settings->layers;
    const int64_t shape[] = {t->rows, t->settings->width};
    ipu_tensor x = ipu_input(t->graph, "x", IPU_FLOAT32, 2, shape);
    ipu_tensor labels = ipu_input(t->graph, "labels", IPU_INT32, 1, shape);

    if (dtype_of(t) != IPU_FLOAT32)
        x = ipu_cast(t->graph, x, dtype_of(t));
    for (int i = 0; i < layers; i++)
        x = training_layer(
            t, x, i, i == layers - 1 ? CLASSES : t->settings->width, &w[i]);
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

int training_build(struct training *t)
{
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &t->settings->target};
    const int layers = t->settings->layers;
    ipu_tensor w[MOST_LAYERS], gradients[MOST_LAYERS], loss;
    ipu_loss_scaling scaling = {.size = sizeof scaling, .finite = {-1}};
    int status = device_status(ipu_graph_new(&t->graph));

    if (status >= 0)
        status = hvd_net_begin(t->net, t->graph, HVD_MODE_TRAIN);
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
    t->nvariables = hvd_net_end(t->net, &t->variables);
    status = ipu_output(t->graph, "loss", loss);
    if (status >= 0 && t->tool == TOOL_CHIPS)
        status = ipu_shard_by_time(t->graph, &options, t->settings->parts);
    return device_status(status);
}
