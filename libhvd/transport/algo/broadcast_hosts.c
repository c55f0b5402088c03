/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broadcast_hosts.c - a broadcast over several hosts: the data comes to each
 * host once, and its ranks take it from shared memory.
 *
 * One rank of each host carries the data: the root, and the first rank of each
 * other host. Carriers pass chunks on along a chain of the hosts or a binomial
 * tree, whichever is expected to take less time, and put them into their
 * buffers, where the other ranks of the host fetch them. All of this goes on at
 * once, chunk by chunk:
 *
 *     receive  from the carrier of the parent host, into the output
 *     send     to the carriers of the child hosts
 *     copy     into our buffer, if one is free
 *     fetch    (all other ranks) from the carrier's buffer
 *
 * Any number of hosts and of ranks on each. A chain carries each byte over each
 * link once in each direction. Source: the pipelined chain of Open MPI's coll
 * base, and the binomial tree of Thakur, Rabenseifner and Gropp (2005). Cost on
 * h hosts, m bytes in s chunks: (h − 2 + s)(α + m/s β) for the chain, log2 h
 * (α + m β) for the tree.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/cost.h"
#include "transport/algo/shared.h"
#include "transport/hosts.h"

/* The fewest and the most bytes of a chunk. */
enum { LEAST_BYTES = 8 << 10, MOST_BYTES = 128 << 10, MOST_CHILDREN = 32 };

/* The bits of a segment's phase. MOVED changes with each progress, which is how
 * hvd__collective_step notices it. */
enum { NEW = 0, BEGUN = 1, MOVED = 2 };

static bool applies(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;

    return h && h->shm && c->motion == HVD__SEND_FROM_ROOT &&
           c->workspace->per_segment > MOST_CHILDREN;
}

/* Returns the time until the last host has all chunks. Along a tree the root
 * sends each of them once in every step. */
static int64_t time_of(const struct hvd__collective *c, size_t chunk_bytes,
                       bool chain)
{
    int64_t h = c->team->hosts->n, steps = 0;
    int64_t bytes = (int64_t)hvd__bytes_of(c, c->count);
    int64_t chunk = (int64_t)chunk_bytes, chunks, times;

    while ((int64_t)1 << steps < h)
        steps++;
    chunk = chunk < bytes ? chunk : bytes;
    chunks = chunk > 0 ? (bytes + chunk - 1) / chunk : 0;
    times = chain ? h - 2 + chunks : steps * chunks;
    return hvd__cost_ns(c->team,
                        (struct hvd__cost){.steps = chain ? h - 1 : steps,
                                           .messages = times,
                                           .moved = times * chunk});
}

/* Chunks have the same size on all hosts, because the buffers have. */
static bool goes_along_a_chain(const struct hvd__collective *c)
{
    size_t chunk = c->shared.chunk_bytes;

    return time_of(c, chunk, true) < time_of(c, chunk, false);
}

/* Small chunks fill a chain soon, and large ones are few messages. */
static size_t choose_chunk_bytes(const struct hvd__collective *c)
{
    size_t most = c->team->hosts->shm->bounce_bytes / HVD__BUFFERS;
    size_t best = most < LEAST_BYTES ? most : LEAST_BYTES;
    int64_t least = INT64_MAX;

    for (size_t bytes = best; bytes <= most && bytes <= MOST_BYTES;
         bytes *= 2) {
        int64_t chain = time_of(c, bytes, true);
        int64_t tree = time_of(c, bytes, false);

        if (chain < least || tree < least) {
            best = bytes;
            least = chain < tree ? chain : tree;
        }
    }
    return best;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    hvd__shared_open(c, segment, c->team->hosts->shm, 1, choose_chunk_bytes(c));
    return HVD_OK;
}

/* ---------------------------------------------------------------- the hosts */

static int host_of_root(const struct hvd__collective *c)
{
    int local;

    return hvd__hosts_find(c->team->hosts, c->root, &local);
}

static int carrier_of(const struct hvd__collective *c, int host)
{
    const struct hvd__hosts *h = c->team->hosts;

    return host == host_of_root(c) ? c->root : h->members[h->first[host]];
}

/* Returns the local rank of this host's carrier. */
static int local_carrier(const struct hvd__collective *c)
{
    return hvd__hosts_local(c->team->hosts, carrier_of(c, c->team->hosts->own));
}

static bool is_carrier(const struct hvd__collective *c)
{
    return carrier_of(c, c->team->hosts->own) == c->team->rank;
}

/* Returns the host that this one's data comes from; -1: none. */
static int parent_of(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    int root = host_of_root(c);

    if (h->own == root)
        return -1;
    return goes_along_a_chain(c) ? (h->own - 1 + h->n) % h->n
                                 : hvd__binomial_parent(h->own, root, h->n);
}

static int children_of(const struct hvd__collective *c, int *children)
{
    const struct hvd__hosts *h = c->team->hosts;
    int root = host_of_root(c);

    if (!goes_along_a_chain(c))
        return hvd__binomial_children(h->own, root, h->n, children);
    children[0] = (h->own + 1) % h->n;
    return children[0] != root;
}

