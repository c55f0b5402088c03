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

#endif
