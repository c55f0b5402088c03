/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layers.c - the layers of hvd_model.h, on graphs that have a network.
 *
 * Graph.layer(kind, *arguments) finds the kind in the table below. Its first
 * arguments are the layer's name and its input, unless the table says
 * otherwise; ipu/layers.py passes all others, in this order.
 */
#include <hvd.h>
#include <string.h>

#include "extension.h"

/* A layer fails with this tensor, and then has set an exception or a failure of
 * the network. */
static const ipu_tensor none = {-1};

struct call {
    hvd_net *net;
    const char *name;
    ipu_tensor x;
    PyObject *const *args; /* behind the name and the input */
};

/* dense: units, activation, bias, kernel's kind, kernel's value */
static bool get_options(PyObject *const *args, hvd_layer_options *options)
{
    int32_t bias;

    hvd_layer_options_init(options, sizeof *options);
    if (!get_int32(args[0], "the activation", &options->activation) ||
        !get_int32(args[1], "bias", &bias) ||
        !get_int32(args[2], "the initializer", &options->kernel.kind) ||
        !get_double(args[3], "the initializer's value", &options->kernel.value))
        return false;
    options->no_bias = !bias;
    return true;
}

static ipu_tensor dense(const struct call *c)
{
    hvd_layer_options options;
    int64_t units;

    if (!get_int(c->args[0], "units", 1, INT32_MAX, &units) ||
        !get_options(c->args + 1, &options))
        return none;
    return hvd_dense_with(c->net, c->name, c->x, units, &options);
}

/* conv2d: filters, extent, activation, bias, kernel's kind, value, stride,
 * same, groups, dilation */
static ipu_tensor conv2d(const struct call *c)
{
    ipu_conv_options window = {.size = sizeof window};
    hvd_layer_options options;
    int64_t filters, extent;

    if (!get_int(c->args[0], "filters", 1, INT32_MAX, &filters) ||
        !get_int(c->args[1], "the kernel's extent", 1, INT32_MAX, &extent) ||
        !get_options(c->args + 2, &options) ||
        !get_int32(c->args[6], "the stride", &window.stride[0]) ||
        !get_int32(c->args[7], "same", &window.same) ||
        !get_int32(c->args[8], "groups", &window.groups) ||
        !get_int32(c->args[9], "the dilation", &window.dilation[0]))
        return none;
    window.stride[1] = window.stride[0];
    window.dilation[1] = window.dilation[0];
    options.window = &window;
    return hvd_conv2d_with(c->net, c->name, c->x, filters, extent, &options);
}

static ipu_tensor flatten(const struct call *c)
{
    return hvd_flatten(c->net, c->x);
}

static ipu_tensor batch_norm(const struct call *c)
{
    return hvd_batch_norm(c->net, c->name, c->x);
}

static ipu_tensor layer_norm(const struct call *c)
{
    return hvd_layer_norm(c->net, c->name, c->x);
}

static ipu_tensor group_norm(const struct call *c)
{
    int32_t groups;

    return get_int32(c->args[0], "groups", &groups)
               ? hvd_group_norm(c->net, c->name, c->x, groups)
               : none;
}

static ipu_tensor embedding(const struct call *c)
{
    int64_t vocabulary, width;

    return get_int(c->args[0], "vocabulary", 1, INT32_MAX, &vocabulary) &&
                   get_int(c->args[1], "width", 1, INT32_MAX, &width)
               ? hvd_embedding(c->net, c->name, c->x, vocabulary, width)
               : none;
}

static ipu_tensor attention(const struct call *c)
{
    int32_t heads, causal;

    return get_int32(c->args[0], "heads", &heads) &&
                   get_int32(c->args[1], "causal", &causal)
               ? hvd_attention(c->net, c->name, c->x, heads, causal)
               : none;
}

/* lstm, gru: units, all states, layers, direction, dropout, tensor of lengths
 * or -1 */
