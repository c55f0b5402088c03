/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roi_pool.c - MaxRoiPool: the maxima of parts of regions of images.
 *
 * A region [image, x1, y1, x2, y2] is scaled and rounded to whole pixels, both
 * ends included, and divided into parts of equal size, whose pixels are rounded
 * outwards; those outside of the image do not count, and a part of none is 0.
 * The maximum is taken over rows first, then over columns. Regions may depend
 * on data: a part is a mask of the pixels in one direction.
 */
#include <math.h>

#include "onnx/operators/rows.h"

enum { IMAGE, X1, Y1, X2, Y2, COLUMNS };

/* More maxima than these would be too many ops. */
enum { MOST_PARTS = 256 };

/* Parts of all regions in one direction. */
struct parts {
    ipu_graph *g;
    int64_t count, pixels;
    ipu_tensor first, size; /* [regions, 1]: a pixel, and pixels of a part */
};

static ipu_tensor column(ipu_graph *g, ipu_tensor regions, int which)
{
    return ipu_gather(g, regions, ipu_fill(g, IPU_INT32, 0, NULL, which), 1);
}

/* Returns a column as numbers of pixels, [regions, 1]. */
static ipu_tensor pixels_of(struct ipu__onnx_call *call, ipu_tensor regions,
                            int which)
{
    ipu_graph *g = call->graph;
    double scale = onnx__float(call, "spatial_scale", 1);
    ipu_tensor x = ipu_scale(g, column(g, regions, which), scale, 0), size;

    /* A half is rounded away from 0. */
    size = ipu_floor(g, ipu_scale(g, ipu_abs(g, x), 1, 0.5));
    return ipu_expand_dims(g, ipu_multiply(g, ipu_sign(g, x), size), -1);
}

static struct parts divide(struct ipu__onnx_call *call, ipu_tensor regions,
                           int from, int to, int64_t count, int64_t pixels)
{
    ipu_graph *g = call->graph;
    struct parts p = {.g = g,
                      .count = count,
                      .pixels = pixels,
                      .first = pixels_of(call, regions, from)};
    ipu_tensor size = ipu_subtract(g, pixels_of(call, regions, to), p.first);

    size = ipu_maximum(g, ipu_scale(g, size, 1, 1),
                       ipu_fill(g, IPU_FLOAT32, 0, NULL, 1));
    /* A product with 1 / count would round whole numbers up to the next. */
    p.size =
        ipu_divide(g, size, ipu_fill(g, IPU_FLOAT32, 0, NULL, (double)count));
    return p;
}

/* Returns 1 for the pixels of part i, else 0: [regions, pixels]. */
static ipu_tensor mask_of(const struct parts *p, int64_t i)
{
    ipu_graph *g = p->g;
    ipu_tensor at = ipu_range(g, IPU_FLOAT32, p->pixels, 0, 1), from, to;

    from = ipu_floor(g, ipu_scale(g, p->size, (double)i, 0));
    to = ipu_ceil(g, ipu_scale(g, p->size, (double)i + 1, 0));
    from = ipu_greater_equal(g, at, ipu_add(g, p->first, from));
    to = ipu_less(g, at, ipu_add(g, p->first, to));
    return ipu_multiply(g, from, to);
}

/* x: [regions, ..., pixels] -> [regions, ..., parts], the largest of each. */
static ipu_tensor take_maxima(const struct parts *p, ipu_tensor x)
{
    ipu_tensor all[MOST_PARTS], none;
    int64_t shape[IPU_MAX_DIMS], mask[IPU_MAX_DIMS];
    ipu_dtype dtype = IPU_FLOAT32;
    int32_t ndim = ipu_tensor_info(p->g, x, &dtype, shape, NULL), axis;

    if (ndim < 2)
        return (ipu_tensor){-1};
    axis = ndim - 1;
    for (int32_t d = 0; d < ndim; d++)
        mask[d] = d == 0 || d == axis ? shape[d] : 1;
    none = ipu_fill(p->g, dtype, 0, NULL, -INFINITY);
    for (int64_t i = 0; i < p->count; i++)
        all[i] = ipu_max(
            p->g,
            ipu_select(p->g, ipu_reshape(p->g, mask_of(p, i), ndim, mask), x,
                       none),
            1, &axis, 0);
    return ipu_stack(p->g, (int32_t)p->count, all, axis);
}

static int check_regions(struct ipu__onnx_call *call, int64_t *height,
                         int64_t *width)
{
    const struct ipu__onnx_value *x = call->inputs[0], *r = call->inputs[1];
    const struct ipu__onnx_ints *shape = onnx__ints(call, "pooled_shape");

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__want_floats(call, 1));
    if (x->ndim != 4 || r->ndim != 2 || r->extents[1] != COLUMNS ||
        onnx__size(x) < 1 || r->extents[0] < 1)
        return onnx__refuse(call, "its regions do not fit its images");
    if (!shape || shape->count != 2 || shape->at[0] < 1 || shape->at[1] < 1 ||
        shape->at[0] > MOST_PARTS || shape->at[1] > MOST_PARTS)
        return onnx__refuse(call,
                            "its pooled_shape is not two numbers of 1 to "
                            "%d",
                            MOST_PARTS);
    *height = shape->at[0];
    *width = shape->at[1];
    return IPU_OK;
}

static int build_roi_pool(struct ipu__onnx_call *call)
{
    static const int32_t rows_last[] = {0, 1, 3, 2};
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_graph *g = call->graph;
    ipu_tensor regions, images, y, lowest, zero;
    ipu_dtype dtype = ipu__onnx_kind(x->type)->dtype;
    struct parts rows, columns;
    int64_t height, width;

    IPU_TRY(check_regions(call, &height, &width));
    regions = ipu_cast(g, onnx__tensor(call, call->inputs[1]), IPU_FLOAT32);
    images = ipu_cast(g, column(g, regions, IMAGE), IPU_INT32);
    rows = divide(call, regions, Y1, Y2, height, x->extents[2]);
    columns = divide(call, regions, X1, X2, width, x->extents[3]);
    y = ipu_gather(g, onnx__tensor(call, x), images, 0);
    y = take_maxima(&rows, ipu_transpose(g, y, rows_last));
    y = take_maxima(&columns, ipu_transpose(g, y, rows_last));
    lowest = ipu_fill(g, dtype, 0, NULL, -INFINITY);
    zero = ipu_fill(g, dtype, 0, NULL, 0);
    return onnx__give(call, 0, x->type,
                      ipu_select(g, ipu_equal(g, y, lowest), zero, y));
}

const struct ipu__onnx_operator onnx__roi_pool_rows[] = {
    {"MaxRoiPool", 1, "pooled_shape spatial_scale", 2, 2, build_roi_pool, NULL,
     "pooled_shape of more than 256 is refused"},
    {.name = NULL},
};
