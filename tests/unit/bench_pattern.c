/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results that the benchmark expects of a collective equal a slow
 * computation here: every type and operation, on up to 300 ranks, combined
 * forwards and backwards in the type itself. The benchmark notices wrong ones:
 * one element changed in its last bit, data shifted, a rank left out, NaN.
 */
#include "collectives/half.h"
#include "collectives/pattern.h"

#include "suite.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { COUNT = 257, MOST_RANKS = 300 };

static const int rank_counts[] = {1, 2, 3, 4, 5, 7, 8, 17, 128, MOST_RANKS};
enum { RANK_COUNTS = sizeof rank_counts / sizeof *rank_counts };

/* ------------------------------------------------------------ 16-bit floats */

/* Puts sign, exponent and fraction together by ldexp, as float16 is defined. */
static double half_by_definition(unsigned bits)
{
    int exponent = (int)(bits >> 10 & 31);
    int fraction = (int)(bits & 1023);
    double sign = bits >> 15 ? -1 : 1;

    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25)
                            : ldexp(fraction, -24));
}

TEST(every_half_is_what_its_bits_say)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = half_to_float((uint16_t)bits);
        double want = half_by_definition(bits);

        if (isnan(want)) {
            ck_assert(isnan(value));
            ck_assert(isnan(half_to_float(half_from_float(value))));
            continue;
        }
        ck_assert_msg((double)value == want, "%#x", bits);
        ck_assert_int_eq(half_from_float(value), bits);
    }
}

TEST(every_bfloat16_is_the_upper_half_of_a_float)
{
    for (unsigned bits = 0; bits < 65536; bits++) {
        float value = bfloat16_to_float((uint16_t)bits);
        uint32_t whole;

        memcpy(&whole, &value, sizeof whole);
        ck_assert_uint_eq(whole, (uint32_t)bits << 16);
        if (isnan(value))
            ck_assert(isnan(bfloat16_to_float(bfloat16_from_float(value))));
        else
            ck_assert_int_eq(bfloat16_from_float(value), bits);
    }
}

/* A value between two neighbours is rounded to the nearer one, and one in the
 * middle to the even one. */
TEST(rounding_is_to_nearest_even)
{
    for (unsigned bits = 0; bits < 0x7BFF; bits++) {
        double low = half_by_definition(bits);
        double high = half_by_definition(bits + 1);
        float middle = (float)((low + high) / 2); /* exact */
        unsigned even = bits % 2 ? bits + 1 : bits;

        ck_assert_int_eq(half_from_float(middle), even);
        ck_assert_int_eq(half_from_float(nextafterf(middle, 0)), bits);
        ck_assert_int_eq(half_from_float(nextafterf(middle, INFINITY)),
                         bits + 1);
        ck_assert_int_eq(half_from_float(-middle), even | 0x8000);
    }
    ck_assert_int_eq(half_from_float(65519.0f), 0x7BFF);
    ck_assert_int_eq(half_from_float(65520.0f), 0x7C00);
    ck_assert_int_eq(bfloat16_from_float(1.00390625f), 0x3F80);  /* tie */
    ck_assert_int_eq(bfloat16_from_float(1.01171875f), 0x3F82);  /* tie */
    ck_assert_int_eq(bfloat16_from_float(1.003906369f), 0x3F81); /* above */
}

/* ----------------------------------------------------------- slow reduction */

/* COMBINE computes a op b in the type, with its rounding or wrapping. */
#define COMBINE(type)                                                          \
    do {                                                                       \
        type a, b, c;                                                          \
        memcpy(&a, left, sizeof a);                                            \
        memcpy(&b, right, sizeof b);                                           \
        c = op == HVD_PRODUCT ? (type)(a * b)                                  \
            : op == HVD_MIN   ? (a < b ? a : b)                                \
            : op == HVD_MAX   ? (a > b ? a : b)                                \
                              : (type)(a + b);                                   \
        memcpy(left, &c, sizeof c);                                            \
    } while (0)

static void combine_16(hvd_dtype type, hvd_op op, void *into, const void *from)
{
    uint16_t *l = into;
    const uint16_t *r = from;
    int is_half = type == HVD_FLOAT16;
    float value = is_half ? half_to_float(*l) : bfloat16_to_float(*l);
    float other = is_half ? half_to_float(*r) : bfloat16_to_float(*r);
    void *left = &value, *right = &other;

    COMBINE(float);
    *l = is_half ? half_from_float(value) : bfloat16_from_float(value);
}

static void combine_bool(hvd_op op, uint8_t *left, const uint8_t *right)
{
    if (op == HVD_PRODUCT || op == HVD_MIN)
        *left = *left && *right;
    else
        *left = *left || *right;
}

