/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_broadcast.c - broadcasts in shared memory.
 *
 * Direct, if the root's data lies in its heap: the other ranks copy it from
 * there. The root, which would be idle, copies one rank's share for each rank
 * whose memory lies in a heap. Otherwise the root copies chunks into its
 * buffers, and the others copy them out.
 *
 * Any number of ranks, any size. Cost on n ranks, m bytes, with β for a byte
 * copied: 2α + m(n−1)/n β direct, 2α + 2mβ through buffers, of which the two
 * halves overlap, chunk by chunk.
 */
#include <string.h>

#include "transport/algo/shared.h"

static bool applies(const struct hvd__collective *c)
{
    return hvd__shared_applies(c) && c->motion == HVD__SEND_FROM_ROOT;
}

/* ------------------------------------------------------------------- direct */

/* Returns the bytes, from the beginning, that a rank copies itself. */
static int64_t own_bytes(const struct hvd__collective *c, int rank)
{
    if (!hvd__shared_output(c, rank, (size_t)c->count))
        return c->count;
    return c->count - c->count / c->team->size;
}

/* Copies the root's share for a rank. */
static void push(const struct hvd__collective *c, int rank)
{
    int64_t start = own_bytes(c, rank);

    if (start < c->count)
        memcpy((char *)hvd__shared_output(c, rank, (size_t)c->count) + start,
               (char *)c->output + start, (size_t)(c->count - start));
}

static bool step_root(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;

    if (s->copied < c->team->size) {
        if (s->copied != c->root)
            push(c, (int)s->copied);
        if (++s->copied == c->team->size)
            hvd__round_set(&s->shm->own->copied, s->round, 1);
        return false;
    }
    return HVD__SHARED_LEAST(c, fetched) >= 1;
}

static bool step_receiver(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;
    int64_t mine = own_bytes(c, c->team->rank);
    struct hvd__slice part = hvd__slice_part((struct hvd__slice){0, mine},
                                             s->fetched, HVD__CHUNK_BYTES);

    if (part.count > 0) {
        const char *from = hvd__shared_output(c, c->root, (size_t)c->count);

        memcpy((char *)c->output + part.start, from + part.start,
               (size_t)part.count);
        s->fetched += part.count;
    }
    if (s->fetched < mine)
        return false;
    hvd__round_set(&s->shm->own->fetched, s->round, 1);
    return hvd__round_get(&s->shm->areas[c->root]->copied, s->round) >= 1;
}

/* ---------------------------------------------------------------- in chunks */

/* A chunk takes the room of a chunk of every slice. */
static bool step_chunks(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;
    const struct hvd__shm *shm = s->shm;
    const struct hvd__slice all = {0, c->count};
    bool root = c->team->rank == c->root;
    int64_t most = (int64_t)s->chunk_bytes * s->nslices;
    hvd__round_count *mine = root ? &shm->own->copied : &shm->own->fetched;
    int64_t *done = root ? &s->copied : &s->fetched;

    while (*done * most < c->count) {
        struct hvd__slice part = hvd__slice_part(all, *done * most, most);
        unsigned char *buffer = hvd__shared_buffer(c, c->root, *done, 0);
        unsigned char *data = (unsigned char *)c->output + part.start;

        if (root && *done - HVD__BUFFERS >= HVD__SHARED_LEAST(c, fetched))
            return false;
        if (!root &&
            *done >= hvd__round_get(&shm->areas[c->root]->copied, s->round))
            return false;
        memcpy(root ? buffer : data, root ? data : buffer, (size_t)part.count);
        hvd__round_set(mine, s->round, ++*done);
    }
    return true;
}

/* ----------------------------------------------------------------- the door */

static void begin(struct hvd__collective *c)
{
    hvd__shared_begin(c, NULL, c->output, (size_t)c->count);
}

static bool is_direct(struct hvd__collective *c)
{
    return hvd__shared_output(c, c->root, (size_t)c->count) != NULL;
}

static bool move(struct hvd__collective *c)
{
    if (!c->shared.direct)
        return step_chunks(c);
    return c->team->rank == c->root ? step_root(c) : step_receiver(c);
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    static const struct hvd__shared_parts parts = {begin, is_direct, move};

    (void)before;
    return hvd__shared_step(c, segment, &parts);
}

const struct hvd__algorithm hvd__broadcast_shared = {
    .name = "shared",
    .description = "broadcasts in shared memory; any size",
    .applies = applies,
    .total = hvd__total_count,
    .start = hvd__shared_start,
    .step = step_segment,
};
