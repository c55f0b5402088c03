/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scatter.c - operators whose indices name single elements or rows of several
 * dimensions: they become numbers in a tensor that has one dimension for all
 * of these, which the ops of the device gather from and scatter to.
 *
 * An index that is computed and out of range fails the run if the number that
 * it makes is out of range; indices that are known are all checked.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/operators/rows.h"

static ipu_tensor whole(ipu_graph *g, int64_t value)
{
    return ipu_fill(g, IPU_INT32, 0, NULL, (double)value);
}

static int check_size(struct ipu__onnx_call *call)
{
    if (onnx__size(call->inputs[0]) > INT32_MAX)
        return onnx__refuse(call, "its input has too many elements");
    return IPU_OK;
}

static ipu_tensor flat(ipu_graph *g, ipu_tensor t, int64_t rows, int64_t inner)
{
    return ipu_reshape(g, t, inner == 1 ? 1 : 2,
                       (const int64_t[]){rows, inner});
}

/* ------------------------------------------------------------------ updates */

/* Rows that are multiplied one after the other. */
enum { MOST_PRODUCTS = 64 };

/* Multiplies rows of x, which may occur more than once, by updates. */
static ipu_tensor multiply_rows(ipu_graph *g, ipu_tensor x, ipu_tensor indices,
                                ipu_tensor updates, int64_t count)
{
    for (int64_t k = 0; k < count; k++) {
        ipu_tensor at = ipu_gather(g, indices, whole(g, k), 0);
        ipu_tensor row = ipu_gather(g, updates, whole(g, k), 0);

        row = ipu_multiply(g, ipu_gather(g, x, at, 0), row);
        x = ipu_dynamic_update(g, x, at, row, 0);
    }
    return x;
}

/* Gives input 0 with `count` rows of `inner` elements changed by input 2.
 * indices has the numbers of the rows. */
static int give_updated(struct ipu__onnx_call *call, ipu_tensor indices,
                        int64_t count, int64_t inner)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t rows = onnx__size(x) / (inner > 0 ? inner : 1);
    ipu_graph *g = call->graph;
    ipu_tensor t = flat(g, onnx__tensor(call, x), rows, inner);
    ipu_tensor updates =
        flat(g, onnx__tensor(call, call->inputs[2]), count, inner);

    indices = ipu_reshape(g, indices, 1, &count);
    if (onnx__text_is(call, "reduction", "none", "none")) {
        t = ipu_scatter(g, t, indices, updates, 0);
    } else if (onnx__text_is(call, "reduction", "add", "none")) {
        IPU_TRY(onnx__want_floats(call, 0));
        t = ipu_scatter_add(g, t, indices, updates, 0);
    } else if (onnx__text_is(call, "reduction", "mul", "none")) {
        if (count > MOST_PRODUCTS)
            return onnx__refuse(call,
                                "products of more than %d rows are not "
                                "supported",
                                MOST_PRODUCTS);
        t = multiply_rows(g, t, indices, updates, count);
    } else {
        return onnx__refuse(call, "there is no such reduction");
    }
    return onnx__give(call, 0, x->type, ipu_reshape(g, t, x->ndim, x->extents));
}

/* --------------------------------------------------------- along one axis */

/* Returns the numbers of the elements of x that are at the place of each index,
 * but for the axis, where they are at the index. */
static ipu_tensor element_numbers(struct ipu__onnx_call *call,
                                  const struct ipu__onnx_value *x,
                                  struct ipu__onnx_value *index, int32_t axis)
{
    int64_t strides[IPU_MAX_DIMS], shape[IPU_MAX_DIMS];
    ipu_graph *g = call->graph;
    ipu_tensor sum;

    onnx__strides(x->ndim, x->extents, strides);
    sum = ipu_multiply(g, onnx__indices(call, index, x->extents[axis]),
                       whole(g, strides[axis]));
    for (int32_t d = 0; d < x->ndim; d++) {
        ipu_tensor steps;

        if (d == axis || index->extents[d] < 2)
            continue;
        for (int32_t i = 0; i < x->ndim; i++)
            shape[i] = i == d ? index->extents[d] : 1;
        steps =
            ipu_range(g, IPU_INT32, index->extents[d], 0, (double)strides[d]);
        sum = ipu_add(g, sum, ipu_reshape(g, steps, x->ndim, shape));
    }
    return sum;
}

