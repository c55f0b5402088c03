/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of networks: softmax, normalisations, pooling, convolutions with all
 * options, dropout and losses. Values against their definitions in double,
 * derivatives against differences, and what is refused.
 */
#include "check_main.h"

#include <stdbool.h>

#include "differences.h"

static float x[MOST], y[MOST], kernel[MOST];
static double wanted[MOST];

static void check_values(int64_t count, double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)y[i] - wanted[i]) <=
              tolerance * (1 + fabs(wanted[i]))) &&
            !(isnan(y[i]) && isnan(wanted[i])))
            ck_abort_msg("element %d is %.9g, not %.9g", (int)i, (double)y[i],
                         wanted[i]);
}

/* Run with x as input "x" of count elements, and result to y. */
static void compute(ipu_tensor result, int64_t count)
{
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    device_connect(&d, "x", x, count);
    device_connect(&d, "y", y, device_count(&d, result));
    MUST(ipu_engine_run(d.engine));
}

static void refused(ipu_tensor result, int status, const char *words)
{
    ipu_executable *executable = NULL;

    ck_assert_int_lt(result.id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), status, words);
}

static ipu_tensor input(int32_t ndim, const int64_t *shape)
{
    return device_floats(&d, "x", ndim, shape);
}

/* ------------------------------------------------------------------ softmax */

static const int64_t tables[][2] = {{1, 1},  {3, 2}, {7, 33}, {2, 1025},
                                    {5, 16}, {0, 4}, {3, 0},  {64, 64}};
enum { TABLES = sizeof tables / sizeof *tables };

START_TEST(softmax_and_its_logarithm)
{
    int64_t rows = tables[_i / 2][0], n = tables[_i / 2][1];
    ipu_tensor in = input(3, SHAPE(1, rows, n));

    device_fill(x, rows * n, 1);
    for (int64_t i = 0; i < rows * n; i++)
        x[i] *= 20;
    for (int64_t i = 0; i < rows * n; i++) {
        double sum = 0;

        for (int64_t k = 0; k < n; k++)
            sum += exp((double)x[i / n * n + k] - (double)x[i]);
        wanted[i] = _i % 2 ? -log(sum) : 1 / sum;
    }
    compute(_i % 2 ? ipu_log_softmax(d.graph, in) : ipu_softmax(d.graph, in),
            rows * n);
    check_values(rows * n, 2e-6);
}
END_TEST

START_TEST(softmax_of_the_extremes)
{
    const float rows[5][3] = {{3e38f, 3e38f, -3e38f},
                              {-INFINITY, 0, -INFINITY},
                              {INFINITY, 0, 1},
                              {1, NAN, 2},
                              {-1e30f, -1e30f, -1e30f}};
    const double of[5][3] = {{0.5, 0.5, 0},
                             {0, 1, 0},
                             {NAN, NAN, NAN},
                             {NAN, NAN, NAN},
                             {1. / 3, 1. / 3, 1. / 3}};

    memcpy(x, rows, sizeof rows);
    memcpy(wanted, of, sizeof of);
    wanted[7] = wanted[8] = 0; /* infinity - infinity is NaN, 0 - it is not */
    compute(ipu_softmax(d.graph, input(2, SHAPE(5, 3))), 15);
    wanted[7] = wanted[8] = isnan(y[7]) ? NAN : 0;
    check_values(15, 1e-6);
}
END_TEST

START_TEST(derivatives_of_softmax)
{
    ipu_tensor v = variable(3, SHAPE(2, 3, 7));

    check_gradients(_i ? ipu_log_softmax(d.graph, v) : ipu_softmax(d.graph, v));
}
END_TEST

START_TEST(softmax_refuses)
{
    refused(ipu_softmax(d.graph, input(0, NULL)), IPU_ERR_SHAPE,
            "softmax: x is float32 [], it must be float32 [..., n]");
}
END_TEST

