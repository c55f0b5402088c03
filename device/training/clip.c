/* SPDX-License-Identifier: Apache-2.0 */
/* clip.c - keeps gradients within bounds: each element, or the length of all
 * gradients together. Only ops of graphs are added; nothing runs here. */
#include <math.h>

#include "base/error.h"
#include "graph/graph.h"

static int check_gradients(const ipu_graph *g, const char *what, int32_t count,
                           const ipu_tensor *gradients, double limit)
{
    if (!g)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: the graph is NULL", what);
    IPU_TRY(ipu__graph_status(g));
    if (count < 0 || (count > 0 && !gradients))
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: %s", what,
                         count < 0 ? "the count is less than 0"
                                   : "the array of gradients is NULL");
    if (!(limit > 0 && limit < HUGE_VAL))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: the limit is %g, it must be more than 0", what,
                         limit);
    for (int32_t i = 0; i < count; i++) {
        int32_t index = ipu__index(g, gradients[i]);

        if (index < 0)
            return ipu__fail(index, "%s: gradient %d: %s", what, (int)i,
                             ipu_last_error());
        if (g->tensors[index].shape.dtype == IPU_INT32)
            return ipu__fail(IPU_ERR_SHAPE,
                             "%s: gradient %d, %s, is int32: floats are wanted",
                             what, (int)i, g->tensors[index].name);
    }
    return IPU_OK;
}

static ipu_dtype dtype_of(const ipu_graph *g, ipu_tensor x)
{
    return g->tensors[ipu__index(g, x)].shape.dtype;
}

int ipu_clip_by_value(ipu_graph *graph, int32_t count, ipu_tensor *gradients,
                      double limit)
{
    int status =
        check_gradients(graph, "clip by value", count, gradients, limit);

    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    for (int32_t i = 0; i < count && graph->status >= 0; i++) {
        ipu_dtype dtype = dtype_of(graph, gradients[i]);
        ipu_tensor most = ipu_fill(graph, dtype, 0, NULL, limit);
        ipu_tensor least = ipu_fill(graph, dtype, 0, NULL, -limit);

        gradients[i] =
            ipu_minimum(graph, ipu_maximum(graph, gradients[i], least), most);
    }
    return ipu__graph_status(graph);
}

static ipu_tensor widened(ipu_graph *g, ipu_tensor x)
{
    return ipu__is_half(dtype_of(g, x)) ? ipu_cast(g, x, IPU_FLOAT32) : x;
}

/* Returns the square root of the sum of all squares, in float32. */
static ipu_tensor length_of(ipu_graph *g, int32_t count,
                            const ipu_tensor *gradients)
{
    ipu_tensor sum = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0);

    for (int32_t i = 0; i < count && g->status >= 0; i++)
        sum = ipu_add(
            g, sum,
            ipu_reduce_sum(g, ipu_square(g, widened(g, gradients[i])), 1));
    return ipu_sqrt(g, sum);
}

static ipu_tensor times(ipu_graph *g, ipu_tensor x, ipu_tensor factor)
{
    ipu_dtype dtype = dtype_of(g, x);

    if (!ipu__is_half(dtype))
        return ipu_multiply(g, x, factor);
    return ipu_cast(g, ipu_multiply(g, widened(g, x), factor), dtype);
}

int ipu_clip_by_global_norm(ipu_graph *graph, int32_t count,
                            ipu_tensor *gradients, double limit,
                            ipu_tensor *norm)
{
    int status =
        check_gradients(graph, "clip by norm", count, gradients, limit);
    ipu_tensor length, most, factor;

    if (status < 0)
        return graph ? ipu__graph_fail(graph, status) : status;
    length = length_of(graph, count, gradients);
    most = ipu_fill(graph, IPU_FLOAT32, 0, NULL, limit);
    /* The factor is 1 while the length is within most; NaN if the length is
     * NaN. */
    factor = ipu_divide(graph, most, ipu_maximum(graph, length, most));
    for (int32_t i = 0; i < count && graph->status >= 0; i++)
        gradients[i] = times(graph, gradients[i], factor);
    if (norm)
        *norm = length;
    return ipu__graph_status(graph);
}
