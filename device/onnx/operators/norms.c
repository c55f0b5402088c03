/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations. */
#include "onnx/builder.h"
#include "onnx/operators/rows.h"

static int check_channels(struct ipu__onnx_call *call, int from)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    IPU_TRY(onnx__want_floats(call, 0));
    for (int i = from; i < call->ninputs; i++)
        if (x->ndim < 2 || !call->inputs[i] || call->inputs[i]->ndim != 1 ||
            call->inputs[i]->extents[0] != x->extents[1])
            return onnx__refuse(call, "its parameters do not fit its channels");
    return IPU_OK;
}

/* --------------------------------------------------------------- batch norm */

/* A batch normalisation; in training its statistics are those of the batch. */
struct batch_norm {
    double epsilon, momentum;
    bool last;       /* the channels of x are */
    ipu_tensor t[5]; /* x, scale, offset, running mean and variance */
    ipu_tensor mean, variance;
};

/* Before version 14 a node that has more than one output is one of training,
 * and before version 7 one that is no test. */
static bool is_training(struct ipu__onnx_call *call)
{
    bool more = false;

    for (int i = 1; i < 5; i++)
        more |= onnx__wants(call, i);
    if (call->version >= 14)
        return onnx__int(call, "training_mode", 0) != 0;
    return more || (call->version < 7 && onnx__int(call, "is_test", 0) == 0);
}

static bool is_variable(const struct ipu__onnx_value *value)
{
    return value->initializer && value->use == IPU__ONNX_TRAINED;
}

/* Adds the mean and the variance of each channel over the batch, in float32. */
static void add_statistics(struct ipu__onnx_call *call, struct batch_norm *n)
{
    const int64_t rows[2] = {-1, call->inputs[0]->extents[1]};
    const int32_t axis = 0;
    ipu_graph *g = call->graph;
    ipu_tensor x = ipu_cast(g, ipu_reshape(g, n->t[0], 2, rows), IPU_FLOAT32);

    n->mean = ipu_mean(g, x, 1, &axis, 0);
    n->variance =
        ipu_mean(g, ipu_square(g, ipu_subtract(g, x, n->mean)), 1, &axis, 0);
}

/* Returns y if the running statistics are no variables, so that nothing has to
 * be kept. */
static ipu_tensor normalise(struct ipu__onnx_call *call,
                            const struct batch_norm *n)
{
    ipu_dtype dtype = ipu_onnx_type_dtype(call->inputs[0]->type);
    ipu_graph *g = call->graph;
    ipu_tensor x = ipu_cast(g, n->t[0], IPU_FLOAT32);
    ipu_tensor factor =
        ipu_multiply(g, ipu_rsqrt(g, ipu_scale(g, n->variance, 1, n->epsilon)),
                     ipu_cast(g, n->t[1], IPU_FLOAT32));

    x = ipu_multiply(g, ipu_subtract(g, x, n->mean), factor);
    return ipu_cast(g, ipu_add(g, x, ipu_cast(g, n->t[2], IPU_FLOAT32)), dtype);
}

/* Gives the running statistics, and before version 14 those of the batch, too.
 */
static int give_running(struct ipu__onnx_call *call, const struct batch_norm *n)
{
    ipu_graph *g = call->graph;

    for (int i = 0; i < 2; i++) {
        int32_t type = call->inputs[3 + i]->type;
        ipu_dtype dtype = ipu_onnx_type_dtype(type);
        ipu_tensor now = ipu_cast(g, i == 0 ? n->mean : n->variance, dtype);

        IPU_TRY(onnx__give(call, 1 + i, type,
                           ipu_add(g, ipu_scale(g, n->t[3 + i], n->momentum, 0),
                                   ipu_scale(g, now, 1 - n->momentum, 0))));
        if (call->version < 14)
            IPU_TRY(onnx__give(call, 3 + i, type, now));
    }
    return IPU_OK;
}

/* Running statistics that are variables are assigned by the device's own layer,
 * as PyTorch's are: the variance is the estimate without bias. */
