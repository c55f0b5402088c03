/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements, to places that are known when the model is
 * loaded. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/operators/rows.h"

/* ---------------------------------------------------------------- transpose */

/* Reads the order of dimensions; without one they are reversed. */
static int read_order(struct ipu__onnx_call *call, int32_t ndim, int32_t *order)
{
    const struct ipu__onnx_ints *perm = onnx__ints(call, "perm");
    bool seen[IPU_MAX_DIMS] = {false};

    if (perm && (int64_t)perm->count != ndim)
        return onnx__refuse(call, "perm has %zu numbers for %d dimensions",
                            perm->count, (int)ndim);
    for (int32_t d = 0; d < ndim; d++) {
        IPU_TRY(onnx__axis(call, perm ? perm->at[d] : ndim - 1 - d, ndim,
                           &order[d]));
        if (seen[order[d]])
            return onnx__refuse(call, "perm has a dimension twice");
        seen[order[d]] = true;
    }
    return IPU_OK;
}

/* Notes of which tensor the output is the transposed matrices, if its rows have
 * other elements than x's. Nothing computes what no product takes. */
static void note_turned(struct ipu__onnx_call *call, int32_t *order)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int32_t n = x->ndim, last = n < 2 ? 0 : order[n - 1];
    bool moved = false;

    if (n < 2 || last == n - 1 || !onnx__wants(call, 0))
        return;
    order[n - 1] = order[n - 2];
    order[n - 2] = last;
    for (int32_t d = 0; d < n; d++)
        moved |= order[d] != d;
    call->outputs[0]->is_turned = true;
    call->outputs[0]->turned =
        moved ? ipu_transpose(call->graph, onnx__tensor(call, x), order)
              : onnx__tensor(call, x);
}

static int build_transpose(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t extents[IPU_MAX_DIMS], strides[IPU_MAX_DIMS], own[IPU_MAX_DIMS];
    int32_t order[IPU_MAX_DIMS];

    IPU_TRY(read_order(call, x->ndim, order));
    if (onnx__wants(call, 0)) /* in a loop it may have been built before */
        call->outputs[0]->is_turned = false;
    onnx__strides(x->ndim, x->extents, own);
    for (int32_t d = 0; d < x->ndim; d++) {
        extents[d] = x->extents[order[d]];
        strides[d] = own[order[d]];
    }
    if (onnx__view(call, 0, x, x->ndim, extents, strides, 0))
        return IPU_OK;
    IPU_TRY(
        onnx__give(call, 0, x->type,
                   ipu_transpose(call->graph, onnx__tensor(call, x), order)));
    note_turned(call, order);
    return IPU_OK;
}

/* ------------------------------------------------------------------- concat */

/* Copies known elements of all inputs. */
static bool fold_concat(struct ipu__onnx_call *call, int32_t axis,
                        const int64_t *extents)
{
    const struct ipu__onnx_value *first = call->inputs[0];
    int64_t outer = ipu__onnx_count(axis, extents), at = 0, *wholes;
    float *floats;

    if (!onnx__all_known(call) || !onnx__room(call, 0, first->type, first->ndim,
                                              extents, &floats, &wholes))
        return false;
    for (int64_t o = 0; o < outer; o++)
        for (int i = 0; i < call->ninputs; i++) {
            const struct ipu__onnx_value *x = call->inputs[i];
            int64_t inner = ipu__onnx_count(x->ndim - axis, x->extents + axis);

            for (int64_t j = 0; j < inner; j++, at++) {
                if (wholes)
                    wholes[at] = x->wholes[o * inner + j];
                else
                    floats[at] = x->floats[o * inner + j];
            }
        }
    return true;
}

static int check_concat(struct ipu__onnx_call *call, int32_t axis,
                        int64_t *extents)
{
    const struct ipu__onnx_value *first = call->inputs[0];

    memcpy(extents, first->extents, sizeof first->extents);
    extents[axis] = 0;
    for (int i = 0; i < call->ninputs; i++) {
        const struct ipu__onnx_value *x = call->inputs[i];

        if (!x || x->type != first->type || x->ndim != first->ndim)
            return onnx__refuse(call, "its inputs do not fit each other");
        for (int32_t d = 0; d < x->ndim; d++)
            if (d != axis && x->extents[d] != extents[d])
                return onnx__refuse(call, "its inputs do not fit each other");
        extents[axis] += x->extents[axis];
    }
    return IPU_OK;
}

