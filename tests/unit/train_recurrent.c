/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the recurrent layers of hvd_model.h against the same networks in plain
 * C and double: results for several lengths, numbers of layers and kinds, and
 * the derivatives with respect to all variables and inputs by central
 * differences of the C. First values, names and mistakes are those of the
 * header.
 */
#include "net/net.h"
#include "output/problem.h"
#include "suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 2,
    FEATURES = 3,
    UNITS = 2,
    MOST_TIME = 5,
    MOST = 256,
    MOST_VALUES = 17
};

enum kind { LSTM, GRU, GRU_RESET_FIRST, KINDS };

static struct form {
    enum kind kind;
    int time;
    hvd_recurrent_options options;
    int nlengths; /* BATCH: lengths[b] steps of each row count; 0: all */
} form;

static const int32_t lengths[BATCH] = {MOST_TIME - 2, 1};

static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
{
    const ipu_tensor given =
        form.nlengths > 0
            ? ipu_constant(hvd_net_graph(net), IPU_INT32, 1,
                           (const int64_t[]){form.nlengths}, lengths)
            : (ipu_tensor){-1};

    (void)context;
    form.options.lengths = form.nlengths > 0 ? &given : NULL;
    form.options.reset_first = form.kind == GRU_RESET_FIRST;
    return form.kind == LSTM ? hvd_lstm_with(net, "r", x, UNITS, &form.options)
                             : hvd_gru_with(net, "r", x, UNITS, &form.options);
}

static ipu_tensor lose(hvd_net *net, ipu_tensor y, void *context)
{
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    y = hvd_flatten(net, y);
    return ipu_sum(g, y, 1, (const int32_t[]){1}, 0);
}

static struct model *make_model(void)
{
    const struct model_tensor x = {
        "x", IPU_FLOAT32, 3, {BATCH, form.time, FEATURES}};
    struct model *model = NULL;
    hvd_model of;

    hvd_model_init(&of, sizeof of);
    of.build = build;
    of.loss = lose;
    ck_assert_msg(net_model(&of, 1, &x, &model) == 0, "%s", problem_text());
    return model;
}

/* ---------------------------------------------------------- in plain C */

/* A layer's variables; NULL: it has none. */
struct weights {
    const double *kernel, *recurrent, *bias, *recurrent_bias;
};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* sum[j] += a . column j of b, of width columns, for columns from first on. */
static void add_product(const double *a, int n, const double *b, int width,
                        int first, int count, double *sum)
{
    for (int j = 0; j < count; j++)
        for (int k = 0; k < n; k++)
            sum[j] += a[k] * b[k * width + first + j];
}

static void step_lstm(const double *x, const struct weights *w, double *h,
                      double *c)
{
    double all[4 * UNITS];

    memcpy(all, x, sizeof all);
    add_product(h, UNITS, w->recurrent, 4 * UNITS, 0, 4 * UNITS, all);
    for (int u = 0; u < UNITS; u++) {
        c[u] = sigmoid(all[UNITS + u]) * c[u] +
               sigmoid(all[u]) * tanh(all[2 * UNITS + u]);
        h[u] = sigmoid(all[3 * UNITS + u]) * tanh(c[u]);
    }
}

static void step_gru(const double *x, const struct weights *w, double *h)
{
    double z[UNITS], r[UNITS], n[UNITS] = {0}, reset[UNITS];
    double all[3 * UNITS] = {0};

    for (int j = 0; w->recurrent_bias && j < 3 * UNITS; j++)
        all[j] = w->recurrent_bias[j];
    add_product(h, UNITS, w->recurrent, 3 * UNITS, 0, 3 * UNITS, all);
    for (int u = 0; u < UNITS; u++) {
        z[u] = sigmoid(x[u] + all[u]);
        r[u] = sigmoid(x[UNITS + u] + all[UNITS + u]);
        reset[u] = r[u] * h[u];
    }
    if (form.kind == GRU_RESET_FIRST)
        add_product(reset, UNITS, w->recurrent, 3 * UNITS, 2 * UNITS, UNITS, n);
    for (int u = 0; u < UNITS; u++) {
        if (form.kind == GRU)
            n[u] = r[u] * all[2 * UNITS + u];
        n[u] = tanh(x[2 * UNITS + u] + n[u]);
    }
    for (int u = 0; u < UNITS; u++)
        h[u] = z[u] * h[u] + (1 - z[u]) * n[u];
}

/* One layer over one row, of which so many steps count: x [time, in] -> y
 * [time, width of y], of which it fills UNITS. It returns the last state there,
 * too. */