/* Checks that indices have a place in x but for the axis. */
static int check_places(struct ipu__onnx_call *call, int32_t *axis)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    struct ipu__onnx_value *index = call->inputs[1];

    IPU_TRY(check_size(call));
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 0), x->ndim, axis));
    if (index->ndim != x->ndim)
        return onnx__refuse(call, "its indices do not fit its input");
    for (int32_t d = 0; d < x->ndim; d++)
        if (d != *axis && index->extents[d] > x->extents[d])
            return onnx__refuse(call, "its indices do not fit its input");
    return onnx__check_indices(call, index, x->extents[*axis]);
}

static int build_gather_elements(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *index = call->inputs[1];
    ipu_graph *g = call->graph;
    ipu_tensor numbers;
    int32_t axis;

    IPU_TRY(check_places(call, &axis));
    numbers = element_numbers(call, x, index, axis);
    return onnx__give(
        call, 0, x->type,
        ipu_gather(g, flat(g, onnx__tensor(call, x), onnx__size(x), 1), numbers,
                   0));
}

static int build_scatter_elements(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    int32_t axis;

    IPU_TRY(check_places(call, &axis));
    if (in[2]->ndim != in[1]->ndim || in[2]->type != in[0]->type ||
        memcmp(in[2]->extents, in[1]->extents,
               (size_t)in[1]->ndim * sizeof *in[1]->extents) != 0)
        return onnx__refuse(call, "its updates do not fit its indices");
    return give_updated(call, element_numbers(call, in[0], in[1], axis),
                        onnx__size(in[1]), 1);
}

/* ---------------------------------------------------- of several dimensions */

/* What the last dimension of indices names: elements of the first dimensions of
 * x, behind those that both have in common. */
struct places {
    int32_t common, named;
    int64_t count;       /* the indices */
    int64_t rows, inner; /* x is [rows, inner] */
};

static int read_places(struct ipu__onnx_call *call, int64_t common,
                       struct places *p)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    struct ipu__onnx_value *index = call->inputs[1];
    int64_t named;

    IPU_TRY(check_size(call));
    if (index->ndim < 1 || common < 0 || common >= index->ndim ||
        common >= x->ndim)
        return onnx__refuse(call, "its indices do not fit its input");
    named = index->extents[index->ndim - 1];
    if (named < 1 || named > x->ndim - common)
        return onnx__refuse(call, "its indices do not fit its input");
    for (int32_t d = 0; d < common; d++)
        if (index->extents[d] != x->extents[d])
            return onnx__refuse(call, "its indices do not fit its input");
    p->common = (int32_t)common;
    p->named = (int32_t)named;
    p->count = onnx__size(index) / named;
    p->rows = ipu__onnx_count(p->common + p->named, x->extents);
    p->inner = ipu__onnx_count(x->ndim - p->common - p->named,
                               x->extents + p->common + p->named);
    if (!onnx__is_whole(index->type))
        return onnx__refuse(call, "its indices are no integers");
    for (int64_t i = 0; onnx__known(call, index) && i < onnx__size(index);
         i++) {
        int64_t n = x->extents[common + i % named];

        if (index->wholes[i] < -n || index->wholes[i] >= n)
            return onnx__refuse(
                call, "index %" PRId64 " is none of %" PRId64 " elements",
                index->wholes[i], n);
    }
    return IPU_OK;
}

