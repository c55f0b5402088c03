/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initialisers of ONNX models as variables: a program trains them, and saves
 * them in a model again. PyTorch 1.13 has computed losses and weights for the
 * same numbers, by torch.optim.SGD.
 *
 *     y = relu(x w1 + b1) w2 + b2
 *
 * where b2 is an Identity of b1, as exporters write parameters that are equal
 * at first. Each has a variable, though b1 has its own before.
 */
#include <math.h>

#include "device.h"
#include "onnx_file.h"
#include "suite.h"

enum { ROWS = 6, IN = 3, OUT = 4, STEPS = 5, PARAMETERS = 4, MOST = 16 };

/* Names, extents, and what PyTorch makes of them. */
static const struct {
    const char *name;
    int ndim;
    int64_t shape[2];
    int count;
    float trained[MOST];
} parameters[PARAMETERS] = {
    {"w1",
     2,
     {IN, OUT},
     IN *OUT,
     {-0.6645148f, -0.125f, 0.2492677f, -0.5025141f, 0.3273648f, 0.5f,
      -0.2009941f, 0.1284232f, -0.3675572f, 0.0f, 0.2593232f, -0.3739516f}},
    {"b1", 1, {OUT}, OUT, {0.3750399f, -0.5f, 0.0255237f, 0.0047498f}},
    {"w2",
     2,
     {OUT, OUT},
     OUT *OUT,
     {-0.463934f, 0.0705055f, 0.4835253f, -0.2569121f, 0.0f, 0.25f, -0.125f,
      0.125f, 0.1941784f, -0.0339564f, -0.0320642f, -0.135994f, -0.2609295f,
      0.1712312f, -0.133868f, -0.0595906f}},
    {"b2", 1, {OUT}, OUT, {-0.0930923f, -0.0103667f, 0.0858351f, 0.0027875f}},
};

static const float losses[STEPS] = {0.58153600f, 0.54417998f, 0.49279583f,
                                    0.44650063f, 0.41340074f};

static float first_value(int p, int i)
{
    static const float b[] = {0.25f, -0.5f, 0.125f, 0};

    if (p == 0)
        return (float)((i / OUT * 5 + i % OUT * 3) % 9 - 4) / 8;
    return p == 2 ? (float)((i / OUT * 7 + i % OUT * 2) % 5 - 2) / 8 : b[i];
}

static struct message model_with(int64_t version)
{
    static const char *const nodes[][3] = {
        {"MatMul", "x w1", "p"},  {"Add", "p b1", "q"},
        {"Identity", "b1", "b2"}, {"Relu", "q", "r"},
        {"MatMul", "r w2", "s"},  {"Add", "s b2", "y"},
    };
    const int64_t in[] = {-1, IN}, out[] = {-1, OUT};
    struct message g = {.count = 0}, m;

    for (int i = 0; i < 6; i++) {
        m = onnx_node(nodes[i][0], nodes[i][1], nodes[i][2]);
        message_put(&g, ONNX_GRAPH_NODE, &m);
    }
    for (int p = 0; p < 3; p++) {
        m = onnx_tensor(parameters[p].name, IPU_ONNX_FLOAT, parameters[p].ndim,
                        parameters[p].shape);
        for (int i = 0; i < parameters[p].count; i++)
            message_float(&m, 4, first_value(p, i));
        message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    }
    m = onnx_value("x", IPU_ONNX_FLOAT, 2, in);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("y", IPU_ONNX_FLOAT, 2, out);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    return onnx_model(&g, version);
}

/* A model with its program, and what that reads and makes. */
static struct trained {
    struct device d;
    ipu_onnx *model;
    float x[ROWS][IN], target[ROWS][OUT], y[ROWS][OUT], loss;
} t;

static void load(const char *path)
{
    memset(&t, 0, sizeof t);
    t.d = device_new();
    MUST(ipu_onnx_load(path, &t.model));
    MUST(ipu_onnx_set_dim(t.model, NULL, ROWS));
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < IN; k++)
            t.x[i][k] = (float)((i * 3 + k * 5) % 7 - 3) / 4;
        for (int k = 0; k < OUT; k++)
            t.target[i][k] = (float)((i + 2 * k) % 5 - 2) / 2;
    }
}

