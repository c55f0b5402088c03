/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions of float16 and bfloat16 equal the compiler's own. Ops on halves
 * give the result in float32 of the widened numbers, rounded once.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "one_device.h"

enum { ALL = 65536, SIDE = 6, COUNT = SIDE * SIDE };

static ipu_dtype half_of(int i)
{
    return i ? IPU_BFLOAT16 : IPU_FLOAT16;
}

static float widened(ipu_dtype dtype, uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    _Float16 half;
    float x;

    memcpy(&half, &bits, sizeof half);
    memcpy(&x, &wide, sizeof x);
    return dtype == IPU_FLOAT16 ? (float)half : x;
}

static uint16_t narrowed(ipu_dtype dtype, float x)
{
    _Float16 half = (_Float16)x;
    uint16_t bits;
    uint32_t wide;

    if (dtype == IPU_FLOAT16) {
        memcpy(&bits, &half, sizeof bits);
        return bits;
    }
    memcpy(&wide, &x, sizeof wide);
    bits = (uint16_t)(wide >> 16);
    if ((wide & 0xffff) > 0x8000 || ((wide & 0xffff) == 0x8000 && bits % 2))
        bits++;
    return bits;
}

static bool is_nan(ipu_dtype dtype, uint16_t bits)
{
    return isnan(widened(dtype, bits));
}

static void connect_halves(const char *name, uint16_t *data, int64_t count)
{
    MUST(ipu_engine_connect(d.engine, name, data, (size_t)count * 2));
}

LOOP_TEST(every_half_is_widened, 0, 2)
{
    static uint16_t bits[ALL];
    static float got[ALL];
    ipu_dtype dtype = half_of(_i);
    ipu_tensor x = ipu_input(d.graph, "x", dtype, 1, SHAPE(ALL));

    for (int i = 0; i < ALL; i++)
        bits[i] = (uint16_t)i;
    MUST(ipu_output(d.graph, "y", ipu_cast(d.graph, x, IPU_FLOAT32)));
    device_load(&d);
    connect_halves("x", bits, ALL);
    device_connect(&d, "y", got, ALL);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < ALL; i++) {
        float wanted = widened(dtype, (uint16_t)i);

        if (isnan(wanted)
                ? !isnan(got[i])
                : got[i] != wanted || signbit(got[i]) != signbit(wanted))
            ck_abort_msg("%04x is %g, not %g", i, (double)got[i],
                         (double)wanted);
    }
}

/* Tries every half, its neighbourhood, and the middle between it and the next
 * half. */
LOOP_TEST(floats_are_rounded_to_the_nearest, 0, 8)
{
    static float x[ALL];
    static uint16_t got[ALL];
    ipu_dtype dtype = half_of(_i % 2);
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(ALL));

    for (int i = 0; i < ALL; i++) {
        float low = widened(dtype, (uint16_t)i);
        float high = widened(dtype, (uint16_t)(i + 1));

        x[i] = _i / 2 == 0   ? low
               : _i / 2 == 1 ? low / 2 + high / 2
               : _i / 2 == 2 ? nextafterf(low / 2 + high / 2, INFINITY)
                             : nextafterf(low / 2 + high / 2, -INFINITY);
    }
    MUST(ipu_output(d.graph, "y", ipu_cast(d.graph, in, dtype)));
    device_load(&d);
    device_connect(&d, "x", x, ALL);
    connect_halves("y", got, ALL);
    MUST(ipu_engine_run(d.engine));
    for (int i = 0; i < ALL; i++) {
        uint16_t wanted = narrowed(dtype, x[i]);

        if (isnan(x[i]) ? !is_nan(dtype, got[i]) : got[i] != wanted)
            ck_abort_msg("%.9g is %04x, not %04x", (double)x[i], got[i],
                         wanted);
    }
}

