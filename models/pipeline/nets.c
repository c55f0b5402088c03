/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nets.c - makes networks of pieces, and stages of pieces.
 *
 * A piece is a layer or a block. Consecutive pieces make a stage, about the
 * same number in each.
 *
 * Normalisation is by groups of channels: it needs no statistics of other
 * mini-batches, which in a pipeline are on their way at the same time.
 */
#include "pipeline/nets.h"

#include "output/problem.h"

#include <stdio.h>

enum { SIDE = 28, CLASSES = 10, GROUPS = 4, BLOCKS = 2, MLP_LAYERS = 4 };
enum { FILTERS = 32, HIDDEN = 64, CNN_PIECES = 3 };

const char *const net_names[] = {"mlp", "cnn", "resnet", "towers", NULL};

/* ------------------------------------------------------------------- pieces */

static ipu_tensor build_conv(hvd_net *net, const char *name, ipu_tensor x,
                             int64_t filters, int64_t extent, int32_t stride)
{
    const ipu_conv_options window = {
        .size = sizeof window, .stride = {stride, stride}, .same = 1};
    hvd_layer_options o;

    hvd_layer_options_init(&o, sizeof o);
    o.no_bias = 1;
    o.window = &window;
    return hvd_conv2d_with(net, name, x, filters, extent, &o);
}

/* Builds a convolution and its normalisation. */
static ipu_tensor build_block(hvd_net *net, const char *name, ipu_tensor x,
                              int64_t filters, int64_t extent, int32_t stride)
{
    x = build_conv(net, name, x, filters, extent, stride);
    return hvd_group_norm(net, name, x, GROUPS);
}

static ipu_tensor reshape_images(const struct nets *nets, ipu_tensor x)
{
    return ipu_reshape(hvd_net_graph(nets->net), x, 4,
                       (const int64_t[]){nets->batch, SIDE, SIDE, 1});
}

static ipu_tensor mlp_piece(const struct nets *nets, int piece, ipu_tensor x)
{
    static const int64_t widths[MLP_LAYERS - 1] = {256, 128, 64};
    const bool last = piece >= MLP_LAYERS - 1;
    char name[24];

    snprintf(name, sizeof name, "dense%d", piece);
    return hvd_dense(nets->net, name, x, last ? CLASSES : widths[piece],
                     last ? HVD_LINEAR : HVD_RELU);
}

/* The pieces are a convolution, a pooling with a dense layer, and the last
 * layer. */
static ipu_tensor cnn_piece(const struct nets *nets, int piece, ipu_tensor x)
{
    switch (piece) {
    case 0:
        return hvd_conv2d(nets->net, "conv", reshape_images(nets, x), FILTERS,
                          3, HVD_RELU);
    case 1:
        x = ipu_max_pool2d(hvd_net_graph(nets->net), x, 2);
        return hvd_dense(nets->net, "dense", hvd_flatten(nets->net, x), HIDDEN,
                         HVD_RELU);
    default: return hvd_dense(nets->net, "head", x, CLASSES, HVD_LINEAR);
    }
}

/* The pieces are the stem, the blocks, and the head. */
static ipu_tensor resnet_piece(const struct nets *nets, int piece, ipu_tensor x)
{
    ipu_graph *g = hvd_net_graph(nets->net);
    int group = (piece - 1) / BLOCKS, first = (piece - 1) % BLOCKS == 0;
    int64_t filters = 16 << group;
    int32_t stride = first && group ? 2 : 1;
    char names[3][16];
    ipu_tensor y;

    if (piece == 0)
        return ipu_relu(g, build_block(nets->net, "stem",
                                       reshape_images(nets, x), 16, 3, 1));
    if (piece == 3 * BLOCKS + 1)
        return hvd_dense(nets->net, "head",
                         ipu_mean(g, x, 2, (const int32_t[]){1, 2}, 0), CLASSES,
                         HVD_LINEAR);
    for (int i = 0; i < 3; i++)
        snprintf(names[i], sizeof names[i], "b%d/%d", piece, i);
    y = ipu_relu(g, build_block(nets->net, names[1], x, filters, 3, stride));
    y = build_block(nets->net, names[2], y, filters, 3, 1);
    if (stride != 1)
        x = build_conv(nets->net, names[0], x, filters, 1, stride);
    return ipu_relu(g, ipu_add(g, x, y));
}

/* ----------------------------------------------------------------- stages */

/* Begins a stage of the net. */
static struct nets *begin_stage(const struct nets_stage *stage, ipu_graph *g)
{
    hvd_net_begin(stage->nets->net, g,
                  stage->nets->trains ? HVD_MODE_TRAIN : HVD_MODE_EVALUATE);
    return stage->nets;
}

/* Ends a stage with these outputs. */
static int hand_on(const struct nets *nets, int count,
                   const ipu_tensor *tensors, ipu_tensor *out)
{
    const hvd_variable *variables;

    for (int i = 0; i < count; i++)
        out[i] = tensors[i];
    return hvd_net_end(nets->net, &variables) < 0 ? IPU_ERR_STATE : count;
}

