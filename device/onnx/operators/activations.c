/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of one tensor of floats with parameters, and dropout. */
#include <math.h>

#include "onnx/builder.h"
#include "onnx/operators/rows.h"

/* Returns the input as its op takes it; invalid if it is not of floats. */
static int operand(struct ipu__onnx_call *call, ipu_tensor *x, bool *last)
{
    IPU_TRY(onnx__want_floats(call, 0));
    *x = onnx__operand(call, call->inputs[0], last);
    return IPU_OK;
}

static int give(struct ipu__onnx_call *call, ipu_tensor y, bool last)
{
    return onnx__give_as(call, call->inputs[0]->type, y, last);
}

static int build_leaky_relu(struct ipu__onnx_call *call)
{
    bool last;
    ipu_tensor x;

    IPU_TRY(operand(call, &x, &last));
    return give(
        call, ipu_leaky_relu(call->graph, x, onnx__float(call, "alpha", 0.01)),
        last);
}

static int build_elu(struct ipu__onnx_call *call)
{
    bool last;
    ipu_tensor x;

    IPU_TRY(operand(call, &x, &last));
    return give(call, ipu_elu(call->graph, x, onnx__float(call, "alpha", 1)),
                last);
}

static int build_selu(struct ipu__onnx_call *call)
{
    double alpha = onnx__float(call, "alpha", 1.67326319217681884765625);
    double gamma = onnx__float(call, "gamma", 1.05070102214813232421875);
    bool last;
    ipu_tensor x;

    IPU_TRY(operand(call, &x, &last));
    return give(
        call, ipu_scale(call->graph, ipu_elu(call->graph, x, alpha), gamma, 0),
        last);
}

/* max(x, 0) + min(0, alpha (exp(x / alpha) - 1)) = alpha elu(x / alpha), where
 * alpha is positive. */
static int build_celu(struct ipu__onnx_call *call)
{
    double alpha = onnx__float(call, "alpha", 1);
    ipu_graph *g = call->graph;
    bool last;
    ipu_tensor x;

    if (!(alpha > 0))
        return onnx__refuse(call, "alpha is not positive");
    IPU_TRY(operand(call, &x, &last));
    x = ipu_elu(g, ipu_scale(g, x, 1 / alpha, 0), 1);
    return give(call, ipu_scale(g, x, alpha, 0), last);
}

static int build_hard_sigmoid(struct ipu__onnx_call *call)
{
    double alpha = onnx__float(call, "alpha", 0.2);
    double beta = onnx__float(call, "beta", 0.5);
    bool last;
    ipu_tensor x;

    IPU_TRY(operand(call, &x, &last));
    x = ipu_scale(call->graph, x, alpha, beta);
    return give(call, ipu_clip(call->graph, x, 0, 1), last);
}

static int build_thresholded_relu(struct ipu__onnx_call *call)
{
    double alpha = onnx__float(call, "alpha", 1);
    int32_t type = call->inputs[0]->type;
    ipu_graph *g = call->graph;
    bool last;
    ipu_tensor x;

    IPU_TRY(operand(call, &x, &last));
    return give(call,
                ipu_select(g,
                           ipu_greater(g, x, onnx__scalar(call, type, alpha)),
                           x, onnx__scalar(call, type, 0)),
                last);
}

/* x + bias below -lambda, x - bias above lambda, and 0 between them. */
static int build_shrink(struct ipu__onnx_call *call)
{
    double lambd = onnx__float(call, "lambd", 0.5);
    double bias = onnx__float(call, "bias", 0);
    int32_t type = call->inputs[0]->type;
    ipu_graph *g = call->graph;
    ipu_tensor x, above, below;
    bool last;

    IPU_TRY(operand(call, &x, &last));
    above = ipu_greater(g, x, onnx__scalar(call, type, lambd));
    below = ipu_less(g, x, onnx__scalar(call, type, -lambd));
    return give(call,
                ipu_select(g, above, ipu_scale(g, x, 1, -bias),
                           ipu_select(g, below, ipu_scale(g, x, 1, bias),
                                      onnx__scalar(call, type, 0))),
                last);
}

/* The slope is broadcast to x alone; before version 7, it is one for each
 * channel. */
static int build_prelu(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *in[2] = {call->inputs[0], call->inputs[1]}, room;
    int32_t ndim;
    int64_t extents[IPU_MAX_DIMS];
    ipu_graph *g = call->graph;
    ipu_tensor t[2];
    bool last;

    if (call->version < 7 && in[1]->ndim == 1 && in[0]->ndim > 2) {
        onnx__extend(call, in[1], in[0]->ndim - 1, &room);
        in[1] = &room;
    }
    ndim = in[1]->ndim;
    for (int32_t d = 0; d < ndim; d++)
        extents[d] = in[1]->extents[d];
    if (!onnx__broadcast(&ndim, extents, in[0]->ndim, in[0]->extents) ||
        ndim != in[0]->ndim ||
        ipu__onnx_count(ndim, extents) != onnx__size(in[0]))
        return onnx__refuse(call, "its slope does not fit its input");
    IPU_TRY(onnx__want_floats(call, 0));
    onnx__operands(call, 2, in, t, &last);
    return give(
        call,
        ipu_select(g, ipu_less(g, t[0], onnx__scalar(call, in[0]->type, 0)),
                   ipu_multiply(g, t[0], t[1]), t[0]),
        last);
}

/* --------------------------------------------------------------------- clip */

