/* SPDX-License-Identifier: Apache-2.0 */
/* Operators over axes: reductions, positions, sums along an axis, softmax. */
#include <inttypes.h>

#include "onnx/operators/rows.h"

typedef ipu_tensor reduce_fn(ipu_graph *g, ipu_tensor x, int32_t naxes,
                             const int32_t *axes, int32_t keepdims);

/* --------------------------------------------------------------- reductions */

static ipu_tensor reduce_l1(ipu_graph *g, ipu_tensor x, int32_t naxes,
                            const int32_t *axes, int32_t keep)
{
    return ipu_sum(g, ipu_abs(g, x), naxes, axes, keep);
}

static ipu_tensor reduce_sum_square(ipu_graph *g, ipu_tensor x, int32_t naxes,
                                    const int32_t *axes, int32_t keep)
{
    return ipu_sum(g, ipu_square(g, x), naxes, axes, keep);
}

static ipu_tensor reduce_l2(ipu_graph *g, ipu_tensor x, int32_t naxes,
                            const int32_t *axes, int32_t keep)
{
    return ipu_sqrt(g, reduce_sum_square(g, x, naxes, axes, keep));
}

static ipu_tensor reduce_log_sum(ipu_graph *g, ipu_tensor x, int32_t naxes,
                                 const int32_t *axes, int32_t keep)
{
    return ipu_log(g, ipu_sum(g, x, naxes, axes, keep));
}

/* The maximum is taken out, so that no exponential overflows. */
static ipu_tensor reduce_log_sum_exp(ipu_graph *g, ipu_tensor x, int32_t naxes,
                                     const int32_t *axes, int32_t keep)
{
    ipu_tensor most = ipu_max(g, x, naxes, axes, 1);
    ipu_tensor sum =
        ipu_sum(g, ipu_exp(g, ipu_subtract(g, x, most)), naxes, axes, keep);

    return ipu_add(g, ipu_log(g, sum), ipu_max(g, x, naxes, axes, keep));
}

/* ----------------------------------------------------------------- integers */

/*
 * The device reduces floats, which have 24 bits. An integer is 2048 high + low,
 * both of which are exact as floats: low has 11 bits, and high 21.
 */
enum { LOW = 2048 };

static void split(ipu_graph *g, ipu_tensor x, ipu_tensor *high, ipu_tensor *low)
{
    ipu_tensor base = ipu_fill(g, IPU_INT32, 0, NULL, LOW);
    ipu_tensor rest = onnx__remainder(g, x, base, false);

    *low = ipu_cast(g, rest, IPU_FLOAT32);
    *high = ipu_cast(g, ipu_subtract(g, x, rest), IPU_FLOAT32);
    *high = ipu_scale(g, *high, 1.0 / LOW, 0);
}

/* Computes 2048 high + low. */
static ipu_tensor join(ipu_graph *g, ipu_tensor high, ipu_tensor low)
{
    high = ipu_multiply(g, high, ipu_fill(g, IPU_INT32, 0, NULL, LOW));
    return ipu_add(g, high, low);
}

/* Sums of up to 8192 numbers of 11 bits are exact. */
enum { MOST_TERMS = 8192, PARTS = 3 };

/* Splits x into three parts of at most 11 bits, the highest first. */
static void split_parts(ipu_graph *g, ipu_tensor x, ipu_tensor *parts)
{
    split(g, x, &parts[1], &parts[2]);
    parts[0] = ipu_floor(g, ipu_scale(g, parts[1], 1.0 / LOW, 0));
    parts[1] = ipu_subtract(g, parts[1], ipu_scale(g, parts[0], LOW, 0));
}

/* Returns the integers of which the parts, of floats, are sums. */
static ipu_tensor join_parts(ipu_graph *g, const ipu_tensor *parts)
{
    ipu_tensor sum = ipu_cast(g, parts[0], IPU_INT32);

    for (int i = 1; i < PARTS; i++)
        sum = join(g, sum, ipu_cast(g, parts[i], IPU_INT32));
    return sum;
}

