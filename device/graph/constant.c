/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors whose elements the program gives when it builds the graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/graph.h"

static int add_constant(ipu_graph *g, const struct ipu__shape *shape,
                        const void *data)
{
    size_t bytes = ipu__shape_bytes(shape);
    char name[32];
    void *copy;
    int index;

    if (!data && bytes > 0)
        return ipu__fail(IPU_ERR_ARGUMENT, "constant: the data are NULL");
    copy = malloc(bytes ? bytes : 1);
    if (!copy)
        return ipu__fail_memory(bytes);
    if (bytes > 0)
        memcpy(copy, data, bytes);
    snprintf(name, sizeof name, "constant:%d", (int)g->ntensors);
    index = ipu__tensor_add(g, strdup(name), shape, IPU__CONSTANT);
    if (index < 0)
        free(copy);
    else
        g->tensors[index].data = copy;
    return index;
}

ipu_tensor ipu_constant(ipu_graph *graph, ipu_dtype dtype, int32_t ndim,
                        const int64_t *extents, const void *data)
{
    struct ipu__shape shape;
    int status;

    if (!graph) {
        ipu__fail(IPU_ERR_ARGUMENT, "constant: the graph is NULL");
        return (ipu_tensor){-1};
    }
    if (graph->status < 0)
        return (ipu_tensor){-1};
    status = ipu__shape_make("constant", dtype, ndim, extents, &shape);
    if (status == IPU_OK)
        status = add_constant(graph, &shape, data);
    return status < 0 ? ipu__invalid(graph, status)
                      : ipu__handle(graph, status);
}
