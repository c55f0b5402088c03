/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every op against a naive computation of its own, and what it refuses.
 */
#include "check_main.h"
#include "device_graph.h"

/* Run a graph whose one output is y, with inputs x0, x1 connected. */
static float *run(ipu_graph *graph, ipu_tensor y, const void *x0, size_t bytes0,
                  const void *x1, size_t bytes1)
{
    int64_t count = device_count(graph, y);
    float *out = malloc((size_t)(count + 1) * sizeof *out);
    ipu_executable *executable;
    ipu_engine *engine;
    void *in0 = malloc(bytes0 + 1), *in1 = malloc(bytes1 + 1);

    ck_ipu(ipu_output(graph, "y", y));
    engine = device_load(graph, &executable);
    memcpy(in0, x0, bytes0);
    ck_ipu(ipu_engine_connect(engine, "x0", in0, bytes0));
    if (x1) {
        memcpy(in1, x1, bytes1);
        ck_ipu(ipu_engine_connect(engine, "x1", in1, bytes1));
    }
    ck_ipu(ipu_engine_connect(engine, "y", out, (size_t)count * sizeof *out));
    /* Twice: what the first run leaves behind must not matter. */
    ck_ipu(ipu_engine_run(engine));
    memset(out, 0xff, (size_t)count * sizeof *out);
    ck_ipu(ipu_engine_run(engine));
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    free(in0);
    free(in1);
    return out;
}

static void check_close(const float *got, const float *want, int64_t count,
                        double tolerance)
{
    for (int64_t i = 0; i < count; i++)
        if (!(fabs((double)got[i] - (double)want[i]) <=
              tolerance * (1 + fabs((double)want[i]))))
            ck_abort_msg("[%lld] is %.9g, not %.9g", (long long)i,
                         (double)got[i], (double)want[i]);
}

/* -------------------------------------------------------------- convolution */

struct conv_case {
    int64_t n, h, w, ci, kh, kw, co;
    int32_t stride[2], same;
};

static int64_t out_extent(int64_t extent, int64_t k, int32_t stride, int same)
{
    return same ? (extent + stride - 1) / stride : (extent - k) / stride + 1;
}

static int64_t pad_before(int64_t extent, int64_t k, int32_t stride, int same)
{
    int64_t total = (out_extent(extent, k, stride, same) - 1) * stride + k -
                    extent;

    return same && total > 0 ? total / 2 : 0;
}

static float *naive_conv(const struct conv_case *c, const float *x,
                         const float *k)
{
    int64_t ho = out_extent(c->h, c->kh, c->stride[0], c->same);
    int64_t wo = out_extent(c->w, c->kw, c->stride[1], c->same);
    int64_t top = pad_before(c->h, c->kh, c->stride[0], c->same);
    int64_t left = pad_before(c->w, c->kw, c->stride[1], c->same);
    float *y = malloc((size_t)(c->n * ho * wo * c->co + 1) * sizeof *y), *at = y;

    for (int64_t n = 0; n < c->n; n++)
        for (int64_t i = 0; i < ho; i++)
            for (int64_t j = 0; j < wo; j++)
                for (int64_t o = 0; o < c->co; o++, at++) {
                    double sum = 0;
                    for (int64_t a = 0; a < c->kh; a++)
                        for (int64_t b = 0; b < c->kw; b++)
                            for (int64_t q = 0; q < c->ci; q++) {
                                int64_t r = i * c->stride[0] + a - top;
                                int64_t s = j * c->stride[1] + b - left;
                                if (r < 0 || r >= c->h || s < 0 || s >= c->w)
                                    continue;
                                sum += (double)x[((n * c->h + r) * c->w + s) *
                                                     c->ci +
                                                 q] *
                                       (double)k[((a * c->kw + b) * c->ci + q) *
                                                     c->co +
                                                 o];
                            }
                    *at = (float)sum;
                }
    return y;
}

