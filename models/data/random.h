/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - a small random number generator for data and first weights:
 * splitmix64 (Steele, Lea, Flood 2014). It uses integers and IEEE arithmetic
 * only, no libm, so that every machine draws the same numbers.
 */
#ifndef MODELS_RANDOM_H
#define MODELS_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_bits(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Different (seed, stream) pairs give unrelated sequences. */
static inline void random_seed(struct random *r, uint64_t seed, uint64_t stream)
{
    struct random mixer = {seed};
    mixer.state = random_bits(&mixer) ^ (stream * UINT64_C(0xd1342543de82ef95));
    r->state = random_bits(&mixer);
}

/* Returns a number that is evenly distributed in [low, high). */
static inline double random_range(struct random *r, double low, double high)
{
    return low + (high - low) * ((double)(random_bits(r) >> 11) * 0x1p-53);
}

/* Returns the sum of four such numbers, with mean 0 and deviation 1, within
 * ±3.5. */
static inline double random_bell(struct random *r)
{
    double sum = -2;
    for (int i = 0; i < 4; i++)
        sum += random_range(r, 0, 1);
    return sum * 1.7320508075688772;
}

/* Returns 0 to n - 1; n is small, so the bias of the remainder does not
 * matter. */
static inline int random_below(struct random *r, int n)
{
    return (int)(random_bits(r) % (uint64_t)n);
}

#endif