/* Labels for each position of each sequence. */
START_TEST(cross_entropy_of_sequences)
{
    int32_t labels[6] = {0, 4, 2, 1, 3, 3};
    ipu_tensor logits = input(3, SHAPE(2, 3, 5)), loss;
    ipu_tensor which = ipu_input(d.graph, "l", IPU_INT32, 2, SHAPE(2, 3));

    device_fill(x, 30, 1);
    for (int i = 0; i < 6; i++) {
        double sum = 0;

        for (int k = 0; k < 5; k++)
            sum += exp((double)x[i * 5 + k]);
        wanted[i] = log(sum) - (double)x[i * 5 + labels[i]];
    }
    loss = ipu_softmax_cross_entropy(d.graph, logits, which);
    ck_assert_int_eq(ipu_tensor_info(d.graph, loss, NULL, NULL, NULL), 2);
    MUST(ipu_output(d.graph, "y", loss));
    device_load(&d);
    device_connect(&d, "x", x, 30);
    device_connect(&d, "l", labels, 6);
    device_connect(&d, "y", y, 6);
    MUST(ipu_engine_run(d.engine));
    check_values(6, 1e-6);
}
END_TEST

static TCase *tcase_softmax(void)
{
    TCase *tcase = tcase_create("softmax");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, softmax_and_its_logarithm, 0, 2 * TABLES);
    tcase_add_test(tcase, softmax_of_the_extremes);
    tcase_add_loop_test(tcase, derivatives_of_softmax, 0, 2);
    tcase_add_test(tcase, softmax_refuses);
    tcase_add_test(tcase, cross_entropy_of_sequences);
    return tcase;
}

/* ----------------------------------------------------------- normalisations */

enum { LAYER, LAYER_OF_TWO, GROUP, BATCH, NORMS };

/* What x is for each, and as [outer, rows, groups, columns]. */
static const struct {
    int kind;
    int32_t ndim;
    int64_t shape[4], view[4];
} norms[] = {
    {LAYER, 2, {5, 7}, {5, 1, 1, 7}},
    {LAYER, 3, {2, 3, 33}, {6, 1, 1, 33}},
    {LAYER, 1, {9}, {1, 1, 1, 9}},
    {LAYER_OF_TWO, 3, {4, 3, 5}, {4, 1, 1, 15}},
    {GROUP, 4, {2, 3, 2, 6}, {2, 6, 3, 2}},
    {GROUP, 2, {3, 12}, {3, 1, 3, 4}},
    {GROUP, 3, {2, 5, 3}, {2, 5, 3, 1}},
    {BATCH, 2, {8, 5}, {1, 8, 5, 1}},
    {BATCH, 4, {2, 3, 2, 17}, {1, 12, 17, 1}},
    {BATCH, 2, {6, 1}, {1, 6, 1, 1}},
    {LAYER, 2, {0, 7}, {0, 1, 1, 7}},
};
enum { NORM_CASES = sizeof norms / sizeof *norms };
static const double EPSILON = 1e-3;

static ipu_tensor normalise(int c, ipu_tensor in, ipu_tensor scale,
                            ipu_tensor offset)
{
    int64_t channels = norms[c].shape[norms[c].ndim - 1];

    if (norms[c].kind == GROUP)
        return ipu_group_norm(d.graph, in, 3, scale, offset, EPSILON);
    if (norms[c].kind == BATCH)
        return ipu_batch_norm(
            d.graph, in, scale, offset,
            ipu_variable(d.graph, "mean", IPU_FLOAT32, 1, &channels),
            ipu_variable(d.graph, "variance", IPU_FLOAT32, 1, &channels), 0.75,
            EPSILON);
    return ipu_layer_norm(d.graph, in, scale, offset, EPSILON);
}

/* scale and offset: the last dimension, or the last two. */
static int32_t parameters(int c, const int64_t **shape)
{
    int32_t ndim = norms[c].kind == LAYER_OF_TWO ? 2 : 1;

    *shape = norms[c].shape + norms[c].ndim - ndim;
    return ndim;
}

static int64_t group_of(int c, int64_t i)
{
    int64_t columns = norms[c].view[3], groups = norms[c].view[2];
    int64_t rows = norms[c].view[1];

    return i / columns / groups / rows * groups + i / columns % groups;
}

