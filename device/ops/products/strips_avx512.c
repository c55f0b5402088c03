/* SPDX-License-Identifier: Apache-2.0 */
/* strips_avx512.c - strips of 8 rows and panels of up to 32 columns: 16 sums.
 */
#include "ops/products/strips_sets.h"

#ifdef __x86_64__
#include <immintrin.h>

#include "ops/wide.h"

#define TARGET IPU__AVX512
#define ROWS 8
#define LANES 16
#define ZERO _mm512_setzero_ps
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define EACH(x) _mm512_set1_ps(*(x))
#define FMA _mm512_fmadd_ps
#define ADD _mm512_add_ps
typedef __m512 vector;

static inline IPU__AVX512 __mmask16 first_lanes(int64_t n)
{
    return (__mmask16)((1u << n) - 1);
}

static inline IPU__AVX512 vector load_part(const float *x, int64_t n)
{
    return _mm512_maskz_loadu_ps(first_lanes(n), x);
}

static inline IPU__AVX512 void store_part(float *y, int64_t n, vector value)
{
    _mm512_mask_storeu_ps(y, first_lanes(n), value);
}

#include "ops/products/strips.inc"

const struct ipu__strips ipu__strips_avx512 = {ROWS, LANES, multiply,
                                               multiply_columns};
#endif
