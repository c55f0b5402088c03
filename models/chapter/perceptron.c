/* SPDX-License-Identifier: Apache-2.0 */
#include "chapter/perceptron.h"

#include "data/images.h"
#include "data/random.h"
#include "output/problem.h"

#include <math.h>
#include <stdlib.h>

enum { HIDDEN = 128 };

const char *const perceptron_names[] = {"w1", "b1", "w2", "b2"};

/* Dimensions and shapes, in the order of the names. */
static const int32_t ndims[] = {2, 1, 2, 1};
static const int64_t shapes[][2] = {
    {IMAGE_PIXELS, HIDDEN}, {HIDDEN, 1}, {HIDDEN, CLASSES}, {CLASSES, 1}};

/* Weights are evenly distributed, so that a layer keeps the size of its inputs;
 * biases are zero. */
float *perceptron_draw(int variable, int64_t *count)
{
    double most =
        ndims[variable] > 1 ? sqrt(6.0 / (double)shapes[variable][0]) : 0;
    float *values;
    struct random r;

    *count = shapes[variable][0] * shapes[variable][1];
    values = malloc((size_t)*count * sizeof *values);
    if (!values) {
        problem_set("no memory for weights");
        return NULL;
    }
    random_seed(&r, 1, (uint64_t)variable);
    for (int64_t i = 0; i < *count; i++)
        values[i] = (float)random_range(&r, -most, most);
    return values;
}

int perceptron_build(ipu_graph *g, int shards, ipu_tensor pixels,
                     ipu_tensor labels, ipu_tensor *v, ipu_tensor *loss,
                     ipu_tensor *gradients)
{
    ipu_tensor hidden, logits;

    for (int i = 0; i < PERCEPTRON_VARIABLES; i++) {
        if (shards > 1)
            ipu_shard(g, i / 2);
        v[i] = ipu_variable(g, perceptron_names[i], IPU_FLOAT32, ndims[i],
                            shapes[i]);
    }
    if (shards > 1)
        ipu_shard(g, 0);
    hidden = ipu_relu(g, ipu_bias_add(g, ipu_matmul(g, pixels, v[0]), v[1]));
    if (shards > 1)
        ipu_shard(g, 1);
    logits = ipu_bias_add(g, ipu_matmul(g, hidden, v[2]), v[3]);
    *loss = ipu_mean(g, ipu_softmax_cross_entropy(g, logits, labels), 1,
                     (const int32_t[]){0}, 0);
    if (shards > 1)
        ipu_shard(g, -1); /* each op where its tensors are */
    return ipu_gradients(g, *loss, PERCEPTRON_VARIABLES, v, gradients);
}
