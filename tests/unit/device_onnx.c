/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models in ONNX files: they are read and built as they say, and what is
 * damaged, hostile or not supported is refused with one line that says what.
 */
#include "device.h"
#include "onnx_file.h"
#include "suite.h"

#include <sys/stat.h>

/* Loads and builds a model for batches of 2; returns the status of what fails
 * first. */
static int try_model(const char *path)
{
    ipu_graph *graph = NULL;
    ipu_onnx *model = NULL;
    int status = ipu_onnx_load(path, &model);

    MUST(ipu_graph_new(&graph));
    if (status >= 0) {
        ipu_onnx_set_dim(model, NULL, 2);
        status = ipu_onnx_build(model, graph);
    }
    ipu_graph_free(graph);
    ipu_onnx_free(model);
    return status;
}

/* Checks that a model is refused by a line that has these words. */
static void check_refused(const struct message *m, int wanted,
                          const char *words)
{
    int status = try_model(onnx_write("model.onnx", m));

    ck_assert_msg(status == wanted, "%d instead of %d: %s", status, wanted,
                  ipu_last_error());
    ck_assert_msg(strstr(ipu_last_error(), words), "'%s' is not in: %s", words,
                  ipu_last_error());
    ck_assert_ptr_null(strchr(ipu_last_error(), '\n'));
}

static void check_graph_refused(const struct message *graph, int wanted,
                                const char *words)
{
    struct message m = onnx_model(graph, 13);

    check_refused(&m, wanted, words);
}

/* Returns a graph y = op(x), with x of 3 elements. */
static struct message small_graph(const struct message *node)
{
    const int64_t three[] = {3};
    struct message g = {.count = 0}, m;

    message_put(&g, ONNX_GRAPH_NODE, node);
    m = onnx_value("x", IPU_ONNX_FLOAT, 1, three);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("y", IPU_ONNX_FLOAT, 1, three);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    return g;
}

/* Returns a graph y = Add(x, w) with this initialiser w. */
static struct message graph_with(const struct message *tensor)
{
    struct message node = onnx_node("Add", "x w", "y");
    struct message g = small_graph(&node);

    message_put(&g, ONNX_GRAPH_INITIALIZER, tensor);
    return g;
}

static void run_graph(ipu_graph *graph, const char *in, void *x, size_t x_bytes,
                      const char *out, void *y, size_t y_bytes)
{
    ipu_executable *executable = NULL;
    ipu_engine *engine = NULL;

    MUST(ipu_compile(graph, NULL, &executable));
    MUST(ipu_engine_new(executable, &engine));
    MUST(ipu_engine_connect(engine, in, x, x_bytes));
    MUST(ipu_engine_connect(engine, out, y, y_bytes));
    if (strcmp(out, "z") != 0) {
        static float rest;

        ipu_engine_connect(engine, "z", &rest, sizeof rest);
    }
    MUST(ipu_engine_run(engine));
    ipu_engine_free(engine);
    ipu_executable_free(executable);
}

TEST(a_model_runs)
{
    struct message g = onnx_good_graph(), m = onnx_model(&g, 13);
    float x[2][3] = {{1, 0, 0}, {0, -1, 1}}, y[8];
    const float wanted[] = {2, 4, 6, 0, 5, 6, 7, 0};
    ipu_onnx_value value = {.size = sizeof value};
    ipu_graph *graph = NULL;
    ipu_onnx *model = NULL;

    MUST(ipu_onnx_load(onnx_write("model.onnx", &m), &model));
    ck_assert_int_eq(ipu_onnx_input(model, 0, &value), 1);
    ck_assert_str_eq(value.name, "x");
    ck_assert_int_eq(value.extents[0], -1);
    ck_assert_str_eq(value.symbols[0], "batch");
    ck_assert_int_eq(ipu_onnx_input(model, 1, &value), 0); /* no initialiser */
    MUST(ipu_onnx_set_dim(model, "batch", 2));
    MUST(ipu_graph_new(&graph));
    MUST(ipu_onnx_build(model, graph));
    ck_assert_int_eq(ipu_onnx_output(model, 0, &value), 1);
    ck_assert_int_eq(value.extents[0], 4);
    run_graph(graph, "x", x, sizeof x, "y", y, sizeof y);
    for (int i = 0; i < 8; i++)
        ck_assert_float_eq(y[i], wanted[i]);
    ipu_graph_free(graph);
    ipu_onnx_free(model);
}

