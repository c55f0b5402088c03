/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - the pass that merges nodes that compute the same.
 *
 * Nodes with the same op, attributes and inputs become the first of them. This
 * includes random ops, since their output is a function of seed, step and
 * place. Large fills are not merged: made when it is needed, each is alive for
 * a moment; a merged one would occupy the device from the first use to the
 * last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "compiler/rewrite/draft.h"

enum { LARGE_BYTES = 4096 };

static uint64_t hash_of(const struct ipu__node *node)
{
    uint64_t hash = ipu__hash_bytes(0xcbf29ce484222325u, node->op->name,
                                    strlen(node->op->name));

    hash = ipu__hash_bytes(hash, node->inputs,
                           (size_t)node->op->ninputs * sizeof *node->inputs);
    return ipu__attributes_hash(hash, &node->attributes);
}

static bool is_same_node(const ipu_graph *g, const struct ipu__node *a,
                         const struct ipu__node *b)
{
    return a->op == b->op && a->region == b->region &&
           memcmp(a->inputs, b->inputs,
                  (size_t)a->op->ninputs * sizeof *a->inputs) == 0 &&
           ipu__attributes_equal(&a->attributes, &b->attributes) &&
           ipu__shape_equal(&g->tensors[a->output].shape,
                            &g->tensors[b->output].shape);
}

static bool may_merge(const ipu_graph *g, const struct ipu__node *node)
{
    /* A recomputed activation is not merged with the original, which would have
     * to be kept until then. */
    if (node->op->effects || node->effect || node->loop >= 0 ||
        node->after >= 0 || node->again || g->tensors[node->output].node < 0 ||
        g->tensors[node->output].map.tiles)
        return false;
    return node->op != &ipu__fill ||
           ipu__shape_bytes(&g->tensors[node->output].shape) <= LARGE_BYTES;
}

/* Merges equal nodes. slots: [size], nodes by hash, -1: none; size is a power
 * of 2. */
static void merge_nodes(struct ipu__draft *draft, int32_t *by, int32_t *slots,
                        size_t size)
{
    ipu_graph *g = &draft->graph;

    for (int32_t n = 0; n < g->nnodes; n++) {
        struct ipu__node *node = &g->nodes[n];
        size_t at;

        for (int i = 0; i < node->op->ninputs; i++)
            node->inputs[i] = by[node->inputs[i]];
        if (!may_merge(g, node))
            continue;
        at = hash_of(node) & (size - 1);
        while (slots[at] >= 0 && !is_same_node(g, &g->nodes[slots[at]], node))
            at = (at + 1) & (size - 1);
        if (slots[at] < 0)
            slots[at] = n;
        else
            by[node->output] = g->nodes[slots[at]].output;
    }
    ipu__draft_replace(draft, by);
}

int ipu__merge(struct ipu__draft *draft)
{
    size_t ntensors = (size_t)draft->graph.ntensors + 1, size = 16;
    int32_t *by = calloc(ntensors, sizeof *by), *slots;

    while (size < 2 * (size_t)draft->graph.nnodes)
        size *= 2;
    slots = malloc(size * sizeof *slots);
    if (!by || !slots) {
        free(by);
        free(slots);
        return ipu__fail_memory(size * sizeof *slots);
    }
    for (size_t t = 0; t < ntensors; t++)
        by[t] = (int32_t)t;
    memset(slots, -1, size * sizeof *slots);
    merge_nodes(draft, by, slots, size);
    free(by);
    free(slots);
    return IPU_OK;
}
