/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - numbers that are a function of a seed, a step and an index, so
 * that they need no state and can be made again: the derivative of a dropout
 * makes its mask anew, and a run that is repeated gives the same bits.
 *
 * The seed and the step make two keys; the index is mixed with each in turn, by
 * a permutation of 32 bits (multiplications and shifts; the constants are
 * Wellons' lowbias32).
 */
#ifndef IPU_OPS_RANDOM_H
#define IPU_OPS_RANDOM_H

#include <stdint.h>

struct ipu__random {
    uint32_t keys[2];
};

/* Makes the keys; stream distinguishes several uses of one seed within an
 * op. */
static inline struct ipu__random ipu__random_of(uint64_t seed, int32_t step,
                                                uint32_t stream)
{
    uint64_t z = seed + 0x9e3779b97f4a7c15u * ((uint64_t)(uint32_t)step + 1);

    z ^= (uint64_t)stream << 32;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (struct ipu__random){{(uint32_t)z, (uint32_t)(z >> 32)}};
}

static inline uint32_t ipu__mix(uint32_t x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static inline uint32_t ipu__random_bits(struct ipu__random r, int64_t index)
{
    uint32_t low = (uint32_t)index, high = (uint32_t)(index >> 32);

    return ipu__mix(ipu__mix(low ^ r.keys[0]) + (high ^ r.keys[1]));
}

/* Returns a number in [0, 1), a multiple of 2^-24. */
static inline float ipu__random_float(struct ipu__random r, int64_t index)
{
    return (float)(ipu__random_bits(r, index) >> 8) * 5.9604644775390625e-8f;
}

#endif
