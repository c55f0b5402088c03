/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - 16-bit floating point as float, for programs whose compiler has no
 * type for it. Rounding is to nearest, ties to even.
 */
#ifndef BENCH_HALF_H
#define BENCH_HALF_H

#include <stdint.h>

float half_to_float(uint16_t bits);
uint16_t half_from_float(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t bfloat16_from_float(float value);

#endif
