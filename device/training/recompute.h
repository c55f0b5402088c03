/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute.h - computes activations again in the backward pass.
 */
#ifndef IPU_TRAINING_RECOMPUTE_H
#define IPU_TRAINING_RECOMPUTE_H

#include "graph/graph.h"

/*
 * Makes derivatives (nodes with derived) read copies of the forward tensors
 * that they use. It changes the derivatives from node first on; inputs that
 * come before first must not be derivatives. Nothing is forgotten if there are
 * no checkpoints and none would help.
 */
int ipu__recompute(ipu_graph *graph, int32_t first);

/* Chooses checkpoints; writes kept, [tensors]. Fails only with
 * IPU_ERR_MEMORY. */
int ipu__choose_checkpoints(const ipu_graph *graph, int32_t first,
                            const bool *forward, bool *kept);

#endif
