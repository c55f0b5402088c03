/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_hosts.c - allreduces, and reductions to a root, over several hosts.
 * The ranks of a host first reduce their data in shared memory. So each byte
 * crosses the network once, however many ranks a host has.
 *
 * The tensor is cut into slices, as many as the widest host has ranks. On each
 * host, every slice has one rank that carries it to and from the other hosts.
 * On a host with fewer ranks, some ranks carry several slices. All ranks
 * therefore use the network at the same time.
 *
 * Each slice is cut into chunks. Chunk k of all slices passes through these
 * steps:
 *
 *     copy    the rank copies the slices of other carriers from its input into
 *             its buffer
 *     sum     the rank sums its own slices over all ranks of the host
 *     carry   the carriers of a slice make the sums of all hosts of them, in
 *             the phases of one of several ways (carry.h)
 *     finish  the rank copies the results of its slices into its output, if it
 *             wants them; they also stay in its buffer
 *     fetch   a rank that wants them copies the other results from their
 *             carriers' buffers
 *
 * Steps of different chunks overlap: while one chunk is on the network, the
 * next is summed and the one before is fetched.
 *
 * Each way to carry is an algorithm, and the costs decide between them.
 * Restrictions: any number of hosts and of ranks on each, as far as the
 * workspace suffices. Source: the hierarchical allreduce of several MPIs, with
 * all ranks of a host as leaders. Cost over n ranks a host, m bytes: that of
 * the way for m/n bytes, and mγ(1 − 1/n) and copies of 2m more.
 *
 * The sums of a host may travel as a narrower type (carry_all.c).
 *
 * Floating-point sums are made on each host first and then over the hosts. They
 * are as reproducible as sums made in one place, but their bits differ from
 * those, and 16-bit floats are rounded twice. Only larger tensors are reduced
 * this way, and fusion changes the size of what moves. So if a sum must not
 * depend on what moves with it, no floating-point sum is made this way. An
 * average of integers would be wrong, because the sum of a host may not fit its
 * type; other algorithms make it.
 */
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "transport/algo/carry.h"
#include "transport/algo/shared.h"
#include "transport/hosts.h"

/* Small tensors are quicker without a detour. Of larger ones the costs decide:
 * between two hosts of two ranks at 1 Gbit/s, sending 64 KiB twice takes 500 us
 * more. */
enum { SMALL_BYTES = 16 << 10 };

/* The bits of a segment's phase. MOVED changes with each progress, which is how
 * hvd__collective_step notices it. */
enum { NEW = 0, BEGUN = 1, MOVED = 2 };

/* Returns the number of slices that a rank of the narrowest host carries. */
static int most_carried(const struct hvd__hosts *hosts)
{
    return (hosts->widest + hosts->narrowest - 1) / hosts->narrowest;
}

/* Hosts of one rank each have no buffers in shared memory. Their batches move
 * at the same time, so each has its sums in its own scratch, behind what comes.
 */
static bool is_alone(const struct hvd__collective *c)
{
    return c->team->hosts->widest == 1;
}

/* Returns the bytes of a chunk of a slice: what the buffers hold, and the
 * scratch of who carries most. */
static size_t chunk_bytes(const struct hvd__collective *c)
{
    const struct hvd__hosts *hosts = c->team->hosts;
    size_t bytes =
        hosts->shm->bounce_bytes / HVD__BUFFERS / (size_t)hosts->widest;
    size_t most = c->workspace->segment_bytes /
                  (size_t)(is_alone(c) ? 2 : most_carried(hosts));

    return (bytes < most ? bytes : most) / 64 * 64;
}

/* Returns the bytes that so many take between hosts. */
static int64_t narrow_bytes(const struct hvd__collective *c, int64_t bytes)
{
    if (!c->narrows)
        return bytes;
    return bytes / (int64_t)hvd__bytes_of(c, 1) *
           (int64_t)hvd__dtype_bytes(c->wire);
}

/* Integers are scaled and divided in a wider type, of which a host's sum keeps
 * nothing. */