/* ------------------------------------------------------------ damaged files */

TEST(no_beginning_of_a_model_is_one)
{
    struct message g = onnx_good_graph(), m = onnx_model(&g, 13);
    size_t all = m.count;

    MUST(try_model(onnx_write("model.onnx", &m)));
    for (m.count = 0; m.count < all; m.count++)
        check_refused(&m, IPU_ERR_DATA, "model.onnx: ");
}

TEST(other_files_are_refused)
{
    struct message m = {.count = 0};

    message_bytes(&m, 3, "not a model", 11);
    check_refused(&m, IPU_ERR_DATA, "it has no graph");
    ck_assert_int_eq(try_model("/nowhere/model.onnx"), IPU_ERR_DATA);
    ck_assert_int_eq(try_model(in_folder("")), IPU_ERR_DATA);
}

/* A message in a message in a message ...: written from the inside. */
TEST(deep_nesting_is_refused)
{
    enum { LEVELS = 500000, ROOM = 16 * LEVELS };
    unsigned char *data = malloc(ROOM);
    size_t at = ROOM;
    /* A graph is in an attribute, which is in a node, which is in a graph. */
    static const unsigned fields[] = {7, 1, 5, 6};

    for (int i = LEVELS; i >= 0; i--) {
        unsigned field = i == 0 ? fields[0] : fields[1 + (i - 1) % 3];
        struct message head = {.count = 0};

        message_varint(&head, field << 3 | 2);
        message_varint(&head, ROOM - at);
        at -= head.count;
        memcpy(data + at, head.data, head.count);
    }
    file_write(in_folder("model.onnx"), data + at, ROOM - at);
    ck_assert_int_eq(try_model(in_folder("model.onnx")), IPU_ERR_DATA);
    ck_assert_msg(strstr(ipu_last_error(), "nested too deeply"), "%s",
                  ipu_last_error());
    free(data);
}

TEST(versions_that_are_not_known_are_refused)
{
    struct message g = onnx_good_graph(), m = onnx_model(&g, 18);

    check_refused(&m, IPU_ERR_DATA, "version 18");
    m = onnx_model(&g, 0);
    check_refused(&m, IPU_ERR_DATA, "version 0");
}

/* ---------------------------------------------------------- hostile tensors */

static const int64_t huge_dims[][3] = {{INT64_MAX, INT64_MAX, 2},
                                       {(int64_t)1 << 31, (int64_t)1 << 31, 4},
                                       {-1, 3, 1},
                                       {INT64_MIN, 1, 1},
                                       {1 << 20, 1 << 20, 1},
                                       {3, 1000000, 1}};

LOOP_TEST(shapes_without_elements_are_refused, 0, 6)
{
    static const float three[] = {1, 2, 3};
    struct message t = onnx_tensor("w", IPU_ONNX_FLOAT, 3, huge_dims[_i]), g;
    int status;

    message_bytes(&t, 9, three, sizeof three);
    g = graph_with(&t);
    t = onnx_model(&g, 13);
    status = try_model(onnx_write("model.onnx", &t));
    ck_assert_msg(status == IPU_ERR_DATA || status == IPU_ERR_SHAPE, "%d",
                  status);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "model.onnx: tensor 'w'"));
}

TEST(elements_are_as_many_as_the_shape_says)
{
    static const float four[] = {1, 2, 3, 4};
    const int64_t three[] = {3};

    for (size_t n = 0; n <= sizeof four; n++) {
        struct message t = onnx_tensor("w", IPU_ONNX_FLOAT, 1, three), g;

        message_bytes(&t, 9, four, n);
        g = graph_with(&t);
        if (n != 3 * sizeof *four)
            check_graph_refused(&g, IPU_ERR_DATA, "its shape asks for");
        if (n % sizeof *four != 0)
            continue;
        t = onnx_tensor("w", IPU_ONNX_FLOAT, 1, three);
        message_bytes(&t, 4, four, n);
        g = graph_with(&t);
        if (n != 3 * sizeof *four)
            check_graph_refused(&g, IPU_ERR_DATA, "its shape asks for");
    }
}