/* Adds the loss and steps of SGD with momentum of all variables. */
static void add_training(void)
{
    ipu_sgd_options options = {.size = sizeof options, .momentum = 0.75};
    ipu_onnx_value value = {.size = sizeof value};
    ipu_tensor y, target, loss, rate, wrt[MOST], gradients[MOST];
    ipu_graph *g = t.d.graph;
    int32_t n = 0;

    MUST(ipu_graph_find(g, "y", &y));
    target = device_floats(&t.d, "target", 2, SHAPE(ROWS, OUT));
    loss = ipu_mean_squared_error(g, y, target);
    rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.25);
    for (; ipu_onnx_variable(t.model, n, &value) > 0; n++)
        MUST(ipu_graph_find(g, value.name, &wrt[n]));
    ck_assert_int_eq(n, PARAMETERS);
    MUST(ipu_gradients(g, loss, n, wrt, gradients));
    for (int32_t i = 0; i < n; i++)
        MUST(ipu_sgd(g, wrt[i], gradients[i], rate, &options));
    MUST(ipu_output(g, "loss", loss));
}

static void connect(bool trains)
{
    device_load(&t.d);
    MUST(ipu_engine_connect(t.d.engine, "x", t.x, sizeof t.x));
    MUST(ipu_engine_connect(t.d.engine, "y", t.y, sizeof t.y));
    if (!trains)
        return;
    MUST(ipu_engine_connect(t.d.engine, "target", t.target, sizeof t.target));
    MUST(ipu_engine_connect(t.d.engine, "loss", &t.loss, sizeof t.loss));
}

static void train(void)
{
    MUST(ipu_onnx_train(t.model, NULL));
    MUST(ipu_onnx_build(t.model, t.d.graph));
    add_training();
    connect(true);
    MUST(ipu_onnx_write_variables(t.model, t.d.engine));
    for (int i = 0; i < STEPS; i++) {
        MUST(ipu_engine_run(t.d.engine));
        ck_assert_float_eq_tol(t.loss, losses[i], 1e-6f);
    }
}

static void stop(void)
{
    device_free(&t.d);
    ipu_onnx_free(t.model);
}

static void check_weights(void)
{
    for (int p = 0; p < PARAMETERS; p++) {
        float now[MOST];

        MUST(ipu_engine_read(t.d.engine, parameters[p].name, now,
                             (size_t)parameters[p].count * sizeof *now));
        for (int i = 0; i < parameters[p].count; i++)
            ck_assert_msg(fabsf(now[i] - parameters[p].trained[i]) < 1e-6f,
                          "%s[%d] is %g instead of %g", parameters[p].name, i,
                          (double)now[i], (double)parameters[p].trained[i]);
    }
}

TEST(weights_become_those_of_pytorch)
{
    struct message m = model_with(13);

    load(onnx_write("model.onnx", &m));
    train();
    check_weights();
    stop();
}

/* The saved model computes with the new weights, and trains on from them. */
TEST(a_model_is_saved_with_its_weights)
{
    struct message m = model_with(13);
    float wanted[ROWS][OUT];

    load(onnx_write("model.onnx", &m));
    train();
    MUST(ipu_onnx_save(t.model, t.d.engine, in_folder("trained.onnx")));
    MUST(ipu_engine_run(t.d.engine)); /* one step further */
    memcpy(wanted, t.y, sizeof wanted);
    stop();
    load(in_folder("trained.onnx"));
    MUST(ipu_onnx_build(t.model, t.d.graph));
    connect(false);
    MUST(ipu_engine_run(t.d.engine));
    for (int i = 0; i < ROWS * OUT; i++)
        ck_assert_float_eq_tol(t.y[i / OUT][i % OUT], wanted[i / OUT][i % OUT],
                               1e-6f);
    stop();
    load(in_folder("trained.onnx"));
    MUST(ipu_onnx_train(t.model, NULL));
    MUST(ipu_onnx_build(t.model, t.d.graph));
    add_training(); /* b2 is an initialiser now */
    stop();
}

