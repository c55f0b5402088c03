/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extract.h - copies a part of a graph to a graph of its own.
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

/* Lets the part begin here: tensor, an index, becomes an input of that name.
 * Call it before copying what needs the tensor. */
int ipu__extract_input(struct ipu__extract *extract, int32_t tensor,
                       const char *name);

/* Copies a tensor with all that makes it, down to the beginning of the part.
 * Nodes before number late are copied only when the first node from there on
 * needs them. Returns the tensor's index in the new graph. */
int ipu__extract_tensor(struct ipu__extract *extract, int32_t tensor,
                        int32_t late);

#endif