/* means and variances of each group of x, by the definition. */
static void statistics(int c, int64_t count, double *means, double *variances)
{
    double number = (double)(norms[c].view[1] * norms[c].view[3]);

    for (int64_t i = 0; i < count; i++)
        means[group_of(c, i)] += (double)x[i] / number;
    for (int64_t i = 0; i < count; i++) {
        double off = (double)x[i] - means[group_of(c, i)];

        variances[group_of(c, i)] += off * off / number;
    }
}

START_TEST(normalisations_follow_their_definition)
{
    const int64_t *shape;
    int32_t ndim = parameters(_i, &shape);
    int64_t width = norms[_i].view[2] * norms[_i].view[3];
    ipu_tensor in = input(norms[_i].ndim, norms[_i].shape);
    ipu_tensor scale = ipu_variable(d.graph, "scale", IPU_FLOAT32, ndim, shape);
    ipu_tensor offset =
        ipu_variable(d.graph, "offset", IPU_FLOAT32, ndim, shape);
    ipu_tensor result = normalise(_i, in, scale, offset);
    double means[64] = {0}, variances[64] = {0};
    int64_t count = device_count(&d, in);
    float s[64], o[64];

    device_fill(s, width, 5);
    device_fill(o, width, 6);
    device_fill(x, count, 1);
    for (int64_t i = 0; i < count; i++)
        x[i] += 100; /* far from 0: two passes matter */
    statistics(_i, count, means, variances);
    for (int64_t i = 0; i < count; i++)
        wanted[i] = ((double)x[i] - means[group_of(_i, i)]) /
                        sqrt(variances[group_of(_i, i)] + EPSILON) *
                        (double)s[i % width] +
                    (double)o[i % width];
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    MUST(ipu_engine_write(d.engine, "scale", s, (size_t)width * 4));
    MUST(ipu_engine_write(d.engine, "offset", o, (size_t)width * 4));
    device_connect(&d, "x", x, count);
    device_connect(&d, "y", y, count);
    MUST(ipu_engine_run(d.engine));
    check_values(count, 1e-4);
}
END_TEST

START_TEST(derivatives_of_normalisations)
{
    const int64_t *shape;
    int32_t ndim = parameters(_i, &shape);
    ipu_tensor v = variable(norms[_i].ndim, norms[_i].shape);
    ipu_tensor scale = variable(ndim, shape);

    check_gradients(normalise(_i, v, scale, variable(ndim, shape)));
}
END_TEST

START_TEST(batch_norm_keeps_statistics)
{
    const int64_t channels = 2;
    ipu_tensor in = input(2, SHAPE(4, 2));
    ipu_tensor scale = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 1);
    ipu_tensor offset = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 0);
    ipu_tensor mean = ipu_variable(d.graph, "mean", IPU_FLOAT32, 1, &channels);
    ipu_tensor variance =
        ipu_variable(d.graph, "variance", IPU_FLOAT32, 1, &channels);
    float kept[2];

    memcpy(x, (float[]){1, 10, 2, 10, 3, 10, 6, 10}, 8 * sizeof *x);
    compute(
        ipu_batch_norm(d.graph, in, scale, offset, mean, variance, 0.75, 1e-5),
        8);
    MUST(ipu_engine_read(d.engine, "mean", kept, sizeof kept));
    ck_assert_double_eq_tol((double)kept[0], 0.25 * 3, 1e-6);
    ck_assert_double_eq_tol((double)kept[1], 0.25 * 10, 1e-6);
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_read(d.engine, "mean", kept, sizeof kept));
    ck_assert_double_eq_tol((double)kept[0], (0.75 * 0.25 + 0.25) * 3, 1e-6);
    MUST(ipu_engine_read(d.engine, "variance", kept, sizeof kept));
    ck_assert_double_eq_tol((double)kept[0], (0.75 * 0.25 + 0.25) * 14 / 3,
                            1e-5);
    ck_assert_float_eq(kept[1], 0);
}
END_TEST

