/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph, built twice from one forward pass: for training with the loss of
 * the batch, its gradients and their host calls, and for evaluation with the
 * loss and logits of every row, so that the host can leave out the blank rows
 * of a last batch. Both declare the same variables by the same names.
 */
#include "common/network.h"

#include "common/problem.h"
#include "common/random.h"

#include <math.h>

enum { HIDDEN = 64, FILTERS = 32, POOLED = 13 };
enum { FLAT = POOLED * POOLED * FILTERS };

enum { DENSE2_BIAS, DENSE2, DENSE1_BIAS, DENSE1, CONV1_BIAS, CONV1 };

#define NAMED(x) x, "gradient/" x
const struct network_variable network_variables[NETWORK_VARIABLES] = {
    [DENSE2_BIAS] = {NAMED("dense2/bias"), 1, {CLASSES}, CLASSES, 0, 0},
    [DENSE2] = {NAMED("dense2/kernel"),
                2,
                {HIDDEN, CLASSES},
                HIDDEN *CLASSES,
                HIDDEN,
                CLASSES},
    [DENSE1_BIAS] = {NAMED("dense1/bias"), 1, {HIDDEN}, HIDDEN, 0, 0},
    [DENSE1] =
        {NAMED("dense1/kernel"), 2, {FLAT, HIDDEN}, FLAT *HIDDEN, FLAT, HIDDEN},
    [CONV1_BIAS] = {NAMED("conv1/bias"), 1, {FILTERS}, FILTERS, 0, 0},
    [CONV1] = {NAMED("conv1/kernel"),
               4,
               {3, 3, 1, FILTERS},
               9 * FILTERS,
               9,
               9 * FILTERS},
};

int64_t network_parameters(void)
{
    int64_t sum = 0;

    for (int i = 0; i < NETWORK_VARIABLES; i++)
        sum += network_variables[i].count;
    return sum;
}

void network_initialize(uint64_t seed, float *const *values)
{
    for (int i = 0; i < NETWORK_VARIABLES; i++) {
        const struct network_variable *v = &network_variables[i];
        double fans = (double)(v->fan_in + v->fan_out);
        double bound = fans > 0 ? sqrt(6 / fans) : 0;
        struct random r;

        random_seed(&r, seed, (uint64_t)i);
        for (int64_t k = 0; k < v->count; k++)
            values[i][k] = (float)random_range(&r, -bound, bound);
    }
}

int network_device_problem(void)
{
    return problem_set("device: %s", ipu_last_error());
}

/* The forward pass: logits. */
static ipu_tensor build_forward(ipu_graph *graph, int batch_size,
                                ipu_tensor *variables, ipu_tensor *labels)
{
    const int64_t image[] = {batch_size, IMAGE_SIDE, IMAGE_SIDE, 1};
    const int64_t rows[] = {batch_size};
    const int64_t flat[] = {batch_size, FLAT};

    ipu_tensor x = ipu_input(graph, "images", IPU_FLOAT32, 4, image);
    *labels = ipu_input(graph, "labels", IPU_INT32, 1, rows);
    for (int i = 0; i < NETWORK_VARIABLES; i++)
        variables[i] =
            ipu_variable(graph, network_variables[i].name, IPU_FLOAT32,
                         network_variables[i].ndim, network_variables[i].shape);
    x = ipu_conv2d(graph, x, variables[CONV1], NULL);
    x = ipu_relu(graph, ipu_bias_add(graph, x, variables[CONV1_BIAS]));
    x = ipu_max_pool2d(graph, x, 2);
    x = ipu_reshape(graph, x, 2, flat);
    x = ipu_matmul(graph, x, variables[DENSE1]);
    x = ipu_relu(graph, ipu_bias_add(graph, x, variables[DENSE1_BIAS]));
    x = ipu_matmul(graph, x, variables[DENSE2]);
    return ipu_bias_add(graph, x, variables[DENSE2_BIAS]);
}

static int build_training(ipu_graph *graph, int batch_size, ipu_host_fn fn,
                          void *const *contexts)
{
    ipu_tensor variables[NETWORK_VARIABLES];
    ipu_tensor gradients[NETWORK_VARIABLES];
    ipu_tensor labels;
    ipu_tensor logits = build_forward(graph, batch_size, variables, &labels);
    ipu_tensor loss =
        ipu_reduce_sum(graph, ipu_softmax_cross_entropy(graph, logits, labels),
                       1.0 / batch_size);

    int status = ipu_output(graph, "loss", loss);
    if (status >= 0)
        status =
            ipu_gradients(graph, loss, NETWORK_VARIABLES, variables, gradients);
    for (int i = 0; i < NETWORK_VARIABLES && status >= 0; i++)
        status = ipu_host_call(graph, network_variables[i].stream, gradients[i],
                               fn, contexts[i]);
    return status;
}

static int build_evaluation(ipu_graph *graph, int batch_size)
{
    ipu_tensor variables[NETWORK_VARIABLES];
    ipu_tensor labels;
    ipu_tensor logits = build_forward(graph, batch_size, variables, &labels);

    int status = ipu_output(graph, "logits", logits);
    if (status >= 0)
        status = ipu_output(graph, "losses",
                            ipu_softmax_cross_entropy(graph, logits, labels));
    return status;
}

int network_compile_training(int batch_size, ipu_host_fn fn,
                             void *const *contexts, ipu_executable **executable)
{
    ipu_graph *graph = NULL;

    int status = ipu_graph_new(&graph);
    if (status >= 0)
        status = build_training(graph, batch_size, fn, contexts);
    if (status >= 0)
        status = ipu_compile(graph, NULL, executable);
    if (status < 0)
        network_device_problem();
    ipu_graph_free(graph);
    return status < 0 ? PROBLEM : 0;
}

int network_compile_evaluation(int batch_size, ipu_executable **executable)
{
    ipu_graph *graph = NULL;

    int status = ipu_graph_new(&graph);
    if (status >= 0)
        status = build_evaluation(graph, batch_size);
    if (status >= 0)
        status = ipu_compile(graph, NULL, executable);
    if (status < 0)
        network_device_problem();
    ipu_graph_free(graph);
    return status < 0 ? PROBLEM : 0;
}
