/* SPDX-License-Identifier: Apache-2.0 */
/* A second graph like the first, to try on it what would help. Not of graphs
 * with loops or queues, whose bodies and queues are shared with others. */
#include <stdlib.h>
#include <string.h>

#include "graph/error.h"
#include "graph/graph.h"

static void *copy_array(const void *array, int32_t count, size_t size)
{
    void *copy = calloc((size_t)count + 1, size);

    if (copy && count > 0)
        memcpy(copy, array, (size_t)count * size);
    return copy;
}

/* Texts and data of its own; false: there is no memory for them. */
static bool own_texts(ipu_graph *g)
{
    bool complete = true;

    for (int32_t i = 0; i < g->ntensors; i++) {
        struct ipu__tensor *t = &g->tensors[i];
        size_t bytes = ipu__shape_bytes(&t->shape);

        t->name = strdup(t->name);
        if (t->data) {
            const void *data = t->data;

            t->data = malloc(bytes ? bytes : 1);
            if (t->data)
                memcpy(t->data, data, bytes);
            complete = complete && t->data;
        }
        complete = complete && t->name;
    }
    for (int32_t i = 0; i < g->nsinks; i++) {
        g->sinks[i].name = strdup(g->sinks[i].name);
        complete = complete && g->sinks[i].name;
    }
    return complete;
}

static bool is_alone(const ipu_graph *g)
{
    return !g->parent && !g->open && g->nloops == 0 && g->nimports == 0 &&
           g->nfeeds == 0 && g->nenqueues == 0;
}

int ipu__graph_copy(const ipu_graph *graph, ipu_graph **copy)
{
    ipu_graph *g;
    bool complete;

    if (!is_alone(graph))
        return ipu__fail(IPU_ERR_STATE,
                         "graphs with loops or queues are not copied");
    g = calloc(1, sizeof *g);
    if (!g)
        return ipu__fail_memory(sizeof *g);
    *g = *graph;
    /* Room that was reserved for what there is none of. */
    g->loops = NULL;
    g->imports = NULL;
    g->feeds = NULL;
    g->enqueues = NULL;
    g->loop_capacity = g->import_capacity = 0;
    g->feed_capacity = g->enqueue_capacity = 0;
    g->message = NULL;
    g->files = NULL; /* those of the first, which tensors borrow */
    g->nfiles = 0;
    g->tensors = copy_array(graph->tensors, g->ntensors, sizeof *g->tensors);
    g->nodes = copy_array(graph->nodes, g->nnodes, sizeof *g->nodes);
    g->sinks = copy_array(graph->sinks, g->nsinks, sizeof *g->sinks);
    g->assigns = copy_array(graph->assigns, g->nassigns, sizeof *g->assigns);
    g->regions = copy_array(graph->regions, g->nregions, sizeof *g->regions);
    g->tensor_capacity = g->ntensors + 1;
    g->node_capacity = g->nnodes + 1;
    g->sink_capacity = g->nsinks + 1;
    g->assign_capacity = g->nassigns + 1;
    g->region_capacity = g->nregions + 1;
    complete = g->tensors && g->nodes && g->sinks && g->assigns && g->regions;
    if (!complete) /* texts are still those of the first */
        g->ntensors = g->nsinks = 0;
    else
        complete = own_texts(g);
    if (!complete) {
        ipu_graph_free(g);
        return ipu__fail_memory((size_t)graph->ntensors * sizeof *g->tensors);
    }
    *copy = g;
    return IPU_OK;
}
