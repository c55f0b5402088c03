/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests convolution and pooling against loops in double that only follow the
 * definition.
 */
#include "suite.h"

#include <math.h>
#include <stdlib.h>

#include "device.h"

struct image {
    int64_t n, h, w, c;
};

static float at(const float *x, struct image s, int64_t n, int64_t y, int64_t w,
                int64_t c)
{
    if (y < 0 || y >= s.h || w < 0 || w >= s.w)
        return 0;
    return x[((n * s.h + y) * s.w + w) * s.c + c];
}

/* -------------------------------------------------------------- convolution */

static const struct conv_case {
    struct image x;
    int64_t kernel[3]; /* h, w, out */
    int32_t stride[2], same;
    struct image y;
} conv_cases[] = {
    {{1, 3, 3, 1}, {3, 3, 1}, {1, 1}, 0, {1, 1, 1, 1}},
    {{2, 6, 5, 3}, {1, 1, 4}, {1, 1}, 0, {2, 6, 5, 4}},
    {{2, 6, 5, 3}, {3, 3, 4}, {1, 1}, 0, {2, 4, 3, 4}},
    {{3, 7, 9, 2}, {2, 5, 3}, {1, 1}, 0, {3, 6, 5, 3}},
    {{3, 7, 9, 2}, {2, 5, 3}, {2, 3}, 0, {3, 3, 2, 3}},
    {{1, 5, 1, 7}, {4, 1, 1}, {1, 4}, 0, {1, 2, 1, 1}},
    {{2, 6, 5, 3}, {3, 3, 4}, {1, 1}, 1, {2, 6, 5, 4}},
    {{2, 6, 5, 3}, {2, 4, 4}, {1, 1}, 1, {2, 6, 5, 4}},
    {{2, 7, 8, 1}, {3, 3, 2}, {2, 2}, 1, {2, 4, 4, 2}},
    {{2, 8, 7, 2}, {3, 2, 2}, {3, 2}, 1, {2, 3, 4, 2}},
    {{1, 2, 2, 1}, {5, 5, 2}, {1, 1}, 1, {1, 2, 2, 2}},
    {{1, 6, 6, 1}, {1, 1, 1}, {4, 5}, 1, {1, 2, 2, 1}},
    {{8, 28, 28, 1}, {3, 3, 32}, {1, 1}, 0, {8, 26, 26, 32}},
    {{3, 9, 8, 130}, {3, 3, 5}, {1, 1}, 1, {3, 9, 8, 5}},
    {{0, 6, 5, 3}, {3, 3, 4}, {1, 1}, 0, {0, 4, 3, 4}},
    {{2, 6, 5, 0}, {3, 3, 4}, {1, 1}, 0, {2, 4, 3, 4}},
    {{2, 6, 5, 3}, {3, 3, 0}, {1, 1}, 0, {2, 4, 3, 0}},
};
enum { CONV_CASES = sizeof conv_cases / sizeof *conv_cases };

/* Returns the zeros above, or to the left, by TensorFlow's rule for SAME. */
static int64_t pad_before(int64_t extent, int64_t out, int64_t kernel,
                          int64_t stride)
{
    int64_t pad = (out - 1) * stride + kernel - extent;

    return pad > 0 ? pad / 2 : 0;
}

static double conv_at(const struct conv_case *c, const float *x,
                      const float *kernel, int64_t n, int64_t y, int64_t w,
                      int64_t out)
{
    int64_t kh = c->kernel[0], kw = c->kernel[1], co = c->kernel[2];
    int64_t top = y * c->stride[0], left = w * c->stride[1];
    double sum = 0;

    if (c->same) {
        top -= pad_before(c->x.h, c->y.h, kh, c->stride[0]);
        left -= pad_before(c->x.w, c->y.w, kw, c->stride[1]);
    }
    for (int64_t i = 0; i < kh; i++)
        for (int64_t j = 0; j < kw; j++)
            for (int64_t k = 0; k < c->x.c; k++)
                sum += (double)at(x, c->x, n, top + i, left + j, k) *
                       (double)kernel[((i * kw + j) * c->x.c + k) * co + out];
    return sum;
}

static void check_conv(const struct conv_case *c, const float *x,
                       const float *kernel, const float *y)
{
    double depth = (double)(c->kernel[0] * c->kernel[1] * c->x.c);

    for (int64_t n = 0; n < c->y.n; n++)
        for (int64_t h = 0; h < c->y.h; h++)
            for (int64_t w = 0; w < c->y.w; w++)
                for (int64_t k = 0; k < c->y.c; k++)
                    ck_assert_double_eq_tol((double)at(y, c->y, n, h, w, k),
                                            conv_at(c, x, kernel, n, h, w, k),
                                            1e-6 + 2e-7 * depth);
}

