/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests softmax and normalisations. Values are compared with their definitions
 * in double, derivatives with differences; wrong arguments are refused.
 */
#include "suite.h"

#include <stdbool.h>

#include "layers.h"

/* ------------------------------------------------------------------ softmax */

static const int64_t tables[][2] = {{1, 1},  {3, 2}, {7, 33}, {2, 1025},
                                    {5, 16}, {0, 4}, {3, 0},  {64, 64}};
enum { TABLES = sizeof tables / sizeof *tables };

LOOP_TEST(softmax_and_its_logarithm, 0, 2 * TABLES)
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

TEST(softmax_of_the_extremes)
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
    wanted[7] = wanted[8] =
        0; /* infinity - infinity is NaN, 0 - infinity is not */
    compute(ipu_softmax(d.graph, input(2, SHAPE(5, 3))), 15);
    wanted[7] = wanted[8] = isnan(y[7]) ? NAN : 0;
    check_values(15, 1e-6);
}

LOOP_TEST(derivatives_of_softmax, 0, 2)
{
    ipu_tensor v = variable(3, SHAPE(2, 3, 7));

    check_gradients(_i ? ipu_log_softmax(d.graph, v) : ipu_softmax(d.graph, v));
}

TEST(softmax_refuses)
{
    refused(ipu_softmax(d.graph, input(0, NULL)), IPU_ERR_SHAPE,
            "softmax: x is float32 [], it must be float32 [..., n]");
}

/* Labels for each position of each sequence. */
TEST(cross_entropy_of_sequences)
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

/* ----------------------------------------------------------- normalisations */

enum { LAYER, LAYER_OF_TWO, GROUP, BATCH, NORMS };

/* The kinds of x for each layer, and their views as [outer, rows, groups,
 * columns]. */
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
    {LAYER, 2, {3, 0}, {3, 1, 1, 0}},
    {BATCH, 2, {4, 0}, {1, 4, 0, 1}},
    {BATCH, 2, {0, 4}, {1, 0, 4, 1}},
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

/* Returns the shape of scale and offset: the last dimension, or the last
 * two. */
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

/* Computes means and variances of each group of x, by the definition. */
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

LOOP_TEST(normalisations_follow_their_definition, 0, NORM_CASES)
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
        x[i] += 100; /* far from 0, two passes are needed */
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

LOOP_TEST(derivatives_of_normalisations, 0, NORM_CASES)
{
    const int64_t *shape;
    int32_t ndim = parameters(_i, &shape);
    ipu_tensor v = variable(norms[_i].ndim, norms[_i].shape);
    ipu_tensor scale = variable(ndim, shape);

    if (norms[_i].view[2] * norms[_i].view[3] == 0)
        return; /* ipu_reshape cannot tell how many rows of nothing there are */
    check_gradients(normalise(_i, v, scale, variable(ndim, shape)));
}

/* Batch normalisation of many rows, of channels that fill no register, and its
 * derivatives. Their first row is far from the others, which are far from 0:
 * what is added up in float must not lose them. */
enum { ROWS = 101, CHANNELS = 37, ALL = ROWS * CHANNELS };

static struct {
    float g[ALL], dx[ALL], scale[CHANNELS], dscale[CHANNELS], doffset[CHANNELS];
} many;

static void fill_many(void)
{
    device_fill(x, ALL, 1);
    device_fill(many.g, ALL, 2);
    device_fill(many.scale, CHANNELS, 3);
    for (int64_t i = 0; i < ALL; i++)
        x[i] += i < CHANNELS ? 700 : 300;
}

/* Computes y (what 0), dx (1), and in the first rows of wanted dscale and
 * doffset (2, 3), by their definitions. */
static void want(int what)
{
    for (int c = 0; c < CHANNELS; c++) {
        double mean = 0, variance = 0, dz = 0, dzz = 0, s, f;

        for (int i = c; i < ALL; i += CHANNELS)
            mean += (double)x[i] / ROWS;
        for (int i = c; i < ALL; i += CHANNELS)
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / ROWS;
        f = 1 / sqrt(variance + EPSILON);
        s = (double)many.scale[c];
        for (int i = c; i < ALL; i += CHANNELS) {
            dz += (double)many.g[i];
            dzz += (double)many.g[i] * ((double)x[i] - mean) * f;
        }
        for (int i = c; i < ALL; i += CHANNELS) {
            double z = ((double)x[i] - mean) * f;

            wanted[i] =
                what ? f * s * ((double)many.g[i] - dz / ROWS - z * dzz / ROWS)
                     : z * s;
        }
        if (what > 1)
            wanted[c] = what == 2 ? dzz : dz;
    }
}

