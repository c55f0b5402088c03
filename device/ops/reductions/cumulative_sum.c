/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each element with all before it along an axis; axes[0]: without itself,
 * keep: with all after it instead. Sums are carried in double. The derivative
 * is the same sum, the other way round.
 */
#include "base/error.h"
#include "ops/op.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__same_floats(call, output));
    return ipu__expect_axis(call);
}

/* Sums up one line of n elements that are step elements from each other. */
static void run_line(float *y, const float *x, int64_t n, int64_t step,
                     bool exclusive)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++, x += step, y += step) {
        double with = sum + (double)*x;

        *y = (float)(exclusive ? sum : with);
        sum = with;
    }
}

static int run(const struct ipu__call *call)
{
    const struct ipu__shape *s = &call->output.shape;
    const struct ipu__attributes *a = call->attributes;
    int64_t n = s->extents[a->axis];
    int64_t inner = ipu__shape_span(s, a->axis + 1, s->ndim);
    int64_t lines = n ? ipu__shape_count(s) / n : 0;

    for (int64_t i = 0; i < lines; i++) {
        int64_t at = i / inner * n * inner + i % inner;

        if (a->keep)
            at += (n - 1) * inner;
        run_line((float *)call->output.data + at,
                 (const float *)call->inputs[0].data + at, n,
                 a->keep ? -inner : inner, a->axes[0]);
    }
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    struct ipu__attributes back = node->attributes;

    back.keep = !back.keep;
    dx[0] = ipu__add(graph, &ipu__cumulative_sum, &dy, &back);
}

const struct ipu__op ipu__cumulative_sum = {
    .name = "cumulative_sum",
    .ninputs = 1,
    .in_place = IPU__FIRST,
    .by_row = true,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_cumulative_sum(ipu_graph *graph, ipu_tensor x, int32_t axis,
                              int32_t exclusive, int32_t reverse)
{
    struct ipu__attributes attributes = {.axes = {exclusive != 0},
                                         .keep = reverse != 0};

    if (ipu__find_axis(graph, &ipu__cumulative_sum, x, axis, &attributes.axis) <
        0)
        return (ipu_tensor){-1};
    return ipu__add(graph, &ipu__cumulative_sum, &x, &attributes);
}
