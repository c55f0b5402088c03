/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests sets of instructions. Every op and its derivative must give the same
 * bits with each set that this processor can run: for ordinary numbers, NaN,
 * infinities, zeros of both signs, subnormal and huge ones, and for a count
 * that is no multiple of any register. The values of IPU_KERNELS are tested,
 * too.
 */
#include "suite.h"

#include "device.h"
#include "ops/wide.h"

#include <math.h>
#include <stdbool.h>

/* The shape of x and z is [2, 6, 6, 37]. */
enum { IMAGES = 2, SIDE = 6, CHANNELS = 37 };
enum { N = IMAGES * SIDE * SIDE * CHANNELS };

static struct device d;

static void set_up(void)
{
    d = device_new();
}

static void tear_down(void)
{
    device_free(&d);
    unsetenv("IPU_KERNELS");
}

/* -------------------------------------------------------------- the ops */

typedef ipu_tensor build(ipu_graph *graph, ipu_tensor x, ipu_tensor z);

#define ONE(name)                                                              \
    static ipu_tensor op_##name(ipu_graph *graph, ipu_tensor x, ipu_tensor z)  \
    {                                                                          \
        (void)z;                                                               \
        return ipu_##name(graph, x);                                           \
    }
#define TWO(name)                                                              \
    static ipu_tensor op_##name(ipu_graph *graph, ipu_tensor x, ipu_tensor z)  \
    {                                                                          \
        return ipu_##name(graph, x, z);                                        \
    }
#define MORE(name, ...)                                                        \
    static ipu_tensor op_##name(ipu_graph *graph, ipu_tensor x, ipu_tensor z)  \
    {                                                                          \
        (void)z;                                                               \
        return ipu_##name(graph, x, __VA_ARGS__);                              \
    }

#define AXES(...) ((const int32_t[]){__VA_ARGS__})

ONE(negate)
ONE(abs)
ONE(square)
ONE(exp)
ONE(log)
ONE(sqrt)
ONE(rsqrt)
ONE(tanh)
ONE(sigmoid)
ONE(gelu)
ONE(gelu_tanh)
ONE(silu)
ONE(relu)
ONE(floor)
ONE(ceil)
ONE(round)
ONE(sign)
ONE(sin)
ONE(cos)
ONE(log1p)
ONE(expm1)
ONE(erf)
ONE(atan)
ONE(softplus)
ONE(softmax)
ONE(log_softmax)
TWO(add)
TWO(subtract)
TWO(multiply)
TWO(divide)
TWO(maximum)
TWO(minimum)
TWO(power)
TWO(mean_squared_error)
TWO(mean_absolute_error)
TWO(sigmoid_cross_entropy)
MORE(scale, 1.7, -0.3)
MORE(leaky_relu, 0.1)
MORE(elu, 1.5)
MORE(clip, -0.75, 1.25)
MORE(sum, 1, AXES(3), 0)
MORE(mean, 2, AXES(1, 2), 1)
MORE(max, 1, AXES(3), 0)
MORE(min, 1, AXES(3), 0)
MORE(max_pool2d, 2)
MORE(avg_pool2d, 2)
MORE(reduce_sum, 0.5)
MORE(cumulative_sum, 3, 0, 0)

/* The op works element by element, as the axis that is left is the last. */
static ipu_tensor op_min_by_element(ipu_graph *graph, ipu_tensor x,
                                    ipu_tensor z)
{
    (void)z;
    return ipu_min(graph, x, 2, AXES(1, 2), 0);
}

static ipu_tensor windows(ipu_graph *graph, ipu_tensor x, int largest)
{
    ipu_pool_options options = {
        .size = sizeof options, .window = {3, 2}, .stride = {1, 2}};

    return largest ? ipu_max_pool2d_with(graph, x, &options)
                   : ipu_avg_pool2d_with(graph, x, &options);
}

static ipu_tensor op_max_windows(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    (void)z;
    return windows(graph, x, 1);
}

static ipu_tensor op_avg_windows(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    (void)z;
    return windows(graph, x, 0);
}

