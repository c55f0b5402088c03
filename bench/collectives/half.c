/* SPDX-License-Identifier: Apache-2.0 */
#include "collectives/half.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

float half_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1Fu;
    uint32_t fraction = bits & 0x3FFu;

    if (exponent == 31) {
        return float_of(sign | 0x7F800000u | fraction << 13);
    }
    if (exponent == 0) { /* zero or subnormal: fraction * 2^-24 */
        float value = (float)fraction * 0x1p-24f;

        return sign != 0 ? -value : value;
    }
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

uint16_t half_from_float(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    uint32_t rounded;

    if (magnitude > 0x7F800000u) {
        return (uint16_t)(sign | 0x7E00u);
    }
    if (magnitude >= 0x477FF000u) { /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7C00u);
    }
    if (magnitude < 0x38800000u) { /* below 2^-14: a multiple of 2^-24 */
        return (uint16_t)(sign |
                          (uint32_t)lrintf(float_of(magnitude) * 0x1p24f));
    }
    rounded = magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | rounded >> 13);
}

float bfloat16_to_float(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t bfloat16_from_float(float value)
{
    uint32_t bits = bits_of(value);

    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
        return (uint16_t)(bits >> 16 | 0x40u);
    }
    return (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
