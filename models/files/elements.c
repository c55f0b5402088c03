/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elements.c - the floating types of 8 and 16 bits are one rule with three
 * numbers of bits: sign, exponent and fraction, as in IEEE 754. They are slow
 * here, and exact: this is for files, not for training.
 */
#include "files/elements.h"

#include <math.h>
#include <string.h>

/* Bits of the exponent and of the fraction. */
struct layout {
    int exponent, fraction;
};

static const struct layout f16 = {5, 10}, bf16 = {8, 7}, f8 = {5, 2};

static double decode(struct layout l, unsigned bits)
{
    const int most = (1 << l.exponent) - 1, bias = most / 2;
    const int exponent = (int)(bits >> l.fraction) & most;
    const unsigned fraction = bits & ((1U << l.fraction) - 1);
    const bool negative = bits >> (l.exponent + l.fraction) & 1;
    double value;

    if (exponent == most)
        value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, 1 - bias - l.fraction);
    else
        value =
            ldexp(fraction + (1U << l.fraction), exponent - bias - l.fraction);
    return negative ? -value : value;
}

static unsigned encode(struct layout l, double value)
{
    const int most = (1 << l.exponent) - 1, bias = most / 2;
    const unsigned infinite = (unsigned)most << l.fraction;
    const unsigned sign = signbit(value) ? 1U << (l.exponent + l.fraction) : 0;
    int exponent;
    double scaled;

    if (isnan(value))
        return sign | infinite | 1U << (l.fraction - 1);
    if (isinf(value) || value == 0)
        return sign | (value == 0 ? 0 : infinite);
    frexp(value, &exponent); /* |value| is in [2^(exponent-1), 2^exponent) */
    exponent = exponent - 1 + bias > 1 ? exponent - 1 + bias : 1;
    /* In units of the last place; rounding up may carry into the exponent,
     * which is as it should be, up to infinity. */
    scaled = nearbyint(ldexp(fabs(value), bias + l.fraction - exponent));
    scaled += ldexp(exponent - 1, l.fraction);
    return sign | (scaled < infinite ? (unsigned)scaled : infinite);
}

bool element_is_float(enum safetensors_dtype dtype)
{
    return dtype == SAFETENSORS_F16 || dtype == SAFETENSORS_BF16 ||
           dtype == SAFETENSORS_F32 || dtype == SAFETENSORS_F64 ||
           dtype == SAFETENSORS_F8_E5M2;
}

/* The integers: dtype, C type, least and largest as double. The largest of 64
 * bits are rounded up, and no value reaches them. */
#define INTEGERS(X)                                                            \
    X(U8, uint8_t, 0, 255)                                                     \
    X(I8, int8_t, -128, 127)                                                   \
    X(U16, uint16_t, 0, 65535)                                                 \
    X(I16, int16_t, -32768, 32767)                                             \
    X(U32, uint32_t, 0, 4294967295.)                                           \
    X(I32, int32_t, -2147483648., 2147483647.)                                 \
    X(U64, uint64_t, 0, 0x1p64)                                                \
    X(I64, int64_t, -0x1p63, 0x1p63)

bool element_is_known(enum safetensors_dtype dtype)
{
    switch (dtype) {
#define CASE(name, type, least, largest) case SAFETENSORS_##name:
        INTEGERS(CASE)
#undef CASE
    case SAFETENSORS_BOOL: return true;
    default: return element_is_float(dtype);
    }
}

static unsigned get_16(const void *data, int64_t i)
{
    uint16_t bits;

    memcpy(&bits, (const char *)data + 2 * i, sizeof bits);
    return bits;
}

static void put_16(void *data, int64_t i, unsigned value)
{
    const uint16_t bits = (uint16_t)value;

    memcpy((char *)data + 2 * i, &bits, sizeof bits);
}

double element_get(enum safetensors_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
#define CASE(name, type, least, largest)                                       \
    case SAFETENSORS_##name: {                                                 \
        type v;                                                                \
        memcpy(&v, (const char *)data + (int64_t)sizeof v * i, sizeof v);      \
        return (double)v;                                                      \
    }
        INTEGERS(CASE)
        CASE(F32, float, 0, 0)
        CASE(F64, double, 0, 0)
#undef CASE
    case SAFETENSORS_BOOL: return ((const unsigned char *)data)[i] != 0;
    case SAFETENSORS_F16: return decode(f16, get_16(data, i));
    case SAFETENSORS_BF16: return decode(bf16, get_16(data, i));
    case SAFETENSORS_F8_E5M2:
        return decode(f8, ((const unsigned char *)data)[i]);
    default: return NAN;
    }
}

void element_put(enum safetensors_dtype dtype, void *data, int64_t i,
                 double value)
{
    switch (dtype) {
#define CASE(name, type, least, largest)                                       \
    case SAFETENSORS_##name: {                                                 \
        const double whole = isnan(value) ? 0 : nearbyint(value);              \
        type v = whole <= (least)                   ? (type)(least)            \
                 : whole < (largest)                ? (type)whole              \
                 : sizeof(type) == 8 && (least) < 0 ? (type)INT64_MAX          \
                 : sizeof(type) == 8                ? (type)UINT64_MAX         \
                                                    : (type)(largest);                        \
        memcpy((char *)data + (int64_t)sizeof v * i, &v, sizeof v);            \
        return;                                                                \
    }
        /* cppcheck-suppress floatConversionOverflow; it is not converted */
        INTEGERS(CASE)
#undef CASE
    case SAFETENSORS_F32: {
        const float v = (float)value;
        memcpy((char *)data + (int64_t)sizeof v * i, &v, sizeof v);
        return;
    }
    case SAFETENSORS_F64:
        memcpy((char *)data + (int64_t)sizeof value * i, &value, sizeof value);
        return;
    case SAFETENSORS_BOOL: ((unsigned char *)data)[i] = value != 0; return;
    case SAFETENSORS_F16: put_16(data, i, encode(f16, value)); return;
    case SAFETENSORS_BF16: put_16(data, i, encode(bf16, value)); return;
    case SAFETENSORS_F8_E5M2:
        ((unsigned char *)data)[i] = (unsigned char)encode(f8, value);
        return;
    default: return;
    }
}

void elements_convert(enum safetensors_dtype to, void *out,
                      enum safetensors_dtype from, const void *in,
                      int64_t count)
{
    if (to != from)
        for (int64_t i = 0; i < count; i++)
            element_put(to, out, i, element_get(from, in, i));
    else if (count > 0)
        memcpy(out, in, (size_t)count * safetensors_bits(to) / 8);
}
