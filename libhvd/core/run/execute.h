/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.h - runs what was agreed on: batches of requests, each as one
 * collective or a few, in the order that all members of a set follow.
 */
#ifndef HVD_CORE_EXECUTE_H
#define HVD_CORE_EXECUTE_H

#include "core/request/request.h"
#include "transport/algo/algo.h"

struct hvd__set;
struct hvd__engine;

/* Batches of a set that are under way at the same time. With two, one is
 * packed or unpacked while the other travels. */
enum { HVD__LANES = 2 };

struct hvd__batch {
    struct hvd__batch *next;
    struct hvd__request *requests; /* list by next, borrowed: in flight */
    int64_t number;                /* from 0, the same on all members */
    int *absent;                   /* owned, [set size]: who has joined; NULL */
    size_t direct_max;             /* of an allreduce by all to all */
};

/* The phases of a batch, in their order. */
enum hvd__phase {
    HVD__PHASE_COUNTS, /* of an alltoall: who gets how much from whom */
    HVD__PHASE_MOVE,   /* the tensors */
    HVD__PHASE_CHECK,  /* fingerprints of the results, if all should be equal */
    HVD__PHASES
};

/* The resources of one batch while it is under way. */
struct hvd__lane {
    struct hvd__batch *batch; /* owned; NULL: the lane is free */
    enum hvd__phase phase;
    struct hvd__workspace workspace; /* owned */
    unsigned char *fusion;           /* owned, of settings.fusion_threshold */
    size_t fusion_bytes;
    struct hvd__team team;     /* who takes part: the set, or some of it */
    int *world;                /* owned, [set size]: ranks of such a team */
    int *members;              /* owned, [set size]: ... their numbers in the
                                  set */
    struct hvd__slice *shares; /* owned, [set size] */
    int64_t *counts;           /* owned, [2 * set size]: rows to and from */
    unsigned char *buffer;     /* where the tensors of the batch lie together:
                                  in fusion, in temporary; NULL: in place */
    unsigned char *temporary;  /* owned; what is too large for fusion */
    uint64_t *results;         /* owned; fingerprints, of all ranks */
    struct hvd__collective collective;
};

struct hvd__executor {
    struct hvd__lane lanes[HVD__LANES];
    struct hvd__batch *waiting; /* owned list, oldest first */
    struct hvd__batch **waiting_tail;
    int64_t nbatches;   /* given so far: number of the next */
    int nunfinished;    /* waiting or in a lane */
    int64_t bytes_done; /* since somebody looked */
};

/* Allocates set->executor-> HVD_ERR_MEMORY; then hvd__executor_free gives back
 * what is there. */
int hvd__executor_new(struct hvd__set *set, size_t fusion_threshold);
/* Accepts a set without an executor. */
void hvd__executor_free(struct hvd__set *set);

/* All driver's. Run these requests, a list by next, after what was given
 * before; absent, copied: members that take no part, or NULL. direct_max: as
 * all members knew it when they agreed on the batch. */
int hvd__execute(struct hvd__set *set, struct hvd__request *requests,
                 const int *absent, size_t direct_max);
/* Skips the number of a batch in which this rank takes no part. */
void hvd__execute_skip(struct hvd__set *set);
/* Returns how many more batches can be under way at once; may be negative. */
int hvd__executor_room(const struct hvd__set *set);
bool hvd__executor_is_idle(const struct hvd__set *set);
/* Returns the bytes of requests that are complete since the last call. */
int64_t hvd__executor_take_bytes(struct hvd__set *set);
int hvd__execute_step(struct hvd__engine *engine, struct hvd__set *set,
                      bool *moved);

#endif
