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

/* The optimisers as the device has them, with the numbers that libhvd gives
 * them. */
static const ipu_optimizer_kind kinds[] = {
    [OPTIMIZER_SGD] = IPU_OPTIMIZER_SGD,
    [OPTIMIZER_MOMENTUM] = IPU_OPTIMIZER_SGD,
    [OPTIMIZER_NESTEROV] = IPU_OPTIMIZER_SGD,
    [OPTIMIZER_ADAM] = IPU_OPTIMIZER_ADAM,
    [OPTIMIZER_ADAMW] = IPU_OPTIMIZER_ADAMW,
    [OPTIMIZER_LAMB] = IPU_OPTIMIZER_LAMB,
    [OPTIMIZER_LION] = IPU_OPTIMIZER_LION,
    [OPTIMIZER_RMSPROP] = IPU_OPTIMIZER_RMSPROP,
    [OPTIMIZER_ADAGRAD] = IPU_OPTIMIZER_ADAGRAD,
    [OPTIMIZER_ADADELTA] = IPU_OPTIMIZER_ADADELTA,
    [OPTIMIZER_LARS] = IPU_OPTIMIZER_LARS};

int update_build(ipu_graph *graph, const struct optimizer_settings *settings,
                 int count, const ipu_tensor *variables,
                 const ipu_tensor *gradients,
                 const struct update_inputs *inputs)
{
    const enum optimizer name = settings->optimizer;
    const double decay = settings->weight_decay;
    const ipu_sgd_options sgd = {.size = sizeof sgd,
                                 .nesterov = name == OPTIMIZER_NESTEROV,
                                 .momentum = name == OPTIMIZER_SGD ? 0 : 0.9,
                                 .weight_decay = decay};
    const ipu_adam_options adam = {.size = sizeof adam,
                                   .beta1 = 0.9,
                                   .beta2 =
                                       name == OPTIMIZER_LION ? 0.99 : 0.999,
                                   .epsilon = 1e-7,
                                   .weight_decay = decay};
    const ipu_rms_options rms = {.size = sizeof rms,
                                 .rho = name == OPTIMIZER_RMSPROP ? 0.99 : 0.9,
                                 .epsilon = name == OPTIMIZER_RMSPROP   ? 1e-8
                                            : name == OPTIMIZER_ADAGRAD ? 1e-10
                                                                        : 1e-6,
                                 .weight_decay = decay};
    const ipu_lars_options lars = {.size = sizeof lars,
                                   .momentum = 0.9,
                                   .trust = 0.001,
                                   .epsilon = 1e-8,
                                   .weight_decay = decay};
    const ipu_optimizer optimizer = {
        .size = sizeof optimizer,
        .kind = kinds[name],
        .rate = inputs->rate,
        .sgd = &sgd,
        .adam = &adam,
        .rms = &rms,
        .lars = &lars,
        .momentum = settings->cycled ? &inputs->momentum : NULL};
    ipu_tensor factor = {-1};
    int status = IPU_OK;

    if (settings->clip > 0)
        factor = clip_factor(graph, settings->clip, count, gradients);
    for (int i = 0; i < count && status >= 0; i++) {
        ipu_tensor gradient = gradients[i];

        if (settings->clip > 0)
            gradient = ipu_multiply(graph, gradient, factor);
        status = ipu_optimize_variable(graph, &optimizer, variables[i],
                                       gradient, inputs->step);
    }
    return status;
}
