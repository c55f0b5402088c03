/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests building graphs: accepted arguments, refusals and their words, and that
 * a builder may check once, at the end.
 */
#include "suite.h"

#include <stdio.h>

#include "one_device.h"

/* Returns the shape of a tensor as text. */
static const char *shape_of(ipu_tensor tensor)
{
    static char text[256];
    int64_t shape[IPU_MAX_DIMS];
    int used = 0, ndim;

    ndim = ipu_tensor_info(d.graph, tensor, NULL, shape, NULL);
    MUST(ndim);
    text[0] = '\0';
    for (int i = 0; i < ndim; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%lld",
                         i ? " " : "", (long long)shape[i]);
    return text;
}

static ipu_tensor floats(const char *name, int32_t ndim, const int64_t *shape)
{
    return device_floats(&d, name, ndim, shape);
}

static ipu_tensor ints(const char *name, int64_t count)
{
    return ipu_input(d.graph, name, IPU_INT32, 1, &count);
}

/* --------------------------------------------------- inputs and variables */

TEST(info_tells_what_a_tensor_is)
{
    ipu_tensor w = ipu_variable(d.graph, "w", IPU_INT32, 2, SHAPE(3, 5));
    int64_t shape[IPU_MAX_DIMS] = {0};
    const char *name = NULL;
    ipu_dtype dtype = -1;

    ck_assert_int_eq(ipu_tensor_info(d.graph, w, &dtype, shape, &name), 2);
    ck_assert_int_eq(dtype, IPU_INT32);
    ck_assert_int_eq(shape[0], 3);
    ck_assert_int_eq(shape[1], 5);
    ck_assert_str_eq(name, "w");
    ck_assert_int_eq(ipu_tensor_info(d.graph, w, NULL, NULL, NULL), 2);
    MUST_FAIL(ipu_tensor_info(NULL, w, NULL, NULL, NULL), IPU_ERR_ARGUMENT,
              "graph is NULL");
    MUST_FAIL(ipu_tensor_info(d.graph, (ipu_tensor){-1}, NULL, NULL, NULL),
              IPU_ERR_ARGUMENT, "the tensor is invalid: what made it failed");
}

TEST(scalars_and_empty_tensors_are_tensors)
{
    ck_assert_str_eq(shape_of(floats("scalar", 0, NULL)), "");
    ck_assert_str_eq(shape_of(floats("empty", 2, SHAPE(0, 7))), "0 7");
    ck_assert_str_eq(shape_of(floats("most", 8, SHAPE(1, 1, 1, 1, 1, 1, 1, 2))),
                     "1 1 1 1 1 1 1 2");
}

static const int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
static const int64_t negative[2] = {4, -3};
static const int64_t huge[4] = {INT64_MAX, 2, 0, 0};
static const int64_t huge_but_empty[4] = {0, INT64_MAX, INT64_MAX, 1};

static const struct {
    const char *name;
    ipu_dtype dtype;
    int32_t ndim;
    const int64_t *shape;
    int status;
    const char *words;
} bad_tensors[] = {
    {"x", IPU_FLOAT32, 9, nine, IPU_ERR_SHAPE, "'x': 9 dimensions"},
    {"x", IPU_FLOAT32, -1, nine, IPU_ERR_SHAPE, "-1 dimensions"},
    {"x", IPU_FLOAT32, 2, negative, IPU_ERR_SHAPE, "dimension 1 is -3"},
    {"x", IPU_FLOAT32, 2, huge, IPU_ERR_SHAPE, "more bytes than memory"},
    {"x", IPU_FLOAT32, 4, huge_but_empty, IPU_ERR_SHAPE, "more bytes"},
    {"x", IPU_FLOAT32, 2, NULL, IPU_ERR_ARGUMENT, "shape is NULL"},
    {"x", IPU_NUM_DTYPES, 1, nine, IPU_ERR_ARGUMENT, "dtype 4"},
    {"x", -1, 1, nine, IPU_ERR_ARGUMENT, "dtype -1"},
    {NULL, IPU_FLOAT32, 1, nine, IPU_ERR_NAME, "no name"},
    {"", IPU_FLOAT32, 1, nine, IPU_ERR_NAME, "no name"},
    {"taken", IPU_FLOAT32, 1, nine, IPU_ERR_NAME, "'taken'"},
    {"out", IPU_FLOAT32, 1, nine, IPU_ERR_NAME, "'out'"},
};
enum { BAD_TENSORS = sizeof bad_tensors / sizeof *bad_tensors };

