/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/walk.h"

#include <string.h>

/* Returns whether dimension i continues the innermost ones so far. */
static bool continues(const struct ipu__walk *w, int32_t outer, int32_t i,
                      const ipu__strides *strides)
{
    for (int32_t k = 0; k < w->noperands; k++)
        if (strides[k][i] != w->strides[k][outer] * w->extents[outer])
            return false;
    return true;
}

/* The shape's dimensions, innermost first, merged where possible and without
 * those of one element. */
static void merge_dimensions(struct ipu__walk *w,
                             const struct ipu__shape *shape,
                             const ipu__strides *strides)
{
    for (int32_t i = shape->ndim - 1; i >= 0; i--) {
        if (shape->extents[i] == 1)
            continue;
        if (w->ndim > 0 && continues(w, w->ndim - 1, i, strides)) {
            w->extents[w->ndim - 1] *= shape->extents[i];
            continue;
        }
        for (int32_t k = 0; k < w->noperands; k++)
            w->strides[k][w->ndim] = strides[k][i];
        w->extents[w->ndim++] = shape->extents[i];
    }
}

void ipu__walk_start(struct ipu__walk *w, const struct ipu__shape *shape,
                     int32_t noperands, const ipu__strides *strides)
{
    *w = (struct ipu__walk){.noperands = noperands, .length = 1};
    w->done = ipu__shape_count(shape) == 0;
    merge_dimensions(w, shape, strides);
    for (int32_t k = 0; k < noperands; k++)
        w->steps[k] = 1; /* A single element has no step. */
    if (w->ndim == 0)
        return;
    /* The innermost becomes the row. */
    w->length = w->extents[0];
    w->ndim--;
    memmove(w->extents, w->extents + 1, (size_t)w->ndim * sizeof *w->extents);
    for (int32_t k = 0; k < noperands; k++) {
        w->steps[k] = w->strides[k][0];
        memmove(w->strides[k], w->strides[k] + 1,
                (size_t)w->ndim * sizeof *w->strides[k]);
    }
}

void ipu__walk_next(struct ipu__walk *w)
{
    for (int32_t i = 0; i < w->ndim; i++) {
        for (int32_t k = 0; k < w->noperands; k++)
            w->offsets[k] += w->strides[k][i];
        if (++w->index[i] < w->extents[i])
            return;
        w->index[i] = 0;
        for (int32_t k = 0; k < w->noperands; k++)
            w->offsets[k] -= w->strides[k][i] * w->extents[i];
    }
    w->done = true;
}

void ipu__strides_of(const struct ipu__shape *shape, ipu__strides strides)
{
    int64_t stride = 1;

    for (int32_t i = shape->ndim - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->extents[i];
    }
}

void ipu__strides_broadcast(const struct ipu__shape *from,
                            const struct ipu__shape *to, ipu__strides strides)
{
    int32_t missing = to->ndim - from->ndim;
    ipu__strides own = {0};

    ipu__strides_of(from, own);
    for (int32_t i = 0; i < to->ndim; i++)
        strides[i] = i < missing || from->extents[i - missing] == 1
                         ? 0
                         : own[i - missing];
}
