/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools.c - what all pooling reads, and means and norms of windows.
 *
 * The device pools height and width. Depth is pooled after them, as the height
 * of images that have a row for each plane.
 */
#include "onnx/operators/window.h"

/* Adds what makes the last window complete (ceil_mode), unless it would begin
 * beyond the input: PyTorch, and ONNX from version 22 on, leave that one out.
 */
static int round_up(struct ipu__onnx_call *call, struct ipu__onnx_window *w,
                    bool counts_padding)
{
    for (int i = 0; i < WINDOW_AXES; i++) {
        int64_t n =
            w->input[i] + w->before[i] + w->after[i] - onnx__window_span(w, i);
        int64_t last = (n + w->stride[i] - 1) / w->stride[i] * w->stride[i];
        int64_t more = last - n;

        if (last >= w->input[i] + w->before[i])
            continue;
        if (more > 0 && counts_padding)
            return onnx__refuse(call, "ceil_mode with count_include_pad is not "
                                      "supported");
        w->after[i] += more;
    }
    return IPU_OK;
}

int onnx__read_pool(struct ipu__onnx_call *call, struct ipu__onnx_window *w,
                    bool counts_padding)
{
    IPU_TRY(onnx__window_input(call, w));
    if (!onnx__has_attribute(call, "kernel_shape"))
        return onnx__refuse(call, "its kernel_shape is missing");
    IPU_TRY(onnx__window_list(call, "kernel_shape", w->axes, 1, 1, w->size));
    IPU_TRY(onnx__window_read(call, w));
    if (onnx__int(call, "ceil_mode", 0) != 0)
        IPU_TRY(round_up(call, w, counts_padding));
    for (int i = 0; i < WINDOW_AXES; i++)
        if (w->before[i] >= onnx__window_span(w, i) ||
            w->after[i] >= onnx__window_span(w, i))
            return onnx__refuse(call, "windows of padding alone are not "
                                      "supported");
    return IPU_OK;
}

static ipu_pool_options pool_options(const struct ipu__onnx_window *w)
{
    ipu_pool_options o = {.size = sizeof o};

    for (int i = 0; i < 2; i++) {
        o.window[i] = (int32_t)w->size[i + 1];
        o.stride[i] = (int32_t)w->stride[i + 1];
        o.padding[2 * i] = (int32_t)w->before[i + 1];
        o.padding[2 * i + 1] = (int32_t)w->after[i + 1];
    }
    return o;
}

/* Pools the planes of images that are stacked. */
static ipu_tensor pool_depth(struct ipu__onnx_call *call,
                             const struct ipu__onnx_window *w,
                             onnx__pool_fn *pool, ipu_pool_options o,
                             ipu_tensor y)
{
    int64_t n = call->inputs[0]->extents[0], e[IPU_MAX_DIMS];
    ipu_graph *g = call->graph;

    if (ipu_tensor_info(g, y, NULL, e, NULL) != 4)
        return y;
    o.window[0] = (int32_t)w->size[0];
    o.stride[0] = (int32_t)w->stride[0];
    o.padding[0] = (int32_t)w->before[0];
    o.padding[1] = (int32_t)w->after[0];
    o.window[1] = o.stride[1] = 1;
    o.padding[2] = o.padding[3] = 0;
    y = ipu_reshape(g, y, 4,
                    (const int64_t[]){n, w->input[0], e[1] * e[2], e[3]});
    y = pool(g, y, &o);
    return ipu_reshape(
        g, y, 4,
        (const int64_t[]){n * onnx__window_count(w, 0), e[1], e[2], e[3]});
}

ipu_tensor onnx__pool(struct ipu__onnx_call *call,
                      const struct ipu__onnx_window *w, onnx__pool_fn *pool,
                      bool counts_padding)
{
    ipu_pool_options o = pool_options(w);
    ipu_tensor y;

    o.count_padding = counts_padding;
    y = pool(call->graph, onnx__window_images(call, call->inputs[0]), &o);
    return w->axes == 3 ? pool_depth(call, w, pool, o, y) : y;
}

/* --------------------------------------------------------------------- mean */

static int check_dilations(struct ipu__onnx_call *call,
                           const struct ipu__onnx_window *w)
{
    for (int i = 0; i < WINDOW_AXES; i++)
        if (w->dilation[i] != 1)
            return onnx__refuse(call, "dilations are not supported");
    return onnx__want_floats(call, 0);
}

