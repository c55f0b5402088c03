/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resnet.c - ResNet-50 (He et al., 2016), version 1.5, and ResNeXt-101.
 *
 * ResNet-50 has bottlenecks of 1 x 1, 3 x 3 and 1 x 1, each with batch
 * normalisation, and the stride in the 3 x 3. The type is float16; the mean
 * over the last 7 x 7 pixels, and the loss, are float32. Activations are kept
 * from block to block, and those within a block are computed again for the
 * derivatives, as in the published runs. In inference, norms are part of the
 * convolutions, as in a network exported to ONNX.
 */
#include "ipu/net.h"

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
    const int64_t shape[] = {kernel, kernel, in, out};
    ipu_tensor scale;

    x = ipu_conv2d(g, x, net_weight(net, 4, shape), &options);
    if (!net->training)
        return ipu_bias_add(g, x, net_weight(net, 1, &out));
    scale = net_weight(net, 1, &out);
    return ipu_batch_norm(g, x, scale, net_weight(net, 1, &out),
                          per_channel(net, "mean", out),
                          per_channel(net, "variance", out), 0.9, 1e-5);
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

/* Returns the logits: [n, classes]. */
static ipu_tensor logits_of(struct net *net, const struct net_size *size)
{
    static const int blocks[] = {3, 4, 6, 3};
    const ipu_pool_options pool = {
        .size = sizeof pool, .window = {3, 3}, .stride = {2, 2}, .same = 1};
    ipu_graph *g = net->graph;
    int64_t channels = 64;
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
    return net_logits(net, size, x, channels);
}

int net_resnet50(struct net *net, const struct net_size *size,
                 int32_t mini_batches)
{
    ipu_allow_recompute(net->graph, net->training);
    return net_classify(net, size, NULL, logits_of(net, size), mini_batches);
}

/* -------------------------------------------------------------- ResNeXt-101 */

/* The middle convolution of a ResNeXt block has CARDINALITY groups and WIDER
 * times the channels of ResNet's. */
enum { CARDINALITY = 32, WIDER = 2, NORM_GROUPS = 32 };

/* Each part has so many blocks; the second stage begins after the fourth block
 * of the third part. */
static const int parts[] = {3, 4, 23, 3};
enum { NPARTS = 4, SECOND_STAGE = 3 + 4 + 4 };

static ipu_tensor conv_group_norm(struct net *net, ipu_tensor x, int32_t kernel,
                                  int32_t stride, int64_t in, int64_t out,
                                  int32_t groups)
{
    ipu_graph *g = net->graph;
    const ipu_conv_options options = {.size = sizeof options,
                                      .stride = {stride, stride},
                                      .same = 1,
                                      .groups = groups};
    const int64_t shape[] = {kernel, kernel, in / groups, out};
    ipu_tensor scale;

    x = ipu_conv2d(g, x, net_weight(net, 4, shape), &options);
    scale = net_weight(net, 1, &out);
    return ipu_group_norm(g, x, NORM_GROUPS, scale, net_weight(net, 1, &out),
                          1e-5);
}

static ipu_tensor grouped_bottleneck(struct net *net, ipu_tensor x,
                                     int32_t stride, int64_t in, int64_t width)
{
    ipu_graph *g = net->graph;
    int64_t middle = WIDER * width, out = 4 * width;
    ipu_tensor shortcut = x;

    if (in != out)
        shortcut = conv_group_norm(net, x, 1, stride, in, out, 1);
    x = ipu_relu(g, conv_group_norm(net, x, 1, 1, in, middle, 1));
    x = ipu_relu(
        g, conv_group_norm(net, x, 3, stride, middle, middle, CARDINALITY));
    x = conv_group_norm(net, x, 1, 1, middle, out, 1);
    x = ipu_relu(g, ipu_add(g, x, shortcut));
    return ipu_recomputation_checkpoint(g, x);
}

/* Adds blocks [from, to) of all. */
static ipu_tensor grouped_blocks(struct net *net, ipu_tensor x, int from,
                                 int to)
{
    int64_t channels = 64;
    int number = 0;

    for (int part = 0; part < NPARTS; part++)
        for (int i = 0; i < parts[part]; i++, number++) {
            int64_t width = (int64_t)64 << part;

            if (number >= from && number < to)
                x = grouped_bottleneck(net, x, i == 0 && part > 0 ? 2 : 1,
                                       channels, width);
            channels = 4 * width;
        }
    return x;
}

static void resnext_boundary(const struct net_size *size, int64_t shape[4])
{
    shape[0] = size->batch;
    shape[1] = shape[2] = size->tokens / 16;
    shape[3] = 1024;
}

int net_resnext101(struct net *net, const struct net_size *size,
                   int32_t mini_batches)
{
    const ipu_pool_options pool = {
        .size = sizeof pool, .window = {3, 3}, .stride = {2, 2}, .same = 1};
    const int64_t image[] = {size->batch, size->tokens, size->tokens, 3};
    ipu_graph *g = net->graph;
    ipu_tensor x, received;
    int64_t shape[4];

    resnext_boundary(size, shape);
    if (net->stage == 0) {
        ipu_allow_recompute(g, net->training);
        x = ipu_input(g, "images", IPU_FLOAT16, 4, image);
        x = ipu_relu(g, conv_group_norm(net, x, 7, 2, 3, 64, 1));
        x = ipu_recomputation_checkpoint(g, ipu_max_pool2d_with(g, x, &pool));
        x = grouped_blocks(net, x, 0, SECOND_STAGE);
        return net_send_on(net, NULL, x, 4, shape, mini_batches,
                           IPU_OPTIMIZER_SGD);
    }
    net->boundary = shape[0] * shape[1] * shape[2] * shape[3];
    received = ipu_input(g, "x", IPU_FLOAT16, 4, shape);
    x = grouped_blocks(net, received, SECOND_STAGE, 3 + 4 + 23 + 3);
    return net_classify(net, size, &received, net_logits(net, size, x, 2048),
                        mini_batches);
}