static ipu_tensor op_max_pool_of_3(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    (void)z;
    return ipu_max_pool2d(graph, x, 3);
}

/* Rows of z are used as scale and as offset. */
static ipu_tensor row(ipu_graph *graph, ipu_tensor z, int64_t number)
{
    z = ipu_reshape(graph, z, 2, SHAPE(-1, CHANNELS));
    z = ipu_slice(graph, z, SHAPE(number, 0), SHAPE(1, CHANNELS));
    return ipu_reshape(graph, z, 1, SHAPE(CHANNELS));
}

static ipu_tensor op_layer_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    return ipu_layer_norm(graph, x, row(graph, z, 1), row(graph, z, 2), 1e-5);
}

static ipu_tensor op_group_norm(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    return ipu_group_norm(graph, x, CHANNELS, row(graph, z, 1),
                          row(graph, z, 2), 1e-5);
}

static ipu_tensor op_bias_add(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    return ipu_bias_add(graph, x, row(graph, z, 3));
}

static ipu_tensor op_select(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    return ipu_select(graph, ipu_less(graph, x, z), z, x);
}

static ipu_tensor op_dropout(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    (void)z;
    return ipu_dropout(graph, x, 0.3, 11, ipu_counter(graph, "step"));
}

static ipu_tensor op_random(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    const int64_t shape[] = {IMAGES, SIDE, SIDE, CHANNELS};
    ipu_tensor step = ipu_counter(graph, "step");
    ipu_tensor y = ipu_random_uniform(graph, 4, shape, -1, 2, 5, step);

    (void)z;
    y = ipu_add(graph, y, ipu_random_normal(graph, 4, shape, 0, 1, 6, step));
    return ipu_multiply(graph, x, y);
}

static ipu_tensor op_attention(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    (void)z;
    x = ipu_reshape(graph, x, 3, SHAPE(IMAGES, SIDE * CHANNELS / 3, 18));
    return ipu_attention(graph, x, 2, 1);
}

static ipu_tensor narrow(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype)
{
    return ipu_cast(graph, ipu_cast(graph, x, dtype), IPU_FLOAT32);
}

static ipu_tensor op_float16(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    (void)z;
    return narrow(graph, x, IPU_FLOAT16);
}

static ipu_tensor op_bfloat16(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    (void)z;
    return narrow(graph, x, IPU_BFLOAT16);
}

static ipu_tensor stochastic(ipu_graph *graph, ipu_tensor x, ipu_dtype dtype)
{
    x = ipu_stochastic_cast(graph, x, dtype, 3, ipu_counter(graph, "step"));
    return ipu_cast(graph, x, IPU_FLOAT32);
}

static ipu_tensor op_float16_stochastic(ipu_graph *graph, ipu_tensor x,
                                        ipu_tensor z)
{
    (void)z;
    return stochastic(graph, x, IPU_FLOAT16);
}

static ipu_tensor op_bfloat16_stochastic(ipu_graph *graph, ipu_tensor x,
                                         ipu_tensor z)
{
    (void)z;
    return stochastic(graph, x, IPU_BFLOAT16);
}

static ipu_tensor op_adam(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    ipu_tensor v = ipu_variable(graph, "v", IPU_FLOAT32, 4,
                                SHAPE(IMAGES, SIDE, SIDE, CHANNELS));
    ipu_tensor rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.01);
    const ipu_adam_options options = {
        .size = sizeof options, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};

    MUST(ipu_adam(graph, v, ipu_add(graph, x, z), rate,
                  ipu_counter(graph, "step"), &options));
    return ipu_multiply(graph, x, v);
}