bool hvd__reduction_nests(const struct hvd__reduction *r, bool same_order)
{
    bool selects = r->op == HVD_MIN || r->op == HVD_MAX;

    if (hvd__dtype_is_float(r->dtype))
        return selects || !same_order;
    if (selects)
        return r->prescale == 1 || r->postscale == 1;
    return r->op != HVD_AVERAGE && r->prescale == 1 && r->postscale == 1;
}

/* Hosts of one rank each have nothing to reduce first: their allreduces need no
 * other algorithms than those of ranks, but a chain is one of hosts. */
static bool may_carry(const struct hvd__collective *c,
                      const struct hvd__carry *carry)
{
    const struct hvd__hosts *h = c->team->hosts;
    size_t bytes = hvd__bytes_of(c, c->count);

    return h && h->shm &&
           c->motion ==
               (carry->to_root ? HVD__REDUCE_TO_ROOT : HVD__REDUCE_TO_ALL) &&
           hvd__reduction_nests(&c->reduction, c->same_order) &&
           (h->widest > 1 || carry->to_root) && bytes > SMALL_BYTES &&
           most_carried(h) * carry->ntransfers(h) <=
               c->workspace->per_segment &&
           carry->applies(c, chunk_bytes(c));
}

/* All ranks of a host use its link at the same time, so that what is moved is
 * that of all; each adds up what it carries. On the host the data is copied
 * twice, and added up. */
static int64_t cost(const struct hvd__collective *c,
                    const struct hvd__carry *carry)
{
    const struct hvd__hosts *h = c->team->hosts;
    int64_t bytes = (int64_t)hvd__bytes_of(c, c->count);
    int64_t slice = bytes / h->widest + 1, carried = most_carried(h);
    int64_t chunk = (int64_t)chunk_bytes(c);
    struct hvd__cost all = carry->cost(carry, h, bytes, narrow_bytes(c, bytes));

    all.messages *= carried * ((slice + chunk - 1) / chunk);
    if (carry->to_root) /* until the first chunk has come */
        all.moved += (h->n - 2) * h->widest * (slice < chunk ? slice : chunk);
    all.reduced = all.reduced / h->widest * carried + 3 * bytes - slice;
    all.meetings = 3;
    return hvd__cost_ns(c->team, all);
}

static const struct hvd__carry *carry_of(const struct hvd__collective *c)
{
    if (c->algorithm == &hvd__reduce_hosts_doubling)
        return &hvd__carry_doubling;
    if (c->algorithm == &hvd__reduce_hosts_chain)
        return &hvd__carry_chain;
    return c->algorithm == &hvd__reduce_hosts_halving ? &hvd__carry_halving
                                                      : &hvd__carry_all;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    const struct hvd__hosts *h = c->team->hosts;

    hvd__shared_open(c, segment, h->shm, h->widest, chunk_bytes(c));
    return HVD_OK;
}

static int local_rank(const struct hvd__collective *c)
{
    return c->shared.shm->rank;
}

static int local_size(const struct hvd__collective *c)
{
    return c->shared.shm->size;
}

static unsigned char *scratch_of(const struct hvd__collective *c, int64_t k)
{
    return c->workspace->scratch +
           (size_t)(k % HVD__SEGMENTS) * c->workspace->segment_bytes;
}

/* Returns this rank's buffer of chunk k of a slice. */
static unsigned char *own_buffer(const struct hvd__collective *c, int64_t k,
                                 int slice)
{
    return is_alone(c) ? scratch_of(c, k) + c->shared.chunk_bytes
                       : hvd__shared_buffer(c, local_rank(c), k, slice);
}

/* ------------------------------------------------------------ on one host */

/* Sums the ranges that this rank carries. Dividing and scaling follow at the
 * end. */
static void sum(struct hvd__collective *c, int64_t k)
{
    struct hvd__reduction reduction = c->reduction;
    const void **sources = c->workspace->sources;

    reduction.postscale = 1;
    if (reduction.op == HVD_AVERAGE)
        reduction.op = HVD_SUM;
    for (int slice = local_rank(c); slice < c->team->hosts->widest;
         slice += local_size(c)) {
        struct hvd__slice r = hvd__shared_range(c, slice, k);
        void *target = own_buffer(c, k, slice);

        for (int rank = 0; rank < local_size(c); rank++)
            sources[rank] = hvd__shared_buffer(c, rank, k, slice);
        sources[local_rank(c)] =
            (const char *)c->input + hvd__bytes_of(c, r.start);
        hvd__timed_reduce(&c->computing_ns, &reduction, &target, 1, sources,
                          local_size(c), r.count);
    }
}

