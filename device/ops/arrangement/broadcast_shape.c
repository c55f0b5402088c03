/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes that can be broadcast together, and their common shape. */
#include "ops/arrangement/broadcast.h"

/* Extent i, counted from the last, of a shape; 1 where it has none. */
static int64_t extent_from_last(const struct ipu__shape *shape, int32_t i)
{
    return i < shape->ndim ? shape->extents[shape->ndim - 1 - i] : 1;
}

bool ipu__shape_widen(struct ipu__shape *output, const struct ipu__shape *shape)
{
    struct ipu__shape wide = {
        .dtype = shape->dtype,
        .ndim = shape->ndim > output->ndim ? shape->ndim : output->ndim};

    for (int32_t i = 0; i < wide.ndim; i++) {
        int64_t a = extent_from_last(output, i);
        int64_t b = extent_from_last(shape, i);

        if (a != b && a != 1 && b != 1)
            return false;
        wide.extents[wide.ndim - 1 - i] = a == 1 ? b : a;
    }
    *output = wide;
    return true;
}

int ipu__broadcast_shape(const struct ipu__call *call, int count,
                         struct ipu__shape *output)
{
    *output = call->inputs[0].shape;
    for (int i = 1; i < count; i++)
        if (!ipu__shape_widen(output, &call->inputs[i].shape))
            return ipu__unfit(call, i - 1, i,
                              "dimensions, aligned at the last, must be equal, "
                              "1, or missing");
    return IPU_OK;
}