static ipu_tensor op_rms(ipu_graph *graph, ipu_tensor x, ipu_tensor z)
{
    ipu_tensor v = ipu_variable(graph, "v", IPU_FLOAT32, 4,
                                SHAPE(IMAGES, SIDE, SIDE, CHANNELS));
    ipu_tensor u = ipu_variable(graph, "u", IPU_FLOAT32, 4,
                                SHAPE(IMAGES, SIDE, SIDE, CHANNELS));
    ipu_tensor rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.01);

    MUST(ipu_rmsprop(graph, v, ipu_add(graph, x, z), rate, NULL));
    MUST(ipu_adadelta(graph, u, ipu_add(graph, x, z), rate, NULL));
    return ipu_multiply(graph, ipu_multiply(graph, x, v), u);
}

#define ROW(name)                                                              \
    {                                                                          \
#name, op_##name                                                       \
    }
static const struct {
    const char *name;
    build *build;
} ops[] = {
    ROW(negate),
    ROW(abs),
    ROW(square),
    ROW(exp),
    ROW(log),
    ROW(sqrt),
    ROW(rsqrt),
    ROW(tanh),
    ROW(sigmoid),
    ROW(gelu),
    ROW(gelu_tanh),
    ROW(silu),
    ROW(relu),
    ROW(floor),
    ROW(ceil),
    ROW(round),
    ROW(sign),
    ROW(sin),
    ROW(cos),
    ROW(log1p),
    ROW(expm1),
    ROW(erf),
    ROW(atan),
    ROW(softplus),
    ROW(softmax),
    ROW(log_softmax),
    ROW(add),
    ROW(subtract),
    ROW(multiply),
    ROW(divide),
    ROW(maximum),
    ROW(minimum),
    ROW(power),
    ROW(mean_squared_error),
    ROW(mean_absolute_error),
    ROW(sigmoid_cross_entropy),
    ROW(scale),
    ROW(leaky_relu),
    ROW(elu),
    ROW(clip),
    ROW(sum),
    ROW(mean),
    ROW(max),
    ROW(min),
    ROW(max_pool2d),
    ROW(avg_pool2d),
    ROW(reduce_sum),
    ROW(cumulative_sum),
    ROW(max_windows),
    ROW(avg_windows),
    ROW(max_pool_of_3),
    ROW(layer_norm),
    ROW(group_norm),
    ROW(bias_add),
    ROW(select),
    ROW(dropout),
    ROW(random),
    ROW(attention),
    ROW(float16),
    ROW(bfloat16),
    ROW(float16_stochastic),
    ROW(bfloat16_stochastic),
    ROW(min_by_element),
    ROW(adam),
    ROW(rms),
};
enum { OPS = sizeof ops / sizeof *ops };

/* ------------------------------------------------------------- comparing */

/* Fills x and z with values from small to large, of both signs. With `special`,
 * both ends of a register and its middle get values that arithmetic treats
 * otherwise. */
static void fill(float *x, float *z, bool special)
{
    static const float values[] = {
        NAN,    INFINITY, -INFINITY, 0, -0.0f,    1e-40f, -1e-40f, 3e38f,
        -3e38f, 88.7f,    -103.9f,   1, 65519.9f, 6e-8f,  -1,      1.5e-45f};

    for (int i = 0; i < N; i++) {
        x[i] = (float)((i * 7919) % 1999 - 999) / 250;
        z[i] = (float)((i * 104729) % 997) / 499;
        if (special && i % 5 == 0)
            x[i] = values[(i / 5) % 16];
        if (special && i % 7 == 0)
            z[i] = values[(i / 7) % 16];
    }
}

