/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overflows - counts the elements that are as large as a limit (scale),
 * infinite, or no number. Halves are read as they are stored, a block at a
 * time.
 */
#include <math.h>

#include "base/error.h"
#include "ops/half.h"
#include "ops/op.h"

enum { BLOCK = 1024 };

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    if (!ipu__is_half(call->inputs[0].shape.dtype))
        IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    *output = (struct ipu__shape){.dtype = IPU_FLOAT32};
    return IPU_OK;
}

/* NaN is not below anything. */
IPU__WIDE(static, int64_t, count_large,
          (const float *x, float limit, int64_t count), (x, limit, count))
{
    int64_t large = 0;

    for (int64_t i = 0; i < count; i++)
        large += !(fabsf(x[i]) < limit);
    return large;
}

static int run(const struct ipu__call *call)
{
    const struct ipu__operand *x = &call->inputs[0];
    int64_t count = ipu__shape_count(&x->shape), large = 0;
    float limit = (float)call->attributes->scale, block[BLOCK];

    if (x->shape.dtype == IPU_FLOAT32)
        large = count_large(x->data, limit, count);
    else
        for (int64_t i = 0; i < count; i += BLOCK) {
            int64_t n = count - i < BLOCK ? count - i : BLOCK;

            ipu__widen(x->shape.dtype, block, (const uint16_t *)x->data + i, n);
            large += count_large(block, limit, n);
        }
    *(float *)call->output.data = (float)large;
    return IPU_OK;
}

static void cost(const struct ipu__call *call, struct ipu__work *work)
{
    work->kind = IPU__WORK_SUM;
    work->elements = ipu__shape_count(&call->inputs[0].shape);
    if (ipu__is_half(call->inputs[0].shape.dtype))
        work->element_bytes = 2;
}

const struct ipu__op ipu__overflows = {
    .name = "overflows",
    .ninputs = 1,
    .raw = true,
    .shape = shape,
    .run = run,
    .cost = cost,
};
