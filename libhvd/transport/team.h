/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.h - the ranks that take part in a collective: some ranks of the world,
 * in ascending order, numbered from 0. Algorithms know only these numbers.
 */
#ifndef HVD_TRANSPORT_TEAM_H
#define HVD_TRANSPORT_TEAM_H

#include "transport/transport.h"

struct hvd__costs;
struct hvd__hosts;
struct hvd__shm;

struct hvd__team {
    struct hvd__transport *transport; /* borrowed */
    const int *world; /* borrowed, [size]: their ranks in the world */
    int rank;         /* this process's number in the team */
    int size;
    struct hvd__shm *shm;           /* borrowed; NULL: not all on one host */
    const struct hvd__hosts *hosts; /* borrowed; NULL: on one host, or where
                                       memory is not shared */
    const struct hvd__costs *costs; /* borrowed; NULL: the default ones */
    bool is_near;                   /* all members are on one host */
};

/* Sends a part of a tensor, which the transport's counter counts. */
static inline int hvd__team_send(const struct hvd__team *team, int peer,
                                 int tag, const void *data, size_t bytes,
                                 struct hvd__transfer *transfer)
{
    atomic_int_fast64_t *sent_bytes = team->transport->sent_bytes;

    if (sent_bytes && peer != team->rank)
        atomic_fetch_add_explicit(sent_bytes, (int_fast64_t)bytes,
                                  memory_order_relaxed);
    return team->transport->send(team->transport, team->world[peer], tag, data,
                                 bytes, transfer);
}

static inline int hvd__team_receive(const struct hvd__team *team, int peer,
                                    int tag, void *data, size_t bytes,
                                    struct hvd__transfer *transfer)
{
    return team->transport->receive(team->transport, team->world[peer], tag,
                                    data, bytes, transfer);
}

/* Return the i-th partner, 1 <= i < size, to send to and to receive from. Every
 * rank begins with a different one, so that no rank gets all messages at
 * once. */
static inline int hvd__team_to(const struct hvd__team *team, int i)
{
    return (team->rank + i) % team->size;
}

static inline int hvd__team_from(const struct hvd__team *team, int i)
{
    return (team->rank - i + team->size) % team->size;
}

#endif
