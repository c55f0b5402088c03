/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/algo/adasum_tree.h"

#include <string.h>

#include "base/status.h"

size_t hvd__adasum_stride(hvd_dtype dtype, int64_t count, int nranks)
{
    int64_t most = hvd__slice_of(count, 0, nranks).count;
    size_t bytes = (size_t)most * hvd__dtype_bytes(hvd__adasum_middle(dtype));

    return (bytes + 63) & ~(size_t)63;
}

size_t hvd__adasum_dots_bytes(int nranks)
{
    return 2 * (size_t)nranks * HVD__DOTS_BYTES;
}

int hvd__adasum_left(int n, int level)
{
    for (; level > 0; level--)
        n = (n + 1) / 2;
    return n;
}

static int pairs_at(const struct hvd__collective *c, int level)
{
    return hvd__adasum_left(c->team->size, level) / 2;
}

/* Returns the dot products of this rank's shares of a pair. */
static double *own_dots(const struct hvd__adasum *a, int pair)
{
    return a->dots + HVD__DOTS * pair;
}

/* Returns the sums of the dot products of a pair over all ranks. */
static double *sums_of(const struct hvd__collective *c,
                       const struct hvd__adasum *a, int pair)
{
    return own_dots(a, c->team->size / 2 + pair);
}

/* Returns a rank's dot products of the pair that this rank adds up. */
static double *dots_from(const struct hvd__collective *c,
                         const struct hvd__adasum *a, int rank)
{
    return own_dots(a, c->team->size / 2 * 2 + rank);
}

/* Returns vector i of a level, which lies where the first of the vectors lay
 * that it was made of. */
static unsigned char *vector_at(const struct hvd__adasum *a, int level, int i)
{
    int first = i << level;
    int place = (a->places ? a->places[first] : first) >> a->first;

    return a->vectors + (size_t)place * a->stride;
}

int hvd__adasum_begin(struct hvd__collective *c, const struct hvd__adasum *a,
                      int level)
{
    hvd_dtype middle = hvd__adasum_middle(c->reduction.dtype);
    int64_t count = hvd__share_of(c, c->team->rank).count;

    if (hvd__adasum_left(c->team->size, level) == 1) {
        hvd__convert(c->reduction.dtype, hvd__adasum_share(c, c->team->rank),
                     middle, vector_at(a, level, 0), count,
                     c->reduction.postscale);
        return -1;
    }
    for (int i = 0; i < pairs_at(c, level); i++)
        hvd__adasum_dots(middle, vector_at(a, level, 2 * i),
                         vector_at(a, level, 2 * i + 1), count, own_dots(a, i));
    if (c->team->rank < pairs_at(c, level))
        memcpy(dots_from(c, a, c->team->rank), own_dots(a, c->team->rank),
               HVD__DOTS_BYTES);
    return HVD__ADASUM_TREE + 2 * level;
}

static int level_of(int phase)
{
    return (phase - HVD__ADASUM_TREE) / 2;
}

static bool is_dots(int phase)
{
    return (phase - HVD__ADASUM_TREE) % 2 == 0;
}

int hvd__adasum_meet(struct hvd__collective *c, const struct hvd__adasum *a,
                     int phase, int i, struct hvd__transfer *transfers)
{
    const struct hvd__team *team = c->team;
    int from = hvd__team_from(team, i), to = hvd__team_to(team, i);
    int pairs = pairs_at(c, level_of(phase)), us = team->rank;
    bool dots = is_dots(phase);

    if (dots ? us < pairs : from < pairs)
        HVD_TRY(hvd__team_receive(team, from, c->tag + 1,
                                  dots ? dots_from(c, a, from)
                                       : sums_of(c, a, from),
                                  HVD__DOTS_BYTES, &transfers[0]));
    if (dots ? to >= pairs : us >= pairs)
        return HVD_OK;
    return hvd__team_send(team, to, c->tag + 1,
                          dots ? own_dots(a, to) : sums_of(c, a, us),
                          HVD__DOTS_BYTES, &transfers[1]);
}

static void add_dots(struct hvd__collective *c, const struct hvd__adasum *a)
{
    double *sums = sums_of(c, a, c->team->rank);

    memset(sums, 0, HVD__DOTS_BYTES);
    for (int rank = 0; rank < c->team->size; rank++)
        for (int k = 0; k < HVD__DOTS; k++)
            sums[k] += dots_from(c, a, rank)[k];
}

int hvd__adasum_next(struct hvd__collective *c, const struct hvd__adasum *a,
                     int phase)
{
    int64_t count = hvd__share_of(c, c->team->rank).count;
    int level = level_of(phase);

    if (is_dots(phase)) {
        if (c->team->rank < pairs_at(c, level))
            add_dots(c, a);
        return phase + 1;
    }
    for (int i = 0; i < pairs_at(c, level); i++)
        hvd__adasum_combine(
            hvd__adasum_middle(c->reduction.dtype), vector_at(a, level, 2 * i),
            vector_at(a, level, 2 * i), vector_at(a, level, 2 * i + 1), count,
            sums_of(c, a, i));
    return hvd__adasum_begin(c, a, level + 1);
}
