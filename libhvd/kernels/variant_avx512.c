/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant_avx512.c - the kernels for processors with AVX-512 F, BW, DQ and
 * VL, which the makefile lets the compiler use in this file. Registers of 64
 * bytes.
 *
 * There is no variant for AVX-512's own bfloat16 and float16: its conversion
 * to bfloat16 loses subnormals, its conversions of float16 are those of F16C,
 * and its arithmetic rounds after every step.
 */
#ifdef __x86_64__
#define VARIANT hvd__variant_avx512
#define VECTOR_BYTES 64
#include "kernels/variant.inc"
#endif
