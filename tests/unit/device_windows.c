/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests pooling with windows of any size, stride and padding. Values are
 * compared with loops in double that ask for every pixel whether it is in the
 * window, derivatives with differences.
 */
#include "differences.h"
#include "suite.h"

static const struct window_case {
    int64_t n, h, w, c;
    ipu_pool_options o;
} window_cases[] = {
    {1, 4, 4, 1, {.window = {2, 2}, .stride = {1, 1}}},
    {2, 7, 5, 3, {.window = {3, 2}}},
    {2, 7, 5, 3, {.window = {3, 2}, .stride = {2, 1}}},
    {1, 6, 6, 2, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1, 1, 1}}},
    {1, 5, 7, 2, {.window = {4, 3}, .stride = {1, 3}, .padding = {3, 0, 2, 1}}},
    {2, 7, 6, 1, {.window = {3, 3}, .stride = {2, 2}, .same = 1}},
    {1, 5, 5, 4, {.window = {2, 4}, .stride = {1, 1}, .same = 1}},
    {1, 3, 3, 2, {.window = {5, 5}, .stride = {1, 1}, .same = 1}},
    {1, 9, 9, 1, {.window = {2, 2}, .stride = {4, 3}}}, /* gaps */
    {1, 1, 8, 3, {.window = {1, 5}, .stride = {1, 2}}},
    {2, 6, 4, 17, {.window = {2, 2}}}, /* plain ones */
    {0, 4, 4, 2, {.window = {3, 3}, .stride = {1, 1}}},
    {2, 4, 4, 0, {.window = {3, 3}, .stride = {1, 1}}},
};
enum { WINDOW_CASES = sizeof window_cases / sizeof *window_cases };

static ipu_pool_options options_of(int i, int32_t count_padding)
{
    ipu_pool_options o = window_cases[i].o;

    o.size = sizeof o;
    o.count_padding = count_padding;
    return o;
}

/* Returns the extent along one side, and the padding before it, by TensorFlow's
 * rules. */
static int64_t side(const struct window_case *c, int i, int64_t *before)
{
    int64_t extent = i ? c->w : c->h, window = c->o.window[i];
    int64_t stride = c->o.stride[i] ? c->o.stride[i] : window, out;

    *before = c->o.padding[2 * i];
    if (!c->o.same)
        return (extent + *before + c->o.padding[2 * i + 1] - window) / stride +
               1;
    out = (extent + stride - 1) / stride;
    *before = (out - 1) * stride + window - extent;
    *before = *before > 0 ? *before / 2 : 0;
    return out;
}

struct expected {
    double most, mean, mean_padded;
};

static struct expected of_window(const struct window_case *c, const float *x,
                                 int64_t top, int64_t left, int64_t channel)
{
    struct expected e = {-INFINITY, 0, 0};
    int64_t count = 0;

    for (int64_t i = top; i < top + c->o.window[0]; i++)
        for (int64_t j = left; j < left + c->o.window[1]; j++) {
            double value;

            if (i < 0 || i >= c->h || j < 0 || j >= c->w)
                continue;
            value = (double)x[(i * c->w + j) * c->c + channel];
            e.most = fmax(e.most, value);
            e.mean += value;
            count++;
        }
    e.mean_padded = e.mean / (c->o.window[0] * c->o.window[1]);
    e.mean /= (double)count;
    return e;
}

LOOP_TEST(windows_are_where_they_should_be, 0, WINDOW_CASES)
{
    const struct window_case *c = &window_cases[_i];
    const ipu_pool_options o = options_of(_i, 0), padded = options_of(_i, 1);
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(c->n, c->h, c->w, c->c));
    ipu_tensor y = ipu_max_pool2d_with(d.graph, x, &o);
    int64_t above, before, ho = side(c, 0, &above), wo = side(c, 1, &before);
    int64_t in = device_count(&d, x), out = c->n * ho * wo * c->c, at = 0;
    float *from = calloc((size_t)in + 1, sizeof *from);
    float *to = calloc((size_t)out * 3 + 1, sizeof *to);

    ck_assert_int_eq(device_count(&d, y), out);
    MUST(ipu_output(d.graph, "max", y));
    MUST(ipu_output(d.graph, "avg", ipu_avg_pool2d_with(d.graph, x, &o)));
    MUST(ipu_output(d.graph, "padded",
                    ipu_avg_pool2d_with(d.graph, x, &padded)));
    device_load(&d);
    /* All values are below 0: padding must not win as a largest 0. */
    device_fill(from, in, (uint64_t)_i);
    for (int64_t i = 0; i < in; i++)
        from[i] -= 2;
    device_connect(&d, "x", from, in);
    device_connect(&d, "max", to, out);
    device_connect(&d, "avg", to + out, out);
    device_connect(&d, "padded", to + 2 * out, out);
    MUST(ipu_engine_run(d.engine));
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t i = 0; i < ho * wo * c->c; i++, at++) {
            int64_t row = i / c->c / wo, column = i / c->c % wo;
            int64_t down = c->o.stride[0] ? c->o.stride[0] : c->o.window[0];
            int64_t right = c->o.stride[1] ? c->o.stride[1] : c->o.window[1];
            struct expected e =
                of_window(c, from + n * c->h * c->w * c->c, row * down - above,
                          column * right - before, i % c->c);

            ck_assert_double_eq((double)to[at], e.most);
            ck_assert_double_eq_tol((double)to[at + out], e.mean, 1e-6);
            ck_assert_double_eq_tol((double)to[at + 2 * out], e.mean_padded,
                                    1e-6);
        }
    free(from);
    free(to);
}

