/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_adasum.c - the adaptive sum of all ranks' vectors, pair by pair: ranks
 * 0 and 1, 2 and 3, and so on, then those sums two by two, until one is left;
 * an odd one is passed on. With 2^k ranks this is Horovod's tree.
 *
 * Each pair needs dot products of whole vectors, so nothing can be done in
 * segments. Phase SCATTER: share p of every rank's vector goes to rank p, which
 * then holds a share of all vectors. For each level of the tree, phase DOTS:
 * every rank computes the dot products of its shares of all pairs, sends these
 * few numbers to all, adds up what it gets in the order of the ranks (so that
 * all have the same bits) and combines its shares. Phase GATHER: the shares of
 * the result go to all.
 *
 * Any number of ranks. Source: Maleki et al., Scaling Distributed Training with
 * Adaptive Summation (2021). Cost on n ranks, m bytes: (2 + log2 n)(n−1)α +
 * 2m(n−1)/n β + 3mγ: each rank does 1/n of the work.
 *
 * 16-bit floats are combined in float32 and rounded once.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/algo.h"

enum { SCATTER, GATHER, DOTS }; /* DOTS + level */

static bool applies(const struct hvd__collective *c)
{
    return c->motion == HVD__REDUCE_TO_ALL && c->reduction.op == HVD_ADASUM;
}

static int64_t total(const struct hvd__collective *c)
{
    return c->count > 0;
}

static hvd_dtype middle_of(hvd_dtype dtype)
{
    return dtype == HVD_FLOAT64 ? HVD_FLOAT64 : HVD_FLOAT32;
}

/* Returns the bytes of any rank's share in the middle type, a multiple of the
 * alignment. */
static size_t stride_of(hvd_dtype dtype, int64_t count, int nranks)
{
    int64_t most = hvd__slice_of(count, 0, nranks).count;
    size_t bytes = (size_t)most * hvd__dtype_bytes(middle_of(dtype));

    return (bytes + 63) & ~(size_t)63;
}

/* The scratch holds each rank's share as it came, and in the middle type. */
size_t hvd__adasum_scratch(hvd_dtype dtype, int64_t count, int nranks)
{
    return 2 * (size_t)nranks * stride_of(dtype, count, nranks);
}

static unsigned char *came_from(const struct hvd__collective *c, int rank)
{
    return (unsigned char *)c->scratch +
           (size_t)rank *
               stride_of(c->reduction.dtype, c->count, c->team->size);
}

static unsigned char *vector(const struct hvd__collective *c, int i)
{
    return came_from(c, c->team->size + i);
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    const struct hvd__team *team = c->team;
    struct hvd__slice mine = hvd__share_of(c, team->rank);
    const unsigned char *input = c->input;

    segment->count = 1;
    segment->phase = SCATTER;
    for (int i = 1; i < team->size; i++) {
        int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
        struct hvd__slice theirs = hvd__share_of(c, to);

        HVD_TRY(hvd__team_receive(team, from, c->tag, came_from(c, from),
                                  hvd__bytes_of(c, mine.count), transfer++));
        HVD_TRY(hvd__team_send(team, to, c->tag,
                               input + hvd__bytes_of(c, theirs.start),
                               hvd__bytes_of(c, theirs.count), transfer++));
    }
    memcpy(came_from(c, team->rank), input + hvd__bytes_of(c, mine.start),
           hvd__bytes_of(c, mine.count));
    return HVD_OK;
}

/* Returns the number of vectors left at a level of the tree. */
static int left_at(const struct hvd__collective *c, int level)
{
    int left = c->team->size;

    for (; level > 0; level--)
        left = (left + 1) / 2;
    return left;
}

static double *own_dots(struct hvd__collective *c)
{
    return (double *)(void *)(c->workspace->scratch +
                              c->workspace->segment_bytes);
}

