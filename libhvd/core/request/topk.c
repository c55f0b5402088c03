/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topk.c - a compression that sends only the largest values. It keeps the rest
 * and adds it to the next ones (error feedback), so that values are delayed but
 * not lost.
 *
 * Sources: Strom, Scalable distributed DNN training using commodity GPU cloud
 * computing (2015); Stich, Cordonnier and Jaggi, Sparsified SGD with memory
 * (2018).
 *
 * A code is an array of 32-bit indices and one of values. Quickselect finds the
 * k-th largest magnitude in linear time on average; of equal magnitudes the
 * first ones are sent.
 */
#include "core/request/topk.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic double the_ratio = 0.01;

void hvd__topk_set_ratio(double ratio)
{
    atomic_store(&the_ratio, ratio);
}

static int64_t kept(int64_t count)
{
    double k = ceil((double)count * atomic_load(&the_ratio));

    if (count == 0)
        return 0;
    return k < 1 ? 1 : k > (double)count ? count : (int64_t)k;
}

enum { PAIR_BYTES = sizeof(uint32_t) + sizeof(float) };

static int64_t max_bytes(void *context, int64_t count)
{
    (void)context;
    return count > UINT32_MAX ? HVD_ERR_UNSUPPORTED : kept(count) * PAIR_BYTES;
}

static int64_t state_bytes(void *context, int64_t count)
{
    (void)context;
    return count * (int64_t)sizeof(float);
}

static void swap_values(float *a, float *b)
{
    float t = *a;

    *a = *b;
    *b = t;
}

/* Returns the value that would be at place k if v were sorted, largest first.
 * Rearranges v. The partition is three-way, so many equal values cost no more.
 */
static float select_largest(float *v, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;

    while (low < high) {
        float pivot = v[low + (high - low) / 2];
        int64_t larger = low, i = low, smaller = high;

        while (i <= smaller)
            if (v[i] > pivot)
                swap_values(&v[larger++], &v[i++]);
            else if (v[i] < pivot)
                swap_values(&v[i], &v[smaller--]);
            else
                i++;
        if (k < larger)
            high = larger - 1;
        else if (k > smaller)
            low = smaller + 1;
        else
            return pivot;
    }
    return v[low];
}

/* NaN and infinity would stay in the memory forever, so they count as the
 * largest values and are sent. */
static float magnitude(float value)
{
    return isnan(value) ? INFINITY : fabsf(value);
}

static int64_t take_largest(float *left, int64_t count, int64_t k, float least,
                            unsigned char *indices, unsigned char *values)
{
    int64_t larger = 0, n = 0, equal;

    for (int64_t i = 0; i < count; i++)
        larger += magnitude(left[i]) > least;
    equal = k - larger;
    for (int64_t i = 0; i < count && n < k; i++) {
        float m = magnitude(left[i]);
        uint32_t index = (uint32_t)i;

        if (m < least || (m == least && equal-- <= 0))
            continue;
        memcpy(indices + n * (int64_t)sizeof index, &index, sizeof index);
        memcpy(values + n * (int64_t)sizeof *left, &left[i], sizeof *left);
        left[i] = 0;
        n++;
    }
    return n;
}

static int64_t encode(void *context, void *state, const float *values,
                      int64_t count, void *code)
{
    float *left = state, *magnitudes;
    int64_t k = kept(count);
    float least;

    (void)context;
    if (count == 0)
        return 0;
    magnitudes = calloc((size_t)count, sizeof *magnitudes);
    if (!magnitudes)
        return HVD_ERR_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        left[i] += values[i];
        magnitudes[i] = magnitude(left[i]);
    }
    least = select_largest(magnitudes, count, k - 1);
    free(magnitudes);
    take_largest(left, count, k, least, code,
                 (unsigned char *)code + k * (int64_t)sizeof(uint32_t));
    return k * PAIR_BYTES;
}

static int add(void *context, const void *code, int64_t bytes, float *sum,
               int64_t count)
{
    int64_t k = bytes / PAIR_BYTES;
    const unsigned char *indices = code;
    const unsigned char *values = indices + k * (int64_t)sizeof(uint32_t);

    (void)context;
    if (bytes % PAIR_BYTES != 0)
        return HVD_ERR_INTERNAL;
    for (int64_t i = 0; i < k; i++) {
        uint32_t index;
        float value;

        memcpy(&index, indices + i * (int64_t)sizeof index, sizeof index);
        memcpy(&value, values + i * (int64_t)sizeof value, sizeof value);
        if (index >= count)
            return HVD_ERR_INTERNAL;
        sum[index] += value;
    }
    return HVD_OK;
}

const hvd_compressor hvd__topk = {
    .size = sizeof(hvd_compressor),
    .name = "topk",
    .max_bytes = max_bytes,
    .state_bytes = state_bytes,
    .encode = encode,
    .add = add,
};
