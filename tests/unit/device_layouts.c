/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests moves that are made of others, ranges, and ops that are convolutions in
 * disguise. Values are compared with loops that follow the definition,
 * derivatives with differences.
 */
#include "differences.h"
#include "suite.h"

static float in[MOST], other[MOST], out[MOST];

/* Runs the graph with "x" (and "k") as they are; writes the result to out.
 * Returns its count. */
static int64_t compute(ipu_tensor y, int64_t nx, int64_t nk)
{
    int64_t count = device_count(&d, y);

    MUST(ipu_output(d.graph, "y", y));
    device_load(&d);
    device_fill(in, nx, 3);
    device_fill(other, nk, 4);
    if (nx)
        device_connect(&d, "x", in, nx);
    if (nk)
        device_connect(&d, "k", other, nk);
    device_connect(&d, "y", out, count);
    MUST(ipu_engine_run(d.engine));
    return count;
}

static void check_shape(ipu_tensor y, int ndim, const int64_t *wanted)
{
    int64_t shape[IPU_MAX_DIMS];

    ck_assert_int_eq(ipu_tensor_info(d.graph, y, NULL, shape, NULL), ndim);
    for (int i = 0; i < ndim; i++)
        ck_assert_int_eq(shape[i], wanted[i]);
}

static ipu_tensor x_of(int32_t ndim, const int64_t *shape)
{
    return device_floats(&d, "x", ndim, shape);
}

TEST(dimensions_come_and_go)
{
    ipu_tensor x = x_of(2, SHAPE(3, 4));

    check_shape(ipu_expand_dims(d.graph, x, 0), 3, SHAPE(1, 3, 4));
    check_shape(ipu_expand_dims(d.graph, x, -1), 3, SHAPE(3, 4, 1));
    check_shape(ipu_expand_dims(d.graph, x, 1), 3, SHAPE(3, 1, 4));
    x = ipu_expand_dims(d.graph, x, 1);
    check_shape(ipu_squeeze(d.graph, x, 1), 2, SHAPE(3, 4));
    x = ipu_squeeze(d.graph, x, -2);
    ck_assert_int_eq(compute(x, 12, 0), 12);
    ck_assert_mem_eq(out, in, 12 * sizeof *in);
}

LOOP_TEST(a_stack_is_split_again, 0, 3)
{
    ipu_tensor x = x_of(2, SHAPE(6, 5)), parts[3], y;
    const int64_t sizes[3] = {1, 0, 4};

    MUST(ipu_split(d.graph, x, 0, 3, NULL, parts));
    check_shape(parts[2], 2, SHAPE(2, 5));
    y = ipu_stack(d.graph, 3, parts, _i - 3);
    check_shape(y, 3,
                _i == 0   ? SHAPE(3, 2, 5)
                : _i == 1 ? SHAPE(2, 3, 5)
                          : SHAPE(2, 5, 3));
    MUST(ipu_split(d.graph, x, -1, 3, sizes, parts));
    check_shape(parts[1], 2, SHAPE(6, 0));
    check_shape(parts[2], 2, SHAPE(6, 4));
    compute(y, 30, 0);
    for (int p = 0; p < 3; p++)
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 5; c++)
                ck_assert_float_eq(out[_i == 0   ? (p * 2 + r) * 5 + c
                                       : _i == 1 ? (r * 3 + p) * 5 + c
                                                 : (r * 5 + c) * 3 + p],
                                   in[(p * 2 + r) * 5 + c]);
}

TEST(tiles_repeat_all)
{
    const int32_t times[3] = {2, 1, 3};
    ipu_tensor y = ipu_tile(d.graph, x_of(3, SHAPE(2, 3, 2)), times);

    check_shape(y, 3, SHAPE(4, 3, 6));
    compute(y, 12, 0);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            for (int m = 0; m < 6; m++)
                ck_assert_float_eq(out[(i * 3 + k) * 6 + m],
                                   in[(i % 2 * 3 + k) * 2 + m % 2]);
}

TEST(pixels_become_squares)
{
    ipu_tensor y = ipu_upsample2d(d.graph, x_of(4, SHAPE(2, 2, 3, 2)), 3);

    check_shape(y, 4, SHAPE(2, 6, 9, 2));
    compute(y, 24, 0);
    for (int n = 0; n < 2; n++)
        for (int h = 0; h < 6; h++)
            for (int w = 0; w < 9; w++)
                for (int c = 0; c < 2; c++)
                    ck_assert_float_eq(
                        out[((n * 6 + h) * 9 + w) * 2 + c],
                        in[((n * 2 + h / 3) * 3 + w / 3) * 2 + c]);
}