TEST(integers_beyond_those_of_the_device_are_refused)
{
    const int64_t one[] = {1};
    struct message node = onnx_node("Add", "k x", "y"), g, t, m;

    g.count = 0;
    message_put(&g, ONNX_GRAPH_NODE, &node);
    t = onnx_tensor("k", IPU_ONNX_INT64, 1, one);
    message_int(&t, 7, (int64_t)1 << 40);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &t);
    m = onnx_value("x", IPU_ONNX_INT64, 1, one);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("y", IPU_ONNX_INT64, 1, one);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    check_graph_refused(&g, IPU_ERR_DATA, "1099511627776");
}

/* ------------------------------------------------------------ external data */

static struct message external_graph(const char *location, const char *offset,
                                     const char *length)
{
    const char *const keys[] = {"location", "offset", "length"};
    const char *const values[] = {location, offset, length};
    const int64_t three[] = {3};
    struct message t = onnx_tensor("w", IPU_ONNX_FLOAT, 1, three);

    for (int i = 0; i < 3; i++) {
        struct message entry = {.count = 0};

        if (!values[i])
            continue;
        message_text(&entry, 1, keys[i]);
        message_text(&entry, 2, values[i]);
        message_put(&t, 13, &entry);
    }
    message_int(&t, 14, 1);
    return graph_with(&t);
}

static void make_outside(void)
{
    static const float data[] = {9, 1, 2, 3};

    ck_assert_int_eq(mkdir(in_folder("data"), 0700), 0);
    file_write(in_folder("data/weights"), data, sizeof data);
    file_write(in_folder("outside"), data, sizeof data);
    ck_assert_int_eq(symlink("data/weights", in_folder("link")), 0);
    ck_assert_int_eq(symlink("data", in_folder("folder")), 0);
    ck_assert_int_eq(link(in_folder("outside"), in_folder("second")), 0);
}

TEST(elements_may_lie_in_another_file)
{
    float x[3] = {10, 20, 30}, y[3];
    ipu_graph *graph = NULL;
    ipu_onnx *model = NULL;
    struct message g, m;

    make_outside();
    g = external_graph("data/weights", "4", "12");
    m = onnx_model(&g, 13);
    MUST(ipu_onnx_load(onnx_write("model.onnx", &m), &model));
    MUST(ipu_graph_new(&graph));
    MUST(ipu_onnx_build(model, graph));
    run_graph(graph, "x", x, sizeof x, "y", y, sizeof y);
    for (int i = 0; i < 3; i++)
        ck_assert_float_eq(y[i], (float)(11 * (i + 1)));
    ipu_graph_free(graph);
    ipu_onnx_free(model);
}

static const struct {
    const char *location, *offset, *length, *words;
} outside[] = {
    {"../outside", NULL, NULL, "not allowed"},
    {"data/../outside", NULL, NULL, "not allowed"},
    {"/etc/passwd", NULL, NULL, "not allowed"},
    {"./outside", NULL, NULL, "not allowed"},
    {"", NULL, NULL, "not allowed"},
    {"link", NULL, NULL, "not allowed"},
    {"folder/weights", NULL, NULL, "not allowed"},
    {"second", NULL, NULL, "hard links"},
    {"data", NULL, NULL, "regular file"},
    {"nothing", NULL, NULL, "cannot be opened"},
    {"data/weights", "5", NULL, "too short"},
    {"data/weights", "9223372036854775807", NULL, "too short"},
    {"data/weights", "9223372036854775808", NULL, "is no number"},
    {"data/weights", "-4", NULL, "is no number"},
    {"data/weights", "4x", NULL, "is no number"},
    {"data/weights", "", NULL, "is no number"},
    {"data/weights", "0", "16", "its shape asks for 12"},
    {"data/weights", "0", "18446744073709551615", "is no number"},
};

