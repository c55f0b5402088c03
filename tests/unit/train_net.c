/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests networks that are made of layers (hvd_model.h): the one that mnist
 * describes by hand is the same network, first values have the distributions
 * that the header says, results can be predicted without labels, and mistakes
 * are refused in a line.
 */
#include "net/net.h"
#include "output/problem.h"
#include "suite.h"
#include "trainer/evaluation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 3, FEATURES = 5 };

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct model_tensor digits[] = {
    {"images", IPU_FLOAT32, 2, {BATCH, 784}},
    {"labels", IPU_INT32, 1, {BATCH}}};
static const struct model_tensor points[] = {
    {"x", IPU_FLOAT32, 2, {BATCH, FEATURES}},
    {"scale", IPU_FLOAT32, 2, {BATCH, 1}},
    {"y", IPU_FLOAT32, 1, {BATCH}}};

static hvd_model model_of(hvd_build_fn *build)
{
    hvd_model model;

    hvd_model_init(&model, sizeof model);
    model.build = build;
    return model;
}

static ipu_tensor build_mlp(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    x = hvd_dense(net, "dense1", x, 128, HVD_RELU);
    return hvd_dense(net, "dense2", x, 10, HVD_LINEAR);
}

/* ------------------------------------------------------------ variables */

static const struct {
    const char *name;
    int32_t ndim;
    int64_t shape[2];
    enum model_start start;
    double spread;
} mlp_variables[] = {
    {"dense2/bias", 1, {10}, MODEL_ZEROS, 0},
    {"dense2/kernel", 2, {128, 10}, MODEL_EVEN, 0.20851441405707477},
    {"dense1/bias", 1, {128}, MODEL_ZEROS, 0},
    {"dense1/kernel", 2, {784, 128}, MODEL_EVEN, 0.08111071056538127},
};

TEST(variables_are_known_backwards)
{
    const hvd_model of = model_of(build_mlp);
    struct model *model = NULL;

    ck_assert_msg(net_model(&of, 2, digits, &model) == 0, "%s", problem_text());
    ck_assert_int_eq(model->nvariables, 4);
    ck_assert_int_eq(model->trained, 4);
    ck_assert_int_eq(model->rows, BATCH);
    for (int i = 0; i < 4; i++) {
        const struct model_variable *v = &model->variables[i];

        ck_assert_str_eq(v->name, mlp_variables[i].name);
        ck_assert_int_eq(v->ndim, mlp_variables[i].ndim);
        ck_assert_mem_eq(v->shape, mlp_variables[i].shape, (size_t)v->ndim * 8);
        ck_assert_int_eq(v->start, mlp_variables[i].start);
        ck_assert_double_eq_tol(v->spread, mlp_variables[i].spread, 1e-12);
    }
    model_free(model);
}

/* ------------------------------------------------------------ predictions */

/* Two inputs, a second result, dropout, and losses of its own. */
static ipu_tensor build_line(hvd_net *net, ipu_tensor x, void *context)
{
    ipu_tensor hidden;

    (void)context;
    hidden = hvd_dropout(net, hvd_dense(net, "line", x, 1, HVD_LINEAR), 0.5);
    hvd_net_output(net, "unscaled", hidden);
    return ipu_multiply(hvd_net_graph(net), hidden,
                        hvd_net_input(net, "scale"));
}

static ipu_tensor lose_squares(hvd_net *net, ipu_tensor y, void *context)
{
    const int64_t rows[] = {BATCH};
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    y = ipu_reshape(g, y, 1, rows);
    return ipu_square(g, ipu_subtract(g, y, hvd_net_input(net, "y")));
}

