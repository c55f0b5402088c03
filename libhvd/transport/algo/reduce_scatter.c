/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_scatter.c - reductions of larger tensors: a reduce-scatter, and a
 * gather if any rank wants more than its share.
 *
 * Each rank has a share of the tensor. In phase SCATTER, each rank sends share
 * p of its data to rank p. Rank p then holds share p of all ranks and reduces
 * it in one pass, in the order of the ranks. In phase GATHER, rank p sends the
 * result to all, to the root, or to nobody.
 *
 *     rank 0   A0 B0 C0 ──┐ SCATTER   A0+A1+A2 ──┐ GATHER   A B C
 *     rank 1   A1 B1 C1 ──┼────────►  B0+B1+B2 ──┼───────►  A B C
 *     rank 2   A2 B2 C2 ──┘           C0+C1+C2 ──┘          A B C
 *
 * A segment is the same range of every share. All contributions to an element
 * meet in one place, unlike in a ring, where sums travel. Therefore 16-bit
 * floats are rounded once, an average of integers cannot overflow on the way,
 * and the result does not depend on the place of an element in a fused buffer.
 * The price is n−1 partners instead of two.
 *
 * Restrictions: none. Shares may differ and be empty. Source: the "pairwise"
 * reduce-scatter of Thakur, Rabenseifner and Gropp, Optimization of Collective
 * Communication Operations in MPICH (2005), with as many rounds posted at once
 * as keep a link busy. Cost on n ranks, m bytes: 2(n−1)α + 2m(n−1)/n β +
 * m(n−1)/n γ; α counts only twice if the network takes n−1 messages at once.
 *
 * Input and output may be the same memory. A range of the result is then
 * received over the same range of the input, so GATHER starts only when every
 * send of SCATTER is done.
 */
#include "base/status.h"
#include "transport/algo/cost.h"

enum { SCATTER, GATHER };

/* Ranges of RANGE_BYTES keep n of them in the second-level cache and amortise
 * the cost of a message. */
enum { RANGE_BYTES = 256 << 10 };

static bool applies(const struct hvd__collective *c)
{
    return c->motion <= HVD__REDUCE_TO_SHARES && c->team->size > 1;
}

static int64_t total(const struct hvd__collective *c)
{
    return hvd__largest_share(c, c->team->size);
}

static int64_t range_capacity(const struct hvd__collective *c)
{
    size_t peers = (size_t)c->team->size - 1;
    size_t bytes = c->workspace->segment_bytes / peers;

    if (bytes > RANGE_BYTES)
        bytes = RANGE_BYTES;
    return (int64_t)(bytes / hvd__dtype_bytes(c->reduction.dtype));
}

static int64_t cost(const struct hvd__collective *c)
{
    int64_t peers = c->team->size - 1, most = range_capacity(c);
    int64_t segments = (total(c) + most - 1) / most;
    int64_t others = peers * (int64_t)hvd__bytes_of(c, total(c));
    bool gathers = c->motion != HVD__REDUCE_TO_SHARES;
    int64_t flows = hvd__cost_flows(c->team);
    int64_t moved = flows * (1 + gathers) * others;

    return hvd__cost_ns(
        c->team,
        (struct hvd__cost){.steps = 1 + gathers,
                           .messages = (1 + gathers) * peers * segments,
                           .moved = hvd__cost_at_once(moved, flows * peers),
                           .reduced = others});
}

/* Returns the elements of rank's share that belong to a segment. */
static struct hvd__slice range_of(const struct hvd__collective *c,
                                  const struct hvd__segment *segment, int rank)
{
    return hvd__slice_part(hvd__share_of(c, rank), segment->start,
                           segment->count);
}

/* Returns the address for the result of one of this rank's ranges. */
static unsigned char *result(const struct hvd__collective *c,
                             const struct hvd__segment *segment)
{
    int64_t start = c->motion == HVD__REDUCE_TO_SHARES
                        ? segment->start
                        : range_of(c, segment, c->team->rank).start;

    return (unsigned char *)c->output + hvd__bytes_of(c, start);
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    hvd__segment_take(c, segment, range_capacity(c));
    segment->phase = SCATTER;
    return HVD_OK;
}

/* Sends a partner what it reduces, and receives what this rank does. */
static int scatter(struct hvd__collective *c, struct hvd__segment *segment,
                   int i, struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int to = hvd__team_to(team, i);
    struct hvd__slice theirs = range_of(c, segment, to);
    size_t mine = hvd__bytes_of(c, range_of(c, segment, team->rank).count);

    HVD_TRY(hvd__team_receive(team, hvd__team_from(team, i), c->tag,
                              hvd__segment_scratch(c, segment) +
                                  (size_t)(i - 1) * mine,
                              mine, &transfers[0]));
    return hvd__team_send(team, to, c->tag,
                          (const char *)c->input +
                              hvd__bytes_of(c, theirs.start),
                          hvd__bytes_of(c, theirs.count), &transfers[1]);
}

/* Returns the place of this rank's reduced range. Only the root of a reduction
 * has an output: the other ranks reduce their share where the contributions
 * lie, and send it from there. */
static unsigned char *reduced_at(struct hvd__collective *c,
                                 struct hvd__segment *segment)
{
    bool to_root = c->motion == HVD__REDUCE_TO_ROOT && c->team->rank != c->root;

    return to_root ? hvd__segment_scratch(c, segment) : result(c, segment);
}

static void reduce(struct hvd__collective *c, struct hvd__segment *segment)
{
    unsigned char *scratch = hvd__segment_scratch(c, segment);
    const struct hvd__team *team = c->team;
    const void **sources = c->workspace->sources;
    void *target = reduced_at(c, segment);
    struct hvd__slice mine = range_of(c, segment, team->rank);

    for (int i = 1; i < team->size; i++) {
        sources[hvd__team_from(team, i)] = scratch;
        scratch += hvd__bytes_of(c, mine.count);
    }
    sources[team->rank] = (const char *)c->input + hvd__bytes_of(c, mine.start);
    hvd__timed_reduce(&c->computing_ns, &c->reduction, &target, 1, sources,
                      team->size, mine.count);
}

/* Sends a partner this rank's reduced range, and receives its own. */
static int gather(struct hvd__collective *c, struct hvd__segment *segment,
                  int i, struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    size_t mine = hvd__bytes_of(c, range_of(c, segment, team->rank).count);
    struct hvd__slice theirs = range_of(c, segment, from);

    if (hvd__is_wanted(c, team->rank))
        HVD_TRY(hvd__team_receive(
            team, from, c->tag + 1,
            (char *)c->output + hvd__bytes_of(c, theirs.start),
            hvd__bytes_of(c, theirs.count), &transfers[0]));
    if (!hvd__is_wanted(c, to))
        return HVD_OK;
    return hvd__team_send(team, to, c->tag + 1, reduced_at(c, segment), mine,
                          &transfers[1]);
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    int done = hvd__segment_meet(c, segment, before,
                                 (int64_t)hvd__bytes_of(c, segment->count),
                                 segment->phase == SCATTER ? scatter : gather);

    if (done <= 0 || segment->phase == GATHER)
        return done;
    reduce(c, segment);
    segment->phase = GATHER;
    segment->met = 0;
    return 0;
}

const struct hvd__algorithm hvd__reduce_scatter = {
    .name = "scatter-gather",
    .description = "a share a rank reduced in one place, then shared; any size",
    .applies = applies,
    .cost = cost,
    .total = total,
    .start = start_segment,
    .step = step_segment,
};
