/* SPDX-License-Identifier: Apache-2.0 */
/* finite.c - looks for gradients that are not finite. Only ops of graphs are
 * added; nothing runs here. */
#include <math.h>

#include "base/error.h"
#include "graph/graph.h"
#include "ops/op.h"

static int check_tensors(const ipu_graph *g, int32_t count,
                         const ipu_tensor *tensors)
{
    IPU_TRY(ipu__graph_status(g));
    if (count < 0 || (count > 0 && !tensors))
        return ipu__fail(IPU_ERR_ARGUMENT, "find nonfinite: %s",
                         count < 0 ? "the count is less than 0"
                                   : "the array of tensors is NULL");
    for (int32_t i = 0; i < count; i++) {
        int32_t index = ipu__index(g, tensors[i]);

        if (index < 0)
            return ipu__fail(index, "find nonfinite: tensor %d: %s", (int)i,
                             ipu_last_error());
        if (g->tensors[index].shape.dtype == IPU_INT32)
            return ipu__fail(IPU_ERR_SHAPE,
                             "find nonfinite: tensor %d, %s, is int32: floats "
                             "are wanted",
                             (int)i, g->tensors[index].name);
    }
    return IPU_OK;
}

ipu_tensor ipu_find_nonfinite(ipu_graph *graph, int32_t count,
                              const ipu_tensor *tensors)
{
    const struct ipu__attributes attributes = {.scale = HUGE_VAL};
    ipu_tensor found, none;
    int status;

    if (!graph) {
        ipu__fail(IPU_ERR_ARGUMENT, "find nonfinite: the graph is NULL");
        return (ipu_tensor){-1};
    }
    status = check_tensors(graph, count, tensors);
    if (status < 0)
        return ipu__invalid(graph, status);
    none = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0);
    found = ipu_fill(graph, IPU_INT32, 0, NULL, -1);
    for (int32_t i = count - 1; i >= 0; i--)
        found = ipu_select(graph,
                           ipu_greater(graph,
                                       ipu__add(graph, &ipu__overflows,
                                                &tensors[i], &attributes),
                                       none),
                           ipu_fill(graph, IPU_INT32, 0, NULL, i), found);
    return found;
}
