/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests assignments to variables. Ops read the old value, the host reads the
 * new one, either all assignments of a run happen or none, and new values are
 * computed in the memory of the old.
 */
#include "suite.h"

#include "one_device.h"

static ipu_tensor a, b;

static void set_up(void)
{
    d = device_new();
    a = ipu_variable(d.graph, "a", IPU_FLOAT32, 1, SHAPE(3));
    b = ipu_variable(d.graph, "b", IPU_FLOAT32, 1, SHAPE(3));
}

static void write_both(float va, float vb)
{
    const float values[2][3] = {{va, va + 1, va + 2}, {vb, vb + 1, vb + 2}};

    MUST(ipu_engine_write(d.engine, "a", values[0], sizeof values[0]));
    MUST(ipu_engine_write(d.engine, "b", values[1], sizeof values[1]));
}

static float first_of(const char *name)
{
    float values[3];

    MUST(ipu_engine_read(d.engine, name, values, sizeof values));
    ck_assert_float_eq(values[2], values[1] + (values[1] - values[0]));
    return values[0];
}

TEST(a_variable_becomes_its_value)
{
    MUST(ipu_assign(d.graph, a, ipu_scale(d.graph, a, 2, 0)));
    device_load(&d);
    write_both(5, 7);
    for (int i = 0; i < 3; i++)
        MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(first_of("a"), 40);
    ck_assert_float_eq(first_of("b"), 7);
}

TEST(variables_become_each_other)
{
    MUST(ipu_assign(d.graph, a, b));
    MUST(
        ipu_assign(d.graph, b,
                   ipu_reshape(d.graph, ipu_reshape(d.graph, a, 2, SHAPE(1, 3)),
                               1, SHAPE(3))));
    device_load(&d);
    write_both(5, 7);
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(first_of("a"), 7);
    ck_assert_float_eq(first_of("b"), 5);
}

/* b gets the old value of a, although a could be computed in place before. */
TEST(ops_see_what_was)
{
    ipu_tensor doubled = ipu_scale(d.graph, a, 2, 0);

    MUST(ipu_assign(d.graph, a, doubled));
    MUST(ipu_assign(d.graph, b, ipu_multiply(d.graph, doubled, a)));
    device_load(&d);
    MUST(ipu_engine_write(d.engine, "a", (float[]){3, 3, 3}, 12));
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(first_of("a"), 6);
    ck_assert_float_eq(first_of("b"), 18);
}

static int see(void *context, const char *name, void *data, int64_t count)
{
    (void)name;
    ck_assert_int_eq(count, 3);
    memcpy(context, data, sizeof(float));
    return 0;
}

TEST(the_host_sees_what_was_and_what_has_become)
{
    float before = 0, after[3], view[3];

    MUST(ipu_assign(d.graph, a, ipu_scale(d.graph, a, 1, 1)));
    MUST(ipu_host_call(d.graph, "before", a, see, &before));
    MUST(ipu_output(d.graph, "after", a));
    /* A reshape is an op, so it reads the value from before the assignment. */
    MUST(ipu_output(d.graph, "view", ipu_reshape(d.graph, a, 2, SHAPE(3, 1))));
    device_load(&d);
    write_both(5, 7);
    MUST(ipu_engine_connect(d.engine, "after", after, sizeof after));
    MUST(ipu_engine_connect(d.engine, "view", view, sizeof view));
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(before, 5);
    ck_assert_float_eq(after[0], 6);
    ck_assert_float_eq(view[0], 5);
    ck_assert_float_eq(view[2], 7);
}

static int refuse(void *context, const char *name, void *data, int64_t count)
{
    (void)name, (void)data, (void)count;
    return *(int *)context;
}

