/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - the places of windows, and the options that builders accept.
 *
 * Padding is no zeros: a window that reaches over the edge has fewer pixels. So
 * no side may be padded by as much as a window is long, or there would be
 * windows of none. SAME pads as a convolution does, the odd row or column below
 * and to the right.
 */
#include "ops/windows/pool.h"

#include "base/error.h"

/* ------------------------------------------------------------ plain windows */

static int pooled(const struct ipu__call *call, const struct ipu__shape *x,
                  struct ipu__shape *output)
{
    int32_t size = call->attributes->size;

    if (size < 1)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s: a window of %d x %d is none",
                         call->op->name, (int)size, (int)size);
    *output = *x;
    output->extents[1] = x->extents[1] / size;
    output->extents[2] = x->extents[2] / size;
    if (output->extents[1] && output->extents[2])
        return IPU_OK;
    return ipu__fail(IPU_ERR_SHAPE,
                     "%s: %s is %s, smaller than a window of %d x %d",
                     call->op->name, call->inputs[0].name,
                     ipu__shape_print(x).text, (int)size, (int)size);
}

int ipu__pooling_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 4, "[n, h, w, c]"));
    return pooled(call, &call->inputs[0].shape, output);
}

int ipu__pooling_check(const struct ipu__call *call, const struct ipu__shape *x,
                       const struct ipu__shape *y)
{
    struct ipu__shape expected;

    IPU_TRY(ipu__expect_true(call, x->ndim == 4));
    IPU_TRY(pooled(call, x, &expected));
    expected.dtype = y->dtype;
    return ipu__expect_true(call, ipu__shape_equal(&expected, y));
}

/* -------------------------------------------------------------- any windows */

struct ipu__pooling ipu__pooling_of(const struct ipu__attributes *a,
                                    const struct ipu__shape *x,
                                    const struct ipu__shape *y)
{
    return (struct ipu__pooling){
        .n = x->extents[0],
        .h = x->extents[1],
        .w = x->extents[2],
        .c = x->extents[3],
        .ho = y->extents[1],
        .wo = y->extents[2],
        .window = {a->view[0], a->view[1]},
        .stride = {a->stride[0], a->stride[1]},
        .pad = {a->pad[0], a->pad[1]},
    };
}

struct ipu__window ipu__pooling_window(const struct ipu__pooling *p,
                                       int64_t row, int64_t column)
{
    int64_t top = row * p->stride[0] - p->pad[0], bottom = top + p->window[0];
    int64_t left = column * p->stride[1] - p->pad[1];
    int64_t right = left + p->window[1];

    return (struct ipu__window){
        .top = top < 0 ? 0 : top,
        .bottom = bottom < p->h ? bottom : p->h,
        .left = left < 0 ? 0 : left,
        .right = right < p->w ? right : p->w,
    };
}

static int check_windows(const struct ipu__call *call)
{
    const struct ipu__attributes *a = call->attributes;

    for (int i = 0; i < 2; i++) {
        if (a->view[i] < 1 || a->view[i] > INT32_MAX)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "%s: a window of %d x %d is none", call->op->name,
                             (int)a->view[0], (int)a->view[1]);
        if (a->stride[i] < 1)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "%s: stride %d, it must be at least 1",
                             call->op->name, (int)a->stride[i]);
        if (a->pad[i] < 0 || a->pad_after[i] < 0 || a->pad[i] >= a->view[i] ||
            a->pad_after[i] >= a->view[i])
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "%s: padding %d and %d, it must be 0 or more and "
                             "less than the window's %d",
                             call->op->name, (int)a->pad[i],
                             (int)a->pad_after[i], (int)a->view[i]);
    }
    return IPU_OK;
}

static int windows_of(const struct ipu__call *call, const struct ipu__shape *x,
                      struct ipu__shape *output)
{
    const struct ipu__attributes *a = call->attributes;

    IPU_TRY(check_windows(call));
    *output = *x;
    for (int i = 0; i < 2; i++) {
        int64_t room =
            x->extents[1 + i] + a->pad[i] + a->pad_after[i] - a->view[i];

        if (room < 0 || x->extents[1 + i] == 0)
            return ipu__fail(
                IPU_ERR_SHAPE, "%s: %s is %s, smaller than a window of %d x %d",
                call->op->name, call->inputs[0].name, ipu__shape_print(x).text,
                (int)a->view[0], (int)a->view[1]);
        output->extents[1 + i] = room / a->stride[i] + 1;
    }
    return IPU_OK;
}