static ipu_tensor sum_whole(ipu_graph *g, ipu_tensor x, int32_t naxes,
                            const int32_t *axes, int32_t keep)
{
    ipu_tensor parts[PARTS];

    split_parts(g, x, parts);
    for (int i = 0; i < PARTS; i++)
        parts[i] = ipu_sum(g, parts[i], naxes, axes, keep);
    return join_parts(g, parts);
}

static ipu_tensor cumulate_whole(ipu_graph *g, ipu_tensor x, int32_t axis,
                                 bool exclusive, bool reverse)
{
    ipu_tensor parts[PARTS];

    split_parts(g, x, parts);
    for (int i = 0; i < PARTS; i++)
        parts[i] = ipu_cumulative_sum(g, parts[i], axis, exclusive, reverse);
    return join_parts(g, parts);
}

/* Finds the extreme high part, and the extreme low part of those that have it;
 * none is a low part that no other is beyond. */
static ipu_tensor find_extreme(ipu_graph *g, ipu_tensor x, reduce_fn *find,
                               double none, int32_t naxes, const int32_t *axes,
                               int32_t keep)
{
    ipu_tensor high, low, chosen;

    split(g, x, &high, &low);
    chosen = ipu_equal(g, high, find(g, high, naxes, axes, 1));
    low = ipu_select(g, chosen, low, ipu_fill(g, IPU_FLOAT32, 0, NULL, none));
    low = ipu_cast(g, find(g, low, naxes, axes, keep), IPU_INT32);
    high = ipu_cast(g, find(g, high, naxes, axes, keep), IPU_INT32);
    return join(g, high, low);
}

static ipu_tensor max_whole(ipu_graph *g, ipu_tensor x, int32_t naxes,
                            const int32_t *axes, int32_t keep)
{
    return find_extreme(g, x, ipu_max, -1, naxes, axes, keep);
}

static ipu_tensor min_whole(ipu_graph *g, ipu_tensor x, int32_t naxes,
                            const int32_t *axes, int32_t keep)
{
    return find_extreme(g, x, ipu_min, LOW, naxes, axes, keep);
}

/* Three functions compute a reduction: ops of the device, of floats and of
 * integers, and one of the host, of integers that are known. */
struct reduction {
    reduce_fn *make;
    int64_t (*host)(int64_t a, int64_t b); /* NULL: integers are refused */
    reduce_fn *make_whole;                 /* NULL: unless they are known */
    bool may_leave;                        /* int32 */
};

