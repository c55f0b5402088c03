/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replayed.h - a training for programs that lose and gain ranks, whose weights
 * show who has made which step.
 *
 * A step adds to the weights what depends on them, on the step, and on who
 * makes it: whoever applies a step twice, or leaves one out, has other weights.
 * The program notes in members, a part of its state like the weights, who has
 * made each step. At the end replayed_compare makes all steps again, in this
 * process alone.
 */
#ifndef HVD_TESTS_REPLAYED_H
#define HVD_TESTS_REPLAYED_H

#include <stdint.h>
#include <string.h>

enum { COUNT = 5003, MOST_STEPS = 1 << 16, MOST_MEMBERS = 16 };

static double weights[COUNT];
static uint16_t members[MOST_STEPS]; /* a bit for each that made the step */

/* Returns what a member adds to element i in a step: a whole number, so that
 * sums are exact in any order. */
static inline double replayed_given(int member, int i, int64_t step)
{
    return (double)((member + 1) * (i % 11 + 1) + step % 13);
}

static inline void replayed_update(const double *sum, int nmembers)
{
    for (int i = 0; i < COUNT; i++)
        weights[i] = weights[i] * 0.999 + sum[i] / (double)nmembers;
}

static inline uint64_t replayed_hash(void)
{
    uint64_t hash = 1, word;

    for (int i = 0; i < COUNT; i++) {
        memcpy(&word, &weights[i], sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* Makes the steps from 0 to nsteps - 1 again. Returns NULL, or what is wrong.
 */
static inline const char *replayed_compare(int64_t nsteps)
{
    static double done[COUNT], sum[COUNT];

    memcpy(done, weights, sizeof done);
    memset(weights, 0, sizeof weights);
    for (int64_t step = 0; step < nsteps; step++) {
        memset(sum, 0, sizeof sum);
        for (int member = 0; member < MOST_MEMBERS; member++)
            for (int i = 0; i < COUNT && members[step] >> member & 1; i++)
                sum[i] += replayed_given(member, i, step);
        if (members[step] == 0)
            return "nobody has made a step";
        replayed_update(sum, __builtin_popcount(members[step]));
    }
    return memcmp(done, weights, sizeof done) == 0
               ? NULL
               : "the weights are not those of the replay";
}

#endif
