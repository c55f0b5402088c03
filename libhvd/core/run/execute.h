/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.h - runs the batches of requests that were agreed on. Each batch is
 * one collective or a few, and all members of a set run them in the same order.
 */
#ifndef HVD_CORE_EXECUTE_H
#define HVD_CORE_EXECUTE_H

#include "core/request/request.h"
#include "transport/algo/algo.h"

struct hvd__set;

/* The number of batches of a set that can be under way at the same time. Two
 * suffice for one to be packed or unpacked while the other is sent. */
enum { HVD__LANES = 2 };

struct hvd__batch {
    struct hvd__batch *next;
    struct hvd__request
        *requests;     /* list linked by next, borrowed: in flight */
    int64_t number;    /* from 0, the same on all members */
    size_t direct_max; /* most bytes of an allreduce sent to all at once */
    bool is_partial;   /* some members take no part: they have joined */
    int part[];        /* [set size]: nonzero for the others; all: [0] */
};

/* The phases of a batch, in their order. */
enum hvd__phase {
    HVD__PHASE_COUNTS, /* alltoall only: exchange the rows per pair of ranks */
    HVD__PHASE_MOVE,   /* move the tensors */
    HVD__PHASE_CHECK, /* compare fingerprints of results that should be equal */
    HVD__PHASES
};

/* The resources of one batch while it is under way. */
struct hvd__lane {
    struct hvd__set *set;     /* borrowed */
    struct hvd__batch *batch; /* owned; NULL: the lane is free */
    enum hvd__phase phase;
    struct hvd__workspace workspace; /* owned */
    unsigned char *fusion; /* owned, settings.fusion_threshold bytes */
    size_t fusion_bytes;
    struct hvd__team team;     /* members that take part */
    int *world;                /* owned, [set size]: their world ranks */
    int *members;              /* owned, [set size]: their numbers in the set */
    struct hvd__slice *shares; /* owned, [set size] */
    unsigned char *buffer; /* what the phase has packed, in fusion or temporary;
                              NULL: tensors are used in place */
    unsigned char *temporary; /* owned; for what is too large for fusion */
    struct hvd__collective collective;
};

struct hvd__executor {
    struct hvd__lane lanes[HVD__LANES];
    struct hvd__batch *waiting; /* owned list, oldest first */
    struct hvd__batch **waiting_tail;
    int64_t nbatches;   /* batches so far; number of the next */
    int nunfinished;    /* batches waiting or in a lane */
    int64_t bytes_done; /* since hvd__executor_take_bytes */
};

/* Returns the reduction of a signature. An average divides by divisor. */
static inline struct hvd__reduction hvd__reduction_of(
    const struct hvd__signature *s, int divisor)
{
    return (struct hvd__reduction){.dtype = s->dtype,
                                   .op = s->op,
                                   .prescale = s->prescale,
                                   .postscale = s->postscale,
                                   .divisor = divisor};
}

/* Allocates set->executor. On HVD_ERR_MEMORY, hvd__executor_free frees what was
 * allocated. */
int hvd__executor_new(struct hvd__set *set);
/* Frees set->executor; a set without one is accepted. */
void hvd__executor_free(struct hvd__set *set);

/* Only the driver calls the next functions. Runs these requests, a list linked
 * by next, after all earlier batches. part is copied and flags the members that
 * take part; NULL: all do. direct_max is the value that all members
 * had when they agreed on the batch. */
int hvd__execute(struct hvd__set *set, struct hvd__request *requests,
                 const int *part, size_t direct_max);
/* Skips the number of a batch in which this rank takes no part. */
void hvd__execute_skip(struct hvd__set *set);

/* Returns true if float sums are made in the order of the ranks: on one host,
 * always. */
bool hvd__keeps_order(const struct hvd__set *set);
/* Returns how many more batches should be agreed on now. The number may be
 * negative. Requests that come meanwhile can be fused with those that wait. */
int hvd__executor_room(const struct hvd__set *set);
bool hvd__executor_is_idle(const struct hvd__set *set);
/* Returns the bytes of requests that are complete since the last call. */
int64_t hvd__executor_take_bytes(struct hvd__set *set);
int hvd__execute_step(struct hvd__set *set, bool *moved);

#endif
