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
    /* A scalar of each part, added up over all of them; NULL: there is one.
     * name: of it. */
    ipu_tensor (*sum)(ipu_graph *graph, void *context, const char *name,
                      ipu_tensor x);
    void *context;
};

/* These do the same as ipu_sgd and its like, but the state has the shape of
 * value, and result is not assigned. */
int ipu__sgd(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
             ipu_tensor rate, const ipu_sgd_options *options);
int ipu__adam(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step,
              const ipu_adam_options *options);
int ipu__adamw(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
               ipu_tensor rate, ipu_tensor step,
               const ipu_adam_options *options);
int ipu__lamb(ipu_graph *graph, struct ipu__update *part, ipu_tensor gradient,
              ipu_tensor rate, ipu_tensor step,
              const ipu_adam_options *options);

#endif
