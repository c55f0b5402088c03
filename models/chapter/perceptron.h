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

/* Returns first values of a variable, to be freed; they are the same each time.
 * Sets *count to their number. NULL: no memory, and problem.h has the text. */
float *perceptron_draw(int variable, int64_t *count);

/*
 * Builds the forward and the backward pass on 1 chip, or on 2, one for each
 * layer. Sets the variables, the mean loss of the batch, and its gradients.
 * Returns a status of the device.
 */
int perceptron_build(ipu_graph *graph, int shards, ipu_tensor pixels,
                     ipu_tensor labels, ipu_tensor *variables, ipu_tensor *loss,
                     ipu_tensor *gradients);

/* The learning rate of plain SGD. */
#define PERCEPTRON_RATE 0.1

#endif
