/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first failure of building a graph stays, names its place in the program,
 * and is one line.
 */
#include "suite.h"

#include <pthread.h>
#include <stdio.h>

#include "one_device.h"

static const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};

static ipu_tensor floats(const char *name, int32_t ndim, const int64_t *shape)
{
    return device_floats(&d, name, ndim, shape);
}

TEST(the_first_failure_is_the_one_reported)
{
    ipu_tensor x = floats("x", 2, SHAPE(2, 3));
    ipu_tensor bad = ipu_matmul(d.graph, x, x);

    ck_assert_int_lt(ipu_relu(d.graph, bad).id, 0);
    ck_assert_int_lt(ipu_conv2d(d.graph, bad, bad, NULL).id, 0);
    ck_assert_int_lt(ipu_reshape(d.graph, bad, 1, SHAPE(-1)).id, 0);
    ck_assert_int_lt(ipu_max_pool2d(d.graph, bad, 2).id, 0);
    ck_assert_int_lt(ipu_add(d.graph, x, x).id, 0); /* nothing is built on */
    ck_assert_int_lt(floats("y", 9, nine).id, 0);
    MUST_FAIL(ipu_output(d.graph, "out", bad), IPU_ERR_SHAPE, "matmul");
    MUST_FAIL(ipu_host_call(d.graph, "call", bad, device_no_call, NULL),
              IPU_ERR_SHAPE, "matmul");
    MUST_FAIL(ipu_gradients(d.graph, bad, 1, &x, &x), IPU_ERR_SHAPE, "matmul");
    device_refused(&d, bad, IPU_ERR_SHAPE, "matmul");
}

TEST(failures_name_the_line_of_the_program)
{
    ipu_tensor x = floats("x", 2, SHAPE(2, 3));
    char words[128];
    int line = __LINE__ + 2;

    ipu_matmul(d.graph, x, x);
    snprintf(words, sizeof words, "%s:%d: matmul: x is float32 [2,3]", __FILE__,
             line);
    device_refused(&d, (ipu_tensor){-1}, IPU_ERR_SHAPE, words);
}

TEST(who_wraps_ops_says_where_they_are_asked_for)
{
    ipu_graph *g = d.graph;
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(2, 3));
    ipu_executable *executable = NULL;

    ck_assert_ptr_eq(ipu_at(g, "model.py", 77), g);
    (ipu_matmul)(g, x, x);
    MUST_FAIL(ipu_compile(g, NULL, &executable), IPU_ERR_SHAPE,
              "model.py:77: matmul");
    ck_assert_ptr_null(ipu_at(NULL, "model.py", 77));
}

/* The derivative comes from the line of the op that has none. */
TEST(derivatives_come_from_the_lines_of_their_ops)
{
    ipu_graph *g = d.graph;
    ipu_tensor x = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(2, 3)), y, dx, ddx;
    ipu_executable *executable = NULL;

    ipu_at(g, "layer.c", 5);
    y = (ipu_tanh)(g, x);
    MUST(ipu_gradients(g, ipu_reduce_sum(g, y, 1), 1, &x, &dx));
    ipu_gradients(g, ipu_reduce_sum(g, dx, 1), 1, &x, &ddx);
    MUST_FAIL(ipu_compile(g, NULL, &executable), IPU_ERR_ARGUMENT,
              "layer.c:5: tanh_grad");
}

TEST(an_invalid_tensor_is_a_failure_by_itself)
{
    device_refused(&d, ipu_relu(d.graph, (ipu_tensor){-1}), IPU_ERR_ARGUMENT,
                   "relu: input 0");
}

TEST(tensors_of_other_graphs_are_noticed)
{
    struct device other = device_new();
    ipu_tensor theirs = device_floats(&other, "x", 1, SHAPE(2));

    floats("x", 1, SHAPE(2));
    device_refused(&d, ipu_relu(d.graph, theirs), IPU_ERR_ARGUMENT,
                   "another graph");
    device_free(&other);
}

