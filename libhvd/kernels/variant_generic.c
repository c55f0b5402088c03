/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variant_generic.c - the kernels for every processor of the architecture: SSE2
 * on x86-64, NEON on arm64. Registers of 16 bytes.
 */
#define VARIANT hvd__variant_generic
#define VECTOR_BYTES 16
#include "kernels/variant.inc"
