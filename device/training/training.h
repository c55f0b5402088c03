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
 * Parts of differentiation that loops use, too. ipu__mark_dependents marks what
 * depends on a needed tensor through the first nnodes nodes (dependents.c).
 * ipu__propagate computes, from known derivatives of
 * tensors of the first nnodes nodes, those of the others that are needed.
 * ipu__accumulate_of adds a part (invalid: none) to the derivative of a tensor,
 * placed like the tensor.
 */
int ipu__mark_dependents(const ipu_graph *graph, int32_t nnodes, bool *needed);
int ipu__propagate(ipu_graph *graph, int32_t nnodes, const bool *needed,
                   ipu_tensor *derivatives);
void ipu__accumulate_of(ipu_graph *graph, int32_t tensor, ipu_tensor *total,
                        ipu_tensor part);

/*
 * Turns the derivatives with respect to the outputs of the loop that is node n
 * into those of what it begins with and of what its body uses, by another loop
 * (loop_gradients.c). Nodes may be added before node n.
 */
int ipu__loop_gradient(ipu_graph *graph, int32_t n, const bool *needed,
                       ipu_tensor *derivatives);

/*
 * Derivatives do not leave the body in which they are asked for (leaving.c).
 * The first marks the imports that the outer graph has computed from one of
 * wrt: [count]. The second fails if the loss depends on them. Tensors that
 * derivatives themselves have imported have no derivative.
 */
int ipu__mark_imports(const ipu_graph *body, int32_t count, const int32_t *wrt,
                      bool *needed);
int ipu__refuse_imports(ipu_graph *body, int32_t count, const int32_t *wrt,
                        int32_t nderivatives, const ipu_tensor *derivatives);

#endif
