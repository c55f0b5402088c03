/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bends.c - activations that are straight but for bends, and their settings:
 * leaky relu (scale: the slope below 0), elu (scale: alpha), clip (offset,
 * scale: the bounds).
 */
#include <math.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/functions.h"
#include "ops/op.h"

/* Builds a tensor that is 1 where x is above 0. */
static ipu_tensor positive(ipu_graph *graph, const struct ipu__node *node)
{
    ipu_tensor x = ipu__input(graph, node, 0);

    return ipu_greater(graph, x, ipu__scalar_like(graph, x, 0));
}

/* --------------------------------------------------------------- leaky relu */

IPU__WIDE(static, void, leaky_each,
          (float *y, const float *x, float slope, int64_t count),
          (y, x, slope, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] > 0 ? x[i] : x[i] * slope;
}

static int run_leaky(const struct ipu__call *call)
{
    leaky_each(call->output.data, call->inputs[0].data,
               (float)call->attributes->scale,
               ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static void leaky_gradient(ipu_graph *graph, const struct ipu__node *node,
                           ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu_select(graph, positive(graph, node), dy,
                       ipu_scale(graph, dy, node->attributes.scale, 0));
}

const struct ipu__op ipu__leaky_relu = {
    .name = "leaky_relu",
    IPU__OF_ONE,
    .slots = 2,
    .run = run_leaky,
    .gradient = leaky_gradient,
};

/* ---------------------------------------------------------------------- elu */

static int run_elu(const struct ipu__call *call)
{
    int64_t count = ipu__shape_count(&call->output.shape);
    float alpha = (float)call->attributes->scale, *y = call->output.data;
    const float *x = call->inputs[0].data;

    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] > 0 ? x[i] : alpha * expm1f(x[i]);
    return IPU_OK;
}

static void elu_gradient(ipu_graph *graph, const struct ipu__node *node,
                         ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor slope =
        ipu_scale(graph, ipu_exp(graph, ipu__input(graph, node, 0)),
                  node->attributes.scale, 0);

    dx[0] = ipu_select(graph, positive(graph, node), dy,
                       ipu_multiply(graph, dy, slope));
}

const struct ipu__op ipu__elu = {
    .name = "elu",
    IPU__OF_ONE,
    .functions = {IPU__EXP},
    .slots = 4,
    .run = run_elu,
    .gradient = elu_gradient,
};

/* --------------------------------------------------------------------- clip */

static int clip_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    double low = call->attributes->offset, high = call->attributes->scale;

    IPU_TRY(ipu__same_floats(call, output));
    if (low <= high)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "clip: %g to %g is no range", low, high);
}

/* NaN stays. */
IPU__WIDE(static, void, clip_each,
          (float *y, const float *x, float low, float high, int64_t count),
          (y, x, low, high, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        float above = x[i] < low ? low : x[i];

        y[i] = above > high ? high : above;
    }
}

static int run_clip(const struct ipu__call *call)
{
    clip_each(call->output.data, call->inputs[0].data,
              (float)call->attributes->offset, (float)call->attributes->scale,
              ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static void clip_gradient(ipu_graph *graph, const struct ipu__node *node,
                          ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {dy, ipu__input(graph, node, 0)};

    dx[0] = ipu__add(graph, &ipu__clip_grad, inputs, &node->attributes);
}

/* dy, x -> dx: dy where x is within the bounds, and 0 elsewhere. */
IPU__WIDE(static, void, clip_grad_each,
          (float *dx, const float *dy, const float *x, float low, float high,
           int64_t count),
          (dx, dy, x, low, high, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        float slope = dy[i], near = x[i] >= low ? slope : 0;

        dx[i] = x[i] <= high ? near : 0;
    }
}

static int run_clip_grad(const struct ipu__call *call)
{
    clip_grad_each(call->output.data, call->inputs[0].data,
                   call->inputs[1].data, (float)call->attributes->offset,
                   (float)call->attributes->scale,
                   ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

/* The derivative of clip is linear in dy, and does not change with x but at the
 * bounds, so its own derivative is itself for dy, and 0 for x. */
static void clip_grad_gradient(ipu_graph *graph, const struct ipu__node *node,
                               ipu_tensor g, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {g, ipu__input(graph, node, 1)};

    if (ipu__wanted(dx[0]))
        dx[0] = ipu__add(graph, &ipu__clip_grad, inputs, &node->attributes);
    if (ipu__wanted(dx[1]))
        dx[1] = ipu__constant(graph, &graph->tensors[node->inputs[1]].shape, 0);
}

const struct ipu__op ipu__clip_grad = {
    .name = "clip_grad",
    IPU__OF_TWO,
    .slots = 4,
    .loop_slots = -1,
    .run = run_clip_grad,
    .gradient = clip_grad_gradient,
};

const struct ipu__op ipu__clip = {
    .name = "clip",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .by_element = true,
    .slots = 2,
    .shape = clip_shape,
    .run = run_clip,
    .gradient = clip_gradient,
};

ipu_tensor ipu_leaky_relu(ipu_graph *graph, ipu_tensor x, double slope)
{
    const struct ipu__attributes attributes = {.scale = slope};

    return ipu__add(graph, &ipu__leaky_relu, &x, &attributes);
}

ipu_tensor ipu_elu(ipu_graph *graph, ipu_tensor x, double alpha)
{
    const struct ipu__attributes attributes = {.scale = alpha};

    return ipu__add(graph, &ipu__elu, &x, &attributes);
}

ipu_tensor ipu_clip(ipu_graph *graph, ipu_tensor x, double low, double high)
{
    const struct ipu__attributes attributes = {.offset = low, .scale = high};

    return ipu__add(graph, &ipu__clip, &x, &attributes);
}