TEST(predictions_need_no_labels)
{
    hvd_model of = model_of(build_line);
    struct model *model = NULL;
    float weights[] = {1, 2, 3, 4, 5}, bias[] = {0.5F};
    float *values[2];
    struct evaluation e;

    of.loss = lose_squares;
    ck_assert_msg(net_model(&of, 3, points, &model) == 0, "%s", problem_text());
    ck_assert(model->draws);
    ck_assert_int_eq(model->noutputs, 2);
    ck_assert_str_eq(model->outputs[0].name, "output");
    ck_assert_str_eq(model->outputs[1].name, "unscaled");
    ck_assert_str_eq(model->variables[0].name, "line/bias");
    values[0] = bias;
    values[1] = weights;
    for (int predicts = 0; predicts < 2; predicts++) {
        ck_assert_msg(evaluation_init(&e, model, 1, predicts, 0, NULL) == 0,
                      "%s", problem_text());
        ck_assert_int_eq(evaluation_place(&e, values), 0);
        ck_assert((e.inputs[2] == NULL) == predicts);
        for (int i = 0; i < BATCH * FEATURES; i++)
            ((float *)e.inputs[0])[i] = (float)i;
        for (int i = 0; i < BATCH; i++)
            ((float *)e.inputs[1])[i] = (float)(i + 2);
        for (int i = 0; i < BATCH && !predicts; i++)
            ((float *)e.inputs[2])[i] = 10;
        ck_assert_int_eq(evaluation_run(&e), 0);
        for (int i = 0; i < BATCH; i++) {
            double sum = 0.5, y;

            for (int k = 0; k < FEATURES; k++)
                sum += (i * FEATURES + k) * (k + 1);
            y = sum * (i + 2);
            ck_assert_double_eq((double)((float *)e.outputs[1])[i], sum);
            ck_assert_double_eq((double)((float *)e.outputs[0])[i], y);
            if (!predicts)
                ck_assert_double_eq((double)e.losses[i], (y - 10) * (y - 10));
        }
        evaluation_fini(&e);
    }
    model_free(model);
}

/* ------------------------------------------------------------ first values */

static hvd_initializer drawn;

static ipu_tensor build_drawn(hvd_net *net, ipu_tensor x, void *context)
{
    const int64_t shape[] = {3, 3, 20, 40};

    (void)context, (void)x;
    hvd_net_variable(net, "drawn", drawn, 4, shape);
    return x;
}

/* The distribution of [3, 3, 20, 40]: 180 inputs, 360 outputs. */
static const struct {
    hvd_initializer initializer;
    double mean, deviation, most;
} distributions[] = {
    {{HVD_INIT_ZEROS, 0}, 0, 0, 0},
    {{HVD_INIT_ONES, 0}, 1, 0, 1},
    {{HVD_INIT_CONSTANT, 3}, 3, 0, 3},
    {{HVD_INIT_UNIFORM, 0.6}, 0, 0.6 * 0.57735, 0.6},
    {{HVD_INIT_NORMAL, 0.2}, 0, 0.2, 0.7},
    {{HVD_INIT_TRUNCATED_NORMAL, 0.2}, 0, 0.2 * 0.8796, 0.4},
    {{HVD_INIT_GLOROT_UNIFORM, 0}, 0, 0.0608581, 0.1054093},
    {{HVD_INIT_GLOROT_NORMAL, 0}, 0, 0.0608581, 0.1383733},
    {{HVD_INIT_HE_UNIFORM, 0}, 0, 0.1054093, 0.1825742},
    {{HVD_INIT_HE_NORMAL, 0}, 0, 0.1054093, 0.2396696},
    {{HVD_INIT_LECUN_UNIFORM, 0}, 0, 0.0745356, 0.1290994},
    {{HVD_INIT_LECUN_NORMAL, 0}, 0, 0.0745356, 0.1694720},
};

LOOP_TEST(first_values_have_their_distribution, 0, COUNT(distributions))
{
    hvd_model of = model_of(build_drawn);
    struct model *model = NULL;
    double sum = 0, squares = 0, most = 0, n;
    float **values;

    drawn = distributions[_i].initializer;
    ck_assert_msg(net_model(&of, 2, digits, &model) == 0, "%s", problem_text());
    values = model_values(model);
    model_initialize(model, 5, values);
    n = (double)model->variables[0].count;
    for (int64_t i = 0; i < model->variables[0].count; i++) {
        sum += (double)values[0][i];
        squares += (double)values[0][i] * (double)values[0][i];
        most = fmax(most, fabs((double)values[0][i]));
    }
    sum /= n;
    ck_assert_double_le(fabs(sum - distributions[_i].mean),
                        0.05 * distributions[_i].deviation + 1e-12);
    ck_assert_double_le(fabs(sqrt(fmax(0, squares / n - sum * sum)) -
                             distributions[_i].deviation),
                        0.03 * distributions[_i].deviation + 1e-6);
    ck_assert_double_le(most, distributions[_i].most * (1 + 1e-6));
    model_values_free(model, values);
    model_free(model);
}

