/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digit_networks.c - the CNN and the MLP in pieces. Both end in the same two
 * pieces. Variables are numbered as the backward pass completes their
 * gradients: from the last piece to the first, the bias before the kernel.
 */
#include "model/digit_networks.h"

#include "data/images.h"
#include "model/model.h"
#include "output/problem.h"

#include <string.h>

/* Sizes of the layers; WIDE is that of the MLP, the others are those of the
 * CNN. */
enum { HIDDEN = 64, FILTERS = 32, POOLED = 13, WIDE = 128 };
enum { FLAT = POOLED * POOLED * FILTERS };

enum { DENSE2_BIAS, DENSE2, DENSE1_BIAS, DENSE1, CONV1_BIAS, CONV1 };

const char *const network_names[] = {
    [NETWORK_CNN] = "cnn", [NETWORK_MLP] = "mlp", NULL};

/* Builds the last two pieces of both networks: the hidden units, the
 * classes. */
static ipu_tensor dense_piece(ipu_graph *graph, int piece,
                              const ipu_tensor *variables, ipu_tensor x)
{
    if (piece > 0) {
        x = ipu_matmul(graph, x, variables[DENSE2]);
        return ipu_bias_add(graph, x, variables[DENSE2_BIAS]);
    }
    x = ipu_matmul(graph, x, variables[DENSE1]);
    return ipu_relu(graph, ipu_bias_add(graph, x, variables[DENSE1_BIAS]));
}

static ipu_tensor cnn_piece(const struct model *model, ipu_graph *graph,
                            int piece, const ipu_tensor *variables,
                            ipu_tensor x, const struct model_pass *pass)
{
    const int64_t flat[] = {model->rows, FLAT};

    (void)pass;
    if (piece > 0)
        return dense_piece(graph, piece - 1, variables, x);
    x = ipu_conv2d(graph, x, variables[CONV1], NULL);
    x = ipu_relu(graph, ipu_bias_add(graph, x, variables[CONV1_BIAS]));
    return ipu_reshape(graph, ipu_max_pool2d(graph, x, 2), 2, flat);
}

static ipu_tensor mlp_piece(const struct model *model, ipu_graph *graph,
                            int piece, const ipu_tensor *variables,
                            ipu_tensor x, const struct model_pass *pass)
{
    (void)model;
    (void)pass;
    return dense_piece(graph, piece, variables, x);
}

/* Each piece has a kernel and a bias; variables are numbered from the last
 * piece to the first. */
static bool piece_needs(const struct model *model, int piece, int variable)
{
    return variable / 2 == model->pieces - 1 - piece;
}

/* Adds the variables of a dense layer, in backward order. */
static int add_dense(struct model *model, const char *bias, const char *kernel,
                     int64_t in, int64_t out)
{
    if (model_add(model, bias, MODEL_ZEROS, 0, 1, (const int64_t[]){out}) < 0)
        return PROBLEM;
    return model_add(model, kernel, MODEL_EVEN, model_glorot(in, out), 2,
                     (const int64_t[]){in, out});
}

static int add_conv(struct model *model)
{
    if (model_add(model, "conv1/bias", MODEL_ZEROS, 0, 1,
                  (const int64_t[]){FILTERS}) < 0)
        return PROBLEM;
    return model_add(model, "conv1/kernel", MODEL_EVEN,
                     model_glorot(9, 9 * FILTERS), 4,
                     (const int64_t[]){3, 3, 1, FILTERS});
}

static int add_variables(enum network network, struct model *model)
{
    int64_t hidden = network == NETWORK_CNN ? HIDDEN : WIDE;

    if (add_dense(model, "dense2/bias", "dense2/kernel", hidden, CLASSES) < 0 ||
        add_dense(model, "dense1/bias", "dense1/kernel",
                  network == NETWORK_CNN ? FLAT : IMAGE_PIXELS, hidden) < 0)
        return PROBLEM;
    return network == NETWORK_CNN ? add_conv(model) : 0;
}

static int64_t mlp_work(const struct model *model, int piece)
{
    (void)model;
    return piece == 0 ? IMAGE_PIXELS * WIDE : WIDE * CLASSES;
}

static int64_t cnn_work(const struct model *model, int piece)
{
    static const int64_t work[] = {26 * 26 * 9 * FILTERS, FLAT * HIDDEN,
                                   HIDDEN * CLASSES};

    (void)model;
    return work[piece];
}

int network_model(enum network network, int batch_size, struct model **model)
{
    struct model plain = {
        .name = network_names[network],
        .input_name = "images",
        .label_name = "labels",
        .input_dtype = IPU_FLOAT32,
        .input_ndim = 2,
        .input_shape = {batch_size, IMAGE_PIXELS},
        .rows = batch_size,
        .classes = CLASSES,
        .pieces = 2,
        .piece = mlp_piece,
        .needs = piece_needs,
        .work = mlp_work,
    };
    struct model *fresh;

    if (network == NETWORK_CNN) {
        const int64_t image[] = {batch_size, IMAGE_SIDE, IMAGE_SIDE, 1};

        plain.pieces = 3;
        plain.piece = cnn_piece;
        plain.work = cnn_work;
        plain.input_ndim = 4;
        memcpy(plain.input_shape, image, sizeof image);
    }
    fresh = model_new(&plain);
    if (!fresh || add_variables(network, fresh) < 0) {
        model_free(fresh);
        return PROBLEM;
    }
    *model = fresh;
    return 0;
}
