/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a loop over strips; and packing the other matrix. */
#include "ops/products/strips.h"

#include <cblas.h>
#include <string.h>

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

void ipu__panel_pack(const float *from, int64_t pitch, int64_t rows, int64_t n,
                     int64_t columns, float *panel)
{
    for (int64_t r = 0; r < rows; r++, panel += columns, from += pitch) {
        memcpy(panel, from, (size_t)n * sizeof *panel);
        if (n < columns)
            memset(panel + n, 0, (size_t)(columns - n) * sizeof *panel);
    }
}

/* Rows of the panel that stay in the nearest cache meanwhile. */
enum { AT_ONCE = 64 };

void ipu__panel_pack_columns(const float *from, int64_t pitch, int64_t rows,
                             int64_t n, int64_t columns, float *panel)
{
    if (n < columns)
        memset(panel, 0, (size_t)(rows * columns) * sizeof *panel);
    for (int64_t first = 0; first < rows; first += AT_ONCE) {
        int64_t end = first + AT_ONCE < rows ? first + AT_ONCE : rows;

        for (int64_t i = 0; i < n; i++)
            for (int64_t r = first; r < end; r++)
                panel[r * columns + i] = from[i * pitch + r];
    }
}
