/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors that the program maps to tiles itself, in place of the compiler. */
#include "base/error.h"
#include "graph/graph.h"
#include "graph/op.h"

enum { MOST_TILES = 1 << 20 }; /* tiles of any chip */

static int map_tensor(ipu_graph *g, ipu_tensor tensor, int32_t first,
                      int32_t tiles)
{
    int32_t index = ipu__index(g, tensor), node;
    struct ipu__tensor *t;

    if (index < 0)
        return ipu__fail(index, "map: %s", ipu_last_error());
    t = &g->tensors[index];
    node = t->node;
    if (first < 0 || tiles < 1 || first > MOST_TILES || tiles > MOST_TILES)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "map: %s to %d tiles from %d on; 1 or more, from 0 or "
                         "more",
                         t->name, (int)tiles, (int)first);
    if (node >= 0 && g->nodes[node].op->alias)
        return ipu__fail(
            IPU_ERR_ARGUMENT,
            "map: %s lies where %s does, of which it is another view: map that",
            t->name,
            g->tensors[g->nodes[node].inputs[ipu__in_place(g->nodes[node].op)]]
                .name);
    if (t->map.tiles > 0)
        return ipu__fail(IPU_ERR_STATE,
                         "map: %s is mapped already, to %d tiles from %d on",
                         t->name, (int)t->map.tiles, (int)t->map.first);
    t->map = (struct ipu__mapping){first, tiles};
    return IPU_OK;
}

int ipu_map(ipu_graph *graph, ipu_tensor tensor, int32_t first_tile,
            int32_t tiles)
{
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "map: the graph is NULL");
    if (graph->status < 0)
        return ipu__graph_status(graph);
    status = map_tensor(graph, tensor, first_tile, tiles);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}
