/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carry_all.c - sums over hosts in two steps: the carriers of a slice send each
 * other a part of it, of which each makes the sums over all hosts, in their
 * order; and then the results.
 *
 * Any number of hosts, as far as the workspace suffices. Cost over h hosts, m
 * bytes of a slice: 2α, if the network takes h−1 messages at once, + 2m(h−1)/h
 * β + m(h−1)/h γ.
 *
 * The sums of a host may travel as a narrower type. Then they are converted
 * before they are sent, and converted back before they are added. The carrier
 * also converts its own result to that type and back, so that all ranks have
 * the same bits. What comes in is then half as wide as scratch, whose upper
 * half is for what is sent.
 */
#include "base/status.h"
#include "transport/algo/carry.h"

enum { SCATTER, GATHER };

/* The parts of a chunk must fit into as much scratch, though each host's may be
 * one element more than an equal share. */
static bool fits(const struct hvd__collective *c, size_t chunk_bytes)
{
    int64_t n = c->team->hosts->n;

    return chunk_bytes >= hvd__bytes_of(c, n * n);
}

static int ntransfers(const struct hvd__hosts *h)
{
    return 2 * (h->n - 1);
}

static int nphases(const struct hvd__carry *carry, const struct hvd__hosts *h)
{
    (void)carry;
    (void)h;
    return 2;
}

static struct hvd__cost cost(const struct hvd__carry *carry,
                             const struct hvd__hosts *h, int64_t bytes,
                             int64_t narrow_bytes)
{
    int64_t peers = h->n - 1;

    (void)carry;
    return (struct hvd__cost){
        .steps = 2,
        .messages = 2 * peers,
        .moved = hvd__cost_at_once(2 * peers * narrow_bytes / h->n,
                                   peers * h->widest),
        .reduced = peers * bytes / h->n,
    };
}

/* -------------------------------------------------------------------- parts */

/* Returns the part of a chunk that a host reduces. */
static struct hvd__slice part_of(const struct hvd__collective *c,
                                 const struct hvd__carried *s, int host)
{
    return hvd__slice_of(s->count, host, c->team->hosts->n);
}

static struct hvd__slice own_part(const struct hvd__collective *c,
                                  const struct hvd__carried *s)
{
    return part_of(c, s, c->team->hosts->own);
}

static size_t wire_bytes(const struct hvd__collective *c)
{
    return c->narrows ? hvd__dtype_bytes(c->wire) : hvd__bytes_of(c, 1);
}

static unsigned char *outgoing(const struct hvd__carried *s)
{
    return s->scratch + s->scratch_bytes / 2;
}

