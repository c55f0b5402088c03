/* SPDX-License-Identifier: Apache-2.0 */
/* The dimensions in another order. */
#include <string.h>

#include "base/error.h"
#include "ops/copy.h"
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;

    const int32_t *order = call->attributes->order;
    bool taken[IPU_MAX_DIMS] = {false};

    *output = *x;
    for (int32_t i = 0; i < x->ndim; i++) {
        IPU_TRY(ipu__expect_true(call, order[i] >= 0 && order[i] < x->ndim &&
                                           !taken[order[i]]));
        taken[order[i]] = true;
        output->extents[i] = x->extents[order[i]];
    }
    return IPU_OK;
}

static void moves(const struct ipu__call *call, int i, struct ipu__moves *m)
{
    ipu__strides given;

    m->shape = call->output.shape;
    ipu__strides_of(&call->inputs[i].shape, given);
    for (int32_t k = 0; k < m->shape.ndim; k++)
        m->from[k] = given[call->attributes->order[k]];
    ipu__strides_of(&m->shape, m->to);
}

/* Back into the order that was. */
static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    struct ipu__attributes inverse = {0};

    for (int32_t i = 0; i < graph->tensors[node->output].shape.ndim; i++)
        inverse.order[node->attributes.order[i]] = i;
    dx[0] = ipu__add(graph, &ipu__transpose, &dy, &inverse);
}

const struct ipu__op ipu__transpose = {
    .name = "transpose",
    .ninputs = 1,
    .raw = true,
    .shape = shape,
    .run = ipu__copy_run,
    .cost = ipu__copy_cost,
    .moves = moves,
    .gradient = gradient,
};

/* Each axis once; NULL: the last first. */
static int find_order(int32_t ndim, const int32_t *axes, int32_t *order)
{
    bool taken[IPU_MAX_DIMS] = {false};

    for (int32_t i = 0; i < ndim; i++) {
        int32_t given = axes ? axes[i] : ndim - 1 - i, axis = given;

        if (axis < 0)
            axis += ndim;
        if (axis < 0 || axis >= ndim)
            return ipu__fail(IPU_ERR_SHAPE,
                             "transpose: there is no axis %d in %d dimensions",
                             (int)given, (int)ndim);
        if (taken[axis])
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "transpose: axis %d is given twice", (int)axis);
        taken[axis] = true;
        order[i] = axis;
    }
    return IPU_OK;
}

ipu_tensor ipu_transpose(ipu_graph *graph, ipu_tensor x, const int32_t *axes)
{
    struct ipu__attributes attributes = {0};
    int status, index = ipu__index_of(graph, &ipu__transpose, x);

    if (index < 0)
        return (ipu_tensor){-1};
    status =
        find_order(graph->tensors[index].shape.ndim, axes, attributes.order);
    if (status < 0)
        return ipu__invalid(graph, status);
    return ipu__add(graph, &ipu__transpose, &x, &attributes);
}