static void run_layer(const double *x, int in, const struct weights *w,
                      bool backward, int length, double *y, int y_width,
                      double *last)
{
    const int width = (form.kind == LSTM ? 4 : 3) * UNITS;
    double h[UNITS] = {0}, c[UNITS] = {0};

    for (int i = 0; i < form.time; i++) {
        const int t = backward ? form.time - 1 - i : i;
        double gates[4 * UNITS] = {0};

        for (int j = 0; w->bias && j < width; j++)
            gates[j] = w->bias[j];
        add_product(x + t * in, in, w->kernel, width, 0, width, gates);
        if (t < length && form.kind == LSTM)
            step_lstm(gates, w, h, c);
        else if (t < length)
            step_gru(gates, w, h);
        memcpy(y + t * y_width, h, sizeof h);
    }
    memcpy(last, h, sizeof h);
}

/* All values of the network: those of its variables, and x behind them. */
static double values[MOST_VALUES][MOST];

static const double *value_of(const struct model *model, int layer, int part,
                              const char *what)
{
    const char *side = form.options.direction != HVD_BIDIRECTIONAL ? ""
                       : part                                      ? "backward/"
                                                                   : "forward/";
    char name[48];

    if (form.options.layers > 1)
        snprintf(name, sizeof name, "r/%d/%s%s", layer, side, what);
    else
        snprintf(name, sizeof name, "r/%s%s", side, what);
    for (int i = 0; i < model->nvariables; i++)
        if (strcmp(model->variables[i].name, name) == 0)
            return values[i];
    return NULL;
}

/* Returns the number of results. */
static int run_network(const struct model *model, double *y)
{
    const double *x = values[model->nvariables];
    const bool all = form.options.states == HVD_ALL_STATES;
    const bool both = form.options.direction == HVD_BIDIRECTIONAL;
    const int width = both ? 2 * UNITS : UNITS;
    int n = 0;

    for (int b = 0; b < BATCH; b++) {
        const int length = form.nlengths > 0 ? lengths[b] : form.time;
        double in[MOST_TIME * 2 * UNITS], out[MOST_TIME * 2 * UNITS];
        double last[2 * UNITS];

        memcpy(in, x + b * form.time * FEATURES,
               (size_t)(form.time * FEATURES) * sizeof *in);
        for (int i = 0; i < form.options.layers; i++) {
            for (int part = 0; part <= both; part++) {
                const struct weights w = {
                    value_of(model, i, part, "kernel"),
                    value_of(model, i, part, "recurrent_kernel"),
                    value_of(model, i, part, "bias"),
                    value_of(model, i, part, "recurrent_bias"),
                };
                const bool backward =
                    part || form.options.direction == HVD_BACKWARD;

                run_layer(in, i == 0 ? FEATURES : width, &w, backward, length,
                          out + part * UNITS, width, last + part * UNITS);
            }
            memcpy(in, out, sizeof out);
        }
        memcpy(y + n, all ? out : last,
               (size_t)(all ? form.time * width : width) * sizeof *y);
        n += all ? form.time * width : width;
    }
    return n;
}

/* ---------------------------------------------------------- on the device */

struct device_run {
    float y[MOST], gradients[MOST_VALUES][MOST];
};

static int64_t count_of(const struct model *model, int i)
{
    return i < model->nvariables ? model->variables[i].count
                                 : model_tensor_count(&model->inputs[0]);
}

#define MUST(call) ck_assert_msg((call) >= 0, "%s: %s", #call, ipu_last_error())

/* Builds the network on variables of the device, x among them, and the sum of
 * its results times weights. */
static void build_program(ipu_graph *g, const struct model *model,
                          const double *weights)
{
    ipu_tensor v[MOST_VALUES], gradients[MOST_VALUES], y, loss;
    const struct model_pass pass = {.training = true,
                                    .inputs = &v[model->nvariables]};
    const int n = model->nvariables;
    int64_t shape[IPU_MAX_DIMS];
    float floats[MOST];
    char name[16];
    int32_t ndim;

    for (int i = 0; i < n; i++)
        v[i] =
            ipu_variable(g, model->variables[i].name, IPU_FLOAT32,
                         model->variables[i].ndim, model->variables[i].shape);
    v[n] = ipu_variable(g, "x", IPU_FLOAT32, 3, model->inputs[0].shape);
    y = model_forward(model, g, v, &pass);
    ndim = ipu_tensor_info(g, y, NULL, shape, NULL);
    MUST(ndim);
    for (int i = 0; i < MOST; i++)
        floats[i] = (float)weights[i];
    loss = ipu_reduce_sum(
        g,
        ipu_multiply(g, y, ipu_constant(g, IPU_FLOAT32, ndim, shape, floats)),
        1);
    MUST(ipu_gradients(g, loss, n + 1, v, gradients));
    MUST(ipu_output(g, "y", y));
    for (int i = 0; i <= n; i++) {
        snprintf(name, sizeof name, "d%d", i);
        MUST(ipu_output(g, name, gradients[i]));
    }
}

