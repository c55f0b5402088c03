/* SPDX-License-Identifier: Apache-2.0 */
/* strips_avx2.c - strips of 6 rows and panels of up to 16 columns: 12 sums. */
#include "ops/products/strips_sets.h"

#ifdef __x86_64__
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma")))
#define ROWS 6
#define LANES 8
#define ZERO _mm256_setzero_ps
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define EACH _mm256_broadcast_ss
#define FMA _mm256_fmadd_ps
#define ADD _mm256_add_ps
typedef __m256 vector;

/* All bits of the first n lanes. */
static inline TARGET __m256i first_lanes(int64_t n)
{
    static const int32_t bits[2 * LANES] = {-1, -1, -1, -1, -1, -1, -1, -1};

    return _mm256_loadu_si256((const __m256i_u *)(bits + LANES - n));
}

static inline TARGET vector load_part(const float *x, int64_t n)
{
    return _mm256_maskload_ps(x, first_lanes(n));
}

static inline TARGET void store_part(float *y, int64_t n, vector value)
{
    _mm256_maskstore_ps(y, first_lanes(n), value);
}

#include "ops/products/strips.inc"

const struct ipu__strips ipu__strips_avx2 = {ROWS, LANES, multiply,
                                             multiply_columns};
#endif