static int build_training(struct ipu__onnx_call *call, struct batch_norm *n)
{
    struct ipu__onnx_value *const *in = call->inputs;
    ipu_tensor y;

    add_statistics(call, n);
    if (is_variable(in[3]) && is_variable(in[4])) {
        y = ipu_batch_norm(call->graph, n->t[0], n->t[1], n->t[2], n->t[3],
                           n->t[4], n->momentum, n->epsilon);
        ipu__onnx_assign_variable(call->builder->model, in[3]->name);
        ipu__onnx_assign_variable(call->builder->model, in[4]->name);
    } else {
        y = normalise(call, n);
    }
    IPU_TRY(onnx__give_as(call, in[0]->type, y, n->last));
    return give_running(call, n);
}

static int build_batch_norm(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    struct batch_norm n = {.epsilon = onnx__float(call, "epsilon", 1e-5),
                           .momentum = onnx__float(call, "momentum", 0.9),
                           .last = in[0]->ndim > 2};

    if (onnx__int(call, "spatial", 1) != 1)
        return onnx__refuse(call, "spatial 0 is not supported");
    IPU_TRY(check_channels(call, 1));
    n.t[0] = n.last ? onnx__last(call, in[0]) : onnx__tensor(call, in[0]);
    for (int i = 1; i < 5; i++)
        n.t[i] = onnx__tensor(call, in[i]);
    if (is_training(call))
        return build_training(call, &n);
    return onnx__give_as(call, in[0]->type,
                         ipu_batch_norm_inference(call->graph, n.t[0], n.t[1],
                                                  n.t[2], n.t[3], n.t[4],
                                                  n.epsilon),
                         n.last);
}

static int build_instance_norm(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    double epsilon = onnx__float(call, "epsilon", 1e-5);

    IPU_TRY(check_channels(call, 1));
    if (in[0]->ndim < 3 || in[0]->extents[1] > INT32_MAX)
        return onnx__refuse(call, "its input is no image");
    return onnx__give_last(call, 0, in[0]->type,
                           ipu_group_norm(call->graph, onnx__last(call, in[0]),
                                          (int32_t)in[0]->extents[1],
                                          onnx__tensor(call, in[1]),
                                          onnx__tensor(call, in[2]), epsilon));
}

/* --------------------------------------------------------------- layer norm */

/* Gives mean and inverse deviation, where they are wanted. */
static int give_statistics(struct ipu__onnx_call *call, int32_t axis,
                           double epsilon)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int32_t axes[IPU_MAX_DIMS], n = x->ndim - axis;
    ipu_graph *g = call->graph;
    ipu_tensor t, mean, variance;

    if (!onnx__wants(call, 1) && !onnx__wants(call, 2))
        return IPU_OK;
    for (int32_t d = axis; d < x->ndim; d++)
        axes[d - axis] = d;
    t = onnx__tensor(call, x);
    mean = ipu_mean(g, t, n, axes, 1);
    IPU_TRY(onnx__give(call, 1, x->type, mean));
    variance = ipu_mean(g, ipu_square(g, ipu_subtract(g, t, mean)), n, axes, 1);
    return onnx__give(call, 2, x->type,
                      ipu_rsqrt(g, ipu_scale(g, variance, 1, epsilon)));
}

/* Returns a parameter in the shape of the dimensions that are normalised. */
static ipu_tensor parameter(struct ipu__onnx_call *call, int i, int32_t axis,
                            double other)
{
    struct ipu__onnx_value *x = call->inputs[0], *p = onnx__in(call, i);
    ipu_tensor t =
        p ? onnx__tensor(call, p) : onnx__scalar(call, x->type, other);

    return ipu_broadcast(call->graph, t, x->ndim - axis, x->extents + axis);
}

static int build_layer_norm(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    double epsilon = onnx__float(call, "epsilon", 1e-5);
    int32_t axis;

    IPU_TRY(onnx__want_floats(call, 0));
    if (onnx__int(call, "stash_type", 1) != 1)
        return onnx__refuse(call, "statistics are of float here");
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", -1), x->ndim, &axis));
    IPU_TRY(give_statistics(call, axis, epsilon));
    return onnx__give(call, 0, x->type,
                      ipu_layer_norm(call->graph, onnx__tensor(call, x),
                                     parameter(call, 1, axis, 1),
                                     parameter(call, 2, axis, 0), epsilon));
}