static int build_concat(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *const *in = call->inputs;
    int64_t extents[IPU_MAX_DIMS];
    ipu_tensor *t, y;
    int32_t axis;
    bool last;

    if (!onnx__has_attribute(call, "axis"))
        return onnx__refuse(call, "its axis is missing");
    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 0), in[0]->ndim, &axis));
    IPU_TRY(check_concat(call, axis, extents));
    if (fold_concat(call, axis, extents))
        return IPU_OK;
    IPU_TRY(ipu__new_array(&t, (size_t)call->ninputs, sizeof *t));
    onnx__operands(call, call->ninputs, in, t, &last);
    if (last)
        axis = axis == 1 ? in[0]->ndim - 1 : axis > 1 ? axis - 1 : axis;
    y = ipu_concat(call->graph, call->ninputs, t, axis);
    free(t);
    return onnx__give_as(call, in[0]->type, y, last);
}

/* -------------------------------------------------------------------- parts */

/* A part of a tensor: where it begins in each dimension, how many elements it
 * has, and how far these are apart. */
struct part {
    int64_t starts[IPU_MAX_DIMS], counts[IPU_MAX_DIMS], steps[IPU_MAX_DIMS];
};

/* Takes every step-th element along an axis. The device has no op for it: the
 * axis is padded to whole steps and becomes two, of which the second has one
 * element left. */
static ipu_tensor take_steps(ipu_graph *g, ipu_tensor x, int32_t axis,
                             int64_t step)
{
    int64_t shape[IPU_MAX_DIMS], split[IPU_MAX_DIMS + 1];
    int64_t none[IPU_MAX_DIMS] = {0}, more[IPU_MAX_DIMS] = {0};
    int32_t ndim = ipu_tensor_info(g, x, NULL, shape, NULL);
    int64_t count = (shape[axis] + step - 1) / step;

    more[axis] = count * step - shape[axis];
    x = ipu_pad(g, x, none, more, 0);
    if (ndim == IPU_MAX_DIMS) /* one dimension less, if there is one */
        return (ipu_tensor){-1};
    for (int32_t d = 0; d <= ndim; d++)
        split[d] = d < axis        ? shape[d]
                   : d == axis     ? count
                   : d == axis + 1 ? step
                                   : shape[d - 1];
    x = ipu_reshape(g, x, ndim + 1, split);
    split[axis + 1] = 1;
    x = ipu_slice(g, x, (const int64_t[IPU_MAX_DIMS]){0}, split);
    shape[axis] = count;
    return ipu_reshape(g, x, ndim, shape);
}

static ipu_tensor take_part(ipu_graph *g, ipu_tensor x, int32_t ndim,
                            const struct part *part)
{
    int64_t starts[IPU_MAX_DIMS] = {0}, spans[IPU_MAX_DIMS] = {0};
    int32_t reversed[IPU_MAX_DIMS], n = 0;

    for (int32_t d = 0; d < ndim; d++) {
        int64_t step = part->steps[d] < 0 ? -part->steps[d] : part->steps[d];

        spans[d] = part->counts[d] == 0 ? 0 : (part->counts[d] - 1) * step + 1;
        starts[d] = part->steps[d] < 0 && spans[d] > 0
                        ? part->starts[d] - spans[d] + 1
                        : part->starts[d];
        starts[d] = spans[d] == 0 ? 0 : starts[d];
        if (part->steps[d] < 0)
            reversed[n++] = d;
    }
    x = ipu_slice(g, x, starts, spans);
    if (n > 0)
        x = ipu_reverse(g, x, n, reversed);
    for (int32_t d = 0; d < ndim; d++) {
        int64_t step = part->steps[d] < 0 ? -part->steps[d] : part->steps[d];

        if (step > 1 && part->counts[d] > 1)
            x = take_steps(g, x, d, step);
    }
    return x;
}

static int give_part(struct ipu__onnx_call *call, int i,
                     struct ipu__onnx_value *x, const struct part *part)
{
    int64_t strides[IPU_MAX_DIMS], first = 0;

