/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_hosts.c - allreduces over several hosts. The ranks of a host first
 * reduce their data in shared memory. So each byte crosses the network once,
 * however many ranks a host has.
 *
 * The tensor is cut into slices, as many as the widest host has ranks. On each
 * host, every slice has one rank that carries it to and from the other hosts.
 * On a host with fewer ranks, some ranks carry several slices. All ranks
 * therefore use the network at the same time.
 *
 * Each slice is cut into chunks. Chunk k of all slices passes through these
 * steps:
 *
 *     copy     the rank copies the slices of other carriers from its input into
 *              its buffer
 *     sum      the rank sums its own slices over all ranks of the host
 *     SCATTER  the rank sends each host's carrier a part of its sums, and that
 *              carrier reduces the part over all hosts
 *     GATHER   each carrier sends its reduced part to the other carriers
 *     finish   the rank copies the results of its slices into its output; they
 *              also stay in its buffer
 *     fetch    the rank copies the other results from their carriers' buffers
 *
 * Steps of different chunks overlap: while one chunk is on the network, the
 * next is summed and the one before is fetched.
 *
 * Restrictions: any number of hosts and of ranks on each, as far as the
 * workspace suffices (applies). Source: the hierarchical allreduce of several
 * MPIs, with all ranks of a host as leaders. Cost over h hosts, n ranks a host,
 * m bytes: 2(h−1)α + 2m(h−1)/(hn) β + m(1 + (h−1)/(hn)) γ a rank.
 *
 * The sums of a host may travel as a narrower type. Then they are converted
 * before they are sent, and converted back before they are added. The carrier
 * also converts its own result to that type and back, so that all ranks have
 * the same bits.
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
#include "transport/algo/shared.h"
#include "transport/hosts.h"

enum { SCATTER, GATHER };

/* The bits of a segment's phase. MOVED changes with each progress, which is how
 * hvd__collective_step notices it. */
enum { NEW = 0, BEGUN = 1, MOVED = 2 };

/* Returns the number of slices that a rank of the narrowest host carries. */
static int most_carried(const struct hvd__hosts *hosts)
{
    return (hosts->widest + hosts->narrowest - 1) / hosts->narrowest;
}

/* Returns the bytes of a chunk of a slice: what the buffers hold, and the
 * scratch of who carries most. */
