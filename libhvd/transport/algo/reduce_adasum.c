/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce_adasum.c - the adaptive sum of all ranks' vectors, pair by pair: ranks
 * 0 and 1, 2 and 3, and so on, then those sums two by two, until one is left;
 * an odd one is passed on. With 2^k ranks this is Horovod's tree.
 *
 * Each pair needs dot products of whole vectors, so nothing can be done in
 * segments. Phase SCATTER: share p of every rank's vector goes to rank p, which
 * then holds a share of all vectors. For each level of the tree every rank
 * computes the dot products of its shares of all pairs. Phase DOTS: those of
 * pair p go to rank p, which adds them up in the order of the ranks. Phase
 * SUMS: it sends the sums to all, which combine their shares. Phase GATHER: the
 * shares of the result go to all.
 *
 * Any number of ranks. Source: Maleki et al., Scaling Distributed Training with
 * Adaptive Summation (2021). Cost on n ranks, m bytes: (2 + 2 log2 n)(n−1)α +
 * 2m(n−1)/n β + 3mγ: each rank does 1/n of the work.
 *
 * 16-bit floats are combined in float32 and rounded once.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/algo.h"

enum { SCATTER, GATHER, DOTS, SUMS }; /* DOTS and SUMS + 2 * level */

/* The dot products of a pair. */
enum { NDOTS = 3, DOTS_BYTES = NDOTS * sizeof(double) };

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

/* Returns the bytes for dot products: this rank's of all pairs, their sums, and
 * those of one pair of each rank. */
static size_t dots_bytes(int nranks)
{
    return 2 * (size_t)nranks * DOTS_BYTES;
}

/* The scratch holds each rank's share as it came, and in the middle type, and
 * dot products. */
size_t hvd__adasum_scratch(hvd_dtype dtype, int64_t count, int nranks)
{
    return 2 * (size_t)nranks * stride_of(dtype, count, nranks) +
           dots_bytes(nranks);
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
    const struct hvd__team *team = c->team;
    struct hvd__slice mine = hvd__share_of(c, team->rank);

    segment->count = 1;
    segment->phase = SCATTER;
    memcpy(came_from(c, team->rank),
           (const char *)c->input + hvd__bytes_of(c, mine.start),
           hvd__bytes_of(c, mine.count));
    return HVD_OK;
}

static int scatter(struct hvd__collective *c, struct hvd__segment *segment,
                   int i, struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    struct hvd__slice theirs = hvd__share_of(c, to);

    (void)segment;
    HVD_TRY(hvd__team_receive(
        team, from, c->tag, came_from(c, from),
        hvd__bytes_of(c, hvd__share_of(c, team->rank).count), &transfers[0]));
    return hvd__team_send(team, to, c->tag,
                          (const char *)c->input +
                              hvd__bytes_of(c, theirs.start),
                          hvd__bytes_of(c, theirs.count), &transfers[1]);
}

/* Returns the number of vectors left at a level of the tree. */
static int left_at(const struct hvd__collective *c, int level)
{
    int left = c->team->size;

    for (; level > 0; level--)
        left = (left + 1) / 2;
    return left;
}

/* Returns the number of pairs of a level. */
static int pairs_at(const struct hvd__collective *c, int level)
{
    return left_at(c, level) / 2;
}

/* Returns the dot products of this rank's shares of a pair. */
static double *own_dots(const struct hvd__collective *c, int pair)
{
    return (double *)(void *)vector(c, c->team->size) + NDOTS * pair;
}

/* Returns the sums of the dot products of a pair over all ranks. */
static double *sums_of(const struct hvd__collective *c, int pair)
{
    return own_dots(c, c->team->size / 2 + pair);
}

/* Returns a rank's dot products of the pair that this rank adds up. */
static double *dots_from(const struct hvd__collective *c, int rank)
{
    return own_dots(c, c->team->size / 2 * 2 + rank);
}

/* Returns vector i of a level, which lies where vector i * 2^level of the first
 * level lay. */
static unsigned char *vector_at(const struct hvd__collective *c, int level,
                                int i)
{
    return vector(c, i << level);
}

static void compute_dots(struct hvd__collective *c, int level)
{
    int64_t count = hvd__share_of(c, c->team->rank).count;

    for (int i = 0; i < pairs_at(c, level); i++)
        hvd__adasum_dots(middle_of(c->reduction.dtype),
                         vector_at(c, level, 2 * i),
                         vector_at(c, level, 2 * i + 1), count, own_dots(c, i));
    if (c->team->rank < pairs_at(c, level))
        memcpy(dots_from(c, c->team->rank), own_dots(c, c->team->rank),
               DOTS_BYTES);
}

