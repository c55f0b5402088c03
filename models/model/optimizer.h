/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.h - the optimisers of the training programs, by name. */
#ifndef MODELS_OPTIMIZER_H
#define MODELS_OPTIMIZER_H

enum optimizer {
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM, /* 0.9 */
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LAMB
};

/* The names, by optimizer; ends with NULL. */
extern const char *const optimizer_names[];

struct optimizer_settings {
    enum optimizer optimizer;
    double weight_decay; /* used by adamw and lamb for variables of two
                            dimensions or more: not for biases and scales */
    double clip;         /* longest norm of the gradients; 0: any */
    int accumulate;      /* steps to an update */
};

#endif
