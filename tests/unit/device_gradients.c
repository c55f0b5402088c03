/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derivatives of every op against central differences.
 *
 * The loss of an op is the sum of its output times fixed weights, so that
 * every element of the output counts differently. For each element of each
 * input: (loss(x + h) - loss(x - h)) / 2h. Losses are float32, so h is large
 * and the comparison loose; inputs keep away from the kinks of relu and max
 * by more than h.
 */
#include "check_main.h"
#include "device_graph.h"

enum { MOST_INPUTS = 2 };
static const double H = 0x1p-5;

struct model {
    ipu_graph *graph;
    ipu_tensor inputs[MOST_INPUTS];
    int ninputs;
    int32_t *labels; /* NULL: none */
    int64_t nlabels;
};

static ipu_tensor variable(struct model *m, int32_t ndim, const int64_t *shape)
{
    static const char *const names[] = {"v0", "v1"};
    ipu_tensor t = ipu_variable(m->graph, names[m->ninputs], IPU_FLOAT32, ndim,
                                shape);

    return m->inputs[m->ninputs++] = t;
}

/* The loss, and its derivatives as outputs d0, d1. */
static void finish(struct model *m, ipu_tensor y)
{
    int64_t shape[IPU_MAX_DIMS];
    int ndim = ipu_tensor_info(m->graph, y, NULL, shape, NULL);
    ipu_tensor weights = ipu_input(m->graph, "weights", IPU_FLOAT32,
                                   ndim < 0 ? 0 : ndim, shape);
    ipu_tensor loss =
        ipu_reduce_sum(m->graph, ipu_multiply(m->graph, y, weights), 0.5);
    ipu_tensor gradients[MOST_INPUTS];

    ck_ipu(ipu_output(m->graph, "loss", loss));
    ck_ipu(
        ipu_gradients(m->graph, loss, m->ninputs, m->inputs, gradients));
    ck_ipu(ipu_output(m->graph, "d0", gradients[0]));
    if (m->ninputs > 1)
        ck_ipu(ipu_output(m->graph, "d1", gradients[1]));
}

static double loss_of(ipu_engine *engine, const float *loss)
{
    ck_ipu(ipu_engine_run(engine));
    return (double)*loss;
}

static void compare(ipu_engine *engine, const char *name, float *values,
                    const float *gradient, int64_t count, const float *loss)
{
    size_t bytes = (size_t)count * sizeof *values;

    for (int64_t i = 0; i < count; i++) {
        float kept = values[i];
        double above, below, difference;

        values[i] = (float)((double)kept + H);
        ck_ipu(ipu_engine_write(engine, name, values, bytes));
        above = loss_of(engine, loss);
        values[i] = (float)((double)kept - H);
        ck_ipu(ipu_engine_write(engine, name, values, bytes));
        below = loss_of(engine, loss);
        values[i] = kept;
        difference = (above - below) / (2 * H);
        if (fabs(difference - (double)gradient[i]) >
            2e-3 * (1 + fabs(difference)))
            ck_abort_msg("d loss / d %s[%lld] is %.6f, by differences %.6f",
                         name, (long long)i, (double)gradient[i], difference);
    }
    ck_ipu(ipu_engine_write(engine, name, values, bytes));
}

/* values: of the inputs; owned from now on. */
static void check(struct model *m, ipu_tensor y, float *const *values)
{
    static const char *const names[] = {"v0", "v1"}, *const d[] = {"d0", "d1"};
    int64_t ny = device_count(m->graph, y);
    float *weights = device_values(99, ny), *gradients[MOST_INPUTS], loss;
    float *fixed[MOST_INPUTS];
    ipu_executable *executable;
    ipu_engine *engine;

    finish(m, y);
    engine = device_load(m->graph, &executable);
    ck_ipu(ipu_engine_connect(engine, "weights", weights, (size_t)ny * 4));
    ck_ipu(ipu_engine_connect(engine, "loss", &loss, sizeof loss));
    if (m->labels)
        ck_ipu(ipu_engine_connect(engine, "labels", m->labels,
                                  (size_t)m->nlabels * 4));
    for (int i = 0; i < m->ninputs; i++) {
        int64_t count = device_count(m->graph, m->inputs[i]);

        gradients[i] = malloc((size_t)count * 4 + 1);
        fixed[i] = malloc((size_t)count * 4 + 1);
        ck_ipu(ipu_engine_write(engine, names[i], values[i],
                                (size_t)count * 4));
        ck_ipu(ipu_engine_connect(engine, d[i], gradients[i],
                                  (size_t)count * 4));
    }
    ck_ipu(ipu_engine_run(engine));
    for (int i = 0; i < m->ninputs; i++)
        memcpy(fixed[i], gradients[i],
               (size_t)device_count(m->graph, m->inputs[i]) * 4);
    for (int i = 0; i < m->ninputs; i++)
        compare(engine, names[i], values[i], fixed[i],
                device_count(m->graph, m->inputs[i]), &loss);
    for (int i = 0; i < m->ninputs; i++) {
        free(values[i]);
        free(gradients[i]);
        free(fixed[i]);
    }
    free(weights);
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    ipu_graph_free(m->graph);
}

