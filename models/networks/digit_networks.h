/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digit_networks.h - the networks that read digits, as models.
 *
 * cnn is the network of Graphcore's MNIST example:
 *
 *   image [b, 28, 28, 1]
 *     conv 32 of 3x3, ReLU   [b, 26, 26, 32]
 *     max-pool 2             [b, 13, 13, 32]
 *     flatten                [b, 5408]
 *     dense 64, ReLU         [b, 64]
 *     dense 10               [b, 10]  logits
 *
 * mlp:
 *
 *   image [b, 784]
 *     dense 128, ReLU        [b, 128]
 *     dense 10               [b, 10]  logits
 *
 * cnn-bn is cnn with a batch normalisation between the convolution, which then
 * has no bias, and its ReLU. Its moving averages are statistics (model.h).
 *
 * Kernels start Glorot-uniform, biases and offsets at 0, scales at 1.
 */
#ifndef MODELS_DIGIT_NETWORKS_H
#define MODELS_DIGIT_NETWORKS_H

struct hvd_model; /* hvd_model.h */
struct model;     /* model.h */

enum network { NETWORK_CNN, NETWORK_CNN_BN, NETWORK_MLP };

/* The names, by network; ends with NULL. */
extern const char *const network_names[];

/* Returns a network, whose first input is "images", [784] of the MLP and [28,
 * 28, 1] of the others; its loss compares the logits with "labels". */
const struct hvd_model *network_public(enum network network);

/* Makes it a model, which the caller owns. PROBLEM: no memory; *model stays as
 * it is. */
int network_model(enum network network, int batch_size, struct model **model);

#endif
