/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.h - a graph that passes may change: a copy of the user's, whose
 * arrays are its own. Names and data of constants are still the user's; what
 * passes add is the draft's.
 */
#ifndef IPU_COMPILER_REWRITE_DRAFT_H
#define IPU_COMPILER_REWRITE_DRAFT_H

#include "graph/graph.h"
#include "ops/op.h"

struct ipu__draft {
    ipu_graph graph; /* arrays are owned */
    void **data;     /* owned, each too: elements of tensors that became
                        constants, names of new ones */
    int32_t ndata, data_capacity;
};

int ipu__draft_init(struct ipu__draft *draft, const ipu_graph *graph);
void ipu__draft_fini(struct ipu__draft *draft);

/* The passes. Each leaves nodes that nobody needs any more: scheduling drops
 * them. */
int ipu__fold(struct ipu__draft *draft);     /* constants */
int ipu__simplify(struct ipu__draft *draft); /* algebra */
int ipu__merge(struct ipu__draft *draft);    /* what is computed twice */
/* Variables beside the chip, and nodes that bring them to it, for the
 * executable's target; its spared_bytes. */
int ipu__offload(struct ipu__draft *draft, struct ipu_executable *executable);

/* Memory that the draft frees with itself; NULL, and freed, if there is none
 * left to note it in. */
void *ipu__draft_keep(struct ipu__draft *draft, void *memory);

/*
 * Replace tensors where nodes and sinks use them: by[i] is what tensor i
 * becomes, itself if it stays. Sinks and assignments keep a tensor of their
 * own where it would become an input or a variable: an output of a variable
 * shows what it is assigned, one of a copy what it was.
 */
void ipu__draft_replace(struct ipu__draft *draft, const int32_t *by);

/* Returns whether one tensor may take the place of another: what depends on a
 * node runs when it does. */
bool ipu__may_replace(const ipu_graph *graph, int32_t tensor, int32_t by);

/* The node that makes a tensor; NULL if none does. */
const struct ipu__node *ipu__maker(const ipu_graph *graph, int32_t tensor);

/* Fill call with a node's operands, without data. */
void ipu__node_call(const ipu_graph *graph, const struct ipu__node *node,
                    struct ipu__call *call);

#endif
