/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c - layers of hvd_model.h, made of variables and ops. */
#include "model/normalisation.h"
#include "net/net.h"

#include <stdio.h>
#include <string.h>

static const double epsilon = 1e-5;

ipu_tensor net_layer_variable(hvd_net *net, const char *layer, const char *what,
                              hvd_initializer initializer, int32_t ndim,
                              const int64_t *shape)
{
    char name[96];

    snprintf(name, sizeof name, "%.47s/%s", layer, what);
    return hvd_net_variable(net, name, initializer, ndim, shape);
}

static ipu_tensor vector_of(hvd_net *net, const char *layer, const char *what,
                            hvd_init_kind kind, int64_t count)
{
    return net_layer_variable(net, layer, what, (hvd_initializer){kind, 0}, 1,
                              &count);
}

int32_t net_layer_shape(hvd_net *net, const char *layer, ipu_tensor x,
                        int32_t wanted, int64_t *shape)
{
    int32_t ndim = net_shape(net, x, shape);

    ipu_module(net->graph, layer);
    if (ndim >= wanted)
        return ndim;
    if (ndim >= 0)
        net_fail(net, "layer '%s': its input has %d dimensions, it needs %d",
                 layer, (int)ndim, (int)wanted);
    return -1;
}

static int64_t product_of(int32_t count, const int64_t *extents)
{
    int64_t product = 1;

    for (int32_t i = 0; i < count; i++)
        product *= extents[i];
    return product;
}

ipu_tensor hvd_activate(hvd_net *net, ipu_tensor x, hvd_activation activation)
{
    switch (activation) {
    case HVD_LINEAR: return x;
    case HVD_RELU: return ipu_relu(net->graph, x);
    case HVD_GELU: return ipu_gelu(net->graph, x);
    case HVD_SILU: return ipu_silu(net->graph, x);
    case HVD_TANH: return ipu_tanh(net->graph, x);
    case HVD_SIGMOID: return ipu_sigmoid(net->graph, x);
    case HVD_SOFTMAX: return ipu_softmax(net->graph, x);
    case HVD_GELU_TANH: return ipu_gelu_tanh(net->graph, x);
    default: return net_fail(net, "there is no activation %d", (int)activation);
    }
}

void hvd_layer_options_init(hvd_layer_options *options, size_t size)
{
    memset(options, 0, size);
    options->size = (uint32_t)size;
    options->kernel.kind = HVD_INIT_GLOROT_UNIFORM;
}

/* Adds the bias, unless there is none, and the activation. */
static ipu_tensor add_bias(hvd_net *net, const char *name, ipu_tensor x,
                           int64_t units, const hvd_layer_options *options)
{
    if (!options->no_bias)
        x = ipu_bias_add(
            net->graph, x,
            net_layer_variable(net, name, "bias", options->bias, 1, &units));
    return hvd_activate(net, x, options->activation);
}

ipu_tensor hvd_dense_with(hvd_net *net, const char *name, ipu_tensor x,
                          int64_t units, const hvd_layer_options *options)
{
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = net_layer_shape(net, name, x, 2, shape);

    if (ndim < 1)
        return (ipu_tensor){-1};
    const int64_t kernel[] = {shape[ndim - 1], units};

    hvd_net_work(net, product_of(ndim, shape) * units);
    x = ipu_matmul(
        net->graph, x,
        net_layer_variable(net, name, "kernel", options->kernel, 2, kernel));
    return add_bias(net, name, x, units, options);
}

ipu_tensor hvd_dense(hvd_net *net, const char *name, ipu_tensor x,
                     int64_t units, hvd_activation activation)
{
    hvd_layer_options options;

    hvd_layer_options_init(&options, sizeof options);
    options.activation = activation;
    return hvd_dense_with(net, name, x, units, &options);
}

ipu_tensor hvd_conv2d_with(hvd_net *net, const char *name, ipu_tensor x,
                           int64_t filters, int64_t extent,
                           const hvd_layer_options *options)
{
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = net_layer_shape(net, name, x, 4, shape);
    int32_t groups = options->window && options->window->groups > 1
                         ? options->window->groups
                         : 1;

    if (ndim < 1)
        return (ipu_tensor){-1};
    const int64_t kernel[] = {extent, extent, shape[3] / groups, filters};

    x = ipu_conv2d(
        net->graph, x,
        net_layer_variable(net, name, "kernel", options->kernel, 4, kernel),
        options->window);
    ndim = net_shape(net, x, shape);
    if (ndim >= 0)
        hvd_net_work(net, product_of(3, shape) * product_of(4, kernel));
    return add_bias(net, name, x, filters, options);
}

