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

/*
 * Update the variable by its gradient in each run. rate is a float32 scalar, an
 * input or a constant, for variables of halves too; step is an int32 scalar, 0
 * in the first run (ipu_counter). The optimiser's state is kept in variables,
 * whose names are the variable's with "/momentum", or with "/m" and "/v". adam
 * adds weight decay to the gradient; adamw and lamb add it to the update.
 * options NULL stands for the values above, without momentum.
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

#ifdef __cplusplus
}
#endif

#endif
