/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nets.c - makes networks of pieces, and stages of pieces.
 *
 * A piece is a layer or a block. Consecutive pieces make a stage, about the
 * same number in each. Pieces note the variables that they make, so that the
 * caller can fill them; if they are built a second time, for a test, they note
 * nothing new.
 *
 * Normalisation is by groups of channels: it needs no statistics of other
 * mini-batches, which in a pipeline are on their way at the same time.
 */
#include "pipeline/nets.h"

#include "output/problem.h"
#include "pipeline/job.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 28, CLASSES = 10, GROUPS = 4, BLOCKS = 2, MLP_LAYERS = 4 };
enum { FILTERS = 32, POOLED = 13, HIDDEN = 64, CNN_PIECES = 3 };

static const char *const names[] = {"mlp", "cnn", "resnet", "towers"};
int net_from_name(const char *name)
{
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return problem_set("--model: '%s' is none of mlp, cnn, resnet or towers",
                       name);
}

/* -------------------------------------------------------------------- pieces
 */

static ipu_tensor make_weight(struct nets *nets, ipu_graph *g, const char *name,
                              int32_t ndim, const int64_t *shape,
                              int64_t fan_in)
{
    int64_t count = 1;
    bool known = false;

    for (int32_t i = 0; i < ndim; i++)
        count *= shape[i];
    for (int i = 0; i < nets->nweights; i++)
        known |= strcmp(nets->weights[i].name, name) == 0;
    if (!known && nets->nweights < NETS_MOST_WEIGHTS) {
        struct nets_weight *w = &nets->weights[nets->nweights++];

        snprintf(w->name, sizeof w->name, "%s", name);
        w->count = count;
        w->fan_in = fan_in;
    }
    return ipu_variable(g, name, IPU_FLOAT32, ndim, shape);
}

static ipu_tensor build_dense(struct nets *nets, ipu_graph *g, const char *name,
                              ipu_tensor x, int64_t in, int64_t out)
{
    char text[40];
    ipu_tensor w, b;

    snprintf(text, sizeof text, "%s/w", name);
    w = make_weight(nets, g, text, 2, (const int64_t[]){in, out}, in);
    snprintf(text, sizeof text, "%s/b", name);
    b = make_weight(nets, g, text, 1, &out, 0);
    return ipu_bias_add(g, ipu_matmul(g, x, w), b);
}

static ipu_tensor build_conv(struct nets *nets, ipu_graph *g, const char *name,
                             ipu_tensor x, int64_t in, int64_t out,
                             int32_t side, int32_t stride)
{
    const ipu_conv_options o = {
        .size = sizeof o, .stride = {stride, stride}, .same = 1};
    char text[40];

    snprintf(text, sizeof text, "%s/k", name);
    return ipu_conv2d(g, x,
                      make_weight(nets, g, text, 4,
                                  (const int64_t[]){side, side, in, out},
                                  side * side * in),
                      &o);
}

static ipu_tensor build_norm(struct nets *nets, ipu_graph *g, const char *name,
                             ipu_tensor x, int64_t channels)
{
    char text[40];
    ipu_tensor scale, offset;

    snprintf(text, sizeof text, "%s/scale", name);
    scale = make_weight(nets, g, text, 1, &channels, -1);
    snprintf(text, sizeof text, "%s/offset", name);
    offset = make_weight(nets, g, text, 1, &channels, 0);
    return ipu_group_norm(g, x, GROUPS, scale, offset, 1e-5);
}

static ipu_tensor reshape_images(ipu_graph *g, ipu_tensor x, int batch)
{
    return ipu_reshape(g, x, 4, (const int64_t[]){batch, SIDE, SIDE, 1});
}

static ipu_tensor mean_of_pixels(ipu_graph *g, ipu_tensor x)
{
    return ipu_mean(g, x, 2, (const int32_t[]){1, 2}, 0);
}

