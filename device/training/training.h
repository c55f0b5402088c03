/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.h - what training adds to a graph: derivatives, update regions,
 * optimisers over all variables of a model. The door of this room.
 */
#ifndef IPU_TRAINING_TRAINING_H
#define IPU_TRAINING_TRAINING_H

#include "graph/graph.h"

/*
 * Gradients of what comes after the graph: seeds are the derivatives of
 * something with respect to the tensors of (several of one tensor are added).
 * gradients[i] is that of wrt[i], an index; invalid where none of them depends
 * on it.
 */
int ipu__gradients_from(ipu_graph *graph, int32_t nseeds, const ipu_tensor *of,
                        const ipu_tensor *seeds, int32_t count,
                        const int32_t *wrt, ipu_tensor *gradients);

/*
 * The region of that count, made if there is none: its number + 1, or a
 * failure, which stays in the graph.
 */
int32_t ipu__region_of(ipu_graph *graph, int32_t count);

/* A region that runs if condition, a tensor, is not 0, and if the region
 * within (+ 1; 0: none) does; offloading as that. Its number + 1, or a failure,
 * which stays in the graph. */
int32_t ipu__region_if(ipu_graph *graph, int32_t within, ipu_tensor condition);

/* What every optimiser is given, and what some are. */
int ipu__check_optimizer(const ipu_graph *graph, const ipu_optimizer *optimizer,
                         int32_t count, const ipu_tensor *variables,
                         const ipu_tensor *gradients);
int ipu__check_update_options(const ipu_update_options *options);

/* ipu_update_begin, or _if, as the options have it. */
int ipu__update_begin(ipu_graph *graph, int32_t mini_batches,
                      const ipu_update_options *options);

/* The variables that are updated, where the options want them. */
int ipu__offload_weights(ipu_graph *graph, int32_t count,
                         const ipu_tensor *variables,
                         const ipu_update_options *options);

/*
 * Derivatives do not pass loops (loop_gradients.c). Mark what a loop makes of
 * what is needed; and, in a body, the imports that the graph around has
 * computed from one of wrt: [count]. Then refuse, if the loss depends on them;
 * what was imported by derivatives themselves has none.
 */
void ipu__mark_loop(const ipu_graph *graph, const struct ipu__node *node,
                    bool *needed);
int ipu__mark_imports(const ipu_graph *body, int32_t count, const int32_t *wrt,
                      bool *needed);
int ipu__refuse_loop(ipu_graph *graph, const struct ipu__node *node,
                     const bool *needed, const ipu_tensor *derivatives);
int ipu__refuse_imports(ipu_graph *body, int32_t count, const int32_t *wrt,
                        int32_t nderivatives, const ipu_tensor *derivatives);

#endif