static int build_average_pool(struct ipu__onnx_call *call)
{
    bool counts = onnx__int(call, "count_include_pad", 0) != 0;
    struct ipu__onnx_window w;

    IPU_TRY(onnx__read_pool(call, &w, counts));
    IPU_TRY(check_dilations(call, &w));
    return onnx__window_give(call, call->inputs[0]->type,
                             onnx__pool(call, &w, ipu_avg_pool2d_with, counts));
}

/* The mean of the powers of a window, padding counted, is their sum but for a
 * factor. */
static int build_lp_pool(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], powers;
    double p = (double)onnx__int(call, "p", 2), size = 1;
    ipu_graph *g = call->graph;
    struct ipu__onnx_window w;
    ipu_tensor y;

    IPU_TRY(onnx__read_pool(call, &w, true));
    IPU_TRY(check_dilations(call, &w));
    if (!(p >= 1))
        return onnx__refuse(call, "p is less than 1");
    powers = *x;
    powers.tensor.id = -1;
    powers.last = ipu_power(g, ipu_abs(g, onnx__last(call, x)),
                            onnx__scalar(call, x->type, p));
    call->inputs[0] = &powers;
    y = onnx__pool(call, &w, ipu_avg_pool2d_with, true);
    call->inputs[0] = x;
    for (int i = 0; i < WINDOW_AXES; i++)
        size *= (double)w.size[i];
    y = ipu_power(g, ipu_scale(g, y, size, 0),
                  onnx__scalar(call, x->type, 1 / p));
    return onnx__window_give(call, call->inputs[0]->type, y);
}

/* ---------------------------------------------------------- of whole images */

typedef ipu_tensor reduce_fn(ipu_graph *, ipu_tensor, int32_t, const int32_t *,
                             int32_t);

/* Reduces all dimensions but batch and channels. */
static int give_global(struct ipu__onnx_call *call, ipu_tensor t,
                       reduce_fn *make)
{
    struct ipu__onnx_value *x = call->inputs[0];
    int32_t axes[IPU_MAX_DIMS];

    for (int32_t d = 1; d < x->ndim - 1; d++)
        axes[d - 1] = d;
    return onnx__give_last(call, 0, x->type,
                           make(call->graph, t, x->ndim - 2, axes, 1));
}

static int check_global(struct ipu__onnx_call *call)
{
    IPU_TRY(onnx__want_floats(call, 0));
    if (call->inputs[0]->ndim < 3)
        return onnx__refuse(call, "its input has nothing to pool");
    return IPU_OK;
}

static int build_global_pool(struct ipu__onnx_call *call)
{
    reduce_fn *const *make = call->op->how;

    IPU_TRY(check_global(call));
    return give_global(call, onnx__last(call, call->inputs[0]), *make);
}

static int build_global_lp_pool(struct ipu__onnx_call *call)
{
    struct ipu__onnx_value *x = call->inputs[0], *y;
    double p = (double)onnx__int(call, "p", 2);
    ipu_graph *g = call->graph;

    IPU_TRY(check_global(call));
    if (!(p >= 1) || !onnx__wants(call, 0))
        return onnx__refuse(call, "p is less than 1");
    IPU_TRY(give_global(call,
                        ipu_power(g, ipu_abs(g, onnx__last(call, x)),
                                  onnx__scalar(call, x->type, p)),
                        ipu_sum));
    y = call->outputs[0];
    return onnx__give_last(
        call, 0, x->type,
        ipu_power(g, y->last, onnx__scalar(call, x->type, 1 / p)));
}

static reduce_fn *const how_mean = ipu_mean;
static reduce_fn *const how_max = ipu_max;

#define MEAN_LIMITS                                                            \
    "other than 3 to 5 dimensions, windows of padding alone and dilations "    \
    "are refused; so is ceil_mode with count_include_pad"

const struct ipu__onnx_operator onnx__pool_rows[] = {
    {"AveragePool", 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
     1, 1, build_average_pool, NULL, MEAN_LIMITS},
    {"GlobalAveragePool", 1, "", 1, 1, build_global_pool, &how_mean, NULL},
    {"GlobalLpPool", 2, "p", 1, 1, build_global_lp_pool, NULL, NULL},
    {"GlobalMaxPool", 1, "", 1, 1, build_global_pool, &how_max, NULL},
    {"LpPool", 2, "auto_pad ceil_mode dilations kernel_shape p pads strides", 1,
     1, build_lp_pool, NULL, MEAN_LIMITS},
    {.name = NULL},
};
