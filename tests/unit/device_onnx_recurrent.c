/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derivatives through LSTM, GRU and RNN of ONNX models, with respect to all of
 * their inputs: against central differences, and against PyTorch's. Their
 * program does not grow with the sequence.
 *
 * The loss is the sum of Y w, for a w of each element. PyTorch 1.13 has
 * computed its derivatives for the same numbers by torch._VF.lstm, gru and
 * rnn_tanh, with gates put into its order.
 */
#include <math.h>
#include <stdbool.h>

#include "device.h"
#include "onnx_file.h"
#include "suite.h"

enum { TIME = 4, BATCH = 2, INSIDE = 3, UNITS = 3, MOST = 256, INPUTS = 8 };
enum { WEIGHTS = INPUTS, LOSS_INPUTS };

struct node {
    const char *op, *direction, *flag; /* flag: an attribute that is 1 */
    int gates;
    bool peepholes, ends_early;
};

static int64_t time_steps = TIME;

/* Sets the shape of input i; returns its number of dimensions, 0: none. */
static int shape_of(const struct node *n, int i, int64_t *shape)
{
    int64_t both = strcmp(n->direction, "bidirectional") ? 1 : 2;
    const int64_t shapes[][4] = {
        {time_steps, BATCH, INSIDE},
        {both, n->gates * UNITS, INSIDE},
        {both, n->gates * UNITS, UNITS},
        {both, 2 * n->gates * UNITS},
        {BATCH},
        {both, BATCH, UNITS},
        {both, BATCH, UNITS},
        {both, 3 * UNITS},
        {time_steps, both, BATCH, UNITS},
    };
    const int ndims[] = {3,
                         3,
                         3,
                         2,
                         n->ends_early,
                         3,
                         n->gates == 4 ? 3 : 0,
                         n->peepholes ? 2 : 0,
                         4};

    memcpy(shape, shapes[i], sizeof shapes[i]);
    return ndims[i];
}

static int64_t count_of(const struct node *n, int i)
{
    int64_t shape[4], count = 1;

    for (int d = shape_of(n, i, shape) - 1; d >= 0; d--)
        count *= shape[d];
    return count;
}

static const char *const names[] = {"X", "W", "R", "B", "L", "H", "C", "P"};

static struct message model_of(const struct node *n)
{
    struct message node = {.count = 0}, graph = {.count = 0}, m;
    char inputs[64] = "";
    int64_t shape[4];

    for (int i = 0; i < INPUTS; i++) {
        bool given = shape_of(n, i, shape) > 0;

        if (given || n->gates == 4 || i < 6)
            sprintf(inputs + strlen(inputs), "%s%s", i > 0 ? " " : "",
                    given ? names[i] : "-");
        if (!given)
            continue;
        m = onnx_value(names[i], i == 4 ? 6 : IPU_ONNX_FLOAT,
                       shape_of(n, i, shape), shape);
        message_put(&graph, ONNX_GRAPH_INPUT, &m);
    }
    node = onnx_node(n->op, inputs, "Y");
    m.count = 0;
    message_text(&m, 1, "direction");
    message_text(&m, 4, n->direction);
    message_int(&m, 20, 3);
    message_put(&node, 5, &m);
    if (n->flag)
        onnx_int_attribute(&node, n->flag, 1);
    message_put(&graph, ONNX_GRAPH_NODE, &node);
    m = onnx_value("Y", IPU_ONNX_FLOAT, 4, (const int64_t[]){-1, -1, -1, -1});
    message_put(&graph, ONNX_GRAPH_OUTPUT, &m);
    return onnx_model(&graph, 14);
}

/* A model that runs, with what it reads and makes. */
static struct run {
    ipu_graph *graph;
    ipu_onnx *model;
    ipu_executable *executable;
    ipu_engine *engine;
    float values[LOSS_INPUTS][MOST], slopes[INPUTS][MOST], y[MOST];
} r;

