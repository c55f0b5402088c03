/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_hosts.c - allreduce over several hosts: what is on one host is
 * reduced in its shared memory first, so that each byte crosses the network
 * once, whatever the number of ranks of a host.
 *
 * The tensor is cut into as many slices as the widest host has ranks. On each
 * host every slice has a rank that carries it; a host of fewer ranks has some
 * that carry several. So all ranks use the network at once. Blocks, a range
 * of every slice each, follow each other through these steps:
 *
 *     copy     what others carry, from the input into our slot of the slate
 *     sum      the ranges that we carry, of all ranks of the host
 *     SCATTER  a part of that range to the slice's carrier on each host, whose
 *              part it is to reduce; then
 *     GATHER   the reduced part to all of them
 *     finish   the result into the output, and into our slot
 *     fetch    the results of other carriers, from their slots
 *
 * While one block is on the network the next is summed and the one before is
 * fetched. Cost over h hosts, m bytes a tensor, n ranks a host: each host
 * sends and receives 2m(h-1)/h bytes, and a rank the n-th part of that.
 *
 * Floating sums are made on each host first and then over the hosts: as
 * reproducible as in one place, but not the same bits; 16-bit floats are
 * rounded twice. Only larger tensors go this way; so if sums must not depend
 * on what else moves with them, none of floating-point numbers do. What would
 * be wrong that way (the average of integers, whose sum need not fit) is left
 * to others.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/shared.h"
#include "transport/hosts.h"

enum { SCATTER, GATHER };

static size_t element_of(const struct hvd__collective *c)
{
    return hvd__dtype_bytes(c->reduction.dtype);
}

static size_t block_bytes(const struct hvd__hosts *hosts)
{
    return hosts->slate->bounce_bytes / HVD__BOUNCE_SLOTS /
           (size_t)hosts->widest / 64 * 64;
}

static bool is_floating(const struct hvd__reduction *r)
{
    return r->dtype == HVD_FLOAT16 || r->dtype == HVD_BFLOAT16 ||
           r->dtype == HVD_FLOAT32 || r->dtype == HVD_FLOAT64;
}

/* Whether the result is right that way; and, if it must not depend on how
 * many bytes move at once, the same. */
static bool is_right(const struct hvd__collective *c)
{
    const struct hvd__reduction *r = &c->reduction;

    if (r->op == HVD_MIN || r->op == HVD_MAX)
        return true;
    return is_floating(r) ? !c->same_order
                          : r->op != HVD_AVERAGE && r->postscale == 1;
}

/* Slices that a rank of the narrowest host carries. */
static int most_carried(const struct hvd__hosts *hosts)
{
    return (hosts->widest + hosts->narrowest - 1) / hosts->narrowest;
}

/* Small tensors are quicker without a detour. The rest is memory: enough for
 * the transfers and the parts of a block. */
static bool applies(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    size_t bytes = (size_t)c->count * element_of(c);

    return h && c->motion == HVD__REDUCE_TO_ALL && is_right(c) &&
           h->widest > 1 && bytes > HVD__HOSTS_BYTES &&
           2 * most_carried(h) * (h->n - 1) <= c->workspace->per_segment &&
           block_bytes(h) >= 64 &&
           block_bytes(h) * (size_t)most_carried(h) <= c->workspace->slot_bytes;
}

static int64_t total(const struct hvd__collective *c)
{
    return c->count;
}

static int start(struct hvd__collective *c, struct hvd__segment *segment)
{
    c->shared = (struct hvd__shared){.turn = ++c->team->hosts->slate->turn};
    segment->count = c->total;
    return HVD_OK;
}

/* --------------------------------------------------------------- what is where
 */

static int local_rank(const struct hvd__collective *c)
{
    return c->team->hosts->slate->rank;
}

static int local_size(const struct hvd__collective *c)
{
    return c->team->hosts->slate->size;
}

static int64_t block_count(const struct hvd__collective *c)
{
    return (int64_t)(block_bytes(c->team->hosts) / element_of(c));
}

/* Block k of a slice. */
static struct hvd__slice range_of(const struct hvd__collective *c, int slice,
                                  int64_t k)
{
    struct hvd__slice s =
        hvd__slice_of(c->count, slice, c->team->hosts->widest);
    int64_t most = block_count(c), left = s.count - k * most;

    return (struct hvd__slice){s.start + k * most, left < 0      ? 0
                                                   : left < most ? left
                                                                 : most};
}

static int64_t nblocks(const struct hvd__collective *c)
{
    int64_t most = hvd__slice_of(c->count, 0, c->team->hosts->widest).count;

    return (most + block_count(c) - 1) / block_count(c);
}