ipu_tensor hvd_conv2d(hvd_net *net, const char *name, ipu_tensor x,
                      int64_t filters, int64_t extent,
                      hvd_activation activation)
{
    hvd_layer_options options;

    hvd_layer_options_init(&options, sizeof options);
    options.activation = activation;
    return hvd_conv2d_with(net, name, x, filters, extent, &options);
}

ipu_tensor hvd_flatten(hvd_net *net, ipu_tensor x)
{
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = net_layer_shape(net, "flatten", x, 1, shape);

    if (ndim < 1)
        return (ipu_tensor){-1};
    const int64_t flat[] = {shape[0], product_of(ndim - 1, shape + 1)};

    return ipu_reshape(net->graph, x, 2, flat);
}

ipu_tensor hvd_batch_norm(hvd_net *net, const char *name, ipu_tensor x)
{
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = net_layer_shape(net, name, x, 2, shape);
    char mean[96], variance[96];

    if (ndim < 1)
        return (ipu_tensor){-1};
    const int64_t channels = shape[ndim - 1];

    snprintf(mean, sizeof mean, "%.47s/mean", name);
    snprintf(variance, sizeof variance, "%.47s/variance", name);
    const struct normalisation layer = {
        .name = name,
        .scale = vector_of(net, name, "scale", HVD_INIT_ONES, channels),
        .offset = vector_of(net, name, "offset", HVD_INIT_ZEROS, channels),
        .mean = hvd_net_statistic(
            net, mean, (hvd_initializer){HVD_INIT_ZEROS, 0}, 1, &channels),
        .variance = hvd_net_statistic(
            net, variance, (hvd_initializer){HVD_INIT_ONES, 0}, 1, &channels)};

    return normalisation_build(net->graph, net->pass, &layer, x);
}

ipu_tensor hvd_layer_norm(hvd_net *net, const char *name, ipu_tensor x)
{
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = net_layer_shape(net, name, x, 2, shape);

    if (ndim < 1)
        return (ipu_tensor){-1};
    const int64_t width = shape[ndim - 1];
    ipu_tensor scale = vector_of(net, name, "scale", HVD_INIT_ONES, width);
    ipu_tensor offset = vector_of(net, name, "offset", HVD_INIT_ZEROS, width);

    return ipu_layer_norm(net->graph, x, scale, offset, epsilon);
}

ipu_tensor hvd_group_norm(hvd_net *net, const char *name, ipu_tensor x,
                          int32_t groups)
{
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = net_layer_shape(net, name, x, 2, shape);

    if (ndim < 1)
        return (ipu_tensor){-1};
    const int64_t width = shape[ndim - 1];
    ipu_tensor scale = vector_of(net, name, "scale", HVD_INIT_ONES, width);
    ipu_tensor offset = vector_of(net, name, "offset", HVD_INIT_ZEROS, width);

    return ipu_group_norm(net->graph, x, groups, scale, offset, epsilon);
}

ipu_tensor hvd_embedding(hvd_net *net, const char *name, ipu_tensor indices,
                         int64_t vocabulary, int64_t width)
{
    const int64_t shape[] = {vocabulary, width};

    ipu_module(net->graph, name);
    return ipu_embedding(
        net->graph,
        net_layer_variable(net, name, "table",
                           (hvd_initializer){HVD_INIT_UNIFORM, 0.05}, 2, shape),
        indices);
}

ipu_tensor hvd_attention(hvd_net *net, const char *name, ipu_tensor x,
                         int32_t heads, int32_t causal)
{
    int64_t shape[IPU_MAX_DIMS];
    int32_t ndim = net_layer_shape(net, name, x, 3, shape);
    char inner[96], outer[96];

    if (ndim < 1)
        return (ipu_tensor){-1};
    const int64_t width = shape[2];

    if (heads < 1 || width % heads != 0)
        return net_fail(net,
                        "layer '%s': a width of %lld is no multiple of %d "
                        "heads",
                        name, (long long)width, (int)heads);
    snprintf(inner, sizeof inner, "%.47s/qkv", name);
    snprintf(outer, sizeof outer, "%.47s/mix", name);
    hvd_net_work(net, 2 * shape[0] * shape[1] * shape[1] * width);
    x = hvd_dense(net, inner, x, 3 * width, HVD_LINEAR);
    x = ipu_attention(net->graph, x, heads, causal);
    return hvd_dense(net, outer, x, width, HVD_LINEAR);
}

ipu_tensor hvd_dropout(hvd_net *net, ipu_tensor x, double rate)
{
    uint64_t number = (uint64_t)net->piece * 1000 + ++net->drops;

    if (net->mode != HVD_MODE_TRAIN || rate == 0)
        return x;
    net->draws = true;
    if (net->pass == &net->own && net->own.step.id < 0)
        net->own.step = ipu_counter(net->graph, "step");
    return ipu_dropout(net->graph, x, rate, net->pass->seed * 100003 + number,
                       net->pass->step);
}