LOOP_TEST(no_path_leads_elsewhere, 0, sizeof outside / sizeof *outside)
{
    struct message g = external_graph(outside[_i].location, outside[_i].offset,
                                      outside[_i].length);

    make_outside();
    check_graph_refused(&g, IPU_ERR_DATA, outside[_i].words);
}

/* ------------------------------------------------------------------- graphs */

TEST(nodes_come_after_those_that_they_need)
{
    struct message first = onnx_node("Relu", "b", "a"), second, g;

    second = onnx_node("Relu", "a", "b");
    g = small_graph(&first);
    message_put(&g, ONNX_GRAPH_NODE, &second);
    check_graph_refused(&g, IPU_ERR_SHAPE,
                        "nothing before it makes its input 'b'");
    first = onnx_node("Relu", "missing", "y");
    g = small_graph(&first);
    check_graph_refused(&g, IPU_ERR_SHAPE, "'missing'");
}

TEST(names_are_given_once)
{
    struct message node = onnx_node("Relu", "x", "x"), g = small_graph(&node);

    check_graph_refused(&g, IPU_ERR_DATA, "'x' is the name of two values");
    node = onnx_node("Relu", "x", "z");
    g = small_graph(&node);
    check_graph_refused(&g, IPU_ERR_DATA, "nothing makes its output 'y'");
}

TEST(all_that_is_not_supported_is_named_at_once)
{
    struct message node = onnx_node("Foo", "x", "f"), g = small_graph(&node);

    node = onnx_node("NonZero", "x", "n");
    message_put(&g, ONNX_GRAPH_NODE, &node);
    node = onnx_node("Relu", "f", "r"); /* it needs one of them */
    message_put(&g, ONNX_GRAPH_NODE, &node);
    node = onnx_node("Softmax", "x", "s");
    onnx_int_attribute(&node, "beta", 1);
    message_put(&g, ONNX_GRAPH_NODE, &node);
    node = onnx_node("Add", "x r", "y");
    message_put(&g, ONNX_GRAPH_NODE, &node);
    check_graph_refused(&g, IPU_ERR_SHAPE, "3 nodes are not supported");
    ck_assert_ptr_nonnull(strstr(ipu_last_error(),
                                 "node 'f' (Foo): there is no "
                                 "such operator"));
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "node 'n' (NonZero)"));
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "attribute 'beta'"));
}

TEST(open_dimensions_have_to_be_given)
{
    struct message g = onnx_good_graph(), m = onnx_model(&g, 13);
    ipu_graph *graph = NULL;
    ipu_onnx *model = NULL;

    MUST(ipu_onnx_load(onnx_write("model.onnx", &m), &model));
    MUST(ipu_graph_new(&graph));
    ck_assert_int_eq(ipu_onnx_set_dim(model, "other", 2), IPU_ERR_NAME);
    ck_assert_int_eq(ipu_onnx_build(model, graph), IPU_ERR_SHAPE);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "leaves dimension 0 open "
                                                   "('batch')"));
    ck_assert_int_eq(ipu_onnx_build(model, graph), IPU_ERR_STATE);
    ipu_graph_free(graph);
    ipu_onnx_free(model);
}

