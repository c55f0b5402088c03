/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a loop over strips, and the sizes of packed matrices. */
#include "ops/products/strips.h"

#include <cblas.h>

#include "ops/products/strips_sets.h"
#include "ops/wide.h"

/* With more threads than one OpenBLAS divides a product among them, and the
 * strips have one thread. */
const struct ipu__strips *ipu__strips(void)
{
#ifdef __x86_64__
    if (openblas_get_num_threads() > 1 || !__builtin_cpu_supports("fma"))
        return NULL;
    if (ipu__kernels() == IPU__KERNELS_AVX512)
        return &ipu__strips_avx512;
    if (ipu__kernels() == IPU__KERNELS_AVX2)
        return &ipu__strips_avx2;
#endif
    return NULL;
}

/* The widest vector of any set. */
enum { MOST_LANES = IPU__PANEL_COLUMNS / 2 };

int64_t ipu__panels_count(int64_t depth, int64_t columns)
{
    return (columns + MOST_LANES - 1) / MOST_LANES * MOST_LANES * depth;
}

int64_t ipu__panel_columns(const struct ipu__strips *strips, int64_t first,
                           int64_t columns)
{
    return columns - first > strips->lanes ? 2 * strips->lanes : strips->lanes;
}