    onnx__strides(x->ndim, x->extents, strides);
    for (int32_t d = 0; d < x->ndim; d++) {
        first += part->starts[d] * strides[d];
        strides[d] *= part->steps[d];
    }
    if (onnx__view(call, i, x, x->ndim, part->counts, strides, first))
        return IPU_OK;
    for (int32_t d = 0; d < x->ndim; d++)
        if (x->ndim == IPU_MAX_DIMS && part->steps[d] != 1 &&
            part->steps[d] != -1 && part->counts[d] > 1)
            return onnx__refuse(
                call, "steps in %d dimensions are not supported", IPU_MAX_DIMS);
    return onnx__give(
        call, i, x->type,
        take_part(call->graph, onnx__tensor(call, x), x->ndim, part));
}

static void whole_part(const struct ipu__onnx_value *x, struct part *part)
{
    for (int32_t d = 0; d < IPU_MAX_DIMS; d++) {
        part->starts[d] = 0;
        part->counts[d] = d < x->ndim ? x->extents[d] : 1;
        part->steps[d] = 1;
    }
}

/* Limits an index as Slice does. */
static int64_t limit(int64_t i, int64_t n, int64_t least, int64_t most)
{
    if (i < 0)
        i = i < -n ? least : i + n;
    return i < least ? least : i > most ? most : i;
}

static void slice_axis(struct part *part, int32_t axis, int64_t n,
                       int64_t start, int64_t end, int64_t step)
{
    int64_t size = step < 0 ? (step == INT64_MIN ? INT64_MAX : -step) : step;
    int64_t distance;

    start = step > 0 ? limit(start, n, 0, n) : limit(start, n, -1, n - 1);
    end = step > 0 ? limit(end, n, 0, n) : limit(end, n, -1, n - 1);
    distance = step > 0 ? end - start : start - end;
    part->starts[axis] = start < 0 ? 0 : start;
    part->counts[axis] =
        distance > 0 && size > 0 ? (distance - 1) / size + 1 : 0;
    part->steps[axis] = part->counts[axis] > 1 ? step : 1;
}

/* The numbers of Slice: inputs from version 10 on, attributes before. */
struct slices {
    const int64_t *starts, *ends, *axes, *steps; /* the last two may be NULL */
    int64_t count;
};

static int read_slice_list(struct ipu__onnx_call *call, int i, const char *name,
                           const int64_t **list, int64_t *count)
{
    const struct ipu__onnx_ints *ints = onnx__ints(call, name);

    *list = ints ? ints->at : NULL;
    *count = ints ? (int64_t)ints->count : 0;
    return onnx__in(call, i) ? onnx__numbers(call, i, name, list, count)
                             : IPU_OK;
}

static int read_slices(struct ipu__onnx_call *call, struct slices *s)
{
    int64_t ends, axes, steps;

    IPU_TRY(read_slice_list(call, 1, "starts", &s->starts, &s->count));
    IPU_TRY(read_slice_list(call, 2, "ends", &s->ends, &ends));
    IPU_TRY(read_slice_list(call, 3, "axes", &s->axes, &axes));
    IPU_TRY(read_slice_list(call, 4, "steps", &s->steps, &steps));
    if (ends != s->count || (s->axes && axes != s->count) ||
        (s->steps && steps != s->count))
        return onnx__refuse(call, "its lists have different lengths");
    return IPU_OK;
}

static int build_slice(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    bool seen[IPU_MAX_DIMS] = {false};
    struct slices s;
    struct part part;

    IPU_TRY(read_slices(call, &s));
    whole_part(x, &part);
    for (int64_t i = 0; i < s.count; i++) {
        int64_t step = s.steps ? s.steps[i] : 1;
        int32_t axis;

        IPU_TRY(onnx__axis(call, s.axes ? s.axes[i] : i, x->ndim, &axis));
        if (step == 0 || seen[axis])
            return onnx__refuse(call, "a step is 0, or an axis occurs twice");
        seen[axis] = true;
        slice_axis(&part, axis, x->extents[axis], s.starts[i], s.ends[i], step);
    }
    return give_part(call, 0, x, &part);
}

/* -------------------------------------------------------------------- split */

