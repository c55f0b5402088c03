/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that choose elements by indices, which may be computed. */
#include <inttypes.h>

#include "onnx/operators/rows.h"

ipu_tensor onnx__indices(struct ipu__onnx_call *call,
                         struct ipu__onnx_value *indices, int64_t n)
{
    ipu_tensor t = onnx__tensor(call, indices);
    ipu_graph *g = call->graph;

    return ipu_select(
        g, ipu_less(g, t, onnx__scalar(call, IPU_ONNX_INT64, 0)),
        ipu_add(g, t, onnx__scalar(call, IPU_ONNX_INT64, (double)n)), t);
}

int onnx__check_indices(struct ipu__onnx_call *call,
                        struct ipu__onnx_value *indices, int64_t n)
{
    if (!onnx__is_whole(indices->type))
        return onnx__refuse(call, "its indices are no integers");
    if (n > INT32_MAX)
        return onnx__refuse(call, "it chooses among too many elements");
    if (!onnx__known(call, indices))
        return IPU_OK;
    for (int64_t i = 0; i < onnx__size(indices); i++)
        if (indices->wholes[i] < -n || indices->wholes[i] >= n)
            return onnx__refuse(
                call, "index %" PRId64 " is none of %" PRId64 " elements",
                indices->wholes[i], n);
    return IPU_OK;
}

/* ------------------------------------------------------------------- gather */

static bool fold_gather(struct ipu__onnx_call *call, int32_t axis, int32_t ndim,
                        const int64_t *extents)
{
    struct ipu__onnx_value *x = call->inputs[0], *index = call->inputs[1];
    int64_t outer = ipu__onnx_count(axis, x->extents), n = x->extents[axis];
    int64_t inner = ipu__onnx_count(x->ndim - axis - 1, x->extents + axis + 1);
    int64_t to = 0, *wholes;
    float *floats;

    if (!onnx__all_known(call) ||
        !onnx__room(call, 0, x->type, ndim, extents, &floats, &wholes))
        return false;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < onnx__size(index); i++) {
            int64_t row = index->wholes[i] + (index->wholes[i] < 0 ? n : 0);

            for (int64_t j = 0; j < inner; j++, to++) {
                if (wholes)
                    wholes[to] = x->wholes[(o * n + row) * inner + j];
                else
                    floats[to] = x->floats[(o * n + row) * inner + j];
            }
        }
    return true;
}

static int build_gather(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *index = call->inputs[1];
    int64_t extents[2 * IPU_MAX_DIMS];
    int32_t axis, ndim = 0;

    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 0), x->ndim, &axis));
    IPU_TRY(onnx__check_indices(call, index, x->extents[axis]));
    for (int32_t d = 0; d < axis; d++)
        extents[ndim++] = x->extents[d];
    for (int32_t d = 0; d < index->ndim; d++)
        extents[ndim++] = index->extents[d];
    for (int32_t d = axis + 1; d < x->ndim; d++)
        extents[ndim++] = x->extents[d];
    IPU_TRY(onnx__check_shape(call, ndim, extents));
    if (fold_gather(call, axis, ndim, extents))
        return IPU_OK;
    return onnx__give(call, 0, x->type,
                      ipu_gather(call->graph, onnx__tensor(call, x),
                                 onnx__indices(call, index, x->extents[axis]),
                                 axis));
}

/* ------------------------------------------------------------------ one hot */

static int build_one_hot(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    int32_t ndim = in[0]->ndim + 1, axis, type = in[2]->type;
    static const int64_t first[] = {0}, second[] = {1}, one[] = {1};
    ipu_graph *g = call->graph;
    ipu_tensor x, values, hot;
    double depth = 0;

    IPU_TRY(onnx__number(call, 1, "depth", &depth));
    if (!(depth >= 0 && depth <= INT32_MAX) || ndim > IPU_MAX_DIMS ||
        in[2]->ndim != 1 || in[2]->extents[0] != 2)
        return onnx__refuse(call, "its depth or its values are wrong");
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", -1), ndim, &axis));
    x = onnx__tensor(call, in[0]);
    if (!onnx__is_whole(in[0]->type))
        x = ipu_cast(g, x, IPU_INT32);
    x = ipu_select(g, ipu_less(g, x, onnx__scalar(call, IPU_ONNX_INT32, 0)),
                   ipu_add(g, x, onnx__scalar(call, IPU_ONNX_INT32, depth)), x);
    hot = ipu_equal(g, ipu_expand_dims(g, x, -1),
                    ipu_range(g, IPU_INT32, (int64_t)depth, 0, 1));
    values = onnx__tensor(call, in[2]);
    hot = ipu_select(g, hot, ipu_slice(g, values, second, one),
                     ipu_slice(g, values, first, one));
    return onnx__give(call, 0, type, onnx__axis_back(g, hot, axis));
}

/* -------------------------------------------------------------------- top k */

static int build_top_k(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    bool largest = onnx__int(call, "largest", 1) != 0;
    double k = (double)onnx__int(call, "k", -1);
    ipu_graph *g = call->graph;
    ipu_tensor t, indices;
    int32_t axis;

    onnx__int(call, "sorted", 1); /* unsorted ones may be in any order */
    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__number(call, 1, "k", &k));
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", -1), x->ndim, &axis));
    if (!(k >= 0 && k <= (double)x->extents[axis] && k <= INT32_MAX))
        return onnx__refuse(call, "k is more than there are elements");
    t = onnx__axis_last(g, onnx__tensor(call, x), axis);
    t = ipu_top_k(g, largest ? t : ipu_negate(g, t), (int32_t)k, &indices);
    t = onnx__axis_back(g, largest ? t : ipu_negate(g, t), axis);
    IPU_TRY(onnx__give(call, 0, x->type, t));
    return onnx__give(call, 1, IPU_ONNX_INT64,
                      onnx__axis_back(g, indices, axis));
}

const struct ipu__onnx_operator onnx__index_rows[] = {
    {"Gather", 1, "axis", 2, 2, build_gather, NULL, NULL},
    {"OneHot", 9, "axis", 3, 3, build_one_hot, NULL, "the depth must be known"},
    {"TopK", 1, "axis k largest sorted", 1, 2, build_top_k, NULL,
     "integers are refused; k must be known"},
    {.name = NULL},
};
