/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drops elements at random and makes the others larger, so that their sum is
 * expected to stay. Which ones, seed and step say: the derivative is the same
 * op on dy, and no mask has to be kept.
 */

#include "base/error.h"
#include "ops/op.h"
#include "ops/random/random.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    double rate = call->attributes->scale;

    *output = call->inputs[0].shape;
    if (!(rate >= 0 && rate < 1))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "dropout: the rate is %g, it must be 0 or more and "
                         "less than 1",
                         rate);
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, -1, "of any shape"));
    return ipu__expect(call, 1, IPU_INT32, 0, "the step, a scalar");
}

/* An element stays if its bits are at least the rate's part of all. */
IPU__WIDE(static, void, drop,
          (float *y, const float *x, struct ipu__random r, uint32_t least,
           float factor, int64_t first, int64_t count),
          (y, x, r, least, factor, first, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        float kept = x[i] * factor;

        y[i] = ipu__random_bits(r, first + i) >= least ? kept : 0;
    }
}

static int run(const struct ipu__call *call)
{
    double rate = call->attributes->scale;
    int32_t step = *(const int32_t *)call->inputs[1].data;

    drop(call->output.data, call->inputs[0].data,
         ipu__random_of(call->attributes->seed, step, 0),
         (uint32_t)(rate * 4294967296.0), (float)(1 / (1 - rate)), call->first,
         ipu__shape_count(&call->output.shape));
    return IPU_OK;
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    const ipu_tensor inputs[] = {dy, ipu__input(graph, node, 1)};

    dx[0] = ipu__add(graph, &ipu__dropout, inputs, &node->attributes);
}

const struct ipu__op ipu__dropout = {
    .name = "dropout",
    .ninputs = 2,
    .in_place = IPU__FIRST,
    .by_element = true,
    .slots = 2,
    .loop_slots = -1,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_dropout(ipu_graph *graph, ipu_tensor x, double rate,
                       uint64_t seed, ipu_tensor step)
{
    const struct ipu__attributes attributes = {.scale = rate, .seed = seed};

    return ipu__add(graph, &ipu__dropout, (const ipu_tensor[]){x, step},
                    &attributes);
}
