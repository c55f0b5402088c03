/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.h - a graph that passes may change: a copy of the user's, which owns
 * its arrays. Names and data of constants are still the user's; the draft owns
 * the additions of the passes.
 */
#ifndef IPU_COMPILER_REWRITE_DRAFT_H
#define IPU_COMPILER_REWRITE_DRAFT_H

#include "graph/graph.h"
#include "ops/op.h"

struct ipu__draft {
    ipu_graph graph; /* arrays are owned */
    void **data; /* owned, each too: elements of tensors that became constants;
                    names of new tensors */
    int32_t ndata, data_capacity;
};

int ipu__draft_init(struct ipu__draft *draft, const ipu_graph *graph);
void ipu__draft_fini(struct ipu__draft *draft);

/* The passes over a draft. Each leaves nodes that are no longer needed;
 * scheduling drops them. */
int ipu__fold(struct ipu__draft *draft); /* computes values made of constants */
int ipu__simplify(struct ipu__draft *draft); /* drops ops without an effect */
int ipu__merge(struct ipu__draft *draft);    /* merges equal nodes */
/* Moves variables to streaming memory and adds nodes that load them, for the
 * executable's target. Sets the executable's spared_bytes. */
int ipu__offload(struct ipu__draft *draft, struct ipu_executable *executable);

/* Has the draft own memory. Returns it; or frees it and returns NULL if there
 * is no memory to note it in. */
void *ipu__draft_keep(struct ipu__draft *draft, void *memory);

/*
 * Replaces tensors where nodes and sinks use them: tensor i becomes by[i],
 * itself if it stays. Sinks and assignments keep their tensor if it would
 * become an input or a variable: an output of a variable shows what the
 * variable is assigned, an output of a copy what it was.
 */
void ipu__draft_replace(struct ipu__draft *draft, const int32_t *by);

/* Returns whether one tensor may take the place of another: both run in the
 * same region, and nothing changes the new one in place. */
bool ipu__may_replace(const ipu_graph *graph, int32_t tensor, int32_t by);

/* Returns the node that makes a tensor; NULL if none does. */
const struct ipu__node *ipu__maker(const ipu_graph *graph, int32_t tensor);

/* Fills call with a node's operands, without data. */
void ipu__node_call(const ipu_graph *graph, const struct ipu__node *node,
                    struct ipu__call *call);

#endif
