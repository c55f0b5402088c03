/* SPDX-License-Identifier: Apache-2.0 */
/* member_set.c - sets of the members of a job. */
#include "watch/member_set.h"

#include <string.h>

int hvd__member_set_count(const struct hvd__member_set *set)
{
    int n = 0;

    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        n += __builtin_popcountll(set->words[w]);
    return n;
}

int hvd__member_set_lowest(const struct hvd__member_set *set)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        if (set->words[w])
            return 64 * w + __builtin_ctzll(set->words[w]);
    return -1;
}

int hvd__member_set_highest(const struct hvd__member_set *set)
{
    for (int w = HVD__MEMBER_SET_WORDS - 1; w >= 0; w--)
        if (set->words[w])
            return 64 * w + 63 - __builtin_clzll(set->words[w]);
    return -1;
}

void hvd__member_set_unite(struct hvd__member_set *set,
                           const struct hvd__member_set *other)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        set->words[w] |= other->words[w];
}

void hvd__member_set_intersect(struct hvd__member_set *set,
                               const struct hvd__member_set *other)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        set->words[w] &= other->words[w];
}

void hvd__member_set_subtract(struct hvd__member_set *set,
                              const struct hvd__member_set *other)
{
    for (int w = 0; w < HVD__MEMBER_SET_WORDS; w++)
        set->words[w] &= ~other->words[w];
}

bool hvd__member_set_equal(const struct hvd__member_set *a,
                           const struct hvd__member_set *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

bool hvd__member_set_is_part(const struct hvd__member_set *a,
                             const struct hvd__member_set *b)
{
    struct hvd__member_set rest = *a;

    hvd__member_set_subtract(&rest, b);
    return hvd__member_set_lowest(&rest) < 0;
}
