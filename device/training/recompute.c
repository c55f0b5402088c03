/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute.c - computes activations again instead of keeping them.
 *
 * The backward pass reads results of the forward pass, so they stay in memory
 * until then. With recomputation, the results between two checkpoints do not
 * stay: the backward pass reads copies of them. The copies are computed from
 * the checkpoint before them, each once, right before the first node that reads
 * it.
 *
 *     forward          C0 - a1 - a2 - C1 - b1 - b2 - loss
 *     backward                             b1 b2 are still there
 *                              a1' a2' from C0, then the derivatives of
 *                              a2 and a1
 *
 * These tensors are kept:
 *
 *     - inputs, variables and constants
 *     - checkpoints
 *     - outputs of loops
 *     - results of nodes that have another effect, such as a sum over replicas
 *     - views of kept tensors
 *     - tensors after the last checkpoint, where the backward pass begins
 *
 * So the forward pass is computed twice, except for its last part. The tensors
 * alive at the same time are the checkpoints and one part between two of them.
 *
 * A copy runs the same op on the same elements and gives the same bits; a
 * random op draws by seed and step and draws the same numbers. A copy waits
 * (ipu__node.after) for the derivative of which its reader is made.
 * Otherwise it would be ready at the end of the forward pass, and the scheduler
 * might compute it then.
 *
 * The pass changes only the nodes that ipu_gradients has made, and not the
 * program's own.
 */
#include "training/recompute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/op.h"

struct rewriter {
    ipu_graph *graph;
    int32_t ntensors;        /* tensors of the old graph */
    bool *forgotten;         /* [tensors]: derivatives read copies */
    int32_t *copies;         /* [tensors]; -1: none so far */
    struct ipu__node *nodes; /* owned: nodes in their new order */
    int32_t nnodes, capacity;
    int32_t *pending; /* [nodes]: nodes to copy */
    bool *marked;     /* [nodes]: in pending */
};

/* ---------------------------------------------------------- forward nodes */

static void mark_inputs(const ipu_graph *g, const struct ipu__node *node,
                        bool *nodes)
{
    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t maker = g->tensors[node->inputs[i]].node;

        if (maker >= 0)
            nodes[maker] = true;
    }
}

static bool any_input(const ipu_graph *g, const struct ipu__node *node,
                      const bool *nodes)
{
    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t maker = g->tensors[node->inputs[i]].node;

        if (maker >= 0 && nodes[maker])
            return true;
    }
    return false;
}

/* Finds the nodes of the forward pass: derivatives from first on depend on
 * them, and they do not depend on a derivative. forward: [nodes], all false. */
static void find_forward(const ipu_graph *g, int32_t first, bool *forward)
{
    for (int32_t n = g->nnodes - 1; n >= 0; n--)
        if (forward[n] || (n >= first && g->nodes[n].derived >= 0))
            mark_inputs(g, &g->nodes[n], forward);
    /* Finds the nodes that are neither a derivative nor made of one: "not
     * forward" is passed on from inputs to outputs. */
    for (int32_t n = 0; n < g->nnodes; n++)
        forward[n] = !forward[n];
    for (int32_t n = 0; n < g->nnodes; n++) {
        const struct ipu__node *node = &g->nodes[n];

        if (node->derived >= 0 || node->again || node->region >= 0)
            forward[n] = true;
    }
    for (int32_t n = 0; n < g->nnodes; n++)
        if (!forward[n] && any_input(g, &g->nodes[n], forward))
            forward[n] = true;
    for (int32_t n = 0; n < g->nnodes; n++)
        forward[n] = !forward[n];
}

/* ------------------------------------------------------ forgotten tensors */

static bool has_checkpoints(const ipu_graph *g, const bool *forward)
{
    for (int32_t n = 0; n < g->nnodes; n++)
        if (forward[n] && g->tensors[g->nodes[n].output].checkpoint)
            return true;
    return false;
}

/* Finds the tensors to forget. forgotten holds the checkpoints at first, then
 * the tensors before a checkpoint that are none, except views of kept memory.
 */
