/* SPDX-License-Identifier: Apache-2.0 */
/* [count]: offset, offset + scale, offset + 2 scale, ... */
#include <math.h>

#include "base/error.h"
#include "ops/op.h"

/* Returns whether an int32 range has whole numbers only, all of which fit. */
static bool fits_ints(const struct ipu__attributes *a)
{
    double count = (double)a->shape.extents[0];
    double last = a->offset + (count - 1) * a->scale;

    return a->offset == rint(a->offset) && a->scale == rint(a->scale) &&
           fabs(a->offset) <= INT32_MAX && fabs(a->scale) <= INT32_MAX &&
           fabs(last) <= INT32_MAX;
}

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    const struct ipu__attributes *a = call->attributes;

    *output = a->shape;
    IPU_TRY(ipu__expect_true(call, output->ndim == 1));
    if (output->dtype != IPU_INT32 || output->extents[0] == 0 || fits_ints(a))
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "range: from %g by %g are not all int32",
                     a->offset, a->scale);
}

static int run(const struct ipu__call *call)
{
    double first = call->attributes->offset, step = call->attributes->scale;
    int64_t count = call->output.shape.extents[0];
    int32_t *ints = call->output.data;
    float *floats = call->output.data;

    for (int64_t i = 0; i < count; i++) {
        double value = first + (double)i * step;

        if (call->output.shape.dtype == IPU_INT32)
            ints[i] = (int32_t)value;
        else
            floats[i] = (float)value;
    }
    return IPU_OK;
}

const struct ipu__op ipu__range = {
    .name = "range",
    .ninputs = 0,
    .slots = 1,
    .shape = shape,
    .run = run,
};

ipu_tensor ipu_range(ipu_graph *graph, ipu_dtype dtype, int64_t count,
                     double first, double step)
{
    struct ipu__attributes attributes = {.offset = first, .scale = step};
    int status = ipu__shape_make("range", dtype, 1, &count, &attributes.shape);

    if (status == IPU_OK && !(isfinite(first) && isfinite(step)))
        status =
            ipu__fail(IPU_ERR_ARGUMENT,
                      "range: from %g by %g: both must be finite", first, step);
    if (status < 0)
        return ipu__invalid(graph, status);
    return ipu__add(graph, &ipu__range, NULL, &attributes);
}
