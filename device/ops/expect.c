/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "ops/op.h"

int ipu__expect(const struct ipu__call *call, int i, ipu_dtype dtype,
                int32_t ndim, const char *form)
{
    const struct ipu__operand *input = &call->inputs[i];

    if (input->shape.dtype == dtype && (ndim < 0 || input->shape.ndim == ndim))
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE, "%s: %s is %s, it must be %s %s",
                     call->op->name, input->name,
                     ipu__operand_print(input).text, ipu__dtype_name(dtype),
                     form);
}

int ipu__same_floats(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[0].shape;
    return ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape");
}

int ipu__expect_same(const struct ipu__call *call, int i, int j)
{
    if (ipu__shape_equal(&call->inputs[i].shape, &call->inputs[j].shape))
        return IPU_OK;
    return ipu__unfit(call, i, j, "they must be the same");
}

int ipu__two_floats(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__same_floats(call, output));
    return ipu__expect_same(call, 0, 1);
}

int ipu__expect_axis(const struct ipu__call *call)
{
    int32_t axis = call->attributes->axis;

    if (axis >= 0 && axis < call->inputs[0].shape.ndim)
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE, "%s: there is no axis %d in %s",
                     call->op->name, (int)axis, call->inputs[0].name);
}

int ipu__expect_true(const struct ipu__call *call, bool holds)
{
    if (holds)
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "%s: what it is told does not belong to its inputs",
                     call->op->name);
}

int32_t ipu__index_of(ipu_graph *graph, const struct ipu__op *op,
                      ipu_tensor tensor)
{
    int32_t index;

    if (!graph)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: the graph is NULL", op->name);
    if (graph->status < 0)
        return graph->status;
    index = ipu__index(graph, tensor);
    if (index < 0)
        ipu__graph_fail(graph, ipu__fail(index, "%s: input 0: %s", op->name,
                                         ipu_last_error()));
    return index;
}

int ipu__find_axis(ipu_graph *graph, const struct ipu__op *op,
                   ipu_tensor tensor, int32_t axis, int32_t *found)
{
    int32_t index = ipu__index_of(graph, op, tensor), ndim;

    IPU_TRY(index);
    ndim = graph->tensors[index].shape.ndim;
    *found = axis < 0 ? axis + ndim : axis;
    if (*found >= 0 && *found < ndim)
        return IPU_OK;
    return ipu__graph_fail(
        graph,
        ipu__fail(IPU_ERR_SHAPE,
                  "%s: there is no axis %d in the %d dimensions of %s",
                  op->name, (int)axis, (int)ndim, graph->tensors[index].name));
}

ipu_tensor ipu__scalar_like(ipu_graph *graph, ipu_tensor tensor, double value)
{
    int32_t index = ipu__index(graph, tensor);
    struct ipu__shape scalar = {.dtype = IPU_FLOAT32};

    if (index >= 0)
        scalar.dtype = graph->tensors[index].shape.dtype;
    return ipu__constant(graph, &scalar, value);
}