/* (x - mean) / deviation over axes. */
static int build_mean_variance(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int32_t axes[MOST_AXES] = {0, 2, 3}, n = 0;
    bool chosen[MOST_AXES], given;
    ipu_graph *g = call->graph;
    ipu_tensor t;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__axes(call, "axes", -1, x->ndim, chosen, &given));
    if (!given && x->ndim != 4)
        return onnx__refuse(call, "its axes do not fit its input");
    for (int32_t d = 0; d < x->ndim; d++)
        if (given ? chosen[d] : d != 1)
            axes[n++] = d;
    t = onnx__tensor(call, x);
    t = ipu_subtract(g, t, ipu_mean(g, t, n, axes, 1));
    t = ipu_divide(
        g, t,
        ipu_scale(g, ipu_sqrt(g, ipu_mean(g, ipu_square(g, t), n, axes, 1)), 1,
                  1e-9));
    return onnx__give(call, 0, x->type, t);
}

/* x divided by its norm along an axis. */
static int build_lp_norm(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t p = onnx__int(call, "p", 2);
    ipu_graph *g = call->graph;
    ipu_tensor t, norm;
    int32_t axis;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", -1), x->ndim, &axis));
    if (p != 1 && p != 2)
        return onnx__refuse(call, "p is neither 1 nor 2");
    t = onnx__tensor(call, x);
    norm = ipu_sum(g, p == 1 ? ipu_abs(g, t) : ipu_square(g, t), 1, &axis, 1);
    return onnx__give(call, 0, x->type,
                      ipu_divide(g, t, p == 1 ? norm : ipu_sqrt(g, norm)));
}

/* ------------------------------------------------------------ over channels */

/* x / (bias + alpha mean(x^2 of the channels around))^beta. The mean over
 * channels is one over windows of one row. */
static int build_lrn(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    double alpha = onnx__float(call, "alpha", 1e-4);
    double beta = onnx__float(call, "beta", 0.75);
    double bias = onnx__float(call, "bias", 1);
    int64_t size = onnx__int(call, "size", 0), rows[4] = {1, 1, 1, 1};
    int64_t extents[IPU_MAX_DIMS];
    ipu_pool_options o = {
        .size = sizeof o, .stride = {1, 1}, .count_padding = 1};
    ipu_graph *g = call->graph;
    ipu_tensor t, power;

    IPU_TRY(onnx__want_floats(call, 0));
    if (size < 1 || size > INT32_MAX || x->ndim < 3)
        return onnx__refuse(call, "its size or its input is wrong");
    t = onnx__last(call, x);
    rows[2] = x->extents[1];
    rows[0] = onnx__size(x) / (rows[2] ? rows[2] : 1);
    o.window[0] = 1;
    o.window[1] = (int32_t)size;
    o.padding[2] = (int32_t)((size - 1) / 2);
    o.padding[3] = (int32_t)(size / 2);
    power = ipu_reshape(g, ipu_square(g, t), 4, rows);
    power = ipu_avg_pool2d_with(g, power, &o);
    power = ipu_power(g, ipu_scale(g, power, alpha, bias),
                      onnx__scalar(call, x->type, -beta));
    ipu_tensor_info(g, t, NULL, extents, NULL);
    power = ipu_reshape(g, power, x->ndim, extents);
    return onnx__give_last(call, 0, x->type, ipu_multiply(g, t, power));
}

const struct ipu__onnx_operator onnx__norm_rows[] = {
    {"BatchNormalization", 6, "epsilon is_test momentum spatial training_mode",
     5, 5, build_batch_norm, NULL, NULL},
    {"InstanceNormalization", 6, "epsilon", 3, 3, build_instance_norm, NULL,
     NULL},
    {"LRN", 1, "alpha beta bias size", 1, 1, build_lrn, NULL, NULL},
    {"LayerNormalization", 17, "axis epsilon stash_type", 2, 3,
     build_layer_norm, NULL, "a stash_type other than float is refused"},
    {"LpNormalization", 1, "axis p", 1, 1, build_lp_norm, NULL, NULL},
    {"MeanVarianceNormalization", 9, "axes", 1, 1, build_mean_variance, NULL,
     NULL},
    {.name = NULL},
};