static void finish(const struct hvd__collective *c, int64_t k)
{
    if (!hvd__is_wanted(c, c->team->rank))
        return;
    for (int slice = local_rank(c); slice < c->team->hosts->widest;
         slice += local_size(c)) {
        struct hvd__slice r = hvd__shared_range(c, slice, k);

        if (r.count > 0)
            memcpy((char *)c->output + hvd__bytes_of(c, r.start),
                   own_buffer(c, k, slice), hvd__bytes_of(c, r.count));
    }
}

/* -------------------------------------------------------- between the hosts */

static struct hvd__transfer *transfers_of(const struct hvd__collective *c,
                                          int64_t k)
{
    return c->workspace->transfers +
           (k % HVD__SEGMENTS) * c->workspace->per_segment;
}

static struct hvd__carried carried_of(const struct hvd__collective *c,
                                      int slice, int64_t k)
{
    return (struct hvd__carried){
        .slice = slice,
        .count = hvd__shared_range(c, slice, k).count,
        .range = own_buffer(c, k, slice),
        .scratch = scratch_of(c, k) +
                   (size_t)(slice / local_size(c)) * c->shared.chunk_bytes,
        .scratch_bytes = c->shared.chunk_bytes,
    };
}

/* Returns the most transfers that a rank has for a chunk. */
static int ntransfers(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;

    return most_carried(h) * carry_of(c)->ntransfers(h);
}

/* Starts the transfers of a phase, of all slices that this rank carries. All
 * ranks start them chunk by chunk and slice by slice, so that they match. */
static int start_phase(struct hvd__collective *c, int64_t k, int phase)
{
    const struct hvd__carry *carry = carry_of(c);
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__transfer *transfers = transfers_of(c, k);

    c->shared.phases[k % HVD__SEGMENTS] = phase;
    memset(transfers, 0, (size_t)ntransfers(c) * sizeof *transfers);
    for (int slice = local_rank(c); slice < h->widest; slice += local_size(c)) {
        struct hvd__carried carried = carried_of(c, slice, k);

        HVD_TRY(carry->start(carry, c, &carried, phase, transfers));
        transfers += carry->ntransfers(h);
    }
    return HVD_OK;
}

static void finish_phase(struct hvd__collective *c, int64_t k, int phase)
{
    const struct hvd__carry *carry = carry_of(c);

    for (int slice = local_rank(c); slice < c->team->hosts->widest;
         slice += local_size(c)) {
        struct hvd__carried carried = carried_of(c, slice, k);

        carry->finish(carry, c, &carried, phase);
    }
}

/* Moves a chunk on the network on, not further than the one before it. Returns
 * 1 if all its phases are done. */
static int step_chunk(struct hvd__collective *c, int64_t k, bool *moved)
{
    const int *phases = c->shared.phases;
    int last = carry_of(c)->nphases(carry_of(c), c->team->hosts) - 1;

    for (;;) {
        int phase = phases[k % HVD__SEGMENTS];
        int done =
            hvd__transfers_done(c->team, transfers_of(c, k), ntransfers(c));

        if (done <= 0)
            return done;
        if (phase == last && k == c->shared.combined)
            break;
        if (phase == last || (k > c->shared.combined &&
                              phases[(k - 1) % HVD__SEGMENTS] <= phase))
            return 0;
        *moved = true;
        finish_phase(c, k, phase);
        HVD_TRY(start_phase(c, k, phase + 1));
    }
    finish_phase(c, k, last);
    return 1;
}