START_TEST(batch_norm_infers_from_what_is_kept)
{
    const int64_t channels = 2;
    ipu_tensor in = input(2, SHAPE(3, 2));
    ipu_tensor scale = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 3);
    ipu_tensor offset = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, -1);
    ipu_tensor mean = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 0.5);
    ipu_tensor variance = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 4);

    device_fill(x, 6, 1);
    for (int i = 0; i < 6; i++)
        wanted[i] = ((double)x[i] - 0.5) / sqrt(4 + 1e-5) * 3 - 1;
    compute(ipu_batch_norm_inference(d.graph, in, scale, offset, mean, variance,
                                     1e-5),
            6);
    check_values(6, 1e-6);
}
END_TEST

/* Each has its own mean: a NaN spoils its own group only. */
START_TEST(nan_stays_in_its_group)
{
    ipu_tensor in = input(2, SHAPE(3, 40));
    ipu_tensor scale = ipu_fill(d.graph, IPU_FLOAT32, 1, SHAPE(40), 1);

    device_fill(x, 120, 1);
    x[43] = _i ? NAN : INFINITY;
    compute(ipu_layer_norm(d.graph, in, scale, scale, 1e-5), 120);
    for (int i = 0; i < 120; i++)
        ck_assert_int_eq(isnan(y[i]) != 0, i / 40 == 1);
}
END_TEST

START_TEST(normalisations_refuse)
{
    const int64_t four = 4, three = 3;
    ipu_tensor in = input(2, SHAPE(2, 4));
    ipu_tensor fits = device_floats(&d, "f", 1, &four);
    ipu_tensor not = device_floats(&d, "n", 1, &three);
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, &four);

    switch (_i) {
    case 0:
        refused(ipu_layer_norm(d.graph, in, not, fits, 1e-5), IPU_ERR_SHAPE,
                "layer_norm: x is float32 [2,4] and n is float32 [3]: scale "
                "and offset must have the last dimensions");
        break;
    case 1:
        refused(ipu_layer_norm(d.graph, in, fits, fits, 0), IPU_ERR_ARGUMENT,
                "layer_norm: epsilon is 0, it must be more than 0");
        break;
    case 2:
        refused(ipu_group_norm(d.graph, in, 3, fits, fits, 1e-5), IPU_ERR_SHAPE,
                "group_norm: the channels of x, float32 [2,4], do not divide "
                "by 3 groups");
        break;
    case 3:
        refused(ipu_group_norm(d.graph, in, 0, fits, fits, 1e-5),
                IPU_ERR_ARGUMENT, "by 0 groups");
        break;
    case 4:
        refused(ipu_batch_norm(d.graph, in, fits, not, v, v, 0.9, 1e-5),
                IPU_ERR_SHAPE, "batch_norm: x is float32 [2,4] and n is");
        break;
    case 5:
        refused(ipu_batch_norm(d.graph, in, fits, fits, v, v, 1.5, 1e-5),
                IPU_ERR_ARGUMENT, "momentum is 1.5");
        break;
    case 6:
        refused(ipu_batch_norm(d.graph, in, fits, fits, fits, v, 0.9, 1e-5),
                IPU_ERR_ARGUMENT, "assign: f is not a variable");
        break;
    case 7:
        refused(ipu_batch_norm(d.graph, fits, fits, fits, v, v, 0.9, 1e-5),
                IPU_ERR_SHAPE,
                "batch_norm: f is float32 [4], it must be float32 [n, ...");
        break;
    default:
        refused(ipu_layer_norm(d.graph, fits, in, in, 1e-5), IPU_ERR_SHAPE,
                "scale has one or more of the last dimensions");
    }
}
END_TEST

static TCase *tcase_norms(void)
{
    TCase *tcase = tcase_create("norms");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, normalisations_follow_their_definition, 0,
                        NORM_CASES);
    tcase_add_loop_test(tcase, derivatives_of_normalisations, 0, NORM_CASES);
    tcase_add_test(tcase, batch_norm_keeps_statistics);
    tcase_add_test(tcase, batch_norm_infers_from_what_is_kept);
    tcase_add_loop_test(tcase, nan_stays_in_its_group, 0, 2);
    tcase_add_loop_test(tcase, normalisations_refuse, 0, 9);
    return tcase;
}

