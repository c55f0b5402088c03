/* SPDX-License-Identifier: Apache-2.0 */
/* a where an int32 condition is not 0, b where it is, with broadcasting. */
#include "base/error.h"
#include "ops/arrangement/broadcast.h"
#include "ops/walk.h"

static int shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_INT32, -1, "of any shape"));
    if (call->inputs[1].shape.dtype != call->inputs[2].shape.dtype)
        return ipu__unfit(call, 1, 2,
                          "the dtypes must be the same: ipu_cast one of them");
    return ipu__broadcast_shape(call, 3, output);
}

IPU__WIDE(static, void, select_each,
          (uint32_t * y, const int32_t *condition, const uint32_t *a,
           const uint32_t *b, int64_t count),
          (y, condition, a, b, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++) {
        uint32_t first = a[i], second = b[i];

        y[i] = condition[i] ? first : second;
    }
}

static void select_steps(uint32_t *y, const int32_t *condition,
                         const uint32_t *a, const uint32_t *b,
                         const int64_t *steps, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        y[i] = condition[i * steps[0]] ? a[i * steps[1]] : b[i * steps[2]];
}

static int run(const struct ipu__call *call)
{
    const int32_t *condition = call->inputs[0].data;
    const uint32_t *a = call->inputs[1].data, *b = call->inputs[2].data;
    uint32_t *y = call->output.data;
    struct ipu__walk w;
    ipu__strides strides[3];

    for (int i = 0; i < 3; i++)
        ipu__strides_broadcast(&call->inputs[i].shape, &call->output.shape,
                               strides[i]);
    for (ipu__walk_start(&w, &call->output.shape, 3, strides); !w.done;
         ipu__walk_next(&w), y += w.length) {
        const int64_t *o = w.offsets;

        if (w.steps[0] == 1 && w.steps[1] == 1 && w.steps[2] == 1)
            select_each(y, condition + o[0], a + o[1], b + o[2], w.length);
        else
            select_steps(y, condition + o[0], a + o[1], b + o[2], w.steps,
                         w.length);
    }
    return IPU_OK;
}

void ipu__select_gradient(ipu_graph *graph, const struct ipu__node *node,
                          int first, ipu_tensor condition, ipu_tensor dy,
                          ipu_tensor *dx)
{
    ipu_tensor zero = ipu__scalar_like(graph, dy, 0);

    for (int i = 0; i < 2; i++)
        if (ipu__wanted(dx[first + i]))
            dx[first + i] = ipu__unbroadcast(
                graph, node, first + i,
                ipu_select(graph, condition, i ? zero : dy, i ? dy : zero));
}

static void gradient(ipu_graph *graph, const struct ipu__node *node,
                     ipu_tensor dy, ipu_tensor *dx)
{
    ipu__select_gradient(graph, node, 1, ipu__input(graph, node, 0), dy, dx);
}

const struct ipu__op ipu__select = {
    .name = "select",
    .ninputs = 3,
    .in_place = IPU__SECOND,
    .by_element = true,
    .slots = 1,
    .shape = shape,
    .run = run,
    .gradient = gradient,
};

ipu_tensor ipu_select(ipu_graph *graph, ipu_tensor condition, ipu_tensor a,
                      ipu_tensor b)
{
    return ipu__add(graph, &ipu__select, (const ipu_tensor[]){condition, a, b},
                    NULL);
}