/* Moves the chunks on the network on. */
static int step_network(struct hvd__collective *c, bool *moved)
{
    struct hvd__shared *s = &c->shared;

    for (int64_t k = s->combined; k < s->summed; k++) {
        int done = step_chunk(c, k, moved);

        if (done < 0)
            return done;
        if (!done)
            continue;
        finish(c, k);
        hvd__round_set(&s->shm->own->combined, s->round, ++s->combined);
        *moved = true;
    }
    return HVD_OK;
}

/* ----------------------------------------------------------------- the door */

/* A buffer may be written again when all ranks have taken the result of the
 * chunk that was in it. */
static int step_local(struct hvd__collective *c, int64_t n, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    struct hvd__area *own = s->shm->own;

    if (s->copied < n && s->copied - HVD__BUFFERS < s->fetched &&
        s->copied - HVD__BUFFERS < HVD__SHARED_LEAST(c, fetched)) {
        hvd__shared_copy(c, s->copied);
        hvd__round_set(&own->copied, s->round, ++s->copied);
        *moved = true;
    }
    if (s->summed < s->copied && s->summed < HVD__SHARED_LEAST(c, copied) &&
        s->summed - s->combined < HVD__SEGMENTS) {
        sum(c, s->summed);
        HVD_TRY(start_phase(c, s->summed, 0));
        s->summed++;
        *moved = true;
    }
    HVD_TRY(step_network(c, moved));
    if (s->fetched < s->combined &&
        s->fetched < HVD__SHARED_LEAST(c, combined)) {
        if (hvd__is_wanted(c, c->team->rank))
            hvd__shared_fetch(c, s->fetched);
        hvd__round_set(&own->fetched, s->round, ++s->fetched);
        *moved = true;
    }
    return HVD_OK;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__shared *s = &c->shared;
    int64_t n = hvd__shared_nchunks(c);
    bool moved = true;

    (void)before;
    if (segment->phase == NEW && !hvd__shm_may_begin(s->shm, s->round))
        return 0;
    segment->phase |= BEGUN;
    while (moved) {
        moved = false;
        HVD_TRY(step_local(c, n, &moved));
        if (moved)
            segment->phase ^= MOVED;
    }
    if (s->fetched < n)
        return 0;
    hvd__shm_finish(s->shm, s->round);
    return 1;
}

static bool all_applies(const struct hvd__collective *c)
{
    return may_carry(c, &hvd__carry_all);
}

static bool doubling_applies(const struct hvd__collective *c)
{
    return may_carry(c, &hvd__carry_doubling);
}

static bool halving_applies(const struct hvd__collective *c)
{
    return may_carry(c, &hvd__carry_halving);
}

static bool chain_applies(const struct hvd__collective *c)
{
    return may_carry(c, &hvd__carry_chain);
}

static int64_t cost_of_all(const struct hvd__collective *c)
{
    return cost(c, &hvd__carry_all);
}

static int64_t cost_of_doubling(const struct hvd__collective *c)
{
    return cost(c, &hvd__carry_doubling);
}

static int64_t cost_of_halving(const struct hvd__collective *c)
{
    return cost(c, &hvd__carry_halving);
}

static int64_t cost_of_chain(const struct hvd__collective *c)
{
    return cost(c, &hvd__carry_chain);
}

const struct hvd__algorithm hvd__reduce_hosts = {
    .name = "hosts",
    .description = "allreduces in shared memory on each host, then between "
                   "all hosts at once; larger ones",
    .applies = all_applies,
    .cost = cost_of_all,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
    .narrows = true,
};

const struct hvd__algorithm hvd__reduce_hosts_doubling = {
    .name = "hosts-doubling",
    .description = "likewise, then all sums with one host after the other",
    .applies = doubling_applies,
    .cost = cost_of_doubling,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};

const struct hvd__algorithm hvd__reduce_hosts_halving = {
    .name = "hosts-halving",
    .description = "likewise, then halves of them, and complete sums back",
    .applies = halving_applies,
    .cost = cost_of_halving,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};

const struct hvd__algorithm hvd__reduce_hosts_chain = {
    .name = "hosts-chain",
    .description = "reductions to a root in shared memory on each host, then "
                   "from host to host; larger ones",
    .applies = chain_applies,
    .cost = cost_of_chain,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};
