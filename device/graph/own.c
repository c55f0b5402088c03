/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own.c - variables of which each replica has its own value.
 *
 * Replicas run the same program, and most variables are the same in all of
 * them, since gradients are averaged. Some are not: sums of gradients that wait
 * for the next update, the part of an optimiser's state that a replica keeps,
 * statistics of the data that it has seen. The builder of such a variable marks
 * it, so that ipu_replicas_check_equal passes over it.
 */
#include "base/error.h"
#include "graph/graph.h"

int32_t ipu__outermost(ipu_graph **graph, int32_t tensor)
{
    ipu_graph *g = *graph;

    tensor = ipu__origin(g, tensor);
    for (int32_t i = 0; g->parent && i < g->nimports; i++)
        if (g->imports[i].inner == tensor) {
            tensor = ipu__origin(g->parent, g->imports[i].outer);
            g = g->parent;
            i = -1;
        }
    *graph = g;
    return tensor;
}

void ipu__variable_own(ipu_graph *graph, ipu_tensor variable, enum ipu__own why)
{
    int32_t index = graph->status < 0 ? -1 : ipu__index(graph, variable);

    if (index < 0)
        return;
    index = ipu__outermost(&graph, index);
    if (graph->tensors[index].kind == IPU__VARIABLE)
        graph->tensors[index].own = (int32_t)why;
}

int ipu_replica_own(ipu_graph *graph, ipu_tensor variable)
{
    ipu_graph *of = graph;
    int32_t index;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "replica's own: the graph is NULL");
    IPU_TRY(ipu__graph_status(graph));
    index = ipu__index(graph, variable);
    if (index < 0)
        return ipu__graph_fail(
            graph, ipu__fail(index, "replica's own: %s", ipu_last_error()));
    index = ipu__outermost(&of, index);
    if (of->tensors[index].kind != IPU__VARIABLE)
        return ipu__graph_fail(graph,
                               ipu__fail(IPU_ERR_ARGUMENT,
                                         "replica's own: %s is not a variable",
                                         of->tensors[index].name));
    of->tensors[index].own = IPU__OWN_CHOICE;
    return IPU_OK;
}