/* Returns the number of the row that each index names. */
static ipu_tensor row_numbers(struct ipu__onnx_call *call,
                              const struct places *p)
{
    const int64_t *extents = call->inputs[0]->extents;
    int64_t outer = ipu__onnx_count(p->common, extents);
    int64_t each = outer > 0 ? p->count / outer : 0, stride = 1;
    ipu_graph *g = call->graph;
    ipu_tensor all, sum = {-1};

    all = ipu_reshape(g, onnx__tensor(call, call->inputs[1]), 3,
                      (const int64_t[]){outer, each, p->named});
    for (int32_t j = p->named - 1; j >= 0; j--) {
        int64_t n = extents[p->common + j];
        ipu_tensor at = ipu_gather(g, all, whole(g, j), 2);

        at = ipu_select(g, ipu_less(g, at, whole(g, 0)),
                        ipu_add(g, at, whole(g, n)), at);
        at = ipu_multiply(g, at, whole(g, stride));
        sum = sum.id < 0 ? at : ipu_add(g, sum, at);
        stride *= n;
    }
    if (p->common > 0) {
        all = ipu_range(g, IPU_INT32, outer, 0, (double)stride);
        sum = ipu_add(g, sum,
                      ipu_reshape(g, all, 2, (const int64_t[]){outer, 1}));
    }
    return sum;
}

static int build_gather_nd(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *index = call->inputs[1];
    int64_t extents[2 * IPU_MAX_DIMS];
    int32_t ndim = index->ndim - 1;
    ipu_graph *g = call->graph;
    struct places p;
    ipu_tensor t;

    IPU_TRY(read_places(call, onnx__int(call, "batch_dims", 0), &p));
    for (int32_t d = 0; d < ndim; d++)
        extents[d] = index->extents[d];
    for (int32_t d = p.common + p.named; d < x->ndim; d++)
        extents[ndim++] = x->extents[d];
    IPU_TRY(onnx__check_shape(call, ndim, extents));
    t = flat(g, onnx__tensor(call, x), p.rows, p.inner);
    t = ipu_gather(g, t, row_numbers(call, &p), 0);
    return onnx__give(call, 0, x->type, ipu_reshape(g, t, ndim, extents));
}

static int build_scatter_nd(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    struct places p;

    IPU_TRY(read_places(call, 0, &p));
    if (in[2]->type != in[0]->type || onnx__size(in[2]) != p.count * p.inner)
        return onnx__refuse(call, "its updates do not fit its indices");
    return give_updated(call, row_numbers(call, &p), p.count, p.inner);
}

/* ---------------------------------------------------------------- sequences */

/* Element t of a sequence of length n is its element n - 1 - t, if t < n. */
static int build_reverse_sequence(struct ipu__onnx_call *call)
{
    static const int32_t turned[IPU_MAX_DIMS] = {1, 0, 2, 3, 4, 5, 6, 7};
    struct ipu__onnx_value *x = call->inputs[0], *lengths = call->inputs[1];
    int64_t time_axis = onnx__int(call, "time_axis", 0);
    int64_t batch_axis = onnx__int(call, "batch_axis", 1);
    bool turn = time_axis == 0;
    ipu_graph *g = call->graph;
    ipu_tensor t, steps, at, length;
    int64_t batch, time, inner, shape[IPU_MAX_DIMS];

    if (x->ndim < 2 || (time_axis != 0 && time_axis != 1) ||
        batch_axis != 1 - time_axis)
        return onnx__refuse(call, "its axes are not 0 and 1");
    IPU_TRY(check_size(call));
    batch = x->extents[batch_axis];
    time = x->extents[time_axis];
    inner = ipu__onnx_count(x->ndim - 2, x->extents + 2);
    if (lengths->ndim != 1 || lengths->extents[0] != batch ||
        !onnx__is_whole(lengths->type))
        return onnx__refuse(call, "its lengths do not fit its input");
    t = onnx__tensor(call, x);
    t = turn ? ipu_transpose(g, t, turned) : t;
    ipu_tensor_info(g, t, NULL, shape, NULL);
    length = ipu_minimum(g, onnx__tensor(call, lengths), whole(g, time));
    length = ipu_expand_dims(g, length, -1);
    steps = ipu_range(g, IPU_INT32, time, 0, 1);
    at = ipu_subtract(g, ipu_subtract(g, length, whole(g, 1)), steps);
    at = ipu_select(g, ipu_less(g, steps, length), at, steps);
    steps = ipu_range(g, IPU_INT32, batch, 0, (double)time);
    at = ipu_add(g, at, ipu_expand_dims(g, steps, -1));
    t = ipu_gather(g, flat(g, t, batch * time, inner), at, 0);
    t = ipu_reshape(g, t, x->ndim, shape);
    return onnx__give(call, 0, x->type, turn ? ipu_transpose(g, t, turned) : t);
}