LOOP_TEST(axes_are_reversed, 0, 3)
{
    const int32_t axes[] = {0, -1};
    ipu_tensor y = ipu_reverse(d.graph, x_of(3, SHAPE(3, 2, 4)), _i, axes);

    compute(y, 24, 0);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++)
            for (int m = 0; m < 4; m++)
                ck_assert_float_eq(out[(i * 2 + k) * 4 + m],
                                   in[((_i > 0 ? 2 - i : i) * 2 + k) * 4 +
                                      (_i > 1 ? 3 - m : m)]);
}

TEST(ranges_go_on)
{
    int32_t ints[5];
    float floats[4];

    MUST(ipu_output(d.graph, "i", ipu_range(d.graph, IPU_INT32, 5, 3, -2)));
    MUST(ipu_output(d.graph, "f",
                    ipu_range(d.graph, IPU_FLOAT32, 4, 0.5, 0.25)));
    MUST(ipu_output(d.graph, "n", ipu_range(d.graph, IPU_INT32, 0, 0.5, 1)));
    device_load(&d);
    device_connect(&d, "i", ints, 5);
    device_connect(&d, "f", floats, 4);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(ints[i], 3 - 2 * i);
    for (int i = 0; i < 4; i++)
        ck_assert_float_eq(floats[i], 0.5f + 0.25f * (float)i);
}

/* ------------------------------------------------------------- convolutions */

static const struct conv_case {
    int64_t n, h, w, ci, kh, kw, co; /* co: of all groups */
    int32_t height, width;
    int64_t ho, wo; /* that are expected */
    ipu_conv_options o;
} conv_cases[] = {
    {1, 3, 4, 2, 2, 3, 3, 0, 0, 4, 6, {.stride = {1, 1}}},
    {2, 3, 2, 2, 3, 3, 1, 0, 0, 7, 5, {.stride = {2, 2}}},
    {2, 3, 2, 2, 3, 3, 1, 8, 6, 8, 6, {.stride = {2, 2}}},
    {1, 4, 3, 1, 4, 4, 2, 0, 0, 8, 6, {.stride = {2, 2}, .same = 1}},
    {1, 4, 3, 1, 3, 3, 2, 7, 5, 7, 5, {.stride = {2, 2}, .same = 1}},
    {1, 3, 3, 4, 2, 2, 6, 0, 0, 4, 4, {.stride = {1, 1}, .groups = 2}},
    {1,
     4,
     4,
     2,
     3,
     2,
     2,
     0,
     0,
     5,
     7,
     {.stride = {1, 2}, .dilation = {2, 1}, .padding = {2, 1, 0, 1}}},
};
enum { CONV_CASES = sizeof conv_cases / sizeof *conv_cases };

static ipu_conv_options conv_options(int i)
{
    ipu_conv_options o = conv_cases[i].o;

    o.size = sizeof o;
    return o;
}

/* Returns the rows or columns that SAME, or the options, put before an
 * image. */
static int64_t before(const struct conv_case *c, int i)
{
    int64_t dilation = c->o.dilation[i] ? c->o.dilation[i] : 1, zeros;
    int64_t span = ((i ? c->kw : c->kh) - 1) * dilation + 1;

    if (!c->o.same)
        return c->o.padding[2 * i];
    zeros =
        ((i ? c->w : c->h) - 1) * c->o.stride[i] + span - (i ? c->wo : c->ho);
    return zeros > 0 ? zeros / 2 : 0;
}

/* Adds the kernel, scaled by each pixel of x, to y. */
static void scatter(const struct conv_case *c, double *y)
{
    int64_t groups = c->o.groups ? c->o.groups : 1;
    int64_t cog = c->co / groups, cig = c->ci / groups;
    int64_t dilation[2] = {c->o.dilation[0] ? c->o.dilation[0] : 1,
                           c->o.dilation[1] ? c->o.dilation[1] : 1};

    for (int64_t p = 0; p < c->n * c->h * c->w; p++)
        for (int64_t k = 0; k < c->kh * c->kw; k++) {
            int64_t row = p / c->w % c->h * c->o.stride[0] - before(c, 0) +
                          k / c->kw * dilation[0];
            int64_t column = p % c->w * c->o.stride[1] - before(c, 1) +
                             k % c->kw * dilation[1];
            int64_t at = (p / c->w / c->h * c->ho + row) * c->wo + column;

            if (row < 0 || row >= c->ho || column < 0 || column >= c->wo)
                continue;
            for (int64_t a = 0; a < c->ci; a++)
                for (int64_t b = 0; b < cog; b++)
                    y[at * c->co + a / cig * cog + b] +=
                        (double)in[p * c->ci + a] *
                        (double)other[(k * cog + b) * c->ci + a];
        }
}