/* ------------------------------------------------- convolutions and pooling */

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

START_TEST(convolutions_follow_their_definition)
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
END_TEST

START_TEST(derivatives_of_convolutions)
{
    ipu_tensor in =
        variable(4, SHAPE(convs[_i].n, convs[_i].h, convs[_i].w, convs[_i].ci));

    check_gradients(convolve(
        _i, in,
        variable(4, SHAPE(convs[_i].kh, convs[_i].kw,
                          convs[_i].ci / convs[_i].groups, convs[_i].co))));
}
END_TEST

START_TEST(convolutions_refuse)
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
END_TEST

START_TEST(average_pooling_is_the_mean_of_windows)
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
END_TEST

START_TEST(derivatives_of_average_pooling)
{
    check_gradients(
        ipu_avg_pool2d(d.graph, variable(4, SHAPE(2, 5, 7, 3)), 2 + _i));
}
END_TEST

START_TEST(average_pooling_refuses)
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
END_TEST

static TCase *tcase_images(void)
{
    TCase *tcase = tcase_create("images");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_loop_test(tcase, convolutions_follow_their_definition, 0, CONVS);
    tcase_add_loop_test(tcase, derivatives_of_convolutions, 0, CONVS);
    tcase_add_loop_test(tcase, convolutions_refuse, 0, 7);
    tcase_add_loop_test(tcase, average_pooling_is_the_mean_of_windows, 0, 4);
    tcase_add_loop_test(tcase, derivatives_of_average_pooling, 0, 2);
    tcase_add_loop_test(tcase, average_pooling_refuses, 0, 3);
    return tcase;
}

/* -------------------------------------------------------- chance and losses */

START_TEST(dropout_drops_by_seed_and_step)
{
    ipu_tensor in = input(1, SHAPE(MOST));
    ipu_tensor step = ipu_counter(d.graph, "step");
    ipu_tensor result = ipu_dropout(d.graph, in, 0.25, 7, step);
    static float first[MOST];
    int32_t zero = 0;
    int dropped = 0, same = 0;

    for (int i = 0; i < MOST; i++)
        x[i] = 3;
    compute(result, MOST);
    memcpy(first, y, sizeof first);
    for (int i = 0; i < MOST; i++) {
        dropped += y[i] == 0;
        ck_assert(y[i] == 0 || y[i] == 4);
    }
    ck_assert_int_gt(dropped, MOST / 4 - 120); /* 4 standard deviations */
    ck_assert_int_lt(dropped, MOST / 4 + 120);
    MUST(ipu_engine_run(d.engine)); /* another step: others */
    for (int i = 0; i < MOST; i++)
        same += y[i] == first[i];
    ck_assert_int_lt(same, MOST * 3 / 4);
    MUST(ipu_engine_write(d.engine, "step", &zero, 4));
    MUST(ipu_engine_run(d.engine));
    ck_assert_mem_eq(y, first, sizeof first);
}
END_TEST

START_TEST(seeds_differ)
{
    ipu_tensor in = input(1, SHAPE(1000));
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, 3);
    ipu_tensor u = ipu_dropout(d.graph, in, 0.5, 1, step);
    ipu_tensor v = ipu_dropout(d.graph, in, 0.5, 2, step);
    int same = 0;

    for (int i = 0; i < 1000; i++)
        x[i] = 1;
    compute(ipu_subtract(d.graph, u, v), 1000);
    for (int i = 0; i < 1000; i++)
        same += y[i] == 0;
    ck_assert_int_gt(same, 400);
    ck_assert_int_lt(same, 600);
}
END_TEST

START_TEST(derivatives_of_dropout)
{
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, 11);

    check_gradients(
        ipu_dropout(d.graph, variable(2, SHAPE(6, 7)), _i * 0.4, 5, step));
}
END_TEST