/* Normalises x and differentiates by so many of x, scale and offset. */
static void run_many(int from, int to)
{
    const int64_t channels = CHANNELS, shape[2] = {ROWS, CHANNELS};
    const char *const outputs[] = {"dx", "dscale", "doffset"};
    float *const places[] = {many.dx, many.dscale, many.doffset};
    ipu_tensor v[3], dv[3], g, result, mean;

    device_free(&d);
    d = device_new();
    v[0] = input(2, shape);
    v[1] = device_floats(&d, "scale", 1, &channels);
    v[2] = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 0);
    g = device_floats(&d, "g", 2, shape);
    mean = ipu_variable(d.graph, "mean", IPU_FLOAT32, 1, &channels);
    result = ipu_batch_norm(
        d.graph, v[0], v[1], v[2], mean,
        ipu_variable(d.graph, "variance", IPU_FLOAT32, 1, &channels), 0.75,
        EPSILON);
    MUST(ipu_output(d.graph, "y", result));
    result = ipu_reduce_sum(d.graph, ipu_multiply(d.graph, result, g), 1);
    MUST(ipu_gradients(d.graph, result, to - from, v + from, dv + from));
    for (int i = from; i < to; i++)
        MUST(ipu_output(d.graph, outputs[i], dv[i]));
    device_load(&d);
    device_connect(&d, "x", x, ALL);
    device_connect(&d, "scale", many.scale, CHANNELS);
    device_connect(&d, "y", y, ALL);
    for (int i = from; i < to; i++)
        device_connect(&d, outputs[i], places[i], i ? CHANNELS : ALL);
    device_connect(&d, "g", x, ALL);
    MUST(ipu_engine_run(d.engine)); /* of which nothing may be left */
    device_connect(&d, "g", many.g, ALL);
    MUST(ipu_engine_run(d.engine));
}

LOOP_TEST(batch_norm_of_many_rows, 0, 4)
{
    const float *of[] = {y, many.dx, many.dscale, many.doffset};
    int64_t count = _i < 2 ? ALL : CHANNELS;

    fill_many();
    run_many(0, 3);
    want(_i);
    if (_i)
        memcpy(y, of[_i], (size_t)count * sizeof *y);
    check_values(count, 2e-6);
}

/* Sums that derivatives have in common have the same bits as their own. */
TEST(derivatives_of_batch_norm_one_by_one)
{
    float dx[ALL], dscale[CHANNELS], doffset[CHANNELS];

    fill_many();
    run_many(0, 3);
    memcpy(dx, many.dx, sizeof dx);
    memcpy(dscale, many.dscale, sizeof dscale);
    memcpy(doffset, many.doffset, sizeof doffset);
    memset(&many.dx, 0, sizeof many.dx);
    memset(many.dscale, 0, sizeof many.dscale);
    memset(many.doffset, 0, sizeof many.doffset);
    for (int i = 0; i < 3; i++)
        run_many(i, i + 1);
    ck_assert_mem_eq(dx, many.dx, sizeof dx);
    ck_assert_mem_eq(dscale, many.dscale, sizeof dscale);
    ck_assert_mem_eq(doffset, many.doffset, sizeof doffset);
}

TEST(batch_norm_keeps_statistics)
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

/* The input may be of halves; the statistics that are kept are float32. */
LOOP_TEST(batch_norm_infers_from_what_is_kept, 0, 2)
{
    const ipu_dtype dtype = _i ? IPU_FLOAT16 : IPU_FLOAT32;
    const int64_t channels = 2;
    ipu_tensor in = ipu_cast(d.graph, input(2, SHAPE(3, 2)), dtype), result;
    ipu_tensor scale = ipu_fill(d.graph, dtype, 1, &channels, 3);
    ipu_tensor offset = ipu_fill(d.graph, dtype, 1, &channels, -1);
    ipu_tensor mean = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 0.5);
    ipu_tensor variance = ipu_fill(d.graph, IPU_FLOAT32, 1, &channels, 4);

    device_fill(x, 6, 1);
    for (int i = 0; i < 6; i++)
        wanted[i] = ((double)x[i] - 0.5) / sqrt(4 + 1e-5) * 3 - 1;
    result = ipu_batch_norm_inference(d.graph, in, scale, offset, mean,
                                      variance, 1e-5);
    compute(ipu_cast(d.graph, result, IPU_FLOAT32), 6);
    check_values(6, _i ? 4e-3 : 1e-6);
}

/* Each group has its own mean: a NaN must spoil its own group only. */
LOOP_TEST(nan_stays_in_its_group, 0, 2)
{
    ipu_tensor in = input(2, SHAPE(3, 40));
    ipu_tensor scale = ipu_fill(d.graph, IPU_FLOAT32, 1, SHAPE(40), 1);

    device_fill(x, 120, 1);
    x[43] = _i ? NAN : INFINITY;
    compute(ipu_layer_norm(d.graph, in, scale, scale, 1e-5), 120);
    for (int i = 0; i < 120; i++)
        ck_assert_int_eq(isnan(y[i]) != 0, i / 40 == 1);
}

LOOP_TEST(normalisations_refuse, 0, 9)
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

TEST_MAIN("device_layers", .set_up = set_up, .tear_down = tear_down)
