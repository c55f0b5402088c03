/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - converts 16-bit floating point to and from float without the
 * compiler's help. Rounding is to nearest, ties to even.
 */
#ifndef BENCH_HALF_H
#define BENCH_HALF_H

#include <stdint.h>

float half_to_float(uint16_t bits);
uint16_t half_from_float(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t bfloat16_from_float(float value);

#endif
