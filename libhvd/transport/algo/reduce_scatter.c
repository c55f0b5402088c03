/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_scatter.c - reductions of larger tensors: a reduce-scatter, and a
 * gather if any rank wants more than its share.
 *
 * Each rank has a share of the tensor. Phase SCATTER: each rank sends share p
 * of its data to rank p. Then rank p holds share p of all ranks and reduces it
 * in one pass, in the order of the ranks. Phase GATHER: it sends the result to
 * all, to the root, or to nobody.
 *
 *     rank 0   A0 B0 C0 ──┐ SCATTER   A0+A1+A2 ──┐ GATHER   A B C
 *     rank 1   A1 B1 C1 ──┼────────►  B0+B1+B2 ──┼───────►  A B C
 *     rank 2   A2 B2 C2 ──┘           C0+C1+C2 ──┘          A B C
 *
 * A segment is the same range of every share. Any number of ranks and elements;
 * shares may differ and be empty. Unlike in a ring, where sums travel, all
 * contributions to an element meet in one place: 16-bit floats are rounded
 * once, an average of integers cannot overflow on the way, and the result does
 * not depend on where in a fused buffer an element lies. The price is n−1
 * partners instead of two. Source: the "pairwise" reduce-scatter of Thakur,
 * Rabenseifner and Gropp, Optimization of Collective Communication Operations
 * in MPICH (2005), with all rounds posted at once. Cost on n ranks, m bytes:
 * 2(n−1)α + 2m(n−1)/n β + m(n−1)/n γ, and α only twice where the network takes
 * n−1 messages at once.
 *
 * In place: a range of the result is received where that range of the input
 * still lies, so GATHER starts only when every send of SCATTER is done.
 */
#include "base/status.h"
#include "transport/algo/algo.h"

enum { SCATTER, GATHER };

/* Ranges of RANGE_BYTES keep n of them in the second-level cache and amortise
 * the cost of a message. */
enum { RANGE_BYTES = 256 << 10 };

static bool applies(const struct hvd__collective *c)
{
    return c->motion <= HVD__REDUCE_TO_SHARES;
}

static int64_t largest_share(const struct hvd__collective *c)
{
    int64_t most = 0;

    for (int rank = 0; rank < c->team->size; rank++) {
        int64_t count = hvd__share_of(c, rank).count;
        if (count > most)
            most = count;
    }
    return most;
}

static int64_t range_capacity(const struct hvd__collective *c)
{
    size_t peers = (size_t)c->team->size - 1;
    size_t bytes = c->workspace->segment_bytes / peers;

    if (bytes > RANGE_BYTES)
        bytes = RANGE_BYTES;
    return (int64_t)(bytes / hvd__dtype_bytes(c->reduction.dtype));
}

/* Returns where in a buffer of the whole a segment's range of rank's share
 * begins, and its bytes. */
static size_t locate(const struct hvd__collective *c,
                     const struct hvd__segment *segment, int rank,
                     size_t *bytes)
{
    size_t element = hvd__dtype_bytes(c->reduction.dtype);
    struct hvd__slice share = hvd__share_of(c, rank);
    int64_t count = share.count - segment->start;

    if (count > segment->count)
        count = segment->count;
    *bytes = count > 0 ? (size_t)count * element : 0;
    return (size_t)(share.start + segment->start) * element;
}

/* Returns the address for the result of one of this rank's ranges. */
static unsigned char *result(const struct hvd__collective *c,
                             const struct hvd__segment *segment)
{
    size_t element = hvd__dtype_bytes(c->reduction.dtype), bytes;
    size_t offset = c->motion == HVD__REDUCE_TO_SHARES
                        ? (size_t)segment->start * element
                        : locate(c, segment, c->team->rank, &bytes);

    return (unsigned char *)c->output + offset;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    unsigned char *scratch = hvd__segment_scratch(c, segment);
    const struct hvd__team *team = c->team;
    size_t mine, theirs;

    segment->count = c->total - segment->start;
    if (segment->count > range_capacity(c))
        segment->count = range_capacity(c);
    locate(c, segment, team->rank, &mine);
    for (int i = 1; i < team->size; i++) {
        int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
        size_t offset = locate(c, segment, to, &theirs);

        HVD_TRY(
            hvd__team_receive(team, from, c->tag, scratch, mine, transfer++));
        HVD_TRY(hvd__team_send(team, to, c->tag,
                               (const char *)c->input + offset, theirs,
                               transfer++));
        scratch += mine;
    }
    segment->phase = SCATTER;
    return HVD_OK;
}

/* Reduces our range. Only the root of a reduction has an output: the other
 * ranks reduce their share where the contributions lie, and send it from
 * there. */
static unsigned char *reduce(struct hvd__collective *c,
                             struct hvd__segment *segment)
{
    unsigned char *scratch = hvd__segment_scratch(c, segment);
    const struct hvd__team *team = c->team;
    const void **sources = c->workspace->sources;
    bool to_root = c->motion == HVD__REDUCE_TO_ROOT && team->rank != c->root;
    unsigned char *out = to_root ? scratch : result(c, segment);
    void *target = out;
    size_t mine, offset = locate(c, segment, team->rank, &mine);

    for (int i = 1; i < team->size; i++) {
        sources[hvd__team_from(team, i)] = scratch;
        scratch += mine;
    }
    sources[team->rank] = (const char *)c->input + offset;
    hvd__timed_reduce(&c->computing_ns, &c->reduction, &target, 1, sources,
                      team->size,
                      (int64_t)(mine / hvd__dtype_bytes(c->reduction.dtype)));
    return out;
}

static bool wants(const struct hvd__collective *c, int rank)
{
    return c->motion == HVD__REDUCE_TO_ALL ||
           (c->motion == HVD__REDUCE_TO_ROOT && rank == c->root);
}

static int gather(struct hvd__collective *c, struct hvd__segment *segment,
                  const unsigned char *reduced)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    const struct hvd__team *team = c->team;
    size_t mine, theirs;

    locate(c, segment, team->rank, &mine);
    for (int i = 1; i < team->size; i++, transfer += 2) {
        int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
        size_t there = locate(c, segment, from, &theirs);

        transfer[0] = transfer[1] = (struct hvd__transfer){0};
        if (wants(c, team->rank))
            HVD_TRY(hvd__team_receive(team, from, c->tag + 1,
                                      (char *)c->output + there, theirs,
                                      &transfer[0]));
        if (wants(c, to))
            HVD_TRY(hvd__team_send(team, to, c->tag + 1, reduced, mine,
                                   &transfer[1]));
    }
    segment->phase = GATHER;
    return HVD_OK;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    int done = hvd__transfers_done(c->team, hvd__segment_transfers(c, segment),
                                   2 * (c->team->size - 1));

    if (done <= 0 || segment->phase == GATHER)
        return done;
    /* Transfers of GATHER match by order, so the older segment goes first. */
    if (before && before->phase == SCATTER)
        return 0;
    HVD_TRY(gather(c, segment, reduce(c, segment)));
    return 0;
}

const struct hvd__algorithm hvd__reduce_scatter = {
    .name = "scatter-gather",
    .description = "a share a rank reduced in one place, then shared; any size",
    .applies = applies,
    .total = largest_share,
    .start = start_segment,
    .step = step_segment,
};