static int build_split(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t n = call->noutputs, count, at = 0, each;
    const int64_t *sizes;
    struct part part;
    int32_t axis;

    IPU_TRY(onnx__axis(call, onnx__int(call, "axis", 0), x->ndim, &axis));
    IPU_TRY(read_slice_list(call, 1, "split", &sizes, &count));
    if (n == 0 || (sizes ? count != n : x->extents[axis] % n != 0))
        return onnx__refuse(call, "it does not split evenly, or as it says");
    each = x->extents[axis] / n;
    for (int i = 0; i < n; i++) {
        int64_t size = sizes ? sizes[i] : each;

        if (size < 0 || size > x->extents[axis] - at)
            return onnx__refuse(call, "its parts are larger than its input");
        whole_part(x, &part);
        part.starts[axis] = at;
        part.counts[axis] = size;
        IPU_TRY(give_part(call, i, x, &part));
        at += size;
    }
    if (at != x->extents[axis])
        return onnx__refuse(call, "its parts are smaller than its input");
    return IPU_OK;
}

/* ------------------------------------------------------------- tile and pad */

static int build_tile(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t extents[IPU_MAX_DIMS];
    int32_t times[IPU_MAX_DIMS];
    const int64_t *repeats;
    int64_t count;

    IPU_TRY(onnx__numbers(call, 1, "repeats", &repeats, &count));
    if (count != x->ndim)
        return onnx__refuse(call, "its repeats do not fit its input");
    for (int32_t d = 0; d < x->ndim; d++) {
        if (repeats[d] < 0 || repeats[d] > INT32_MAX ||
            __builtin_mul_overflow(x->extents[d], repeats[d], &extents[d]))
            return onnx__refuse(call, "its repeats are too large or negative");
        times[d] = (int32_t)repeats[d];
    }
    IPU_TRY(onnx__check_shape(call, x->ndim, extents));
    return onnx__give(call, 0, x->type,
                      ipu_tile(call->graph, onnx__tensor(call, x), times));
}

/* Returns x with rows before and after, along an axis, that are those of the
 * edge, or mirrored at it. */
static ipu_tensor pad_axis(struct ipu__onnx_call *call, ipu_tensor x,
                           int32_t axis, int64_t n, int64_t before,
                           int64_t after, bool reflect)
{
    int64_t count = before + n + after;
    int32_t *rows;
    ipu_tensor indices;

    if (ipu__new_array(&rows, (size_t)count, sizeof *rows) < 0)
        return (ipu_tensor){-1};
    for (int64_t i = 0; i < count; i++) {
        int64_t at = i - before;

        if (reflect)
            at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
        rows[i] = (int32_t)(at < 0 ? 0 : at >= n ? n - 1 : at);
    }
    indices = ipu_constant(call->graph, IPU_INT32, 1, &count, rows);
    free(rows);
    return ipu_gather(call->graph, x, indices, axis);
}

/* Indices that a constant has; a few bytes can ask for any number. */
enum { MOST_INDICES = 1 << 22 };

/* Pads by elements of x itself. */
static int pad_by_own(struct ipu__onnx_call *call, const int64_t *pads,
                      bool reflect)
{
    struct ipu__onnx_value *x = call->inputs[0];
    ipu_tensor y = onnx__tensor(call, x);

    for (int32_t d = 0; d < x->ndim; d++) {
        int64_t before = pads[d], after = pads[x->ndim + d], n = x->extents[d];

        if (before < 0 || after < 0 || n == 0 ||
            before + n + after > MOST_INDICES ||
            (reflect && (before >= n || after >= n)))
            return onnx__refuse(call, "its pads are negative or too large");
        if (before > 0 || after > 0)
            y = pad_axis(call, y, d, n, before, after, reflect);
    }
    return onnx__give(call, 0, x->type, y);
}

/* Pads by a value. Negative numbers of elements are cut off. */
static int pad_by_value(struct ipu__onnx_call *call, const int64_t *pads,
                        double value)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int64_t before[IPU_MAX_DIMS], after[IPU_MAX_DIMS];
    struct part part;

    whole_part(x, &part);
    for (int32_t d = 0; d < x->ndim; d++) {
        int64_t left = pads[d], right = pads[x->ndim + d];

        before[d] = left > 0 ? left : 0;
        after[d] = right > 0 ? right : 0;
        part.starts[d] = left < 0 ? -left : 0;
        part.counts[d] -= part.starts[d] + (right < 0 ? -right : 0);
        if (part.counts[d] < 0)
            return onnx__refuse(call, "it cuts off more than there is");
    }
    return onnx__give(
        call, 0, x->type,
        onnx__pad(call->graph,
                  take_part(call->graph, onnx__tensor(call, x), x->ndim, &part),
                  before, after, value));
}

