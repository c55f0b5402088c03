/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The product of the elements over some axes, carried in double; 1 of none.
 *
 * The derivative with respect to an element is the product of the others. It
 * is not y / x, which is nothing where x is 0: an element that is 0 gets the
 * product of the rest, if no other is 0, and then the others get 0.
 */
#include <string.h>

#include "base/error.h"
#include "ops/reductions/reduce.h"

static size_t scratch(const struct ipu__call *call)
{
    return (size_t)ipu__shape_count(&call->output.shape) * sizeof(double);
}

static int run(const struct ipu__call *call)
{
    int64_t count = ipu__shape_count(&call->output.shape);
    const float *x = call->inputs[0].data;
    double *products = call->scratch;
    float *y = call->output.data;
    struct ipu__walk w;

    for (int64_t i = 0; i < count; i++)
        products[i] = 1;
    for (ipu__reduce_start(&w, call); !w.done; ipu__walk_next(&w))
        for (int64_t i = 0; i < w.length; i++)
            products[w.offsets[1] + i * w.steps[1]] *=
                (double)x[w.offsets[0] + i];
    for (int64_t i = 0; i < count; i++)
        y[i] = (float)products[i];
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {ipu__input(graph, node, 0), dy};

    dx[0] = ipu__add(graph, &ipu__product_grad, inputs, &node->attributes);
}

const struct ipu__op ipu__product = {
    .name = "prod",
    .ninputs = 1,
    .shape = ipu__reduced_shape,
    .scratch = scratch,
    .run = run,
    .gradient = gradient,
};

/* ------------------------------------------------------------- x, dy -> dx */

/* The elements that are reduced to one. */
struct group {
    double product; /* product of the elements that are not 0 */
    int64_t zeros;
};

static int grad_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    struct ipu__shape y;

    IPU_TRY(ipu__reduced_shape(call, &y));
    *output = call->inputs[0].shape;
    return ipu__expect_true(call, ipu__shape_equal(&y, &call->inputs[1].shape));
}

static size_t grad_scratch(const struct ipu__call *call)
{
    return (size_t)ipu__shape_count(&call->inputs[1].shape) *
           sizeof(struct group);
}

static double others(const struct group *g, float x)
{
    if (g->zeros == 0)
        return g->product / (double)x;
    return g->zeros == 1 && x == 0 ? g->product : 0;
}

static int run_grad(const struct ipu__call *call)
{
    int64_t count = ipu__shape_count(&call->inputs[1].shape);
    const float *x = call->inputs[0].data, *dy = call->inputs[1].data;
    struct group *groups = call->scratch;
    float *dx = call->output.data;
    struct ipu__walk w;

    for (int64_t i = 0; i < count; i++)
        groups[i] = (struct group){1, 0};
    for (ipu__reduce_start(&w, call); !w.done; ipu__walk_next(&w))
        for (int64_t i = 0; i < w.length; i++) {
            struct group *g = &groups[w.offsets[1] + i * w.steps[1]];
            float factor = x[w.offsets[0] + i];

            if (factor == 0)
                g->zeros++;
            else
                g->product *= (double)factor;
        }
    for (ipu__reduce_start(&w, call); !w.done; ipu__walk_next(&w))
        for (int64_t i = 0; i < w.length; i++) {
            int64_t at = w.offsets[0] + i, to = w.offsets[1] + i * w.steps[1];

            dx[at] = (float)((double)dy[to] * others(&groups[to], x[at]));
        }
    return IPU_OK;
}

const struct ipu__op ipu__product_grad = {
    .name = "prod_grad",
    .ninputs = 2,
    .shape = grad_shape,
    .scratch = grad_scratch,
    .run = run_grad,
};

ipu_tensor ipu_prod(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                    const int32_t *axes, int32_t keepdims)
{
    return ipu__reduce(graph, &ipu__product, x, naxes, axes, keepdims);
}
