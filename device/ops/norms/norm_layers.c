/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The builders of the normalisations: how each sees x, what batch
 * normalisation keeps from run to run, and how replicas, or processes, share
 * its statistics.
 */
#include <math.h>
#include <stdio.h>

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

/* Assigns variable = momentum variable + (1 - momentum) factor now. */
static int keep_running(ipu_graph *graph, ipu_tensor variable, ipu_tensor now,
                        double momentum, double factor)
{
    ipu_dtype dtype;

    if (ipu_tensor_info(graph, variable, &dtype, NULL, NULL) >= 0 &&
        dtype != IPU_INT32)
        now = ipu_cast(graph, now, dtype);
    now = ipu_scale(graph, now, (1 - momentum) * factor, 0);
    return ipu_assign(
        graph, variable,
        ipu_add(graph, ipu_scale(graph, variable, momentum, 0), now));
}

/* Returns the means (0) or the variances (1) of all channels. */
static ipu_tensor statistic_of(ipu_graph *graph, ipu_tensor statistics,
                               int64_t which, int64_t channels)
{
    ipu_tensor one =
        ipu_slice(graph, statistics, (const int64_t[]){which, 0, 0},
                  (const int64_t[]){1, 1, channels});

    return ipu_reshape(graph, one, 1, &channels);
}

static int check_momentum(ipu_graph *graph, double momentum)
{
    if (momentum >= 0 && momentum <= 1)
        return IPU_OK;
    return ipu__graph_fail(
        graph,
        ipu__fail(IPU_ERR_ARGUMENT,
                  "batch_norm: momentum is %g, not within 0 and 1", momentum));
}