static struct model begin(void)
{
    struct model m = {0};

    ck_ipu(ipu_graph_new(&m.graph));
    return m;
}

START_TEST(conv2d)
{
    static const struct {
        int64_t x[4], k[4];
        ipu_conv_options options;
    } cases[] = {
        {{2, 5, 4, 2}, {3, 2, 2, 3}, {sizeof(ipu_conv_options), {1, 1}, 0}},
        {{1, 6, 7, 1}, {3, 3, 1, 2}, {sizeof(ipu_conv_options), {2, 2}, 0}},
        {{2, 5, 5, 2}, {3, 3, 2, 2}, {sizeof(ipu_conv_options), {1, 1}, 1}},
        {{1, 7, 6, 2}, {4, 3, 2, 2}, {sizeof(ipu_conv_options), {2, 3}, 1}},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model m = begin();
        ipu_tensor x = variable(&m, 4, cases[i].x);
        ipu_tensor k = variable(&m, 4, cases[i].k);
        float *values[] = {device_values(1, device_count(m.graph, x)),
                           device_values(2, device_count(m.graph, k))};

        check(&m, ipu_conv2d(m.graph, x, k, &cases[i].options), values);
    }
}
END_TEST

/* Different by more than 2 H, so that no step changes which is the largest. */
static float *spaced_values(int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);

    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((i * 37 % count) - count / 2) * 0.125f + 0.0625f;
    return values;
}

START_TEST(max_pool2d)
{
    static const int64_t shapes[][4] = {{2, 4, 4, 2}, {1, 5, 7, 2}};

    for (int i = 0; i < 2; i++)
        for (int32_t size = 1; size <= 3; size++) {
            struct model m = begin();
            ipu_tensor x = variable(&m, 4, shapes[i]);
            float *values[] = {spaced_values(device_count(m.graph, x))};

            check(&m, ipu_max_pool2d(m.graph, x, size), values);
        }
}
END_TEST

START_TEST(relu)
{
    struct model m = begin();
    ipu_tensor x = variable(&m, SHAPE(6, 7));
    float *values[] = {spaced_values(42)};

    check(&m, ipu_relu(m.graph, x), values);
}
END_TEST

START_TEST(matmul)
{
    struct model m = begin();
    ipu_tensor a = variable(&m, SHAPE(3, 5)), b = variable(&m, SHAPE(5, 4));
    float *values[] = {device_values(3, 15), device_values(4, 20)};

    check(&m, ipu_matmul(m.graph, a, b), values);
}
END_TEST

START_TEST(bias_add)
{
    struct model m = begin();
    ipu_tensor x = variable(&m, SHAPE(2, 3, 4)), b = variable(&m, SHAPE(4));
    float *values[] = {device_values(5, 24), device_values(6, 4)};

    check(&m, ipu_bias_add(m.graph, x, b), values);
}
END_TEST

START_TEST(add_multiply_and_reuse)
{
    struct model m = begin();
    ipu_tensor a = variable(&m, SHAPE(4, 3)), b = variable(&m, SHAPE(4, 3));
    float *values[] = {device_values(7, 12), device_values(8, 12)};
    /* a is used three times: its derivatives are added up. */
    ipu_tensor y = ipu_add(m.graph, ipu_multiply(m.graph, a, b),
                           ipu_multiply(m.graph, a, a));

    check(&m, ipu_add(m.graph, y, ipu_add(m.graph, a, a)), values);
}
END_TEST

START_TEST(reshape_and_reduce_sum)
{
    struct model m = begin();
    ipu_tensor x = variable(&m, SHAPE(4, 6));
    float *values[] = {device_values(9, 24)};
    ipu_tensor y = ipu_reshape(m.graph, x, SHAPE(2, 3, 4));

    check(&m, ipu_reduce_sum(m.graph, ipu_multiply(m.graph, y, y), 1.5),
          values);
}
END_TEST

