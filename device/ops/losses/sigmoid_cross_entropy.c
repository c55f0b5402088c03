/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cross entropy of sigmoid(x) with a target z in [0, 1], for each element:
 *
 *     y = max(x, 0) - x z + log(1 + exp(-|x|))
 *
 * which overflows nowhere. dx = (sigmoid(x) - z) dy, dz = -x dy.
 */
#include "base/error.h"
#include "ops/costs.h"
#include "ops/functions.h"
#include "ops/op.h"

IPU__WIDE(static, void, loss_each,
          (float *y, const float *x, const float *z, int64_t count),
          (y, x, z, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        float rest = ipu__softplus_rest(x[i]);

        y[i] = (x[i] > 0 ? x[i] : 0) - x[i] * z[i] + rest;
    }
}

static int run(const struct ipu__call *call)
{
    loss_each(call->output.data, call->inputs[0].data, call->inputs[1].data,
              ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    ipu_tensor x = ipu__input(graph, node, 0);
    ipu_tensor z = ipu__input(graph, node, 1), slope;

    if (ipu__wanted(dx[0])) {
        slope = ipu_subtract(graph, ipu_sigmoid(graph, x), z);
        dx[0] = ipu_multiply(graph, dy, slope);
    }
    if (ipu__wanted(dx[1]))
        dx[1] = ipu_multiply(graph, dy, ipu_negate(graph, x));
}

const struct ipu__op ipu__sigmoid_cross_entropy = {
    .name = "sigmoid_cross_entropy",
    IPU__OF_TWO,
    .functions = {IPU__EXP, IPU__LOG},
    .slots = 5,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_sigmoid_cross_entropy(ipu_graph *graph, ipu_tensor logits,
                                     ipu_tensor targets)
{
    return ipu__add(graph, &ipu__sigmoid_cross_entropy,
                    (const ipu_tensor[]){logits, targets}, NULL);
}
