/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_adasum.c - the adaptive sum of all ranks' vectors, pair by pair: ranks
 * 0 and 1, 2 and 3, and so on, then those sums two by two, until one is left;
 * an odd one is passed on. With 2^k ranks this is Horovod's tree.
 *
 * Each pair needs dot products of whole vectors, so nothing can be done in
 * segments. Phase SCATTER: share p of every rank's vector goes to rank p, which
 * then holds a share of all vectors. For each level of the tree every rank
 * computes the dot products of its shares of all pairs, which are added up, and
 * combines its shares (adasum_tree.h). Phase GATHER: the shares of the result
 * go to all.
 *
 * Any number of ranks. Source: Maleki et al., Scaling Distributed Training with
 * Adaptive Summation (2021). Cost on n ranks, m bytes: (2 + 2 log2 n)(n−1)α +
 * 2m(n−1)/n β + 3mγ: each rank does 1/n of the work.
 *
 * 16-bit floats are combined in float32 and rounded once.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/adasum_tree.h"

enum { SCATTER, GATHER };

static bool applies(const struct hvd__collective *c)
{
    return c->motion == HVD__REDUCE_TO_ALL && c->reduction.op == HVD_ADASUM;
}

static int64_t total(const struct hvd__collective *c)
{
    return c->count > 0;
}

static size_t stride_of(const struct hvd__collective *c)
{
    return hvd__adasum_stride(c->reduction.dtype, c->count, c->team->size);
}

/* The scratch holds each rank's share as it came, and in the middle type, and
 * dot products. */
static unsigned char *came_from(const struct hvd__collective *c, int rank)
{
    return (unsigned char *)c->scratch + (size_t)rank * stride_of(c);
}

static struct hvd__adasum tree_of(const struct hvd__collective *c)
{
    int n = c->team->size;

    return (struct hvd__adasum){
        .vectors = came_from(c, n),
        .stride = stride_of(c),
        .dots = (double *)(void *)came_from(c, 2 * n),
    };
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    const struct hvd__team *team = c->team;
    struct hvd__slice mine = hvd__share_of(c, team->rank);

    segment->count = 1;
    segment->phase = SCATTER;
    memcpy(came_from(c, team->rank),
           (const char *)c->input + hvd__bytes_of(c, mine.start),
           hvd__bytes_of(c, mine.count));
    return HVD_OK;
}

static int scatter(struct hvd__collective *c, int i,
                   struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    struct hvd__slice theirs = hvd__share_of(c, to);

    HVD_TRY(hvd__team_receive(
        team, from, c->tag, came_from(c, from),
        hvd__bytes_of(c, hvd__share_of(c, team->rank).count), &transfers[0]));
    return hvd__team_send(team, to, c->tag,
                          (const char *)c->input +
                              hvd__bytes_of(c, theirs.start),
                          hvd__bytes_of(c, theirs.count), &transfers[1]);
}

static int gather(struct hvd__collective *c, int i,
                  struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);

    HVD_TRY(hvd__team_receive(
        team, from, c->tag + 1, hvd__adasum_share(c, from),
        hvd__bytes_of(c, hvd__share_of(c, from).count), &transfers[0]));
    return hvd__team_send(
        team, to, c->tag + 1, hvd__adasum_share(c, team->rank),
        hvd__bytes_of(c, hvd__share_of(c, team->rank).count), &transfers[1]);
}

/* Converts the shares that have come. */
static void convert_shares(struct hvd__collective *c)
{
    int64_t count = hvd__share_of(c, c->team->rank).count;
    struct hvd__adasum tree = tree_of(c);

    for (int rank = 0; rank < c->team->size; rank++)
        hvd__convert(hvd__adasum_middle(c->reduction.dtype),
                     tree.vectors + (size_t)rank * tree.stride,
                     c->reduction.dtype, came_from(c, rank), count,
                     c->reduction.prescale);
}

static int meet(struct hvd__collective *c, struct hvd__segment *segment, int i,
                struct hvd__transfer *transfers)
{
    struct hvd__adasum tree;

    switch (segment->phase) {
    case SCATTER: return scatter(c, i, transfers);
    case GATHER: return gather(c, i, transfers);
    default:
        tree = tree_of(c);
        return hvd__adasum_meet(c, &tree, segment->phase, i, transfers);
    }
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__adasum tree = tree_of(c);
    int done = hvd__segment_meet(c, segment, before, hvd__adasum_share_bytes(c),
                                 meet),
        next;

    if (done <= 0 || segment->phase == GATHER)
        return done;
    if (segment->phase == SCATTER) {
        convert_shares(c);
        next = hvd__adasum_begin(c, &tree, 0);
    } else {
        next = hvd__adasum_next(c, &tree, segment->phase);
    }
    segment->phase = next < 0 ? GATHER : next;
    segment->met = 0;
    return 0;
}

const struct hvd__algorithm hvd__reduce_adasum = {
    .name = "adasum",
    .description = "adaptive sums pair by pair, a share a rank; any size",
    .applies = applies,
    .total = total,
    .start = start_segment,
    .step = step_segment,
};
