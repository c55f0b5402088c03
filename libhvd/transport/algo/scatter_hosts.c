/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scatter_hosts.c - reductions of shares over several hosts: each host sums its
 * data first, so that a share crosses the network once a host, however many
 * ranks a host has.
 *
 * On each host, every share has one rank that carries it: that of the share's
 * owner's number on its host, modulo the number of ranks. Shares are cut into
 * chunks. Chunk k of all shares passes through these steps:
 *
 *     copy     the rank copies the chunks that others of its host carry from
 *              its input into its buffer
 *     sum      the rank sums the chunks that it carries over all ranks of its
 *              host, and sends each to the share's owner, if that is on another
 *              host
 *     reduce   the owner reduces what has come from the other hosts and what
 *              it has summed itself, in the order of the hosts, to its output
 *
 * Steps of different chunks overlap: while one is on the network, the next is
 * summed.
 *
 * Restrictions: any number of hosts and of ranks on each, as far as the
 * workspace suffices. As in reduce_hosts.c, floating-point sums are made on
 * each host first, and no average of integers is made here. Source: the
 * "pairwise" reduce-scatter of Thakur, Rabenseifner and Gropp (2005), between
 * hosts. Cost on h hosts of n ranks, m bytes in all: (h−1)α + m(h−1)/(hn) β +
 * m(1 + 1/n) γ a rank.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/shared.h"
#include "transport/hosts.h"

/* Small tensors are quicker without a detour. */
enum { SMALL_BYTES = 64 << 10 };

/* Chunks of CHUNK_BYTES make up for the cost of a message, and enough of them
 * are under way to keep a link busy. */
enum { CHUNK_BYTES = 256 << 10, LEAST_BYTES = 64 };

/* The bits of a segment's phase. MOVED changes with each progress, which is how
 * hvd__collective_step notices it. */
enum { NEW = 0, BEGUN = 1, MOVED = 2 };

static size_t chunk_bytes(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    size_t bytes = h->shm->bounce_bytes / HVD__BUFFERS / (size_t)c->team->size;
    size_t most = c->workspace->segment_bytes / (size_t)(h->n - 1);

    if (most > CHUNK_BYTES)
        most = CHUNK_BYTES;
    return (bytes < most ? bytes : most) / 64 * 64;
}

/* A rank receives its share from each other host, and sends those that it
 * carries. */
static bool scatters_over_hosts(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    int carried;

    if (!h || h->widest == 1 || c->motion != HVD__REDUCE_TO_SHARES ||
        !hvd__reduction_nests(&c->reduction, c->same_order) ||
        hvd__bytes_of(c, c->count) <= SMALL_BYTES)
        return false;
    carried = (h->widest + h->narrowest - 1) / h->narrowest;
    return (1 + carried) * (h->n - 1) <= c->workspace->per_segment &&
           chunk_bytes(c) >= LEAST_BYTES;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    hvd__shared_open(c, segment, c->team->hosts->shm, c->team->size,
                     chunk_bytes(c));
    return HVD_OK;
}

/* Returns the number of chunks of the largest share. */
static int64_t count_chunks(const struct hvd__collective *c)
{
    int64_t most = hvd__shared_chunk_count(c);

    return (hvd__largest_share(c, c->team->size) + most - 1) / most;
}

static unsigned char *own_buffer(const struct hvd__collective *c, int64_t k,
                                 int rank)
{
    return hvd__shared_buffer(c, c->shared.shm->rank, k, rank);
}

/* Returns whether this rank carries the share of a member of a host. */
static bool is_carried(const struct hvd__collective *c, int local)
{
    return local % c->shared.shm->size == c->shared.shm->rank;
}

static int member(const struct hvd__hosts *h, int host, int local)
{
    return h->members[h->first[host] + local];
}

/* -------------------------------------------------------------- on one host */

/* Copies the chunks that other ranks of the host carry. */
static void copy_chunk(const struct hvd__collective *c, int64_t k)
{
    const struct hvd__hosts *h = c->team->hosts;

    for (int host = 0; host < h->n; host++)
        for (int local = 0; local < hvd__hosts_size(h, host); local++) {
            int rank = member(h, host, local);
            struct hvd__slice r = hvd__shared_range(c, rank, k);

            if (!is_carried(c, local) && r.count > 0)
                memcpy(own_buffer(c, k, rank),
                       (const char *)c->input + hvd__bytes_of(c, r.start),
                       hvd__bytes_of(c, r.count));
        }
}

/* Sums a chunk of a share over the ranks of this host. */
static void sum_chunk(struct hvd__collective *c, int64_t k, int rank)
{
    const struct hvd__shm *shm = c->shared.shm;
    struct hvd__slice r = hvd__shared_range(c, rank, k);
    struct hvd__reduction reduction = c->reduction;
    const void **sources = c->workspace->sources;
    void *target = own_buffer(c, k, rank);

    if (r.count == 0)
        return;
    reduction.postscale = 1;
    if (reduction.op == HVD_AVERAGE)
        reduction.op = HVD_SUM;
    for (int i = 0; i < shm->size; i++)
        sources[i] = hvd__shared_buffer(c, i, k, rank);
    sources[shm->rank] = (const char *)c->input + hvd__bytes_of(c, r.start);
    hvd__timed_reduce(&c->computing_ns, &reduction, &target, 1, sources,
                      shm->size, r.count);
}