LOOP_TEST(tensors_that_cannot_be_are_refused, 0, 2 * BAD_TENSORS)
{
    MUST(ipu_output(d.graph, "out", floats("taken", 1, SHAPE(2))));
    if (_i % 2)
        device_refused(&d,
                       ipu_input(d.graph, bad_tensors[_i / 2].name,
                                 bad_tensors[_i / 2].dtype,
                                 bad_tensors[_i / 2].ndim,
                                 bad_tensors[_i / 2].shape),
                       bad_tensors[_i / 2].status, bad_tensors[_i / 2].words);
    else
        device_refused(&d,
                       ipu_variable(d.graph, bad_tensors[_i / 2].name,
                                    bad_tensors[_i / 2].dtype,
                                    bad_tensors[_i / 2].ndim,
                                    bad_tensors[_i / 2].shape),
                       bad_tensors[_i / 2].status, bad_tensors[_i / 2].words);
}

LOOP_TEST(streams_have_names_of_their_own, 0, 6)
{
    ipu_tensor x = floats("x", 1, SHAPE(2));

    MUST(ipu_output(d.graph, "y", x));
    switch (_i) {
    case 0:
        MUST_FAIL(ipu_output(d.graph, "y", x), IPU_ERR_NAME,
                  "output 'y': an output or host call has that name");
        break;
    case 1:
        MUST_FAIL(ipu_output(d.graph, "x", x), IPU_ERR_NAME,
                  "output 'x': an input or variable has that name");
        break;
    case 2:
        MUST_FAIL(ipu_host_call(d.graph, "y", x, device_no_call, NULL),
                  IPU_ERR_NAME,
                  "host call 'y': an output or host call has that name");
        break;
    case 3:
        MUST_FAIL(ipu_output(d.graph, NULL, x), IPU_ERR_NAME,
                  "output has no name");
        break;
    case 4:
        MUST_FAIL(ipu_host_call(d.graph, "z", x, NULL, NULL), IPU_ERR_ARGUMENT,
                  "'z': the function is NULL");
        break;
    default:
        MUST_FAIL(ipu_output(d.graph, "z", (ipu_tensor){-1}), IPU_ERR_ARGUMENT,
                  "output 'z': the tensor is invalid: what made it failed");
        break;
    }
}

/* ---------------------------------------------------------- shapes of ops */

TEST(ops_tell_the_shape_of_their_output)
{
    ipu_conv_options same = {.size = sizeof same, .stride = {2, 3}, .same = 1};
    ipu_conv_options valid = {.size = sizeof valid, .stride = {2, 3}};
    ipu_tensor x = floats("x", 4, SHAPE(5, 9, 8, 3));
    ipu_tensor k = floats("k", 4, SHAPE(3, 2, 3, 7));
    ipu_tensor m = floats("m", 2, SHAPE(6, 4));

    ck_assert_str_eq(shape_of(ipu_conv2d(d.graph, x, k, NULL)), "5 7 7 7");
    ck_assert_str_eq(shape_of(ipu_conv2d(d.graph, x, k, &same)), "5 5 3 7");
    ck_assert_str_eq(shape_of(ipu_conv2d(d.graph, x, k, &valid)), "5 4 3 7");
    ck_assert_str_eq(shape_of(ipu_max_pool2d(d.graph, x, 2)), "5 4 4 3");
    ck_assert_str_eq(
        shape_of(ipu_matmul(d.graph, m, floats("n", 2, SHAPE(4, 2)))), "6 2");
    ck_assert_str_eq(
        shape_of(ipu_bias_add(d.graph, x, floats("b", 1, SHAPE(3)))),
        "5 9 8 3");
    ck_assert_str_eq(shape_of(ipu_relu(d.graph, m)), "6 4");
    ck_assert_str_eq(shape_of(ipu_reduce_sum(d.graph, m, 1)), "");
    ck_assert_str_eq(
        shape_of(ipu_softmax_cross_entropy(d.graph, m, ints("l", 6))), "6");
}

