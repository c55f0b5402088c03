/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_exchange.c - a block from every rank to every other, in shared memory:
 * gathers and alltoall.
 *
 * A receiver copies a block that lies in its sender's heap from there, in
 * chunks. Other blocks go chunk by chunk through buffers of the sender's that
 * are for this receiver alone. The two ranks of a pair count what has gone from
 * one to the other, so no rank waits for a third.
 *
 * Any number of ranks, blocks of any size. Cost on n ranks, m bytes a block,
 * with β for a byte copied: 2α + (n−1)mβ direct, 2α + 2(n−1)mβ through buffers.
 */
#include <string.h>

#include "transport/algo/shared.h"

static bool applies(const struct hvd__collective *c)
{
    return hvd__shared_applies(c) && c->motion == HVD__EXCHANGE;
}

/* There is always one unit of work, because even a rank without a block must
 * report that. */
static int64_t total(const struct hvd__collective *c)
{
    (void)c;
    return 1;
}

/* A block on its way. */
struct way {
    uint64_t place; /* 0: through the buffers */
    size_t bytes;
    size_t chunk; /* bytes of a chunk */
    int64_t n;    /* number of chunks */
    hvd__round_count *sent, *taken;
};

static struct way way_of(const struct hvd__collective *c, int from, int to)
{
    const struct hvd__shm *shm = c->team->shm;
    const struct hvd__shm_place *block = &hvd__shm_places(shm, from)[to];
    struct way way = {.place = block->place,
                      .bytes = block->bytes,
                      .chunk = block->place ? HVD__CHUNK_BYTES
                                            : hvd__shared_chunk_bytes(c),
                      .sent = &hvd__shm_pairs(shm, from)[to].sent,
                      .taken = &hvd__shm_pairs(shm, to)[from].taken};

    way.n = (int64_t)((way.bytes + way.chunk - 1) / way.chunk);
    return way;
}

/* Returns the sender's buffer of chunk k for a receiver. */
static unsigned char *buffer(const struct hvd__collective *c, int from, int to,
                             int64_t k)
{
    size_t chunk = hvd__shared_chunk_bytes(c);

    return hvd__shm_buffers(c->team->shm, from) +
           ((size_t)to * HVD__BUFFERS + (size_t)(k % HVD__BUFFERS)) * chunk;
}

static size_t chunk_bytes(const struct way *way, int64_t k)
{
    size_t rest = way->bytes - (size_t)k * way->chunk;

    return rest < way->chunk ? rest : way->chunk;
}

/* Sends what can go to a rank. Returns whether all has gone that the receiver
 * does not copy itself. */
static bool send_block(struct hvd__collective *c, int to, bool *moved)
{
    struct way way = way_of(c, c->team->rank, to);
    int64_t taken = hvd__round_get(way.taken, c->shared.round), sent;

    if (way.place)
        return taken >= way.n;
    sent = hvd__round_get(way.sent, c->shared.round);
    for (; sent < way.n && sent - HVD__BUFFERS < taken; sent++) {
        memcpy(buffer(c, c->team->rank, to, sent),
               c->to[to].data + (size_t)sent * way.chunk,
               chunk_bytes(&way, sent));
        hvd__round_set(way.sent, c->shared.round, sent + 1);
        *moved = true;
    }
    return sent == way.n;
}

/* Takes what has come from a rank. Returns whether that is all. */
static bool take_block(struct hvd__collective *c, int from, bool *moved)
{
    struct way way = way_of(c, from, c->team->rank);
    int64_t taken = hvd__round_get(way.taken, c->shared.round);
    int64_t sent =
        way.place ? taken + 1 : hvd__round_get(way.sent, c->shared.round);
    const struct hvd__shm *shm = c->team->shm;
    const unsigned char *direct =
        hvd__heap_at(shm->heap, shm->world[from], way.place, way.bytes);

    for (; taken < way.n && taken < sent; taken++) {
        size_t offset = (size_t)taken * way.chunk;

        memcpy(c->from[from].data + offset,
               way.place ? direct + offset
                         : buffer(c, from, c->team->rank, taken),
               chunk_bytes(&way, taken));
        hvd__round_set(way.taken, c->shared.round, taken + 1);
        *moved = true;
    }
    return taken == way.n;
}

static void begin_exchange(struct hvd__collective *c)
{
    struct hvd__shm *shm = c->team->shm;
    struct hvd__shm_place *blocks = hvd__shm_places(shm, shm->rank);
    const struct hvd__block *out = &c->to[shm->rank];
    const struct hvd__block *in = &c->from[shm->rank];

    for (int rank = 0; rank < shm->size; rank++)
        blocks[rank] = (struct hvd__shm_place){
            .place =
                hvd__heap_place(shm->heap, c->to[rank].data, c->to[rank].bytes),
            .bytes = c->to[rank].bytes,
        };
    hvd__shared_begin(c, NULL, NULL, 0);
    if (out->bytes > 0 && in->data && out->data != in->data)
        memcpy(in->data, out->data, out->bytes);
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    bool done = true, moved = false;

    (void)before;
    if (!c->shared.began) {
        if (!hvd__shared_may_begin(c))
            return 0;
        begin_exchange(c);
        segment->phase++;
    }
    if (segment->phase == 1) {
        if (!hvd__shared_all_began(c))
            return 0;
        segment->phase++;
    }
    for (int i = 1; i < c->team->size; i++) {
        done &= send_block(c, hvd__team_to(c->team, i), &moved);
        done &= take_block(c, hvd__team_from(c->team, i), &moved);
    }
    if (done)
        hvd__shared_finish(c);
    else if (moved)
        segment->phase ^= 4;
    return done;
}

const struct hvd__algorithm hvd__exchange_shared = {
    .name = "shared",
    .description = "a block to each, in shared memory; any size",
    .applies = applies,
    .total = total,
    .start = hvd__shared_start,
    .step = step_segment,
};
