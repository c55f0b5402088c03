/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests elements of tensors: every number of 16 bits goes to double precision
 * and back, and numbers between two neighbours to the nearest.
 */
#include "files/elements.h"

#include "suite.h"

#include <math.h>
#include <string.h>

static const enum safetensors_dtype floats[] = {
    SAFETENSORS_F16, SAFETENSORS_BF16, SAFETENSORS_F8_E5M2};

static double get(enum safetensors_dtype dtype, uint16_t bits)
{
    return element_get(dtype, &bits, 0);
}

static uint16_t put(enum safetensors_dtype dtype, double value)
{
    uint16_t bits = 0;

    element_put(dtype, &bits, 0, value);
    return bits;
}

LOOP_TEST(small_floats_and_what_lies_between, 0, 3)
{
    const enum safetensors_dtype d = floats[_i];
    const unsigned most = 1U << safetensors_bits(d);

    for (unsigned bits = 0; bits < most; bits++) {
        const double value = get(d, (uint16_t)bits);
        const double next = get(d, (uint16_t)(bits + 1));
        const double middle = (value + next) / 2;

        if (isnan(value)) {
            ck_assert_double_nan(get(d, put(d, value)));
            continue;
        }
        ck_assert_uint_eq(put(d, value), bits);
        if (isinf(value) || isinf(next) || isnan(next) || value == 0)
            continue;
        ck_assert_uint_eq(put(d, middle), bits + (bits & 1)); /* to even */
        ck_assert_uint_eq(put(d, nextafter(middle, value)), bits);
        ck_assert_uint_eq(put(d, nextafter(middle, next)), bits + 1);
    }
}

TEST(small_floats_are_those_of_ieee)
{
    ck_assert_uint_eq(put(SAFETENSORS_F16, 1), 0x3c00);
    ck_assert_uint_eq(put(SAFETENSORS_F16, -65504), 0xfbff);
    ck_assert_uint_eq(put(SAFETENSORS_F16, 65519), 0x7bff);
    ck_assert_uint_eq(put(SAFETENSORS_F16, 65520), 0x7c00);
    ck_assert_uint_eq(put(SAFETENSORS_F16, 0x1p-24), 1);
    ck_assert_uint_eq(put(SAFETENSORS_F16, 0x1p-25), 0);
    ck_assert_uint_eq(put(SAFETENSORS_F16, 0x1p-1074), 0);
    ck_assert_uint_eq(put(SAFETENSORS_F16, -0.0), 0x8000);
    ck_assert_uint_eq(put(SAFETENSORS_BF16, 1), 0x3f80);
    ck_assert_uint_eq(put(SAFETENSORS_BF16, 1e300), 0x7f80);
    ck_assert_uint_eq(put(SAFETENSORS_BF16, -INFINITY), 0xff80);
    ck_assert_uint_eq(put(SAFETENSORS_F8_E5M2, 1), 0x3c);
}

/* Of bfloat16 a float is the upper half. */
TEST(bfloat16_is_half_a_float)
{
    for (unsigned bits = 0; bits < 65536; bits += 7) {
        const uint32_t whole = bits << 16;
        float value;

        memcpy(&value, &whole, sizeof value);
        if (!isnan(value))
            ck_assert(get(SAFETENSORS_BF16, (uint16_t)bits) == (double)value);
    }
}

TEST(integers_saturate)
{
    int8_t i8;
    uint64_t u64;
    int64_t i64;
    uint32_t u32;
    unsigned char yes;

    element_put(SAFETENSORS_I8, &i8, 0, 200);
    ck_assert_int_eq(i8, 127);
    element_put(SAFETENSORS_I8, &i8, 0, -1e9);
    ck_assert_int_eq(i8, -128);
    element_put(SAFETENSORS_I8, &i8, 0, 2.5);
    ck_assert_int_eq(i8, 2);
    element_put(SAFETENSORS_I8, &i8, 0, NAN);
    ck_assert_int_eq(i8, 0);
    element_put(SAFETENSORS_U32, &u32, 0, 4294967295.);
    ck_assert_uint_eq(u32, UINT32_MAX);
    element_put(SAFETENSORS_U64, &u64, 0, 1e30);
    ck_assert_uint_eq(u64, UINT64_MAX);
    element_put(SAFETENSORS_I64, &i64, 0, 1e30);
    ck_assert_int_eq(i64, INT64_MAX);
    element_put(SAFETENSORS_I64, &i64, 0, -1e30);
    ck_assert_int_eq(i64, INT64_MIN);
    element_put(SAFETENSORS_BOOL, &yes, 0, 0.5);
    ck_assert_int_eq(yes, 1);
    ck_assert_double_eq(element_get(SAFETENSORS_I64, &i64, 0), -0x1p63);
}

TEST(conversion_of_many)
{
    const float in[] = {1, -2, 0.5f};
    uint16_t half[3];
    float back[3];

    elements_convert(SAFETENSORS_F16, half, SAFETENSORS_F32, in, 3);
    elements_convert(SAFETENSORS_F32, back, SAFETENSORS_F16, half, 3);
    ck_assert_mem_eq(back, in, sizeof in);
    elements_convert(SAFETENSORS_F32, back, SAFETENSORS_F32, half, 0);
    ck_assert(!element_is_known(SAFETENSORS_F4));
    ck_assert(element_is_known(SAFETENSORS_U64));
    ck_assert(!element_is_float(SAFETENSORS_BOOL));
}

TEST_MAIN("train_elements", .seconds = 60)
