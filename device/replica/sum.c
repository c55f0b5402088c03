/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sum.c - adds up the same tensor of several replicas.
 *
 * It adds in the order of the replicas, so that all of them get the same bits,
 * however many threads there are.
 */
#include "replica/replica.h"

#include "base/error.h"
#include "ops/half.h"

/* The elements of a whole that begin at some number, as float32. */
enum { BLOCK = 1024 };

static void load_floats(float *to, ipu_dtype dtype, const void *from,
                        int64_t first, int64_t count)
{
    if (dtype == IPU_FLOAT32)
        for (int64_t i = 0; i < count; i++)
            to[i] = ((const float *)from)[first + i];
    else
        ipu__widen(dtype, to, (const uint16_t *)from + first, count);
}

static void store_floats(void *to, ipu_dtype dtype, const float *from,
                         int64_t first, int64_t count)
{
    if (dtype == IPU_FLOAT32)
        for (int64_t i = 0; i < count; i++)
            ((float *)to)[first + i] = from[i];
    else
        ipu__narrow(dtype, (uint16_t *)to + first, from, count);
}

static void sum_integers(int32_t n, void *const *tensors, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t sum = 0;

        for (int32_t r = 0; r < n; r++)
            sum += ((const uint32_t *)tensors[r])[i];
        for (int32_t r = 0; r < n; r++)
            ((uint32_t *)tensors[r])[i] = sum;
    }
}

void ipu__sum_replicas(ipu_dtype dtype, int32_t n, void *const *tensors,
                       int64_t count, float scale)
{
    float sum[BLOCK], part[BLOCK];

    if (dtype == IPU_INT32) {
        sum_integers(n, tensors, count);
        return;
    }
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t length = count - first < BLOCK ? count - first : BLOCK;

        load_floats(sum, dtype, tensors[0], first, length);
        for (int32_t r = 1; r < n; r++) {
            load_floats(part, dtype, tensors[r], first, length);
            for (int64_t i = 0; i < length; i++)
                sum[i] += part[i];
        }
        for (int64_t i = 0; i < length; i++)
            sum[i] *= scale;
        for (int32_t r = 0; r < n; r++)
            store_floats(tensors[r], dtype, sum, first, length);
    }
}
