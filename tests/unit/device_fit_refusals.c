/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests remedies that do not apply to a program. ipu_remedy_try names the
 * remedy and the property of the program that rules it out, found by a few
 * words of the whole text.
 */
#include "device.h"
#include "suite.h"

enum { ROWS = 8, WIDTH = 4 };

static struct device d;
static ipu_tensor x, w, dw;

/* Builds loss = sum((x w)^2) and its gradient. */
static ipu_tensor loss_of(ipu_graph *g)
{
    ipu_tensor loss;

    x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    w = ipu_variable(g, "w", IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
    loss = ipu_square(g, ipu_matmul(g, x, w));
    loss = ipu_reduce_sum(g, ipu_reshape(g, loss, 1, SHAPE(-1)), 1);
    MUST(ipu_gradients(g, loss, 1, &w, &dw));
    return loss;
}

static ipu_optimizer optimizer_of(ipu_graph *g)
{
    return (ipu_optimizer){.size = sizeof(ipu_optimizer),
                           .kind = IPU_OPTIMIZER_SGD,
                           .rate = ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.1)};
}

static void with_mini_batches(ipu_graph *g)
{
    const ipu_optimizer o = optimizer_of(g);
    const ipu_update_options u = {.size = sizeof u,
                                  .accumulation = {sizeof u.accumulation}};

    loss_of(g);
    MUST(ipu_accumulating_optimizer(g, &o, 1, &w, &dw, 2, &u));
}

static void on_a_condition(ipu_graph *g)
{
    const ipu_optimizer o = optimizer_of(g);

    loss_of(g);
    MUST(ipu_update_begin_if(g, 1, ipu_fill(g, IPU_INT32, 0, NULL, 1)));
    MUST(ipu_optimize(g, &o, 1, &w, &dw));
    MUST(ipu_update_end(g));
}

static void with_a_penalty_on_gradients(ipu_graph *g)
{
    const ipu_optimizer o = optimizer_of(g);
    ipu_tensor penalty, both;

    loss_of(g);
    penalty = ipu_square(g, ipu_square(g, dw));
    penalty = ipu_reduce_sum(g, ipu_reshape(g, penalty, 1, SHAPE(-1)), 0.5);
    MUST(ipu_gradients(g, penalty, 1, &w, &both));
    MUST(ipu_optimize(g, &o, 1, &w, &both));
}

static int doubles(ipu_graph *g, void *context, int32_t ninputs,
                   const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_add(g, in[0], in[0]);
    return 0;
}

static void a_loop(ipu_graph *g)
{
    ipu_tensor y;

    x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    MUST(ipu_repeat(g, 3, doubles, NULL, 1, &x, NULL, &y));
    MUST(ipu_output(g, "y", y));
}

