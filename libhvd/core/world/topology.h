/* SPDX-License-Identifier: Apache-2.0 */
/*
 * topology.h - computes which ranks share a host. The functions are pure.
 */
#ifndef HVD_CORE_TOPOLOGY_H
#define HVD_CORE_TOPOLOGY_H

struct hvd__topology {
    int local_rank; /* number of lower ranks on this rank's host */
    int local_size; /* number of ranks on this rank's host */
    int cross_rank; /* number of earlier hosts that have this local rank */
    int cross_size; /* number of hosts that have this local rank */
};

/* host(context, r) is a string that is the same for ranks of one host and
 * only for them. Hosts are ordered by their lowest rank. */
struct hvd__topology hvd__topology_of(int rank, int nranks,
                                      const char *(*host)(const void *context,
                                                          int rank),
                                      const void *context);

#endif