START_TEST(random_numbers_have_their_distribution)
{
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, _i);
    ipu_tensor u = ipu_random_uniform(d.graph, 1, SHAPE(MOST), -1, 3, 9, step);
    ipu_tensor n = ipu_random_normal(d.graph, 1, SHAPE(MOST), 2, 0.5, 9, step);
    double sum = 0, squares = 0;
    int beyond = 0;

    input(1, SHAPE(1));
    MUST(ipu_output(d.graph, "n", n));
    MUST(ipu_output(d.graph, "u", u));
    device_load(&d);
    device_connect(&d, "n", x, MOST);
    device_connect(&d, "u", y, MOST);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < MOST; i++) {
        ck_assert(y[i] >= -1 && y[i] < 3);
        sum += (double)y[i];
        squares += ((double)y[i] - 1) * ((double)y[i] - 1);
    }
    ck_assert_double_eq_tol(sum / MOST, 1, 0.08);
    ck_assert_double_eq_tol(squares / MOST, 16. / 12, 0.1);
    sum = squares = 0;
    for (int i = 0; i < MOST; i++) {
        sum += (double)x[i];
        squares += ((double)x[i] - 2) * ((double)x[i] - 2);
        beyond += fabsf(x[i] - 2) > 1; /* 2 standard deviations: 4.55 % */
    }
    ck_assert_double_eq_tol(sum / MOST, 2, 0.04);
    ck_assert_double_eq_tol(squares / MOST, 0.25, 0.03);
    ck_assert_int_gt(beyond, 130);
    ck_assert_int_lt(beyond, 245);
}
END_TEST

START_TEST(mean_squared_error_is_the_mean)
{
    ipu_tensor u = variable(2, SHAPE(3, 5)), v = variable(1, SHAPE(5));

    check_gradients(ipu_mean_squared_error(d.graph, u, v));
}
END_TEST

START_TEST(chance_refuses)
{
    ipu_tensor in = input(1, SHAPE(4)), odd = device_floats(&d, "o", 0, NULL);
    ipu_tensor step = ipu_fill(d.graph, IPU_INT32, 0, NULL, 0);

    switch (_i) {
    case 0:
        refused(ipu_dropout(d.graph, in, 1, 0, step), IPU_ERR_ARGUMENT,
                "dropout: the rate is 1, it must be 0 or more and less than 1");
        break;
    case 1:
        refused(ipu_dropout(d.graph, in, NAN, 0, step), IPU_ERR_ARGUMENT,
                "dropout: the rate is nan");
        break;
    case 2:
        refused(ipu_dropout(d.graph, in, 0.5, 0, odd), IPU_ERR_SHAPE,
                "dropout: o is float32 [], it must be int32 the step");
        break;
    case 3:
        refused(ipu_random_normal(d.graph, 1, NULL, 0, 1, 0, step),
                IPU_ERR_ARGUMENT, "random_normal: the shape is NULL");
        break;
    case 4:
        refused(ipu_random_uniform(d.graph, 0, NULL, 0, INFINITY, 0, step),
                IPU_ERR_ARGUMENT, "random_uniform: 0 and inf must be finite");
        break;
    case 5:
        refused(ipu_fill(d.graph, IPU_INT32, 0, NULL, 0.5), IPU_ERR_ARGUMENT,
                "fill: 0.5 is no int32");
        break;
    default:
        refused(ipu_mean_squared_error(d.graph, in,
                                       device_floats(&d, "t", 1, SHAPE(3))),
                IPU_ERR_SHAPE, "subtract: x is float32 [4] and t is");
    }
}
END_TEST

static TCase *tcase_chance(void)
{
    TCase *tcase = tcase_create("chance");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, dropout_drops_by_seed_and_step);
    tcase_add_test(tcase, seeds_differ);
    tcase_add_loop_test(tcase, derivatives_of_dropout, 0, 3);
    tcase_add_loop_test(tcase, random_numbers_have_their_distribution, 0, 3);
    tcase_add_test(tcase, mean_squared_error_is_the_mean);
    tcase_add_loop_test(tcase, chance_refuses, 0, 7);
    return tcase;
}

HVD_TEST_MAIN("device_layers", tcase_softmax, tcase_norms, tcase_images,
              tcase_chance)
