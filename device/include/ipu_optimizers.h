/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_optimizers.h - optimisers, which update variables by their gradients.
 * ipu.h includes it; ipu_training.h has optimisers for larger batches and
 * models.
 */
#ifndef IPU_H
#include "ipu.h" /* ipu.h includes this file after those that it needs */
#elif !defined(IPU_OPTIMIZERS_H)
#define IPU_OPTIMIZERS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------- optimisers */

typedef struct ipu_sgd_options {
    uint32_t size;       /* sizeof(ipu_sgd_options) */
    int32_t nesterov;    /* 1: Nesterov's momentum */
    double momentum;     /* in [0, 1) */
    double weight_decay; /* weight_decay * variable is added to the gradient */
} ipu_sgd_options;

typedef struct ipu_adam_options {
    uint32_t size; /* sizeof(ipu_adam_options) */
    int32_t reserved;
    double beta1, beta2; /* 0.9, 0.999 */
    double epsilon;      /* 1e-8 */
    double weight_decay; /* 0 */
} ipu_adam_options;

typedef struct ipu_rms_options {
    uint32_t size;       /* sizeof(ipu_rms_options) */
    int32_t centered;    /* rmsprop, 1: the mean's square is taken off */
    double rho;          /* rmsprop 0.99, adadelta 0.9; adagrad has none */
    double momentum;     /* rmsprop alone: 0 */
    double epsilon;      /* rmsprop 1e-8, adagrad 1e-10, adadelta 1e-6 */
    double weight_decay; /* 0; rate * weight_decay * variable is taken off */
} ipu_rms_options;

typedef struct ipu_lars_options {
    uint32_t size; /* sizeof(ipu_lars_options) */
    int32_t reserved;
    double momentum;     /* 0.9 */
    double trust;        /* 0.001; 0: the ratio is 1 */
    double epsilon;      /* 1e-8 */
    double weight_decay; /* 0; weight_decay * variable is added to the gradient
                            and counts in the ratio */
} ipu_lars_options;

/*
 * Update the variable by its gradient in each run. rate is a float32 scalar, an
 * input or a constant, for variables of halves too; step is an int32 scalar, 0
 * in the first run (ipu_counter). The optimiser's state is kept in variables,
 * which begin at 0; their names are the variable's with "/momentum", "/m",
 * "/v" or "/d". No state has the rate in it. adam adds weight decay to the
 * gradient; adamw, lamb and lion add it to the update. options NULL stands for
 * the values above, without momentum in sgd. docs/OPTIMIZERS.md has all
 * formulas, and what other libraries do differently.
 *
 *     rmsprop    v = rho v + (1 - rho) g^2     u = g / (sqrt(v) + epsilon)
 *                centred: m = rho m + (1 - rho) g, and sqrt(v - m^2); with
 *                momentum: b = momentum b + u, and b instead of u (PyTorch's)
 *     adagrad    v = v + g^2                   u as above (PyTorch's)
 *     adadelta   v as of rmsprop; u = g sqrt(d + epsilon) / sqrt(v + epsilon),
 *                then d = rho d + (1 - rho) u^2 (Zeiler 2012)
 *     lion       u = sign(beta1 m + (1 - beta1) g), then
 *                m = beta2 m + (1 - beta2) g (Chen et al. 2023); epsilon is
 *                not used, and options NULL stands for betas 0.9 and 0.99
 *     lars       b = momentum b + ratio (g + decay w), with ratio =
 *                trust |w| / (|g| + decay |w| + epsilon), 1 if |w| or |g| is 0
 *                (You et al. 2017, with the rate outside of b)
 *
 * and then w = w - rate u, or b.
 */
int ipu_sgd(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
            ipu_tensor rate, const ipu_sgd_options *options);
int ipu_adam(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options);
int ipu_adamw(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step,
              const ipu_adam_options *options);
int ipu_lamb(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, ipu_tensor step, const ipu_adam_options *options);
int ipu_rmsprop(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
                ipu_tensor rate, const ipu_rms_options *options);
int ipu_adagrad(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
                ipu_tensor rate, const ipu_rms_options *options);
int ipu_adadelta(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
                 ipu_tensor rate, const ipu_rms_options *options);
int ipu_lion(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, const ipu_adam_options *options);
int ipu_lars(ipu_graph *graph, ipu_tensor variable, ipu_tensor gradient,
             ipu_tensor rate, const ipu_lars_options *options);

#ifdef __cplusplus
}
#endif

#endif