static ipu_tensor recurrent(const struct call *c, bool is_gru)
{
    hvd_recurrent_options options;
    ipu_tensor lengths;
    int64_t units;

    hvd_recurrent_options_init(&options, sizeof options);
    if (!get_int(c->args[0], "units", 1, INT32_MAX, &units) ||
        !get_int32(c->args[1], "the states", &options.states) ||
        !get_int32(c->args[2], "layers", &options.layers) ||
        !get_int32(c->args[3], "the direction", &options.direction) ||
        !get_double(c->args[4], "dropout", &options.dropout) ||
        !get_int32(c->args[5], "lengths", &lengths.id))
        return none;
    options.lengths = lengths.id < 0 ? NULL : &lengths;
    return is_gru ? hvd_gru_with(c->net, c->name, c->x, units, &options)
                  : hvd_lstm_with(c->net, c->name, c->x, units, &options);
}

static ipu_tensor lstm(const struct call *c)
{
    return recurrent(c, false);
}

static ipu_tensor gru(const struct call *c)
{
    return recurrent(c, true);
}

static ipu_tensor dropout(const struct call *c)
{
    double rate;

    return get_double(c->args[0], "the rate", &rate)
               ? hvd_dropout(c->net, c->x, rate)
               : none;
}

static ipu_tensor next_piece(const struct call *c)
{
    return hvd_net_next_piece(c->net, c->x);
}

/* Returns the input of that name of the network. It is called as layers are,
 * with a tensor, which has no effect. */
static ipu_tensor input(const struct call *c)
{
    return hvd_net_input(c->net, c->name);
}

/* variable: shape, kind, value, trained */
static ipu_tensor variable(const struct call *c)
{
    int64_t shape[IPU_MAX_DIMS];
    hvd_initializer initializer;
    int32_t ndim, trained;

    if (!get_list(c->args[0], "the shape", IPU_MAX_DIMS, shape, &ndim) ||
        !get_int32(c->args[1], "the initializer", &initializer.kind) ||
        !get_double(c->args[2], "the initializer's value",
                    &initializer.value) ||
        !get_int32(c->args[3], "trained", &trained))
        return none;
    return trained
               ? hvd_net_variable(c->net, c->name, initializer, ndim, shape)
               : hvd_net_statistic(c->net, c->name, initializer, ndim, shape);
}

static const struct layer {
    const char *kind;
    int arguments; /* behind the name and the input */
    ipu_tensor (*make)(const struct call *call);
} layers[] = {
    {"dense", 5, dense},
    {"conv2d", 10, conv2d},
    {"flatten", 0, flatten},
    {"batch_norm", 0, batch_norm},
    {"layer_norm", 0, layer_norm},
    {"group_norm", 1, group_norm},
    {"embedding", 2, embedding},
    {"attention", 2, attention},
    {"lstm", 6, lstm},
    {"gru", 6, gru},
    {"dropout", 1, dropout},
    {"next_piece", 0, next_piece},
    {"input", 0, input},
    {"variable", 4, variable},
};

static const struct layer *find_layer(PyObject *object)
{
    const char *kind;

    if (!get_text(object, "the layer", &kind))
        return NULL;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layers[i].kind, kind) == 0)
            return &layers[i];
    PyErr_Format(PyExc_ValueError, "there is no layer '%s'", kind);
    return NULL;
}

/* Says why a layer has failed: by an argument, by the network, or by an op. */
static PyObject *raise_failure(struct graph *graph)
{
    const hvd_variable *variables;

    if (PyErr_Occurred())
        return NULL;
    if (hvd_net_end(graph->net, &variables) < 0)
        return raise_hvd(HVD_ERR_ARGUMENT);
    return raise_ipu(IPU_ERR_SHAPE);
}

PyObject *graph_layer(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    struct graph *graph = (struct graph *)self;
    const struct layer *layer;
    ipu_tensor made;

    if (!graph_get(graph))
        return NULL;
    if (!graph->net) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the graph has no layers: a Model's function gets one "
                        "that has");
        return NULL;
    }
    if (nargs < 1 || !(layer = find_layer(args[0])))
        return NULL;
    struct call call = {.net = graph->net, .args = args + 3};

    if (!has_arguments(layer->kind, nargs, layer->arguments + 3) ||
        !get_text(args[1], "the name", &call.name) ||
        !get_int32(args[2], "the input", &call.x.id))
        return NULL;
    made = layer->make(&call);
    return made.id < 0 ? raise_failure(graph) : PyLong_FromLong(made.id);
}