static int check_pads(struct ipu__onnx_call *call, const int64_t *pads,
                      int64_t count)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    int64_t extents[IPU_MAX_DIMS];

    if (!pads || count != 2 * x->ndim)
        return onnx__refuse(call, "its pads do not fit its input");
    for (int32_t d = 0; d < x->ndim; d++) {
        if (__builtin_add_overflow(x->extents[d], pads[d], &extents[d]) ||
            __builtin_add_overflow(extents[d], pads[x->ndim + d], &extents[d]))
            return onnx__refuse(call, "its pads are too large");
        if (pads[d] < -x->extents[d] || pads[x->ndim + d] < -x->extents[d])
            return onnx__refuse(call, "it cuts off more than there is");
    }
    return onnx__check_shape(call, x->ndim, extents);
}

static int build_pad(struct ipu__onnx_call *call)
{
    double value = onnx__float(call, "value", 0);
    const int64_t *pads;
    int64_t count;

    IPU_TRY(read_slice_list(call, 1, "pads", &pads, &count));
    IPU_TRY(check_pads(call, pads, count));
    IPU_TRY(onnx__number(call, 2, "value", &value));
    if (onnx__text_is(call, "mode", "constant", "constant"))
        return pad_by_value(call, pads, value);
    if (onnx__text_is(call, "mode", "reflect", "constant"))
        return pad_by_own(call, pads, true);
    if (onnx__text_is(call, "mode", "edge", "constant"))
        return pad_by_own(call, pads, false);
    return onnx__refuse(call, "there is no such mode");
}

/* -------------------------------------------------------- depth and space */

static int check_blocks(struct ipu__onnx_call *call, int64_t block)
{
    if (call->inputs[0]->ndim != 4 || block < 1 || block > INT32_MAX)
        return onnx__refuse(call, "its input is no image, or its blocks are "
                                  "wrong");
    return IPU_OK;
}

static ipu_tensor rearrange(struct ipu__onnx_call *call, const int64_t *six,
                            const int32_t *order, const int64_t *four)
{
    ipu_graph *g = call->graph;
    ipu_tensor x = onnx__tensor(call, call->inputs[0]);

    x = ipu_transpose(g, ipu_reshape(g, x, 6, six), order);
    return ipu_reshape(g, x, 4, four);
}

static int build_depth_to_space(struct ipu__onnx_call *call)
{
    static const int32_t dcr[] = {0, 3, 4, 1, 5, 2}, crd[] = {0, 1, 4, 2, 5, 3};
    const int64_t *e = call->inputs[0]->extents;
    int64_t b = onnx__int(call, "blocksize", 0), c;
    bool is_crd = onnx__text_is(call, "mode", "CRD", "DCR");

    IPU_TRY(check_blocks(call, b));
    if (!is_crd && !onnx__text_is(call, "mode", "DCR", "DCR"))
        return onnx__refuse(call, "there is no such mode");
    if (e[1] % b != 0 || e[1] / b % b != 0)
        return onnx__refuse(call, "its channels are no blocks");
    c = e[1] / b / b;
    return onnx__give(
        call, 0, call->inputs[0]->type,
        rearrange(call,
                  is_crd ? (const int64_t[]){e[0], c, b, b, e[2], e[3]}
                         : (const int64_t[]){e[0], b, b, c, e[2], e[3]},
                  is_crd ? crd : dcr,
                  (const int64_t[]){e[0], c, e[2] * b, e[3] * b}));
}

static int build_space_to_depth(struct ipu__onnx_call *call)
{
    static const int32_t order[] = {0, 3, 5, 1, 2, 4};
    const int64_t *e = call->inputs[0]->extents;
    int64_t b = onnx__int(call, "blocksize", 0);

    IPU_TRY(check_blocks(call, b));
    if (e[2] % b != 0 || e[3] % b != 0)
        return onnx__refuse(call, "its image is no whole number of blocks");
    return onnx__give(
        call, 0, call->inputs[0]->type,
        rearrange(call, (const int64_t[]){e[0], e[1], e[2] / b, b, e[3] / b, b},
                  order,
                  (const int64_t[]){e[0], e[1] * b * b, e[2] / b, e[3] / b}));
}