static int end_net(const struct nets *nets, ipu_graph *g, ipu_tensor rate,
                   ipu_tensor logits, ipu_tensor labels, ipu_tensor *out)
{
    if (!nets->trains)
        return hand_on(nets, 2, (const ipu_tensor[]){logits, labels}, out);
    logits = ipu_reduce_sum(g, ipu_softmax_cross_entropy(g, logits, labels),
                            1.0 / nets->batch);
    return hand_on(nets, 2, (const ipu_tensor[]){logits, rate}, out);
}

static int count_pieces(enum net kind)
{
    return kind == NET_MLP   ? MLP_LAYERS
           : kind == NET_CNN ? CNN_PIECES
                             : 3 * BLOCKS + 2;
}

static int build_pieces(void *context, ipu_graph *g, int32_t ninputs,
                        const ipu_tensor *in, ipu_tensor *out)
{
    const struct nets_stage *stage = context;
    const struct nets *nets = begin_stage(stage, g);
    ipu_tensor x = in[1];

    (void)ninputs;
    for (int i = stage->first; i < stage->first + stage->count; i++)
        x = nets->kind == NET_MLP   ? mlp_piece(nets, i, x)
            : nets->kind == NET_CNN ? cnn_piece(nets, i, x)
                                    : resnet_piece(nets, i, x);
    if (stage->first + stage->count == count_pieces(nets->kind))
        return end_net(nets, g, in[0], x, in[2], out);
    return hand_on(nets, 3, (const ipu_tensor[]){in[0], x, in[2]}, out);
}

/* Builds the convolution that both towers share. */
static int build_stem(void *context, ipu_graph *g, int32_t ninputs,
                      const ipu_tensor *in, ipu_tensor *out)
{
    const struct nets *nets = begin_stage(context, g);
    ipu_tensor x =
        build_conv(nets->net, "stem", reshape_images(nets, in[1]), 8, 5, 2);

    (void)ninputs;
    return hand_on(nets, 3, (const ipu_tensor[]){in[0], ipu_relu(g, x), in[2]},
                   out);
}

/* Builds one tower: small details, or a wide view, which hands on its result
 * alone. */
static int build_tower(void *context, ipu_graph *g, int32_t ninputs,
                       const ipu_tensor *in, ipu_tensor *out)
{
    const struct nets_stage *stage = context;
    const struct nets *nets = begin_stage(stage, g);
    const bool wide = stage->first != 0;
    ipu_tensor x = build_block(nets->net, wide ? "wide" : "fine", in[1], 16,
                               wide ? 5 : 3, 2);

    (void)ninputs;
    return hand_on(nets, wide ? 1 : 3,
                   (const ipu_tensor[]){ipu_relu(g, x), in[0], in[2]}, out);
}

static int build_head(void *context, ipu_graph *g, int32_t ninputs,
                      const ipu_tensor *in, ipu_tensor *out)
{
    const struct nets *nets = begin_stage(context, g);
    ipu_tensor x = ipu_concat(g, 2, (const ipu_tensor[]){in[0], in[3]}, 3);

    (void)ninputs;
    x = hvd_flatten(nets->net, ipu_max_pool2d(g, x, 7));
    x = hvd_dense(nets->net, "head", x, CLASSES, HVD_LINEAR);
    return end_net(nets, g, in[1], x, in[2], out);
}

static void cut_towers(struct nets *nets)
{
    static const ipu_stage stages[] = {
        {"stem", build_stem, NULL, 3, 0},
        {"fine", build_tower, NULL, 3, 0},
        {"wide", build_tower, NULL, 3, 1},
        {"head", build_head, NULL, 4, 0},
    };

    for (int i = 0; i < 4; i++) {
        nets->parts[i] = (struct nets_stage){nets, i == 2, 0};
        nets->stages[i] = stages[i];
        nets->stages[i].context = &nets->parts[i];
        nets->mapping[i] = i;
    }
    nets->nmapping = 4;
}

int nets_init(struct nets *nets, enum net kind, hvd_net *net, int nstages,
              int batch, bool trains)
{
    static const char *const numbers[] = {"stage 0", "stage 1", "stage 2",
                                          "stage 3", "stage 4", "stage 5",
                                          "stage 6", "stage 7"};

    *nets = (struct nets){.kind = kind,
                          .net = net,
                          .batch = batch,
                          .trains = trains,
                          .nstages = nstages};
    if (kind == NET_TOWERS && nstages != 4)
        return problem_set("--stages: the towers come in 4, not %d", nstages);
    if (kind == NET_TOWERS) {
        cut_towers(nets);
        return 0;
    }
    if (nstages > count_pieces(kind))
        return problem_set("--stages: %s has %d pieces, which do not make %d "
                           "stages",
                           net_names[kind], count_pieces(kind), nstages);
    for (int i = 0; i < nstages; i++) {
        int first = i * count_pieces(kind) / nstages;

        nets->parts[i] = (struct nets_stage){
            nets, first, (i + 1) * count_pieces(kind) / nstages - first};
        nets->stages[i] =
            (ipu_stage){numbers[i], build_pieces, &nets->parts[i], 3, 0};
    }
    return 0;
}

int nets_positions(const struct nets *nets)
{
    return nets->kind == NET_TOWERS ? 3 : nets->nstages;
}