/* The label is looked at for no output, only for what b becomes. */
LOOP_TEST(all_or_nothing, 0, 2)
{
    ipu_tensor logits = ipu_reshape(d.graph, b, 2, SHAPE(1, 3)), loss;
    ipu_tensor label = ipu_input(d.graph, "label", IPU_INT32, 1, SHAPE(1));
    int32_t which = _i ? 1 : 3;
    int status = _i ? -5 : 0;

    loss = ipu_softmax_cross_entropy(d.graph, logits, label);
    MUST(ipu_assign(d.graph, a, ipu_scale(d.graph, a, 2, 0)));
    MUST(ipu_assign(d.graph, b, ipu_add(d.graph, b, loss)));
    MUST(ipu_host_call(d.graph, "call", ipu_scale(d.graph, a, 3, 0), refuse,
                       &status));
    device_load(&d);
    write_both(5, 7);
    MUST(ipu_engine_connect(d.engine, "label", &which, sizeof which));
    MUST_FAIL(ipu_engine_run(d.engine), _i ? IPU_ERR_CALLBACK : IPU_ERR_DATA,
              _i ? "returned -5"
                 : "softmax_cross_entropy: row 0 of label is label 3, not one "
                   "of the 3 classes");
    ck_assert_float_eq(first_of("a"), 5);
    ck_assert_float_eq(first_of("b"), 7);
    which = 0;
    status = 0;
    MUST(ipu_engine_run(d.engine));
    ck_assert_float_eq(first_of("a"), 10);
}

/* Momentum: the velocity is updated, and the weights by the velocity. */
TEST(new_values_take_the_place_of_the_old)
{
    const int64_t shape[] = {1000, 1000};
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_FLOAT32, 2, shape);
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 2, shape);
    ipu_tensor one = ipu_fill(d.graph, IPU_FLOAT32, 0, NULL, 1);
    ipu_tensor velocity = ipu_add(d.graph, ipu_scale(d.graph, v, 0.5, 0), one);
    ipu_memory_info info = {.size = sizeof info};

    MUST(ipu_assign(d.graph, v, velocity));
    MUST(ipu_assign(d.graph, w, ipu_subtract(d.graph, w, velocity)));
    device_load(&d);
    MUST(ipu_executable_memory(d.executable, &info));
    ck_assert_int_lt(info.planned_bytes, 3 * 4000000 + 10000);
    for (int i = 0; i < 2; i++)
        MUST(ipu_engine_run(d.engine));
    {
        static float values[1000000];

        MUST(ipu_engine_read(d.engine, "w", values, sizeof values));
        ck_assert_float_eq(values[0], -2.5f);
        ck_assert_float_eq(values[999999], -2.5f);
    }
}

TEST(a_counter_counts)
{
    int32_t count = -1;

    ipu_counter(d.graph, "step");
    device_load(&d);
    for (int i = 0; i < 3; i++) {
        MUST(ipu_engine_read(d.engine, "step", &count, sizeof count));
        ck_assert_int_eq(count, i);
        MUST(ipu_engine_run(d.engine));
    }
}

TEST(the_program_shows_assignments)
{
    MUST(ipu_assign(d.graph, a, ipu_scale(d.graph, a, 2, 0)));
    device_load(&d);
    ck_assert_ptr_nonnull(strstr(device_program(&d), "assign a (scale:0)"));
}

LOOP_TEST(assignments_that_cannot_be_are_refused, 0, 6)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3));
    ipu_tensor wide = device_floats(&d, "wide", 1, SHAPE(4));
    ipu_tensor ints = ipu_input(d.graph, "i", IPU_INT32, 1, SHAPE(3));
    const struct {
        ipu_tensor variable, value;
        int status;
        const char *words;
    } bad[] = {
        {x, a, IPU_ERR_ARGUMENT, "assign: x is not a variable"},
        {a, wide, IPU_ERR_SHAPE,
         "assign: a is float32 [3] and wide is float32 [4]: they must be the "
         "same"},
        {a, ints, IPU_ERR_SHAPE, "i is int32 [3]"},
        {b, x, IPU_ERR_STATE, "assign: b already becomes x"},
        {{-1}, x, IPU_ERR_ARGUMENT, "assign: the variable: the tensor"},
        {a, {-1}, IPU_ERR_ARGUMENT, "assign: the value of a: the tensor"},
    };
    ipu_executable *executable = NULL;

    MUST(ipu_assign(d.graph, b, x));
    MUST_FAIL(ipu_assign(d.graph, bad[_i].variable, bad[_i].value),
              bad[_i].status, bad[_i].words);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), bad[_i].status,
              bad[_i].words);
    MUST_FAIL(ipu_assign(NULL, a, b), IPU_ERR_ARGUMENT, "the graph is NULL");
}

TEST_MAIN("device_assign", .set_up = set_up, .tear_down = one_device_free)
