/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions of every dtype and op against another computation: integers in
 * 128 bits, floats in long double, 16-bit floats by the compiler's own type.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "check_main.h"
#include "kernels/half.h"
#include "kernels/kernels.h"

__extension__ typedef __int128 wide;

enum { MOST_SOURCES = 5, MOST = 257 };

static uint64_t state = 88172645463325252u;

static uint64_t random64(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#define INTEGERS(X)                                                            \
    X(HVD_UINT8, uint8_t)                                                      \
    X(HVD_INT8, int8_t)                                                        \
    X(HVD_UINT16, uint16_t)                                                    \
    X(HVD_INT16, int16_t)                                                      \
    X(HVD_INT32, int32_t)                                                      \
    X(HVD_INT64, int64_t)

/* What a sum or product of integers of any size is, cut to the type. */
static wide combine(hvd_op op, wide a, wide b)
{
    switch (op) {
    case HVD_MIN: return a < b ? a : b;
    case HVD_MAX: return a > b ? a : b;
    case HVD_PRODUCT:
        return (wide)((unsigned __int128)a * (unsigned __int128)b);
    default: return a + b;
    }
}

#define INTEGER_CASE(constant, type)                                           \
    static void check_##type(hvd_op op, int nsources, int64_t count,           \
                             int in_place)                                     \
    {                                                                          \
        static type data[MOST_SOURCES][MOST], out[MOST];                       \
        const void *sources[MOST_SOURCES];                                     \
        wide want[MOST];                                                       \
        struct hvd__reduction r = {constant, op, 1, 1, 0};                     \
        for (int s = 0; s < nsources; s++) {                                   \
            sources[s] = data[s];                                              \
            for (int64_t i = 0; i < count; i++)                                \
                data[s][i] = (type)random64(); /* all bits: it wraps */        \
        }                                                                      \
        for (int64_t i = 0; i < count; i++) {                                  \
            want[i] = data[0][i];                                              \
            for (int s = 1; s < nsources; s++)                                 \
                want[i] = combine(op, want[i], data[s][i]);                    \
            if (op == HVD_AVERAGE)                                             \
                want[i] /= nsources;                                           \
        }                                                                      \
        type *to = in_place < nsources ? data[in_place] : out;                 \
        hvd__reduce(&r, to, sources, nsources, count);                         \
        for (int64_t i = 0; i < count; i++)                                    \
            ck_assert_msg(to[i] == (type)want[i], #type " %s: %lld, not %lld", \
                          hvd_op_name(op), (long long)to[i],                   \
                          (long long)(type)want[i]);                           \
    }
#define X INTEGER_CASE
INTEGERS(X)
#undef X

static const hvd_op ops[] = {HVD_AVERAGE, HVD_SUM, HVD_MIN, HVD_MAX,
                             HVD_PRODUCT};
static const int64_t counts[] = {0, 1, 7, 64, MOST};

START_TEST(integers_wrap_and_average_exactly)
{
    for (int o = 0; o < 5; o++)
        for (int n = 1; n <= MOST_SOURCES; n++)
            for (int c = 0; c < 5; c++)
                for (int in_place = 0; in_place <= n; in_place++) {
#define X(constant, type) check_##type(ops[o], n, counts[c], in_place);
                    INTEGERS(X)
#undef X
                }
}
END_TEST

static long double exact(hvd_op op, const double *values, int n)
{
    long double value = (long double)values[0];

    for (int s = 1; s < n; s++)
        switch (op) {
        case HVD_MIN: value = fminl(value, (long double)values[s]); break;
        case HVD_MAX: value = fmaxl(value, (long double)values[s]); break;
        case HVD_PRODUCT: value *= (long double)values[s]; break;
        default: value += (long double)values[s]; break;
        }
    return op == HVD_AVERAGE ? value / n : value;
}

/* Values in [-2, 2] that the type holds exactly, and how far the result may
 * be from the exact one, relative to the largest that can appear. */