/* More rows than columns (180 x 40), and fewer (20 x 40). */
static ipu_tensor build_orthogonal(hvd_net *net, ipu_tensor x, void *context)
{
    const int64_t tall[] = {3, 3, 20, 40}, wide[] = {20, 40}, gates[] = {12};
    const hvd_initializer orthogonal = {HVD_INIT_ORTHOGONAL, 1.5};

    (void)context;
    hvd_net_variable(net, "gates", (hvd_initializer){HVD_INIT_FORGET_GATE, 0},
                     1, gates);
    hvd_net_variable(net, "wide", orthogonal, 2, wide);
    hvd_net_variable(net, "tall", orthogonal, 4, tall);
    return x;
}

static void check_product(const float *a, const float *b, int64_t stride,
                          int64_t count, double expected)
{
    double sum = 0;

    for (int64_t i = 0; i < count; i++)
        sum += (double)a[i * stride] * (double)b[i * stride];
    ck_assert_double_le(fabs(sum - expected), 1e-5);
}

TEST(orthogonal_values_are_orthogonal)
{
    hvd_model of = model_of(build_orthogonal);
    struct model *model = NULL;
    float **values;

    ck_assert_msg(net_model(&of, 2, digits, &model) == 0, "%s", problem_text());
    values = model_values(model);
    model_initialize(model, 5, values);
    for (int i = 0; i < 40; i++)
        for (int k = 0; k <= i; k++)
            check_product(values[0] + i, values[0] + k, 40, 180,
                          i == k ? 2.25 : 0);
    for (int i = 0; i < 20; i++)
        for (int k = 0; k <= i; k++)
            check_product(values[1] + i * 40, values[1] + k * 40, 1, 40,
                          i == k ? 2.25 : 0);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq((double)values[2][i], i >= 3 && i < 6 ? 1 : 0);
    model_values_free(model, values);
    model_free(model);
}

/* ----------------------------------------------------------- all the layers */

static ipu_tensor build_many(hvd_net *net, ipu_tensor x, void *context)
{
    const int64_t image[] = {BATCH, 28, 28, 1}, pieces[] = {BATCH, 16, 12};
    ipu_graph *g = hvd_net_graph(net);

    (void)context;
    x = hvd_conv2d(net, "conv", ipu_reshape(g, x, 4, image), 8, 5, HVD_SILU);
    x = ipu_max_pool2d(g, hvd_batch_norm(net, "batch", x), 6);
    x = hvd_group_norm(net, "group", x, 4);
    x = hvd_dense(net, "wide", hvd_flatten(net, x), 16 * 12, HVD_TANH);
    x = hvd_layer_norm(net, "layer", ipu_reshape(g, x, 3, pieces));
    x = hvd_attention(net, "attention", x, 3, 1);
    return hvd_dense(net, "logits", hvd_flatten(net, x), 10, HVD_LINEAR);
}

TEST(all_layers_make_a_program)
{
    const hvd_model of = model_of(build_many);
    struct model *model = NULL;
    struct evaluation e;
    float **values;

    ck_assert_msg(net_model(&of, 2, digits, &model) == 0, "%s", problem_text());
    ck_assert_int_eq(model_statistics(model), 2);
    ck_assert_str_eq(model->variables[0].name, "logits/bias");
    ck_assert_str_eq(model->variables[model->trained].name, "batch/mean");
    values = model_values(model);
    model_initialize(model, 3, values);
    ck_assert_msg(evaluation_init(&e, model, 1, false, 0, NULL) == 0, "%s",
                  problem_text());
    ck_assert_int_eq(evaluation_place(&e, values), 0);
    for (int i = 0; i < BATCH * 784; i++)
        ((float *)e.inputs[0])[i] = (float)(i * 7 % 13) / 13;
    ck_assert_int_eq(evaluation_run(&e), 0);
    for (int i = 0; i < BATCH; i++)
        ck_assert(isfinite(e.losses[i]) && e.losses[i] > 0);
    evaluation_fini(&e);
    model_values_free(model, values);
    model_free(model);
}