/* ------------------------------------------------------ of known conditions */

/* Selects rows by a list of truths. */
static int build_compress(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *condition = call->inputs[1];
    bool flattened = !onnx__has_attribute(call, "axis");
    int64_t n = onnx__size(x), count = 0;
    ipu_graph *g = call->graph;
    ipu_tensor t, rows;
    int32_t axis = 0, *chosen;

    IPU_TRY(onnx__need(call, 1, "condition"));
    if (condition->ndim != 1 || condition->type != IPU_ONNX_BOOL)
        return onnx__refuse(call, "its condition is no list of bool");
    if (!flattened) {
        IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 0), x->ndim, &axis));
        n = x->extents[axis];
    }
    if (condition->extents[0] > n)
        return onnx__refuse(call, "its condition does not fit its input");
    IPU_TRY(ipu__new_array(&chosen, (size_t)condition->extents[0] + 1,
                           sizeof *chosen));
    for (int64_t i = 0; i < condition->extents[0]; i++)
        if (condition->wholes[i])
            chosen[count++] = (int32_t)i;
    rows = ipu_constant(g, IPU_INT32, 1, &count, chosen);
    free(chosen);
    t = onnx__tensor(call, x);
    return onnx__give(
        call, 0, x->type,
        ipu_gather(g, flattened ? flat(g, t, n, 1) : t, rows, axis));
}

/* The places of the elements that are not 0, [dimensions, elements]. */
static int build_non_zero(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t strides[IPU_MAX_DIMS], shape[2], *wholes, at = 0;
    float *floats;

    if (x->ndim == 0)
        return onnx__refuse(call, "a scalar has no places");
    IPU_TRY(onnx__need(call, 0, "input"));
    onnx__strides(x->ndim, x->extents, strides);
    shape[0] = x->ndim;
    shape[1] = 0;
    for (int64_t i = 0; i < onnx__size(x); i++)
        shape[1] += x->floats ? x->floats[i] != 0 : x->wholes[i] != 0;
    if (!onnx__room(call, 0, IPU_ONNX_INT64, 2, shape, &floats, &wholes))
        return onnx__refuse(call, "its output takes too much memory");
    for (int64_t i = 0; i < onnx__size(x); i++) {
        if (x->floats ? x->floats[i] == 0 : x->wholes[i] == 0)
            continue;
        for (int32_t d = 0; d < x->ndim; d++)
            wholes[d * shape[1] + at] = i / strides[d] % x->extents[d];
        at++;
    }
    return IPU_OK;
}

const struct ipu__onnx_operator onnx__scatter_rows[] = {
    {"Compress", 9, "axis", 2, 2, build_compress, NULL,
     "the condition must be known"},
    {"GatherElements", 11, "axis", 2, 2, build_gather_elements, NULL, NULL},
    {"GatherND", 11, "batch_dims", 2, 2, build_gather_nd, NULL, NULL},
    {"NonZero", 9, "", 1, 1, build_non_zero, NULL, "the input must be known"},
    {"ReverseSequence", 10, "batch_axis time_axis", 2, 2,
     build_reverse_sequence, NULL, NULL},
    {"Scatter", 9, "axis", 3, 3, build_scatter_elements, NULL, NULL},
    {"ScatterElements", 11, "axis reduction", 3, 3, build_scatter_elements,
     NULL,
     "reduction add of integers and mul of more than 64 elements are refused"},
    {"ScatterND", 11, "reduction", 3, 3, build_scatter_nd, NULL,
     "reduction add of integers and mul of more than 64 rows are refused"},
    {.name = NULL},
};