static void put(hvd_dtype dtype, void *data, int64_t i, double *value)
{
    float f = (float)((double)(random64() >> 40) * 0x1p-22 - 2);
    uint16_t bits;

    switch (dtype) {
    case HVD_FLOAT64: ((double *)data)[i] = *value = (double)f / 3; return;
    case HVD_FLOAT32: ((float *)data)[i] = f, *value = (double)f; return;
    case HVD_FLOAT16:
        bits = hvd__to_float16(f);
        *value = (double)hvd__from_float16(bits);
        break;
    default:
        bits = hvd__to_bfloat16(f);
        *value = (double)hvd__from_bfloat16(bits);
        break;
    }
    ((uint16_t *)data)[i] = bits;
}

static double get(hvd_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case HVD_FLOAT64: return ((const double *)data)[i];
    case HVD_FLOAT32: return (double)((const float *)data)[i];
    case HVD_FLOAT16:
        return (double)hvd__from_float16(((const uint16_t *)data)[i]);
    default: return (double)hvd__from_bfloat16(((const uint16_t *)data)[i]);
    }
}

/* 16-bit floats are rounded once, at the end: half a unit in the last place
 * of the result. The others once an operation. */
static double allowed(hvd_dtype dtype, int n)
{
    switch (dtype) {
    case HVD_FLOAT64: return n * 0x1p-52;
    case HVD_FLOAT32: return n * 0x1p-23;
    case HVD_FLOAT16: return 0x1p-11 + n * 0x1p-23;
    default: return 0x1p-8 + n * 0x1p-23;
    }
}

static void check_float(hvd_dtype dtype, hvd_op op, int n, int64_t count,
                        double prescale, double postscale)
{
    static double data[MOST_SOURCES][MOST], out[MOST];
    static double values[MOST][MOST_SOURCES];
    const void *sources[MOST_SOURCES];
    struct hvd__reduction r = {dtype, op, prescale, postscale, 0};

    for (int s = 0; s < n; s++) {
        sources[s] = data[s];
        for (int64_t i = 0; i < count; i++) {
            put(dtype, data[s], i, &values[i][s]);
            values[i][s] *= prescale;
        }
    }
    hvd__reduce(&r, out, sources, n, count);
    for (int64_t i = 0; i < count; i++) {
        long double want = exact(op, values[i], n) * (long double)postscale;
        double magnitude = (op == HVD_PRODUCT ? pow(2, n) : 2 * n) *
                           fabs(prescale) * fabs(postscale);
        double got = get(dtype, out, i);

        /* Where large values cancel, what they were counts. */
        double cancelled =
            n * magnitude * (dtype == HVD_FLOAT64 ? 0x1p-52 : 0x1p-23);

        ck_assert_msg(fabs(got - (double)want) <=
                          allowed(dtype, n) * fabs((double)want) + cancelled,
                      "%s %s of %d: %.12g, not %.12g", hvd_dtype_name(dtype),
                      hvd_op_name(op), n, got, (double)want);
    }
}

START_TEST(floats_are_close_to_exact)
{
    static const hvd_dtype dtypes[] = {HVD_FLOAT16, HVD_BFLOAT16, HVD_FLOAT32,
                                       HVD_FLOAT64};

    for (int d = 0; d < 4; d++)
        for (int o = 0; o < 5; o++)
            for (int n = 1; n <= MOST_SOURCES; n++)
                for (int c = 0; c < 5; c++) {
                    check_float(dtypes[d], ops[o], n, counts[c], 1, 1);
                    if (ops[o] == HVD_SUM)
                        check_float(dtypes[d], ops[o], n, counts[c], 0.5, 3);
                }
}
END_TEST

START_TEST(booleans_are_logical)
{
    const uint8_t a[] = {0, 0, 1, 7, 255}, b[] = {0, 2, 0, 1, 128};
    const void *sources[] = {a, b};
    uint8_t out[5];

    for (int o = 1; o < 5; o++) {
        struct hvd__reduction r = {HVD_BOOL, ops[o], 1, 1, 0};
        bool is_or = ops[o] == HVD_SUM || ops[o] == HVD_MAX;

        hvd__reduce(&r, out, sources, 2, 5);
        for (int i = 0; i < 5; i++)
            ck_assert_int_eq(out[i], is_or ? a[i] || b[i] : a[i] && b[i]);
    }
}
END_TEST