static int level_of(const struct hvd__segment *segment)
{
    return (segment->phase - DOTS) / 2;
}

/* Sends a partner this rank's dot products of the pair that it adds up. */
static int send_dots(struct hvd__collective *c, struct hvd__segment *segment,
                     int i, struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    int pairs = pairs_at(c, level_of(segment));

    if (team->rank < pairs)
        HVD_TRY(hvd__team_receive(team, from, c->tag + 1, dots_from(c, from),
                                  DOTS_BYTES, &transfers[0]));
    if (to >= pairs)
        return HVD_OK;
    return hvd__team_send(team, to, c->tag + 1, own_dots(c, to), DOTS_BYTES,
                          &transfers[1]);
}

static void add_dots(struct hvd__collective *c)
{
    double *sums = sums_of(c, c->team->rank);

    memset(sums, 0, DOTS_BYTES);
    for (int rank = 0; rank < c->team->size; rank++)
        for (int k = 0; k < NDOTS; k++)
            sums[k] += dots_from(c, rank)[k];
}

/* Sends a partner the sums of the pair that this rank has added up. */
static int send_sums(struct hvd__collective *c, struct hvd__segment *segment,
                     int i, struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    int pairs = pairs_at(c, level_of(segment));

    if (from < pairs)
        HVD_TRY(hvd__team_receive(team, from, c->tag + 1, sums_of(c, from),
                                  DOTS_BYTES, &transfers[0]));
    if (team->rank >= pairs)
        return HVD_OK;
    return hvd__team_send(team, to, c->tag + 1, sums_of(c, team->rank),
                          DOTS_BYTES, &transfers[1]);
}

static void combine(struct hvd__collective *c, int level)
{
    int64_t count = hvd__share_of(c, c->team->rank).count;

    for (int i = 0; i < pairs_at(c, level); i++)
        hvd__adasum_combine(
            middle_of(c->reduction.dtype), vector_at(c, level, 2 * i),
            vector_at(c, level, 2 * i), vector_at(c, level, 2 * i + 1), count,
            sums_of(c, i));
}

static unsigned char *share_at(const struct hvd__collective *c, int rank)
{
    return (unsigned char *)c->output +
           hvd__bytes_of(c, hvd__share_of(c, rank).start);
}

static int gather(struct hvd__collective *c, struct hvd__segment *segment,
                  int i, struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);

    (void)segment;
    HVD_TRY(hvd__team_receive(team, from, c->tag + 1, share_at(c, from),
                              hvd__bytes_of(c, hvd__share_of(c, from).count),
                              &transfers[0]));
    return hvd__team_send(team, to, c->tag + 1, share_at(c, team->rank),
                          hvd__bytes_of(c, hvd__share_of(c, team->rank).count),
                          &transfers[1]);
}

/* Converts the shares that have come. */
static void convert_shares(struct hvd__collective *c)
{
    int64_t count = hvd__share_of(c, c->team->rank).count;

    for (int rank = 0; rank < c->team->size; rank++)
        hvd__convert(middle_of(c->reduction.dtype), vector(c, rank),
                     c->reduction.dtype, came_from(c, rank), count,
                     c->reduction.prescale);
}

/* Begins a level of the tree, or the gather after the last. */
static void begin_level(struct hvd__collective *c, struct hvd__segment *segment,
                        int level)
{
    segment->met = 0;
    if (left_at(c, level) > 1) {
        compute_dots(c, level);
        segment->phase = DOTS + 2 * level;
        return;
    }
    hvd__convert(c->reduction.dtype, share_at(c, c->team->rank),
                 middle_of(c->reduction.dtype), vector(c, 0),
                 hvd__share_of(c, c->team->rank).count, c->reduction.postscale);
    segment->phase = GATHER;
}

static int meet(struct hvd__collective *c, struct hvd__segment *segment, int i,
                struct hvd__transfer *transfers)
{
    switch (segment->phase) {
    case SCATTER: return scatter(c, segment, i, transfers);
    case GATHER: return gather(c, segment, i, transfers);
    default:
        return (segment->phase - DOTS) % 2 == 0
                   ? send_dots(c, segment, i, transfers)
                   : send_sums(c, segment, i, transfers);
    }
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    int done = hvd__segment_meet(c, segment, before, meet);

    if (done <= 0 || segment->phase == GATHER)
        return done;
    if (segment->phase == SCATTER) {
        convert_shares(c);
        begin_level(c, segment, 0);
    } else if ((segment->phase - DOTS) % 2 == 0) {
        if (c->team->rank < pairs_at(c, level_of(segment)))
            add_dots(c);
        segment->phase++;
        segment->met = 0;
    } else {
        combine(c, level_of(segment));
        begin_level(c, segment, level_of(segment) + 1);
    }
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