static ipu_tensor mlp_piece(struct nets *nets, ipu_graph *g, int piece,
                            ipu_tensor x)
{
    static const int64_t widths[MLP_LAYERS + 1] = {SIDE * SIDE, 256, 128, 64,
                                                   CLASSES};
    char name[16];

    if (piece < 0 || piece >= MLP_LAYERS)
        return x;
    snprintf(name, sizeof name, "dense%d", piece);
    x = build_dense(nets, g, name, x, widths[piece], widths[piece + 1]);
    return piece + 1 < MLP_LAYERS ? ipu_relu(g, x) : x;
}

/* The pieces are a convolution, a pooling with a dense layer, and the last
 * layer. */
static ipu_tensor cnn_piece(struct nets *nets, ipu_graph *g, int piece,
                            ipu_tensor x)
{
    const int64_t filters = FILTERS, flat = POOLED * POOLED * FILTERS;
    ipu_tensor k, b;

    switch (piece) {
    case 0:
        k = make_weight(nets, g, "conv/k", 4,
                        (const int64_t[]){3, 3, 1, FILTERS}, 9);
        b = make_weight(nets, g, "conv/b", 1, &filters, 0);
        x = ipu_conv2d(g, reshape_images(g, x, nets->batch), k, NULL);
        return ipu_relu(g, ipu_bias_add(g, x, b));
    case 1:
        x = ipu_reshape(g, ipu_max_pool2d(g, x, 2), 2,
                        (const int64_t[]){nets->batch, flat});
        return ipu_relu(g, build_dense(nets, g, "dense", x, flat, HIDDEN));
    default: return build_dense(nets, g, "head", x, HIDDEN, CLASSES);
    }
}

/* The pieces are the stem, the blocks, and the head. */
static ipu_tensor resnet_piece(struct nets *nets, ipu_graph *g, int piece,
                               ipu_tensor x)
{
    int group = (piece - 1) / BLOCKS, first = (piece - 1) % BLOCKS == 0;
    int64_t out = 16 << group, in = first && group ? out / 2 : out;
    int32_t stride = first && group ? 2 : 1;
    char name[8], text[32];
    ipu_tensor y;

    if (piece == 0) {
        x = build_conv(nets, g, "stem", reshape_images(g, x, nets->batch), 1,
                       16, 3, 1);
        return ipu_relu(g, build_norm(nets, g, "stem", x, 16));
    }
    if (piece == 3 * BLOCKS + 1)
        return build_dense(nets, g, "head", mean_of_pixels(g, x), 64, CLASSES);
    snprintf(name, sizeof name, "b%d", piece);
    snprintf(text, sizeof text, "%s/1", name);
    y = build_conv(nets, g, text, x, in, out, 3, stride);
    y = ipu_relu(g, build_norm(nets, g, text, y, out));
    snprintf(text, sizeof text, "%s/2", name);
    y = build_norm(nets, g, text, build_conv(nets, g, text, y, out, out, 3, 1),
                   out);
    snprintf(text, sizeof text, "%s/0", name);
    if (stride != 1)
        x = build_conv(nets, g, text, x, in, out, 1, stride);
    return ipu_relu(g, ipu_add(g, x, y));
}

/* ----------------------------------------------------------------- stages */

static ipu_tensor loss_of(const struct nets *nets, ipu_graph *g,
                          ipu_tensor logits, ipu_tensor labels)
{
    return ipu_reduce_sum(g, ipu_softmax_cross_entropy(g, logits, labels),
                          1.0 / nets->batch);
}

static int build_outputs(const struct nets *nets, ipu_graph *g,
                         const ipu_tensor *in, ipu_tensor logits,
                         ipu_tensor *out)
{
    out[0] = nets->trains ? loss_of(nets, g, logits, in[2]) : logits;
    out[1] = nets->trains ? in[0] : in[2];
    return 2;
}

static int count_pieces(enum net net)
{
    return net == NET_MLP   ? MLP_LAYERS
           : net == NET_CNN ? CNN_PIECES
                            : 3 * BLOCKS + 2;
}