START_TEST(a_nan_wins)
{
    const float a[] = {1, NAN, NAN}, b[] = {NAN, 2, NAN};
    const void *sources[] = {a, b};
    float out[3];

    for (int o = 0; o < 5; o++) {
        struct hvd__reduction r = {HVD_FLOAT32, ops[o], 1, 1, 0};

        hvd__reduce(&r, out, sources, 2, 3);
        for (int i = 0; i < 3; i++)
            ck_assert_msg(isnan(out[i]), "%s", hvd_op_name(ops[o]));
    }
}
END_TEST

/* Where an element lies, and how the memory is aligned, changes no bit. */
START_TEST(bits_do_not_depend_on_the_place)
{
    static unsigned char memory[MOST_SOURCES][MOST * 8 + 16],
        out[MOST * 8 + 16];
    static unsigned char first[MOST * 8];

    for (hvd_dtype dtype = 0; dtype < HVD_NUM_DTYPES; dtype++) {
        size_t bytes = hvd__dtype_bytes(dtype) * MOST;

        for (size_t offset = 0; offset < 9; offset++) {
            const void *sources[MOST_SOURCES];
            struct hvd__reduction r = {dtype, HVD_SUM, 1, 1, 0};

            state = 4711;
            for (int s = 0; s < MOST_SOURCES; s++) {
                sources[s] = memory[s] + offset;
                for (size_t i = 0; i < bytes; i++)
                    memory[s][offset + i] = (unsigned char)(random64() % 60);
            }
            hvd__reduce(&r, out + offset, sources, MOST_SOURCES, MOST);
            if (offset == 0)
                memcpy(first, out, bytes);
            ck_assert_mem_eq(first, out + offset, bytes);
        }
    }
}
END_TEST

/* All 16-bit patterns, against the compiler's own conversion. */
START_TEST(half_conversions_are_exact)
{
    for (uint32_t bits = 0; bits < 65536; bits++) {
        uint16_t half = (uint16_t)bits, back;
        _Float16 theirs;
        float ours = hvd__from_float16(half);

        memcpy(&theirs, &half, sizeof half);
        if (isnan(ours)) {
            ck_assert(isnan((float)theirs));
            ck_assert(isnan(hvd__from_float16(hvd__to_float16(ours))));
            continue;
        }
        ck_assert(ours == (float)theirs);
        back = hvd__to_float16(ours);
        ck_assert_uint_eq(back, half);
    }
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)random64();
        float f;
        _Float16 theirs;
        uint16_t want;

        memcpy(&f, &bits, sizeof f);
        if (isnan(f))
            continue;
        theirs = (_Float16)f;
        memcpy(&want, &theirs, sizeof want);
        ck_assert_uint_eq(hvd__to_float16(f), want);
    }
}
END_TEST

START_TEST(bfloat16_rounds_to_nearest_even)
{
    for (int i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)random64(), low = bits & 0xffff;
        uint32_t want = bits >> 16;
        float f;

        memcpy(&f, &bits, sizeof f);
        if (isnan(f)) {
            ck_assert(isnan(hvd__from_bfloat16(hvd__to_bfloat16(f))));
            continue;
        }
        want += low > 0x8000 || (low == 0x8000 && (want & 1));
        ck_assert_uint_eq(hvd__to_bfloat16(f), want);
    }
}
END_TEST

static TCase *tcase_reduce(void)
{
    TCase *tcase = tcase_create("reduce");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, integers_wrap_and_average_exactly);
    tcase_add_test(tcase, floats_are_close_to_exact);
    tcase_add_test(tcase, booleans_are_logical);
    tcase_add_test(tcase, a_nan_wins);
    tcase_add_test(tcase, bits_do_not_depend_on_the_place);
    tcase_add_test(tcase, half_conversions_are_exact);
    tcase_add_test(tcase, bfloat16_rounds_to_nearest_even);
    return tcase;
}

HVD_TEST_MAIN("kernels_reduce", tcase_reduce)