/* The compiler may choose which of several NaNs comes out. */
static bool same(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static void compare(const char *set, const char *what, const float *wanted,
                    const float *got, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(same(wanted[i], got[i]),
                      "%s of %s: element %d is %a, and %a of generic", what,
                      set, (int)i, (double)got[i], (double)wanted[i]);
}

/* The engine runs twice: the second run reads the variables that the first has
 * changed. */
static void run_with(enum ipu__kernels kernels, float *y, float *dx)
{
    memset(y, 0, N * sizeof *y);
    memset(dx, 0, N * sizeof *dx);
    MUST(ipu__kernels_choose(ipu__kernels_name(kernels)));
    MUST(ipu_engine_run(d.engine));
    MUST(ipu_engine_run(d.engine));
}

/* Every set gets a fresh engine, so that variables begin alike. */
static void compute(enum ipu__kernels kernels, float *in, int64_t count,
                    float *y, float *dx)
{
    MUST(ipu_engine_new(d.executable, &d.engine));
    device_connect(&d, "x", in, N);
    if (ipu_engine_connect(d.engine, "z", in + N, N * sizeof *in) < 0)
        ck_assert_ptr_nonnull(strstr(ipu_last_error(), "no input"));
    device_connect(&d, "y", y, count);
    device_connect(&d, "dx", dx, N);
    run_with(kernels, y, dx);
    ipu_engine_free(d.engine);
    d.engine = NULL;
}

LOOP_TEST(every_set_gives_the_same_bits, 0, 2 * OPS)
{
    static float in[2 * N], wanted[2][N], got[2][N];
    const int64_t shape[] = {IMAGES, SIDE, SIDE, CHANNELS};
    ipu_tensor x = device_floats(&d, "x", 4, shape), dx;
    ipu_tensor z = device_floats(&d, "z", 4, shape);
    ipu_tensor y = ops[_i / 2].build(d.graph, x, z);
    int64_t count = device_count(&d, y);

    fill(in, in + N, _i % 2 != 0);
    MUST(ipu_output(d.graph, "y", y));
    y = ipu_reduce_sum(d.graph, ipu_square(d.graph, y), 1);
    MUST(ipu_gradients(d.graph, y, 1, &x, &dx));
    MUST(ipu_output(d.graph, "dx", dx));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    compute(IPU__KERNELS_GENERIC, in, count, wanted[0], wanted[1]);
    for (int k = IPU__KERNELS_AVX2; k < IPU__KERNELS_END; k++) {
        enum ipu__kernels kernels = (enum ipu__kernels)k;

        if (!ipu__kernels_run_here(kernels))
            continue;
        compute(kernels, in, count, got[0], got[1]);
        compare(ipu__kernels_name(kernels), ops[_i / 2].name, wanted[0], got[0],
                count);
        compare(ipu__kernels_name(kernels), "a derivative", wanted[1], got[1],
                N);
    }
}

/* ------------------------------------------------------------- the choice */

TEST(the_best_set_is_used_unless_another_is_named)
{
    int best = IPU__KERNELS_GENERIC;

    for (int k = IPU__KERNELS_GENERIC; k < IPU__KERNELS_END; k++)
        if (ipu__kernels_run_here((enum ipu__kernels)k))
            best = k;
    ck_assert_int_eq(ipu__kernels(), best);
    MUST(ipu__kernels_choose("generic"));
    ck_assert_int_eq(ipu__kernels(), IPU__KERNELS_GENERIC);
    MUST(ipu__kernels_choose("auto"));
    ck_assert_int_eq(ipu__kernels(), best);
    ck_assert_int_eq(setenv("IPU_KERNELS", "generic", 1), 0);
    ck_assert_int_eq(ipu__kernels_find(), IPU__KERNELS_GENERIC);
    ck_assert_int_eq(setenv("IPU_KERNELS", "", 1), 0);
    ck_assert_int_eq(ipu__kernels_find(), best);
}

TEST(a_set_that_there_is_not_is_refused)
{
    ipu_tensor x = device_floats(&d, "x", 1, SHAPE(3));
    const char *words = "IPU_KERNELS='sse9' is no set of instructions: give "
                        "one of auto, generic";

    MUST(ipu_output(d.graph, "y", ipu_exp(d.graph, x)));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    ck_assert_int_eq(setenv("IPU_KERNELS", "sse9", 1), 0);
    MUST_FAIL(ipu_engine_new(d.executable, &d.engine), IPU_ERR_ARGUMENT, words);
    ck_assert_ptr_null(d.engine);
    ipu_executable_free(d.executable);
    d.executable = NULL;
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable), IPU_ERR_ARGUMENT,
              words);
}

TEST_MAIN("device_kernels", .set_up = set_up, .tear_down = tear_down)