static unsigned char *own_sums(const struct hvd__collective *c,
                               const struct hvd__carried *s)
{
    return s->range + hvd__bytes_of(c, own_part(c, s).start);
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

/* ------------------------------------------------------------------- moving */

/* Sends a host its part of the sums, and receives this host's part. */
static int scatter(const struct hvd__collective *c,
                   const struct hvd__carried *s, int host, int others,
                   struct hvd__transfer *transfers)
{
    int peer = hvd__carry_peer(c, s, host);
    struct hvd__slice theirs = part_of(c, s, host);
    size_t wire = wire_bytes(c), own = (size_t)own_part(c, s).count * wire;
    const unsigned char *at = s->range + hvd__bytes_of(c, theirs.start);

    if (c->narrows) {
        unsigned char *out = outgoing(s) + (size_t)theirs.start * wire;

        narrow(c, out, at, theirs.count);
        at = out;
    }
    HVD_TRY(hvd__team_receive(c->team, peer, c->tag + SCATTER,
                              s->scratch + (size_t)others * own, own,
                              &transfers[0]));
    return hvd__team_send(c->team, peer, c->tag + SCATTER, at,
                          (size_t)theirs.count * wire, &transfers[1]);
}

/* Sends this host's reduced part and receives another's, in its place or, if it
 * narrows, in scratch. */
static int gather(const struct hvd__collective *c, const struct hvd__carried *s,
                  int host, struct hvd__transfer *transfers)
{
    int peer = hvd__carry_peer(c, s, host);
    struct hvd__slice theirs = part_of(c, s, host);
    size_t wire = wire_bytes(c);
    unsigned char *base = c->narrows ? s->scratch : s->range;

    HVD_TRY(hvd__team_receive(c->team, peer, c->tag + GATHER,
                              base + (size_t)theirs.start * wire,
                              (size_t)theirs.count * wire, &transfers[0]));
    return hvd__team_send(c->team, peer, c->tag + GATHER,
                          c->narrows ? outgoing(s) : own_sums(c, s),
                          (size_t)own_part(c, s).count * wire, &transfers[1]);
}

static int start(const struct hvd__carry *carry, struct hvd__collective *c,
                 const struct hvd__carried *s, int phase,
                 struct hvd__transfer *transfers)
{
    const struct hvd__hosts *h = c->team->hosts;
    int others = 0;

    (void)carry;
    for (int host = 0; host < h->n; host++) {
        if (host == h->own)
            continue;
        HVD_TRY(phase == SCATTER
                    ? scatter(c, s, host, others, &transfers[2 * others])
                    : gather(c, s, host, &transfers[2 * others]));
        others++;
    }
    return HVD_OK;
}

/* ---------------------------------------------------------------- computing */

/* Reduces this host's part over all hosts, in their order. */
static void reduce_wide(struct hvd__collective *c, const struct hvd__carried *s,
                        const struct hvd__reduction *reduction)
{
    const struct hvd__hosts *h = c->team->hosts;
    const void **sources = c->workspace->sources;
    const unsigned char *in = s->scratch;
    int64_t count = own_part(c, s).count;
    void *target = own_sums(c, s);

    for (int host = 0; host < h->n; host++) {
        sources[host] = host == h->own ? target : in;
        in += host == h->own ? 0 : hvd__bytes_of(c, count);
    }
    hvd__timed_reduce(&c->computing_ns, reduction, &target, 1, sources, h->n,
                      count);
}

/* Reduces parts that came as the narrower type: adds them one by one to this
 * host's, in pieces that stay in the cache, and narrows the result. */
static void reduce_narrow(const struct hvd__collective *c,
                          const struct hvd__carried *s,
                          const struct hvd__reduction *reduction)
{
    enum { PIECE = 1024 };
    const size_t wire = wire_bytes(c);
    struct hvd__reduction add = *reduction;
    double piece[PIECE];
    int others = c->team->hosts->n - 1;
    int64_t count = own_part(c, s).count;

    add.op = HVD_SUM;
    add.postscale = 1;
    for (int64_t at = 0; at < count; at += PIECE) {
        int64_t left = count - at, n = left < PIECE ? left : PIECE;
        unsigned char *mine = own_sums(c, s) + hvd__bytes_of(c, at);
        const void *sources[] = {mine, piece};

        for (int i = 0; i < others; i++) {
            size_t from = (size_t)i * (size_t)count + (size_t)at;

            widen(c, piece, s->scratch + from * wire, n);
            hvd__reduce(i == others - 1 ? reduction : &add, mine, sources, 2,
                        n);
        }
        narrow(c, outgoing(s) + (size_t)at * wire, mine, n);
        widen(c, mine, outgoing(s) + (size_t)at * wire, n);
    }
}

/* Widens the parts that other hosts have reduced into this rank's buffer. */
static void take_in(const struct hvd__collective *c,
                    const struct hvd__carried *s)
{
    const struct hvd__hosts *h = c->team->hosts;

    for (int host = 0; host < h->n; host++) {
        struct hvd__slice theirs = part_of(c, s, host);

        if (host != h->own)
            widen(c, s->range + hvd__bytes_of(c, theirs.start),
                  s->scratch + (size_t)theirs.start * wire_bytes(c),
                  theirs.count);
    }
}

static void finish(const struct hvd__carry *carry, struct hvd__collective *c,
                   const struct hvd__carried *s, int phase)
{
    struct hvd__reduction reduction = hvd__carry_reduction(c, true);

    (void)carry;
    if (phase == SCATTER && c->narrows)
        reduce_narrow(c, s, &reduction);
    else if (phase == SCATTER)
        reduce_wide(c, s, &reduction);
    else if (c->narrows)
        take_in(c, s);
}

const struct hvd__carry hvd__carry_all = {
    .applies = fits,
    .ntransfers = ntransfers,
    .nphases = nphases,
    .cost = cost,
    .start = start,
    .finish = finish,
};