/* Without an engine, a model is written as it was read, byte by byte. */
TEST(a_model_is_written_as_it_was_read)
{
    struct message m = model_with(13);
    unsigned char copy[MESSAGE_ROOM + 1];
    FILE *file;

    load(onnx_write("model.onnx", &m));
    MUST(ipu_onnx_save(t.model, NULL, in_folder("copy.onnx")));
    stop();
    file = fopen(in_folder("copy.onnx"), "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(copy, 1, sizeof copy, file), m.count);
    ck_assert_int_eq(memcmp(copy, m.data, m.count), 0);
    fclose(file);
}

/* Names that match a pattern are constant; a parameter that an Identity gives
 * another name is trained or not under that name. _i: w1; the initialiser b1,
 * of which the Identity makes b2; b2 alone. */
LOOP_TEST(some_initialisers_are_frozen, 0, 3)
{
    static const char *const patterns[] = {"[wx]1", "b1", "?2"};
    static const char *const left[][PARAMETERS] = {
        {"b1", "w2", "b2"}, {"w1", "w2", "b2"}, {"w1", "b1"}};
    struct message m = model_with(13);
    ipu_onnx_value value = {.size = sizeof value};
    int n = 0;

    load(onnx_write("model.onnx", &m));
    MUST(ipu_onnx_train(t.model, NULL));
    MUST_FAIL(ipu_onnx_freeze(t.model, "v*"), IPU_ERR_NAME, "a name like 'v*'");
    MUST_FAIL(ipu_onnx_freeze(t.model, NULL), IPU_ERR_ARGUMENT, "the pattern");
    ck_assert_int_eq(ipu_onnx_freeze(t.model, patterns[_i]), _i == 2 ? 2 : 1);
    MUST(ipu_onnx_build(t.model, t.d.graph));
    MUST_FAIL(ipu_onnx_freeze(t.model, "w1"), IPU_ERR_STATE, "built before");
    while (ipu_onnx_variable(t.model, n, &value) > 0) {
        bool found = false;

        for (int k = 0; k < PARAMETERS && left[_i][k]; k++)
            found = found || strcmp(left[_i][k], value.name) == 0;
        ck_assert_msg(found, "%s is a variable", value.name);
        n++;
    }
    ck_assert_int_eq(n, _i == 2 ? 2 : 3);
    connect(false);
    MUST(ipu_onnx_write_variables(t.model, t.d.engine));
    MUST(ipu_engine_run(t.d.engine));
    stop();
}

TEST(some_initialisers_are_trained)
{
    struct message m = model_with(13);
    ipu_onnx_value value = {.size = sizeof value};

    load(onnx_write("model.onnx", &m));
    ck_assert_int_eq(ipu_onnx_train(t.model, "x"), IPU_ERR_NAME);
    MUST(ipu_onnx_train(t.model, "w2"));
    ck_assert_int_eq(ipu_onnx_variable(t.model, 0, &value), 0);
    MUST(ipu_onnx_build(t.model, t.d.graph));
    ck_assert_int_eq(ipu_onnx_train(t.model, "w1"), IPU_ERR_STATE);
    ck_assert_int_eq(ipu_onnx_variable(t.model, 0, &value), 1);
    ck_assert_str_eq(value.name, "w2");
    ck_assert_int_eq(value.extents[1], OUT);
    ck_assert_int_eq(ipu_onnx_variable(t.model, 1, &value), 0);
    ck_assert_int_eq(ipu_onnx_save(t.model, NULL, "/nowhere/model.onnx"),
                     IPU_ERR_DATA);
    stop();
}

/* Elements that a node has to know, and integers, are no variables. */
TEST(what_has_to_be_known_is_a_constant)
{
    const int64_t three[] = {3}, none[] = {0};
    struct message node = onnx_node("Clip", "x low", "c"), g = {.count = 0}, m;
    ipu_onnx_value value = {.size = sizeof value};

    message_put(&g, ONNX_GRAPH_NODE, &node);
    node = onnx_node("Add", "c k", "y");
    message_put(&g, ONNX_GRAPH_NODE, &node);
    m = onnx_tensor("low", IPU_ONNX_FLOAT, 0, none);
    message_float(&m, 4, -1);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_tensor("k", IPU_ONNX_FLOAT, 0, none);
    message_float(&m, 4, 1);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_tensor("n", IPU_ONNX_INT64, 1, three);
    for (int i = 0; i < 3; i++)
        message_int(&m, 7, i);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_value("x", IPU_ONNX_FLOAT, 1, three);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("y", IPU_ONNX_FLOAT, 1, three);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    m = onnx_model(&g, 13);
    t.d = device_new();
    MUST(ipu_onnx_load(onnx_write("model.onnx", &m), &t.model));
    ck_assert_int_eq(ipu_onnx_train(t.model, "n"), IPU_ERR_ARGUMENT);
    MUST(ipu_onnx_train(t.model, NULL));
    MUST(ipu_onnx_build(t.model, t.d.graph));
    ck_assert_int_eq(ipu_onnx_variable(t.model, 0, &value), 1);
    ck_assert_str_eq(value.name, "k");
    ck_assert_int_eq(ipu_onnx_variable(t.model, 1, &value), 0);
    stop();
}

/* y = Dropout(x) w, by half and in training. */
static struct message dropping_model(void)
{
    static const int64_t many[] = {4096}, none[] = {0};
    struct message node = onnx_node("Dropout", "x half yes", "d"),
                   g = {.count = 0}, m;

    message_put(&g, ONNX_GRAPH_NODE, &node);
    node = onnx_node("Mul", "d w", "y");
    message_put(&g, ONNX_GRAPH_NODE, &node);
    m = onnx_tensor("half", IPU_ONNX_FLOAT, 0, none);
    message_float(&m, 4, 0.5f);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_tensor("yes", IPU_ONNX_BOOL, 0, none);
    message_int(&m, 5, 1);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_tensor("w", IPU_ONNX_FLOAT, 0, none);
    message_float(&m, 4, 3);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    m = onnx_value("x", IPU_ONNX_FLOAT, 1, many);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("y", IPU_ONNX_FLOAT, 1, many);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    return onnx_model(&g, 13);
}

/* About half of the elements are dropped, others in each run, and the rest are
 * twice as large. A run that is given the number of one before drops the same.
 * A program that trains nothing is refused. */
TEST(dropout_drops_in_training)
{
    enum { N = 4096 };
    static float x[N], y[3][N];
    struct message m = dropping_model();
    const char *path = onnx_write("model.onnx", &m);
    int dropped[3] = {0, 0, 0}, same = 0;

    for (int i = 0; i < N; i++)
        x[i] = 1;
    t.d = device_new();
    MUST(ipu_onnx_load(path, &t.model));
    ck_assert_int_lt(ipu_onnx_build(t.model, t.d.graph), 0);
    ck_assert_ptr_nonnull(
        strstr(ipu_last_error(), "no initialiser is trained"));
    stop();
    t.d = device_new();
    MUST(ipu_onnx_load(path, &t.model));
    MUST(ipu_onnx_train(t.model, "w"));
    MUST(ipu_onnx_build(t.model, t.d.graph));
    device_load(&t.d);
    MUST(ipu_onnx_write_variables(t.model, t.d.engine));
    MUST(ipu_engine_connect(t.d.engine, "x", x, sizeof x));
    ck_assert_int_eq(ipu_onnx_set_run(t.model, t.d.engine, -1),
                     IPU_ERR_ARGUMENT);
    for (int run = 0; run < 3; run++) {
        MUST(ipu_onnx_set_run(t.model, t.d.engine,
                              run == 1 ? INT32_MAX / 2 : 0));
        MUST(ipu_engine_connect(t.d.engine, "y", y[run], sizeof y[run]));
        MUST(ipu_engine_run(t.d.engine));
        for (int i = 0; i < N; i++) {
            dropped[run] += y[run][i] == 0;
            ck_assert(y[run][i] == 0 || y[run][i] == 6);
        }
        ck_assert_int_gt(dropped[run], N * 45 / 100);
        ck_assert_int_lt(dropped[run], N * 55 / 100);
    }
    for (int i = 0; i < N; i++)
        same += y[0][i] == y[1][i];
    ck_assert_int_lt(same, N * 55 / 100);
    ck_assert_mem_eq(y[0], y[2], sizeof y[0]);
    stop();
}

TEST_MAIN("device_onnx_training", .set_up = folder_make,
          .tear_down = folder_remove, .seconds = 60)
