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

/* ------------------------------------------------------------- differences */

ipu_tensor ipu_squared_error(ipu_graph *graph, ipu_tensor x, ipu_tensor target)
{
    return ipu_square(graph, ipu_subtract(graph, x, target));
}

ipu_tensor ipu_absolute_error(ipu_graph *graph, ipu_tensor x, ipu_tensor target)
{
    return ipu_abs(graph, ipu_subtract(graph, x, target));
}

/* c (|d| - c / 2), where c is |d| up to delta. */
static ipu_tensor huber(ipu_graph *graph, const char *name, ipu_tensor x,
                        ipu_tensor target, double delta)
{
    ipu_tensor size = ipu_absolute_error(graph, x, target), near;

    if (size.id >= 0 && !(delta > 0))
        return ipu__invalid(graph, ipu__fail(IPU_ERR_ARGUMENT,
                                             "%s: delta is %g, it must be more "
                                             "than 0",
                                             name, delta));
    near = ipu_clip(graph, size, 0, delta);
    size = ipu_subtract(graph, size, ipu_scale(graph, near, 0.5, 0));
    return ipu_multiply(graph, near, size);
}

ipu_tensor ipu_huber_error(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                           double delta)
{
    return huber(graph, "huber_error", x, target, delta);
}

ipu_tensor ipu_mean_squared_error(ipu_graph *graph, ipu_tensor x,
                                  ipu_tensor target)
{
    return mean_of_all(graph, ipu_squared_error(graph, x, target));
}

ipu_tensor ipu_mean_absolute_error(ipu_graph *graph, ipu_tensor x,
                                   ipu_tensor target)
{
    return mean_of_all(graph, ipu_absolute_error(graph, x, target));
}

ipu_tensor ipu_huber_loss(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                          double delta)
{
    return mean_of_all(graph, huber(graph, "huber_loss", x, target, delta));
}

ipu_tensor ipu_hinge_loss(ipu_graph *graph, ipu_tensor x, ipu_tensor target)
{
    return ipu_relu(graph,
                    ipu_scale(graph, ipu_multiply(graph, x, target), -1, 1));
}

/* ----------------------------------------------------------- probabilities */

static ipu_tensor sum_of_rows(ipu_graph *graph, ipu_tensor x)
{
    const int32_t last = -1;

    return ipu_sum(graph, x, 1, &last, 0);
}

ipu_tensor ipu_categorical_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                         ipu_tensor targets)
{
    return ipu_negate(
        graph,
        sum_of_rows(graph, ipu_multiply(graph, targets,
                                        ipu_log_softmax(graph, logits))));
}

static bool is_share(ipu_graph *graph, const char *name, double smoothing)
{
    if (smoothing >= 0 && smoothing <= 1)
        return true;
    ipu__invalid(graph, ipu__fail(IPU_ERR_ARGUMENT,
                                  "%s: smoothing is %g, it must be from 0 to 1",
                                  name, smoothing));
    return false;
}

ipu_tensor ipu_sparse_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                    ipu_tensor labels, double smoothing)
{
    ipu_tensor loss = ipu_softmax_cross_entropy(graph, logits, labels), all;
    const int32_t last = -1;

    if (loss.id < 0 || smoothing == 0)
        return loss;
    if (!is_share(graph, "sparse_cross_entropy", smoothing))
        return (ipu_tensor){-1};
    all = ipu_mean(graph, ipu_log_softmax(graph, logits), 1, &last, 0);
    return ipu_subtract(graph, ipu_scale(graph, loss, 1 - smoothing, 0),
                        ipu_scale(graph, all, smoothing, 0));
}

ipu_tensor ipu_smooth_targets(ipu_graph *graph, ipu_tensor targets,
                              int64_t classes, double smoothing)
{
    if (targets.id < 0 || !is_share(graph, "smooth_targets", smoothing))
        return (ipu_tensor){-1};
    if (classes < 1)
        return ipu__invalid(graph, ipu__fail(IPU_ERR_ARGUMENT,
                                             "smooth_targets: %lld classes, "
                                             "there must be one",
                                             (long long)classes));
    return ipu_scale(graph, targets, 1 - smoothing,
                     smoothing / (double)classes);
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

ipu_tensor ipu_kl_divergence(ipu_graph *graph, ipu_tensor x, ipu_tensor target,
                             double epsilon)
{
    ipu_tensor of = ipu_clip(graph, target, epsilon, 1), apart;

    if (of.id >= 0 && !(epsilon > 0 && epsilon < 1))
        return ipu__invalid(graph, ipu__fail(IPU_ERR_ARGUMENT,
                                             "kl_divergence: epsilon is %g, it "
                                             "must be between 0 and 1",
                                             epsilon));
    apart =
        ipu_subtract(graph, ipu_log(graph, of), bounded_log(graph, x, epsilon));
    return sum_of_rows(graph, ipu_multiply(graph, of, apart));
}
