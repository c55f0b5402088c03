/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.h - a part of a graph as a graph of its own.
 */
#ifndef IPU_PIPELINE_EXTRACT_H
#define IPU_PIPELINE_EXTRACT_H

#include "graph/graph.h"

struct ipu__extract {
    const ipu_graph *from; /* borrowed */
    ipu_graph *to;         /* borrowed */
    int32_t *map;          /* owned, [from's tensors]: to's, or -1 */
    bool *wanted;          /* owned, [from's nodes] */
};

int ipu__extract_init(struct ipu__extract *extract, const ipu_graph *from,
                      ipu_graph *to);
void ipu__extract_fini(struct ipu__extract *extract);

/* The part begins here: tensor, an index, comes from outside, as an input of
 * that name. Before what needs it is copied. */
int ipu__extract_input(struct ipu__extract *extract, int32_t tensor,
                       const char *name);

/* Copy a tensor with all that makes it, down to where the part begins. Nodes
 * before number late are copied only when the first from there on needs them.
 * Returns its index in the new graph. */
int ipu__extract_tensor(struct ipu__extract *extract, int32_t tensor,
                        int32_t late);

#endif
