/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training.h - the door of this room. Training adds to a graph: derivatives,
 * update regions, and optimisers over all variables of a model.
 */
#ifndef IPU_TRAINING_TRAINING_H
#define IPU_TRAINING_TRAINING_H

#include "graph/graph.h"

/*
 * Adds the gradients of a graph whose later part is elsewhere: seeds are the
 * derivatives with respect to the tensors of (several of one tensor are added).
 * gradients[i] is set to the index of the gradient of wrt[i], or to an invalid
 * one if no tensor of the list depends on it.
 */
int ipu__gradients_from(ipu_graph *graph, int32_t nseeds, const ipu_tensor *of,
                        const ipu_tensor *seeds, int32_t count,
                        const int32_t *wrt, ipu_tensor *gradients);

/*
 * Returns the index of the region with that count, and makes it if there is
 * none; or a failure, which stays in the graph.
 */
int32_t ipu__region_of(ipu_graph *graph, int32_t count);

/* Check the arguments that every optimiser has, and the options that some
 * have. */
int ipu__check_optimizer(const ipu_graph *graph, const ipu_optimizer *optimizer,
                         int32_t count, const ipu_tensor *variables,
                         const ipu_tensor *gradients);
int ipu__check_update_options(const ipu_update_options *options);

/* Calls ipu_update_begin or ipu_update_begin_if, depending on the options. */
int ipu__update_begin(ipu_graph *graph, int32_t mini_batches,
                      const ipu_update_options *options);

/* Offloads the variables that are updated, if the options request it. */
int ipu__offload_weights(ipu_graph *graph, int32_t count,
                         const ipu_tensor *variables,
                         const ipu_update_options *options);

/*
 * Derivatives do not pass loops (loop_gradients.c). The mark functions mark the
 * outputs of a loop that depend on needed tensors and, in a body, the imports
 * that the outer graph has computed from one of wrt: [count]. The refuse
 * functions fail if the loss depends on them. Tensors that derivatives
 * themselves have imported have no derivative.
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
