/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry_chain.c - sums over hosts for one rank: the sums of a slice pass from
 * host to host, each of which adds its own, and end on the root's host.
 *
 * Any number of hosts. Chunks follow each other along the chain, so each byte
 * crosses each link once in each direction, however many hosts there are.
 * Source: the pipelined chain of Open MPI's coll base. Cost on h hosts, m bytes
 * of a slice in s chunks: (h − 2 + s)(α + m/s (β + γ)).
 *
 * The sum of the host that is furthest from the root comes first. A sum of
 * 16-bit floats would be rounded on every host, so of three hosts or more it is
 * not made this way.
 */
#include "base/status.h"
#include "transport/algo/carry.h"

/* A host takes what the one before it has summed, and then sends its own. */
enum { TAKE, GIVE, NPHASES };

static int host_of_root(const struct hvd__collective *c)
{
    int local;

    return hvd__hosts_find(c->team->hosts, c->root, &local);
}

/* Returns the hosts between this one and the root's, that one included. */
static int distance(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;

    return (h->own - host_of_root(c) + h->n) % h->n;
}

static bool takes(const struct hvd__collective *c)
{
    return distance(c) < c->team->hosts->n - 1;
}

static int nphases(const struct hvd__carry *carry, const struct hvd__hosts *h)
{
    (void)carry, (void)h;
    return NPHASES;
}

static int ntransfers(const struct hvd__hosts *h)
{
    (void)h;
    return 1;
}

static bool goes_along(const struct hvd__collective *c, size_t chunk_bytes)
{
    (void)chunk_bytes;
    return !c->narrows && hvd__carry_rounds_once(c);
}

static struct hvd__cost cost(const struct hvd__carry *carry,
                             const struct hvd__hosts *h, int64_t bytes,
                             int64_t narrow_bytes)
{
    (void)carry, (void)narrow_bytes;
    return (struct hvd__cost){
        .steps = h->n - 1,
        .messages = 1,
        .moved = bytes,
        .reduced = bytes,
    };
}

static int start(const struct hvd__carry *carry, struct hvd__collective *c,
                 const struct hvd__carried *s, int phase,
                 struct hvd__transfer *transfers)
{
    const struct hvd__hosts *h = c->team->hosts;
    size_t bytes = hvd__bytes_of(c, s->count);

    (void)carry;
    if (phase == TAKE && takes(c))
        return hvd__team_receive(c->team,
                                 hvd__carry_peer(c, s, (h->own + 1) % h->n),
                                 c->tag, s->scratch, bytes, transfers);
    if (phase == GIVE && distance(c) > 0)
        return hvd__team_send(c->team,
                              hvd__carry_peer(c, s, (h->own + h->n - 1) % h->n),
                              c->tag, s->range, bytes, transfers);
    return HVD_OK;
}

static void finish(const struct hvd__carry *carry, struct hvd__collective *c,
                   const struct hvd__carried *s, int phase)
{
    void *mine = s->range;
    const void *sources[] = {s->scratch, mine};
    struct hvd__reduction reduction = hvd__carry_reduction(c, distance(c) == 0);

    (void)carry;
    if (phase == TAKE && takes(c))
        hvd__timed_reduce(&c->computing_ns, &reduction, &mine, 1, sources, 2,
                          s->count);
}

const struct hvd__carry hvd__carry_chain = {
    .to_root = true,
    .applies = goes_along,
    .ntransfers = ntransfers,
    .nphases = nphases,
    .cost = cost,
    .start = start,
    .finish = finish,
};