/* --------------------------------------------------------- what carriers do */

/* Counts, of chunks: gathered, those that this rank has begun to receive;
 * combined, those that are in the output; summed, those that it has begun to
 * pass on; copied, those in its buffers; fetched, those that have left. */

static struct hvd__transfer *transfers_of(const struct hvd__collective *c,
                                          int64_t k)
{
    return c->workspace->transfers +
           (k % HVD__SEGMENTS) * c->workspace->per_segment;
}

static int receive(struct hvd__collective *c, int parent, int64_t n,
                   bool *moved)
{
    struct hvd__shared *s = &c->shared;
    int done = 1;

    if (parent < 0)
        s->gathered = s->combined = n;
    while (s->gathered < n && s->gathered - s->fetched < HVD__SEGMENTS) {
        struct hvd__slice r = hvd__shared_range(c, 0, s->gathered);

        HVD_TRY(hvd__team_receive(c->team, carrier_of(c, parent), c->tag,
                                  (char *)c->output + r.start, (size_t)r.count,
                                  transfers_of(c, s->gathered)));
        s->gathered++;
        *moved = true;
    }
    while (s->combined < s->gathered &&
           (done = hvd__transfers_done(c->team, transfers_of(c, s->combined),
                                       1)) == 1) {
        s->combined++;
        *moved = true;
    }
    return done;
}

static int pass_on(struct hvd__collective *c, const int *children,
                   int nchildren, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    int done = 1;

    while (s->summed < s->combined && s->summed - s->fetched < HVD__SEGMENTS) {
        struct hvd__slice r = hvd__shared_range(c, 0, s->summed);
        struct hvd__transfer *transfers = transfers_of(c, s->summed);

        for (int i = 0; i < nchildren; i++)
            HVD_TRY(hvd__team_send(c->team, carrier_of(c, children[i]), c->tag,
                                   (char *)c->output + r.start, (size_t)r.count,
                                   &transfers[i]));
        s->summed++;
        *moved = true;
    }
    while (s->fetched < s->summed &&
           (done = hvd__transfers_done(c->team, transfers_of(c, s->fetched),
                                       nchildren)) == 1) {
        s->fetched++;
        *moved = true;
    }
    return done;
}

/* Shows the other ranks of the host what has come. */
static void show(struct hvd__collective *c, bool *moved)
{
    struct hvd__shared *s = &c->shared;

    while (s->copied < s->combined &&
           s->copied - HVD__BUFFERS < HVD__SHARED_LEAST(c, fetched)) {
        struct hvd__slice r = hvd__shared_range(c, 0, s->copied);

        if (s->shm->size > 1)
            memcpy(hvd__shared_buffer(c, s->shm->rank, s->copied, 0),
                   (char *)c->output + r.start, (size_t)r.count);
        hvd__round_set(&s->shm->own->copied, s->round, ++s->copied);
        *moved = true;
    }
}

static int carry(struct hvd__collective *c, int64_t n, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    int children[MOST_CHILDREN];
    int nchildren = children_of(c, children), done;

    done = receive(c, parent_of(c), n, moved);
    if (done >= 0)
        done = pass_on(c, children, nchildren, moved);
    if (done < 0)
        return done;
    show(c, moved);
    return s->copied == n && s->fetched == n;
}

/* ----------------------------------------------------------------- the door */

static int fetch(struct hvd__collective *c, int64_t n, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    int carrier = local_carrier(c);

    while (s->fetched < n &&
           s->fetched <
               hvd__round_get(&s->shm->areas[carrier]->copied, s->round)) {
        struct hvd__slice r = hvd__shared_range(c, 0, s->fetched);

        memcpy((char *)c->output + r.start,
               hvd__shared_buffer(c, carrier, s->fetched, 0), (size_t)r.count);
        hvd__round_set(&s->shm->own->fetched, s->round, ++s->fetched);
        *moved = true;
    }
    return s->fetched == n;
}

/* A carrier fetches nothing, so that nobody need wait for it. */
static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__shared *s = &c->shared;
    int64_t n = hvd__shared_nchunks(c);
    bool moved = false;
    int done;

    (void)before;
    if (segment->phase == NEW) {
        if (!hvd__shm_may_begin(s->shm, s->round))
            return 0;
        memset(c->workspace->transfers, 0,
               HVD__SEGMENTS * (size_t)c->workspace->per_segment *
                   sizeof *c->workspace->transfers);
        segment->phase = BEGUN;
    }
    done = is_carrier(c) ? carry(c, n, &moved) : fetch(c, n, &moved);
    if (moved)
        segment->phase ^= MOVED;
    if (done == 1)
        hvd__shm_finish(s->shm, s->round);
    return done;
}

const struct hvd__algorithm hvd__broadcast_hosts = {
    .name = "hosts",
    .description = "broadcasts to one rank of each host, and in shared memory; "
                   "any size",
    .applies = applies,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};
