/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broadcast_binomial.c - a broadcast along a binomial tree, in segments: a rank
 * passes one on while it receives the next.
 *
 * Any number of ranks. Source: the binomial tree of Thakur, Rabenseifner and
 * Gropp (2005). Cost on n ranks, m bytes in s segments: (log2 n + s) (α + m/s
 * log2 n β): the root sends to log2 n children.
 *
 * Phase RECEIVE waits for the parent (the root has none), phase SEND for the
 * children.
 */
#include "base/status.h"
#include "transport/algo/algo.h"

enum { RECEIVE, SEND };

enum { SEGMENT_BYTES = 1 << 20, MOST_CHILDREN = 32 };

static bool applies(const struct hvd__collective *c)
{
    return c->motion == HVD__SEND_FROM_ROOT;
}

static unsigned char *address(struct hvd__collective *c,
                              const struct hvd__segment *segment, size_t *bytes)
{
    *bytes = hvd__bytes_of(c, segment->count);
    return (unsigned char *)c->output + hvd__bytes_of(c, segment->start);
}

static int pass_on(struct hvd__collective *c, struct hvd__segment *segment)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    const struct hvd__team *team = c->team;
    int children[MOST_CHILDREN];
    int n = hvd__binomial_children(team->rank, c->root, team->size, children);
    size_t bytes;
    unsigned char *data = address(c, segment, &bytes);

    for (int i = 0; i < n; i++)
        HVD_TRY(hvd__team_send(team, children[i], c->tag, data, bytes,
                               &transfer[i]));
    for (int i = n; i < MOST_CHILDREN; i++)
        transfer[i].request = NULL;
    segment->phase = SEND;
    return HVD_OK;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    const struct hvd__team *team = c->team;
    int parent = hvd__binomial_parent(team->rank, c->root, team->size);
    int64_t most =
        (int64_t)(SEGMENT_BYTES / hvd__dtype_bytes(c->reduction.dtype));
    size_t bytes;
    unsigned char *data;

    hvd__segment_take(c, segment, most);
    if (parent < 0)
        return pass_on(c, segment);
    segment->phase = RECEIVE;
    data = address(c, segment, &bytes);
    return hvd__team_receive(team, parent, c->tag, data, bytes,
                             hvd__segment_transfers(c, segment));
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    bool receiving = segment->phase == RECEIVE;
    int done = hvd__transfers_done(c->team, hvd__segment_transfers(c, segment),
                                   receiving ? 1 : MOST_CHILDREN);

    if (done <= 0 || !receiving)
        return done;
    /* Transfers to children match by order, so the older segment goes first. */
    if (before && before->phase == RECEIVE)
        return 0;
    HVD_TRY(pass_on(c, segment));
    return 0;
}

const struct hvd__algorithm hvd__broadcast_binomial = {
    .name = "binomial",
    .description = "a binomial tree, pipelined in segments; any size",
    .applies = applies,
    .total = hvd__total_count,
    .start = start_segment,
    .step = step_segment,
};