LOOP_TEST(convolution_is_the_sum_over_its_window, 0, CONV_CASES)
{
    const struct conv_case *c = &conv_cases[_i];
    ipu_conv_options options = {.size = sizeof options,
                                .stride = {c->stride[0], c->stride[1]},
                                .same = c->same};
    struct device d = device_new();
    ipu_tensor x =
        device_floats(&d, "x", 4, SHAPE(c->x.n, c->x.h, c->x.w, c->x.c));
    ipu_tensor kernel =
        device_floats(&d, "kernel", 4,
                      SHAPE(c->kernel[0], c->kernel[1], c->x.c, c->kernel[2]));
    ipu_tensor y = ipu_conv2d(d.graph, x, kernel, &options);
    int64_t sizes[3] = {device_count(&d, x), device_count(&d, kernel),
                        device_count(&d, y)};
    float *data[3];

    for (int i = 0; i < 3; i++) {
        data[i] = malloc((size_t)sizes[i] * sizeof(float) + 1);
        device_fill(data[i], sizes[i], (uint64_t)(10 * _i + i));
    }
    ck_assert_int_eq(sizes[2], c->y.n * c->y.h * c->y.w * c->y.c);
    MUST(ipu_output(d.graph, "y", y));
    device_load(&d);
    device_connect(&d, "x", data[0], sizes[0]);
    device_connect(&d, "kernel", data[1], sizes[1]);
    device_connect(&d, "y", data[2], sizes[2]);
    /* The engine runs twice: leftovers of one run must not matter to the
     * next. */
    MUST(ipu_engine_run(d.engine));
    memset(data[2], 0xff, (size_t)sizes[2] * sizeof(float));
    MUST(ipu_engine_run(d.engine));
    check_conv(c, data[0], data[1], data[2]);
    for (int i = 0; i < 3; i++)
        free(data[i]);
    device_free(&d);
}

/* ------------------------------------------------------------------ pooling */

static const struct pool_case {
    struct image x;
    int32_t size;
} pool_cases[] = {
    {{1, 2, 2, 1}, 2}, {{2, 6, 4, 3}, 2},    {{2, 7, 5, 3}, 2},
    {{3, 8, 7, 2}, 3}, {{2, 4, 5, 17}, 1},   {{1, 5, 6, 2}, 5},
    {{0, 4, 4, 2}, 2}, {{4, 26, 26, 32}, 2}, {{2, 4, 4, 0}, 2},
};
enum { POOL_CASES = sizeof pool_cases / sizeof *pool_cases };

static float window_maximum(const struct pool_case *c, const float *x,
                            int64_t n, int64_t y, int64_t w, int64_t k)
{
    float most = -INFINITY;

    for (int64_t i = 0; i < c->size; i++)
        for (int64_t j = 0; j < c->size; j++)
            most = fmaxf(most,
                         at(x, c->x, n, y * c->size + i, w * c->size + j, k));
    return most;
}

/* All values are below 0 in odd cases: padding must not win as a largest 0. */
LOOP_TEST(pooling_takes_the_largest_of_each_window, 0, POOL_CASES)
{
    const struct pool_case *c = &pool_cases[_i];
    const struct image s = {c->x.n, c->x.h / c->size, c->x.w / c->size, c->x.c};
    struct device d = device_new();
    ipu_tensor x =
        device_floats(&d, "x", 4, SHAPE(c->x.n, c->x.h, c->x.w, c->x.c));
    ipu_tensor y = ipu_max_pool2d(d.graph, x, c->size);
    int64_t in = device_count(&d, x), out = device_count(&d, y);
    float *from = malloc((size_t)in * sizeof *from + 1);
    float *to = malloc((size_t)out * sizeof *to + 1);

    device_fill(from, in, (uint64_t)_i);
    for (int64_t i = 0; i < in && _i % 2; i++)
        from[i] -= 2;
    MUST(ipu_output(d.graph, "y", y));
    device_load(&d);
    device_connect(&d, "x", from, in);
    device_connect(&d, "y", to, out);
    MUST(ipu_engine_run(d.engine));
    for (int64_t n = 0; n < s.n; n++)
        for (int64_t h = 0; h < s.h; h++)
            for (int64_t w = 0; w < s.w; w++)
                for (int64_t k = 0; k < s.c; k++)
                    ck_assert_float_eq(at(to, s, n, h, w, k),
                                       window_maximum(c, from, n, h, w, k));
    free(from);
    free(to);
    device_free(&d);
}

/* Two windows of 2 x 2; the derivative of each is 1. */
LOOP_TEST(the_first_maximum_takes_the_derivative, 0, 4)
{
    const float cases[4][2][8] = {
        {{1, 1, 0, 0, 1, 1, 0, 0}, {1, 0, 1, 0, 0, 0, 0, 0}},
        {{0, 1, -1, -2, 1, 0, -3, -4}, {0, 1, 1, 0, 0, 0, 0, 0}},
        {{0, 0, 0, 0, 0, 7, 7, 7}, {0, 0, 0, 0, 0, 1, 1, 0}},
        {{-INFINITY, -INFINITY, INFINITY, 0, -INFINITY, -INFINITY, 0, 0},
         {1, 0, 1, 0, 0, 0, 0, 0}},
    };
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(1, 2, 4, 1));
    ipu_tensor sum = ipu_reduce_sum(d.graph, ipu_max_pool2d(d.graph, x, 2), 1),
               dx;
    float got[8];

    MUST(ipu_gradients(d.graph, sum, 1, &x, &dx));
    MUST(ipu_output(d.graph, "dx", dx));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "x", (void *)(uintptr_t)cases[_i][0],
                            sizeof got));
    device_connect(&d, "dx", got, 8);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(got[i], cases[_i][1][i]);
    device_free(&d);
}

LOOP_TEST(a_nan_wins_wherever_it_is, 0, 4)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(1, 2, 2, 1));
    ipu_tensor y = ipu_max_pool2d(d.graph, x, 2), dx;
    float from[4] = {1, 2, 3, INFINITY}, to, slope[4];

    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 1, &x, &dx));
    MUST(ipu_output(d.graph, "y", y));
    MUST(ipu_output(d.graph, "dx", dx));
    device_load(&d);
    device_connect(&d, "x", from, 4);
    device_connect(&d, "y", &to, 1);
    device_connect(&d, "dx", slope, 4);
    from[_i] = NAN;
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_nan(to);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(slope[i], i == _i ? 1 : 0);
    device_free(&d);
}

TEST_MAIN("device_images", .seconds = 60)
