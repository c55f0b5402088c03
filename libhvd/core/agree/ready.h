/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready.h - the coordinator's list of requests that all members have agreed on
 * and that wait for a free lane.
 */
#ifndef HVD_CORE_READY_H
#define HVD_CORE_READY_H

#include "core/agree/fuse.h"
#include "core/agree/wire.h"

/* One request, of a submission of that key. */
struct hvd__item {
    uint64_t key;
    int index; /* in its group */
    int32_t priority;
    struct hvd__signature signature;

    /* Filled by hvd__ready_add. */
    struct hvd__item *next;
    size_t bytes;     /* of the fusion buffer */
    int *absent;      /* owned, [nranks]: who takes no part; NULL: all do */
    int64_t *numbers; /* owned, [nranks]: what they carry; NULL: nothing */
};

struct hvd__ready {
    int nranks;
    struct hvd__item *first; /* owned list, by priority, then by time */
    struct hvd__item *last;
    int n;
    struct hvd__fusee *fusees; /* owned scratch, [capacity] */
    bool *taken;               /* likewise */
    int capacity;
};

void hvd__ready_init(struct hvd__ready *ready, int nranks);
void hvd__ready_fini(struct hvd__ready *ready);

/*
 * Add a copy of item. submitted, or NULL if all have: 0 for members that take
 * no part. numbers, or NULL: what member r carries is numbers[r * stride].
 * HVD_ERR_MEMORY.
 */
int hvd__ready_add(struct hvd__ready *ready, const struct hvd__item *item,
                   const int *submitted, const int64_t *numbers, int stride);

/* Returns true if the first request moves nothing and so needs no lane. There
 * is one. */
bool hvd__ready_is_barrier(const struct hvd__ready *ready);

/* Write the next batch, of at most threshold bytes if it is of several, as a
 * record, and forget its requests. There is one. */
void hvd__ready_write_batch(struct hvd__ready *ready, size_t threshold,
                            struct hvd__writer *out);

#endif
