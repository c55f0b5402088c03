/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest element over some axes; NaN if one is. */
#include <math.h>

#include "base/error.h"
#include "ops/costs.h"
#include "ops/reductions/reduce.h"
#include "ops/rows.h"

static int run(const struct ipu__call *call)
{
    const float *x = call->inputs[0].data;
    int64_t count = ipu__shape_count(&call->output.shape);
    float *y = call->output.data;
    struct ipu__walk w;

    for (int64_t i = 0; i < count; i++)
        y[i] = INFINITY;
    for (ipu__reduce_start(&w, call); !w.done; ipu__walk_next(&w)) {
        float *least = y + w.offsets[1];

        if (w.steps[1] == 0)
            *least = ipu__row_min(*least, x + w.offsets[0], w.length);
        else
            ipu__row_lower(least, x + w.offsets[0], w.length);
    }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    dx[0] = ipu__reduce_share(graph, node, dy);
}

const struct ipu__op ipu__min = {
    .name = "min",
    .ninputs = 1,
    .in_place = -1,
    .shape = ipu__reduced_some,
    .run = run,
    .cost = ipu__axes_sum_cost,
    .gradient = gradient,
};

ipu_tensor ipu_min(ipu_graph *graph, ipu_tensor x, int32_t naxes,
                   const int32_t *axes, int32_t keepdims)
{
    return ipu__reduce(graph, &ipu__min, x, naxes, axes, keepdims);
}
