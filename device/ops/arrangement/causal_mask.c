/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x: [..., rows, columns], and in each matrix a value wherever the column's
 * number is more than the row's by offset or more: what comes later than the
 * row. The derivative is the same of dy, with 0 for the value.
 */
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[0].shape;
    return ipu__expect(call, 0, IPU_FLOAT32, output->ndim >= 2 ? -1 : 2,
                       "[..., rows, columns]");
}

static int run(const struct ipu__call *call)
{
    const struct ipu__shape *s = &call->output.shape;
    int64_t rows = s->extents[s->ndim - 2], n = s->extents[s->ndim - 1];
    float value = (float)call->attributes->scale, *y = call->output.data;
    int64_t lines = n ? ipu__shape_count(s) / n : 0;
    const float *x = call->inputs[0].data;

    for (int64_t r = 0; r < lines; r++, x += n, y += n) {
        int64_t kept = r % rows + call->attributes->view[0];

        for (int64_t i = 0; i < n; i++)
            y[i] = i < kept ? x[i] : value;
    }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    struct ipu__attributes attributes = node->attributes;

    attributes.scale = 0;
    dx[0] = ipu__add(graph, &ipu__causal_mask, &dy, &attributes);
}

const struct ipu__op ipu__causal_mask = {
    .name = "causal_mask",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .slots = 2,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_causal_mask(ipu_graph *graph, ipu_tensor x, int32_t offset,
                           double value)
{
    const struct ipu__attributes attributes = {.view = {offset},
                                               .scale = value};

    return ipu__add(graph, &ipu__causal_mask, &x, &attributes);
}
