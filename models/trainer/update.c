/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/update.h"

/* Returns the factor min(1, clip / length) that shortens the gradients, all
 * together, to a length of at most clip. The quotient is infinite for a length
 * of 0. */
static ipu_tensor clip_factor(ipu_graph *graph, double clip, int count,
                              const ipu_tensor *gradients)
{
    ipu_tensor most = ipu_fill(graph, IPU_FLOAT32, 0, NULL, clip);
    ipu_tensor one = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 1);
    ipu_tensor sum = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0);

    for (int i = 0; i < count; i++)
        sum =
            ipu_add(graph, sum,
                    ipu_reduce_sum(graph, ipu_square(graph, gradients[i]), 1));
    return ipu_minimum(graph, one,
                       ipu_divide(graph, most, ipu_sqrt(graph, sum)));
}

static int update_variable(ipu_graph *graph,
                           const struct optimizer_settings *settings,
                           ipu_tensor variable, ipu_tensor gradient,
                           ipu_tensor rate, ipu_tensor step)
{
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    ipu_adam_options adam = {
        .size = sizeof adam, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7};

    if (ipu_tensor_info(graph, variable, NULL, NULL, NULL) > 1)
        adam.weight_decay = settings->weight_decay;
    switch (settings->optimizer) {
    case OPTIMIZER_SGD: return ipu_sgd(graph, variable, gradient, rate, NULL);
    case OPTIMIZER_MOMENTUM:
        return ipu_sgd(graph, variable, gradient, rate, &momentum);
    case OPTIMIZER_ADAMW:
        return ipu_adamw(graph, variable, gradient, rate, step, &adam);
    case OPTIMIZER_LAMB:
        return ipu_lamb(graph, variable, gradient, rate, step, &adam);
    default:
        adam.weight_decay = 0;
        return ipu_adam(graph, variable, gradient, rate, step, &adam);
    }
}

int update_build(ipu_graph *graph, const struct optimizer_settings *settings,
                 int count, const ipu_tensor *variables,
                 const ipu_tensor *gradients, ipu_tensor rate, ipu_tensor step)
{
    ipu_tensor factor = {-1};
    int status = IPU_OK;

    if (settings->clip > 0)
        factor = clip_factor(graph, settings->clip, count, gradients);
    for (int i = 0; i < count && status >= 0; i++) {
        ipu_tensor gradient = gradients[i];

        if (settings->clip > 0)
            gradient = ipu_multiply(graph, gradient, factor);
        status = update_variable(graph, settings, variables[i], gradient, rate,
                                 step);
    }
    return status;
}