static ipu_tensor transposed(int i, ipu_tensor x, ipu_tensor k)
{
    const ipu_conv_options o = conv_options(i);

    return ipu_conv2d_transpose(d.graph, x, k, conv_cases[i].height,
                                conv_cases[i].width, &o);
}

static const int64_t *kernel_shape(const struct conv_case *c)
{
    static int64_t shape[4];

    shape[0] = c->kh;
    shape[1] = c->kw;
    shape[2] = c->co / (c->o.groups ? c->o.groups : 1);
    shape[3] = c->ci;
    return shape;
}

LOOP_TEST(transposed_convolutions_scatter, 0, CONV_CASES)
{
    const struct conv_case *c = &conv_cases[_i];
    ipu_tensor x = x_of(4, SHAPE(c->n, c->h, c->w, c->ci));
    ipu_tensor k = device_floats(&d, "k", 4, kernel_shape(c));
    ipu_tensor y = transposed(_i, x, k);
    int64_t nx = device_count(&d, x), nk = device_count(&d, k), count;
    static double wanted[MOST];

    check_shape(y, 4, SHAPE(c->n, c->ho, c->wo, c->co));
    count = compute(y, nx, nk);
    memset(wanted, 0, sizeof wanted);
    scatter(c, wanted);
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol((double)out[i], wanted[i], 1e-5);
}

LOOP_TEST(derivatives_of_transposed_convolutions, 0, CONV_CASES)
{
    const struct conv_case *c = &conv_cases[_i];
    ipu_tensor x = variable(4, SHAPE(c->n, c->h, c->w, c->ci));

    check_gradients(transposed(_i, x, variable(4, kernel_shape(c))));
}

LOOP_TEST(transposed_convolutions_refuse, 0, 3)
{
    static const struct {
        int64_t x[4], k[4];
        int32_t height;
        int status;
        const char *words;
    } misuses[] = {
        {{1, 3, 3, 2}, {2, 2, 1, 3}, 0, IPU_ERR_SHAPE, "conv2d_input_grad"},
        {{1, 3, 3, 2}, {2, 2, 1, 2}, 9, IPU_ERR_SHAPE, "does not belong"},
        {{1, 3, 3, 2}, {2, 2, 1, 2}, -1, IPU_ERR_ARGUMENT, "-1 x 0 is none"},
    };

    transposed(0, x_of(4, misuses[_i].x),
               device_floats(&d, "k", 4, misuses[_i].k));
    device_free(&d);
    d = device_new();
    ipu_conv2d_transpose(d.graph, x_of(4, misuses[_i].x),
                         device_floats(&d, "k", 4, misuses[_i].k),
                         misuses[_i].height, 0, NULL);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), misuses[_i].status,
              misuses[_i].words);
}

TEST(each_channel_by_itself)
{
    const ipu_conv_options o = {
        .size = sizeof o, .stride = {2, 1}, .padding = {1, 0, 0, 0}};
    ipu_tensor x = x_of(4, SHAPE(1, 4, 5, 3));
    ipu_tensor k = device_floats(&d, "k", 4, SHAPE(2, 2, 3, 2));
    ipu_tensor y = ipu_depthwise_conv2d(d.graph, x, k, &o);

    check_shape(y, 4, SHAPE(1, 2, 4, 6));
    compute(y, 60, 24);
    for (int h = 0; h < 2; h++)
        for (int w = 0; w < 4; w++)
            for (int c = 0; c < 6; c++) {
                double sum = 0;

                for (int i = 0; i < 4; i++) {
                    int row = h * 2 - 1 + i / 2, column = w + i % 2;

                    if (row >= 0)
                        sum += (double)in[(row * 5 + column) * 3 + c / 2] *
                               (double)other[(i * 3 + c / 2) * 2 + c % 2];
                }
                ck_assert_double_eq_tol((double)out[(h * 4 + w) * 6 + c], sum,
                                        1e-5);
            }
}

LOOP_TEST(depthwise_refuses, 0, 2)
{
    const ipu_conv_options o = {
        .size = sizeof o, .stride = {1, 1}, .groups = 3};
    ipu_tensor x = x_of(4, SHAPE(1, 4, 5, 3));

    if (_i == 0)
        ipu_depthwise_conv2d(d.graph, x, x, &o);
    else
        ipu_depthwise_conv2d(d.graph, x, device_floats(&d, "k", 1, SHAPE(3)),
                             NULL);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable),
              _i ? IPU_ERR_SHAPE : IPU_ERR_ARGUMENT,
              _i ? "must be [h, w, channels" : "3 groups: there is one");
}