static void run_device(const struct model *model, const double *weights, int ny,
                       struct device_run *run)
{
    ipu_graph *g = NULL;
    ipu_executable *x = NULL;
    ipu_engine *e = NULL;
    char name[16];

    MUST(ipu_graph_new(&g));
    build_program(g, model, weights);
    MUST(ipu_compile(g, NULL, &x));
    MUST(ipu_engine_new(x, &e));
    MUST(ipu_engine_connect(e, "y", run->y, (size_t)ny * 4));
    for (int i = 0; i <= model->nvariables; i++) {
        size_t bytes = (size_t)count_of(model, i) * 4;
        float floats[MOST];

        for (int k = 0; k < MOST; k++)
            floats[k] = (float)values[i][k];
        snprintf(name, sizeof name, "d%d", i);
        MUST(ipu_engine_connect(e, name, run->gradients[i], bytes));
        MUST(ipu_engine_write(
            e, i < model->nvariables ? model->variables[i].name : "x", floats,
            bytes));
    }
    MUST(ipu_engine_run(e));
    ipu_engine_free(e);
    ipu_executable_free(x);
    ipu_graph_free(g);
}

/* ------------------------------------------------------------- comparison */

static double weigh(const struct model *model, const double *weights)
{
    double y[MOST], sum = 0;
    int n = run_network(model, y);

    for (int i = 0; i < n; i++)
        sum += weights[i] * y[i];
    return sum;
}

static void check_gradient(const struct model *model, const double *weights,
                           int i, const float *got)
{
    const double delta = 1e-5;

    for (int64_t k = 0; k < count_of(model, i); k++) {
        double kept = values[i][k], slope;

        values[i][k] = kept + delta;
        slope = weigh(model, weights);
        values[i][k] = kept - delta;
        slope = (slope - weigh(model, weights)) / (2 * delta);
        values[i][k] = kept;
        ck_assert_msg(fabs(slope - (double)got[k]) < 1e-5 * (1 + fabs(slope)),
                      "variable %d, element %d: the derivative is %g, not %g",
                      i, (int)k, (double)got[k], slope);
    }
}

/* Compares results and derivatives of the form. */
static void check_form(void)
{
    static struct device_run run;
    struct model *model = make_model();
    double weights[MOST], y[MOST];
    int n;

    ck_assert_int_eq(model->nvariables,
                     form.options.layers *
                         (form.options.direction == HVD_BIDIRECTIONAL ? 2 : 1) *
                         (form.options.no_bias ? 2
                          : form.kind == GRU   ? 4
                                               : 3));
    for (int i = 0; i <= model->nvariables; i++)
        for (int k = 0; k < MOST; k++)
            values[i][k] = (double)(float)sin(17.0 * i + 1.3 * k);
    for (int k = 0; k < MOST; k++)
        weights[k] = (double)(float)cos(2.1 * k);
    n = run_network(model, y);
    run_device(model, weights, n, &run);
    for (int k = 0; k < n; k++)
        ck_assert_double_eq_tol((double)run.y[k], y[k], 1e-6);
    for (int i = 0; i <= model->nvariables; i++)
        check_gradient(model, weights, i, run.gradients[i]);
    model_free(model);
}

/* Kinds, times, last or all states, one or two layers, with biases or
 * without. */
LOOP_TEST(layers_are_those_in_plain_c, 0, KINDS * 3 * 2 * 2 * 2)
{
    static const int times[] = {1, 2, MOST_TIME};
    int rest = _i / KINDS;

    hvd_recurrent_options_init(&form.options, sizeof form.options);
    form.kind = (enum kind)(_i % KINDS);
    form.time = times[rest % 3];
    form.options.states = rest / 3 % 2;
    form.options.layers = 1 + rest / 6 % 2;
    form.options.no_bias = rest / 12 % 2;
    check_form();
}

/* Kinds, directions, last or all states, one or two layers, all steps or those
 * of rows that end earlier. */
