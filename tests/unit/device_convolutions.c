/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests convolutions with all options, and average pooling. Values are compared
 * with their definitions in double, derivatives with differences; wrong
 * arguments are refused.
 */
#include "suite.h"

#include <stdbool.h>

#include "layers.h"

static float kernel[MOST];

static const struct {
    int64_t n, h, w, ci, kh, kw, co;
    int32_t stride[2], dilation[2], groups, padding[4], same;
} convs[] = {
    {2, 7, 6, 4, 3, 3, 6, {1, 1}, {1, 1}, 2, {0, 0, 0, 0}, 0},
    {1, 9, 8, 2, 3, 2, 3, {1, 1}, {2, 3}, 1, {0, 0, 0, 0}, 0},
    {1, 9, 8, 2, 3, 3, 2, {2, 1}, {3, 2}, 1, {0, 0, 0, 0}, 1},
    {1, 5, 5, 3, 3, 3, 3, {1, 1}, {1, 1}, 3, {1, 1, 1, 1}, 0},
    {1, 4, 5, 1, 2, 3, 2, {3, 2}, {1, 1}, 1, {2, 0, 1, 3}, 0},
    {2, 6, 7, 6, 2, 3, 4, {2, 1}, {2, 2}, 2, {1, 2, 3, 0}, 0},
    {1, 3, 3, 2, 3, 3, 2, {1, 1}, {2, 2}, 2, {0, 0, 0, 0}, 1},
    {0, 4, 4, 2, 2, 2, 2, {1, 1}, {1, 1}, 2, {0, 0, 0, 0}, 0},
};
enum { CONVS = sizeof convs / sizeof *convs };

static ipu_tensor convolve(int c, ipu_tensor in, ipu_tensor k)
{
    ipu_conv_options o = {
        .size = sizeof o, .same = convs[c].same, .groups = convs[c].groups};

    memcpy(o.stride, convs[c].stride, sizeof o.stride);
    memcpy(o.dilation, convs[c].dilation, sizeof o.dilation);
    memcpy(o.padding, convs[c].padding, sizeof o.padding);
    return ipu_conv2d(d.graph, in, k, &o);
}

/* Pixel (row, column) of the output, channel co, by the definition. */
static double convolved(int c, int64_t image, int64_t row, int64_t column,
                        int64_t co, const int64_t *out)
{
    int64_t per = convs[c].ci / convs[c].groups;
    int64_t group = co / (convs[c].co / convs[c].groups);
    int64_t before[2] = {convs[c].padding[0], convs[c].padding[2]};
    const int64_t extents[] = {convs[c].h, convs[c].w};
    const int64_t kernels[] = {convs[c].kh, convs[c].kw};
    double sum = 0;

    for (int i = 0; convs[c].same && i < 2; i++) {
        int64_t all = (out[1 + i] - 1) * convs[c].stride[i] +
                      (kernels[i] - 1) * convs[c].dilation[i] + 1 - extents[i];

        before[i] = all > 0 ? all / 2 : 0;
    }
    for (int64_t ky = 0; ky < convs[c].kh; ky++)
        for (int64_t kx = 0; kx < convs[c].kw; kx++)
            for (int64_t k = 0; k < per; k++) {
                int64_t h = row * convs[c].stride[0] +
                            ky * convs[c].dilation[0] - before[0];
                int64_t w = column * convs[c].stride[1] +
                            kx * convs[c].dilation[1] - before[1];

                if (h >= 0 && h < convs[c].h && w >= 0 && w < convs[c].w)
                    sum +=
                        (double)x[((image * convs[c].h + h) * convs[c].w + w) *
                                      convs[c].ci +
                                  group * per + k] *
                        (double)kernel[((ky * convs[c].kw + kx) * per + k) *
                                           convs[c].co +
                                       co];
            }
    return sum;
}

LOOP_TEST(convolutions_follow_their_definition, 0, CONVS)
{
    ipu_tensor in =
        input(4, SHAPE(convs[_i].n, convs[_i].h, convs[_i].w, convs[_i].ci));
    ipu_tensor k =
        device_floats(&d, "k", 4,
                      SHAPE(convs[_i].kh, convs[_i].kw,
                            convs[_i].ci / convs[_i].groups, convs[_i].co));
    ipu_tensor result = convolve(_i, in, k);
    int64_t out[IPU_MAX_DIMS], count;

    MUST(ipu_tensor_info(d.graph, result, NULL, out, NULL));
    count = device_count(&d, result);
    device_fill(x, MOST, 1);
    device_fill(kernel, MOST, 2);
    for (int64_t i = 0; i < count; i++)
        wanted[i] = convolved(_i, i / out[3] / out[2] / out[1],
                              i / out[3] / out[2] % out[1], i / out[3] % out[2],
                              i % out[3], out);
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    device_connect(&d, "x", x, device_count(&d, in));
    device_connect(&d, "k", kernel, device_count(&d, k));
    device_connect(&d, "y", y, count);
    MUST(ipu_engine_run(d.engine));
    check_values(count, 1e-5);
}

LOOP_TEST(derivatives_of_convolutions, 0, CONVS)
{
    ipu_tensor in =
        variable(4, SHAPE(convs[_i].n, convs[_i].h, convs[_i].w, convs[_i].ci));

    check_gradients(convolve(
        _i, in,
        variable(4, SHAPE(convs[_i].kh, convs[_i].kw,
                          convs[_i].ci / convs[_i].groups, convs[_i].co))));
}