TEST(reshape_completes_one_extent)
{
    ipu_tensor x = floats("x", 2, SHAPE(6, 4));

    ck_assert_str_eq(shape_of(ipu_reshape(d.graph, x, 3, SHAPE(2, -1, 3))),
                     "2 4 3");
    ck_assert_str_eq(shape_of(ipu_reshape(d.graph, x, 1, SHAPE(-1))), "24");
    ck_assert_str_eq(shape_of(ipu_reshape(d.graph, x, 2, SHAPE(24, -1))),
                     "24 1");
    x = floats("one", 1, SHAPE(1));
    ck_assert_str_eq(shape_of(ipu_reshape(d.graph, x, 0, NULL)), "");
}

/* Each breaks one op in one way. */

static ipu_tensor x4(void)
{
    return floats("x4", 4, SHAPE(2, 6, 5, 3));
}

static ipu_tensor k4(int64_t h, int64_t w, int64_t in, int64_t out)
{
    return floats("k4", 4, SHAPE(h, w, in, out));
}

static ipu_tensor matrix(const char *name, int64_t rows, int64_t columns)
{
    return floats(name, 2, SHAPE(rows, columns));
}

static ipu_tensor conv_channels(void)
{
    return ipu_conv2d(d.graph, x4(), k4(3, 3, 2, 4), NULL);
}

static ipu_tensor conv_ndim(void)
{
    return ipu_conv2d(d.graph, matrix("x4", 2, 3), k4(3, 3, 3, 4), NULL);
}

static ipu_tensor conv_kernel_ndim(void)
{
    return ipu_conv2d(d.graph, x4(), matrix("k4", 3, 3), NULL);
}

static ipu_tensor conv_too_large(void)
{
    return ipu_conv2d(d.graph, x4(), k4(3, 6, 3, 4), NULL);
}

static ipu_tensor conv_no_height(void)
{
    return ipu_conv2d(d.graph, x4(), k4(0, 3, 3, 4), NULL);
}

static ipu_tensor conv_stride(void)
{
    ipu_conv_options options = {.size = sizeof options, .stride = {1, 0}};

    return ipu_conv2d(d.graph, x4(), k4(3, 3, 3, 4), &options);
}

static ipu_tensor conv_options_size(void)
{
    ipu_conv_options options = {.stride = {1, 1}};

    return ipu_conv2d(d.graph, x4(), k4(3, 3, 3, 4), &options);
}

static ipu_tensor conv_wide(void)
{
    ipu_tensor k = k4(1, 1, INT64_C(1) << 31, 1);

    return ipu_conv2d(
        d.graph, floats("x4", 4, SHAPE(1, 1, 1, INT64_C(1) << 31)), k, NULL);
}

static ipu_tensor conv_output_too_large(void)
{
    return ipu_conv2d(d.graph, floats("x4", 4, SHAPE(1, 1 << 20, 1 << 20, 1)),
                      k4(1, 1, 1, 1 << 30), NULL);
}

static ipu_tensor pool_ndim(void)
{
    return ipu_max_pool2d(d.graph, matrix("x4", 4, 4), 2);
}

static ipu_tensor pool_size(void)
{
    return ipu_max_pool2d(d.graph, x4(), 0);
}

static ipu_tensor pool_too_large(void)
{
    return ipu_max_pool2d(d.graph, x4(), 6);
}

static ipu_tensor matmul_inner(void)
{
    return ipu_matmul(d.graph, matrix("a", 2, 3), matrix("b", 4, 5));
}

static ipu_tensor matmul_ndim(void)
{
    return ipu_matmul(d.graph, x4(), matrix("b", 4, 5));
}

static ipu_tensor matmul_dtype(void)
{
    return ipu_matmul(d.graph, matrix("a", 4, 4),
                      ipu_input(d.graph, "i", IPU_INT32, 2, SHAPE(4, 4)));
}

