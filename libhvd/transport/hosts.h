/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hosts.h - the members of a team by host. The members on each host share
 * memory.
 */
#ifndef HVD_TRANSPORT_HOSTS_H
#define HVD_TRANSPORT_HOSTS_H

#include "transport/shm/shm.h"

struct hvd__hosts {
    struct hvd__shm *shm; /* segment of the members on this host; owned if no
                             host has two, else borrowed; NULL: none */
    int n;                /* number of hosts, at least two */
    int own;              /* index of this rank's host */
    int widest;           /* members of the host with most */
    int narrowest;
    int group;    /* the largest power of two such that groups of as many
                     members, 0 to group-1 and so on, are each on one host and
                     follow each other in members; the last may be smaller */
    bool is_one;  /* all members are on one host, where they share no memory */
    int *first;   /* owned, [n + 1]: start of each host in members */
    int *members; /* owned, [team size]: members in the team, host by host,
                     ascending */
    int *places;  /* owned, [team size]: each member's place in members */
};

/* Groups a team of size, in which this rank is rank. host_of[i] is a number
 * that the members of one host have, and no others. Returns NULL if memory runs
 * out. */
struct hvd__hosts *hvd__hosts_new(int size, int rank, const int *host_of);
/* Makes the segments of hosts of one member each, for buffers of bounce bytes.
 * Returns false if memory runs out. */
bool hvd__hosts_be_alone(struct hvd__hosts *hosts, size_t bounce);
/* Accepts NULL. */
void hvd__hosts_free(struct hvd__hosts *hosts);

static inline int hvd__hosts_size(const struct hvd__hosts *hosts, int host)
{
    return hosts->first[host + 1] - hosts->first[host];
}

/* Returns the host of a member. *local becomes its number on that host. */
int hvd__hosts_find(const struct hvd__hosts *hosts, int member, int *local);

/* Returns the number, on this host, of one of its members. */
static inline int hvd__hosts_local(const struct hvd__hosts *hosts, int member)
{
    return hosts->places[member] - hosts->first[hosts->own];
}

/* Returns true if a member is the first of its host, which speaks for it. */
static inline bool hvd__hosts_speaks(const struct hvd__hosts *hosts, int member)
{
    return hosts->members[hosts->first[hosts->own]] == member;
}

/* Returns the member of a host that carries a slice to and from other hosts. */
static inline int hvd__hosts_carrier(const struct hvd__hosts *hosts, int host,
                                     int slice)
{
    return hosts
        ->members[hosts->first[host] + slice % hvd__hosts_size(hosts, host)];
}

#endif