/* In a local rank's slot of block k: of a slice. */
static unsigned char *slot(const struct hvd__collective *c, int owner,
                           int64_t k, int slice)
{
    const struct hvd__hosts *h = c->team->hosts;
    size_t bytes = block_bytes(h);

    return hvd__slate_blocks(h->slate, owner) +
           ((size_t)(k % HVD__BOUNCE_SLOTS) * (size_t)h->widest +
            (size_t)slice) *
               bytes;
}

/* The part of block k of a slice that is a host's to reduce. */
static struct hvd__slice part_of(const struct hvd__collective *c, int slice,
                                 int64_t k, int host)
{
    return hvd__slice_of(range_of(c, slice, k).count, host, c->team->hosts->n);
}

/* ------------------------------------------------------------ on one host */

static void copy(const struct hvd__collective *c, int64_t k)
{
    for (int slice = 0; slice < c->team->hosts->widest; slice++) {
        struct hvd__slice r = range_of(c, slice, k);

        if (slice % local_size(c) != local_rank(c) && r.count > 0)
            memcpy(slot(c, local_rank(c), k, slice),
                   (const char *)c->input + (size_t)r.start * element_of(c),
                   (size_t)r.count * element_of(c));
    }
}

/* Dividing and scaling what comes out is left for the end. */
static void sum(struct hvd__collective *c, int64_t k)
{
    struct hvd__reduction reduction = c->reduction;
    const void **sources = c->workspace->sources;

    reduction.postscale = 1;
    if (reduction.op == HVD_AVERAGE)
        reduction.op = HVD_SUM;
    for (int slice = local_rank(c); slice < c->team->hosts->widest;
         slice += local_size(c)) {
        struct hvd__slice r = range_of(c, slice, k);
        void *target = slot(c, local_rank(c), k, slice);

        for (int rank = 0; rank < local_size(c); rank++)
            sources[rank] = slot(c, rank, k, slice);
        sources[local_rank(c)] =
            (const char *)c->input + (size_t)r.start * element_of(c);
        hvd__timed_reduce(&c->computing_ns, &reduction, &target, 1, sources,
                          local_size(c), r.count);
    }
}

static void finish(const struct hvd__collective *c, int64_t k)
{
    for (int slice = local_rank(c); slice < c->team->hosts->widest;
         slice += local_size(c)) {
        struct hvd__slice r = range_of(c, slice, k);

        if (r.count > 0)
            memcpy((char *)c->output + (size_t)r.start * element_of(c),
                   slot(c, local_rank(c), k, slice),
                   (size_t)r.count * element_of(c));
    }
}

static void fetch(const struct hvd__collective *c, int64_t k)
{
    for (int slice = 0; slice < c->team->hosts->widest; slice++) {
        struct hvd__slice r = range_of(c, slice, k);
        int owner = slice % local_size(c);

        if (owner != local_rank(c) && r.count > 0)
            memcpy((char *)c->output + (size_t)r.start * element_of(c),
                   slot(c, owner, k, slice), (size_t)r.count * element_of(c));
    }
}

/* -------------------------------------------------------- between the hosts */

static struct hvd__transfer *transfers_of(const struct hvd__collective *c,
                                          int64_t k)
{
    return c->workspace->transfers +
           (k % HVD__SEGMENTS) * c->workspace->per_segment;
}

/* Parts of other hosts' sums lie here, slice by slice and host by host. */
static unsigned char *scratch_of(const struct hvd__collective *c, int64_t k)
{
    return c->workspace->scratch +
           (size_t)(k % HVD__SEGMENTS) * c->workspace->slot_bytes;
}

/* Start the transfers of a phase: of each slice that we carry, with its
 * carrier on each other host. All do so block by block and slice by slice, so
 * that they match. */
static int exchange(struct hvd__collective *c, int64_t k, int phase)
{
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__transfer *transfer = transfers_of(c, k);
    unsigned char *scratch = scratch_of(c, k);
    size_t element = element_of(c);
    int tag = c->tag + phase;

    memset(transfer, 0, (size_t)c->workspace->per_segment * sizeof *transfer);
    for (int slice = local_rank(c); slice < h->widest; slice += local_size(c)) {
        struct hvd__slice own = part_of(c, slice, k, h->own);
        unsigned char *range = slot(c, local_rank(c), k, slice);

        for (int host = 0; host < h->n; host++) {
            struct hvd__slice theirs = part_of(c, slice, k, host);
            int peer = hvd__hosts_carrier(h, host, slice);
            unsigned char *at = range + (size_t)theirs.start * element;
            unsigned char *mine = range + (size_t)own.start * element;
            size_t own_bytes = (size_t)own.count * element;
            size_t bytes = (size_t)theirs.count * element;

            if (host == h->own)
                continue;
            if (phase == SCATTER) {
                HVD_TRY(hvd__team_receive(c->team, peer, tag, scratch,
                                          own_bytes, transfer++));
                HVD_TRY(
                    hvd__team_send(c->team, peer, tag, at, bytes, transfer++));
                scratch += own_bytes;
            } else {
                HVD_TRY(hvd__team_receive(c->team, peer, tag, at, bytes,
                                          transfer++));
                HVD_TRY(hvd__team_send(c->team, peer, tag, mine, own_bytes,
                                       transfer++));
            }
        }
    }
    return HVD_OK;
}