static int64_t host_sum(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static int64_t host_product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static int64_t host_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t host_most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static const struct reduction how_sum = {ipu_sum, host_sum, sum_whole, true};
static const struct reduction how_mean = {ipu_mean, NULL, NULL, false};
static const struct reduction how_max = {ipu_max, host_most, max_whole, false};
static const struct reduction how_min = {ipu_min, host_least, min_whole, false};
static const struct reduction how_prod = {ipu_prod, host_product, NULL, true};
static const struct reduction how_l1 = {reduce_l1, NULL, NULL, false};
static const struct reduction how_l2 = {reduce_l2, NULL, NULL, false};
static const struct reduction how_log_sum = {reduce_log_sum, NULL, NULL, false};
static const struct reduction how_log_sum_exp = {reduce_log_sum_exp, NULL, NULL,
                                                 false};
static const struct reduction how_sum_square = {reduce_sum_square, NULL, NULL,
                                                false};

/* Reduces all of a known list of integers, as shapes are. Returns whether it
 * did. */
static bool reduce_known(struct ipu__onnx_call *call, bool keep)
{
    const struct reduction *how = call->op->how;
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t one = 1, *wholes;
    float *floats;

    if (!how->host || x->ndim != 1 || onnx__size(x) == 0 ||
        !onnx__known(call, x) ||
        !onnx__room(call, 0, x->type, keep ? 1 : 0, &one, &floats, &wholes))
        return false;
    wholes[0] = x->wholes[0];
    for (int64_t i = 1; i < onnx__size(x); i++)
        wholes[0] = how->host(wholes[0], x->wholes[i]);
    return true;
}

static int reduce_wholes(struct ipu__onnx_call *call, int32_t naxes,
                         const int32_t *axes, bool keep)
{
    const struct reduction *how = call->op->how;
    struct ipu__onnx_value *x = call->inputs[0];
    bool positive = x->type == IPU_ONNX_UINT32 || x->type == IPU_ONNX_UINT64;
    int64_t terms = 1;

    if (reduce_known(call, keep))
        return IPU_OK;
    if (!how->make_whole || (how->may_leave && positive))
        return onnx__want_floats(call, 0);
    for (int32_t i = 0; i < naxes; i++)
        terms *= x->extents[axes[i]];
    if (how->may_leave && terms > MOST_TERMS)
        return onnx__refuse(call,
                            "sums of more than %d integers are not supported",
                            MOST_TERMS);
    return onnx__give(
        call, 0, x->type,
        how->make_whole(call->graph, onnx__tensor(call, x), naxes, axes, keep));
}

static int build_reduce(struct ipu__onnx_call *call)
{
    const struct reduction *how = call->op->how;
    struct ipu__onnx_value *x = call->inputs[0];
    bool keep = onnx__int(call, "keepdims", 1) != 0;
    bool noop = onnx__int(call, "noop_with_empty_axes", 0) != 0, given;
    bool chosen[MOST_AXES];
    int32_t axes[MOST_AXES], n = 0;

    IPU_TRY(onnx__axes(call, "axes", 1, x->ndim, chosen, &given));
    if (!given && noop)
        return onnx__give_same(call, 0, x);
    for (int32_t d = 0; d < x->ndim; d++)
        if (!given || chosen[d])
            axes[n++] = d;
    if (onnx__is_whole(x->type))
        return reduce_wholes(call, n, axes, keep);
    return onnx__give(
        call, 0, x->type,
        how->make(call->graph, onnx__tensor(call, x), n, axes, keep));
}

/* ---------------------------------------------------------------- positions */

static int build_position(struct ipu__onnx_call *call)
{
    ipu_tensor (*const *make)(ipu_graph *, ipu_tensor, int32_t) = call->op->how;
    struct ipu__onnx_value *x = call->inputs[0];
    bool keep = onnx__int(call, "keepdims", 1) != 0;
    bool last = onnx__int(call, "select_last_index", 0) != 0;
    ipu_graph *g = call->graph;
    ipu_tensor t;
    int32_t axis;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 0), x->ndim, &axis));
    t = onnx__tensor(call, x);
    t = (*make)(g, last ? ipu_reverse(g, t, 1, &axis) : t, axis);
    if (last)
        t = ipu_subtract(
            g,
            onnx__scalar(call, IPU_ONNX_INT64, (double)(x->extents[axis] - 1)),
            t);
    return onnx__give(call, 0, IPU_ONNX_INT64,
                      keep ? ipu_expand_dims(g, t, axis) : t);
}

static ipu_tensor (*const how_arg_max)(ipu_graph *, ipu_tensor,
                                       int32_t) = ipu_argmax;
static ipu_tensor (*const how_arg_min)(ipu_graph *, ipu_tensor,
                                       int32_t) = ipu_argmin;

static int build_cum_sum(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    bool exclusive = onnx__int(call, "exclusive", 0) != 0;
    bool reverse = onnx__int(call, "reverse", 0) != 0;
    bool whole = onnx__is_whole(x->type);
    double number = 0;
    int32_t axis;

    if (x->type == IPU_ONNX_UINT32 || x->type == IPU_ONNX_UINT64)
        IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__number(call, 1, "axis", &number));
    if (!(number >= -IPU_MAX_DIMS && number < IPU_MAX_DIMS))
        return onnx__refuse(call, "its axis is none");
    IPU_TRY(onnx__axis(call, (int64_t)number, x->ndim, &axis));
    if (whole && x->extents[axis] > MOST_TERMS)
        return onnx__refuse(call,
                            "sums of more than %d integers are not "
                            "supported",
                            MOST_TERMS);
    return onnx__give(call, 0, x->type,
                      whole ? cumulate_whole(call->graph, onnx__tensor(call, x),
                                             axis, exclusive, reverse)
                            : ipu_cumulative_sum(call->graph,
                                                 onnx__tensor(call, x), axis,
                                                 exclusive, reverse));
}

