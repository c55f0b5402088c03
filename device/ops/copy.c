/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - moves elements between memories of different layouts, row by row.
 *
 * Rows are as long as the two layouts allow (walk.h), and are copied whole
 * where both sides are dense. Where one side has its rows along another
 * dimension than the other, as in a transposition, tiles of both are copied, so
 * that each cache line is read and written once. Elements keep their bits,
 * whatever their dtype. transpose, slice, pad, concat, reverse and broadcast
 * run on it; reshape, assignments and identity pass elements on.
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

/* ----------------------------------------------------------------- in tiles */

/* Words of a side: a cache line. */
enum { TILE = 16 };

/* Elements of two dimensions: one dense in to, the other in from. */
struct tiles {
    int64_t rows, columns; /* columns: dense in to; rows: in from */
    int64_t to_pitch, from_pitch;
};

/* Copies one tile: to[r][c] = from[c][r]. */
static inline void copy_tile(const struct tiles *t, uint32_t *restrict to,
                             const uint32_t *restrict from, int64_t rows,
                             int64_t columns)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[r * t->to_pitch + c] = from[c * t->from_pitch + r];
}

static int64_t part_of(int64_t extent, int64_t first)
{
    return extent - first < TILE ? extent - first : TILE;
}

/* Copies all tiles of a walk whose dimension i is dense in from. The walk goes
 * through the other dimensions for each tile, so that what lies beside it is
 * still in the cache. */
static void copy_tiles(const struct ipu__walk *w, int32_t i, uint32_t *to,
                       const uint32_t *from)
{
    const struct tiles t = {w->extents[i], w->length, w->strides[0][i],
                            w->steps[1]};
    struct ipu__walk rest = *w;
    size_t after = (size_t)(w->ndim - i - 1);

    rest.ndim--;
    memmove(&rest.extents[i], &w->extents[i + 1], after * sizeof *rest.extents);
    for (int k = 0; k < 2; k++)
        memmove(&rest.strides[k][i], &w->strides[k][i + 1],
                after * sizeof *rest.strides[k]);
    for (int64_t r = 0; r < t.rows; r += TILE)
        for (int64_t c = 0; c < t.columns; c += TILE)
            for (struct ipu__walk at = rest; !at.done; ipu__walk_next(&at)) {
                uint32_t *tile = to + at.offsets[0] + r * t.to_pitch + c;
                const uint32_t *source =
                    from + at.offsets[1] + c * t.from_pitch + r;

                if (t.rows - r >= TILE && t.columns - c >= TILE)
                    copy_tile(&t, tile, source, TILE, TILE);
                else
                    copy_tile(&t, tile, source, part_of(t.rows, r),
                              part_of(t.columns, c));
            }
}

/* Returns the dimension outside of the rows that is dense in from, if rows are
 * dense in to alone; -1: there is none. */
static int32_t find_turned(const struct ipu__walk *w)
{
    if (w->done || w->steps[0] != 1 || w->steps[1] < 2)
        return -1;
    for (int32_t i = 0; i < w->ndim; i++)
        if (w->strides[1][i] == 1)
            return i;
    return -1;
}

void ipu__copy(const struct ipu__shape *shape, void *to,
               const ipu__strides to_strides, const void *from,
               const ipu__strides from_strides)
{
    int64_t bytes = (int64_t)ipu__dtype_bytes(shape->dtype);
    struct ipu__walk w;
    ipu__strides strides[2];
    int32_t turned;

    memcpy(strides[0], to_strides, sizeof strides[0]);
    memcpy(strides[1], from_strides, sizeof strides[1]);
    ipu__walk_start(&w, shape, 2, strides);
    turned = find_turned(&w);
    if (bytes == 4 && turned >= 0) {
        copy_tiles(&w, turned, to, from);
        return;
    }
    for (; !w.done; ipu__walk_next(&w)) {
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