/* Notes that each replica has seen its own data. */
static void own_statistics(ipu_graph *graph, ipu_tensor mean,
                           ipu_tensor variance)
{
    ipu__variable_own(graph, mean, IPU__OWN_STATISTICS);
    ipu__variable_own(graph, variance, IPU__OWN_STATISTICS);
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

    if (check_layer(graph, &ipu__batch_norm, inputs, &a, &shape) < 0 ||
        check_momentum(graph, momentum) < 0)
        return (ipu_tensor){-1};
    channels = shape.extents[shape.ndim - 1];
    number = ipu__shape_span(&shape, 0, shape.ndim - 1);
    a.view[0] = a.view[3] = 1;
    a.view[1] = number;
    a.view[2] = channels;
    y = normalise(graph, &ipu__batch_norm, inputs, &a, &statistics);
    /* The running variance is the estimate without bias. */
    own_statistics(graph, running_mean, running_variance);
    if (keep_running(graph, running_mean,
                     statistic_of(graph, statistics, 0, channels), momentum,
                     1) < 0 ||
        keep_running(graph, running_variance,
                     statistic_of(graph, statistics, 1, channels), momentum,
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

/* A group of devices that share the mean and variance of their batches:
 * replicas of this process or, with a network, all replicas of all its
 * processes. */
struct together {
    int32_t group_size;         /* of replicas; 0: all */
    const ipu_network *network; /* NULL: this process alone */
    const char *name;           /* of collectives of the network */
};

/* Returns the estimate without bias of a variance over all who normalise
 * together, each with number elements of a channel. How many replicas are all
 * of them is not known before they run. */
static ipu_tensor without_bias(ipu_graph *graph, ipu_tensor variance,
                               int64_t number, const struct together *t)
{
    ipu_tensor all =
        ipu_fill(graph, IPU_FLOAT32, 0, NULL,
                 (double)number * (t->network ? t->network->processes : 1));
    ipu_tensor less;

    all = ipu_cross_replica_sum(graph, all, t->group_size);
    less = ipu_maximum(graph, ipu_scale(graph, all, 1, -1),
                       ipu_fill(graph, IPU_FLOAT32, 0, NULL, 1));
    return ipu_multiply(graph, variance, ipu_divide(graph, all, less));
}

/* Returns the mean of each channel over all rows of all who normalise together.
 * what: the mean is of this, for the name of a collective. */
static ipu_tensor mean_of_rows(ipu_graph *graph, ipu_tensor rows,
                               const struct together *t, const char *what)
{
    ipu_tensor own = ipu_mean(graph, rows, 1, (const int32_t[]){0}, 0);
    char name[256];

    own = ipu_cross_replica_mean(graph, own, t->group_size);
    if (!t->network)
        return own;
    snprintf(name, sizeof name, "%s/%s", t->name, what);
    own = ipu_collective_mean(graph, t->network, name, own);
    /* All replicas have the same by now; so do those on the way back, by the
     * derivative of this. */
    return ipu_cross_replica_mean(graph, own, t->group_size);
}

/* All have as many rows, so the mean of their means is that of all. The
 * variance is of the distances from that mean, in a second step, which loses
 * less than a difference of squares. Ops have derivatives, through replicas and
 * processes, of their own. */
static ipu_tensor normalise_together(ipu_graph *graph, const struct together *t,
                                     ipu_tensor x, ipu_tensor scale,
                                     ipu_tensor offset, ipu_tensor running_mean,
                                     ipu_tensor running_variance,
                                     double momentum, double epsilon)
{
    const ipu_tensor inputs[] = {x, scale, offset};
    const struct ipu__attributes a = {.offset = epsilon};
    struct ipu__shape shape = {0};

    if (check_layer(graph, &ipu__batch_norm, inputs, &a, &shape) < 0 ||
        check_momentum(graph, momentum) < 0)
        return (ipu_tensor){-1};
    const int64_t number = ipu__shape_span(&shape, 0, shape.ndim - 1);
    const int64_t rows[] = {number, shape.extents[shape.ndim - 1]};
    ipu_tensor wide = ipu_reshape(graph, as(graph, x, IPU_FLOAT32), 2, rows);
    ipu_tensor mean = mean_of_rows(graph, wide, t, "mean");
    ipu_tensor centred = ipu_subtract(graph, wide, mean);
    ipu_tensor variance =
        mean_of_rows(graph, ipu_square(graph, centred), t, "variance");
    ipu_tensor factor = ipu_multiply(
        graph, ipu_rsqrt(graph, ipu_scale(graph, variance, 1, epsilon)),
        as(graph, scale, IPU_FLOAT32));
    ipu_tensor y = ipu_add(graph, ipu_multiply(graph, centred, factor),
                           as(graph, offset, IPU_FLOAT32));

    /* With all of them in one group, all replicas keep the same. */
    if (t->group_size != 0)
        own_statistics(graph, running_mean, running_variance);
    if (keep_running(graph, running_mean, mean, momentum, 1) < 0 ||
        keep_running(graph, running_variance,
                     without_bias(graph, variance, number, t), momentum, 1) < 0)
        return (ipu_tensor){-1};
    return as(graph, ipu_reshape(graph, y, shape.ndim, shape.extents),
              shape.dtype);
}

ipu_tensor ipu_synchronised_batch_norm(ipu_graph *graph, ipu_tensor x,
                                       ipu_tensor scale, ipu_tensor offset,
                                       ipu_tensor running_mean,
                                       ipu_tensor running_variance,
                                       double momentum, double epsilon,
                                       int32_t group_size)
{
    return normalise_together(
        graph, &(struct together){.group_size = group_size}, x, scale, offset,
        running_mean, running_variance, momentum, epsilon);
}

ipu_tensor ipu_collective_batch_norm(
    ipu_graph *graph, const ipu_network *network, const char *name,
    ipu_tensor x, ipu_tensor scale, ipu_tensor offset, ipu_tensor running_mean,
    ipu_tensor running_variance, double momentum, double epsilon)
{
    if (!network || !name || !name[0])
        return ipu__invalid(
            graph,
            ipu__fail(IPU_ERR_ARGUMENT, "collective batch norm: the %s",
                      !network ? "network is NULL" : "name is NULL or empty"));
    return normalise_together(
        graph, &(struct together){.network = network, .name = name}, x, scale,
        offset, running_mean, running_variance, momentum, epsilon);
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