static void find_forgotten(const ipu_graph *g, const bool *forward,
                           const bool *checkpoints, bool *forgotten)
{
    for (int32_t n = g->nnodes - 1; n >= 0; n--) {
        const struct ipu__node *node = &g->nodes[n];

        if (!forward[n] ||
            !(forgotten[node->output] || checkpoints[node->output]))
            continue;
        for (int i = 0; i < node->op->ninputs; i++)
            forgotten[node->inputs[i]] = true;
    }
    for (int32_t t = 0; t < g->ntensors; t++) {
        int32_t n = g->tensors[t].node;

        if (n < 0 || !forward[n] || checkpoints[t] || g->nodes[n].loop >= 0 ||
            g->nodes[n].op->effects)
            forgotten[t] = false;
    }
    for (int32_t n = 0; n < g->nnodes; n++) {
        const struct ipu__node *node = &g->nodes[n];

        if (node->op->alias &&
            !forgotten[node->inputs[ipu__in_place(node->op)]])
            forgotten[node->output] = false;
    }
}

static int choose_forgotten(struct rewriter *r, int32_t first)
{
    const ipu_graph *g = r->graph;
    bool *forward = calloc((size_t)g->nnodes + 1, sizeof *forward);
    bool *kept = calloc((size_t)g->ntensors + 1, sizeof *kept);
    int status = IPU_OK;

    if (!forward || !kept) {
        free(forward);
        free(kept);
        return ipu__fail_memory((size_t)g->ntensors);
    }
    find_forward(g, first, forward);
    if (has_checkpoints(g, forward))
        for (int32_t t = 0; t < g->ntensors; t++)
            kept[t] = g->tensors[t].checkpoint;
    else
        status = ipu__choose_checkpoints(g, first, forward, kept);
    if (status >= 0)
        find_forgotten(g, forward, kept, r->forgotten);
    free(forward);
    free(kept);
    return status;
}

/* ------------------------------------------------------------------ copying */

static int push(struct rewriter *r, const struct ipu__node *node)
{
    IPU_TRY(ipu__reserve((void **)&r->nodes, r->nnodes, &r->capacity,
                         sizeof *r->nodes));
    r->nodes[r->nnodes++] = *node;
    return IPU_OK;
}

/* Returns where a tensor is read from now on. */
static int32_t place_of(const struct rewriter *r, int32_t tensor)
{
    if (tensor < r->ntensors && r->forgotten[tensor])
        return r->copies[tensor];
    return tensor;
}

/* Returns "again relu:3", owned by the caller. */
static char *name_of_copy(const char *name)
{
    static const char again[] = "again ";
    size_t length = strlen(name) + sizeof again;
    char *copy = malloc(length);

    if (copy)
        snprintf(copy, length, "%s%s", again, name);
    return copy;
}

static int copy_node(struct rewriter *r, int32_t n, int32_t after)
{
    ipu_graph *g = r->graph;
    struct ipu__node node = g->nodes[n];
    const struct ipu__tensor of = g->tensors[node.output];
    const struct ipu__source asked = g->source;

    g->source = of.source;
    node.output =
        ipu__tensor_add(g, name_of_copy(of.name), &of.shape, IPU__RESULT);
    g->source = asked;
    IPU_TRY(node.output);
    g->tensors[node.output].shard = of.shard;
    for (int i = 0; i < node.op->ninputs; i++)
        node.inputs[i] = place_of(r, node.inputs[i]);
    node.after = after;
    node.beside = g->nodes[n].output;
    node.again = true;
    r->copies[g->nodes[n].output] = node.output;
    return push(r, &node);
}

static int ascending(const void *a, const void *b)
{
    int32_t first = *(const int32_t *)a, second = *(const int32_t *)b;

    return first < second ? -1 : first > second;
}

