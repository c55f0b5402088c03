/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.h - the optimisers of the training programs, on the device: what
 * the graph of a step ends with.
 */
#ifndef MODELS_OPTIMIZER_H
#define MODELS_OPTIMIZER_H

#include <ipu.h>

enum optimizer {
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM, /* 0.9 */
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LAMB
};

/* "sgd, momentum, adam, adamw, lamb" */
extern const char optimizer_names[];
const char *optimizer_name(enum optimizer optimizer);
/* The inverse; -1 if there is none. */
int optimizer_from_name(const char *name);

struct optimizer_settings {
    enum optimizer optimizer;
    double weight_decay; /* of adamw and lamb, on what has two dimensions or
                            more: not on biases and scales */
    double clip;         /* the gradients' norm is cut to it; 0: never */
    int accumulate;      /* steps whose gradients an update is made of */
};

/*
 * Assign to each variable what the optimiser makes of it and of its gradient.
 * rate: a float32 scalar; step: an int32 scalar, 0 in the first run. A status
 * of the device.
 */
int optimizer_build(ipu_graph *graph, const struct optimizer_settings *settings,
                    int count, const ipu_tensor *variables,
                    const ipu_tensor *gradients, ipu_tensor rate,
                    ipu_tensor step);

#endif