LOOP_TEST(casts_between_all_dtypes, 0, 16)
{
    const ipu_dtype dtypes[] = {IPU_FLOAT32, IPU_INT32, IPU_FLOAT16,
                                IPU_BFLOAT16};
    const float values[4] = {0, -3, 100, 7};
    ipu_tensor x = ipu_constant(d.graph, IPU_FLOAT32, 1, SHAPE(4), values);
    float got[4];

    x = ipu_cast(d.graph, x, dtypes[_i / 4]);
    x = ipu_cast(d.graph, x, dtypes[_i % 4]);
    MUST(ipu_output(d.graph, "y", ipu_cast(d.graph, x, IPU_FLOAT32)));
    device_load(&d);
    device_connect(&d, "y", got, 4);
    MUST(ipu_engine_run(d.engine));
    ck_assert_mem_eq(got, values, sizeof got);
}

/* ----------------------------------------------------------------- every op */

static ipu_tensor row_of(ipu_graph *g, ipu_tensor x)
{
    return ipu_reshape(g, ipu_slice(g, x, SHAPE(1, 0), SHAPE(1, SIDE)), 1,
                       SHAPE(SIDE));
}

static ipu_tensor image_of(ipu_graph *g, ipu_tensor x)
{
    return ipu_reshape(g, x, 4, SHAPE(1, SIDE, SIDE, 1));
}

static ipu_tensor kernel_of(ipu_graph *g, ipu_tensor x)
{
    return ipu_reshape(g, ipu_slice(g, x, SHAPE(0, 0), SHAPE(2, 3)), 4,
                       SHAPE(2, 3, 1, 1));
}

static ipu_tensor batch_norm_of(ipu_graph *g, ipu_tensor x, ipu_tensor row)
{
    ipu_tensor mean = ipu_variable(g, "mean", IPU_FLOAT32, 1, SHAPE(SIDE));
    ipu_tensor variance =
        ipu_variable(g, "variance", IPU_FLOAT32, 1, SHAPE(SIDE));

    return ipu_batch_norm(g, x, row, row, mean, variance, 0.9, 1e-3);
}

enum { OPS = 34 };

/* Builds an op of x and w, [SIDE, SIDE] each. */
static ipu_tensor make(ipu_graph *g, int op, ipu_tensor x, ipu_tensor w)
{
    const int32_t axis = 1;
    const int32_t chosen[4] = {5, 0, 0, 2};
    ipu_tensor at = ipu_constant(g, IPU_INT32, 1, SHAPE(4), chosen);
    ipu_tensor step = ipu_fill(g, IPU_INT32, 0, NULL, 3);

    switch (op) {
    case 0: return ipu_add(g, x, w);
    case 1: return ipu_subtract(g, x, row_of(g, w));
    case 2: return ipu_multiply(g, x, w);
    case 3: return ipu_divide(g, x, w);
    case 4: return ipu_maximum(g, x, w);
    case 5: return ipu_minimum(g, x, w);
    case 6: return ipu_select(g, ipu_less(g, x, w), x, w);
    case 7: return ipu_exp(g, x);
    case 8: return ipu_sqrt(g, ipu_abs(g, x));
    case 9: return ipu_tanh(g, x);
    case 10: return ipu_gelu(g, x);
    case 11: return ipu_scale(g, x, 1.5, 2);
    case 12: return ipu_sum(g, x, 1, &axis, 1);
    case 13: return ipu_max(g, x, 1, &axis, 0);
    case 14: return ipu_mean(g, x, 1, &axis, 0);
    case 15: return ipu_matmul(g, x, w);
    case 16: return ipu_transpose(g, x, NULL);
    case 17: return ipu_concat(g, 2, (const ipu_tensor[]){x, w}, 1);
    case 18: return ipu_pad(g, x, SHAPE(1, 0), SHAPE(0, 2), 3);
    case 19: return ipu_softmax(g, x);
    case 20: return ipu_log_softmax(g, x);
    case 21: return ipu_dropout(g, x, 0.5, 3, step);
    case 22: return ipu_gather(g, x, at, 1);
    case 23: return ipu_conv2d(g, image_of(g, x), kernel_of(g, w), NULL);
    case 24: return ipu_max_pool2d(g, image_of(g, x), 2);
    case 25: return ipu_avg_pool2d(g, image_of(g, x), 3);
    case 26: return ipu_bias_add(g, x, row_of(g, w));
    case 27: return ipu_relu(g, x);
    case 28: return ipu_reduce_sum(g, x, 0.5);
    case 29: return ipu_broadcast(g, row_of(g, x), 2, SHAPE(4, SIDE));
    case 30: return ipu_layer_norm(g, x, row_of(g, w), row_of(g, x), 1e-3);
    case 31: return ipu_group_norm(g, x, 2, row_of(g, w), row_of(g, x), 1e-3);
    case 32: return batch_norm_of(g, x, row_of(g, w));
    default: return ipu_square(g, ipu_negate(g, x));
    }
}

