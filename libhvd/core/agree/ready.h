/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready.h - the coordinator's list of requests that all members have agreed on
 * and that wait for a free lane.
 */
#ifndef HVD_CORE_READY_H
#define HVD_CORE_READY_H

#include "core/agree/fuse.h"
#include "core/agree/wire.h"

/* One request of the submission with that key. */
struct hvd__item {
    uint64_t key;
    int index; /* index in its group */
    int32_t priority;
    struct hvd__signature signature;

    /* Filled by hvd__ready_add. */
    struct hvd__item *next;
    size_t bytes; /* space in the fusion buffer */
    int *absent;  /* owned, [nranks]: members that take no part; NULL: all take
                     part */
    int64_t *numbers; /* owned, [nranks]: numbers that they carry; NULL: none */
};

struct hvd__ready {
    int nranks;
    struct hvd__item *first; /* owned list, by priority, then by time */
    struct hvd__item *last;
};

void hvd__ready_init(struct hvd__ready *ready, int nranks);
void hvd__ready_fini(struct hvd__ready *ready);

/*
 * Adds a copy of item. submitted is 0 for members that take no part; it is NULL
 * if all take part. Member r carries numbers[r * stride]; numbers may be NULL.
 * Fails with HVD_ERR_MEMORY.
 */
int hvd__ready_add(struct hvd__ready *ready, const struct hvd__item *item,
                   const int *submitted, const int64_t *numbers, int stride);

/* Returns true if the first request moves nothing and so needs no lane. The
 * list must not be empty. */
bool hvd__ready_is_barrier(const struct hvd__ready *ready);

/* Writes the next batch as a record and removes its requests. A batch of
 * several has at most threshold bytes. The list must not be empty. */
void hvd__ready_write_batch(struct hvd__ready *ready, size_t threshold,
                            struct hvd__writer *out);

#endif