LOOP_TEST(directions_and_lengths_are_those_in_plain_c, 0, KINDS * 3 * 2 * 2 * 2)
{
    int rest = _i / KINDS;

    hvd_recurrent_options_init(&form.options, sizeof form.options);
    form.kind = (enum kind)(_i % KINDS);
    form.time = MOST_TIME;
    form.options.direction = rest % 3;
    form.options.states = rest / 3 % 2;
    form.options.layers = 1 + rest / 6 % 2;
    form.nlengths = rest / 12 % 2 ? BATCH : 0;
    check_form();
}

/* The forms in a line are those of the options. */
LOOP_TEST(both_directions_in_a_line, 0, 2)
{
    ipu_graph *g = NULL;
    hvd_net *net = NULL;
    const hvd_variable *variables;
    ipu_tensor x, y;
    int64_t shape[IPU_MAX_DIMS];

    ck_assert_int_eq(hvd_net_new(1, &net), 0);
    MUST(ipu_graph_new(&g));
    ck_assert_int_eq(hvd_net_begin(net, g, HVD_MODE_TRAIN), 0);
    x = ipu_input(g, "x", IPU_FLOAT32, 3,
                  (const int64_t[]){BATCH, 4, FEATURES});
    y = _i ? hvd_bidirectional_lstm(net, "r", x, 5, HVD_ALL_STATES)
           : hvd_bidirectional_gru(net, "r", x, 5, HVD_ALL_STATES);
    ck_assert_int_eq(ipu_tensor_info(g, y, NULL, shape, NULL), 3);
    ck_assert_int_eq(shape[1], 4);
    ck_assert_int_eq(shape[2], 10);
    ck_assert_int_eq(hvd_net_end(net, &variables), _i ? 6 : 8);
    hvd_net_free(net);
    ipu_graph_free(g);
}

/* ------------------------------------------------------------ first values */

/* The LSTM's forget gate begins at 1, unless it is not to. */
LOOP_TEST(first_values, 0, 2)
{
    struct model *model;
    float **first;

    hvd_recurrent_options_init(&form.options, sizeof form.options);
    form.kind = LSTM;
    form.time = 2;
    form.options.no_forget_bias = _i;
    model = make_model();
    ck_assert_str_eq(model->variables[0].name, "r/bias");
    ck_assert_str_eq(model->variables[1].name, "r/recurrent_kernel");
    ck_assert_str_eq(model->variables[2].name, "r/kernel");
    ck_assert_int_eq(model->variables[1].start, MODEL_ORTHOGONAL);
    ck_assert_double_eq_tol(model->variables[2].spread,
                            sqrt(6.0 / (FEATURES + 4 * UNITS)), 1e-12);
    first = model_values(model);
    model_initialize(model, 3, first);
    for (int k = 0; k < 4 * UNITS; k++)
        ck_assert_float_eq(first[0][k], k >= UNITS && k < 2 * UNITS && _i == 0);
    model_values_free(model, first);
    model_free(model);
}

/* Dropout is between the layers, and in training alone. */
TEST(dropout_draws)
{
    struct model *model;

    for (int layers = 1; layers <= 2; layers++) {
        hvd_recurrent_options_init(&form.options, sizeof form.options);
        form.kind = GRU;
        form.time = 2;
        form.options.layers = layers;
        form.options.dropout = 0.5;
        model = make_model();
        ck_assert_int_eq(model->draws, layers == 2);
        model_free(model);
    }
}

/* ---------------------------------------------------------------- mistakes */

LOOP_TEST(mistakes_are_refused, 0, 6)
{
    static const char *const why[] = {
        "'r': its input has 2 dimensions, it needs 3",
        "layer 'r': 2 units, 0 layers, 4 steps of time: each must be 1",
        "layer 'r': 2 units, -1 layers",
        "layer 'r': there is no direction 3",
        "layer 'r': there is no direction -1",
        "layer 'r': its lengths are no int32 [2], a number of steps for each",
    };
    const struct model_tensor x = {
        "x", IPU_FLOAT32, _i == 0 ? 2 : 3, {BATCH, 4, FEATURES}};
    struct model *model = NULL;
    hvd_model of;

    hvd_model_init(&of, sizeof of);
    hvd_recurrent_options_init(&form.options, sizeof form.options);
    if (_i < 3)
        form.options.layers = 1 - _i;
    form.options.direction = _i == 3 ? 3 : _i == 4 ? -1 : HVD_FORWARD;
    form.nlengths = _i == 5;
    of.build = build;
    of.loss = lose;
    ck_assert_int_lt(net_model(&of, 1, &x, &model), 0);
    ck_assert_msg(strstr(problem_text(), why[_i]), "%s", problem_text());
}

TEST_MAIN("train_recurrent")
