/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - shapes of a call: computes the output's shape from those of the
 * inputs.
 *
 * Ops compute in float32. A half is only a dtype for storage: the shape
 * function of an op sees float32 in its place, and the output becomes a half
 * again.
 */
#include "base/error.h"
#include "graph/op.h"

struct ipu__shape_text ipu__operand_print(const struct ipu__operand *operand)
{
    struct ipu__shape shape = operand->shape;

    shape.dtype = operand->dtype;
    return ipu__shape_print(&shape);
}

int ipu__unfit(const struct ipu__call *call, int i, int j, const char *why)
{
    const struct ipu__operand *a = &call->inputs[i], *b = &call->inputs[j];

    return ipu__fail(IPU_ERR_SHAPE, "%s: %s is %s and %s is %s: %s",
                     call->op->name, a->name, ipu__operand_print(a).text,
                     b->name, ipu__operand_print(b).text, why);
}

/* Returns whether input i must have the dtype of the other floats. */
static bool has_common_dtype(const struct ipu__call *call, int i)
{
    if (call->inputs[i].dtype == IPU_FLOAT32 && i == call->op->ninputs - 1)
        return !call->op->last_wide;
    return call->inputs[i].dtype != IPU_INT32;
}

int ipu__show_wide(struct ipu__call *call)
{
    int first = -1;

    for (int i = 0; i < call->op->ninputs; i++)
        call->inputs[i].dtype = call->inputs[i].shape.dtype;
    call->output.dtype = call->output.shape.dtype;
    if (call->op->raw)
        return IPU_OK;
    for (int i = 0; i < call->op->ninputs; i++) {
        if (!has_common_dtype(call, i))
            continue;
        if (first < 0)
            first = i;
        if (call->inputs[i].dtype != call->inputs[first].dtype)
            return ipu__unfit(call, first, i,
                              "the dtypes must be the same: ipu_cast one of "
                              "them");
    }
    for (int i = 0; i < call->op->ninputs; i++)
        if (ipu__is_half(call->inputs[i].dtype))
            call->inputs[i].shape.dtype = IPU_FLOAT32;
    if (ipu__is_half(call->output.dtype))
        call->output.shape.dtype = IPU_FLOAT32;
    return IPU_OK;
}

/* Gives an output, whose shape the op has set, the dtype of the inputs if they
 * are halves. */
static void store_narrow(const struct ipu__call *call,
                         struct ipu__shape *output)
{
    if (call->op->raw || call->op->makes_wide || output->dtype != IPU_FLOAT32)
        return;
    for (int i = 0; i < call->op->ninputs; i++)
        if (ipu__is_half(call->inputs[i].dtype))
            output->dtype = call->inputs[i].dtype;
}

int ipu__call_shape(struct ipu__call *call)
{
    struct ipu__shape *output = &call->output.shape;

    IPU_TRY(ipu__show_wide(call));
    IPU_TRY(call->op->shape(call, output));
    store_narrow(call, output);
    /* Inputs that fit into memory can make an output that does not. */
    return ipu__shape_make(call->op->name, output->dtype, output->ndim,
                           output->extents, output);
}
