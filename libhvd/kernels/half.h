/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - the two 16-bit floating types as bits, to and from float32, in
 * plain C. Rounding is to nearest, ties to even, as IEEE 754 asks; NaN stays
 * NaN (quiet), overflow becomes infinity, subnormals are kept.
 */
#ifndef HVD_KERNELS_HALF_H
#define HVD_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t hvd__float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float hvd__bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float hvd__from_bfloat16(uint16_t half)
{
    return hvd__bits_float((uint32_t)half << 16);
}

static inline uint16_t hvd__to_bfloat16(float value)
{
    uint32_t bits = hvd__float_bits(value);
    /* Adding just under half of the last kept place, plus that place's own
     * bit, rounds ties to even; a carry into the exponent is right too. */
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40u;
    return (uint16_t)(value != value ? quiet : rounded);
}

static inline float hvd__from_float16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7fffu;
    /* Shift into place, then let a multiplication by 2^112 correct the
     * exponent bias: it also normalises subnormals. */
    float scaled = hvd__bits_float(magnitude << 13) * 0x1p112f;
    uint32_t special = (magnitude << 13) | 0x7f800000u; /* infinity, NaN */
    uint32_t bits = magnitude >= 0x7c00u ? special : hvd__float_bits(scaled);
    return hvd__bits_float(bits | sign);
}

static inline uint16_t hvd__to_float16(float value)
{
    uint32_t bits = hvd__float_bits(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    bits &= 0x7fffffffu;

    /* Below 2^-14 the result is subnormal: adding 0.5 places its last bit
     * (2^-24) at the last place of the sum, which the addition rounds. */
    uint32_t tiny = hvd__float_bits(hvd__bits_float(bits) + 0.5f) - 0x3f000000u;
    uint32_t normal = (bits - 0x38000000u + 0xfffu + ((bits >> 13) & 1u)) >> 13;
    uint32_t result = bits < 0x38800000u ? tiny : normal;
    result = bits >= 0x477ff000u ? 0x7c00u : result; /* 65520 and more */
    result = bits > 0x7f800000u ? 0x7e00u : result;  /* NaN */
    return (uint16_t)(result | sign);
}

#endif
