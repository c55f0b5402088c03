/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of ONNX models that turn out to have to be known after their nodes
 * were built: they are computed from the inputs that a program offers.
 */
#include "device.h"
#include "onnx_file.h"
#include "suite.h"

static const int64_t one[] = {1}, twelve[] = {12};
static const int64_t open2[] = {-1, -1};

static void add_node(struct message *g, const char *op, const char *inputs,
                     const char *outputs)
{
    struct message m = onnx_node(op, inputs, outputs);

    if (!strcmp(op, "Concat"))
        onnx_int_attribute(&m, "axis", 0);
    message_put(g, ONNX_GRAPH_NODE, &m);
}

static void add_value(struct message *g, unsigned field, const char *name,
                      int64_t type, int ndim, const int64_t *shape)
{
    struct message m = onnx_value(name, type, ndim, shape);

    message_put(g, field, &m);
}

/* y = Reshape(x, shape), with x of 12 elements, and integers s and k. */
static struct message graph_of(const char *shape)
{
    char inputs[16];
    struct message g = {.count = 0}, m;

    sprintf(inputs, "x %s", shape);
    add_node(&g, "Reshape", inputs, "y");
    m = onnx_tensor("k", IPU_ONNX_INT64, 1, one);
    message_int(&m, 7, 2);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &m);
    add_value(&g, ONNX_GRAPH_INPUT, "x", IPU_ONNX_FLOAT, 1, twelve);
    add_value(&g, ONNX_GRAPH_INPUT, "s", IPU_ONNX_INT64, 1, one);
    add_value(&g, ONNX_GRAPH_OUTPUT, "y", IPU_ONNX_FLOAT, 2, open2);
    return g;
}

/* Builds a model whose nodes are those of first and then those of g; s is
 * offered if it is not 0. */
static int build(const struct message *first, const struct message *g,
                 int64_t s, ipu_onnx **model)
{
    struct message all = *first, m;
    ipu_graph *graph = NULL;
    int status;

    memcpy(all.data + all.count, g->data, g->count);
    all.count += g->count;
    m = onnx_model(&all, 13);
    MUST(ipu_onnx_load(onnx_write("model.onnx", &m), model));
    MUST(ipu_graph_new(&graph));
    if (s != 0)
        MUST(ipu_onnx_offer(*model, "s", IPU_ONNX_INT64, 1, one, &s));
    status = ipu_onnx_build(*model, graph);
    ipu_graph_free(graph);
    return status;
}

static void check_shape(const ipu_onnx *model, int64_t rows, int64_t columns,
                        int32_t bound)
{
    ipu_onnx_value value = {.size = sizeof value};

    ck_assert_int_eq(ipu_onnx_output(model, 0, &value), 1);
    ck_assert_int_eq(value.extents[0], rows);
    ck_assert_int_eq(value.extents[1], columns);
    ck_assert_int_eq(ipu_onnx_input(model, 1, &value), 1);
    ck_assert_int_eq(value.bound, bound);
}

/* The shape is [2 s, k]: its nodes were built before Reshape asks for it. */
static struct message product_nodes(void)
{
    struct message first = {.count = 0};

    add_node(&first, "Mul", "s k", "p");
    add_node(&first, "Concat", "p k", "q");
    return first;
}

TEST(a_shape_is_computed_from_what_is_offered)
{
    struct message first = product_nodes(), g = graph_of("q");
    ipu_onnx *model = NULL;

    MUST(build(&first, &g, 3, &model));
    check_shape(model, 6, 2, 0); /* Mul had made an input of s before */
    ipu_onnx_free(model);
}

TEST(nodes_of_inputs_that_are_not_offered_are_refused)
{
    struct message first = product_nodes(), g = graph_of("q");
    ipu_onnx *model = NULL;

    ck_assert_int_eq(build(&first, &g, 0, &model), IPU_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "'q', must be known"));
    ipu_onnx_free(model);
}

/* An input that a node needs at once is bound, and the graph has none. */
TEST(an_input_that_only_a_shape_needs_is_bound)
{
    struct message first = {.count = 0}, g = graph_of("s");
    ipu_onnx_value value = {.size = sizeof value};
    ipu_onnx *model = NULL;

    MUST(build(&first, &g, 12, &model));
    ck_assert_int_eq(ipu_onnx_input(model, 1, &value), 1);
    ck_assert_int_eq(value.bound, 1);
    ck_assert_int_eq(ipu_onnx_output(model, 0, &value), 1);
    ck_assert_int_eq(value.ndim, 1);
    ipu_onnx_free(model);
}

/* Chains are followed to a depth: 60 nodes, and not 80. */
LOOP_TEST(chains_are_followed_to_a_depth, 0, 2)
{
    struct message first = {.count = 0}, g = graph_of("q");
    ipu_onnx *model = NULL;
    char from[16] = "s", to[16];
    int n = _i ? 80 : 60;

    for (int i = 0; i < n; i++) {
        sprintf(to, "n%d", i);
        add_node(&first, "Neg", from, to);
        memcpy(from, to, sizeof from);
    }
    strcat(to, " k");
    add_node(&first, "Concat", to, "q");
    if (_i) {
        ck_assert_int_eq(build(&first, &g, 6, &model), IPU_ERR_SHAPE);
        ck_assert_ptr_nonnull(strstr(ipu_last_error(), "'q', must be known"));
    } else {
        MUST(build(&first, &g, 6, &model));
        check_shape(model, 6, 2, 0);
    }
    ipu_onnx_free(model);
}

TEST_MAIN("device_onnx_fold", .set_up = folder_make, .tear_down = folder_remove,
          .seconds = 60)
