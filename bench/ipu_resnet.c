/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_resnet.c - ResNet-50 (He et al., 2016), version 1.5: bottlenecks of
 * 1 x 1, 3 x 3 and 1 x 1, each with batch normalisation, the stride in the
 * 3 x 3. float16; the mean over the last 7 x 7 pixels, and the loss, are
 * float32. Activations are kept from block to block, and those within a block
 * are computed again for the derivatives, as the published runs did.
 */
#include "ipu_net.h"

#include <stdio.h>

static ipu_tensor per_channel(struct net *net, const char *what, int64_t count)
{
    char name[32];

    snprintf(name, sizeof name, "%s%d", what, net->count);
    return ipu_variable(net->graph, name, IPU_FLOAT16, 1, &count);
}

/* x: [n, h, w, in] -> [n, h / stride, w / stride, out] */
static ipu_tensor conv_norm(struct net *net, ipu_tensor x, int32_t kernel,
                            int32_t stride, int64_t in, int64_t out)
{
    ipu_graph *g = net->graph;
    const ipu_conv_options options = {
        .size = sizeof options, .stride = {stride, stride}, .same = 1};
    ipu_tensor mean = per_channel(net, "mean", out);
    ipu_tensor variance = per_channel(net, "variance", out);
    ipu_tensor weights =
        net_weight(net, 4, (const int64_t[]){kernel, kernel, in, out});
    ipu_tensor scale = net_weight(net, 1, &out);
    ipu_tensor offset = net_weight(net, 1, &out);

    x = ipu_conv2d(g, x, weights, &options);
    return net->training
               ? ipu_batch_norm(g, x, scale, offset, mean, variance, 0.9, 1e-5)
               : ipu_batch_norm_inference(g, x, scale, offset, mean, variance,
                                          1e-5);
}

static ipu_tensor bottleneck(struct net *net, ipu_tensor x, int32_t stride,
                             int64_t in, int64_t width)
{
    ipu_graph *g = net->graph;
    ipu_tensor shortcut = x;

    if (in != 4 * width)
        shortcut = conv_norm(net, x, 1, stride, in, 4 * width);
    x = ipu_relu(g, conv_norm(net, x, 1, 1, in, width));
    x = ipu_relu(g, conv_norm(net, x, 3, stride, width, width));
    x = conv_norm(net, x, 1, 1, width, 4 * width);
    x = ipu_relu(g, ipu_add(g, x, shortcut));
    return ipu_recomputation_checkpoint(g, x);
}

/* -> [n, classes] */
static ipu_tensor logits_of(struct net *net, const struct net_size *size)
{
    static const int blocks[] = {3, 4, 6, 3};
    const ipu_pool_options pool = {
        .size = sizeof pool, .window = {3, 3}, .stride = {2, 2}, .same = 1};
    ipu_graph *g = net->graph;
    int64_t channels = 64, classes = size->classes;
    ipu_tensor x = ipu_input(
        g, "images", IPU_FLOAT16, 4,
        (const int64_t[]){size->batch, size->tokens, size->tokens, 3});

    x = ipu_relu(g, conv_norm(net, x, 7, 2, 3, channels));
    x = ipu_recomputation_checkpoint(g, ipu_max_pool2d_with(g, x, &pool));
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < blocks[stage]; block++) {
            int64_t width = (int64_t)64 << stage;

            x = bottleneck(net, x, block == 0 && stage > 0 ? 2 : 1, channels,
                           width);
            channels = 4 * width;
        }
    x = ipu_mean(g, x, 2, (const int32_t[]){1, 2}, 0);
    x = ipu_matmul(g, x,
                   net_weight(net, 2, (const int64_t[]){channels, classes}));
    return ipu_bias_add(g, x, net_weight(net, 1, &classes));
}

int net_resnet50(struct net *net, const struct net_size *size,
                 int32_t mini_batches)
{
    ipu_graph *g = net->graph;
    ipu_tensor gradients[NET_MAX_VARIABLES];
    ipu_tensor x, labels;

    ipu_allow_recompute(g, net->training);
    x = ipu_cast(g, logits_of(net, size), IPU_FLOAT32);
    if (!net->training)
        return ipu_output(g, "classes", ipu_softmax(g, x));
    labels =
        ipu_input(g, "labels", IPU_INT32, 1, (const int64_t[]){size->batch});
    x = ipu_reduce_sum(g, ipu_softmax_cross_entropy(g, x, labels),
                       1.0 / size->batch);
    ipu_output(g, "loss", x);
    ipu_gradients(g, x, net->count, net->variables, gradients);
    return net_train(net, gradients, mini_batches, IPU_OPTIMIZER_SGD);
}