static int build_pieces(void *context, ipu_graph *g, int32_t ninputs,
                        const ipu_tensor *in, ipu_tensor *out)
{
    const struct nets_stage *stage = context;
    struct nets *nets = stage->nets;
    ipu_tensor x = in[1];

    (void)ninputs;
    for (int i = stage->first; i < stage->first + stage->count; i++)
        x = nets->net == NET_MLP   ? mlp_piece(nets, g, i, x)
            : nets->net == NET_CNN ? cnn_piece(nets, g, i, x)
                                   : resnet_piece(nets, g, i, x);
    if (stage->first + stage->count == count_pieces(nets->net))
        return build_outputs(nets, g, in, x, out);
    out[0] = in[0];
    out[1] = x;
    out[2] = in[2];
    return 3;
}

/* Builds the convolution that both towers share. */
static int build_stem(void *context, ipu_graph *g, int32_t ninputs,
                      const ipu_tensor *in, ipu_tensor *out)
{
    struct nets *nets = ((const struct nets_stage *)context)->nets;
    ipu_tensor x = reshape_images(g, in[1], nets->batch);

    (void)ninputs;
    out[0] = in[0];
    out[1] = ipu_relu(g, build_conv(nets, g, "stem", x, 1, 8, 5, 2));
    out[2] = in[2];
    return 3;
}

/* Builds one tower: small details, or a wide view. */
static int build_tower(void *context, ipu_graph *g, int32_t ninputs,
                       const ipu_tensor *in, ipu_tensor *out)
{
    const struct nets_stage *stage = context;
    const char *name = stage->first ? "wide" : "fine";
    ipu_tensor x =
        build_conv(stage->nets, g, name, in[1], 8, 16, stage->first ? 5 : 3, 2);

    (void)ninputs;
    out[0] = ipu_relu(g, build_norm(stage->nets, g, name, x, 16));
    if (stage->first)
        return 1;
    out[1] = in[0];
    out[2] = in[2];
    return 3;
}

static int build_head(void *context, ipu_graph *g, int32_t ninputs,
                      const ipu_tensor *in, ipu_tensor *out)
{
    struct nets *nets = ((const struct nets_stage *)context)->nets;
    const ipu_tensor both[] = {in[0], in[3]}, hand_on[] = {in[1], in[0], in[2]};
    ipu_tensor x = ipu_concat(g, 2, both, 3);

    (void)ninputs;
    x = ipu_reshape(g, ipu_max_pool2d(g, x, 7), 2,
                    (const int64_t[]){nets->batch, 32});
    return build_outputs(nets, g, hand_on,
                         build_dense(nets, g, "head", x, 32, CLASSES), out);
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

int nets_init(struct nets *nets, enum net net, int nstages, int batch,
              int trains)
{
    static const char *const numbers[] = {"stage 0", "stage 1", "stage 2",
                                          "stage 3", "stage 4", "stage 5",
                                          "stage 6", "stage 7"};

    *nets = (struct nets){
        .net = net, .batch = batch, .trains = trains, .nstages = nstages};
    if (net == NET_TOWERS && nstages != 4)
        return problem_set("--stages: the towers come in 4, not %d", nstages);
    if (net == NET_TOWERS) {
        cut_towers(nets);
        return 0;
    }
    if (nstages > count_pieces(net))
        return problem_set("--stages: %s has %d pieces, which do not make %d "
                           "stages",
                           names[net], count_pieces(net), nstages);
    for (int i = 0; i < nstages; i++) {
        int first = i * count_pieces(net) / nstages;

        nets->parts[i] = (struct nets_stage){
            nets, first, (i + 1) * count_pieces(net) / nstages - first};
        nets->stages[i] =
            (ipu_stage){numbers[i], build_pieces, &nets->parts[i], 3, 0};
    }
    return 0;
}

int nets_positions(const struct nets *nets)
{
    return nets->net == NET_TOWERS ? 3 : nets->nstages;
}