static void mark_pending(struct rewriter *r, const struct ipu__node *node,
                         int32_t *count)
{
    for (int i = 0; i < node->op->ninputs; i++) {
        int32_t t = node->inputs[i];
        int32_t n = t < r->ntensors ? r->graph->tensors[t].node : -1;

        if (n < 0 || !r->forgotten[t] || r->copies[t] >= 0 || r->marked[n])
            continue;
        r->marked[n] = true;
        r->pending[(*count)++] = n;
    }
}

/* Copies the tensors that the node reads, and all that they are made of. */
static int copy_inputs(struct rewriter *r, const struct ipu__node *node)
{
    int32_t count = 0;

    mark_pending(r, node, &count);
    for (int32_t i = 0; i < count; i++)
        mark_pending(r, &r->graph->nodes[r->pending[i]], &count);
    qsort(r->pending, (size_t)count, sizeof *r->pending, ascending);
    for (int32_t i = 0; i < count; i++)
        IPU_TRY(copy_node(r, r->pending[i], node->derived));
    return IPU_OK;
}

static int rewrite_node(struct rewriter *r, int32_t n)
{
    struct ipu__node node = r->graph->nodes[n];

    if (node.derived >= 0 && !node.again) {
        IPU_TRY(copy_inputs(r, &node));
        for (int i = 0; i < node.op->ninputs; i++) {
            int32_t place = place_of(r, node.inputs[i]);

            /* A node that reads only copies is ready with them. */
            if (place != node.inputs[i])
                node.after = node.derived;
            node.inputs[i] = place;
        }
    }
    return push(r, &node);
}

/* Puts the nodes into their new order, and makes the tensors agree with it. */
static int rewrite(struct rewriter *r, int32_t first)
{
    ipu_graph *g = r->graph;

    for (int32_t n = 0; n < g->nnodes; n++)
        IPU_TRY(n < first ? push(r, &g->nodes[n]) : rewrite_node(r, n));
    free(g->nodes);
    g->nodes = r->nodes;
    g->nnodes = r->nnodes;
    g->node_capacity = r->capacity;
    r->nodes = NULL;
    ipu__number_nodes(g);
    return IPU_OK;
}

int ipu__recompute(ipu_graph *g, int32_t first)
{
    size_t ntensors = (size_t)g->ntensors + 1, nnodes = (size_t)g->nnodes + 1;
    struct rewriter r = {
        .graph = g,
        .ntensors = g->ntensors,
        .forgotten = calloc(ntensors, sizeof *r.forgotten),
        .copies = malloc(ntensors * sizeof *r.copies),
        .pending = calloc(nnodes, sizeof *r.pending),
        .marked = calloc(nnodes, sizeof *r.marked),
    };
    int status;

    if (r.forgotten && r.copies && r.pending && r.marked) {
        memset(r.copies, -1, ntensors * sizeof *r.copies);
        status = choose_forgotten(&r, first);
        if (status >= 0)
            status = rewrite(&r, first);
    } else {
        status = ipu__fail_memory(ntensors * sizeof *r.copies);
    }
    free(r.forgotten);
    free(r.copies);
    free(r.nodes);
    free(r.pending);
    free(r.marked);
    return status;
}

/* ------------------------------------------------------------- the builders */

int ipu_allow_recompute(ipu_graph *graph, int32_t allow)
{
    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "recompute: the graph is NULL");
    IPU_TRY(ipu__graph_status(graph));
    graph->recompute = allow != 0;
    return IPU_OK;
}

ipu_tensor ipu_recomputation_checkpoint(ipu_graph *graph, ipu_tensor tensor)
{
    int32_t index;

    if (!graph) {
        ipu__fail(IPU_ERR_ARGUMENT, "checkpoint: the graph is NULL");
        return (ipu_tensor){-1};
    }
    if (graph->status < 0)
        return (ipu_tensor){-1};
    index = ipu__index(graph, tensor);
    if (index < 0)
        return ipu__invalid(
            graph, ipu__fail(index, "checkpoint: %s", ipu_last_error()));
    graph->tensors[index].checkpoint = true;
    return tensor;
}