static size_t chunk_bytes(const struct hvd__collective *c)
{
    const struct hvd__hosts *hosts = c->team->hosts;
    size_t bytes =
        hosts->shm->bounce_bytes / HVD__BUFFERS / (size_t)hosts->widest;
    size_t most = c->workspace->segment_bytes / (size_t)most_carried(hosts);

    return (bytes < most ? bytes : most) / 64 * 64;
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

/* Small tensors are quicker without a detour. The other conditions are memory:
 * for the transfers, and for the parts of a chunk, of which each host's may be
 * one element more than an equal share. */
static bool applies(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    size_t bytes = hvd__bytes_of(c, c->count);

    return h && c->motion == HVD__REDUCE_TO_ALL &&
           hvd__reduction_nests(&c->reduction, c->same_order) &&
           h->widest > 1 && bytes > HVD__HOSTS_BYTES &&
           2 * most_carried(h) * (h->n - 1) <= c->workspace->per_segment &&
           chunk_bytes(c) >= hvd__bytes_of(c, (int64_t)h->n * h->n);
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

/* Returns this rank's buffer of chunk k of a slice. */
static unsigned char *own_buffer(const struct hvd__collective *c, int64_t k,
                                 int slice)
{
    return hvd__shared_buffer(c, local_rank(c), k, slice);
}

/* Returns the part of chunk k of a slice that a host reduces. */
static struct hvd__slice part_of(const struct hvd__collective *c, int slice,
                                 int64_t k, int host)
{
    return hvd__slice_of(hvd__shared_range(c, slice, k).count, host,
                         c->team->hosts->n);
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

/* A slice that this rank carries, in chunk k. */
struct carried {
    int slice;
    struct hvd__slice own; /* this rank's part of the range */
    unsigned char *range;  /* in this rank's buffer */
    unsigned char *mine;   /* this rank's part, in the range */
    unsigned char *in;     /* this rank's part, as summed by the other hosts;
                              if it narrows, later their reduced parts */
    unsigned char *out;    /* the data to send, if it narrows */
};

static struct carried carried_of(const struct hvd__collective *c, int slice,
                                 int64_t k)
{
    struct hvd__slice own = part_of(c, slice, k, c->team->hosts->own);
    unsigned char *range = own_buffer(c, k, slice);
    /* Each slice has a chunk's bytes; their upper half is free if all that
     * comes in is half as wide. */
    unsigned char *in =
        c->workspace->scratch +
        (size_t)(k % HVD__SEGMENTS) * c->workspace->segment_bytes +
        (size_t)(slice / local_size(c)) * c->shared.chunk_bytes;

    return (struct carried){
        .slice = slice,
        .own = own,
        .range = range,
        .mine = range + hvd__bytes_of(c, own.start),
        .in = in,
        .out = in + c->shared.chunk_bytes / 2,
    };
}

static size_t wire_bytes(const struct hvd__collective *c)
{
    return c->narrows ? hvd__dtype_bytes(c->wire) : hvd__bytes_of(c, 1);
}

static void narrow(const struct hvd__collective *c, void *to, const void *from,
                   int64_t count)
{
    hvd__convert(c->wire, to, c->reduction.dtype, from, count, 1);
}

static void widen(const struct hvd__collective *c, void *to, const void *from,
                  int64_t count)
{
    hvd__convert(c->reduction.dtype, to, c->wire, from, count, 1);
}

/* Sends each host its part of the sums, and receives this rank's part. */
static int scatter(const struct hvd__collective *c, const struct carried *s,
                   int host, struct hvd__slice theirs, int others,
                   struct hvd__transfer *transfer)
{
    int peer = hvd__hosts_carrier(c->team->hosts, host, s->slice);
    size_t wire = wire_bytes(c), own_bytes = (size_t)s->own.count * wire;
    const unsigned char *at = s->range + hvd__bytes_of(c, theirs.start);

    if (c->narrows) {
        unsigned char *out = s->out + (size_t)theirs.start * wire;

        narrow(c, out, at, theirs.count);
        at = out;
    }
    HVD_TRY(hvd__team_receive(c->team, peer, c->tag + SCATTER,
                              s->in + (size_t)others * own_bytes, own_bytes,
                              transfer));
    return hvd__team_send(c->team, peer, c->tag + SCATTER, at,
                          (size_t)theirs.count * wire, transfer + 1);
}

/* Sends this rank's reduced part and receives the others' parts, in their
 * places or, if it narrows, in s->in. */
static int gather(const struct hvd__collective *c, const struct carried *s,
                  int host, struct hvd__slice theirs,
                  struct hvd__transfer *transfer)
{
    int peer = hvd__hosts_carrier(c->team->hosts, host, s->slice);
    size_t wire = wire_bytes(c);
    unsigned char *base = c->narrows ? s->in : s->range;

    HVD_TRY(hvd__team_receive(c->team, peer, c->tag + GATHER,
                              base + (size_t)theirs.start * wire,
                              (size_t)theirs.count * wire, transfer));
    return hvd__team_send(c->team, peer, c->tag + GATHER,
                          c->narrows ? s->out : s->mine,
                          (size_t)s->own.count * wire, transfer + 1);
}

/* Starts the transfers of a phase. For each slice that this rank carries, they
 * go to and come from its carriers on the other hosts. All ranks start them
 * chunk by chunk and slice by slice, so that they match. */
static int exchange(struct hvd__collective *c, int64_t k, int phase)
{
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__transfer *transfer = transfers_of(c, k);

    memset(transfer, 0, (size_t)c->workspace->per_segment * sizeof *transfer);
    for (int slice = local_rank(c); slice < h->widest; slice += local_size(c)) {
        struct carried s = carried_of(c, slice, k);
        int others = 0;

        for (int host = 0; host < h->n; host++) {
            struct hvd__slice theirs = part_of(c, slice, k, host);

            if (host == h->own)
                continue;
            HVD_TRY(phase == SCATTER
                        ? scatter(c, &s, host, theirs, others++, transfer)
                        : gather(c, &s, host, theirs, transfer));
            transfer += 2;
        }
    }
    return HVD_OK;
}

/* Reduces this rank's part of a range over all hosts, in their order. */
static void reduce_wide(struct hvd__collective *c, const struct carried *s,
                        const struct hvd__reduction *reduction)
{
    const struct hvd__hosts *h = c->team->hosts;
    const void **sources = c->workspace->sources;
    const unsigned char *in = s->in;
    void *target = s->mine;

    for (int host = 0; host < h->n; host++) {
        sources[host] = host == h->own ? s->mine : in;
        in += host == h->own ? 0 : hvd__bytes_of(c, s->own.count);
    }
    hvd__timed_reduce(&c->computing_ns, reduction, &target, 1, sources, h->n,
                      s->own.count);
}

/* Reduces parts that came as the narrower type: adds them one by one to this
 * rank's, in pieces that stay in the cache, and narrows the result. */
static void reduce_narrow(const struct hvd__collective *c,
                          const struct carried *s,
                          const struct hvd__reduction *reduction)
{
    enum { PIECE = 1024 };
    const size_t wire = wire_bytes(c);
    struct hvd__reduction add = *reduction;
    double piece[PIECE];
    int others = c->team->hosts->n - 1;

    add.op = HVD_SUM;
    add.postscale = 1;
    for (int64_t at = 0; at < s->own.count; at += PIECE) {
        int64_t left = s->own.count - at, n = left < PIECE ? left : PIECE;
        unsigned char *mine = s->mine + hvd__bytes_of(c, at);
        const void *sources[] = {mine, piece};

        for (int i = 0; i < others; i++) {
            size_t from = (size_t)i * (size_t)s->own.count + (size_t)at;

            widen(c, piece, s->in + from * wire, n);
            hvd__reduce(i == others - 1 ? reduction : &add, mine, sources, 2,
                        n);
        }
        narrow(c, s->out + (size_t)at * wire, mine, n);
        widen(c, mine, s->out + (size_t)at * wire, n);
    }
}

static void reduce(struct hvd__collective *c, int64_t k)
{
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__reduction reduction = c->reduction;

    reduction.prescale = 1;
    for (int slice = local_rank(c); slice < h->widest; slice += local_size(c)) {
        struct carried s = carried_of(c, slice, k);

        if (c->narrows)
            reduce_narrow(c, &s, &reduction);
        else
            reduce_wide(c, &s, &reduction);
    }
}

/* Widens the parts that other hosts have reduced into this rank's buffer. */
static void take_in(const struct hvd__collective *c, int64_t k)
{
    const struct hvd__hosts *h = c->team->hosts;

    for (int slice = local_rank(c); slice < h->widest; slice += local_size(c)) {
        struct carried s = carried_of(c, slice, k);

        for (int host = 0; host < h->n; host++) {
            struct hvd__slice theirs = part_of(c, slice, k, host);

            if (host != h->own)
                widen(c, s.range + hvd__bytes_of(c, theirs.start),
                      s.in + (size_t)theirs.start * wire_bytes(c),
                      theirs.count);
        }
    }
}

/* Moves the oldest chunks on the network on. Gathers begin in the order of the
 * chunks. */
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
            if (c->narrows)
                take_in(c, k);
            finish(c, k);
            hvd__round_set(&s->shm->own->combined, s->round, ++s->combined);
            continue;
        }
        reduce(c, k);
        HVD_TRY(exchange(c, k, GATHER));
        s->gathered = k + 1;
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
        HVD_TRY(exchange(c, s->summed, SCATTER));
        s->summed++;
        *moved = true;
    }
    HVD_TRY(step_network(c, moved));
    if (s->fetched < s->combined &&
        s->fetched < HVD__SHARED_LEAST(c, combined)) {
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

const struct hvd__algorithm hvd__reduce_hosts = {
    .name = "hosts",
    .description = "allreduces in shared memory on each host, then between "
                   "hosts; larger ones",
    .applies = applies,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
    .narrows = true,
};
