/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - vectors of neighbouring floats, of the widths in which a loop goes
 * through a row: most of it, what is then left, and the last few. They may
 * begin anywhere.
 *
 * GCC takes vectors apart that are wider than registers, through memory. So a
 * loop of IPU__WIDE asks how wide they are with the set in use.
 */
#ifndef IPU_OPS_LANES_H
#define IPU_OPS_LANES_H

#include <stdint.h>

#include "ops/wide.h"

#define IPU__VECTOR(bytes)                                                     \
    __attribute__((vector_size(bytes), aligned(4), may_alias))

typedef float ipu__wide IPU__VECTOR(64);
typedef float ipu__half_wide IPU__VECTOR(32);
typedef float ipu__narrow IPU__VECTOR(16);
typedef float ipu__single __attribute__((may_alias));

/* Return how many of the first count elements are to be taken in vectors of 16
 * and, of the rest, of 8: none where registers are narrower. */
static inline int64_t ipu__in_wide(int64_t count)
{
    return ipu__kernels() == IPU__KERNELS_AVX512 ? count / 16 * 16 : 0;
}

static inline int64_t ipu__in_half_wide(int64_t count)
{
    return ipu__kernels() >= IPU__KERNELS_AVX2 ? count / 8 * 8 : 0;
}

#endif
