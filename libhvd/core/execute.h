/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execute.h - carrying out what was agreed: batches of requests, each as one
 * collective, in the order that all ranks follow.
 */
#ifndef HVD_CORE_EXECUTE_H
#define HVD_CORE_EXECUTE_H

#include "core/request.h"
#include "transport/algo/algo.h"

struct hvd__world;

/* Batches that are under way at the same time. With two, one is packed or
 * unpacked while the other travels. */
enum { HVD__LANES = 2 };

struct hvd__batch {
    struct hvd__batch *next;
    struct hvd__entry *entries; /* list by next, borrowed: in flight */
    int64_t number;             /* from 0, the same on all ranks */
};

/* What one batch needs while it is under way. */
struct hvd__lane {
    struct hvd__batch *batch;        /* owned; NULL: the lane is free */
    struct hvd__workspace workspace; /* owned */
    unsigned char *fusion;           /* owned, of settings.fusion_threshold */
    bool packed;                     /* the collective works in fusion */
    struct hvd__collective collective;
};

struct hvd__executor {
    struct hvd__lane lanes[HVD__LANES];
    struct hvd__batch *waiting; /* owned list, oldest first */
    struct hvd__batch **waiting_tail;
    int64_t nbatches; /* given so far: number of the next */
    int nunfinished;  /* waiting or in a lane */
};

int hvd__executor_init(struct hvd__executor *executor, int nranks,
                       size_t fusion_threshold);
void hvd__executor_fini(struct hvd__executor *executor);

/* All driver's. Run these entries, a list by next, after what was given
 * before. */
int hvd__execute(struct hvd__world *world, struct hvd__entry *entries);
int hvd__execute_step(struct hvd__world *world, bool *moved);

#endif
