/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/status.h"
#include "hvd_strategy.h"

int hvd_shard(int64_t n, int rank, int size, int64_t *first, int64_t *stride,
              int64_t *count)
{
    if (n < 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "%lld items, less than 0",
                         (long long)n);
    if (size < 1 || rank < 0 || rank >= size)
        return hvd__fail(HVD_ERR_ARGUMENT, "rank %d of %d does not exist", rank,
                         size);
    if (!first || !stride || !count)
        return hvd__fail(HVD_ERR_ARGUMENT, "an output of hvd_shard is NULL");
    *first = rank;
    *stride = size;
    *count = n / size + (rank < n % size);
    return HVD_OK;
}

/* Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014):
 * good enough to shuffle with, and the same everywhere. */
static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Returns a uniform number in [0, bound): Lemire, Fast Random Integer
 * Generation in an Interval (2019). */
static uint64_t below(uint64_t bound, uint64_t *state)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)splitmix64(state) * bound;

    if ((uint64_t)product < bound) {
        uint64_t least = -bound % bound;
        while ((uint64_t)product < least)
            product = (wide)splitmix64(state) * bound;
    }
    return (uint64_t)(product >> 64);
}

int hvd_shuffle(int64_t n, uint64_t seed, int64_t epoch, int64_t *indices)
{
    uint64_t state = seed;

    if (n < 0)
        return hvd__fail(HVD_ERR_ARGUMENT, "%lld items, less than 0",
                         (long long)n);
    if (n > 0 && !indices)
        return hvd__fail(HVD_ERR_ARGUMENT,
                         "the memory for %lld indices is NULL", (long long)n);
    /* Seed and epoch are mixed one after the other: epoch 1 of seed 0 is not
     * epoch 0 of seed 1. */
    state = splitmix64(&state) ^ (uint64_t)epoch;
    state = splitmix64(&state) ^ (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = (int64_t)below((uint64_t)i + 1, &state);

        if (j != i)
            indices[i] = indices[j];
        indices[j] = i;
    }
    return HVD_OK;
}
