/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accumulate.c - the two ops of accumulation (training/accumulate.c builds
 * them): "accumulate" adds a gradient, and "accumulated" is the same memory
 * under another name.
 */
#include "base/error.h"
#include "ops/copy.h"
#include "ops/costs.h"
#include "ops/op.h"

static int accumulate_shape(const struct ipu__call *call,
                            struct ipu__shape *output)
{
    IPU_TRY(ipu__same_floats(call, output));
    if (!ipu__shape_equal(&call->inputs[0].shape, &call->inputs[1].shape))
        return ipu__unfit(call, 0, 1, "they must be the same");
    return ipu__expect(call, 2, IPU_INT32, 0, "a number, a scalar");
}

IPU__WIDE(static, void, add_up,
          (float *y, const float *acc, const float *g, float fa, float fg,
           int64_t count),
          (y, acc, g, fa, fg, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = acc[i] * fa + g[i] * fg;
}

IPU__WIDE(static, void, begin,
          (float *y, const float *g, float fg, int64_t count),
          (y, g, fg, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = g[i] * fg;
}

/* order[0] is the reduction; factors[0] scales g in a mean. */
static int run_accumulate(const struct ipu__call *call)
{
    const struct ipu__attributes *a = call->attributes;
    int64_t count = ipu__shape_count(&call->output.shape);
    int32_t n = *(const int32_t *)call->inputs[2].data;
    double old = 1, new = a->factors[0];

    if (a->order[0] == IPU_REDUCTION_RUNNING_MEAN) {
        old = n / (n + 1.0);
        new = 1 / (n + 1.0);
    }
    if (n == 0)
        begin(call->output.data, call->inputs[1].data, (float)new, count);
    else
        add_up(call->output.data, call->inputs[0].data, call->inputs[1].data,
               (float)old, (float)new, count);
    return IPU_OK;
}

const struct ipu__op ipu__accumulate = {
    .name = "accumulate",
    .ninputs = 3,
    .in_place = IPU__FIRST,
    .slots = 1,
    .loop_slots = IPU__TWO_SLOTS,
    .shape = accumulate_shape,
    .run = run_accumulate,
};

const struct ipu__op ipu__accumulated = {
    .name = "accumulated",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .alias = true,
    .raw = true,
    .shape = ipu__same_shape,
    .run = ipu__pass_on,
};
