/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set.h - a process set: a group of ranks whose requests concern only each
 * other.
 *
 * Each set has its own coordinator, on its first member, its own order of
 * batches and its own lanes, so that waiting in one set never delays another.
 * Set 0 is the world.
 *
 * Every rank knows every set. Only members have an executor and an agreement,
 * which core/world/prepare.c creates before the set is used and frees when
 * nothing moves on it any more.
 */
#ifndef HVD_CORE_SET_H
#define HVD_CORE_SET_H

#include <stdatomic.h>

#include "core/table/table.h"
#include "transport/algo/algo.h"
#include "transport/team.h"

struct hvd__agreement;
struct hvd__engine;
struct hvd__executor;

struct hvd__set {
    int32_t id;
    struct hvd__team team; /* rank is -1 if this process is no member */
    int *ranks;            /* owned, [team.size], ascending: team.world */
    int first_tag;         /* first of its HVD__SET_TAGS tags */
    int tag_slot;

    atomic_int nusers; /* threads in a call about it, plus the request table;
                          the last user frees the set; unused for set 0 */

    /* Guarded by the request table's lock. */
    struct hvd__set_table requests;

    /* The rest belongs to the driver, unless it says otherwise. */
    struct hvd__set *next; /* next live set of which this rank is a member */
    struct hvd__executor *executor;   /* owned by core/run; NULL: none */
    struct hvd__agreement *agreement; /* owned by core/agree; NULL: none */
    struct hvd__shm *shm;     /* owned; shared by members on this host; NULL: no
                                 member shares memory */
    struct hvd__hosts *hosts; /* owned; NULL: all members are on one host and
                                 share memory */
    struct hvd__engine *engine; /* borrowed: the world's */
    int *locals;                /* owned, [team.size]: members on this host */
    atomic_bool leaving;        /* any thread sets it to make this rank leave */
    atomic_bool closed; /* all members have left, nothing is under way */
};

/* A set has enough tags for all batches that may be under way at once on any
 * rank, and two for rounds (core/agree/round.h). */
enum {
    HVD__BATCH_TAGS = 4 * HVD__COLLECTIVE_TAGS,
    HVD__BATCH_WINDOW = 16,
    HVD__ROUND_TAG = HVD__BATCH_TAGS * HVD__BATCH_WINDOW, /* and the next */
    HVD__SET_TAGS = HVD__ROUND_TAG + 2
};

/* Makes a set of n ranks of the transport, in ascending order, without executor
 * and agreement. Takes ownership of ranks, also on failure. Returns NULL if
 * memory runs out. */
struct hvd__set *hvd__set_new(struct hvd__transport *transport, int32_t id,
                              int *ranks, int n, int tag_slot);
/* Frees a set without executor and agreement. NULL is accepted. */
void hvd__set_free(struct hvd__set *set);

/* Returns the member number of a world rank, or -1 if it is no member. */
int hvd__set_find(const struct hvd__set *set, int rank);

/* Adds a user. The set must already have a user, or the caller must hold the
 * request table's lock while the set is in the table. */
static inline void hvd__set_use(struct hvd__set *set)
{
    if (set->id != 0)
        atomic_fetch_add_explicit(&set->nusers, 1, memory_order_relaxed);
}

/* Removes a user. Returns true if that was the last one. The decrement releases
 * and acquires: the last user sees what all others did to the set. */
static inline bool hvd__set_leave(struct hvd__set *set)
{
    return set->id != 0 && atomic_fetch_sub_explicit(&set->nusers, 1,
                                                     memory_order_acq_rel) == 1;
}

static inline bool hvd__set_has_us(const struct hvd__set *set)
{
    return set->team.rank >= 0;
}

static inline bool hvd__set_is_root(const struct hvd__set *set,
                                    const struct hvd__signature *s)
{
    return s->root == set->team.world[set->team.rank];
}

/* Returns true if this rank receives a result of a request. */
static inline bool hvd__set_gets_result(const struct hvd__set *set,
                                        const struct hvd__signature *s)
{
    return (s->kind != HVD_GATHER && s->kind != HVD_REDUCE) ||
           hvd__set_is_root(set, s);
}

/* Writes "process set 3 (ranks 0-2,5)" into text. Returns text. */
const char *hvd__set_print(const struct hvd__set *set, char *text, size_t size);

#endif
