/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant_avx2.c - the kernels for processors with AVX2 and F16C, which the
 * makefile lets the compiler use in this file. Registers of 32 bytes.
 */
#ifdef __x86_64__
#define VARIANT hvd__variant_avx2
#define VECTOR_BYTES 32
#include "kernels/variant.inc"
#endif
