/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready.h - the coordinator's list of requests that all members have agreed on
 * and that wait for a free lane.
 */
#ifndef HVD_CORE_READY_H
#define HVD_CORE_READY_H

#include "core/agree/fuse.h"
#include "core/agree/proposal.h"
#include "core/agree/tune.h"
#include "core/agree/wire.h"

struct hvd__ready {
    int nranks;
    struct hvd__item *first; /* list, by priority, then by time */
    struct hvd__item *last;
};

void hvd__ready_fini(struct hvd__ready *ready);

/* Adds the items of a proposal that is in no table. It is freed with the last
 * of them. Members that have not announced it take no part. */
void hvd__ready_add(struct hvd__ready *ready, struct hvd__proposal *proposal);

/* Returns true if the first request moves nothing and so needs no lane. The
 * list must not be empty. */
bool hvd__ready_is_barrier(const struct hvd__ready *ready);

/* Writes the next batch as a record and removes its requests. A batch of
 * several has at most knobs->fusion_threshold bytes. The list must not be
 * empty. */
void hvd__ready_write_batch(struct hvd__ready *ready,
                            const struct hvd__knobs *knobs,
                            struct hvd__writer *out);

#endif
