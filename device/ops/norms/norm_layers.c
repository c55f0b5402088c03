/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builders of the normalisations: how each sees x, and what batch
 * normalisation keeps from run to run.
 */
#include <math.h>

#include "base/error.h"
#include "ops/norms/norm.h"

static int check_epsilon(const struct ipu__op *op, double epsilon)
{
    if (epsilon > 0 && epsilon < HUGE_VAL)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "%s: epsilon is %g, it must be more than 0", op->name,
                     epsilon);
}

/* Does the checks of the op's shape function before there are statistics, and
 * sets x's shape. */
static int check_layer(ipu_graph *graph, const struct ipu__op *op,
                       const ipu_tensor *inputs,
                       const struct ipu__attributes *a, struct ipu__shape *x)
{
    struct ipu__call call = {.op = op, .attributes = a};
    int status;

    for (int i = 0; i < 3; i++) {
        int32_t index = ipu__index_of(graph, op, inputs[i]);

        IPU_TRY(index);
        call.inputs[i].name = graph->tensors[index].name;
        call.inputs[i].shape = graph->tensors[index].shape;
    }
    status = check_epsilon(op, a->offset);
    if (status == IPU_OK)
        status = ipu__show_wide(&call);
    if (status == IPU_OK)
        status = ipu__norm_parameters(&call, x);
    return status < 0 ? ipu__graph_fail(graph, status) : IPU_OK;
}

/* statistics may be NULL. */
static ipu_tensor normalise(ipu_graph *graph, const struct ipu__op *op,
                            const ipu_tensor *inputs,
                            const struct ipu__attributes *a,
                            ipu_tensor *statistics)
{
    ipu_tensor all[] = {inputs[0], inputs[1], inputs[2], {-1}};

    all[3] = ipu__add(graph, &ipu__norm_statistics, inputs, a);
    if (statistics)
        *statistics = all[3];
    return ipu__add(graph, op, all, a);
}

ipu_tensor ipu_layer_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor scale,
                          ipu_tensor offset, double epsilon)
{
    const ipu_tensor inputs[] = {x, scale, offset};
    struct ipu__attributes a = {.offset = epsilon};
    struct ipu__shape shape = {0};
    int32_t leading;

    if (check_layer(graph, &ipu__layer_norm, inputs, &a, &shape) < 0)
        return (ipu_tensor){-1};
    leading = shape.ndim - graph->tensors[ipu__index(graph, scale)].shape.ndim;
    a.view[0] = ipu__shape_span(&shape, 0, leading);
    a.view[1] = a.view[2] = 1;
    a.view[3] = ipu__shape_span(&shape, leading, shape.ndim);
    return normalise(graph, &ipu__layer_norm, inputs, &a, NULL);
}

ipu_tensor ipu_group_norm(ipu_graph *graph, ipu_tensor x, int32_t groups,
                          ipu_tensor scale, ipu_tensor offset, double epsilon)
{
    const ipu_tensor inputs[] = {x, scale, offset};
    struct ipu__attributes a = {.offset = epsilon, .groups = groups};
    struct ipu__shape shape = {0};

    if (check_layer(graph, &ipu__group_norm, inputs, &a, &shape) < 0)
        return (ipu_tensor){-1};
    a.view[0] = shape.extents[0];
    a.view[1] = ipu__shape_span(&shape, 1, shape.ndim - 1);
    a.view[2] = groups;
    a.view[3] = shape.extents[shape.ndim - 1] / groups;
    return normalise(graph, &ipu__group_norm, inputs, &a, NULL);
}

/* Assigns variable = momentum variable + (1 - momentum) factor
 * statistics[which]. */
static int keep_running(ipu_graph *graph, ipu_tensor variable,
                        ipu_tensor statistics, int64_t which, int64_t channels,
                        double momentum, double factor)
{
    ipu_dtype dtype;
    ipu_tensor now =
        ipu_slice(graph, statistics, (const int64_t[]){which, 0, 0},
                  (const int64_t[]){1, 1, channels});

    now = ipu_reshape(graph, now, 1, &channels);
    if (ipu_tensor_info(graph, variable, &dtype, NULL, NULL) >= 0 &&
        dtype != IPU_INT32)
        now = ipu_cast(graph, now, dtype);
    now = ipu_scale(graph, now, (1 - momentum) * factor, 0);
    ipu__variable_own(graph, variable, IPU__OWN_STATISTICS);
    return ipu_assign(
        graph, variable,
        ipu_add(graph, ipu_scale(graph, variable, momentum, 0), now));
}

ipu_tensor ipu_batch_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor scale,
                          ipu_tensor offset, ipu_tensor running_mean,
                          ipu_tensor running_variance, double momentum,
                          double epsilon)
{
    const ipu_tensor inputs[] = {x, scale, offset};
    struct ipu__attributes a = {.offset = epsilon};
    ipu_tensor y, statistics;
    struct ipu__shape shape = {0};
    int64_t channels, number;

    if (check_layer(graph, &ipu__batch_norm, inputs, &a, &shape) < 0)
        return (ipu_tensor){-1};
    if (!(momentum >= 0 && momentum <= 1))
        return ipu__invalid(
            graph, ipu__fail(IPU_ERR_ARGUMENT,
                             "batch_norm: momentum is %g, not within 0 "
                             "and 1",
                             momentum));
    channels = shape.extents[shape.ndim - 1];
    number = ipu__shape_span(&shape, 0, shape.ndim - 1);
    a.view[0] = a.view[3] = 1;
    a.view[1] = number;
    a.view[2] = channels;
    y = normalise(graph, &ipu__batch_norm, inputs, &a, &statistics);
    /* The running variance is the estimate without bias. */
    if (keep_running(graph, running_mean, statistics, 0, channels, momentum,
                     1) < 0 ||
        keep_running(graph, running_variance, statistics, 1, channels, momentum,
                     number > 1 ? (double)number / (double)(number - 1) : 1) <
            0)
        return (ipu_tensor){-1};
    return y;
}

/* A tensor in another dtype; invalid ones and integers stay. */
static ipu_tensor as(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype)
{
    ipu_dtype own;

    if (ipu_tensor_info(graph, x, &own, NULL, NULL) < 0 || own == dtype ||
        own == IPU_INT32)
        return x;
    return ipu_cast(graph, x, dtype);
}

/* Running statistics may be float32 where x is not, as those that batch_norm
 * keeps. */
ipu_tensor ipu_batch_norm_inference(ipu_graph *graph, ipu_tensor x,
                                    ipu_tensor scale, ipu_tensor offset,
                                    ipu_tensor running_mean,
                                    ipu_tensor running_variance, double epsilon)
{
    const ipu_tensor inputs[] = {x, scale, offset};
    const struct ipu__attributes a = {.offset = epsilon};
    struct ipu__shape shape = {0};
    ipu_tensor factor;
    ipu_dtype dtype;

    if (check_layer(graph, &ipu__batch_norm, inputs, &a, &shape) < 0)
        return (ipu_tensor){-1};
    dtype = shape.dtype;
    ipu_tensor_info(graph, x, &dtype, NULL, NULL);
    factor = ipu_rsqrt(graph, ipu_scale(graph, running_variance, 1, epsilon));
    factor = ipu_multiply(graph, as(graph, factor, dtype), scale);
    x = ipu_subtract(graph, x, as(graph, running_mean, dtype));
    return ipu_add(graph, ipu_multiply(graph, x, factor), offset);
}
