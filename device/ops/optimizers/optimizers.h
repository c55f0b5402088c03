/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizers.h - the updates of a variable, or of a part of one, by each
 * optimiser.
 */
#ifndef IPU_OPS_OPTIMIZERS_H
#define IPU_OPS_OPTIMIZERS_H

#include "graph/graph.h"

struct ipu__update {
    ipu_tensor variable; /* the optimiser's state is named after it */
    ipu_tensor value;  /* the tensor to update: the variable, or a part of it */
    ipu_tensor result; /* what becomes of value */
    bool spared;       /* weights do not decay, and LARS has the ratio 1 */
    /* A float32 scalar in place of the options' momentum, or beta1; borrowed
     * during the call; NULL: none. */
    const ipu_tensor *momentum;
    /* A scalar of each part, added up over all of them; NULL: there is one.
     * name: of it. */
    ipu_tensor (*sum)(ipu_graph *graph, void *context, const char *name,
                      ipu_tensor x);
    void *context;
};

/*
 * Builds the update by an optimiser whose size and kind are checked. The state
 * has the shape of value, and result is not assigned. step: an int32 scalar;
 * only adam, adamw and lamb look at it.
 */
int ipu__optimize(ipu_graph *graph, const ipu_optimizer *optimizer,
                  struct ipu__update *part, ipu_tensor gradient,
                  ipu_tensor step);

/* Checks that an optimiser that is given a momentum keeps one. */
int ipu__optimizer_check_momentum(const ipu_optimizer *optimizer);

/* Returns whether the optimiser looks at the step. */
bool ipu__optimizer_counts(ipu_optimizer_kind kind);

/* Returns whether an optimiser of a whole model spares the variable: biases,
 * and scales of norms, have fewer than two dimensions. */
bool ipu__optimizer_spares(const ipu_graph *graph, ipu_tensor variable);

#endif