/* Our part of each range, of all hosts, in their order. */
static void reduce(struct hvd__collective *c, int64_t k)
{
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__reduction reduction = c->reduction;
    const void **sources = c->workspace->sources;
    const unsigned char *scratch = scratch_of(c, k);

    reduction.prescale = 1;
    for (int slice = local_rank(c); slice < h->widest; slice += local_size(c)) {
        struct hvd__slice own = part_of(c, slice, k, h->own);
        unsigned char *mine = slot(c, local_rank(c), k, slice) +
                              (size_t)own.start * element_of(c);
        void *target = mine;

        for (int host = 0; host < h->n; host++) {
            sources[host] = host == h->own ? mine : scratch;
            scratch += host == h->own ? 0 : (size_t)own.count * element_of(c);
        }
        hvd__timed_reduce(&c->computing_ns, &reduction, &target, 1, sources,
                          h->n, own.count);
    }
}

/* The oldest blocks on the network: whether one is back. Gathers begin in the
 * order of the blocks. */
static int step_network(struct hvd__collective *c, bool *moved)
{
    struct hvd__shared *s = &c->shared;

    for (int64_t k = s->combined; k < s->summed; k++) {
        int done = hvd__transfers_done(c->team, transfers_of(c, k),
                                       c->workspace->per_segment);

        if (done < 0)
            return done;
        if (!done)
            return HVD_OK;
        *moved = true;
        if (k < s->gathered) {
            finish(c, k);
            hvd__turn_set(&c->team->hosts->slate->own->combined, s->turn,
                          ++s->combined);
            continue;
        }
        reduce(c, k);
        HVD_TRY(exchange(c, k, GATHER));
        s->gathered = k + 1;
    }
    return HVD_OK;
}

/* ----------------------------------------------------------------- the door */

static int64_t least(const struct hvd__collective *c, size_t count)
{
    return hvd__slate_least(c->team->hosts->slate, c->shared.turn, count);
}
#define LEAST(c, count) least((c), offsetof(struct hvd__part, count))

/* A slot may be written again when all have taken the result of the block
 * that was in it: then nothing of it is wanted any more. */
static int step_local(struct hvd__collective *c, int64_t n, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    struct hvd__part *own = c->team->hosts->slate->own;

    if (s->copied < n && s->copied - HVD__BOUNCE_SLOTS < s->fetched &&
        s->copied - HVD__BOUNCE_SLOTS < LEAST(c, fetched)) {
        copy(c, s->copied);
        hvd__turn_set(&own->copied, s->turn, ++s->copied);
        *moved = true;
    }
    if (s->summed < s->copied && s->summed < LEAST(c, copied) &&
        s->summed - s->combined < HVD__SEGMENTS) {
        sum(c, s->summed);
        HVD_TRY(exchange(c, s->summed, SCATTER));
        s->summed++;
        *moved = true;
    }
    HVD_TRY(step_network(c, moved));
    if (s->fetched < s->combined && s->fetched < LEAST(c, combined)) {
        fetch(c, s->fetched);
        hvd__turn_set(&own->fetched, s->turn, ++s->fetched);
        *moved = true;
    }
    return HVD_OK;
}

static int step(struct hvd__collective *c, struct hvd__segment *segment,
                const struct hvd__segment *before)
{
    struct hvd__slate *slate = c->team->hosts->slate;
    int64_t n = nblocks(c);
    bool moved = true;

    (void)before;
    if (!c->shared.began && !hvd__slate_may_begin(slate, c->shared.turn))
        return 0;
    c->shared.began = true;
    while (moved) {
        moved = false;
        HVD_TRY(step_local(c, n, &moved));
        if (moved)
            segment->phase ^= 1;
    }
    if (c->shared.fetched < n)
        return 0;
    hvd__slate_finish(slate, c->shared.turn);
    return 1;
}

const struct hvd__algorithm hvd__reduce_hosts = {
    .name = "hosts",
    .description = "allreduces in shared memory on each host, then between "
                   "hosts; larger ones",
    .applies = applies,
    .total = total,
    .start = start,
    .step = step,
};