START_TEST(softmax_cross_entropy)
{
    struct model m = begin();
    int32_t labels[] = {3, 0, 1, 2, 2};
    ipu_tensor x = variable(&m, SHAPE(5, 4));
    float *values[] = {device_values(10, 20)};
    ipu_tensor y = ipu_softmax_cross_entropy(
        m.graph, x, ipu_input(m.graph, "labels", IPU_INT32, SHAPE(5)));

    m.labels = labels;
    m.nlabels = 5;
    check(&m, y, values);
}
END_TEST

/* Several in a row, without kinks: the chain rule. */
START_TEST(a_chain_of_ops)
{
    struct model m = begin();
    int32_t labels[] = {1, 7};
    ipu_tensor x = variable(&m, SHAPE(2, 4, 4, 1));
    ipu_tensor k = variable(&m, SHAPE(3, 3, 1, 2));
    float *values[] = {device_values(11, 32), device_values(12, 18)};
    ipu_tensor y = ipu_conv2d(m.graph, x, k, NULL);

    y = ipu_reshape(m.graph, ipu_multiply(m.graph, y, y), SHAPE(2, 8));
    m.labels = labels;
    m.nlabels = 2;
    check(&m,
          ipu_softmax_cross_entropy(
              m.graph, y, ipu_input(m.graph, "labels", IPU_INT32, SHAPE(2))),
          values);
}
END_TEST

/* What the loss does not depend on has a derivative of zeros. */
START_TEST(no_dependence_is_zero)
{
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;
    float gradient[3] = {1, 1, 1};
    ipu_tensor used, unused, d[2], loss;

    ck_ipu(ipu_graph_new(&graph));
    used = ipu_variable(graph, "used", IPU_FLOAT32, SHAPE(2));
    unused = ipu_variable(graph, "unused", IPU_FLOAT32, SHAPE(3));
    loss = ipu_reduce_sum(graph, used, 1);
    ck_ipu(ipu_gradients(graph, loss, 2, (ipu_tensor[]){used, unused}, d));
    ck_ipu(ipu_output(graph, "d", d[1]));
    engine = device_load(graph, &executable);
    ck_ipu(ipu_engine_connect(engine, "d", gradient, sizeof gradient));
    ck_ipu(ipu_engine_run(engine));
    for (int i = 0; i < 3; i++)
        ck_assert(gradient[i] == 0);
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    ipu_graph_free(graph);
}
END_TEST

START_TEST(what_has_no_derivative_is_refused)
{
    ipu_graph *graph;
    ipu_tensor x, labels, loss, d;

    ck_ipu(ipu_graph_new(&graph));
    x = ipu_variable(graph, "x", IPU_FLOAT32, SHAPE(2, 2));
    ck_ipu_fails(ipu_gradients(graph, x, 1, &x, &d), IPU_ERR_SHAPE, "scalar");
    ipu_graph_free(graph);

    ck_ipu(ipu_graph_new(&graph));
    labels = ipu_input(graph, "labels", IPU_INT32, SHAPE(2));
    x = ipu_variable(graph, "x", IPU_FLOAT32, SHAPE(2, 2));
    loss = ipu_reduce_sum(graph, ipu_softmax_cross_entropy(graph, x, labels),
                          1);
    ck_ipu_fails(ipu_gradients(graph, loss, 1, &labels, &d), IPU_ERR_SHAPE,
                 "labels");
    ipu_graph_free(graph);

    /* The second derivative of a relu. */
    ck_ipu(ipu_graph_new(&graph));
    x = ipu_variable(graph, "x", IPU_FLOAT32, SHAPE(2, 2));
    loss = ipu_reduce_sum(graph, ipu_relu(graph, x), 1);
    ck_ipu(ipu_gradients(graph, loss, 1, &x, &d));
    loss = ipu_reduce_sum(graph, ipu_multiply(graph, d, x), 1);
    ck_ipu_fails(ipu_gradients(graph, ipu_reduce_sum(graph, d, 1), 1, &x, &d),
                 IPU_ERR_ARGUMENT, "relu_grad");
    ipu_graph_free(graph);
}
END_TEST

static TCase *tcase_ops(void)
{
    TCase *tcase = tcase_create("ops");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, conv2d);
    tcase_add_test(tcase, max_pool2d);
    tcase_add_test(tcase, relu);
    tcase_add_test(tcase, matmul);
    tcase_add_test(tcase, bias_add);
    tcase_add_test(tcase, add_multiply_and_reuse);
    tcase_add_test(tcase, reshape_and_reduce_sum);
    tcase_add_test(tcase, softmax_cross_entropy);
    tcase_add_test(tcase, a_chain_of_ops);
    tcase_add_test(tcase, no_dependence_is_zero);
    tcase_add_test(tcase, what_has_no_derivative_is_refused);
    return tcase;
}

HVD_TEST_MAIN("device_gradients", tcase_ops)