/* A penalty on gradients needs second derivatives. */
LOOP_TEST(second_derivatives_of_convolutions, 0, 2)
{
    const ipu_conv_options o = {.size = sizeof o, .stride = {2, 1}, .same = 1};
    ipu_tensor x = variable(4, SHAPE(1, 4, 3, 2));
    ipu_tensor k = variable(4, SHAPE(3, 2, 2, 2)), dx[2];
    ipu_tensor y = ipu_square(d.graph, ipu_conv2d(d.graph, x, k, &o));

    spread = 1;
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 0.1), 2,
                       (const ipu_tensor[]){x, k}, dx));
    check_gradients(dx[_i]);
}

/* -------------------------------------------------------------- derivatives */

static ipu_tensor make_stack(ipu_tensor x)
{
    return ipu_stack(d.graph, 2,
                     (const ipu_tensor[]){x, ipu_square(d.graph, x)}, 1);
}

static ipu_tensor make_split(ipu_tensor x)
{
    ipu_tensor parts[2];

    MUST(ipu_split(d.graph, x, 1, 2, NULL, parts));
    return ipu_multiply(d.graph, parts[0], parts[1]);
}

static ipu_tensor make_tile(ipu_tensor x)
{
    const int32_t times[] = {3, 2};

    return ipu_tile(d.graph, x, times);
}

static ipu_tensor make_reverse(ipu_tensor x)
{
    const int32_t axis = 1;

    return ipu_reverse(d.graph, x, 1, &axis);
}

static ipu_tensor make_upsample(ipu_tensor x)
{
    return ipu_upsample2d(d.graph,
                          ipu_reshape(d.graph, x, 4, SHAPE(1, 3, 2, 2)), 2);
}

static ipu_tensor make_depthwise(ipu_tensor x)
{
    x = ipu_reshape(d.graph, x, 4, SHAPE(1, 3, 2, 2));
    return ipu_depthwise_conv2d(d.graph, x, variable(4, SHAPE(2, 2, 2, 2)),
                                NULL);
}

LOOP_TEST(derivatives_of_arrangements, 0, 6)
{
    ipu_tensor (*const make[])(ipu_tensor) = {make_stack,    make_split,
                                              make_tile,     make_reverse,
                                              make_upsample, make_depthwise};

    check_gradients(make[_i](variable(2, SHAPE(3, 4))));
}

/* ------------------------------------------------------------------ refused */

static void misuse(int i)
{
    ipu_tensor x = x_of(2, SHAPE(3, 4)), parts[4];
    const int64_t sizes[2] = {3, 2};
    const int32_t times[2] = {1, 0}, axis = 2;

    switch (i) {
    case 0: ipu_expand_dims(d.graph, x, 3); break;
    case 1: ipu_squeeze(d.graph, x, 1); break;
    case 2: ipu_stack(d.graph, 0, &x, 0); break;
    case 3: ipu_split(d.graph, x, 1, 3, NULL, parts); break;
    case 4: ipu_split(d.graph, x, 1, 2, sizes, parts); break;
    case 5: ipu_split(d.graph, x, 1, 0, NULL, parts); break;
    case 6: ipu_tile(d.graph, x, times); break;
    case 7: ipu_tile(d.graph, x, NULL); break;
    case 8: ipu_upsample2d(d.graph, x, 2); break;
    case 9: ipu_reverse(d.graph, x, 1, &axis); break;
    case 10: ipu_reverse(d.graph, x, 1, NULL); break;
    case 11: ipu_range(d.graph, IPU_INT32, 3, 0.5, 1); break;
    case 12: ipu_range(d.graph, IPU_INT32, 3, 2e9, 1e9); break;
    case 13: ipu_range(d.graph, IPU_FLOAT32, 3, INFINITY, 1); break;
    default: ipu_stack(d.graph, 2, (const ipu_tensor[]){x, {-1}}, 0); break;
    }
}

static const char *const misuses[] = {
    "no axis 3 can be added to 2 dimensions",
    "axis 1 has 4 elements, not 1",
    "stack: 0 tensors",
    "axis 1 has 4 elements, which are not 3 equal parts",
    "part 1 of 2 elements is more than axis 1 has left",
    "split: 0 parts",
    "axis 1 0 times",
    "axis 0 0 times",
    "upsample2d",
    "there is no axis 2",
    "the axes are NULL",
    "are not all int32",
    "are not all int32",
    "both must be finite",
    "invalid",
};
enum { MISUSES = sizeof misuses / sizeof *misuses };

LOOP_TEST(what_cannot_be_is_refused, 0, MISUSES)
{
    misuse(_i);
    device_says(&d, misuses[_i]);
}

TEST_MAIN("device_layouts", .set_up = set_up, .tear_down = tear_down,
          .seconds = 60)