static void combine(hvd_dtype type, hvd_op op, void *left, const void *right)
{
    switch (type) {
    case HVD_UINT8: COMBINE(uint8_t); break;
    case HVD_INT8: COMBINE(int8_t); break;
    case HVD_UINT16: COMBINE(uint16_t); break;
    case HVD_INT16: COMBINE(int16_t); break;
    case HVD_INT32: COMBINE(int32_t); break;
    case HVD_INT64: COMBINE(int64_t); break;
    case HVD_FLOAT32: COMBINE(float); break;
    case HVD_FLOAT64: COMBINE(double); break;
    case HVD_BOOL: combine_bool(op, left, right); break;
    default: combine_16(type, op, left, right); break;
    }
}

#define DIVIDE(type)                                                           \
    do {                                                                       \
        type a;                                                                \
        memcpy(&a, element, sizeof a);                                         \
        a = (type)(a / (type)n);                                               \
        memcpy(element, &a, sizeof a);                                         \
    } while (0)

static void divide(hvd_dtype type, void *element, int n)
{
    uint16_t *bits = element;

    switch (type) {
    /* These types may not hold n; C divides them as int anyway. */
    case HVD_UINT8:
        *(uint8_t *)element = (uint8_t)(*(uint8_t *)element / n);
        break;
    case HVD_INT8: *(int8_t *)element = (int8_t)(*(int8_t *)element / n); break;
    case HVD_UINT16: DIVIDE(uint16_t); break;
    case HVD_INT16: DIVIDE(int16_t); break;
    case HVD_INT32: DIVIDE(int32_t); break;
    case HVD_INT64: DIVIDE(int64_t); break;
    case HVD_FLOAT32: DIVIDE(float); break;
    case HVD_FLOAT64: DIVIDE(double); break;
    case HVD_FLOAT16:
        *bits = half_from_float(half_to_float(*bits) / (float)n);
        break;
    default:
        *bits = bfloat16_from_float(bfloat16_to_float(*bits) / (float)n);
        break;
    }
}

/* Aligned for every type. */
static _Alignas(8) unsigned char result[COUNT * 8], input[COUNT * 8];

/* Sets result to what the collective must give, combined forwards or
 * backwards. */
