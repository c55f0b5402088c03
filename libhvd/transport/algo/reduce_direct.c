/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_direct.c - reductions of small tensors: every rank sends all of its
 * data to every rank that wants the result, and those reduce what they got, in
 * the order of the ranks.
 *
 * Any number of ranks. One step of latency; all ranks compute the same bits
 * because they do the same additions in the same order. Source: the linear
 * algorithm, with all messages posted at once. Cost on n ranks, m bytes: α +
 * (n−1)(mβ + mγ).
 */
#include "base/status.h"
#include "transport/algo/cost.h"

/* The data of all peers must fit into a segment's scratch. */
static bool applies(const struct hvd__collective *c)
{
    return c->motion <= HVD__REDUCE_TO_ROOT && c->team->size > 1 &&
           hvd__bytes_of(c, c->count) <=
               c->workspace->segment_bytes / ((size_t)c->team->size - 1);
}

static int64_t cost(const struct hvd__collective *c)
{
    int64_t peers = c->team->size - 1;
    int64_t all = peers * (int64_t)hvd__bytes_of(c, c->count);

    if (c->direct_max)
        return (size_t)all <= c->direct_max ? 0 : INT64_MAX - 1;
    return hvd__cost_ns(
        c->team, (struct hvd__cost){.steps = 1,
                                    .messages = peers,
                                    .moved = hvd__cost_flows(c->team) * all,
                                    .reduced = all});
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    segment->count = c->count;
    return HVD_OK;
}

static int meet(struct hvd__collective *c, struct hvd__segment *segment, int i,
                struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    size_t bytes = hvd__bytes_of(c, c->count);
    unsigned char *scratch =
        hvd__segment_scratch(c, segment) + (size_t)(i - 1) * bytes;

    if (hvd__is_wanted(c, team->rank))
        HVD_TRY(hvd__team_receive(team, from, c->tag, scratch, bytes,
                                  &transfers[0]));
    c->workspace->sources[from] = scratch;
    if (!hvd__is_wanted(c, to))
        return HVD_OK;
    return hvd__team_send(team, to, c->tag, c->input, bytes, &transfers[1]);
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    int done = hvd__segment_meet(c, segment, before,
                                 (int64_t)hvd__bytes_of(c, c->count), meet);

    if (done == 1 && hvd__is_wanted(c, c->team->rank)) {
        c->workspace->sources[c->team->rank] = c->input;
        hvd__timed_reduce(&c->computing_ns, &c->reduction, &c->output, 1,
                          c->workspace->sources, c->team->size, c->count);
    }
    return done;
}

const struct hvd__algorithm hvd__reduce_direct = {
    .name = "direct",
    .description = "all send everything to all who want it; small tensors",
    .applies = applies,
    .cost = cost,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};
