/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floats.h - the variants of this processor, conversions of floating types
 * that do not use the kernels, and values that are worth trying, for the tests
 * of the kernels.
 */
#ifndef HVD_TESTS_FLOATS_H
#define HVD_TESTS_FLOATS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "checks.h"
#include "kernels/kernels.h"

/* Loops over the variants of kernels: the body runs with each of them in use,
 * and `name` is its name. */
#define FOR_EACH_VARIANT(name)                                                 \
    for (int variant_number = 0; use_variant(variant_number, &(name));         \
         variant_number++)

static inline bool use_variant(int i, const char **name)
{
    *name = hvd__kernels_offered(i);
    if (*name)
        ck_assert_int_eq(hvd__kernels_choose(*name), HVD_OK);
    else
        ck_assert_int_eq(hvd__kernels_choose("auto"), HVD_OK);
    return *name != NULL;
}

static inline uint64_t random64(void)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static inline float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Converts float16 with the compiler's own type. */
static inline float value_of_f16(uint16_t bits)
{
    _Float16 half;

    memcpy(&half, &bits, sizeof half);
    return (float)half;
}

static inline uint16_t f16_of_value(float value)
{
    _Float16 half = (_Float16)value;
    uint16_t bits;

    memcpy(&bits, &half, sizeof bits);
    return bits;
}

static inline float value_of_bf16(uint16_t bits)
{
    return float_of_bits((uint32_t)bits << 16);
}

/* Rounds to the nearer neighbour, and a tie to the even one. */
static inline uint16_t bf16_of_value(float value)
{
    uint32_t bits = bits_of_float(value), rest = bits & 0xffff;
    uint16_t lower = (uint16_t)(bits >> 16);

    if (value != value)
        return (uint16_t)(lower | 0x40); /* quiet */
    if (rest > 0x8000 || (rest == 0x8000 && lower % 2 == 1))
        return (uint16_t)(lower + 1);
    return lower;
}

/* Loads the i-th element of memory that may be misaligned. */
static inline double load_element(hvd_dtype dtype, const void *from, int64_t i)
{
    const char *at = (const char *)from + i * (int64_t)hvd__dtype_bytes(dtype);
    uint16_t bits;
    float single;
    double wide;

    switch (dtype) {
    case HVD_FLOAT16:
        memcpy(&bits, at, sizeof bits);
        return (double)value_of_f16(bits);
    case HVD_BFLOAT16:
        memcpy(&bits, at, sizeof bits);
        return (double)value_of_bf16(bits);
    case HVD_FLOAT32: memcpy(&single, at, sizeof single); return (double)single;
    default: memcpy(&wide, at, sizeof wide); return wide;
    }
}

/* Stores an element. All dtypes but float64 are rounded to float32 first. */
static inline void store_element(hvd_dtype dtype, void *to, int64_t i,
                                 double value)
{
    char *at = (char *)to + i * (int64_t)hvd__dtype_bytes(dtype);
    float single = (float)value;
    uint16_t bits =
        dtype == HVD_FLOAT16 ? f16_of_value(single) : bf16_of_value(single);

    switch (dtype) {
    case HVD_FLOAT32: memcpy(at, &single, sizeof single); break;
    case HVD_FLOAT64: memcpy(at, &value, sizeof value); break;
    default: memcpy(at, &bits, sizeof bits);
    }
}

#endif