START_TEST(conv2d_is_right)
{
    static const struct conv_case cases[] = {
        {1, 3, 3, 1, 3, 3, 1, {1, 1}, 0},  {2, 5, 7, 3, 3, 2, 4, {1, 1}, 0},
        {2, 8, 8, 2, 3, 3, 5, {2, 2}, 0},  {3, 7, 5, 2, 3, 3, 3, {1, 1}, 1},
        {2, 9, 6, 1, 4, 5, 2, {2, 3}, 1},  {1, 4, 4, 3, 1, 1, 7, {1, 1}, 0},
        {5, 28, 28, 1, 3, 3, 32, {1, 1}, 0}, {0, 5, 5, 1, 3, 3, 2, {1, 1}, 0},
        {40, 20, 20, 8, 5, 5, 16, {1, 1}, 1}, {2, 3, 3, 2, 5, 5, 2, {1, 1}, 1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct conv_case *c = &cases[i];
        const ipu_conv_options options = {sizeof options,
                                          {c->stride[0], c->stride[1]},
                                          c->same};
        int64_t nx = c->n * c->h * c->w * c->ci;
        int64_t nk = c->kh * c->kw * c->ci * c->co;
        float *x = device_values(1, nx), *k = device_values(2, nk);
        float *want = naive_conv(c, x, k), *got;
        ipu_graph *graph;
        ipu_tensor y;

        ck_ipu(ipu_graph_new(&graph));
        y = ipu_conv2d(
            graph,
            ipu_input(graph, "x0", IPU_FLOAT32, SHAPE(c->n, c->h, c->w, c->ci)),
            ipu_input(graph, "x1", IPU_FLOAT32,
                      SHAPE(c->kh, c->kw, c->ci, c->co)),
            &options);
        got = run(graph, y, x, (size_t)nx * 4, k, (size_t)nk * 4);
        check_close(got, want, device_count(graph, y), 1e-5);
        ipu_graph_free(graph);
        free(x);
        free(k);
        free(want);
        free(got);
    }
}
END_TEST

/* ------------------------------------------------------------------ pooling */

START_TEST(max_pool2d_is_right)
{
    static const int64_t cases[][5] = {
        {1, 2, 2, 1, 2}, {2, 7, 9, 3, 2}, {3, 9, 10, 2, 3}, {2, 5, 5, 4, 1},
        {0, 4, 4, 1, 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t n = cases[i][0], h = cases[i][1], w = cases[i][2];
        int64_t c = cases[i][3], size = cases[i][4], at = 0;
        float *x = device_values(3, n * h * w * c), *got;
        ipu_graph *graph;
        ipu_tensor y;

        ck_ipu(ipu_graph_new(&graph));
        y = ipu_max_pool2d(
            graph, ipu_input(graph, "x0", IPU_FLOAT32, SHAPE(n, h, w, c)),
            (int32_t)size);
        got = run(graph, y, x, (size_t)(n * h * w * c) * 4, NULL, 0);
        for (int64_t b = 0; b < n; b++)
            for (int64_t r = 0; r < h / size; r++)
                for (int64_t s = 0; s < w / size; s++)
                    for (int64_t q = 0; q < c; q++, at++) {
                        float most = -2;
                        for (int64_t k = 0; k < size * size; k++) {
                            float v = x[((b * h + r * size + k / size) * w +
                                         s * size + k % size) *
                                            c +
                                        q];
                            most = v > most ? v : most;
                        }
                        ck_assert(got[at] == most);
                    }
        ck_assert_int_eq(at, device_count(graph, y));
        ipu_graph_free(graph);
        free(x);
        free(got);
    }
}
END_TEST

START_TEST(max_pool2d_passes_nan)
{
    float x[4] = {1, NAN, 3, 2}, *got;
    ipu_graph *graph;

    for (int at = 0; at < 4; at++) {
        for (int i = 0; i < 4; i++)
            x[i] = i == at ? NAN : (float)i;
        ck_ipu(ipu_graph_new(&graph));
        got = run(graph,
                  ipu_max_pool2d(graph,
                                 ipu_input(graph, "x0", IPU_FLOAT32,
                                           SHAPE(1, 2, 2, 1)),
                                 2),
                  x, sizeof x, NULL, 0);
        ck_assert(isnan(got[0]));
        free(got);
        ipu_graph_free(graph);
    }
}
END_TEST

/* -------------------------------------------------------------- the others */

START_TEST(matmul_is_right)
{
    static const int64_t cases[][3] = {
        {1, 1, 1}, {3, 5, 7}, {64, 100, 10}, {17, 1, 33}, {0, 4, 5}, {4, 0, 5},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t m = cases[i][0], k = cases[i][1], n = cases[i][2];
        float *a = device_values(4, m * k), *b = device_values(5, k * n);
        float *got;
        ipu_graph *graph;

        ck_ipu(ipu_graph_new(&graph));
        got = run(graph,
                  ipu_matmul(graph,
                             ipu_input(graph, "x0", IPU_FLOAT32, SHAPE(m, k)),
                             ipu_input(graph, "x1", IPU_FLOAT32, SHAPE(k, n))),
                  a, (size_t)(m * k) * 4, b, (size_t)(k * n) * 4);
        for (int64_t r = 0; r < m; r++)
            for (int64_t c = 0; c < n; c++) {
                double sum = 0;
                for (int64_t q = 0; q < k; q++)
                    sum += (double)a[r * k + q] * (double)b[q * n + c];
                ck_assert(fabs((double)got[r * n + c] - sum) < 1e-5);
            }
        ipu_graph_free(graph);
        free(a);
        free(b);
        free(got);
    }
}
END_TEST

START_TEST(elementwise_ops_are_right)
{
    enum { N = 1003 };
    float *a = device_values(6, N), *b = device_values(7, N), *got;
    ipu_graph *graph;
    ipu_tensor x, y;

    for (int which = 0; which < 3; which++) {
        ck_ipu(ipu_graph_new(&graph));
        x = ipu_input(graph, "x0", IPU_FLOAT32, SHAPE(17, 59));
        y = which == 2 ? ipu_relu(graph, x)
                       : ipu_input(graph, "x1", IPU_FLOAT32, SHAPE(17, 59));
        if (which < 2)
            y = (which ? ipu_multiply : ipu_add)(graph, x, y);
        got = run(graph, y, a, N * 4, which < 2 ? b : NULL, N * 4);
        for (int i = 0; i < N; i++) {
            float want = which == 0   ? a[i] + b[i]
                         : which == 1 ? a[i] * b[i]
                         : a[i] > 0   ? a[i]
                                      : 0;
            ck_assert(got[i] == want);
        }
        ipu_graph_free(graph);
        free(got);
    }
    free(a);
    free(b);
}
END_TEST

START_TEST(bias_and_sum_and_reshape_are_right)
{
    float *x = device_values(8, 4 * 5 * 6), *bias = device_values(9, 6), *got;
    double sum = 0;
    ipu_graph *graph;
    ipu_tensor t;

    ck_ipu(ipu_graph_new(&graph));
    t = ipu_bias_add(graph, ipu_input(graph, "x0", IPU_FLOAT32, SHAPE(4, 5, 6)),
                     ipu_input(graph, "x1", IPU_FLOAT32, SHAPE(6)));
    got = run(graph, ipu_reshape(graph, t, SHAPE(-1, 3)), x, 480, bias, 24);
    for (int i = 0; i < 120; i++)
        ck_assert(got[i] == x[i] + bias[i % 6]);
    ipu_graph_free(graph);
    free(got);

    ck_ipu(ipu_graph_new(&graph));
    t = ipu_input(graph, "x0", IPU_FLOAT32, SHAPE(4, 5, 6));
    got = run(graph, ipu_reduce_sum(graph, t, 0.25), x, 480, NULL, 0);
    for (int i = 0; i < 120; i++)
        sum += (double)x[i];
    ck_assert(fabs((double)got[0] - sum / 4) < 1e-6);
    ipu_graph_free(graph);
    free(got);
    free(x);
    free(bias);
}
END_TEST

START_TEST(softmax_cross_entropy_is_right)
{
    enum { N = 7, C = 5 };
    float *x = device_values(10, N * C), *got;
    int32_t labels[N] = {0, 4, 2, 2, 1, 3, 0};
    ipu_graph *graph;

    for (int i = 0; i < C; i++) {
        x[i] *= 1000;     /* must not overflow */
        x[C + i] = -1e30f; /* all equal: log of the number of classes */
    }
    ck_ipu(ipu_graph_new(&graph));
    got = run(graph,
              ipu_softmax_cross_entropy(
                  graph, ipu_input(graph, "x0", IPU_FLOAT32, SHAPE(N, C)),
                  ipu_input(graph, "x1", IPU_INT32, SHAPE(N))),
              x, N * C * 4, labels, sizeof labels);
    for (int r = 0; r < N; r++) {
        double sum = 0, most = -1e300;
        for (int i = 0; i < C; i++)
            most = fmax(most, (double)x[r * C + i]);
        for (int i = 0; i < C; i++)
            sum += exp((double)x[r * C + i] - most);
        most -= (double)x[r * C + labels[r]];
        ck_assert(fabs((double)got[r] - (log(sum) + most)) < 1e-4);
    }
    free(got);
    free(x);
    ipu_graph_free(graph);
}
END_TEST

START_TEST(a_label_out_of_range_names_its_row)
{
    float x[6] = {0}, losses[3] = {7, 7, 7};
    int32_t labels[3] = {0, 1, 2};
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;

    ck_ipu(ipu_graph_new(&graph));
    ck_ipu(ipu_output(
        graph, "y",
        ipu_softmax_cross_entropy(
            graph, ipu_input(graph, "logits", IPU_FLOAT32, SHAPE(3, 2)),
            ipu_input(graph, "labels", IPU_INT32, SHAPE(3)))));
    engine = device_load(graph, &executable);
    ck_ipu(ipu_engine_connect(engine, "logits", x, sizeof x));
    ck_ipu(ipu_engine_connect(engine, "labels", labels, sizeof labels));
    ck_ipu(ipu_engine_connect(engine, "y", losses, sizeof losses));
    ck_ipu_fails(ipu_engine_run(engine), IPU_ERR_DATA, "row 2");
    ck_assert(strstr(ipu_last_error(), "label 2") != NULL);
    labels[2] = -1;
    ck_ipu_fails(ipu_engine_run(engine), IPU_ERR_DATA, "label -1");
    ck_assert(losses[0] == 7);
    labels[2] = 1;
    ck_ipu(ipu_engine_run(engine));
    ck_assert(fabs((double)losses[2] - log(2)) < 1e-6);
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    ipu_graph_free(graph);
}
END_TEST

/* ----------------------------------------------------------------- refusals */

/* An op given what does not fit: invalid, and compiling says why. */
#define REFUSED(op, status, text)                                              \
    do {                                                                       \
        ipu_graph *graph;                                                      \
        ipu_executable *executable = NULL;                                     \
        ck_ipu(ipu_graph_new(&graph));                                         \
        ipu_tensor a = ipu_input(graph, "a", IPU_FLOAT32, SHAPE(4, 6));        \
        ipu_tensor b = ipu_input(graph, "b", IPU_FLOAT32, SHAPE(5, 6));        \
        ipu_tensor v = ipu_input(graph, "v", IPU_FLOAT32, SHAPE(7));           \
        ipu_tensor i = ipu_input(graph, "i", IPU_INT32, SHAPE(4));             \
        ipu_tensor x =                                                         \
            ipu_input(graph, "x", IPU_FLOAT32, SHAPE(2, 5, 5, 3));             \
        ipu_tensor k =                                                         \
            ipu_variable(graph, "k", IPU_FLOAT32, SHAPE(3, 3, 2, 8));          \
        (void)a, (void)b, (void)v, (void)i, (void)x, (void)k;                  \
        ipu_tensor none = (op);                                                \
        ck_assert_int_lt(none.id, 0);                                          \
        ck_assert_int_lt(ipu_relu(graph, none).id, 0);                         \
        ck_ipu_fails(ipu_compile(graph, NULL, &executable), status, text);     \
        ck_assert(executable == NULL);                                         \
        ipu_graph_free(graph);                                                 \
    } while (0)

START_TEST(shapes_that_do_not_fit_are_refused)
{
    static const ipu_conv_options zero = {sizeof zero, {0, 1}, 0};
    static const ipu_conv_options unset = {0, {1, 1}, 0};
    static const int64_t big[] = {INT64_MAX / 2, 4}, bad[] = {3, -2};

    REFUSED(ipu_matmul(graph, a, b), IPU_ERR_SHAPE, "a is float32 [4,6]");
    REFUSED(ipu_matmul(graph, a, v), IPU_ERR_SHAPE, "v is float32 [7]");
    REFUSED(ipu_matmul(graph, i, a), IPU_ERR_SHAPE, "i is int32 [4]");
    REFUSED(ipu_bias_add(graph, a, v), IPU_ERR_SHAPE, "bias_add");
    REFUSED(ipu_add(graph, a, b), IPU_ERR_SHAPE, "b is float32 [5,6]");
    REFUSED(ipu_multiply(graph, a, v), IPU_ERR_SHAPE, "multiply");
    REFUSED(ipu_relu(graph, i), IPU_ERR_SHAPE, "relu");
    REFUSED(ipu_conv2d(graph, x, k, NULL), IPU_ERR_SHAPE, "[3,3,2,8]");
    REFUSED(ipu_conv2d(graph, a, k, NULL), IPU_ERR_SHAPE, "conv2d");
    REFUSED(ipu_conv2d(graph, x, k, &zero), IPU_ERR_ARGUMENT, "stride 0");
    REFUSED(ipu_conv2d(graph, x, k, &unset), IPU_ERR_ARGUMENT, "size");
    REFUSED(ipu_conv2d(graph, x,
                       ipu_input(graph, "large", IPU_FLOAT32,
                                 SHAPE(9, 9, 3, 1)),
                       NULL),
            IPU_ERR_SHAPE, "larger than the image");
    REFUSED(ipu_max_pool2d(graph, x, 0), IPU_ERR_ARGUMENT, "0 x 0");
    REFUSED(ipu_max_pool2d(graph, x, 6), IPU_ERR_SHAPE, "6 x 6");
    REFUSED(ipu_max_pool2d(graph, a, 2), IPU_ERR_SHAPE, "max_pool2d");
    REFUSED(ipu_reshape(graph, a, SHAPE(5, 5)), IPU_ERR_SHAPE, "[5,5]");
    REFUSED(ipu_reshape(graph, a, SHAPE(-1, -1)), IPU_ERR_SHAPE, "-1");
    REFUSED(ipu_reshape(graph, a, SHAPE(-1, 5)), IPU_ERR_SHAPE, "divide");
    REFUSED(ipu_reshape(graph, a, 9, big), IPU_ERR_SHAPE, "dimensions");
    REFUSED(ipu_softmax_cross_entropy(graph, a, b), IPU_ERR_SHAPE, "softmax");
    REFUSED(ipu_softmax_cross_entropy(graph, b, i), IPU_ERR_SHAPE, "rows");
    REFUSED(ipu_input(graph, "a", IPU_FLOAT32, SHAPE(1)), IPU_ERR_NAME, "'a'");
    REFUSED(ipu_input(graph, "", IPU_FLOAT32, SHAPE(1)), IPU_ERR_NAME, "name");
    REFUSED(ipu_variable(graph, NULL, IPU_FLOAT32, SHAPE(1)), IPU_ERR_NAME,
            "name");
    REFUSED(ipu_input(graph, "n", 9, SHAPE(1)), IPU_ERR_ARGUMENT, "dtype 9");
    REFUSED(ipu_input(graph, "n", IPU_FLOAT32, 2, bad), IPU_ERR_SHAPE, "-2");
    REFUSED(ipu_input(graph, "n", IPU_FLOAT32, 2, big), IPU_ERR_SHAPE,
            "memory");
    REFUSED(ipu_input(graph, "n", IPU_FLOAT32, 9, big), IPU_ERR_SHAPE,
            "9 dimensions");
    REFUSED(ipu_input(graph, "n", IPU_FLOAT32, 2, NULL), IPU_ERR_ARGUMENT,
            "NULL");
}
END_TEST

START_TEST(tensors_of_another_graph_are_refused)
{
    ipu_graph *one, *other;
    ipu_tensor x;

    ck_ipu(ipu_graph_new(&one));
    ck_ipu(ipu_graph_new(&other));
    x = ipu_input(one, "x", IPU_FLOAT32, SHAPE(2));
    ck_assert_int_lt(ipu_relu(other, x).id, 0);
    ck_assert(strstr(ipu_last_error(), "another graph") != NULL);
    ck_assert_int_lt(ipu_relu(NULL, x).id, 0);
    ck_assert_int_ge(ipu_relu(one, x).id, 0);
    ipu_graph_free(one);
    ipu_graph_free(other);
    ipu_graph_free(NULL);
}
END_TEST

static TCase *tcase_values(void)
{
    TCase *tcase = tcase_create("values");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, conv2d_is_right);
    tcase_add_test(tcase, max_pool2d_is_right);
    tcase_add_test(tcase, max_pool2d_passes_nan);
    tcase_add_test(tcase, matmul_is_right);
    tcase_add_test(tcase, elementwise_ops_are_right);
    tcase_add_test(tcase, bias_and_sum_and_reshape_are_right);
    tcase_add_test(tcase, softmax_cross_entropy_is_right);
    tcase_add_test(tcase, a_label_out_of_range_names_its_row);
    return tcase;
}

static TCase *tcase_refusals(void)
{
    TCase *tcase = tcase_create("refusals");

    tcase_add_test(tcase, shapes_that_do_not_fit_are_refused);
    tcase_add_test(tcase, tensors_of_another_graph_are_refused);
    return tcase;
}

HVD_TEST_MAIN("device_ops", tcase_values, tcase_refusals)