static ipu_tensor matmul_rows(void)
{
    return ipu_matmul(d.graph, matrix("a", INT64_C(1) << 31, 1),
                      matrix("b", 1, 1));
}

static ipu_tensor matmul_output_too_large(void)
{
    return ipu_matmul(d.graph, matrix("a", INT32_MAX, 0),
                      matrix("b", 0, INT32_MAX));
}

static ipu_tensor bias_extent(void)
{
    return ipu_bias_add(d.graph, x4(), floats("b", 1, SHAPE(5)));
}

static ipu_tensor bias_ndim(void)
{
    return ipu_bias_add(d.graph, x4(), matrix("b", 1, 3));
}

static ipu_tensor bias_of_scalar(void)
{
    return ipu_bias_add(d.graph, floats("x", 0, NULL),
                        floats("b", 1, SHAPE(1)));
}

static ipu_tensor relu_dtype(void)
{
    return ipu_relu(d.graph, ints("i", 3));
}

static ipu_tensor reshape_count(void)
{
    return ipu_reshape(d.graph, matrix("a", 3, 5), 2, SHAPE(4, 4));
}

static ipu_tensor reshape_remainder(void)
{
    return ipu_reshape(d.graph, matrix("a", 3, 5), 2, SHAPE(4, -1));
}

static ipu_tensor reshape_two_unknown(void)
{
    return ipu_reshape(d.graph, matrix("a", 3, 5), 2, SHAPE(-1, -1));
}

static ipu_tensor reshape_negative(void)
{
    return ipu_reshape(d.graph, matrix("a", 3, 5), 2, SHAPE(-3, -5));
}

static ipu_tensor reshape_zero(void)
{
    return ipu_reshape(d.graph, matrix("a", 0, 5), 2, SHAPE(0, -1));
}

static ipu_tensor reshape_overflow(void)
{
    return ipu_reshape(d.graph, matrix("a", 3, 5), 3,
                       SHAPE(INT64_MAX, INT64_MAX, -1));
}

static ipu_tensor reshape_null(void)
{
    return ipu_reshape(d.graph, matrix("a", 3, 5), 2, NULL);
}

static ipu_tensor reshape_ndim(void)
{
    return ipu_reshape(d.graph, matrix("a", 3, 5), 9, nine);
}

static ipu_tensor softmax_rows(void)
{
    return ipu_softmax_cross_entropy(d.graph, matrix("logits", 3, 5),
                                     ints("labels", 4));
}

static ipu_tensor softmax_label_dtype(void)
{
    return ipu_softmax_cross_entropy(d.graph, matrix("logits", 3, 5),
                                     floats("labels", 1, SHAPE(3)));
}

static ipu_tensor softmax_ndim(void)
{
    return ipu_softmax_cross_entropy(d.graph, floats("logits", 1, SHAPE(3)),
                                     ints("labels", 3));
}

static ipu_tensor softmax_no_classes(void)
{
    return ipu_softmax_cross_entropy(d.graph, matrix("logits", 3, 0),
                                     ints("labels", 3));
}

static ipu_tensor sum_dtype(void)
{
    return ipu_reduce_sum(d.graph, ints("i", 3), 1);
}

static ipu_tensor add_shapes(void)
{
    return ipu_add(d.graph, matrix("a", 3, 5), matrix("b", 5, 3));
}

static ipu_tensor multiply_ndim(void)
{
    return ipu_multiply(d.graph, matrix("a", 3, 2), floats("b", 1, SHAPE(3)));
}

static ipu_tensor multiply_dtype(void)
{
    return ipu_multiply(d.graph, ints("a", 3), floats("b", 1, SHAPE(3)));
}