static ipu_tensor case_variable(int i)
{
    const struct window_case *c = &window_cases[i];

    return variable(4, SHAPE(c->n, c->h, c->w, c->c));
}

LOOP_TEST(the_derivative_of_the_largest, 0, 10)
{
    const ipu_pool_options o = options_of(_i, 0);

    check_gradients(ipu_max_pool2d_with(d.graph, case_variable(_i), &o));
}

LOOP_TEST(the_derivative_of_the_mean, 0, 20)
{
    const ipu_pool_options o = options_of(_i / 2, _i % 2);

    check_gradients(ipu_avg_pool2d_with(d.graph, case_variable(_i / 2), &o));
}

/* The derivative is linear in dy, and has one itself. */
TEST(the_second_derivative_of_the_mean)
{
    const ipu_pool_options o = options_of(4, 1);
    ipu_tensor x = case_variable(4), y = ipu_avg_pool2d_with(d.graph, x, &o);
    ipu_tensor loss = ipu_reduce_sum(d.graph, ipu_square(d.graph, y), 1), dx;

    MUST(ipu_gradients(d.graph, loss, 1, &x, &dx));
    check_gradients(dx);
}

/* Halves too: windows of ones. */
TEST(the_mean_of_halves)
{
    const ipu_pool_options o = options_of(5, 0);
    ipu_tensor x = ipu_fill(d.graph, IPU_FLOAT16, 4, SHAPE(2, 7, 6, 1), 1);
    ipu_tensor y = ipu_avg_pool2d_with(d.graph, x, &o);
    uint16_t out[2 * 4 * 3];

    MUST(ipu_output(d.graph, "y", y));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "y", out, sizeof out));
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 24; i++)
        ck_assert_uint_eq(out[i], 0x3c00);
}

TEST(a_nan_in_several_windows_is_in_all_of_them)
{
    const ipu_pool_options o = {
        .size = sizeof o, .window = {2, 2}, .stride = {1, 1}};
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(1, 3, 3, 1)), y, dx;
    float in[9] = {1, 2, 3, 4, NAN, 6, 7, 8, 9}, out[4], slopes[9];

    y = ipu_max_pool2d_with(d.graph, x, &o);
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 1, &x, &dx));
    MUST(ipu_output(d.graph, "y", y));
    MUST(ipu_output(d.graph, "dx", dx));
    device_load(&d);
    device_connect(&d, "x", in, 9);
    device_connect(&d, "y", out, 4);
    device_connect(&d, "dx", slopes, 9);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < 4; i++)
        ck_assert_float_nan(out[i]);
    for (int i = 0; i < 9; i++)
        ck_assert_float_eq(slopes[i], i == 4 ? 4 : 0);
}

/* --------------------------------------------------------------- refused */

static const struct misuse {
    ipu_pool_options o;
    int status;
    const char *words;
} misuses[] = {
    {{.window = {2, 2}}, IPU_ERR_ARGUMENT, "the options' size is 0"},
    {{.size = sizeof(ipu_pool_options), .window = {0, 2}},
     IPU_ERR_ARGUMENT,
     "a window of 0 x 2 is none"},
    {{.size = sizeof(ipu_pool_options), .window = {2, 2}, .stride = {-1, 1}},
     IPU_ERR_ARGUMENT,
     "stride -1, it must be at least 1"},
    {{.size = sizeof(ipu_pool_options), .window = {2, 3}, .padding = {2, 0}},
     IPU_ERR_ARGUMENT,
     "padding 2 and 0, it must be 0 or more and less than the window's 2"},
    {{.size = sizeof(ipu_pool_options), .window = {2, 3}, .padding = {0, -1}},
     IPU_ERR_ARGUMENT,
     "padding 0 and -1"},
    {{.size = sizeof(ipu_pool_options),
      .window = {2, 3},
      .same = 1,
      .padding = {1, 0}},
     IPU_ERR_ARGUMENT,
     "padding 1 besides SAME"},
    {{.size = sizeof(ipu_pool_options), .window = {5, 2}, .stride = {1, 1}},
     IPU_ERR_SHAPE,
     "smaller than a window of 5 x 2"},
};
enum { MISUSES = sizeof misuses / sizeof *misuses };

LOOP_TEST(misuse_is_explained, 0, MISUSES)
{
    ipu_tensor x = device_floats(&d, "x", 4, SHAPE(1, 4, 4, 1));
    ipu_tensor y = _i % 2 ? ipu_max_pool2d_with(d.graph, x, &misuses[_i].o)
                          : ipu_avg_pool2d_with(d.graph, x, &misuses[_i].o);

    ck_assert_int_lt(y.id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), misuses[_i].status,
              misuses[_i].words);
}

TEST(other_tensors_are_refused)
{
    const ipu_pool_options o = options_of(0, 0);
    ipu_tensor x = device_floats(&d, "x", 3, SHAPE(4, 4, 1));

    ck_assert_int_lt(ipu_max_pool2d_with(d.graph, x, &o).id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_SHAPE,
              "it must be float32 [n, h, w, c]");
    ck_assert_int_lt(ipu_avg_pool2d_with(NULL, x, &o).id, 0);
}

TEST_MAIN("device_windows", .set_up = set_up, .tear_down = tear_down,
          .seconds = 60)
