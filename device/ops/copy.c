/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - moves elements between memories of different layouts, row by row.
 *
 * Rows are as long as the two layouts allow (walk.h), and are copied whole
 * where both sides are dense. Elements keep their bits, whatever their dtype.
 * transpose, slice, pad, concat, reverse and broadcast run on it;
 * reshape, assignments and identity pass elements on.
 */
#include "ops/copy.h"

#include <string.h>

/* Rows are copied as vectors if they are whole multiples of this. */
enum { IPU__VECTOR_BYTES = 8 };

static void copy_words(uint32_t *to, int64_t to_step, const uint32_t *from,
                       int64_t from_step, int64_t count)
{
    if (to_step == 1 && from_step == 0) {
        const uint32_t value = *from;

        for (int64_t i = 0; i < count; i++)
            to[i] = value;
        return;
    }
    for (int64_t i = 0; i < count; i++)
        to[i * to_step] = from[i * from_step];
}

static void copy_halves(uint16_t *to, int64_t to_step, const uint16_t *from,
                        int64_t from_step, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i * to_step] = from[i * from_step];
}

void ipu__copy(const struct ipu__shape *shape, void *to,
               const ipu__strides to_strides, const void *from,
               const ipu__strides from_strides)
{
    int64_t bytes = (int64_t)ipu__dtype_bytes(shape->dtype);
    struct ipu__walk w;
    ipu__strides strides[2];

    memcpy(strides[0], to_strides, sizeof strides[0]);
    memcpy(strides[1], from_strides, sizeof strides[1]);
    for (ipu__walk_start(&w, shape, 2, strides); !w.done; ipu__walk_next(&w)) {
        char *row = (char *)to + w.offsets[0] * bytes;
        const char *source = (const char *)from + w.offsets[1] * bytes;

        if (w.steps[0] == 1 && w.steps[1] == 1)
            memcpy(row, source, (size_t)(w.length * bytes));
        else if (bytes == 2)
            copy_halves((void *)row, w.steps[0], (const void *)source,
                        w.steps[1], w.length);
        else
            copy_words((void *)row, w.steps[0], (const void *)source,
                       w.steps[1], w.length);
    }
}

int ipu__copy_run(const struct ipu__call *call)
{
    int64_t bytes = (int64_t)ipu__dtype_bytes(call->output.shape.dtype);

    for (int i = 0; i < call->op->ninputs; i++) {
        struct ipu__moves m = {.to_offset = 0};

        call->op->moves(call, i, &m);
        ipu__copy(
            &m.shape, (char *)call->output.data + m.to_offset * bytes, m.to,
            (const char *)call->inputs[i].data + m.from_offset * bytes, m.from);
    }
    return IPU_OK;
}

int ipu__same_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    *output = call->inputs[0].shape;
    return IPU_OK;
}

int ipu__pass_on(const struct ipu__call *call)
{
    if (call->output.data != call->inputs[0].data)
        memcpy(call->output.data, call->inputs[0].data,
               ipu__shape_bytes(&call->output.shape));
    return IPU_OK;
}

/* Returns whether a row of one of the inputs is anything but whole vectors. */
static bool is_scattered(const struct ipu__call *call, int32_t element_bytes)
{
    for (int i = 0; i < call->op->ninputs; i++) {
        struct ipu__moves m = {.to_offset = 0};
        ipu__strides strides[2];
        struct ipu__walk w;

        call->op->moves(call, i, &m);
        memcpy(strides[0], m.to, sizeof strides[0]);
        memcpy(strides[1], m.from, sizeof strides[1]);
        ipu__walk_start(&w, &m.shape, 2, strides);
        if (w.steps[1] != 1 || w.length * element_bytes % IPU__VECTOR_BYTES)
            return true;
    }
    return false;
}

void ipu__copy_cost(const struct ipu__call *call, struct ipu__work *work)
{
    work->kind = IPU__WORK_MOVE; /* how many outputs is known */
    work->followed = true;
    work->scattered = is_scattered(call, work->element_bytes);
}