/* Words that the message must have: op, tensors, shapes, or what to do. */
static const struct {
    ipu_tensor (*make)(void);
    int status;
    const char *words;
} bad_ops[] = {
    {conv_channels, IPU_ERR_SHAPE,
     "conv2d: x4 is float32 [2,6,5,3] and k4 is float32 [3,3,2,4]"},
    {conv_ndim, IPU_ERR_SHAPE, "x4 is float32 [2,3], it must be"},
    {conv_kernel_ndim, IPU_ERR_SHAPE, "k4 is float32 [3,3], it must be"},
    {conv_too_large, IPU_ERR_SHAPE, "larger than the image"},
    {conv_no_height, IPU_ERR_SHAPE, "no height"},
    {conv_stride, IPU_ERR_ARGUMENT, "stride 0"},
    {conv_options_size, IPU_ERR_ARGUMENT, "size is 0"},
    {conv_wide, IPU_ERR_SHAPE, "at most 2147483647"},
    {conv_output_too_large, IPU_ERR_SHAPE, "conv2d: dimensions up to"},
    {pool_ndim, IPU_ERR_SHAPE, "max_pool2d: x4 is float32 [4,4]"},
    {pool_size, IPU_ERR_ARGUMENT, "0 x 0"},
    {pool_too_large, IPU_ERR_SHAPE, "smaller than a window of 6 x 6"},
    {matmul_inner, IPU_ERR_SHAPE,
     "matmul: a is float32 [2,3] and b is float32 [4,5]"},
    {matmul_ndim, IPU_ERR_SHAPE, "x4 is float32 [2,6,5,3]"},
    {matmul_dtype, IPU_ERR_SHAPE, "i is int32 [4,4], it must be float32"},
    {matmul_rows, IPU_ERR_SHAPE, "at most 2147483647"},
    {matmul_output_too_large, IPU_ERR_SHAPE, "matmul: dimensions up to"},
    {bias_extent, IPU_ERR_SHAPE, "bias_add: x4 is float32 [2,6,5,3] and b is"},
    {bias_ndim, IPU_ERR_SHAPE, "b is float32 [1,3], it must be"},
    {bias_of_scalar, IPU_ERR_SHAPE, "a scalar has no last dimension"},
    {relu_dtype, IPU_ERR_SHAPE, "relu: i is int32 [3]"},
    {reshape_count, IPU_ERR_SHAPE, "reshape: a is float32 [3,5]"},
    {reshape_remainder, IPU_ERR_SHAPE, "15 elements do not divide by the 4"},
    {reshape_two_unknown, IPU_ERR_SHAPE, "two extents are -1"},
    {reshape_negative, IPU_ERR_SHAPE, "dimension 0 is -3"},
    {reshape_zero, IPU_ERR_SHAPE, "do not divide by the 0"},
    {reshape_overflow, IPU_ERR_SHAPE, "too large"},
    {reshape_null, IPU_ERR_ARGUMENT, "shape is NULL"},
    {reshape_ndim, IPU_ERR_SHAPE, "9 dimensions"},
    {softmax_rows, IPU_ERR_SHAPE, "logits is float32 [3,5] and labels is"},
    {softmax_label_dtype, IPU_ERR_SHAPE, "labels is float32 [3], it must be"},
    {softmax_ndim, IPU_ERR_SHAPE,
     "labels must have the dimensions of the logits but the last"},
    {softmax_no_classes, IPU_ERR_SHAPE, "there must be a class"},
    {sum_dtype, IPU_ERR_SHAPE, "reduce_sum: i is int32"},
    {add_shapes, IPU_ERR_SHAPE, "add: a is float32 [3,5] and b is"},
    {multiply_ndim, IPU_ERR_SHAPE, "multiply: a is float32 [3,2] and b is"},
    {multiply_dtype, IPU_ERR_SHAPE, "dtypes must be the same"},
};
enum { BAD_OPS = sizeof bad_ops / sizeof *bad_ops };

LOOP_TEST(ops_refuse_what_does_not_fit, 0, BAD_OPS)
{
    device_refused(&d, bad_ops[_i].make(), bad_ops[_i].status,
                   bad_ops[_i].words);
}

TEST(all_tensors_together_fit_into_memory)
{
    const int64_t large = INT64_C(1) << 58;
    ipu_executable *executable = NULL;
    char name[] = "a";

    for (; name[0] <= 'p'; name[0]++)
        ipu_variable(d.graph, name, IPU_FLOAT32, 1, &large);
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), IPU_ERR_MEMORY,
              "more bytes than memory can hold");
}

TEST_MAIN("device_graph", .set_up = one_device_new,
          .tear_down = one_device_free)
