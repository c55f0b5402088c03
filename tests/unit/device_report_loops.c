/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests loops in profiles. A body is a program of its own, executed and
 * measured once an iteration, and its cost is part of the loop's step.
 */
#include "suite.h"

#include "profiled.h"

/* The inner loop makes relu(x w) of x, 5 times, in each of 3 rounds. */
static int inner(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const ipu_tensor *w = context;

    (void)ninputs;
    (void)noutputs;
    out[0] = ipu_relu(g, ipu_matmul(g, in[0], *w));
    return 0;
}

static int outer(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)ninputs;
    (void)noutputs;
    return ipu_repeat(g, 5, inner, context, 1, in, NULL, out);
}

static void nested_loops(void)
{
    static float x[16 * 32], y[16 * 32];
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(32, 32));
    ipu_tensor in = device_floats(&d, "x", 2, SHAPE(16, 32)), out;

    MUST(ipu_repeat(d.graph, 3, outer, &w, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    device_connect(&d, "x", x, 16 * 32);
    device_connect(&d, "y", y, 16 * 32);
    MUST(ipu_engine_profile(d.engine, 1));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_run(d.engine));
    profile = report_profile(&d, "loops");
}

/* Returns the program of a name, or that of the loop in one; borrowed. */
static const json_t *body_of(json_t *json, const char *parent)
{
    const json_t *program;
    size_t i;

    json_array_foreach(json_object_get(json, "programs"), i, program)
    {
        const char *name =
            json_string_value(json_object_get(program, "parent"));

        if (name && strcmp(name, parent) == 0)
            return program;
    }
    return NULL;
}

TEST(bodies_are_programs)
{
    json_t *json;
    const json_t *first, *second;
    const char *name;

    nested_loops();
    json = report_json(profile);
    ck_assert_uint_eq(json_array_size(json_object_get(json, "programs")), 3);
    ck_assert(json_is_null(json_object_get(report_program(json, 0), "parent")));
    first = body_of(json, "training");
    ck_assert_ptr_nonnull(first);
    ck_assert_int_eq(report_number(first, "iterations"), 3);
    name = json_string_value(json_object_get(first, "name"));
    second = body_of(json, name);
    ck_assert_ptr_nonnull(second);
    ck_assert_int_eq(report_number(second, "iterations"), 5);
    /* Two runs. */
    ck_assert_int_eq(report_number(json_object_get(first, "measured"), "runs"),
                     2 * 3);
    ck_assert_int_eq(report_number(json_object_get(second, "measured"), "runs"),
                     2 * 3 * 5);
    json_decref(json);
}

static double flops(const json_t *program)
{
    return json_real_value(
        json_object_get(json_object_get(program, "cycles"), "flops"));
}

/* The operations of all iterations are those of the step, and of the run. */
TEST(a_loop_is_its_iterations)
{
    json_t *json;
    const json_t *first, *second;
    double product = 2.0 * 16 * 32 * 32, one;

    nested_loops();
    json = report_json(profile);
    first = body_of(json, "training");
    second = body_of(json, json_string_value(json_object_get(first, "name")));
    one = flops(second);
    ck_assert(one >= product);
    ck_assert_double_eq(flops(report_program(json, 0)), 3 * flops(first));
    /* The body of the outer loop may copy its carried values. */
    ck_assert_double_ge(flops(first), 5 * one);
    ck_assert_double_le(flops(first), 5 * one + 16 * 32);
    json_decref(json);
}

TEST(loops_are_printed_read_and_compared)
{
    ipu_profile *again = NULL;
    ipu_profile_change change = {.size = sizeof change};
    char *text = NULL, *other = NULL;
    const char *path;

    nested_loops();
    text = report_text(profile, IPU_PROFILE_TEXT);
    report_is_narrow(text);
    ck_assert_ptr_nonnull(strstr(text, "loop at step"));
    free(text);
    text = report_text(profile, IPU_PROFILE_JSON);
    path = device_file(text);
    MUST(ipu_profile_read(path, &again));
    unlink(path);
    other = report_text(again, IPU_PROFILE_JSON);
    ck_assert_str_eq(text, other);
    MUST(ipu_profile_compare(profile, again, &change));
    ck_assert_int_eq(change.programs, 3);
    ck_assert_double_eq(change.cycles_percent, 0);
    free(text);
    free(other);
    ipu_profile_free(again);
}

/* Builds two steps whose cycles are estimates. */
static int estimated(ipu_graph *g, void *context, int32_t ninputs,
                     const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    (void)context, (void)ninputs, (void)noutputs;
    out[0] = ipu_softmax(g, ipu_softmax(g, in[0]));
    return 0;
}

