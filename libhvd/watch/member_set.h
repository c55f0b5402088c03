/* SPDX-License-Identifier: Apache-2.0 */
/* member_set.h - sets of the members of a job. */
#ifndef HVD_WATCH_MEMBER_SET_H
#define HVD_WATCH_MEMBER_SET_H

#include <stdbool.h>
#include <stdint.h>

/* The most members, and words of a set of them. */
enum {
    HVD__SURVIVORS_MOST = 512,
    HVD__MEMBER_SET_WORDS = HVD__SURVIVORS_MOST / 64
};

/* A set of members. */
struct hvd__member_set {
    uint64_t words[HVD__MEMBER_SET_WORDS];
};

static inline bool hvd__member_set_has(const struct hvd__member_set *set,
                                       int member)
{
    return set->words[member / 64] >> member % 64 & 1;
}

static inline void hvd__member_set_add(struct hvd__member_set *set, int member)
{
    set->words[member / 64] |= UINT64_C(1) << member % 64;
}

static inline void hvd__member_set_drop(struct hvd__member_set *set, int member)
{
    set->words[member / 64] &= ~(UINT64_C(1) << member % 64);
}

int hvd__member_set_count(const struct hvd__member_set *set);
/* Returns the lowest member, or -1: there is none. */
int hvd__member_set_lowest(const struct hvd__member_set *set);
/* Returns the highest member, or -1. */
int hvd__member_set_highest(const struct hvd__member_set *set);

/* Adds all of another set. */
void hvd__member_set_unite(struct hvd__member_set *set,
                           const struct hvd__member_set *other);
/* Drops what is not in another set. */
void hvd__member_set_intersect(struct hvd__member_set *set,
                               const struct hvd__member_set *other);
/* Drops what is in another set. */
void hvd__member_set_subtract(struct hvd__member_set *set,
                              const struct hvd__member_set *other);

bool hvd__member_set_equal(const struct hvd__member_set *a,
                           const struct hvd__member_set *b);
/* Returns whether all of a are in b. */
bool hvd__member_set_is_part(const struct hvd__member_set *a,
                             const struct hvd__member_set *b);

#endif
