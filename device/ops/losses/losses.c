/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that other ops make up, and so they have all derivatives. */
#include "base/error.h"
#include "ops/op.h"

/* The mean of all elements, 0 of none, as a scalar. */
static ipu_tensor mean_of_all(ipu_graph *graph, ipu_tensor x)
{
    int64_t count;

    if (x.id < 0)
        return x;
    count = ipu__shape_count(&graph->tensors[ipu__index(graph, x)].shape);
    return ipu_reduce_sum(graph, x, count ? 1 / (double)count : 0);
}

ipu_tensor ipu_l2_loss(ipu_graph *graph, ipu_tensor x)
{
    return ipu_reduce_sum(graph, ipu_square(graph, x), 0.5);
}

ipu_tensor ipu_mean_squared_error(ipu_graph *graph, ipu_tensor x,
                                  ipu_tensor target)
{
    return mean_of_all(graph,
                       ipu_square(graph, ipu_subtract(graph, x, target)));
}

ipu_tensor ipu_mean_absolute_error(ipu_graph *graph, ipu_tensor x,
                                   ipu_tensor target)
{
    return mean_of_all(graph, ipu_abs(graph, ipu_subtract(graph, x, target)));
}

/* c (|d| - c / 2), where c is |d| up to delta. */
ipu_tensor ipu_huber_loss(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                          double delta)
{
    ipu_tensor size = ipu_abs(graph, ipu_subtract(graph, x, target)), near;

    if (size.id >= 0 && !(delta > 0))
        return ipu__invalid(graph, ipu__fail(IPU_ERR_ARGUMENT,
                                             "huber_loss: delta is %g, it must "
                                             "be more than 0",
                                             delta));
    near = ipu_clip(graph, size, 0, delta);
    size = ipu_subtract(graph, size, ipu_scale(graph, near, 0.5, 0));
    return mean_of_all(graph, ipu_multiply(graph, near, size));
}

/* log of at least epsilon. */
static ipu_tensor bounded_log(ipu_graph *graph, ipu_tensor x, double epsilon)
{
    return ipu_log(graph, ipu_clip(graph, x, epsilon, 1));
}

ipu_tensor ipu_binary_cross_entropy(ipu_graph *graph, ipu_tensor probabilities,
                                    ipu_tensor targets, double epsilon)
{
    ipu_tensor others = ipu_scale(graph, probabilities, -1, 1), yes, no;

    if (others.id >= 0 && !(epsilon > 0 && epsilon < 1))
        return ipu__invalid(
            graph, ipu__fail(IPU_ERR_ARGUMENT,
                             "binary_cross_entropy: epsilon is %g, it must be "
                             "between 0 and 1",
                             epsilon));
    yes = ipu_multiply(graph, targets,
                       bounded_log(graph, probabilities, epsilon));
    no = ipu_multiply(graph, ipu_scale(graph, targets, -1, 1),
                      bounded_log(graph, others, epsilon));
    return ipu_negate(graph, ipu_add(graph, yes, no));
}
