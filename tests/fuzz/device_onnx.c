/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives spoilt ONNX models to their reader: bits are turned, bytes are cut off,
 * doubled or replaced. Then
 *
 *     a refusal            is one line that names the file
 *     an accepted model    is built, or refused with a reason; its graph
 *                          compiles or is refused with a reason
 *
 * The sequence is the same in every run. A sanitized build (make sanitize) sees
 * bytes read or written elsewhere.
 */
#include "device.h"
#include "onnx_file.h"
#include "suite.h"

static uint64_t state = 20170907;

static uint32_t any(uint32_t below)
{
    return (uint32_t)(device_random(&state) >> 33) % below;
}

static void spoil(struct message *m)
{
    static const unsigned char bytes[] = {0, 1, 2, 7, 8, 0x7f, 0x80, 0xff};
    size_t at, n;

    for (uint32_t times = 1 + any(3); times > 0 && m->count > 8; times--) {
        at = any((uint32_t)m->count);
        n = any((uint32_t)(m->count - at < 24 ? m->count - at : 24));
        switch (any(8)) {
        case 0: m->count = at; break;
        case 1:
            memmove(m->data + at, m->data + at + n, m->count - at - n);
            m->count -= n;
            break;
        case 2:
            if (m->count + n > sizeof m->data)
                break;
            memmove(m->data + at + n, m->data + at, m->count - at);
            m->count += n;
            break;
        case 3: m->data[at] ^= (unsigned char)(1u << any(8)); break;
        case 4: m->data[at] = (unsigned char)any(256); break;
        default: m->data[at] = bytes[any(8)]; break;
        }
    }
}

static void check_text(const char *path, int round)
{
    const char *text = ipu_last_error();

    if (!*text || strchr(text, '\n') ||
        (path && strncmp(text, path, strlen(path)) != 0))
        ck_abort_msg("round %d: %s", round, text);
}

/* Returns whether the model was built. */
static bool build_spoilt(ipu_onnx *model, int round)
{
    const ipu_compile_options options = {
        .size = sizeof options, .allow_out_of_memory = 1, .brief = 1};
    ipu_executable *executable = NULL;
    ipu_graph *graph = NULL;
    bool built;

    MUST(ipu_graph_new(&graph));
    ipu_onnx_set_dim(model, NULL, 2);
    built = ipu_onnx_build(model, graph) >= 0;
    if (!built)
        check_text(NULL, round);
    else if (ipu_compile_with(graph, &options, &executable) < 0)
        check_text(NULL, round);
    ipu_executable_free(executable);
    ipu_graph_free(graph);
    return built;
}

/* Spoils a model n times. */
static void spoil_often(const struct message *good, int n)
{
    int read = 0, built = 0;

    for (int round = 0; round < n; round++) {
        struct message m = *good;
        const char *path = in_folder("spoilt.onnx");
        ipu_onnx *model = NULL;

        spoil(&m);
        file_write(path, m.data, m.count);
        if (ipu_onnx_load(path, &model) < 0) {
            check_text(path, round);
            continue;
        }
        read++;
        built += build_spoilt(model, round);
        ipu_onnx_free(model);
    }
    /* Names and elements may be any. */
    ck_assert_int_gt(built, n / 100);
    ck_assert_int_gt(read - built, n / 50);
    ck_assert_int_gt(n - read, n / 50);
}

static int rounds(int usual)
{
    return getenv("HVD_TEST_FULL") ? 50 * usual : usual;
}

TEST(a_model_is_refused_or_built)
{
    struct message g = onnx_good_graph(), good = onnx_model(&g, 13);

    spoil_often(&good, rounds(10000));
}

static void add_input(struct message *graph, const char *name, int64_t type,
                      int ndim, const int64_t *dims)
{
    struct message m = onnx_value(name, type, ndim, dims);

    message_put(graph, ONNX_GRAPH_INPUT, &m);
}

/* Adds a graph to a node, as an attribute. */
static void add_graph(struct message *node, const char *which,
                      const struct message *graph)
{
    struct message attribute = {.count = 0};

    message_text(&attribute, 1, which);
    message_put(&attribute, 6, graph);
    message_int(&attribute, 20, 5);
    message_put(node, 5, &attribute);
}

