/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinator.h - rank 0's knowledge of what all ranks have submitted, and
 * its decisions: no I/O, one thread.
 */
#ifndef HVD_CORE_COORDINATOR_H
#define HVD_CORE_COORDINATOR_H

#include "core/wire.h"

struct hvd__coordinator;

/* threshold: most bytes of a batch of several. NULL: out of memory. */
struct hvd__coordinator *hvd__coordinator_new(int nranks, size_t threshold);
void hvd__coordinator_free(struct hvd__coordinator *coordinator);

/* What a rank says. The texts are copied. HVD_ERR_MEMORY; HVD_ERR_INTERNAL
 * for leaving twice. */
int hvd__coordinator_announce(struct hvd__coordinator *coordinator, int rank,
                              const char *key,
                              const struct hvd__signature *signature);
int hvd__coordinator_refuse(struct hvd__coordinator *coordinator, int rank,
                            const char *key, int status, const char *text);
int hvd__coordinator_leave(struct hvd__coordinator *coordinator, int rank);
void hvd__coordinator_break(struct hvd__coordinator *coordinator, int rank,
                            int status, const char *text);

/*
 * The decisions due, as records to be sent to every rank: all failures, and
 * at most room batches (barriers, which move nothing, take no room). The
 * coordinator's own; the caller takes the bytes by clearing it, or calls
 * again later and gets these and more.
 */
struct hvd__writer *hvd__coordinator_decide(
    struct hvd__coordinator *coordinator, int room);

#endif
