/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - numbers that a seed determines (SplitMix64 of G. Steele, D. Lea
 * and C. Flood, 2014). Each purpose has a stream of its own, so that one more
 * draw for one purpose shifts no other.
 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline struct sim_random sim_stream(uint64_t seed, uint64_t purpose)
{
    return (struct sim_random){sim_mix(seed) ^ sim_mix(~purpose)};
}

static inline uint64_t sim_next(struct sim_random *random)
{
    return sim_mix(random->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Returns 0 <= x < n, for n > 0. */
static inline int sim_below(struct sim_random *random, int n)
{
    return (int)((sim_next(random) >> 32) * (uint64_t)n >> 32);
}

/* Returns true once in n times. */
static inline bool sim_once_in(struct sim_random *random, int n)
{
    return sim_below(random, n) == 0;
}

#endif
