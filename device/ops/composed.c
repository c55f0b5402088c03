/* SPDX-License-Identifier: Apache-2.0 */
/* What other ops make up, and so has all their derivatives. */
#include "ops/op.h"

#include "graph/error.h"

ipu_tensor ipu_mean_squared_error(ipu_graph *graph, ipu_tensor x,
                                  ipu_tensor target)
{
    ipu_tensor squares = ipu_square(graph, ipu_subtract(graph, x, target));
    int32_t index;
    int64_t count;

    if (squares.id < 0)
        return squares;
    index = ipu__index(graph, squares);
    count = ipu__shape_count(&graph->tensors[index].shape);
    return ipu_reduce_sum(graph, squares, count ? 1 / (double)count : 0);
}

ipu_tensor ipu_counter(ipu_graph *graph, const char *name)
{
    ipu_tensor count = ipu_variable(graph, name, IPU_INT32, 0, NULL);
    ipu_tensor one = ipu_fill(graph, IPU_INT32, 0, NULL, 1);

    if (ipu_assign(graph, count, ipu_add(graph, count, one)) < 0)
        return (ipu_tensor){-1};
    return count;
}