/* Limits integers, by ops that take them. */
static int clip_whole(struct ipu__onnx_call *call)
{
    bool last;
    ipu_tensor x = onnx__operand(call, call->inputs[0], &last);

    if (onnx__in(call, 1))
        x = ipu_maximum(call->graph, x, onnx__tensor(call, call->inputs[1]));
    if (onnx__in(call, 2))
        x = ipu_minimum(call->graph, x, onnx__tensor(call, call->inputs[2]));
    return give(call, x, last);
}

static int build_clip(struct ipu__onnx_call *call)
{
    double low = onnx__float(call, "min", -INFINITY);
    double high = onnx__float(call, "max", INFINITY);
    int32_t type = call->inputs[0]->type;
    bool last;
    ipu_tensor x;

    for (int i = 1; i < call->ninputs; i++)
        if (call->inputs[i] && onnx__size(call->inputs[i]) != 1)
            return onnx__refuse(call, "a bound is not one number");
    if (onnx__is_whole(type))
        return clip_whole(call);
    for (int i = 1; i < call->ninputs; i++)
        IPU_TRY(onnx__number(call, i, "bound", i == 1 ? &low : &high));
    IPU_TRY(operand(call, &x, &last));
    if (!(low <= high)) { /* all elements become the upper bound */
        x = ipu_maximum(call->graph, x, onnx__scalar(call, type, low));
        x = ipu_minimum(call->graph, x, onnx__scalar(call, type, high));
        return give(call, x, last);
    }
    return give(call, ipu_clip(call->graph, x, low, high), last);
}

/* ------------------------------------------------------------------ dropout */

/* Returns whether the program trains initialisers of the model. */
static bool is_trained(const ipu_onnx *model)
{
    for (size_t i = 0; i < model->model.graph->initializers.count; i++)
        if (model->trained[i])
            return true;
    return false;
}

/* Gives the mask of a ratio that drops nothing. */
static int give_ones(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];

    if (!onnx__wants(call, 1))
        return IPU_OK;
    if (call->version < 10) /* it was of floats before */
        return onnx__refuse(call, "a mask is supported from version 10 on");
    return onnx__give(call, 1, IPU_ONNX_BOOL,
                      ipu_fill(call->graph, IPU_INT32, x->ndim, x->extents, 1));
}

/* Drops elements, others in each run of the program. What is drawn is a
 * function of the node's number among those that drop, and of the run, so the
 * mask is that of the same draw. */
static int drop(struct ipu__onnx_call *call, double ratio)
{
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_onnx *model = call->builder->model;
    ipu_graph *g = call->graph;
    uint64_t seed;
    ipu_tensor ones;

    if (!is_trained(model))
        return onnx__refuse(call, "training is not supported where no "
                                  "initialiser is trained");
    if (call->builder->depth > 0)
        return onnx__refuse(call, "training is not supported in a graph of a "
                                  "node");
    if (model->dropouts++ == 0)
        model->run = ipu_counter(g, ONNX__RUN);
    seed = (uint64_t)onnx__int(call, "seed", model->dropouts);
    IPU_TRY(onnx__give(
        call, 0, x->type,
        ipu_dropout(g, onnx__tensor(call, x), ratio, seed, model->run)));
    if (!onnx__wants(call, 1))
        return IPU_OK;
    ones = ipu_fill(g, IPU_FLOAT32, x->ndim, x->extents, 1);
    return onnx__give(
        call, 1, IPU_ONNX_BOOL,
        ipu_not_equal(g, ipu_dropout(g, ones, ratio, seed, model->run),
                      ipu_fill(g, IPU_FLOAT32, 0, NULL, 0)));
}

/* Nothing is dropped in inference, nor in training by a ratio of 0. */
static int build_dropout(struct ipu__onnx_call *call)
{
    double training = 0, ratio = onnx__float(call, "ratio", 0.5);

    IPU_TRY(onnx__number(call, 2, "training mode", &training));
    if (call->version < 7 && onnx__int(call, "is_test", 0) == 0)
        training = 1;
    if (training != 0)
        IPU_TRY(onnx__number(call, 1, "ratio", &ratio));
    if (training != 0 && ratio != 0)
        return drop(call, ratio);
    IPU_TRY(onnx__give_same(call, 0, call->inputs[0]));
    return give_ones(call);
}

const struct ipu__onnx_operator onnx__activation_rows[] = {
    {"Celu", 12, "alpha", 1, 1, build_celu, NULL, NULL},
    {"Clip", 6, "min max", 1, 3, build_clip, NULL,
     "bounds of floats must be known"},
    {"Dropout", 6, "is_test ratio seed", 1, 3, build_dropout, NULL,
     "training by another ratio than 0 is refused where no initialiser is "
     "trained"},
    {"Elu", 6, "alpha", 1, 1, build_elu, NULL, NULL},
    {"HardSigmoid", 6, "alpha beta", 1, 1, build_hard_sigmoid, NULL, NULL},
    {"LeakyRelu", 6, "alpha", 1, 1, build_leaky_relu, NULL, NULL},
    {"PRelu", 6, "", 2, 2, build_prelu, NULL, NULL},
    {"Selu", 6, "alpha gamma", 1, 1, build_selu, NULL, NULL},
    {"Shrink", 9, "lambd bias", 1, 1, build_shrink, NULL, NULL},
    {"ThresholdedRelu", 10, "alpha", 1, 1, build_thresholded_relu, NULL, NULL},
    {.name = NULL},
};
