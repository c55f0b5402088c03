/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.h - the members of a team by the hosts they are on, where those of
 * each host share memory.
 */
#ifndef HVD_TRANSPORT_HOSTS_H
#define HVD_TRANSPORT_HOSTS_H

#include "transport/shm/shm.h"

struct hvd__hosts {
    struct hvd__shm *shm; /* borrowed: of the members on our host */
    int n;                /* hosts, at least two */
    int own;              /* ours, by the order of first members */
    int widest;           /* members of the host that has most */
    int narrowest;
    int *first;   /* owned, [n + 1]: where a host's members begin in ... */
    int *members; /* owned, [team size]: numbers in the team, host by host,
                     ascending */
};

/* same(context, a, b): whether two members of a team of size, of which we are
 * rank, are on one host. NULL: out of memory. */
struct hvd__hosts *hvd__hosts_new(int size, int rank,
                                  bool (*same)(const void *context, int a,
                                               int b),
                                  const void *context);
/* NULL is accepted. */
void hvd__hosts_free(struct hvd__hosts *hosts);

static inline int hvd__hosts_size(const struct hvd__hosts *hosts, int host)
{
    return hosts->first[host + 1] - hosts->first[host];
}

/* The member of a host that carries a slice to and from the other hosts. */
static inline int hvd__hosts_carrier(const struct hvd__hosts *hosts, int host,
                                     int slice)
{
    return hosts
        ->members[hosts->first[host] + slice % hvd__hosts_size(hosts, host)];
}

#endif