static double *dots_of(struct hvd__collective *c, int rank, int level)
{
    int pairs = left_at(c, level) / 2;

    if (rank == c->team->rank)
        return own_dots(c);
    return (double *)(void *)c->workspace->scratch + 3 * pairs * rank;
}

/* Returns vector i of a level, which lies where vector i * 2^level of the first
 * level lay. */
static unsigned char *vector_at(const struct hvd__collective *c, int level,
                                int i)
{
    return vector(c, i << level);
}

static int exchange_dots(struct hvd__collective *c,
                         struct hvd__segment *segment, int level)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    const struct hvd__team *team = c->team;
    int64_t count = hvd__share_of(c, team->rank).count;
    int pairs = left_at(c, level) / 2;
    size_t bytes = (size_t)pairs * 3 * sizeof(double);

    for (int i = 0; i < pairs; i++)
        hvd__adasum_dots(
            middle_of(c->reduction.dtype), vector_at(c, level, 2 * i),
            vector_at(c, level, 2 * i + 1), count, own_dots(c) + 3 * i);
    for (int i = 1; i < team->size; i++) {
        int from = hvd__team_from(team, i), to = hvd__team_to(team, i);

        HVD_TRY(hvd__team_receive(team, from, c->tag + 1,
                                  dots_of(c, from, level), bytes, transfer++));
        HVD_TRY(hvd__team_send(team, to, c->tag + 1, own_dots(c), bytes,
                               transfer++));
    }
    segment->phase = DOTS + level;
    return HVD_OK;
}

static void combine(struct hvd__collective *c, int level)
{
    int64_t count = hvd__share_of(c, c->team->rank).count;
    int pairs = left_at(c, level) / 2;

    for (int i = 0; i < pairs; i++) {
        double dots[3] = {0};

        for (int rank = 0; rank < c->team->size; rank++)
            for (int k = 0; k < 3; k++)
                dots[k] += dots_of(c, rank, level)[3 * i + k];
        hvd__adasum_combine(middle_of(c->reduction.dtype),
                            vector_at(c, level, 2 * i),
                            vector_at(c, level, 2 * i),
                            vector_at(c, level, 2 * i + 1), count, dots);
    }
}

static int gather(struct hvd__collective *c, struct hvd__segment *segment)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    const struct hvd__team *team = c->team;
    struct hvd__slice mine = hvd__share_of(c, team->rank);
    unsigned char *output = c->output;
    unsigned char *result = output + hvd__bytes_of(c, mine.start);

    hvd__convert(c->reduction.dtype, result, middle_of(c->reduction.dtype),
                 vector(c, 0), mine.count, c->reduction.postscale);
    for (int i = 1; i < team->size; i++) {
        int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
        struct hvd__slice theirs = hvd__share_of(c, from);

        HVD_TRY(hvd__team_receive(team, from, c->tag + 1,
                                  output + hvd__bytes_of(c, theirs.start),
                                  hvd__bytes_of(c, theirs.count), transfer++));
        HVD_TRY(hvd__team_send(team, to, c->tag + 1, result,
                               hvd__bytes_of(c, mine.count), transfer++));
    }
    segment->phase = GATHER;
    return HVD_OK;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    const struct hvd__team *team = c->team;
    int done = hvd__segment_exchanged(c, segment);
    int level = segment->phase - DOTS;

    (void)before;
    if (done <= 0 || segment->phase == GATHER)
        return done;
    if (segment->phase == SCATTER) {
        int64_t count = hvd__share_of(c, team->rank).count;

        for (int rank = 0; rank < team->size; rank++)
            hvd__convert(middle_of(c->reduction.dtype), vector(c, rank),
                         c->reduction.dtype, came_from(c, rank), count,
                         c->reduction.prescale);
        level = -1;
    } else {
        combine(c, level);
    }
    level++;
    if (left_at(c, level) > 1)
        HVD_TRY(exchange_dots(c, segment, level));
    else
        HVD_TRY(gather(c, segment));
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