/* Adds a branch of one node to an If. */
static void add_branch(struct message *choice, const char *which,
                       const struct message *node, const char *output)
{
    struct message graph = {.count = 0}, m;

    message_put(&graph, ONNX_GRAPH_NODE, node);
    m = onnx_value(output, IPU_ONNX_FLOAT, 0, NULL);
    message_put(&graph, ONNX_GRAPH_OUTPUT, &m);
    add_graph(choice, which, &graph);
}

/* y = LSTM(x, w, r) or Neg of it, as c says. */
TEST(branches_and_recurrent_nodes_are_refused_or_built)
{
    const int64_t x[] = {3, 2, 2}, w[] = {1, 8, 2}, none[] = {0};
    struct message g = {.count = 0}, node, then, other, good;

    node = onnx_node("LSTM", "x w w", "a");
    message_put(&g, ONNX_GRAPH_NODE, &node);
    then = onnx_node("LSTM", "x w w", "t");
    other = onnx_node("Neg", "a", "e");
    node = onnx_node("If", "c", "y");
    add_branch(&node, "then_branch", &then, "t");
    add_branch(&node, "else_branch", &other, "e");
    message_put(&g, ONNX_GRAPH_NODE, &node);
    add_input(&g, "x", IPU_ONNX_FLOAT, 3, x);
    add_input(&g, "w", IPU_ONNX_FLOAT, 3, w);
    add_input(&g, "c", IPU_ONNX_BOOL, 0, none);
    node = onnx_value("y", IPU_ONNX_FLOAT, 0, none);
    message_put(&g, ONNX_GRAPH_OUTPUT, &node);
    good = onnx_model(&g, 13);
    spoil_often(&good, rounds(3000));
}

/* Adds values that have names alone. */
static void add_names(struct message *graph, unsigned field, const char *names)
{
    for (; *names; names += *names == ' ') {
        size_t n = strcspn(names, " ");
        struct message m = {.count = 0};

        message_bytes(&m, 1, names, n);
        message_put(graph, field, &m);
        names += n;
    }
}

/* A Scan in a Loop, whose body needs the number of the iteration for a shape:
 * it is tried as a loop, and then built as its iterations. */
TEST(loops_are_refused_or_built)
{
    const int64_t x[] = {3, 2}, w[] = {2}, none[] = {0};
    struct message g = {.count = 0}, body = {.count = 0}, inner = {.count = 0};
    struct message node, good;

    node = onnx_node("Add", "s r", "s1");
    message_put(&inner, ONNX_GRAPH_NODE, &node);
    add_names(&inner, ONNX_GRAPH_INPUT, "s r");
    add_names(&inner, ONNX_GRAPH_OUTPUT, "s1 s1");
    node = onnx_node("Scan", "b x", "b1 rows");
    onnx_int_attribute(&node, "num_scan_inputs", 1);
    add_graph(&node, "body", &inner);
    message_put(&body, ONNX_GRAPH_NODE, &node);
    node = onnx_node("Less", "i m", "again");
    message_put(&body, ONNX_GRAPH_NODE, &node);
    node = onnx_node("Expand", "i i1", "wide");
    message_put(&body, ONNX_GRAPH_NODE, &node);
    add_names(&body, ONNX_GRAPH_INPUT, "i c b");
    add_names(&body, ONNX_GRAPH_OUTPUT, "again b1 rows");
    node = onnx_tensor("i1", IPU_ONNX_INT64, 1, (const int64_t[]){1});
    message_int(&node, 7, 2);
    message_put(&body, ONNX_GRAPH_INITIALIZER, &node);
    node = onnx_node("Loop", "m - w", "y z");
    add_graph(&node, "body", &body);
    message_put(&g, ONNX_GRAPH_NODE, &node);
    node = onnx_tensor("m", IPU_ONNX_INT64, 0, none);
    message_int(&node, 7, 4);
    message_put(&g, ONNX_GRAPH_INITIALIZER, &node);
    add_input(&g, "x", IPU_ONNX_FLOAT, 2, x);
    add_input(&g, "w", IPU_ONNX_FLOAT, 1, w);
    add_names(&g, ONNX_GRAPH_OUTPUT, "y z");
    good = onnx_model(&g, 13);
    spoil_often(&good, rounds(3000));
}

TEST_MAIN("fuzz_device_onnx", .set_up_once = folder_make,
          .tear_down_once = folder_remove, .seconds = 600)