static void build_node(const struct node *n)
{
    struct message m = model_of(n);

    memset(&r, 0, sizeof r);
    MUST(ipu_onnx_load(onnx_write("model.onnx", &m), &r.model));
    MUST(ipu_graph_new(&r.graph));
    MUST(ipu_onnx_build(r.model, r.graph));
}

/* Adds the loss and its derivatives, as outputs dX, dW and so on. */
static void differentiate(const struct node *n)
{
    ipu_tensor y, w, wrt[INPUTS], gradients[INPUTS];
    const char *of[INPUTS];
    int64_t shape[4];
    int32_t count = 0;

    w = ipu_input(r.graph, "w", IPU_FLOAT32, shape_of(n, WEIGHTS, shape),
                  shape);
    MUST(ipu_graph_find(r.graph, "Y", &y));
    for (int i = 0; i < INPUTS; i++)
        if (i != 4 && shape_of(n, i, shape) > 0) {
            of[count] = names[i];
            MUST(ipu_graph_find(r.graph, names[i], &wrt[count++]));
        }
    MUST(ipu_gradients(r.graph,
                       ipu_reduce_sum(r.graph, ipu_multiply(r.graph, y, w), 1),
                       count, wrt, gradients));
    for (int32_t i = 0; i < count; i++) {
        char name[8];

        sprintf(name, "d%s", of[i]);
        MUST(ipu_output(r.graph, name, gradients[i]));
    }
}

static void start(const struct node *n)
{
    static int32_t lengths[] = {TIME, 1};
    char name[8];

    build_node(n);
    differentiate(n);
    MUST(ipu_compile(r.graph, NULL, &r.executable));
    MUST(ipu_engine_new(r.executable, &r.engine));
    for (int i = 0; i < LOSS_INPUTS; i++) {
        int64_t shape[4], count = count_of(n, i);
        int32_t wave = i == WEIGHTS ? 6 : i < 4 ? i : i == 7 ? 7 : i - 1;

        ck_assert_int_le(count, MOST);
        for (int64_t k = 0; k < count; k++)
            r.values[i][k] = (float)(0.5 * sin((double)(1 + k + 10 * wave)));
        if (shape_of(n, i, shape) == 0)
            continue;
        if (i == 4) {
            MUST(ipu_engine_connect(r.engine, "L", lengths, sizeof lengths));
            continue;
        }
        MUST(ipu_engine_connect(r.engine, i == WEIGHTS ? "w" : names[i],
                                r.values[i], (size_t)count * 4));
        if (i == WEIGHTS)
            continue;
        sprintf(name, "d%s", names[i]);
        MUST(
            ipu_engine_connect(r.engine, name, r.slopes[i], (size_t)count * 4));
    }
    MUST(ipu_engine_connect(r.engine, "Y", r.y,
                            (size_t)count_of(n, WEIGHTS) * 4));
    MUST(ipu_engine_run(r.engine));
}

static void stop(void)
{
    ipu_engine_free(r.engine);
    ipu_executable_free(r.executable);
    ipu_graph_free(r.graph);
    ipu_onnx_free(r.model);
}

/* -------------------------------------------------------------- differences */

static double loss_at(const struct node *n, float *x, float value)
{
    float kept = *x;
    double loss = 0;

    *x = value;
    MUST(ipu_engine_run(r.engine));
    *x = kept;
    for (int64_t i = 0; i < count_of(n, WEIGHTS); i++)
        loss += (double)r.y[i] * (double)r.values[WEIGHTS][i];
    return loss;
}

/* slopes: copied, because each run overwrites them. */
static void check_input(const struct node *n, int i, const float *slopes)
{
    const float delta = 1.0f / 64;

    for (int64_t k = 0; k < count_of(n, i); k++) {
        float *x = &r.values[i][k], above = *x + delta, below = *x - delta;
        double difference = loss_at(n, x, above);

        difference -= loss_at(n, x, below);
        difference /= (double)above - (double)below;
        ck_assert_msg(fabs(difference - (double)slopes[k]) <= 5e-4,
                      "%s, input %s, element %d: the derivative is %g, the "
                      "difference quotient %g",
                      n->op, names[i], (int)k, (double)slopes[k], difference);
    }
}