static void reduce(const struct pattern *p, int backwards)
{
    size_t size = p->type->bytes;
    int last = p->nranks - 1;

    pattern_fill(p, backwards ? last : 0, result, COUNT);
    for (int k = 1; k < p->nranks; k++) {
        pattern_fill(p, backwards ? last - k : k, input, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            combine(p->type->id, p->op->id, result + i * size,
                    input + i * size);
    }
    for (size_t i = 0; i < COUNT && p->op->id == HVD_AVERAGE; i++)
        divide(p->type->id, result + i * size, p->nranks);
}

static void assert_right(const struct pattern *p)
{
    int64_t nwrong = pattern_check_result(p, result, COUNT);

    ck_assert_msg(nwrong == 0, "%s %s, %d ranks: %d wrong", p->type->name,
                  p->op ? p->op->name : "copy", p->nranks, (int)nwrong);
}

TEST(reductions_are_as_expected_in_any_order)
{
    struct pattern p;

    for (const struct bench_dtype *t = bench_dtypes; t->name; t++)
        for (const struct bench_op *op = bench_ops; op->name; op++)
            for (int n = 0; n < RANK_COUNTS && bench_op_defined(op, t); n++) {
                pattern_init(&p, t, op, rank_counts[n], 0);
                reduce(&p, 0);
                assert_right(&p);
                reduce(&p, 1);
                assert_right(&p);
            }
}

TEST(a_copy_is_the_roots)
{
    struct pattern p;

    for (const struct bench_dtype *t = bench_dtypes; t->name; t++) {
        pattern_init(&p, t, NULL, 5, 3);
        pattern_fill(&p, 3, result, COUNT);
        assert_right(&p);
        ck_assert_int_eq(pattern_check_input(&p, 3, result, COUNT), 0);
        pattern_fill(&p, 2, result, COUNT);
        ck_assert_int_gt(pattern_check_result(&p, result, COUNT), COUNT / 4);
    }
}

/* Three ranks, shares of 4 ints. */
static struct pattern parts(hvd_kind kind, int rank)
{
    struct call call;
    struct pattern p;

    call_init(&call, kind, bench_dtype_find("int32"), bench_op_find("sum"), 1,
              rank, 3, 3 * 4 * 4);
    ck_assert_int_eq(call.share, 4);
    pattern_init_call(&p, &call);
    return p;
}

TEST(gathered_parts_are_in_the_order_of_ranks)
{
    struct pattern p = parts(HVD_ALLGATHER, 2);

    for (int i = 0; i < 12; i++)
        ck_assert_int_eq((int64_t)pattern_result(&p, i),
                         pattern_value(&p, i / 4, i % 4));
}

TEST(exchanged_parts_are_those_for_this_rank)
{
    struct pattern p = parts(HVD_ALLTOALL, 2);

    for (int i = 0; i < 12; i++)
        ck_assert_int_eq((int64_t)pattern_result(&p, i),
                         pattern_value(&p, i / 4, 2 * 4 + i % 4));
}

TEST(a_reduced_part_is_that_of_this_rank)
{
    struct pattern p = parts(HVD_REDUCESCATTER, 1);

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq((int64_t)pattern_result(&p, i),
                         pattern_value(&p, 0, 4 + i) +
                             pattern_value(&p, 1, 4 + i) +
                             pattern_value(&p, 2, 4 + i));
}

/* --------------------------------------------------------------- corruption */

/* Runs a check for every type and operation on three ranks. */
static void for_each(void (*check)(const struct pattern *p))
{
    struct pattern p;

    for (const struct bench_dtype *t = bench_dtypes; t->name; t++)
        for (const struct bench_op *op = bench_ops; op->name; op++) {
            if (!bench_op_defined(op, t))
                continue;
            pattern_init(&p, t, op, 3, 0);
            reduce(&p, 0);
            check(&p);
        }
}

/* An average that is rounded may be off in its last bits. */
static int may_round(const struct pattern *p)
{
    return p->op->id == HVD_AVERAGE && p->type->class == BENCH_FLOATING;
}

static void change_one(const struct pattern *p)
{
    size_t size = p->type->bytes;

    for (size_t i = 0; i < COUNT; i++) {
        /* Little endian: the last bits are in the first byte. */
        unsigned char *least = result + i * size;
        unsigned char bit = may_round(p) ? 8 : 1;

        *least ^= bit;
        ck_assert_msg(pattern_check_result(p, result, COUNT) == 1,
                      "%s %s element %zu", p->type->name, p->op->name, i);
        *least ^= bit;
    }
    assert_right(p);
}

TEST(one_changed_bit_is_noticed)
{
    for_each(change_one);
}

TEST(the_tolerance_of_averages_is_two_epsilons)
{
    const struct bench_dtype *t = bench_dtype_find("float");
    float *values = (float *)result;
    struct pattern p;

    pattern_init(&p, t, bench_op_find("avg"), 3, 0);
    reduce(&p, 0);
    for (int i = 0; i < COUNT; i++)
        values[i] *= 1 + FLT_EPSILON;
    assert_right(&p);
    reduce(&p, 0);
    for (int i = 0; i < COUNT; i++)
        values[i] *= 1 + 8 * FLT_EPSILON;
    ck_assert_int_gt(pattern_check_result(&p, result, COUNT), COUNT * 9 / 10);
}

/* Returns how many of COUNT changed elements must be noticed, at least. */
static int64_t many(const struct pattern *p)
{
    return p->type->class == BENCH_BOOLEAN || p->op->id == HVD_PRODUCT
               ? COUNT / 20
               : COUNT / 4;
}

static void shift(const struct pattern *p)
{
    size_t size = p->type->bytes;
    int64_t nwrong;

    memmove(result, result + size, (COUNT - 1) * size);
    nwrong = pattern_check_result(p, result, COUNT - 1);
    ck_assert_msg(nwrong > many(p), "%s %s: %d", p->type->name, p->op->name,
                  (int)nwrong);
}

TEST(shifted_data_is_noticed)
{
    for_each(shift);
}

static void leave_out(const struct pattern *p)
{
    struct pattern fewer = *p;
    int64_t nwrong;

    fewer.nranks = p->nranks - 1;
    reduce(&fewer, 0);
    nwrong = pattern_check_result(p, result, COUNT);
    ck_assert_msg(nwrong > many(p), "%s %s: %d", p->type->name, p->op->name,
                  (int)nwrong);
}

TEST(a_missing_rank_is_noticed)
{
    for_each(leave_out);
}

TEST(nothing_done_is_noticed)
{
    struct pattern p;

    for (const struct bench_op *op = bench_ops; op->name; op++) {
        pattern_init(&p, bench_dtype_find("double"), op, 2, 0);
        memset(result, 0xff, sizeof result); /* NaN */
        ck_assert_int_eq(pattern_check_result(&p, result, COUNT), COUNT);
    }
}

TEST(a_changed_input_is_noticed)
{
    struct pattern p;

    pattern_init(&p, bench_dtype_find("int32"), bench_op_find("sum"), 2, 0);
    pattern_fill(&p, 1, input, COUNT);
    ck_assert_int_eq(pattern_check_input(&p, 1, input, COUNT), 0);
    ck_assert_int_gt(pattern_check_input(&p, 0, input, COUNT), COUNT / 2);
    input[4 * (COUNT - 1)] ^= 1;
    ck_assert_int_eq(pattern_check_input(&p, 1, input, COUNT), 1);
}

TEST_MAIN("bench_pattern")