LOOP_TEST(convolutions_refuse, 0, 7)
{
    ipu_tensor in = input(4, SHAPE(1, 5, 5, 4));
    ipu_tensor k = device_floats(&d, "k", 4, SHAPE(3, 3, 2, 6));
    ipu_conv_options o = {.size = sizeof o, .stride = {1, 1}, .groups = 2};
    const char *words[] = {
        "conv2d: dilation -1, it must be at least 1",
        "conv2d: -1 groups, there must be at least 1",
        "conv2d: padding -2, it must be 0 or more",
        "conv2d: padding 1 besides SAME: choose one",
        "must divide by the groups",
        "of the images, divided by the groups",
        "the kernel is larger than the image",
    };

    switch (_i) {
    case 0: o.dilation[1] = -1; break;
    case 1: o.groups = -1; break;
    case 2: o.padding[3] = -2; break;
    case 3:
        o.padding[0] = 1;
        o.same = 1;
        break;
    case 4: o.groups = 3; break;
    case 5:
        o.groups = 4, k = device_floats(&d, "l", 4, SHAPE(3, 3, 2, 8));
        break;
    default: o.dilation[0] = 3;
    }
    refused(ipu_conv2d(d.graph, in, k, &o),
            _i < 4 ? IPU_ERR_ARGUMENT : IPU_ERR_SHAPE, words[_i]);
}

static int convolve_within(ipu_graph *graph, void *context, int32_t ninputs,
                           const ipu_tensor *inputs, int32_t noutputs,
                           ipu_tensor *outputs)
{
    const ipu_conv_options o = {.size = sizeof o, .stride = {1, 1}, .same = 1};
    const ipu_tensor *kernels = context;
    /* The body makes one tensor more, so that the array of tensors is full when
     * a kernel arrives and not when the convolution's result does. */
    ipu_tensor in = ipu_scale(graph, inputs[0], 1, 0);

    (void)ninputs, (void)noutputs;
    for (int i = 0; i < 40; i++)
        in = ipu_conv2d(graph, in, kernels[i], &o);
    outputs[0] = in;
    return 0;
}

/* Each convolution brings its kernel into the body, whose array of tensors
 * moves now and then. */
TEST(convolutions_in_loops)
{
    const float one[9] = {0, 0, 0, 0, 1, 0, 0, 0, 0};
    ipu_tensor in = input(4, SHAPE(1, 3, 3, 1)), out, kernels[40];
    char name[16];

    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "k%d", i);
        kernels[i] =
            ipu_variable(d.graph, name, IPU_FLOAT32, 4, SHAPE(3, 3, 1, 1));
    }
    MUST(ipu_repeat(d.graph, 2, convolve_within, kernels, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    device_connect(&d, "x", x, 9);
    device_connect(&d, "y", y, 9);
    device_fill(x, 9, 1);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "k%d", i);
        MUST(ipu_engine_write(d.engine, name, one, sizeof one));
    }
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 9; i++)
        ck_assert_float_eq(y[i], x[i]);
}

/* The input has no channels, and so no bytes. */
TEST(endless_kernels_are_refused)
{
    ipu_tensor in = input(4, SHAPE(1, 5, 5, 0));
    ipu_tensor k = device_floats(&d, "k", 4, SHAPE(INT64_C(1) << 40, 1, 0, 1));
    ipu_conv_options o = {
        .size = sizeof o, .stride = {1, 1}, .dilation = {1 << 30, 1}};

    refused(ipu_conv2d(d.graph, in, k, &o), IPU_ERR_SHAPE,
            "at most 2147483647");
}

LOOP_TEST(average_pooling_is_the_mean_of_windows, 0, 4)
{
    const int64_t sizes[][4] = {
        {5, 7, 3, 2}, {4, 4, 17, 2}, {6, 7, 1, 3}, {3, 2, 2, 1}};
    int64_t h = sizes[_i][0], w = sizes[_i][1], c = sizes[_i][2];
    int64_t s = sizes[_i][3], ho = h / s, wo = w / s;
    ipu_tensor in = input(4, SHAPE(2, h, w, c));

    device_fill(x, 2 * h * w * c, 1);
    for (int64_t i = 0; i < 2 * ho * wo * c; i++) {
        int64_t top = i / c / wo % ho * s, left = i / c % wo * s;

        wanted[i] = 0;
        for (int64_t k = 0; k < s * s; k++)
            wanted[i] +=
                (double)
                    x[((i / c / wo / ho * h + top + k / s) * w + left + k % s) *
                          c +
                      i % c] /
                (double)(s * s);
    }
    compute(ipu_avg_pool2d(d.graph, in, (int32_t)s), 2 * h * w * c);
    check_values(2 * ho * wo * c, 1e-6);
}

LOOP_TEST(derivatives_of_average_pooling, 0, 2)
{
    check_gradients(
        ipu_avg_pool2d(d.graph, variable(4, SHAPE(2, 5, 7, 3)), 2 + _i));
}

LOOP_TEST(average_pooling_refuses, 0, 3)
{
    if (_i == 0)
        refused(ipu_avg_pool2d(d.graph, input(4, SHAPE(1, 3, 3, 1)), 4),
                IPU_ERR_SHAPE, "avg_pool2d: x is float32 [1,3,3,1], smaller");
    else if (_i == 1)
        refused(ipu_avg_pool2d(d.graph, input(4, SHAPE(1, 3, 3, 1)), 0),
                IPU_ERR_ARGUMENT, "avg_pool2d: a window of 0 x 0 is none");
    else
        refused(ipu_avg_pool2d(d.graph, input(2, SHAPE(3, 3)), 1),
                IPU_ERR_SHAPE, "avg_pool2d: x is float32 [3,3], it must be");
}

TEST_MAIN("device_convolutions", .set_up = set_up, .tear_down = tear_down)