/* The result's count; bits of halves, or floats, and NaN into both inputs. */
static int64_t compute(int op, ipu_dtype dtype, void *x, void *w, void *y,
                       size_t element)
{
    ipu_tensor result;
    ipu_dtype got;
    int64_t count;

    d = device_new();
    result =
        make(d.graph, op, ipu_input(d.graph, "x", dtype, 2, SHAPE(SIDE, SIDE)),
             ipu_input(d.graph, "w", dtype, 2, SHAPE(SIDE, SIDE)));
    MUST(ipu_tensor_info(d.graph, result, &got, NULL, NULL));
    ck_assert_int_eq(got, dtype);
    count = device_count(&d, result);
    ck_assert_int_le(count, 4 * COUNT);
    MUST(ipu_output(d.graph, "y", result));
    device_load(&d);
    MUST(ipu_engine_connect(d.engine, "x", x, COUNT * element));
    if (ipu_engine_connect(d.engine, "w", w, COUNT * element) < 0)
        ck_abort_msg("%s", ipu_last_error());
    MUST(ipu_engine_connect(d.engine, "y", y, (size_t)count * element));
    MUST(ipu_engine_run(d.engine));
    device_free(&d);
    d = device_new();
    return count;
}

LOOP_TEST(ops_compute_in_float32_and_round_once, 0, 2 * OPS)
{
    ipu_dtype dtype = half_of(_i % 2);
    uint16_t x[COUNT], w[COUNT], y[4 * COUNT];
    float wide[3][4 * COUNT];
    int64_t count;

    device_fill(wide[0], COUNT, 1);
    device_fill(wide[1], COUNT, 2);
    wide[0][COUNT - 1] = INFINITY;
    wide[0][COUNT - 2] = NAN;
    for (int i = 0; i < COUNT; i++) {
        x[i] = narrowed(dtype, wide[0][i]);
        w[i] = narrowed(dtype, wide[1][i]);
        wide[0][i] = widened(dtype, x[i]);
        wide[1][i] = widened(dtype, w[i]);
    }
    device_free(&d);
    count = compute(_i / 2, dtype, x, w, y, 2);
    device_free(&d);
    ck_assert_int_eq(compute(_i / 2, IPU_FLOAT32, wide[0], wide[1], wide[2], 4),
                     count);
    for (int64_t i = 0; i < count; i++) {
        uint16_t wanted = narrowed(dtype, wide[2][i]);

        /* Ops that are composed round in between. */
        if (_i / 2 == 8 && !is_nan(dtype, wanted) && abs(y[i] - wanted) <= 1)
            continue;
        if (isnan(wide[2][i]) ? !is_nan(dtype, y[i]) : y[i] != wanted)
            ck_abort_msg("op %d, element %d is %g, not %g", _i / 2, (int)i,
                         (double)widened(dtype, y[i]), (double)wide[2][i]);
    }
}

/* -------------------------------------------------------------- derivatives */

