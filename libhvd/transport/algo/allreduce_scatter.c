/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allreduce_scatter.c - reduce-scatter, then allgather, for larger tensors.
 *
 * Every segment is cut into a slice a rank. Phase SCATTER: each rank sends
 * slice p of its data to rank p. Then rank p holds slice p of all ranks and
 * reduces them in one pass, in the order of the ranks. Phase GATHER: it
 * sends the result to all.
 *
 *     rank 0   A0 B0 C0 ──┐ SCATTER   A0+A1+A2 ──┐ GATHER   A B C
 *     rank 1   A1 B1 C1 ──┼────────►  B0+B1+B2 ──┼───────►  A B C
 *     rank 2   A2 B2 C2 ──┘           C0+C1+C2 ──┘          A B C
 *
 * Any number of ranks and elements; slices differ by at most one element and
 * may be empty. Unlike a ring, whose sums travel, all contributions to an
 * element meet in one place: 16-bit floats are rounded once, an average of
 * integers cannot overflow on the way, and the result does not depend on
 * where in a fused buffer an element lies. The price is n−1 partners instead
 * of two. Source: the "pairwise" reduce-scatter of Thakur, Rabenseifner and
 * Gropp, Optimization of Collective Communication Operations in MPICH (2005),
 * with all rounds posted at once.
 * Cost on n ranks, m bytes: 2(n−1)α + 2m(n−1)/n β + m(n−1)/n γ, and α only
 * twice where the network takes n−1 messages at once.
 *
 * In place: a slice of the result is received where that slice of the input
 * still lies, so GATHER starts only when every send of SCATTER is done.
 */
#include "base/status.h"
#include "transport/algo/algo.h"

enum { SCATTER, GATHER };

/* Slices of about this many bytes keep n of them in the second-level cache
 * and amortise the cost of a message. */
enum { SLICE_BYTES = 256 << 10 };

static bool applies(const struct hvd__collective *c)
{
    (void)c;
    return true;
}

static int64_t slice_capacity(const struct hvd__collective *c)
{
    size_t peers = (size_t)c->transport->size - 1;
    size_t bytes = c->workspace->slot_bytes / peers;

    if (bytes > SLICE_BYTES)
        bytes = SLICE_BYTES;
    return (int64_t)(bytes / hvd__dtype_bytes(c->reduction.dtype));
}

/* The bytes of rank's slice of a segment, in a buffer of the whole. */
static size_t locate(const struct hvd__collective *c,
                     const struct hvd__segment *segment, int rank,
                     size_t *bytes)
{
    size_t element = hvd__dtype_bytes(c->reduction.dtype);
    struct hvd__slice slice =
        hvd__slice_of(segment->count, rank, c->transport->size);

    *bytes = (size_t)slice.count * element;
    return (size_t)(segment->start + slice.start) * element;
}

static int start(struct hvd__collective *c, struct hvd__segment *segment)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    unsigned char *scratch = hvd__segment_scratch(c, segment);
    struct hvd__transport *t = c->transport;
    int64_t most = slice_capacity(c) * t->size;
    size_t mine, theirs;

    segment->count = c->count - segment->start;
    if (segment->count > most)
        segment->count = most;
    locate(c, segment, t->rank, &mine);
    for (int i = 1; i < t->size; i++) {
        int from = (t->rank - i + t->size) % t->size;
        int to = (t->rank + i) % t->size;
        size_t offset = locate(c, segment, to, &theirs);

        HVD_TRY(t->receive(t, from, c->tag, scratch, mine, transfer++));
        HVD_TRY(t->send(t, to, c->tag, (const char *)c->input + offset, theirs,
                        transfer++));
        scratch += mine;
    }
    segment->phase = SCATTER;
    return HVD_OK;
}

static void reduce(struct hvd__collective *c, struct hvd__segment *segment)
{
    const unsigned char *scratch = hvd__segment_scratch(c, segment);
    const void **sources = c->workspace->sources;
    struct hvd__transport *t = c->transport;
    size_t mine, offset = locate(c, segment, t->rank, &mine);

    for (int i = 1; i < t->size; i++) {
        sources[(t->rank - i + t->size) % t->size] = scratch;
        scratch += mine;
    }
    sources[t->rank] = (const char *)c->input + offset;
    hvd__reduce(&c->reduction, (char *)c->output + offset, sources, t->size,
                (int64_t)(mine / hvd__dtype_bytes(c->reduction.dtype)));
}

static int gather(struct hvd__collective *c, struct hvd__segment *segment)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    struct hvd__transport *t = c->transport;
    size_t mine, theirs;
    size_t offset = locate(c, segment, t->rank, &mine);

    for (int i = 1; i < t->size; i++) {
        int from = (t->rank - i + t->size) % t->size;
        int to = (t->rank + i) % t->size;
        size_t there = locate(c, segment, from, &theirs);

        HVD_TRY(t->receive(t, from, c->tag + 1, (char *)c->output + there,
                           theirs, transfer++));
        HVD_TRY(t->send(t, to, c->tag + 1, (const char *)c->output + offset,
                        mine, transfer++));
    }
    segment->phase = GATHER;
    return HVD_OK;
}

static int step(struct hvd__collective *c, struct hvd__segment *segment,
                const struct hvd__segment *before)
{
    struct hvd__transport *t = c->transport;
    int done = hvd__transfers_done(t, hvd__segment_transfers(c, segment),
                                   2 * (t->size - 1));

    if (done <= 0 || segment->phase == GATHER)
        return done;
    /* Transfers of GATHER match by order: not before the older segment's. */
    if (before && before->phase == SCATTER)
        return 0;
    reduce(c, segment);
    HVD_TRY(gather(c, segment));
    return 0;
}

const struct hvd__algorithm hvd__allreduce_scatter = {
    .name = "scatter-gather",
    .description = "a slice a rank reduced in place, then shared; any size",
    .kind = HVD_ALLREDUCE,
    .applies = applies,
    .start = start,
    .step = step,
};