TEST(a_null_graph_is_refused_everywhere)
{
    ipu_tensor x = {0};

    ck_assert_int_lt(ipu_input(NULL, "x", 0, 0, NULL).id, 0);
    ck_assert_int_lt(ipu_variable(NULL, "x", 0, 0, NULL).id, 0);
    ck_assert_int_lt(ipu_conv2d(NULL, x, x, NULL).id, 0);
    ck_assert_int_lt(ipu_max_pool2d(NULL, x, 2).id, 0);
    ck_assert_int_lt(ipu_matmul(NULL, x, x).id, 0);
    ck_assert_int_lt(ipu_bias_add(NULL, x, x).id, 0);
    ck_assert_int_lt(ipu_relu(NULL, x).id, 0);
    ck_assert_int_lt(ipu_reshape(NULL, x, 0, NULL).id, 0);
    ck_assert_int_lt(ipu_softmax_cross_entropy(NULL, x, x).id, 0);
    ck_assert_int_lt(ipu_reduce_sum(NULL, x, 1).id, 0);
    ck_assert_int_lt(ipu_add(NULL, x, x).id, 0);
    ck_assert_int_lt(ipu_multiply(NULL, x, x).id, 0);
    MUST_FAIL(ipu_gradients(NULL, x, 0, NULL, NULL), IPU_ERR_ARGUMENT,
              "graph is NULL");
    MUST_FAIL(ipu_output(NULL, "x", x), IPU_ERR_ARGUMENT, "graph is NULL");
    MUST_FAIL(ipu_host_call(NULL, "x", x, device_no_call, NULL),
              IPU_ERR_ARGUMENT, "graph is NULL");
    MUST_FAIL(ipu_compile(NULL, NULL, NULL), IPU_ERR_ARGUMENT, "graph is NULL");
    MUST_FAIL(ipu_graph_new(NULL), IPU_ERR_ARGUMENT,
              "the place for a graph is NULL");
    ipu_graph_free(NULL);
}

TEST(a_message_is_one_line)
{
    device_refused(&d, floats("two\nlines\x1b[2J", 9, nine), IPU_ERR_SHAPE,
                   "two?lines?[");
}

/* Longer than any message can be: cut, not overrun. */
TEST(a_long_name_is_cut)
{
    char name[5000];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    floats(name, 1, SHAPE(3));
    MUST_FAIL(ipu_output(d.graph, name, (ipu_tensor){-1}), IPU_ERR_NAME,
              "nnnnn");
    ck_assert_uint_lt(strlen(ipu_last_error()), 2000);
}

static void *fail_elsewhere(void *message)
{
    ipu_graph_new(NULL);
    strcpy(message, ipu_last_error());
    return NULL;
}

TEST(the_last_error_is_the_threads_own)
{
    char theirs[2000] = "";
    pthread_t thread;

    MUST_FAIL(ipu_set_threads(0), IPU_ERR_ARGUMENT, "0 threads");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, theirs), 0);
    pthread_join(thread, NULL);
    ck_assert_ptr_nonnull(strstr(theirs, "NULL"));
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "0 threads"));
}

TEST(every_status_has_a_text)
{
    for (int i = IPU_OK; i >= IPU_ERR_DATA; i--)
        for (int k = IPU_OK; k > i; k--)
            ck_assert_str_ne(ipu_strerror(i), ipu_strerror(k));
    ck_assert_str_eq(ipu_strerror(-1000), "unknown status");
    ck_assert_str_eq(ipu_strerror(5), ipu_strerror(IPU_OK));
}

/* Tensors are added until a handle cannot hold the number: 600 MB of them. */
TEST(there_can_be_too_many_tensors)
{
    ipu_tensor x = floats("x", 0, NULL);
    char words[128];
    int line = __LINE__ + 3;

    while (x.id >= 0)
        x = ipu_negate(d.graph, x);
    snprintf(words, sizeof words, "%s:%d: a graph has at most 1048576 tensors",
             __FILE__, line);
    device_refused(&d, x, IPU_ERR_ARGUMENT, words);
}

TEST_MAIN("device_failures", .set_up = one_device_new,
          .tear_down = one_device_free, .seconds = 60)