static const struct node nodes[] = {
    {"LSTM", "forward", NULL, 4, true, true},
    {"LSTM", "reverse", "input_forget", 4, false, true},
    {"LSTM", "bidirectional", NULL, 4, true, false},
    {"GRU", "bidirectional", NULL, 3, false, true},
    {"GRU", "reverse", "linear_before_reset", 3, false, false},
    {"RNN", "bidirectional", NULL, 1, false, true},
};

LOOP_TEST(derivatives_against_differences, 0, 6)
{
    static float slopes[INPUTS][MOST];
    int64_t shape[4];

    start(&nodes[_i]);
    memcpy(slopes, r.slopes, sizeof slopes);
    for (int i = 0; i < INPUTS; i++)
        if (i != 4 && shape_of(&nodes[_i], i, shape) > 0)
            check_input(&nodes[_i], i, slopes[i]);
    stop();
}

/* ------------------------------------------------------------------ PyTorch */

static const struct {
    struct node node;
    /* Elements 0, 1, half of them, and the last, of dX, dW, dR, dB and dH. */
    float wanted[5][4];
} known[] = {
    {{"LSTM", "bidirectional", NULL, 4, false, false},
     {{0.078263f, 0.063852f, 0.079942f, -0.031595f},
      {-0.06062f, -0.065129f, -0.040496f, -0.280744f},
      {-0.001931f, 0.04336f, 0.00891f, 0.130474f},
      {-0.077009f, 0.230136f, 0.008233f, 0.054811f},
      {-0.06314f, -0.038222f, -0.028724f, -0.039488f}}},
    {{"GRU", "bidirectional", "linear_before_reset", 3, false, false},
     {{0.16972f, 0.113785f, 0.044429f, 0.102914f},
      {-0.032806f, -0.035242f, -0.010885f, -0.568957f},
      {0.013432f, 0.029261f, 0.011093f, 0.171361f},
      {-0.155286f, 0.699475f, -0.096278f, 0.386719f},
      {-0.637832f, -0.713645f, 0.035516f, 0.152456f}}},
    {{"RNN", "bidirectional", NULL, 1, false, false},
     {{0.027249f, -0.000229f, 0.036055f, 0.005592f},
      {-0.593543f, -0.651767f, -0.322267f, -0.812808f},
      {0.098935f, 0.305775f, -0.270936f, -0.1246f},
      {-0.257366f, 0.047917f, -0.273852f, 0.126475f},
      {-0.010991f, 0.037719f, -0.012913f, -0.053067f}}},
};

LOOP_TEST(derivatives_are_those_of_pytorch, 0, 3)
{
    static const int inputs[] = {0, 1, 2, 3, 5};
    const struct node *n = &known[_i].node;

    start(n);
    for (int i = 0; i < 5; i++) {
        const float *got = r.slopes[inputs[i]];
        int64_t count = count_of(n, inputs[i]);
        const float four[] = {got[0], got[1], got[count / 2], got[count - 1]};

        for (int k = 0; k < 4; k++)
            ck_assert_float_eq_tol(four[k], known[_i].wanted[i][k], 1e-5f);
    }
    stop();
}

/* --------------------------------------------------------------------- size */

TEST(the_program_does_not_grow_with_the_sequence)
{
    ipu_memory_info info = {.size = sizeof info};
    int32_t steps[2];

    for (int i = 0; i < 2; i++) {
        time_steps = i == 0 ? 3 : 9;
        build_node(&nodes[2]);
        differentiate(&nodes[2]);
        MUST(ipu_compile(r.graph, NULL, &r.executable));
        MUST(ipu_executable_memory(r.executable, &info));
        steps[i] = info.steps;
        stop();
    }
    time_steps = TIME;
    ck_assert_int_gt(steps[0], 10);
    ck_assert_int_eq(steps[0], steps[1]);
}

TEST_MAIN("device_onnx_recurrent", .set_up = folder_make,
          .tear_down = folder_remove, .seconds = 60)
