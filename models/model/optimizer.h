/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.h - the optimisers of the training programs, by name. */
#ifndef MODELS_OPTIMIZER_H
#define MODELS_OPTIMIZER_H

#include <stdbool.h>

enum optimizer {
    OPTIMIZER_SGD,
    OPTIMIZER_MOMENTUM, /* 0.9 */
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LAMB,
    OPTIMIZER_NESTEROV, /* 0.9 */
    OPTIMIZER_RMSPROP,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_ADADELTA,
    OPTIMIZER_LION,
    OPTIMIZER_LARS, /* 0.9 */
    OPTIMIZERS
};

/* The names, by optimizer, which are libhvd's, too; ends with NULL. */
extern const char *const optimizer_names[];

/* Returns whether it has a momentum, or beta1, that a schedule may change. */
bool optimizer_has_momentum(enum optimizer optimizer);

/* Returns the weight decay of programs that are told of none. */
double optimizer_usual_decay(enum optimizer optimizer);

struct optimizer_settings {
    enum optimizer optimizer;
    double weight_decay; /* of variables of two dimensions or more: not of
                            biases and scales */
    double clip;         /* longest norm of the gradients; 0: any */
    int accumulate;      /* steps to an update */
    bool guarded; /* an update by gradients that are not finite is skipped */
    bool scaled;  /* the gradients are those of the loss times the input
                     "scale", divided by it */
    bool cycled;  /* the momentum, or beta1, is the input "momentum"; only of
                     optimisers that have one */
};

#endif