/* ---------------------------------------------------------------- triangles */

/* Makes a matrix of 0 and 1: 1 where the column number less the row number is
 * at least low and at most high. */
static ipu_tensor band(struct ipu__onnx_call *call, int64_t rows,
                       int64_t columns, int64_t low, int64_t high)
{
    ipu_graph *g = call->graph;
    int64_t vertical[] = {rows, 1};
    ipu_tensor r =
        ipu_reshape(g, ipu_range(g, IPU_INT32, rows, 0, 1), 2, vertical);
    ipu_tensor d = ipu_subtract(g, ipu_range(g, IPU_INT32, columns, 0, 1), r);

    return ipu_multiply(
        g,
        ipu_greater_equal(g, d,
                          onnx__scalar(call, IPU_ONNX_INT32, (double)low)),
        ipu_less_equal(g, d, onnx__scalar(call, IPU_ONNX_INT32, (double)high)));
}

static int64_t limit_diagonal(double k)
{
    return (int64_t)(k < -0x1p30 ? -0x1p30 : k > 0x1p30 ? 0x1p30 : k);
}

static int build_trilu(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0];
    bool upper = onnx__int(call, "upper", 1) != 0;
    double k = 0;
    ipu_tensor mask;

    IPU_TRY(onnx__number(call, 1, "diagonal", &k));
    if (x->ndim < 2 || x->extents[x->ndim - 1] > INT32_MAX / 2 ||
        x->extents[x->ndim - 2] > INT32_MAX / 2)
        return onnx__refuse(call, "its input is no matrix, or too large");
    mask = band(call, x->extents[x->ndim - 2], x->extents[x->ndim - 1],
                upper ? limit_diagonal(k) : -INT32_MAX,
                upper ? INT32_MAX : limit_diagonal(k));
    return onnx__give(call, 0, x->type,
                      ipu_select(call->graph, mask, onnx__tensor(call, x),
                                 onnx__scalar(call, x->type, 0)));
}

static int build_eye_like(struct ipu__onnx_call *call)
{
    const struct ipu__onnx_value *x = call->inputs[0];
    int64_t number = onnx__int(call, "dtype", x->type), k;
    int32_t type = (int32_t)number;
    ipu_tensor t;

    if (ipu__onnx_kind(number)->bytes == 0)
        return onnx__refuse(call, "its type is not supported");
    if (x->ndim != 2 || x->extents[0] > INT32_MAX / 2 ||
        x->extents[1] > INT32_MAX / 2)
        return onnx__refuse(call, "its input is no matrix, or too large");
    k = limit_diagonal((double)onnx__int(call, "k", 0));
    t = band(call, x->extents[0], x->extents[1], k, k);
    if (!onnx__is_whole(type))
        t = ipu_cast(call->graph, t, ipu__onnx_kind(type)->dtype);
    return onnx__give(call, 0, type, t);
}

const struct ipu__onnx_operator onnx__move_rows[] = {
    {"Concat", 4, "axis", 1, IPU__ONNX_ANY_NUMBER, build_concat, NULL, NULL},
    {"DepthToSpace", 1, "blocksize mode", 1, 1, build_depth_to_space, NULL,
     NULL},
    {"EyeLike", 9, "dtype k", 1, 1, build_eye_like, NULL, NULL},
    {"Pad", 2, "mode pads value", 1, 3, build_pad, NULL,
     "pads and value must be known"},
    {"Slice", 1, "starts ends axes", 1, 5, build_slice, NULL,
     "what is taken must be known"},
    {"SpaceToDepth", 1, "blocksize", 1, 1, build_space_to_depth, NULL, NULL},
    {"Split", 2, "axis split", 1, 2, build_split, NULL, "sizes must be known"},
    {"Tile", 6, "", 2, 2, build_tile, NULL, "repeats must be known"},
    {"Transpose", 1, "perm", 1, 1, build_transpose, NULL, NULL},
    {"Trilu", 14, "upper", 1, 2, build_trilu, NULL, "k must be known"},
    {.name = NULL},
};