/* Cycles have more digits than a column, and the line that made one tensor is
 * not known. */
TEST(a_long_loop_keeps_its_columns)
{
    ipu_tensor in = (ipu_input)(d.graph, "x", IPU_FLOAT32, 2, SHAPE(16, 32));
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, SHAPE(32, 32));
    ipu_tensor out;
    char *text;

    MUST(ipu_repeat(d.graph, (int64_t)1 << 45, inner, &w, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    profile = report_profile(&d, "loops");
    MUST(ipu_profile_print(profile, IPU_PROFILE_TEXT, &text));
    report_is_narrow(text);
    free(text);
}

TEST(a_loop_of_estimates_is_one)
{
    static const char sentence[] = "The cycles of ";
    static float x[16 * 32], y[16 * 32];
    ipu_tensor in = device_floats(&d, "x", 2, SHAPE(16, 32)), out;
    char *text;
    int sentences = 0, count, steps;

    MUST(ipu_repeat(d.graph, 3, estimated, NULL, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    device_load(&d);
    device_connect(&d, "x", x, 16 * 32);
    device_connect(&d, "y", y, 16 * 32);
    profile = report_profile(&d, "loops");
    text = report_text(profile, IPU_PROFILE_TEXT);
    for (const char *at = text; (at = strstr(at, sentence)); sentences++) {
        at += sizeof sentence - 1;
        ck_assert_int_eq(sscanf(at, "%d of %d steps", &count, &steps), 2);
        ck_assert_int_le(count, steps);
    }
    ck_assert_int_eq(sentences, 2);
    free(text);
}

/* A block that a loop uses does not count as waiting while the loop runs. */
TEST(a_loop_uses_what_its_body_uses)
{
    json_t *json;
    const json_t *entry, *use;
    size_t i, k;
    int found = 0;

    nested_loops();
    json = report_json(profile);
    json_array_foreach(json_object_get(report_program(json, 0), "blocks"), i,
                       entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "tensor")), "w"))
            continue;
        json_array_foreach(json_object_get(entry, "uses"), k, use)
        {
            const json_t *step = json_array_get(
                json_object_get(report_program(json, 0), "steps"),
                (size_t)json_integer_value(use));

            found += strcmp(json_string_value(json_object_get(step, "op")),
                            "loop") == 0;
        }
    }
    ck_assert_int_eq(found, 1);
    json_decref(json);
}

static int ones(void *context, void *const *buffers)
{
    (void)context;
    for (int i = 0; i < 64; i++)
        ((float *)buffers[0])[i] = 1;
    return 1;
}

/* Queues are streams of the host, and all of the host's cycles are reported. */
TEST(queues_are_streams)
{
    const ipu_feed_tensor tensor = {
        .name = "x", .dtype = IPU_FLOAT32, .ndim = 1, .shape = {64}};
    const ipu_infeed_options options = {.size = sizeof options,
                                        .prefetch_depth = 3,
                                        .replicas = 1,
                                        .name = "digits",
                                        .ntensors = 1,
                                        .tensors = &tensor,
                                        .source = {.next = ones}};
    ipu_infeed *infeed = NULL;
    ipu_tensor x;
    json_t *json;
    const json_t *streams, *stream;
    int64_t cycles = 0;
    size_t i;
    int found = 0;

    MUST(ipu_infeed_new(&options, &infeed));
    MUST(ipu_infeed_dequeue(d.graph, infeed, &x));
    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, x)));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    profile = report_profile(&d, "queues");
    json = report_json(profile);
    streams = json_object_get(report_program(json, 0), "streams");
    json_array_foreach(streams, i, stream)
    {
        cycles += report_number(stream, "cycles");
        if (strcmp(json_string_value(json_object_get(stream, "name")),
                   "digits") != 0)
            continue;
        found++;
        ck_assert_int_eq(report_number(stream, "bytes"), 64 * 4);
        ck_assert_str_eq(json_string_value(json_object_get(stream, "kind")),
                         "input");
    }
    ck_assert_int_eq(found, 1);
    ck_assert_int_eq(
        cycles,
        report_number(json_object_get(report_program(json, 0), "cycles"),
                      "host"));
    json_decref(json);
    ipu_executable_free(d.executable);
    d.executable = NULL;
    ipu_graph_free(d.graph);
    d.graph = NULL;
    ipu_infeed_free(infeed);
}

TEST_MAIN("device_report_loops", .set_up = set_up, .tear_down = tear_down)
