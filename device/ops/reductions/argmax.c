/* SPDX-License-Identifier: Apache-2.0 */
/* argmax and argmin give the index of the largest or smallest element along an
 * axis: the first of several, NaN before all. one_hot is the reverse: a 1 where
 * a number points. */
#include "base/error.h"
#include "ops/op.h"

/* ------------------------------------------------------------------- argmax */

static int argmax_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    int32_t axis = call->attributes->axis;

    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    IPU_TRY(ipu__expect_axis(call));
    if (x->extents[axis] == 0 || x->extents[axis] > INT32_MAX)
        return ipu__fail(IPU_ERR_SHAPE,
                         "%s: %s is %s: axis %d must have 1 to 2147483647 "
                         "elements",
                         call->op->name, call->inputs[0].name,
                         ipu__shape_print(x).text, (int)axis);
    *output = (struct ipu__shape){.dtype = IPU_INT32};
    for (int32_t i = 0; i < x->ndim; i++)
        if (i != axis)
            output->extents[output->ndim++] = x->extents[i];
    return IPU_OK;
}

/* sign: 1, or -1 for the smallest. */
static int32_t first_largest(const float *x, int64_t n, int64_t step,
                             float sign)
{
    int32_t best = 0;

    for (int64_t k = 1; k < n; k++) {
        float most = x[best * step] * sign, other = x[k * step] * sign;

        if (most != most)
            break;
        if (other > most || other != other)
            best = (int32_t)k;
    }
    return best;
}

static int run_best(const struct ipu__call *call, float sign)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    int32_t axis = call->attributes->axis, *y = call->output.data;
    const float *from = call->inputs[0].data;
    int64_t inner = ipu__shape_span(x, axis + 1, x->ndim);
    int64_t n = x->extents[axis];
    int64_t count = ipu__shape_count(&call->output.shape);

    for (int64_t i = 0; i < count; i++)
        y[i] = first_largest(from + i / inner * n * inner + i % inner, n, inner,
                             sign);
    return IPU_OK;
}

static int run_argmax(const struct ipu__call *call)
{
    return run_best(call, 1);
}

static int run_argmin(const struct ipu__call *call)
{
    return run_best(call, -1);
}

const struct ipu__op ipu__argmax = {
    .name = "argmax",
    .ninputs = 1,
    .shape = argmax_shape,
    .run = run_argmax,
};

const struct ipu__op ipu__argmin = {
    .name = "argmin",
    .ninputs = 1,
    .shape = argmax_shape,
    .run = run_argmin,
};

static ipu_tensor best(ipu_graph *graph, const struct ipu__op *op, ipu_tensor x,
                       int32_t axis)
{
    struct ipu__attributes attributes = {0};

    if (ipu__find_axis(graph, op, x, axis, &attributes.axis) < 0)
        return (ipu_tensor){-1};
    return ipu__add(graph, op, &x, &attributes);
}

ipu_tensor ipu_argmax(ipu_graph *graph, ipu_tensor x, int32_t axis)
{
    return best(graph, &ipu__argmax, x, axis);
}

ipu_tensor ipu_argmin(ipu_graph *graph, ipu_tensor x, int32_t axis)
{
    return best(graph, &ipu__argmin, x, axis);
}

/* ------------------------------------------------------------------ one_hot */

static int one_hot_shape(const struct ipu__call *call,
                         struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;

    IPU_TRY(ipu__expect(call, 0, IPU_INT32, -1, "of any shape"));
    if (call->attributes->size < 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "one_hot: a depth of %d, it must be at least 1",
                         (int)call->attributes->size);
    if (x->ndim == IPU_MAX_DIMS)
        return ipu__fail(IPU_ERR_SHAPE,
                         "one_hot: %s has %d dimensions, there is none left",
                         call->inputs[0].name, IPU_MAX_DIMS);
    *output = *x;
    output->dtype = IPU_FLOAT32;
    output->extents[output->ndim++] = call->attributes->size;
    return IPU_OK;
}

static int run_one_hot(const struct ipu__call *call)
{
    const int32_t *x = call->inputs[0].data;
    int64_t count = ipu__shape_count(&call->inputs[0].shape);
    int32_t depth = call->attributes->size;
    float *y = call->output.data;

    for (int64_t i = 0; i < count; i++, y += depth)
        for (int32_t k = 0; k < depth; k++)
            y[k] = x[i] == k;
    return IPU_OK;
}

const struct ipu__op ipu__one_hot = {
    .name = "one_hot",
    .ninputs = 1,
    .slots = 2,
    .shape = one_hot_shape,
    .run = run_one_hot,
};

ipu_tensor ipu_one_hot(ipu_graph *graph, ipu_tensor x, int32_t depth)
{
    const struct ipu__attributes attributes = {.size = depth};

    return ipu__add(graph, &ipu__one_hot, &x, &attributes);
}