/* -------------------------------------------------------- between the hosts */

static struct hvd__transfer *transfers_of(const struct hvd__collective *c,
                                          int64_t k)
{
    return c->workspace->transfers +
           (k % HVD__SEGMENTS) * c->workspace->per_segment;
}

static unsigned char *scratch_of(const struct hvd__collective *c, int64_t k)
{
    return c->workspace->scratch +
           (size_t)(k % HVD__SEGMENTS) * c->workspace->segment_bytes;
}

/* Sums what this rank carries of chunk k, sends it to its owners, and receives
 * this rank's own from the other hosts. */
static int sum_and_send(struct hvd__collective *c, int64_t k)
{
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__transfer *transfer = transfers_of(c, k);
    size_t own = hvd__bytes_of(c, hvd__shared_range(c, c->team->rank, k).count);
    unsigned char *in = scratch_of(c, k);

    memset(transfer, 0, (size_t)c->workspace->per_segment * sizeof *transfer);
    for (int i = 1; i < h->n; i++, in += own)
        HVD_TRY(hvd__team_receive(
            c->team,
            hvd__hosts_carrier(h, (h->own + i) % h->n, c->shared.shm->rank),
            c->tag, in, own, transfer++));
    sum_chunk(c, k, c->team->rank);
    /* Every host begins with another. */
    for (int i = 1; i <= h->n; i++) {
        int host = (h->own + h->n - i) % h->n;

        for (int local = c->shared.shm->rank; local < hvd__hosts_size(h, host);
             local += c->shared.shm->size) {
            int rank = member(h, host, local);

            if (host == h->own)
                continue;
            sum_chunk(c, k, rank);
            HVD_TRY(hvd__team_send(
                c->team, rank, c->tag, own_buffer(c, k, rank),
                hvd__bytes_of(c, hvd__shared_range(c, rank, k).count),
                transfer++));
        }
    }
    return HVD_OK;
}

/* Reduces this rank's chunk over all hosts, in their order. */
static void reduce_hosts(struct hvd__collective *c, int64_t k)
{
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__reduction reduction = c->reduction;
    struct hvd__slice r = hvd__shared_range(c, c->team->rank, k);
    const void **sources = c->workspace->sources;
    unsigned char *in = scratch_of(c, k);
    void *target =
        (char *)c->output + hvd__bytes_of(c, k * hvd__shared_chunk_count(c));

    if (r.count == 0)
        return;
    reduction.prescale = 1;
    for (int i = 1; i < h->n; i++, in += hvd__bytes_of(c, r.count))
        sources[(h->own + i) % h->n] = in;
    sources[h->own] = own_buffer(c, k, c->team->rank);
    hvd__timed_reduce(&c->computing_ns, &reduction, &target, 1, sources, h->n,
                      r.count);
}

/* ----------------------------------------------------------------- the door */

/* Counts, of chunks: copied; summed, and published as combined; combined, those
 * of which this rank has its share and the owners have theirs. A buffer may be
 * written again when all ranks of the host have summed the chunk that was in
 * it, and what was sent from it has left. */
static int move_chunks(struct hvd__collective *c, int64_t n, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    struct hvd__area *own = s->shm->own;

    if (s->copied < n && s->copied - HVD__BUFFERS < s->combined &&
        s->copied - HVD__BUFFERS < HVD__SHARED_LEAST(c, combined)) {
        copy_chunk(c, s->copied);
        hvd__round_set(&own->copied, s->round, ++s->copied);
        *moved = true;
    }
    if (s->summed < s->copied && s->summed < HVD__SHARED_LEAST(c, copied) &&
        s->summed - s->combined < HVD__SEGMENTS) {
        HVD_TRY(sum_and_send(c, s->summed));
        hvd__round_set(&own->combined, s->round, ++s->summed);
        *moved = true;
    }
    while (s->combined < s->summed) {
        int done = hvd__transfers_done(c->team, transfers_of(c, s->combined),
                                       c->workspace->per_segment);

        if (done <= 0)
            return done;
        reduce_hosts(c, s->combined);
        s->combined++;
        *moved = true;
    }
    return HVD_OK;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__shared *s = &c->shared;
    int64_t n = count_chunks(c);
    bool moved = true, any = false;

    (void)before;
    if (segment->phase == NEW && !hvd__shm_may_begin(s->shm, s->round))
        return 0;
    segment->phase |= BEGUN;
    while (moved) {
        moved = false;
        HVD_TRY(move_chunks(c, n, &moved));
        any |= moved;
    }
    if (any)
        segment->phase ^= MOVED;
    if (s->combined < n)
        return 0;
    hvd__shm_finish(s->shm, s->round);
    return 1;
}

const struct hvd__algorithm hvd__scatter_hosts = {
    .name = "hosts",
    .description = "a share a rank reduced in shared memory on each host, then "
                   "between hosts; larger ones",
    .applies = scatters_over_hosts,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};
