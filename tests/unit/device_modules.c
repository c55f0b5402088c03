/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests ipu_module: which step and which block of a program belong to which
 * module of the model, also where derivatives, loops, files and fused steps
 * come between.
 */
#include "suite.h"

#include "folder.h"
#include "profiled.h"

static void set_up_all(void)
{
    set_up();
    folder_make();
}

static void tear_down_all(void)
{
    folder_remove();
    tear_down();
}

/* w/1: a product, with an activation that another module asks for; w/2: a
 * product; the loss has none. */
static void build(ipu_graph *g)
{
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(8, 16));
    ipu_tensor w[2], dw[2], loss;
    char path[] = "w/1"; /* not kept by the graph */

    w[0] =
        ipu_variable(ipu_module(g, path), "a", IPU_FLOAT32, 2, SHAPE(16, 32));
    x = ipu_matmul(g, x, w[0]);
    x = ipu_relu(ipu_module(g, "relu"), x);
    path[2] = '2';
    ipu_module(g, path);
    w[1] = ipu_variable(g, "b", IPU_FLOAT32, 2, SHAPE(32, 4));
    x = ipu_matmul(g, x, w[1]);
    memset(path, '?', sizeof path - 1);
    ck_assert_ptr_eq(ipu_module(g, NULL), g);
    loss = ipu_reduce_sum(g, ipu_square(g, x), 1);
    MUST(ipu_gradients(g, loss, 2, w, dw));
    MUST(ipu_output(g, "da", dw[0]));
    MUST(ipu_output(g, "db", dw[1]));
}

static const char *module_of(const ipu_executable *e, const char *tensor)
{
    for (int32_t i = 0; i < ipu_executable_blocks(e); i++) {
        ipu_block_info info = {.size = sizeof info};

        MUST(ipu_executable_block(e, i, &info));
        if (strcmp(info.tensor, tensor) == 0)
            return info.module ? info.module : "none";
    }
    return "no such block";
}

/* Counts the steps of an op, or all for NULL, that belong to a module. */
static int count_steps(const json_t *program, const char *op,
                       const char *module)
{
    const json_t *step;
    size_t i;
    int n = 0;

    json_array_foreach(json_object_get(program, "steps"), i, step)
    {
        const char *has = json_string_value(json_object_get(step, "module"));
        const char *does = json_string_value(json_object_get(step, "op"));

        n += (!op || strcmp(does, op) == 0) &&
             (has ? module && strcmp(has, module) == 0 : !module);
    }
    return n;
}

static void check_steps(const ipu_executable *e)
{
    json_t *json;
    const json_t *program;

    MUST(ipu_profile_new("modules", &profile));
    MUST(ipu_profile_add(profile, "training", 0, e, NULL));
    json = report_json(profile);
    program = report_program(json, 0);
    /* w/1: the product with its relu, and the derivative of its weights; w/2:
     * the product, and both derivatives. */
    ck_assert_int_eq(count_steps(program, "matmul", "w/1"), 2);
    ck_assert_int_eq(count_steps(program, "matmul", "w/2"), 3);
    ck_assert_int_ge(count_steps(program, NULL, NULL), 1);
    ck_assert_int_eq(count_steps(program, NULL, "?/?"), 0);
    json_decref(json);
    ipu_profile_free(profile);
    profile = NULL;
}

TEST(steps_and_derivatives_belong_to_modules)
{
    build(d.graph);
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    ck_assert_str_eq(module_of(d.executable, "a"), "w/1");
    ck_assert_str_eq(module_of(d.executable, "b"), "w/2");
    ck_assert_str_eq(module_of(d.executable, "x"), "none");
    check_steps(d.executable);
}

TEST(files_keep_modules)
{
    ipu_graph *graph = NULL;
    ipu_executable *e = NULL;

    build(d.graph);
    MUST(ipu_graph_save(d.graph, in_folder("graph")));
    MUST(ipu_graph_load(in_folder("graph"), &graph));
    MUST(ipu_compile(graph, NULL, &d.executable));
    ipu_graph_free(graph);
    check_steps(d.executable);
    MUST(ipu_executable_save(d.executable, in_folder("executable")));
    MUST(ipu_executable_load(in_folder("executable"), &e));
    ck_assert_str_eq(module_of(e, "a"), "w/1");
    check_steps(e);
    ipu_executable_free(e);
}

static int body(ipu_graph *g, void *context, int32_t ninputs,
                const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_tanh(ipu_module(g, "inner"), in[0]);
    return IPU_OK;
}

TEST(the_body_of_a_loop_has_modules_of_its_own)
{
    ipu_graph *g = ipu_module(d.graph, "outer");
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 1, SHAPE(64)), y;
    json_t *json;

    MUST(ipu_repeat(g, 3, body, NULL, 1, &x, NULL, &y));
    MUST(ipu_output(g, "y", ipu_square(g, y)));
    MUST(ipu_compile(g, NULL, &d.executable));
    profile = report_profile(&d, "loop");
    json = report_json(profile);
    ck_assert_int_eq(count_steps(report_program(json, 0), "square", "outer"),
                     1);
    ck_assert_int_eq(count_steps(report_program(json, 1), "tanh", "inner"), 1);
    json_decref(json);
}

TEST(no_graph_has_no_module)
{
    ck_assert_ptr_null(ipu_module(NULL, "a"));
}

TEST_MAIN("device_modules", .set_up = set_up_all, .tear_down = tear_down_all)
