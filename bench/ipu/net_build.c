/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_build.c - parts for several networks: weights, optimisers, the ends of
 * stages, and the smallest network.
 *
 * All functions add ops to the graph of a struct net. A failed op leaves a null
 * tensor, which later ops pass on, and the graph keeps the error; so only the
 * last status is looked at. resnet.c, efficientnet.c and transformer.c build on
 * these.
 */
#include "ipu/net.h"

#include <stdio.h>

ipu_tensor net_weight(struct net *net, int32_t ndim, const int64_t *shape)
{
    char name[16];
    int64_t count = 1;

    snprintf(name, sizeof name, "w%d", net->count);
    for (int32_t i = 0; i < ndim; i++)
        count *= shape[i];
    net->parameters += count;
    net->variables[net->count] =
        ipu_variable(net->graph, name, IPU_FLOAT16, ndim, shape);
    return net->variables[net->count++];
}

static ipu_tensor rate_of(struct net *net)
{
    const float rate = 0.1F;
    ipu_tensor x = ipu_constant(net->graph, IPU_FLOAT32, 0, NULL, &rate);
    ipu_dtype dtype = IPU_FLOAT32;

    ipu_tensor_info(net->graph, net->variables[0], &dtype, NULL, NULL);
    return dtype == IPU_FLOAT32 ? x : ipu_cast(net->graph, x, dtype);
}

int net_train(struct net *net, const ipu_tensor *gradients,
              int32_t mini_batches, ipu_optimizer_kind kind)
{
    static const ipu_sgd_options sgd = {.size = sizeof sgd, .momentum = 0.9};
    const ipu_optimizer optimizer = {.size = sizeof optimizer,
                                     .kind = kind,
                                     .rate = rate_of(net),
                                     .sgd = &sgd};
    const ipu_update_options options = {
        .size = sizeof options,
        .offload = net->offload ? IPU_OFFLOAD_ON : IPU_OFFLOAD_OFF};

    return ipu_accumulating_optimizer(net->graph, &optimizer, net->count,
                                      net->variables, gradients, mini_batches,
                                      &options);
}

int net_mlp(struct net *net, const struct net_size *size, int32_t mini_batches)
{
    ipu_graph *g = net->graph;
    const int64_t extents[] = {784, size->width, size->classes};
    ipu_tensor gradients[4];
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 2,
                             (const int64_t[]){size->batch, extents[0]});
    ipu_tensor labels =
        ipu_input(g, "labels", IPU_INT32, 1, (const int64_t[]){size->batch});

    for (int i = 0; i < 2; i++) {
        char name[16];

        for (int bias = 0; bias < 2; bias++) {
            snprintf(name, sizeof name, bias ? "b%d" : "w%d", i);
            net->variables[net->count++] = ipu_variable(
                g, name, IPU_FLOAT32, bias ? 1 : 2, extents + i + bias);
        }
        net->parameters += (extents[i] + 1) * extents[i + 1];
        x = ipu_bias_add(g, ipu_matmul(g, x, net->variables[2 * i]),
                         net->variables[2 * i + 1]);
        if (i == 0)
            x = ipu_relu(g, x);
    }
    if (!net->training)
        return ipu_output(g, "y", x);
    x = ipu_softmax_cross_entropy(g, x, labels);
    x = ipu_reduce_sum(g, x, 1.0 / size->batch);
    ipu_output(g, "loss", x);
    ipu_gradients(g, x, net->count, net->variables, gradients);
    return net_train(net, gradients, mini_batches, IPU_OPTIMIZER_SGD);
}

ipu_tensor net_logits(struct net *net, const struct net_size *size,
                      ipu_tensor x, int64_t channels)
{
    const int64_t shape[] = {channels, size->classes};
    ipu_graph *g = net->graph;

    x = ipu_mean(g, x, 2, (const int32_t[]){1, 2}, 0);
    x = ipu_matmul(g, x, net_weight(net, 2, shape));
    return ipu_bias_add(g, x, net_weight(net, 1, &shape[1]));
}

/* Ends the training of a stage: sends back the derivative of what it received,
 * if that is not NULL, and updates. */
static int send_back(struct net *net, const ipu_tensor *received,
                     ipu_tensor loss, int32_t mini_batches,
                     ipu_optimizer_kind kind)
{
    ipu_tensor wanted[NET_MAX_VARIABLES + 1];
    ipu_tensor gradients[NET_MAX_VARIABLES + 1];
    int32_t count = net->count;

    for (int i = 0; i < net->count; i++)
        wanted[i] = net->variables[i];
    if (received)
        wanted[count++] = *received;
    ipu_gradients(net->graph, loss, count, wanted, gradients);
    if (received)
        ipu_output(net->graph, "dx", gradients[net->count]);
    return net_train(net, gradients, mini_batches, kind);
}

int net_send_on(struct net *net, const ipu_tensor *received, ipu_tensor y,
                int32_t ndim, const int64_t *shape, int32_t mini_batches,
                ipu_optimizer_kind kind)
{
    ipu_graph *g = net->graph;
    ipu_tensor dy;

    net->boundary = 1;
    for (int32_t i = 0; i < ndim; i++)
        net->boundary *= shape[i];
    if (!net->training)
        return ipu_output(g, "y", y);
    dy = ipu_input(g, "dy", IPU_FLOAT16, ndim, shape);
    ipu_output(g, "y", y);
    /* This loss has the derivative dy. */
    y = ipu_cast(g, ipu_reduce_sum(g, ipu_multiply(g, y, dy), 1), IPU_FLOAT32);
    return send_back(net, received, y, mini_batches, kind);
}

int net_classify(struct net *net, const struct net_size *size,
                 const ipu_tensor *received, ipu_tensor logits,
                 int32_t mini_batches)
{
    ipu_graph *g = net->graph;
    ipu_tensor x = ipu_cast(g, logits, IPU_FLOAT32), labels;

    if (!net->training)
        return ipu_output(g, "classes", ipu_softmax(g, x));
    labels =
        ipu_input(g, "labels", IPU_INT32, 1, (const int64_t[]){size->batch});
    x = ipu_reduce_sum(g, ipu_softmax_cross_entropy(g, x, labels),
                       1.0 / size->batch);
    ipu_output(g, "loss", x);
    return send_back(net, received, x, mini_batches, IPU_OPTIMIZER_SGD);
}
