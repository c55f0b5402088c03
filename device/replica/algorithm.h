/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algorithm.h - the cost of a sum over replicas by each algorithm
 * (ipu_replica.h). The values are always added in the order of the replicas, so
 * that an algorithm changes no bit of them.
 */
#ifndef IPU_REPLICA_ALGORITHM_H
#define IPU_REPLICA_ALGORITHM_H

#include "ipu.h"

/* The replicas that sum a tensor. */
struct ipu__group {
    const ipu_system *system;
    int32_t algorithm; /* an ipu_cross_replica_algorithm */
    int32_t replicas;
    int32_t shards; /* IPUs of each, from one replica to the next */
};

/* Sets cycles to the time of a sum. Adds the bytes that the replica that sends
 * most sends to sent. */
int ipu__group_cycles(const struct ipu__group *group, int64_t bytes,
                      int64_t *sent, int64_t *cycles);

#endif
