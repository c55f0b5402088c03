/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_optimizers.h - what becomes of variables when their gradients are known.
 * ipu.h includes it; ipu_training.h has what larger batches and models need.
 */
#ifndef IPU_H
#include "ipu.h" /* which comes back here once it has said what this needs */
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
    double weight_decay; /* times the variable, added to the gradient */
} ipu_sgd_options;

typedef struct ipu_adam_options {
    uint32_t size; /* sizeof(ipu_adam_options) */
    int32_t reserved;
    double beta1, beta2; /* 0.9, 0.999 */
    double epsilon;      /* 1e-8 */
    double weight_decay; /* 0 */
} ipu_adam_options;

/*
 * Assign to the variable what the optimiser makes of it and of the gradient,
 * with each run. rate: a float32 scalar, an input or a constant, of halves too;
 * step: an int32 scalar, 0 in the first run (ipu_counter). What they keep are
 * variables: the name with "/momentum", or with "/m" and "/v". Weight decay is
 * added to the gradient by adam, and beside the moments by adamw and lamb.
 * options NULL: as above, without momentum.
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
