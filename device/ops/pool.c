/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool.h"

#include "graph/error.h"

int ipu__pool_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__shape *x = &call->inputs[0].shape;
    int32_t size = call->attributes->size;
    char text[IPU__SHAPE_TEXT];

    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 4, "[n, h, w, c]"));
    if (size < 1)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: a window of %d x %d is none",
                         call->op->name, (int)size, (int)size);
    *output = *x;
    output->extents[1] = x->extents[1] / size;
    output->extents[2] = x->extents[2] / size;
    if (output->extents[1] && output->extents[2])
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "%s: %s is %s, smaller than a window of %d x %d",
                     call->op->name, call->inputs[0].name,
                     ipu__shape_print(x, text), (int)size, (int)size);
}
