/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute.h - activations computed again in the backward pass.
 */
#ifndef IPU_TRAINING_RECOMPUTE_H
#define IPU_TRAINING_RECOMPUTE_H

#include "graph/graph.h"

/*
 * What derivatives (nodes with derived) read of the forward pass, they read of
 * copies from here on. Those from node first on are changed, of which the
 * inputs before them must not be. Nothing is forgotten if there are no
 * checkpoints and none would help.
 */
int ipu__recompute(ipu_graph *graph, int32_t first);

/* Nodes of the forward pass: what derivatives from first on depend on, and
 * what does not depend on a derivative: forward, [nodes] of falses. */
void ipu__find_forward(const ipu_graph *graph, int32_t first, bool *forward);

/* Choose checkpoints, to kept, [tensors]. IPU_ERR_MEMORY only. */
int ipu__choose_checkpoints(const ipu_graph *graph, int32_t first,
                            const bool *forward, bool *kept);

#endif
