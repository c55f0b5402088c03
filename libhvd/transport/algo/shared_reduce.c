/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_reduce.c - reductions in shared memory. Each rank reduces its share of
 * all contributions in the order of the ranks, as in reduce_scatter.c.
 *
 * If all contributions, and the outputs of the ranks that want the result, lie
 * in heaps, the reduction goes direct: visible.c reduces in place, and nothing
 * is copied. Otherwise the shares are cut into chunks. Chunk k of all shares
 * passes through these steps:
 *
 *     copy      the rank copies the shares of others from its input into its
 *               buffer
 *     combine   the rank reduces its own share of its input and of the other
 *               ranks' buffers, into its output and its buffer
 *     fetch     the rank copies the results of others from their buffers into
 *               its output
 *
 * A few chunks are on their way at once. A rank's buffer holds its data for
 * each other rank and, in its own place, its result. Each byte of input and
 * output crosses the memory bus once, while the buffers stay in the cache.
 * Input and output may be the same memory: a range of the input is copied or
 * combined before its result is fetched.
 *
 * Restrictions: none. Any number of ranks and elements will do; shares may
 * differ and be empty. Cost on n ranks, m bytes, with γ for a byte reduced and
 * β for one copied: direct as in visible.c; in chunks 2α + mγ + 2m(n−1)/n β a
 * rank.
 */
#include "transport/algo/shared.h"

static bool applies(const struct hvd__collective *c)
{
    return hvd__shared_applies(c) && c->motion <= HVD__REDUCE_TO_SHARES;
}

/* ------------------------------------------------------------------- direct */

/* Finds all contributions and all outputs that are wanted, and this rank's
 * share of them. Returns false if not all can be reached. */
static bool reach(struct hvd__collective *c)
{
    const struct hvd__shm *shm = c->team->shm;
    struct hvd__visible *v = &c->shared.visible;
    struct hvd__slice share = hvd__share_of(c, c->team->rank);

    *v = (struct hvd__visible){.reduction = c->reduction,
                               .sources = c->workspace->sources,
                               .targets = c->workspace->targets};
    for (int rank = 0; rank < c->team->size; rank++)
        if (!hvd__visible_add(v, shm, rank, shm->areas[rank]->input,
                              shm->areas[rank]->output, hvd__is_wanted(c, rank),
                              hvd__bytes_of(c, c->count)))
            return false;
    hvd__visible_begin(v, share.start, share.count);
    if (c->motion == HVD__REDUCE_TO_SHARES)
        v->targets[v->ntargets++] = c->output;
    return true;
}

static bool step_direct(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;

    if (s->visible.left > 0) {
        hvd__visible_step(&s->visible, &c->computing_ns);
        s->copied++;
    }
    if (s->visible.left > 0)
        return false;
    hvd__round_set(&s->shm->own->combined, s->round, 1);
    return HVD__SHARED_LEAST(c, combined) >= 1;
}

/* ---------------------------------------------------------------- in chunks */

static void combine(struct hvd__collective *c, int64_t k)
{
    int self = c->team->rank, n = 0;
    struct hvd__slice r = hvd__shared_range(c, self, k);
    size_t offset = hvd__bytes_of(c, r.start);
    const void **sources = c->workspace->sources;
    void *outs[2];

    if (r.count == 0)
        return;
    for (int rank = 0; rank < c->team->size; rank++)
        sources[rank] = hvd__shared_buffer(c, rank, k, self);
    sources[self] = (const char *)c->input + offset;
    if (c->motion == HVD__REDUCE_TO_SHARES)
        outs[n++] = (char *)c->output +
                    hvd__bytes_of(c, k * hvd__shared_chunk_count(c));
    else if (hvd__is_wanted(c, self))
        outs[n++] = (char *)c->output + offset;
    if (c->motion == HVD__REDUCE_TO_ALL || n == 0)
        outs[n++] = hvd__shared_buffer(c, self, k, self);
    hvd__timed_reduce(&c->computing_ns, &c->reduction, outs, n, sources,
                      c->team->size, r.count);
}

/* AHEAD chunks are copied before they are needed, while all ranks keep pace:
 * few, so that they are still in the near cache when they are combined. A rank
 * that had to wait goes ahead as far as there are buffers: the others may not
 * be running, and it need not wait for them after each chunk then. */
enum { AHEAD = 2 };

/* Does what can be done next, the last step of a chunk first. Returns whether
 * it did anything. */
static bool move_chunk(struct hvd__collective *c, int64_t n, int64_t ahead)
{
    struct hvd__shared *s = &c->shared;
    struct hvd__area *own = s->shm->own;
    int64_t combined = HVD__SHARED_LEAST(c, combined);

    if (s->fetched < s->combined && s->fetched < combined) {
        if (hvd__is_wanted(c, c->team->rank))
            hvd__shared_fetch(c, s->fetched);
        hvd__round_set(&own->fetched, s->round, ++s->fetched);
        return true;
    }
    if (s->combined < s->copied && s->combined < HVD__SHARED_LEAST(c, copied) &&
        s->combined - HVD__BUFFERS < HVD__SHARED_LEAST(c, fetched)) {
        combine(c, s->combined);
        hvd__round_set(&own->combined, s->round, ++s->combined);
        return true;
    }
    if (s->copied < n && s->copied < s->combined + ahead &&
        s->copied - HVD__BUFFERS < combined) {
        hvd__shared_copy(c, s->copied);
        hvd__round_set(&own->copied, s->round, ++s->copied);
        return true;
    }
    return false;
}

static bool step_chunks(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;
    int64_t n = hvd__shared_nchunks(c);

    if (!move_chunk(c, n, AHEAD))
        move_chunk(c, n, HVD__BUFFERS);
    while (move_chunk(c, n, AHEAD))
        continue;
    return s->fetched == n;
}

/* ----------------------------------------------------------------- the door */

static void begin(struct hvd__collective *c)
{
    hvd__shared_begin(c, c->input, c->output, hvd__bytes_of(c, c->count));
}

static bool move(struct hvd__collective *c)
{
    return c->shared.direct ? step_direct(c) : step_chunks(c);
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    static const struct hvd__shared_parts parts = {begin, reach, move};

    (void)before;
    return hvd__shared_step(c, segment, &parts);
}

const struct hvd__algorithm hvd__reduce_shared = {
    .name = "shared",
    .description = "reductions in shared memory; any size",
    .applies = applies,
    .total = hvd__total_count,
    .start = hvd__shared_start,
    .step = step_segment,
};
