/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - which ranks share a host: pure functions.
 */
#ifndef HVD_CORE_TOPOLOGY_H
#define HVD_CORE_TOPOLOGY_H

struct hvd__topology {
    int local_rank; /* ranks of my host that are lower than mine */
    int local_size; /* ranks of my host */
    int cross_rank; /* hosts before mine that have my local rank too */
    int cross_size; /* hosts that have my local rank */
};

/* host(context, r) is a string that is the same for ranks of one host and
 * only for them. Hosts are ordered by their lowest rank. */
struct hvd__topology hvd__topology_of(int rank, int nranks,
                                      const char *(*host)(const void *context,
                                                          int rank),
                                      const void *context);

#endif