/* ------------------------------------------------------------------ softmax */

static ipu_tensor hardmax(ipu_graph *g, ipu_tensor x, int32_t axis)
{
    ipu_dtype dtype = IPU_FLOAT32;
    int64_t extents[IPU_MAX_DIMS];
    ipu_tensor most = ipu_argmax(g, x, axis), y;
    int32_t ndim = ipu_tensor_info(g, x, &dtype, extents, NULL);

    if (ndim < 0)
        return x;
    y = ipu_equal(g, ipu_expand_dims(g, most, -1),
                  ipu_range(g, IPU_INT32, extents[axis], 0, 1));
    return onnx__axis_back(g, ipu_cast(g, y, dtype), axis);
}

/* Before version 13, the dimensions from the axis on were taken together. */
static int build_softmax(struct ipu__onnx_call *call)
{
    ipu_tensor (*const *make)(ipu_graph *, ipu_tensor, int32_t) = call->op->how;
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t number = onnx__int(call, "axis", call->version < 13 ? 1 : -1);
    int64_t flat[2];
    ipu_tensor t;
    int32_t axis;

    IPU_TRY(onnx__want_floats(call, 0));
    IPU_TRY(onnx__axis(call, number, x->ndim, &axis));
    t = onnx__tensor(call, x);
    if (call->version >= 13)
        return onnx__give(call, 0, x->type, (*make)(call->graph, t, axis));
    flat[0] = ipu__onnx_count(axis, x->extents);
    flat[1] = ipu__onnx_count(x->ndim - axis, x->extents + axis);
    t = (*make)(call->graph, ipu_reshape(call->graph, t, 2, flat), 1);
    return onnx__give(call, 0, x->type,
                      ipu_reshape(call->graph, t, x->ndim, x->extents));
}

typedef ipu_tensor axis_fn(ipu_graph *, ipu_tensor, int32_t);
static axis_fn *const how_softmax = ipu_softmax_axis;
static axis_fn *const how_log_softmax = ipu_log_softmax_axis;
static axis_fn *const how_hardmax = hardmax;

#define REDUCE(name, how, limits)                                              \
    {                                                                          \
        name, 1, "axes keepdims", 1, 1, build_reduce, &how, limits             \
    }
#define FLOATS_ONLY "integers are refused"
#define KNOWN_ONLY "integers are refused, but for a list that is known"

const struct ipu__onnx_operator onnx__reduction_rows[] = {
    {"ArgMax", 1, "axis keepdims select_last_index", 1, 1, build_position,
     &how_arg_max, FLOATS_ONLY},
    {"ArgMin", 1, "axis keepdims select_last_index", 1, 1, build_position,
     &how_arg_min, FLOATS_ONLY},
    {"CumSum", 11, "exclusive reverse", 2, 2, build_cum_sum, NULL,
     "uint32, uint64 and sums of more than 8192 integers are refused; the axis "
     "must be known"},
    {"Hardmax", 1, "axis", 1, 1, build_softmax, &how_hardmax, NULL},
    {"LogSoftmax", 1, "axis", 1, 1, build_softmax, &how_log_softmax, NULL},
    REDUCE("ReduceL1", how_l1, FLOATS_ONLY),
    REDUCE("ReduceL2", how_l2, FLOATS_ONLY),
    REDUCE("ReduceLogSum", how_log_sum, FLOATS_ONLY),
    REDUCE("ReduceLogSumExp", how_log_sum_exp, FLOATS_ONLY),
    REDUCE("ReduceMax", how_max, NULL),
    REDUCE("ReduceMean", how_mean, FLOATS_ONLY),
    REDUCE("ReduceMin", how_min, NULL),
    REDUCE("ReduceProd", how_prod, KNOWN_ONLY),
    {"ReduceSum", 1, "axes keepdims noop_with_empty_axes", 1, 2, build_reduce,
     &how_sum,
     "uint32, uint64 and sums of more than 8192 integers are refused"},
    REDUCE("ReduceSumSquare", how_sum_square, FLOATS_ONLY),
    {"Softmax", 1, "axis", 1, 1, build_softmax, &how_softmax, NULL},
    {.name = NULL},
};
