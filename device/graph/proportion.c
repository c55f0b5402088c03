/* SPDX-License-Identifier: Apache-2.0 */
/* The share of a tile's memory that products may take for temporary data, as
 * the program sets it for those that it builds. A derivative has the share of
 * its product. */
#include "base/error.h"
#include "graph/graph.h"
#include "target/target.h"

int ipu_available_memory_proportion(ipu_graph *graph, double proportion)
{
    int status;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "available memory proportion: the graph is NULL");
    IPU_TRY(ipu__graph_status(graph));
    status = ipu__check_proportion("available memory proportion", proportion);
    if (status < 0)
        return ipu__graph_fail(graph, status);
    graph->proportion = proportion;
    return IPU_OK;
}
