/* SPDX-License-Identifier: Apache-2.0 */
/* The op max(x, 0), and its derivative from the output: 1 where y > 0. */
#include "ops/op.h"

IPU__WIDE(static, void, relu, (float *y, const float *x, int64_t count),
          (y, x, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        y[i] = x[i] <= 0 ? 0 : x[i]; /* NaN stays */
}

static int run(const struct ipu__call *call)
{
    relu(call->output.data, call->inputs[0].data,
         ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__relu = {
    .name = "relu",
    IPU__OF_ONE,
    .slots = 1,
    .run = run,
    .gradient = ipu__slope_by_output,
    .slope = &ipu__relu_grad,
};

/* dy, y -> dx */
IPU__WIDE(static, void, relu_grad,
          (float *dx, const float *dy, const float *y, int64_t count),
          (dx, dy, y, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        float slope = dy[i]; /* dy is read on either side of the choice */

        dx[i] = y[i] > 0 ? slope : 0;
    }
}

static int run_grad(const struct ipu__call *call)
{
    relu_grad(call->output.data, call->inputs[0].data, call->inputs[1].data,
              ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

const struct ipu__op ipu__relu_grad = {
    .name = "relu_grad",
    IPU__OF_TWO,
    .slots = 2,
    .loop_slots = -1,
    .run = run_grad,
};

ipu_tensor ipu_relu(ipu_graph *graph, ipu_tensor x)
{
    return ipu__add(graph, &ipu__relu, &x, NULL);
}
