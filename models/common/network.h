/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - the network of Graphcore's MNIST example, for the software IPU:
 *
 *   image [b, 28, 28, 1]
 *     conv 32 of 3x3, ReLU   [b, 26, 26, 32]
 *     max-pool 2             [b, 13, 13, 32]
 *     flatten                [b, 5408]
 *     dense 64, ReLU         [b, 64]
 *     dense 10               [b, 10]  logits
 *     softmax cross-entropy, sum / b: the loss
 */
#ifndef MODELS_NETWORK_H
#define MODELS_NETWORK_H

#include "common/images.h"

#include <ipu.h>

enum { NETWORK_VARIABLES = 6 };

/* A variable as the graph declares it. */
struct network_variable {
    const char *name;   /* "conv1/kernel" */
    const char *stream; /* its gradient's: "gradient/conv1/kernel" */
    int32_t ndim;
    int64_t shape[4];
    int64_t count;           /* elements */
    int64_t fan_in, fan_out; /* 0 for a bias, which starts at 0 */
};

/* In the order in which the backward pass completes their gradients. */
extern const struct network_variable network_variables[NETWORK_VARIABLES];

/* Elements of all variables together. */
int64_t network_parameters(void);

/* Glorot-uniform first values: each kernel even in ±sqrt(6 / (fan_in +
 * fan_out)). values[i] has room for variable i. */
void network_initialize(uint64_t seed, float *const *values);

/*
 * Inputs "images" and "labels", output "loss"; the gradient of variable i
 * leaves by a host call of its stream to fn(contexts[i]) as soon as it is
 * computed. PROBLEM with the text kept.
 */
int network_compile_training(int batch_size, ipu_host_fn fn,
                             void *const *contexts,
                             ipu_executable **executable);

/* Inputs "images" and "labels", outputs "losses" [b] and "logits" [b, 10]. */
int network_compile_evaluation(int batch_size, ipu_executable **executable);

/* The device's last failure as a problem. */
int network_device_problem(void);

#endif
