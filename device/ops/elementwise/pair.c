/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/elementwise/pair.h"

#include "base/error.h"
#include "ops/arrangement/broadcast.h"
#include "ops/walk.h"

int ipu__pair_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    if (call->inputs[0].shape.dtype != call->inputs[1].shape.dtype)
        return ipu__unfit(call, 0, 1,
                          "the dtypes must be the same: ipu_cast one of them");
    return ipu__broadcast_shape(call, 2, output);
}

int ipu__pair_run(const struct ipu__call *call)
{
    const struct ipu__pair_loops *l = call->inputs[0].shape.dtype == IPU_INT32
                                          ? call->op->ints
                                          : call->op->floats;
    const char *a = call->inputs[0].data, *b = call->inputs[1].data;
    char *y = call->output.data;
    struct ipu__walk walk;
    ipu__strides strides[2];

    for (int i = 0; i < 2; i++)
        ipu__strides_broadcast(&call->inputs[i].shape, &call->output.shape,
                               strides[i]);
    for (ipu__walk_start(&walk, &call->output.shape, 2, strides); !walk.done;
         ipu__walk_next(&walk), y += walk.length * 4) {
        ipu__pair_loop *loop = walk.steps[1] == 0   ? l->first
                               : walk.steps[0] == 0 ? l->second
                                                    : l->both;

        loop(y, a + walk.offsets[0] * 4, b + walk.offsets[1] * 4, walk.length);
    }
    return IPU_OK;
}

ipu_tensor ipu__pair_add(ipu_graph *graph, const struct ipu__op *op,
                         ipu_tensor a, ipu_tensor b)
{
    return ipu__add(graph, op, (const ipu_tensor[]){a, b}, NULL);
}