/* The shape of Reshape is an input. */
TEST(inputs_that_have_to_be_known_are_bound)
{
    const int64_t six[] = {6}, two[] = {2}, shape[] = {3, 2};
    struct message node = onnx_node("Reshape", "x s", "y"), m, g = {.count = 0};
    ipu_onnx_value value = {.size = sizeof value};
    ipu_graph *graph = NULL;
    ipu_onnx *model = NULL;

    message_put(&g, ONNX_GRAPH_NODE, &node);
    m = onnx_value("x", IPU_ONNX_FLOAT, 1, six);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("s", IPU_ONNX_INT64, 1, two);
    message_put(&g, ONNX_GRAPH_INPUT, &m);
    m = onnx_value("y", IPU_ONNX_FLOAT, 2, shape);
    message_put(&g, ONNX_GRAPH_OUTPUT, &m);
    check_graph_refused(&g, IPU_ERR_SHAPE, "depends on what an input will be");
    m = onnx_model(&g, 13);
    MUST(ipu_onnx_load(onnx_write("model.onnx", &m), &model));
    MUST(ipu_graph_new(&graph));
    ck_assert_int_eq(ipu_onnx_offer(model, "s", IPU_ONNX_FLOAT, 1, two, shape),
                     IPU_ERR_SHAPE);
    ck_assert_int_eq(ipu_onnx_offer(model, "s", IPU_ONNX_INT64, 1, six, shape),
                     IPU_ERR_SHAPE);
    MUST(ipu_onnx_offer(model, "s", IPU_ONNX_INT64, 1, two, shape));
    MUST(ipu_onnx_build(model, graph));
    ck_assert_int_eq(ipu_onnx_input(model, 0, &value), 1);
    ck_assert_int_eq(value.bound, 0);
    ck_assert_int_eq(ipu_onnx_input(model, 1, &value), 1);
    ck_assert_int_eq(value.bound, 1);
    ck_assert_int_eq(ipu_onnx_output(model, 0, &value), 1);
    ck_assert_int_eq(value.extents[0], 3);
    ipu_graph_free(graph);
    ipu_onnx_free(model);
}

/* A few bytes ask for more memory than any machine has. */
TEST(constants_of_any_size_take_no_memory)
{
    const int64_t two[] = {2};
    struct message node = onnx_node("ConstantOfShape", "s", "c"), g, t;

    g = small_graph(&node);
    t = onnx_tensor("s", IPU_ONNX_INT64, 1, two);
    message_int(&t, 7, 1 << 30);
    message_int(&t, 7, 1 << 20);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &t);
    node = onnx_node("Relu", "x", "y");
    message_put(&g, ONNX_GRAPH_NODE, &node);
    t = onnx_model(&g, 13);
    MUST(try_model(onnx_write("model.onnx", &t)));
}

/* --------------------------------------------------------------- conversion */

TEST(elements_are_converted_or_refused)
{
    const int64_t wide[] = {1, -2, (int64_t)1 << 31};
    const int32_t narrow[] = {255, 256};
    const double number = 0.5;
    uint8_t bytes[2];
    int32_t to[3];
    float real;

    ck_assert_int_eq(ipu_onnx_to_device(IPU_ONNX_INT64, 2, wide, to), IPU_OK);
    ck_assert_int_eq(to[1], -2);
    ck_assert_int_eq(ipu_onnx_to_device(IPU_ONNX_INT64, 3, wide, to),
                     IPU_ERR_DATA);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "element 2 is 2147483648"));
    ck_assert_int_eq(ipu_onnx_from_device(IPU_ONNX_UINT8, 1, narrow, bytes),
                     IPU_OK);
    ck_assert_int_eq(bytes[0], 255);
    ck_assert_int_eq(ipu_onnx_from_device(IPU_ONNX_UINT8, 2, narrow, bytes),
                     IPU_ERR_DATA);
    MUST(ipu_onnx_to_device(IPU_ONNX_DOUBLE, 1, &number, &real));
    ck_assert_float_eq(real, 0.5f);
    ck_assert_int_eq(ipu_onnx_to_device(IPU_ONNX_STRING, 0, NULL, NULL),
                     IPU_ERR_ARGUMENT);
}

TEST(the_operators_are_listed_by_name)
{
    ipu_onnx_operator op = {.size = sizeof op};
    char last[64] = "";
    int32_t n = 0;

    for (; ipu_onnx_operator_at(n, &op) > 0; n++) {
        ck_assert_int_lt(strcmp(last, op.name), 0);
        ck_assert(op.first > 0 || op.limits);
        snprintf(last, sizeof last, "%s", op.name);
    }
    ck_assert_int_gt(n, 150);
}

TEST_MAIN("device_onnx", .set_up = folder_make, .tear_down = folder_remove,
          .seconds = 60)
