/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draft.c - the copy of a graph that the first passes change.
 *
 * A draft shares the user's names and data of constants, so it must not outlive
 * the graph. compile.c makes one for each compilation; schedule.c reads it
 * last.
 */
#include "compiler/rewrite/draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void *copy_of(const void *array, int32_t count, size_t size)
{
    void *copy = calloc((size_t)count + 1, size);

    if (copy && count > 0)
        memcpy(copy, array, (size_t)count * size);
    return copy;
}

int ipu__draft_init(struct ipu__draft *draft, const ipu_graph *graph)
{
    ipu_graph *g = &draft->graph;

    *draft = (struct ipu__draft){.graph = *graph};
    g->tensors = copy_of(graph->tensors, graph->ntensors, sizeof *g->tensors);
    g->nodes = copy_of(graph->nodes, graph->nnodes, sizeof *g->nodes);
    g->sinks = copy_of(graph->sinks, graph->nsinks, sizeof *g->sinks);
    g->assigns = copy_of(graph->assigns, graph->nassigns, sizeof *g->assigns);
    if (g->tensors && g->nodes && g->sinks && g->assigns)
        return IPU_OK;
    ipu__draft_fini(draft);
    return ipu__fail_memory((size_t)graph->nnodes * sizeof *g->nodes);
}

void ipu__draft_fini(struct ipu__draft *draft)
{
    for (int32_t i = 0; i < draft->ndata; i++)
        free(draft->data[i]);
    free(draft->data);
    free(draft->graph.tensors);
    free(draft->graph.nodes);
    free(draft->graph.sinks);
    free(draft->graph.assigns);
    *draft = (struct ipu__draft){.ndata = 0};
}

void *ipu__draft_keep(struct ipu__draft *draft, void *memory)
{
    if (!memory)
        return NULL;
    if (ipu__reserve((void **)&draft->data, draft->ndata, &draft->data_capacity,
                     sizeof *draft->data) < 0) {
        free(memory);
        return NULL;
    }
    draft->data[draft->ndata++] = memory;
    return memory;
}

const struct ipu__node *ipu__maker(const ipu_graph *graph, int32_t tensor)
{
    int32_t n = graph->tensors[tensor].node;

    return n < 0 ? NULL : &graph->nodes[n];
}

void ipu__node_call(const ipu_graph *graph, const struct ipu__node *node,
                    struct ipu__call *call)
{
    *call = (struct ipu__call){.op = node->op, .attributes = &node->attributes};
    for (int i = 0; i < node->op->ninputs; i++) {
        call->inputs[i].name = graph->tensors[node->inputs[i]].name;
        call->inputs[i].shape = graph->tensors[node->inputs[i]].shape;
    }
    call->output.name = graph->tensors[node->output].name;
    call->output.shape = graph->tensors[node->output].shape;
    ipu__show_wide(call); /* they fitted when the graph was built */
}

/* Returns the tensor that a tensor is a view of. */
static int32_t root_of(const ipu_graph *g, int32_t tensor)
{
    const struct ipu__node *node;

    while ((node = ipu__maker(g, tensor)) && node->op->alias)
        tensor = node->inputs[ipu__in_place(node->op)];
    return tensor;
}

/* Returns whether a tensor is, or is a view of, what the host or an assignment
 * changes. */
static bool is_outside(const ipu_graph *g, int32_t tensor)
{
    tensor = root_of(g, tensor);
    return g->tensors[tensor].kind == IPU__VARIABLE ||
           g->tensors[tensor].kind == IPU__INPUT;
}

/* A tensor that a loop or a store changes cannot replace another: its contents
 * have changed. */
bool ipu__may_replace(const ipu_graph *g, int32_t tensor, int32_t by)
{
    if (g->tensors[root_of(g, by)].renewed >= 0)
        return false;
    return ipu__tensor_region(g, tensor) == ipu__tensor_region(g, by) &&
           g->tensors[tensor].map.tiles == 0;
}

static void replace_sink(const ipu_graph *g, int32_t *tensor, const int32_t *by)
{
    if (!is_outside(g, by[*tensor]))
        *tensor = by[*tensor];
}

void ipu__draft_replace(struct ipu__draft *draft, const int32_t *by)
{
    ipu_graph *g = &draft->graph;

    for (int32_t n = 0; n < g->nnodes; n++) {
        struct ipu__node *node = &g->nodes[n];

        for (int i = 0; i < node->op->ninputs; i++)
            node->inputs[i] = by[node->inputs[i]];
        if (node->after >= 0)
            node->after = by[node->after];
    }
    for (int32_t i = 0; i < g->nsinks; i++)
        replace_sink(g, &g->sinks[i].tensor, by);
    for (int32_t i = 0; i < g->nassigns; i++)
        replace_sink(g, &g->assigns[i].value, by);
}