int ipu__windows_shape(const struct ipu__call *call, struct ipu__shape *output)
{
    IPU_TRY(ipu__expect(call, 0, IPU_FLOAT32, 4, "[n, h, w, c]"));
    return windows_of(call, &call->inputs[0].shape, output);
}

int ipu__windows_check(const struct ipu__call *call, const struct ipu__shape *x,
                       const struct ipu__shape *y)
{
    struct ipu__shape expected;

    IPU_TRY(ipu__expect_true(call, x->ndim == 4));
    IPU_TRY(windows_of(call, x, &expected));
    expected.dtype = y->dtype;
    return ipu__expect_true(call, ipu__shape_equal(&expected, y));
}

void ipu__windows_cost(const struct ipu__call *call, struct ipu__work *work)
{
    const struct ipu__attributes *a = call->attributes;
    int64_t in = ipu__shape_count(&call->inputs[0].shape);
    int64_t pixels = work->outputs < in ? work->outputs : in;

    work->kind = IPU__WORK_ELEMENTS;
    work->elements = pixels * a->view[0] * a->view[1];
    work->loads = call->op->ninputs;
    work->arithmetic = 1;
}

/* ----------------------------------------------------------------- builders */

/* Sets the padding before and after that SAME needs for one side. */
static void pad_same(int64_t extent, int64_t window, int64_t stride,
                     int32_t *before, int32_t *after)
{
    int64_t wanted = ((extent + stride - 1) / stride - 1) * stride + window;
    int64_t zeros = wanted > extent ? wanted - extent : 0;

    *before = (int32_t)(zeros / 2);
    *after = (int32_t)(zeros - zeros / 2);
}

static int check_options(const struct ipu__op *op, const ipu_pool_options *o)
{
    if (!o || o->size < sizeof *o)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s: the options' size is %u, not %zu: set it",
                         op->name, o ? (unsigned)o->size : 0, sizeof *o);
    for (int i = 0; i < 4; i++)
        if (o->same && o->padding[i])
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "%s: padding %d besides SAME: choose one",
                             op->name, (int)o->padding[i]);
    return IPU_OK;
}

static bool is_plain(const struct ipu__attributes *a)
{
    return a->view[0] == a->view[1] && a->view[0] == a->stride[0] &&
           a->view[1] == a->stride[1] && !a->pad[0] && !a->pad[1] &&
           !a->pad_after[0] && !a->pad_after[1];
}

void ipu__pooling_slope(ipu_graph *graph, const struct ipu__node *node,
                        ipu_tensor dy, ipu_tensor *dx)
{
    struct ipu__attributes attributes = node->attributes;

    attributes.shape = graph->tensors[node->inputs[0]].shape;
    dx[0] = ipu__add(graph, node->op->slope, &dy, &attributes);
}

ipu_tensor ipu__pooling_with(ipu_graph *graph, const struct ipu__op *plain,
                             const struct ipu__op *any, ipu_tensor x,
                             const ipu_pool_options *o)
{
    struct ipu__attributes a = {0};
    const struct ipu__shape *shape;
    int32_t index = ipu__index_of(graph, plain, x);
    int status;

    if (index < 0)
        return (ipu_tensor){-1};
    status = check_options(plain, o);
    if (status < 0)
        return ipu__invalid(graph, status);
    shape = &graph->tensors[index].shape;
    a.keep = o->count_padding != 0;
    for (int i = 0; i < 2; i++) {
        a.view[i] = o->window[i];
        a.stride[i] = o->stride[i] ? o->stride[i] : o->window[i];
        a.pad[i] = o->padding[2 * i];
        a.pad_after[i] = o->padding[2 * i + 1];
        if (o->same && a.stride[i] > 0 && shape->ndim == 4)
            pad_same(shape->extents[1 + i], a.view[i], a.stride[i], &a.pad[i],
                     &a.pad_after[i]);
    }
    if (is_plain(&a)) {
        a = (struct ipu__attributes){.size = o->window[0]};
        return ipu__add(graph, plain, &x, &a);
    }
    return ipu__add(graph, any, &x, &a);
}
