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

static int64_t total(const struct hvd__collective *c)
{
    return c->count;
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

static int step_root(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;

    if (s->copied < c->team->size) {
        if (s->copied != c->root)
            push(c, (int)s->copied);
        if (++s->copied == c->team->size)
            hvd__round_set(&c->team->shm->own->copied, s->round, 1);
        return 0;
    }
    return HVD__SHARED_LEAST(c, fetched) >= 1;
}

static int step_receiver(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;
    const struct hvd__shm *shm = c->team->shm;
    int64_t mine = own_bytes(c, c->team->rank), bytes = mine - s->fetched;

    if (bytes > HVD__CHUNK_BYTES)
        bytes = HVD__CHUNK_BYTES;
    if (bytes > 0) {
        const char *from = hvd__shared_output(c, c->root, (size_t)c->count);

        memcpy((char *)c->output + s->fetched, from + s->fetched,
               (size_t)bytes);
        s->fetched += bytes;
    }
    if (s->fetched < mine)
        return 0;
    hvd__round_set(&shm->own->fetched, s->round, 1);
    return hvd__round_get(&shm->areas[c->root]->copied, s->round) >= 1;
}

/* ---------------------------------------------------------------- in chunks */

static int step_chunks(struct hvd__collective *c)
{
    struct hvd__shared *s = &c->shared;
    const struct hvd__shm *shm = c->team->shm;
    bool root = c->team->rank == c->root;
    size_t most = hvd__shared_chunk_bytes(c) * (size_t)c->team->size;
    int64_t n = (int64_t)(((size_t)c->count + most - 1) / most);
    hvd__round_count *mine = root ? &shm->own->copied : &shm->own->fetched;
    int64_t *done = root ? &s->copied : &s->fetched;

    while (*done < n) {
        size_t offset = (size_t)*done * most;
        size_t bytes = (size_t)c->count - offset;
        unsigned char *buffer = hvd__shm_buffers(shm, c->root) +
                                (size_t)(*done % HVD__BUFFERS) * most;
        unsigned char *data = (unsigned char *)c->output + offset;

        if (bytes > most)
            bytes = most;
        if (root && *done - HVD__BUFFERS >= HVD__SHARED_LEAST(c, fetched))
            return 0;
        if (!root &&
            *done >= hvd__round_get(&shm->areas[c->root]->copied, s->round))
            return 0;
        memcpy(root ? buffer : data, root ? data : buffer, bytes);
        hvd__round_set(mine, s->round, ++*done);
    }
    return 1;
}

/* ----------------------------------------------------------------- the door */

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__shared *s = &c->shared;
    int64_t was = s->copied + s->fetched;
    int done;

    (void)before;
    if (!s->began) {
        if (!hvd__shared_may_begin(c))
            return 0;
        hvd__shared_begin(c, NULL, c->output, (size_t)c->count);
        segment->phase++;
    }
    if (segment->phase == 1) {
        if (!hvd__shared_all_began(c))
            return 0;
        s->direct = hvd__shared_output(c, c->root, (size_t)c->count) != NULL;
        segment->phase++;
    }
    if (!s->direct)
        done = step_chunks(c);
    else
        done = c->team->rank == c->root ? step_root(c) : step_receiver(c);
    if (done)
        hvd__shared_finish(c);
    else if (s->copied + s->fetched != was)
        segment->phase ^= 4; /* it moved */
    return done;
}

const struct hvd__algorithm hvd__broadcast_shared = {
    .name = "shared",
    .description = "broadcasts in shared memory; any size",
    .applies = applies,
    .total = total,
    .start = hvd__shared_start,
    .step = step_segment,
};
