/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perceptron.h - the network of the chapter's programs: 784, 128 and 10
 * neurons, which learn digits.
 */
#ifndef MODELS_CHAPTER_PERCEPTRON_H
#define MODELS_CHAPTER_PERCEPTRON_H

#include <ipu.h>

enum { PERCEPTRON_VARIABLES = 4 };

extern const char *const perceptron_names[PERCEPTRON_VARIABLES];

/* First values of a variable, to be freed: the same each time. count: how many.
 * NULL: no memory, and problem.h has the text. */
float *perceptron_draw(int variable, int64_t *count);

/*
 * Forwards and back, on shards chips: 1, or 2, one for each layer. Variables,
 * the mean loss of the batch, and its gradients. A status of the device.
 */
int perceptron_build(ipu_graph *graph, int shards, ipu_tensor pixels,
                     ipu_tensor labels, ipu_tensor *variables, ipu_tensor *loss,
                     ipu_tensor *gradients);

/* The learning rate of plain SGD. */
#define PERCEPTRON_RATE 0.1

#endif
