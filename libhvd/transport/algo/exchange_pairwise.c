/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_pairwise.c - a block from every rank to every other: gathers and
 * alltoall.
 *
 * Segment k is chunk k of every block that is that long; its sends and receives
 * are posted at once, or large ones with a few ranks at a time. Both ends of a
 * block know its size, so they cut it alike.
 *
 * Any number of ranks, blocks of any size. Source: the pairwise exchange of
 * Thakur, Rabenseifner and Gropp (2005), with as many rounds posted at once as
 * keep a link busy. Cost on n ranks, m bytes a block: (n−1)α + (n−1)mβ, and α
 * only once where the network takes n−1 messages at once. A ring moves the same
 * bytes through two partners only, and costs n−1 times α for certain.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/cost.h"

/* The most bytes of a message. Between hosts, messages of some 64 KiB stall at
 * times over TCP (docs/DECISIONS.md, "Few messages where many hosts would send
 * at once"); within one, each more costs time. */
enum { CHUNK = 32 << 10, NEAR_CHUNK = 1 << 20 };

static int64_t chunk_bytes(const struct hvd__team *team)
{
    return team->is_near ? NEAR_CHUNK : CHUNK;
}

static bool applies(const struct hvd__collective *c)
{
    return c->motion >= HVD__GATHER_TO_ALL;
}

/* All ranks know all blocks of a gather, and of an exchange of equal blocks;
 * others are only exchanged here. What goes to ranks of the same host takes no
 * link. Streams from several ranks share a link unevenly: it is idle before the
 * last is through, a fifth of the time. */
static int64_t cost(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    int64_t others = c->team->size - 1, all = 0, most = 0;
    int64_t far =
        h && !c->team->is_near ? c->team->size - h->narrowest : others;

    if (c->motion == HVD__EXCHANGE && c->count == 0)
        return 0;
    for (int rank = 0; rank < c->team->size; rank++) {
        int64_t bytes = (int64_t)c->from[rank].bytes;

        all += bytes;
        most = bytes > most ? bytes : most;
    }
    /* A block is sent in several messages. Only the first message of each MiB
     * costs time of its own: the others are sent while the link is busy. */
    return hvd__cost_ns(
        c->team,
        (struct hvd__cost){.steps = 1,
                           .messages =
                               others * ((most + NEAR_CHUNK - 1) / NEAR_CHUNK),
                           .moved = hvd__cost_flows(c->team) *
                                    (all / c->team->size) * far / 4 * 5});
}

static int64_t largest_block(const struct hvd__collective *c)
{
    size_t most = 0;

    for (int rank = 0; rank < c->team->size; rank++) {
        if (c->to[rank].bytes > most)
            most = c->to[rank].bytes;
        if (c->from[rank].bytes > most)
            most = c->from[rank].bytes;
    }
    return (int64_t)most;
}

/* Returns the segment's chunk of a block. */
static struct hvd__block chunk(const struct hvd__collective *c,
                               const struct hvd__block *block,
                               const struct hvd__segment *segment)
{
    struct hvd__slice part =
        hvd__slice_part((struct hvd__slice){0, (int64_t)block->bytes},
                        segment->start, chunk_bytes(c->team));

    return (struct hvd__block){
        .data = part.count > 0 ? block->data + part.start : NULL,
        .bytes = (size_t)part.count,
    };
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    struct hvd__block out, in;

    hvd__segment_take(c, segment, chunk_bytes(c->team));
    out = chunk(c, &c->to[c->team->rank], segment);
    in = chunk(c, &c->from[c->team->rank], segment);
    if (out.bytes > 0 && in.data && out.data != in.data)
        memcpy(in.data, out.data, out.bytes);
    return HVD_OK;
}

static int meet(struct hvd__collective *c, struct hvd__segment *segment, int i,
                struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    struct hvd__block in = chunk(c, &c->from[from], segment);
    struct hvd__block out = chunk(c, &c->to[to], segment);

    HVD_TRY(hvd__team_receive(team, from, c->tag, in.data, in.bytes,
                              &transfers[0]));
    return hvd__team_send(team, to, c->tag, out.data, out.bytes, &transfers[1]);
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    int64_t most = HVD__SEGMENTS * chunk_bytes(c->team);

    /* Chunks of several segments are on their way to a partner at once. */
    return hvd__segment_meet(c, segment, before,
                             c->total < most ? c->total : most, meet);
}

const struct hvd__algorithm hvd__exchange_pairwise = {
    .name = "pairwise",
    .description = "a block to each, a few large ones at a time; any size",
    .applies = applies,
    .cost = cost,
    .total = largest_block,
    .start = start_segment,
    .step = step_segment,
};
