/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_reduce.c - reductions in shared memory. Each rank reduces its share of
 * all contributions, in one place and in the order of the ranks, as
 * reduce_scatter.c does.
 *
 * Direct, if all contributions, and the outputs of those who want them, lie in
 * heaps: visible.c reduces in place, and nothing is copied. Otherwise in
 * chunks, each a range of every share, of which a few are on their way at once:
 *
 *     copy      what others will reduce, from the input into our buffer
 *     combine   our own range of the input, and what others have for it in
 *               their buffers, into the output and our buffer
 *     fetch     the results of others, from their buffers into the output
 *
 * Each byte of input and output crosses the bus once; what lies in buffers
 * stays in the cache. A buffer holds, for each rank, what is copied for it, and
 * for ourselves, our result. In place works: a range is copied, or combined,
 * before the result is fetched to where it was.
 *
 * Any number of ranks and elements; shares may differ and be empty. Cost on n
 * ranks, m bytes, with γ for a byte reduced and β for one copied: as visible.c
 * direct; in chunks 2α + mγ + 2m(n−1)/n β a rank.
 */
#include <string.h>

#include "transport/algo/shared.h"

static bool applies(const struct hvd__collective *c)
{
    return hvd__shared_applies(c) && c->motion <= HVD__REDUCE_TO_SHARES;
}

static int64_t total(const struct hvd__collective *c)
{
    return c->count;
}

static size_t element_of(const struct hvd__collective *c)
{
    return hvd__dtype_bytes(c->reduction.dtype);
}

static bool wants(const struct hvd__collective *c, int rank)
{
    return c->motion == HVD__REDUCE_TO_ALL ||
           (c->motion == HVD__REDUCE_TO_ROOT && rank == c->root);
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
                              shm->areas[rank]->output, wants(c, rank),
                              (size_t)c->count * element_of(c)))
            return false;
    hvd__visible_begin(v, share.start, share.count);
    if (c->motion == HVD__REDUCE_TO_SHARES)
        v->targets[v->ntargets++] = c->output;
    return true;
}

static int step_direct(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;

    if (s->visible.left > 0) {
        hvd__visible_step(&s->visible, &c->computing_ns);
        s->copied++;
    }
    if (s->visible.left > 0)
        return 0;
    hvd__round_set(&c->team->shm->own->combined, s->round, 1);
    return HVD__SHARED_LEAST(c, combined) >= 1;
}

/* ---------------------------------------------------------------- in chunks */

struct range {
    int64_t start; /* elements */
    int64_t count;
};

static int64_t chunk_count(const struct hvd__collective *c)
{
    return (int64_t)(hvd__shared_chunk_bytes(c) / element_of(c));
}

/* Returns chunk k of rank's share. */
static struct range range_of(const struct hvd__collective *c, int rank,
                             int64_t k)
{
    struct hvd__slice share = hvd__share_of(c, rank);
    int64_t most = chunk_count(c);
    int64_t count = share.count - k * most;

    if (count < 0)
        count = 0;
    return (struct range){share.start + k * most, count < most ? count : most};
}

static int64_t nchunks(const struct hvd__collective *c)
{
    int64_t most = 0;

    for (int rank = 0; rank < c->team->size; rank++) {
        int64_t count = hvd__share_of(c, rank).count;
        if (count > most)
            most = count;
    }
    return (most + chunk_count(c) - 1) / chunk_count(c);
}

/* Returns where owner's buffer of chunk k has the data for rank. */
static unsigned char *buffer(const struct hvd__collective *c, int owner,
                             int64_t k, int rank)
{
    size_t chunk = hvd__shared_chunk_bytes(c);
    size_t buffers = (size_t)c->team->size * chunk;

    return hvd__shm_buffers(c->team->shm, owner) +
           (size_t)(k % HVD__BUFFERS) * buffers + (size_t)rank * chunk;
}

static void copy(const struct hvd__collective *c, int64_t k)
{
    for (int rank = 0; rank < c->team->size; rank++) {
        struct range r = range_of(c, rank, k);

        if (rank != c->team->rank && r.count > 0)
            memcpy(buffer(c, c->team->rank, k, rank),
                   (const char *)c->input + (size_t)r.start * element_of(c),
                   (size_t)r.count * element_of(c));
    }
}

static void combine(struct hvd__collective *c, int64_t k)
{
    int self = c->team->rank, n = 0;
    struct range r = range_of(c, self, k);
    size_t offset = (size_t)r.start * element_of(c);
    const void **sources = c->workspace->sources;
    void *outs[2];

    if (r.count == 0)
        return;
    for (int rank = 0; rank < c->team->size; rank++)
        sources[rank] = buffer(c, rank, k, self);
    sources[self] = (const char *)c->input + offset;
    if (c->motion == HVD__REDUCE_TO_SHARES)
        outs[n++] =
            (char *)c->output + (size_t)(k * chunk_count(c)) * element_of(c);
    else if (wants(c, self))
        outs[n++] = (char *)c->output + offset;
    if (c->motion == HVD__REDUCE_TO_ALL || n == 0)
        outs[n++] = buffer(c, self, k, self);
    hvd__timed_reduce(&c->computing_ns, &c->reduction, outs, n, sources,
                      c->team->size, r.count);
}

static void fetch(const struct hvd__collective *c, int64_t k)
{
    for (int rank = 0; rank < c->team->size; rank++) {
        struct range r = range_of(c, rank, k);

        if (rank != c->team->rank && r.count > 0 && wants(c, c->team->rank))
            memcpy((char *)c->output + (size_t)r.start * element_of(c),
                   buffer(c, rank, k, rank), (size_t)r.count * element_of(c));
    }
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
    struct hvd__area *own = c->team->shm->own;
    int64_t combined = HVD__SHARED_LEAST(c, combined);

    if (s->fetched < s->combined && s->fetched < combined) {
        fetch(c, s->fetched);
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
        copy(c, s->copied);
        hvd__round_set(&own->copied, s->round, ++s->copied);
        return true;
    }
    return false;
}

static int step_chunks(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;
    int64_t n = nchunks(c);

    if (!move_chunk(c, n, AHEAD))
        move_chunk(c, n, HVD__BUFFERS);
    while (move_chunk(c, n, AHEAD))
        continue;
    return s->fetched == n;
}

/* ----------------------------------------------------------------- the door */

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__shared *s = &c->shared;
    size_t bytes = (size_t)c->count * element_of(c);
    int64_t was = s->copied + s->combined + s->fetched;
    int done;

    (void)before;
    if (!s->began) {
        if (!hvd__shared_may_begin(c))
            return 0;
        hvd__shared_begin(c, c->input, c->output, bytes);
        segment->phase++;
    }
    if (segment->phase == 1) {
        if (!hvd__shared_all_began(c))
            return 0;
        s->direct = reach(c);
        segment->phase++;
    }
    done = s->direct ? step_direct(c) : step_chunks(c);
    if (done)
        hvd__shared_finish(c);
    else if (s->copied + s->combined + s->fetched != was)
        segment->phase ^= 4; /* it moved */
    return done;
}

const struct hvd__algorithm hvd__reduce_shared = {
    .name = "shared",
    .description = "reductions in shared memory; any size",
    .applies = applies,
    .total = total,
    .start = hvd__shared_start,
    .step = step_segment,
};
