/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoints.c - chooses checkpoints for a program that names none.
 *
 * The forward pass is a row of nodes, some of which make what the backward pass
 * reads. The row is cut into parts of about equal bytes of these, each at the
 * nearby place where the fewest bytes cross: a network of layers has such
 * places between layers. A tensor that crosses a cut is a checkpoint. For each
 * number of parts, the bytes alive at once are estimated as those of all
 * checkpoints and of the largest part; the number with the least bytes is
 * taken.
 *
 * Parts of equal size are not the optimum, but a few cuts more or fewer change
 * little near the best number, which is about the square root of the number of
 * layers (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016).
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"
#include "training/recompute.h"

enum { MOST_PARTS = 64 };

struct planner {
    const ipu_graph *graph;
    int32_t *nodes; /* owned: the forward pass, in order */
    int32_t count;
    int64_t *weights;  /* owned, [count]: bytes that the backward pass reads */
    int64_t *crossing; /* owned, [count + 1]: bytes that cross after node i */
    int32_t *last;     /* owned, [tensors]: place of the last reader */
    bool *cuts;        /* owned, [count]: a cut follows node i */
    int64_t all;       /* sum of the weights */
};

static int64_t bytes_of(const ipu_graph *g, int32_t tensor)
{
    return (int64_t)ipu__shape_bytes(&g->tensors[tensor].shape);
}

/* Returns the tensor that this one is a view of. */
static int32_t root_of(const ipu_graph *g, int32_t tensor)
{
    while (g->tensors[tensor].node >= 0) {
        const struct ipu__node *node = &g->nodes[g->tensors[tensor].node];

        if (!node->op->alias)
            break;
        tensor = node->inputs[ipu__in_place(node->op)];
    }
    return tensor;
}

/* Finds what the backward pass reads: read, [tensors] of falses. */
static void find_read(const ipu_graph *g, int32_t first, bool *read)
{
    for (int32_t n = first; n < g->nnodes; n++)
        if (g->nodes[n].derived >= 0)
            for (int i = 0; i < g->nodes[n].op->ninputs; i++)
                read[root_of(g, g->nodes[n].inputs[i])] = true;
}

static void look_at_uses(struct planner *p, const bool *forward,
                         const bool *read)
{
    const ipu_graph *g = p->graph;

    for (int32_t n = 0; n < g->nnodes; n++)
        if (forward[n])
            p->nodes[p->count++] = n;
    for (int32_t i = 0; i < p->count; i++) {
        const struct ipu__node *node = &g->nodes[p->nodes[i]];

        for (int k = 0; k < node->op->ninputs; k++)
            p->last[root_of(g, node->inputs[k])] = i;
        if (read[node->output])
            p->weights[i] = bytes_of(g, node->output);
        p->all += p->weights[i];
    }
    /* crossing holds differences first, then their sums. */
    for (int32_t i = 0; i < p->count; i++) {
        int32_t output = g->nodes[p->nodes[i]].output;

        if (p->last[output] <= i)
            continue;
        p->crossing[i] += bytes_of(g, output);
        p->crossing[p->last[output]] -= bytes_of(g, output);
    }
    for (int32_t i = 1; i < p->count; i++)
        p->crossing[i] += p->crossing[i - 1];
}

/* Cuts the row into that many parts. */
static void cut_parts(struct planner *p, int32_t parts)
{
    int64_t passed = 0;
    int32_t part = 1, best = -1;

    memset(p->cuts, 0, (size_t)p->count * sizeof *p->cuts);
    for (int32_t i = 0; i + 1 < p->count && part < parts; i++) {
        passed += p->weights[i];
        if (2 * parts * passed < (2 * part - 1) * p->all)
            continue; /* nearer to the previous cut */
        if (best < 0 || p->crossing[i] < p->crossing[best])
            best = i;
        if (2 * parts * (passed + p->weights[i + 1]) < (2 * part + 1) * p->all)
            continue;
        p->cuts[best] = true;
        best = -1;
        part++;
    }
}

/* Returns true if there is a cut between the tensor's maker and its last
 * reader. */
static bool crosses(const struct planner *p, int32_t i)
{
    int32_t last = p->last[p->graph->nodes[p->nodes[i]].output];

    for (int32_t k = i; k < last; k++)
        if (p->cuts[k])
            return true;
    return false;
}

/* Estimates the bytes alive at once. */
static int64_t estimate_bytes(const struct planner *p)
{
    int64_t checkpoints = 0, part = 0, largest = 0;

    for (int32_t i = 0; i < p->count; i++) {
        if (crosses(p, i))
            checkpoints +=
                bytes_of(p->graph, p->graph->nodes[p->nodes[i]].output);
        else
            part += p->weights[i];
        if (part > largest)
            largest = part;
        if (p->cuts[i])
            part = 0;
    }
    return checkpoints + largest;
}

static void choose_cuts(struct planner *p, bool *kept)
{
    int64_t least = p->all;
    int32_t best = 1;

    for (int32_t parts = 2; parts <= MOST_PARTS && parts <= p->count; parts++) {
        int64_t bytes;

        cut_parts(p, parts);
        bytes = estimate_bytes(p);
        if (bytes < least) {
            least = bytes;
            best = parts;
        }
    }
    cut_parts(p, best);
    for (int32_t i = 0; i < p->count; i++)
        if (crosses(p, i))
            kept[p->graph->nodes[p->nodes[i]].output] = true;
}

int ipu__choose_checkpoints(const ipu_graph *g, int32_t first,
                            const bool *forward, bool *kept)
{
    size_t n = (size_t)g->nnodes + 1, ntensors = (size_t)g->ntensors + 1;
    bool *read = calloc(ntensors, sizeof *read);
    struct planner p = {
        .graph = g,
        .nodes = calloc(n, sizeof *p.nodes),
        .weights = calloc(n, sizeof *p.weights),
        .crossing = calloc(n, sizeof *p.crossing),
        .last = malloc(ntensors * sizeof *p.last),
        .cuts = calloc(n, sizeof *p.cuts),
    };
    int status = IPU_OK;

    if (read && p.nodes && p.weights && p.crossing && p.last && p.cuts) {
        memset(p.last, -1, ntensors * sizeof *p.last);
        find_read(g, first, read);
        look_at_uses(&p, forward, read);
        choose_cuts(&p, kept);
    } else {
        status = ipu__fail_memory(n * sizeof *p.nodes);
    }
    free(read);
    free(p.nodes);
    free(p.weights);
    free(p.crossing);
    free(p.last);
    free(p.cuts);
    return status;
}
