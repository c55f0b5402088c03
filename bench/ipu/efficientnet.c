/* SPDX-License-Identifier: Apache-2.0 */
/*
 * efficientnet.c - EfficientNet (Tan and Le, 2019) as Masters et al. (2021)
 * made it faster on IPUs: convolutions of groups of 16 channels instead of
 * depthwise ones, with channels expanded 4 times instead of 6, and group norm.
 *
 *     expand 1 x 1, norm, silu; group convolution, norm, silu;
 *     squeeze and excite: mean, 1 x 1, silu, 1 x 1, sigmoid, times;
 *     1 x 1, norm; plus the input where it is as large
 *
 * The type is float16. The network is a pipeline of two stages, cut before the
 * fourth group of blocks, as in the published runs; the second stage keeps its
 * activations, the first one computes them again. The published runs drop whole
 * images from blocks (stochastic depth); this network does not.
 */
#include "ipu/net.h"

#include <math.h>

enum { NGROUPS = 7, GROUP_CHANNELS = 16, NORM_GROUPS = 4, EXPAND = 4 };

/* The groups of blocks of B0. Larger networks have wider groups of more
 * blocks. */
static const struct {
    int kernel, blocks, channels, stride;
} groups[NGROUPS] = {{3, 1, 16, 1}, {3, 2, 24, 2},  {5, 2, 40, 2},
                     {3, 3, 80, 2}, {5, 3, 112, 1}, {5, 4, 192, 2},
                     {3, 1, 320, 1}};

/* The group with which the second stage begins. */
enum { SECOND_STAGE = 3 };

/* The factors of B4. */
static const double WIDER = 1.4, DEEPER = 1.8;

/* Returns channels times WIDER, rounded to a multiple of 8 that is at most a
 * tenth less. */
static int64_t wide(int channels)
{
    double wanted = WIDER * channels;
    int64_t rounded = (int64_t)(wanted + 4) / 8 * 8;

    return rounded < 0.9 * wanted ? rounded + 8 : rounded;
}

static ipu_tensor conv(struct net *net, ipu_tensor x, int kernel, int stride,
                       int64_t in, int64_t out, int64_t ngroups)
{
    const ipu_conv_options options = {.size = sizeof options,
                                      .stride = {stride, stride},
                                      .same = 1,
                                      .groups = (int32_t)ngroups};
    const int64_t shape[] = {kernel, kernel, in / ngroups, out};

    return ipu_conv2d(net->graph, x, net_weight(net, 4, shape), &options);
}

static ipu_tensor norm(struct net *net, ipu_tensor x, int64_t channels)
{
    ipu_tensor scale = net_weight(net, 1, &channels);

    return ipu_group_norm(net->graph, x, NORM_GROUPS, scale,
                          net_weight(net, 1, &channels), 1e-3);
}

/* Squeeze and excite: the mean of each channel over an image decides, through
 * two small products, how much of that channel passes on. */
static ipu_tensor squeeze(struct net *net, ipu_tensor x, int64_t images,
                          int64_t channels, int64_t reduced)
{
    ipu_graph *g = net->graph;
    const int64_t shape[] = {images, 1, 1, channels};
    ipu_tensor s = ipu_mean(g, x, 2, (const int32_t[]){1, 2}, 1);

    s = ipu_reshape(g, s, 4, shape);
    s = conv(net, s, 1, 1, channels, reduced, 1);
    s = ipu_silu(g, ipu_bias_add(g, s, net_weight(net, 1, &reduced)));
    s = conv(net, s, 1, 1, reduced, channels, 1);
    s = ipu_sigmoid(g, ipu_bias_add(g, s, net_weight(net, 1, &channels)));
    return ipu_multiply(g, x, s);
}

static ipu_tensor block(struct net *net, ipu_tensor x, int group, int stride,
                        int64_t images, int64_t in, int64_t out)
{
    ipu_graph *g = net->graph;
    int64_t middle = group > 0 ? EXPAND * in : in;
    ipu_tensor y = x;

    if (group > 0)
        y = ipu_silu(g, norm(net, conv(net, y, 1, 1, in, middle, 1), middle));
    y = conv(net, y, groups[group].kernel, stride, middle, middle,
             middle / GROUP_CHANNELS);
    y = ipu_silu(g, norm(net, y, middle));
    y = squeeze(net, y, images, middle, in / 4);
    y = norm(net, conv(net, y, 1, 1, middle, out, 1), out);
    if (stride == 1 && in == out)
        y = ipu_add(g, x, y);
    return ipu_recomputation_checkpoint(g, y);
}

/* Adds groups [from, to) of blocks; a stride halves the side of the image. */
static ipu_tensor blocks(struct net *net, const struct net_size *size,
                         ipu_tensor x, int from, int to)
{
    int64_t in = wide(from > 0 ? groups[from - 1].channels : 32);

    for (int i = from; i < to; i++) {
        int64_t out = wide(groups[i].channels);
        int count = (int)ceil(DEEPER * groups[i].blocks);

        for (int k = 0; k < count; k++) {
            x = block(net, x, i, k == 0 ? groups[i].stride : 1, size->batch, in,
                      out);
            in = out;
        }
    }
    return x;
}

/* Writes the shape of the tensor that the first stage hands to the second. */
static void boundary(const struct net_size *size, int64_t shape[4])
{
    int64_t side = (size->tokens + 1) / 2;

    for (int i = 0; i < SECOND_STAGE; i++)
        side = (side + groups[i].stride - 1) / groups[i].stride;
    shape[0] = size->batch;
    shape[1] = shape[2] = side;
    shape[3] = wide(groups[SECOND_STAGE - 1].channels);
}

static int first_stage(struct net *net, const struct net_size *size,
                       int32_t mini_batches)
{
    const int64_t image[] = {size->batch, size->tokens, size->tokens, 3};
    ipu_graph *g = net->graph;
    ipu_tensor x = ipu_input(g, "images", IPU_FLOAT16, 4, image);
    int64_t shape[4];

    ipu_allow_recompute(g, net->training);
    x = norm(net, conv(net, x, 3, 2, 3, wide(32), 1), wide(32));
    x = blocks(net, size, ipu_silu(g, x), 0, SECOND_STAGE);
    boundary(size, shape);
    return net_send_on(net, NULL, x, 4, shape, mini_batches, IPU_OPTIMIZER_SGD);
}

static int second_stage(struct net *net, const struct net_size *size,
                        int32_t mini_batches)
{
    const int64_t last = wide(groups[NGROUPS - 1].channels), top = wide(1280);
    ipu_graph *g = net->graph;
    ipu_tensor x, received;
    int64_t shape[4];

    boundary(size, shape);
    net->boundary = shape[0] * shape[1] * shape[2] * shape[3];
    received = ipu_input(g, "x", IPU_FLOAT16, 4, shape);
    x = blocks(net, size, received, SECOND_STAGE, NGROUPS);
    x = ipu_silu(g, norm(net, conv(net, x, 1, 1, last, top, 1), top));
    return net_classify(net, size, &received, net_logits(net, size, x, top),
                        mini_batches);
}

int net_efficientnet(struct net *net, const struct net_size *size,
                     int32_t mini_batches)
{
    return net->stage == 0 ? first_stage(net, size, mini_batches)
                           : second_stage(net, size, mini_batches);
}
