/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.h - copies a part of a graph to a new graph.
 */
#ifndef IPU_PIPELINE_EXTRACT_H
#define IPU_PIPELINE_EXTRACT_H

#include "graph/graph.h"

struct ipu__extract {
    const ipu_graph *from; /* borrowed */
    ipu_graph *to;         /* borrowed */
    int32_t *map;          /* owned, [from's tensors]: index in to, or -1 */
    bool *wanted;          /* owned, [from's nodes] */
};

int ipu__extract_init(struct ipu__extract *extract, const ipu_graph *from,
                      ipu_graph *to);
void ipu__extract_fini(struct ipu__extract *extract);

/* Makes tensor, an index, an input of that name: the part begins here. Call it
 * before copying nodes that need the tensor. */
int ipu__extract_input(struct ipu__extract *extract, int32_t tensor,
                       const char *name);

/* Copies a tensor with everything that makes it, down to the beginning of the
 * part. Nodes before number late are copied only when the first node from there
 * on needs them. Returns the tensor's index in the new graph. */
int ipu__extract_tensor(struct ipu__extract *extract, int32_t tensor,
                        int32_t late);

#endif