/* Each row has a bias of its own. */
static void biased_by_row(ipu_graph *g)
{
    x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    w = ipu_variable(g, "w", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    MUST(ipu_output(g, "y", ipu_add(g, x, w)));
}

static void keeping_its_input(ipu_graph *g)
{
    x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    w = ipu_variable(g, "w", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    MUST(ipu_assign(g, w, ipu_square(g, x)));
}

static void with_a_variable_for_a_loss(ipu_graph *g)
{
    x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    w = ipu_variable(g, "w", IPU_FLOAT32, 0, NULL);
    MUST(ipu_gradients(g, w, 1, &w, &dw));
    MUST(ipu_output(g, "dw", dw));
    MUST(ipu_output(g, "y", ipu_square(g, x)));
}

/* The layers run one after the other, so that all tensors are alive halfway. */
static void wide(ipu_graph *g)
{
    enum { COUNT = IPU_MAX_STAGE_TENSORS + 8 };
    ipu_tensor all[2 * COUNT], slopes[2 * COUNT], h[COUNT], sum;
    char name[16];

    for (int i = 0; i < 2 * COUNT; i++) {
        snprintf(name, sizeof name, "w%d", i);
        all[i] = ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
    }
    x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    for (int i = 0; i < COUNT; i++)
        h[i] = ipu_matmul(g, x, all[i]);
    sum = ipu_matmul(g, h[0], all[COUNT]);
    for (int i = 1; i < COUNT; i++)
        sum = ipu_add(g, sum, ipu_matmul(g, h[i], all[COUNT + i]));
    sum = ipu_reduce_sum(g, ipu_reshape(g, sum, 1, SHAPE(-1)), 1);
    MUST(ipu_gradients(g, sum, 2 * COUNT, all, slopes));
    MUST(ipu_output(g, "dw", slopes[0]));
}

static void trained(ipu_graph *g)
{
    const ipu_optimizer o = optimizer_of(g);

    MUST(ipu_allow_recompute(g, 1));
    loss_of(g);
    MUST(ipu_optimize(g, &o, 1, &w, &dw));
}

static void of_integers(ipu_graph *g)
{
    x = ipu_input(g, "x", IPU_INT32, 2, SHAPE(ROWS, WIDTH));
    MUST(ipu_output(g, "y", ipu_add(g, x, x)));
}

static void without_variables(ipu_graph *g)
{
    x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    MUST(ipu_output(g, "y", ipu_square(g, x)));
}

static const struct refusal {
    void (*build)(ipu_graph *g);
    ipu_remedy_kind kind;
    int32_t parts;
    const char *text;
} refusals[] = {
    {on_a_condition, IPU_REMEDY_ACCUMULATE, 2,
     "remedy: accumulate: it has an update region with a condition, or several "
     "of them"},
    {with_a_penalty_on_gradients, IPU_REMEDY_ACCUMULATE, 2,
     "remedy: accumulate: its update is differentiated"},
    {with_a_penalty_on_gradients, IPU_REMEDY_OFFLOAD, 1,
     "remedy: offload: its update is differentiated"},
    {a_loop, IPU_REMEDY_ACCUMULATE, 2,
     "remedy: accumulate: it has loops, and no gradients"},
    {biased_by_row, IPU_REMEDY_ACCUMULATE, 2,
     "remedy: accumulate: add:0 takes the whole batch at once"},
    {keeping_its_input, IPU_REMEDY_ACCUMULATE, 2,
     "remedy: accumulate: w is given the whole batch"},
    {with_mini_batches, IPU_REMEDY_PIPELINE, 2,
     "remedy: pipeline: it accumulates gradients itself, as a pipeline does"},
    {with_a_variable_for_a_loss, IPU_REMEDY_PIPELINE, 2,
     "remedy: pipeline: its loss is computed by nothing"},
    {wide, IPU_REMEDY_PIPELINE, 2,
     "remedy: pipeline: more than 32 tensors pass from one stage to the next"},
    {with_a_variable_for_a_loss, IPU_REMEDY_RECOMPUTE, 1,
     "remedy: recompute: the backward pass reads nothing of which less could "
     "be kept"},
    {of_integers, IPU_REMEDY_HALF, 1,
     "remedy: float16: no tensor of it is of float32"},
    {trained, IPU_REMEDY_OFFLOAD, 1,
     "remedy: offload: there is nothing that only the update uses"},
    {without_variables, IPU_REMEDY_OFFLOAD_ALL, 1,
     "remedy: offload all: it has no variables of any size"},
};

LOOP_TEST(remedies_that_do_not_apply, 0, sizeof refusals / sizeof *refusals)
{
    const struct refusal *r = &refusals[_i];
    ipu_target target = {.size = sizeof target};
    const ipu_compile_options o = {.size = sizeof o, .target = &target};
    ipu_remedy remedy = {.size = sizeof remedy};

    MUST(ipu_target_find("mk2", &target));
    d = device_new();
    r->build(d.graph);
    ck_assert_int_eq(ipu_remedy_try(d.graph, &o, r->kind, r->parts, &remedy),
                     IPU_ERR_STATE);
    ck_assert_str_eq(ipu_last_error(), r->text);
    device_free(&d);
}

TEST_MAIN("device_fit_refusals")