/* A small network; its gradients by x and w, as floats. */
static void differentiate(ipu_dtype dtype, float (*gradients)[COUNT])
{
    const float *values = gradients[0];
    ipu_tensor x =
        ipu_constant(d.graph, IPU_FLOAT32, 2, SHAPE(SIDE, SIDE), values);
    ipu_tensor w =
        ipu_constant(d.graph, IPU_FLOAT32, 2, SHAPE(SIDE, SIDE), gradients[1]);
    ipu_tensor y, by[2], loss;

    x = ipu_cast(d.graph, x, dtype);
    w = ipu_cast(d.graph, w, dtype);
    y = ipu_layer_norm(d.graph, ipu_matmul(d.graph, x, w), row_of(d.graph, w),
                       row_of(d.graph, x), 1e-3);
    y = ipu_maximum(d.graph, ipu_tanh(d.graph, y), ipu_abs(d.graph, x));
    loss = ipu_cast(d.graph, y, IPU_FLOAT32);
    loss = ipu_reduce_sum(d.graph, ipu_multiply(d.graph, loss, loss), 1);
    MUST(ipu_gradients(d.graph, loss, 2, (const ipu_tensor[]){x, w}, by));
    MUST(ipu_output(d.graph, "dx", ipu_cast(d.graph, by[0], IPU_FLOAT32)));
    MUST(ipu_output(d.graph, "dw", ipu_cast(d.graph, by[1], IPU_FLOAT32)));
    device_load(&d);
    device_connect(&d, "dx", gradients[2], COUNT);
    device_connect(&d, "dw", gradients[3], COUNT);
    MUST(ipu_engine_run(d.engine));
}

LOOP_TEST(derivatives_come_through_halves, 0, 2)
{
    static float wide[4][COUNT], narrow[4][COUNT];
    double tolerance = _i ? 0.15 : 0.02;

    device_fill(wide[0], COUNT, 5);
    device_fill(wide[1], COUNT, 6);
    memcpy(narrow, wide, sizeof wide);
    differentiate(half_of(_i), narrow);
    device_free(&d);
    d = device_new();
    differentiate(IPU_FLOAT32, wide);
    for (int k = 2; k < 4; k++)
        for (int i = 0; i < COUNT; i++)
            if (!(fabs((double)wide[k][i] - (double)narrow[k][i]) <=
                  tolerance * (1 + fabs((double)wide[k][i]))))
                ck_abort_msg("derivative %d of %d is %g, not %g", i, k - 2,
                             (double)narrow[k][i], (double)wide[k][i]);
}

LOOP_TEST(dtypes_do_not_mix, 0, 5)
{
    ipu_tensor x = ipu_input(d.graph, "x", IPU_FLOAT16, 1, SHAPE(3));
    ipu_tensor w = ipu_input(d.graph, "w", IPU_BFLOAT16, 1, SHAPE(3));
    ipu_tensor f = device_floats(&d, "f", 1, SHAPE(3)), gradient;
    ipu_executable *executable = NULL;
    const char *words;

    switch (_i) {
    case 0:
        ipu_add(d.graph, x, f);
        words = "add: x is float16 [3] and f is float32 [3]: the dtypes must "
                "be the same: ipu_cast one of them";
        break;
    case 1:
        ipu_layer_norm(d.graph, x, w, w, 1e-3);
        words =
            "layer_norm: x is float16 [3] and w is bfloat16 [3]: the dtypes";
        break;
    case 2:
        ipu_concat(d.graph, 2, (const ipu_tensor[]){x, w}, 0);
        words = "concat: x is float16 [3] and w is bfloat16 [3]: they must be";
        break;
    case 3:
        ipu_matmul(d.graph, x, x);
        words = "matmul: x is float16 [3], it must be float32 [m, k]";
        break;
    default:
        ipu_gradients(d.graph, ipu_reduce_sum(d.graph, x, 1), 1, &x, &gradient);
        words = "is float16 [], not a float32 scalar: reduce it with "
                "ipu_reduce_sum, or ipu_cast it";
    }
    MUST_FAIL(ipu_compile(d.graph, NULL, &executable), IPU_ERR_SHAPE, words);
}

TEST_MAIN("device_halves", .set_up = one_device_new,
          .tear_down = one_device_free)
