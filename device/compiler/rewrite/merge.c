/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge.c - what is computed twice is computed once: nodes of the same op,
 * attributes and inputs become the first of them. Random ops too, since what
 * they make is a function of seed, step and place.
 *
 * Large fills stay apart: made when it is needed, each is alive for a moment;
 * as one they would lie on the device from the first use to the last.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "compiler/rewrite/draft.h"
#include "file/members.h"

enum { LARGE_BYTES = 4096 };

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* Members of attributes, without what lies between them. */
static uint64_t mix_attributes(uint64_t hash, const struct ipu__attributes *a)
{
    const struct ipu__layout *layout = &ipu__attributes_layout;

    for (int32_t i = 0; i < layout->nmembers; i++)
        hash = mix(hash, (const char *)a + layout->members[i].offset,
                   layout->members[i].bytes);
    return hash;
}

static bool same_but(const struct ipu__attributes *a,
                     const struct ipu__attributes *b, size_t but)
{
    const struct ipu__layout *layout = &ipu__attributes_layout;

    for (int32_t i = 0; i < layout->nmembers; i++) {
        const struct ipu__layout_member *m = &layout->members[i];

        if (m->offset != but &&
            memcmp((const char *)a + m->offset, (const char *)b + m->offset,
                   m->bytes) != 0)
            return false;
    }
    return true;
}

static bool same_attributes(const struct ipu__attributes *a,
                            const struct ipu__attributes *b)
{
    return same_but(a, b, sizeof *a);
}

bool ipu__attributes_alike(const struct ipu__attributes *a,
                           const struct ipu__attributes *b)
{
    return same_but(a, b, offsetof(struct ipu__attributes, seed)) &&
           a->fn == b->fn && a->context == b->context;
}

static uint64_t hash_of(const struct ipu__node *node)
{
    uint64_t hash =
        mix(0xcbf29ce484222325u, node->op->name, strlen(node->op->name));

    hash = mix(hash, node->inputs,
               (size_t)node->op->ninputs * sizeof *node->inputs);
    return mix_attributes(hash, &node->attributes);
}

static bool same(const ipu_graph *g, const struct ipu__node *a,
                 const struct ipu__node *b)
{
    return a->op == b->op && a->region == b->region &&
           memcmp(a->inputs, b->inputs,
                  (size_t)a->op->ninputs * sizeof *a->inputs) == 0 &&
           same_attributes(&a->attributes, &b->attributes) &&
           ipu__shape_equal(&g->tensors[a->output].shape,
                            &g->tensors[b->output].shape);
}

static bool may_merge(const ipu_graph *g, const struct ipu__node *node)
{
    /* What is computed again, is so that it need not be kept. */
    if (node->op->effects || node->effect || node->loop || node->after ||
        node->again || g->tensors[node->output].node < 0 ||
        g->tensors[node->output].map.tiles)
        return false;
    return node->op != &ipu__fill ||
           ipu__shape_bytes(&g->tensors[node->output].shape) <= LARGE_BYTES;
}

/* slots: [size], nodes by hash, -1: none; size is a power of 2. */
static void merge(struct ipu__draft *draft, int32_t *by, int32_t *slots,
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
        while (slots[at] >= 0 && !same(g, &g->nodes[slots[at]], node))
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
    merge(draft, by, slots, size);
    free(by);
    free(slots);
    return IPU_OK;
}