/* ------------------------------------------------------------- in pieces */

static ipu_tensor first_piece(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "dense1", x, 128, HVD_RELU);
}

static ipu_tensor last_piece(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "dense2", x, 10, HVD_LINEAR);
}

TEST(pieces_know_their_variables_and_work)
{
    static hvd_build_fn *const pieces[] = {first_piece, last_piece};
    hvd_model of = model_of(NULL);
    struct model *model = NULL;

    of.pieces = pieces;
    of.npieces = 2;
    ck_assert_msg(net_model(&of, 2, digits, &model) == 0, "%s", problem_text());
    ck_assert_int_eq(model->pieces, 2);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(model->needs(model, 0, i), i >= 2);
        ck_assert_int_eq(model->needs(model, 1, i), i < 2);
    }
    ck_assert_int_eq(model->work(model, 0), BATCH * 784 * 128 + 1);
    ck_assert_int_eq(model->work(model, 1), BATCH * 128 * 10 + 1);
    model_free(model);
}

/* ---------------------------------------------------------------- mistakes */

static ipu_tensor twice(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    x = hvd_dense(net, "dense", x, 20, HVD_RELU);
    return hvd_dense(net, "dense", x, 10, HVD_LINEAR);
}

static ipu_tensor unknown_input(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return ipu_add(hvd_net_graph(net), hvd_dense(net, "a", x, 10, HVD_LINEAR),
                   hvd_net_input(net, "weights"));
}

static ipu_tensor wrong_activation(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "a", x, 10, 99);
}

static ipu_tensor wrong_op(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return ipu_matmul(hvd_net_graph(net), x, x);
}

static ipu_tensor image_wanted(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_conv2d(net, "conv", x, 3, 3, HVD_RELU);
}

static ipu_tensor odd_heads(hvd_net *net, ipu_tensor x, void *context)
{
    const int64_t shape[] = {BATCH, 28, 28};

    (void)context;
    return hvd_attention(net, "a", ipu_reshape(hvd_net_graph(net), x, 3, shape),
                         5, 0);
}

static ipu_tensor long_name(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "a name of more than forty bytes, which is too long",
                     x, 10, HVD_RELU);
}

static ipu_tensor only_evaluated(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    if (hvd_net_mode(net) != HVD_MODE_TRAIN)
        x = hvd_dense(net, "late", x, 784, HVD_LINEAR);
    return hvd_dense(net, "a", x, 10, HVD_LINEAR);
}

static ipu_tensor lose_all(hvd_net *net, ipu_tensor y, void *context)
{
    (void)context;
    return ipu_reduce_sum(hvd_net_graph(net), y, 1);
}

static const struct {
    hvd_build_fn *build, *loss;
    int inputs;
    const char *text;
} mistakes[] = {
    {twice, NULL, 2, "'dense/kernel' was asked for twice"},
    {unknown_input, NULL, 2, "no component 'weights'"},
    {wrong_activation, NULL, 2, "no activation 99"},
    {wrong_op, NULL, 2, "matmul"},
    {image_wanted, NULL, 2, "'conv': its input has 2 dimensions, it needs 4"},
    {odd_heads, NULL, 2, "28 is no multiple of 5 heads"},
    {long_name, NULL, 2, "1 to 47 bytes"},
    {only_evaluated, NULL, 2, "'late/kernel' was not asked for"},
    {build_mlp, lose_all, 2, "losses of all rows, float32 [3]"},
    {build_mlp, NULL, 1, "no loss function"},
    {NULL, NULL, 2, "a function build, or 1 to 128 pieces"},
    {build_mlp, NULL, 0, "0 components"},
};

LOOP_TEST(mistakes_are_refused, 0, COUNT(mistakes))
{
    hvd_model of = model_of(mistakes[_i].build);
    struct model *model = NULL;

    of.name = "mine";
    of.loss = mistakes[_i].loss;
    ck_assert_int_lt(net_model(&of, mistakes[_i].inputs, digits, &model), 0);
    ck_assert_ptr_null(model);
    ck_assert_msg(strstr(problem_text(), mistakes[_i].text), "%s",
                  problem_text());
    ck_assert_msg(strstr(problem_text(), "mine"), "%s", problem_text());
}

TEST_MAIN("train_net", .seconds = 60)
