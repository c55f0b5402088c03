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

/* The work is always one unit, because even a rank without a block must report
 * that. */
static int64_t total(const struct hvd__collective *c)
{
    (void)c;
    return 1;
}

/* A block on its way. */
struct way {
    uint64_t place; /* 0: through the buffers */
    struct hvd__slice bytes;
    int64_t chunk; /* bytes of a chunk */
    int64_t n;     /* number of chunks */
    hvd__round_count *sent, *taken;
};

static struct way way_of(const struct hvd__collective *c, int from, int to)
{
    const struct hvd__shm *shm = c->shared.shm;
    const struct hvd__shm_place *block = &hvd__shm_places(shm, from)[to];
    struct way way = {.place = block->place,
                      .bytes = {0, (int64_t)block->bytes},
                      .chunk = block->place ? HVD__CHUNK_BYTES
                                            : (int64_t)c->shared.chunk_bytes,
                      .sent = &hvd__shm_pairs(shm, from)[to].sent,
                      .taken = &hvd__shm_pairs(shm, to)[from].taken};

    way.n = (way.bytes.count + way.chunk - 1) / way.chunk;
    return way;
}

/* Returns the bytes of chunk k. */
static struct hvd__slice chunk_of(const struct way *way, int64_t k)
{
    return hvd__slice_part(way->bytes, k * way->chunk, way->chunk);
}

/* Sends what can go to a rank. Returns whether all has gone that the receiver
 * does not copy itself. */
static bool send_block(struct hvd__collective *c, int to)
{
    struct way way = way_of(c, c->team->rank, to);
    int64_t taken = hvd__round_get(way.taken, c->shared.round), sent;

    if (way.place)
        return taken >= way.n;
    sent = hvd__round_get(way.sent, c->shared.round);
    for (; sent < way.n && sent - HVD__BUFFERS < taken; sent++) {
        struct hvd__slice chunk = chunk_of(&way, sent);

        memcpy(hvd__shared_buffer(c, c->team->rank, sent, to),
               c->to[to].data + chunk.start, (size_t)chunk.count);
        hvd__round_set(way.sent, c->shared.round, sent + 1);
        c->shared.copied++;
    }
    return sent == way.n;
}

/* Takes what has come from a rank. Returns whether that is all. */
static bool take_block(struct hvd__collective *c, int from)
{
    struct way way = way_of(c, from, c->team->rank);
    int64_t taken = hvd__round_get(way.taken, c->shared.round);
    int64_t sent =
        way.place ? taken + 1 : hvd__round_get(way.sent, c->shared.round);
    const struct hvd__shm *shm = c->shared.shm;
    const unsigned char *direct = hvd__heap_at(
        shm->heap, shm->world[from], way.place, (size_t)way.bytes.count);

    for (; taken < way.n && taken < sent; taken++) {
        struct hvd__slice chunk = chunk_of(&way, taken);

        memcpy(c->from[from].data + chunk.start,
               way.place ? direct + chunk.start
                         : hvd__shared_buffer(c, from, taken, c->team->rank),
               (size_t)chunk.count);
        hvd__round_set(way.taken, c->shared.round, taken + 1);
        c->shared.fetched++;
    }
    return taken == way.n;
}

static void begin_exchange(struct hvd__collective *c)
{
    struct hvd__shm *shm = c->shared.shm;
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

static bool move(struct hvd__collective *c)
{
    bool done = true;

    for (int i = 1; i < c->team->size; i++) {
        done &= send_block(c, hvd__team_to(c->team, i));
        done &= take_block(c, hvd__team_from(c->team, i));
    }
    return done;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    static const struct hvd__shared_parts parts = {begin_exchange, NULL, move};

    (void)before;
    return hvd__shared_step(c, segment, &parts);
}

const struct hvd__algorithm hvd__exchange_shared = {
    .name = "shared",
    .description = "a block to each, in shared memory; any size",
    .applies = applies,
    .total = total,
    .start = hvd__shared_start,
    .step = step_segment,
};
