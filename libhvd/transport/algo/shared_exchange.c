/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shared_exchange.c - a block from every rank to every other, in shared memory:
 * gathers and alltoall.
 *
 * A receiver copies a block that lies in its sender's heap from there. Other
 * blocks go chunk by chunk through buffers of the sender's that are for this
 * receiver alone. The two ranks of a pair count what has gone from one to the
 * other, so no rank waits for a third.
 *
 * In an exchange in place, what a rank receives from a peer takes the room of
 * what it sends there, which has the same size. If the room of both lies in
 * their heaps, they swap: each of them swaps one half. Else such a block goes
 * through buffers, and a chunk is only overwritten once it has been sent. Each
 * rank may be in place or not.
 *
 * Any number of ranks, blocks of any size. Cost on n ranks, m bytes a block,
 * with β for a byte copied: 2α + (n−1)mβ direct and swapped, 2α + 2(n−1)mβ
 * through buffers.
 */
#include <string.h>

#include "transport/algo/shared.h"

static bool applies(const struct hvd__collective *c)
{
    return hvd__shared_applies(c) && c->motion >= HVD__GATHER_TO_ALL;
}

/* The work is always one unit, because even a rank without a block must report
 * that. */
static int64_t total(const struct hvd__collective *c)
{
    (void)c;
    return 1;
}

/* The ways of a block from one rank to another. */
enum how { DIRECT, SWAPPED, BUFFERED };

/* A block on its way. */
struct way {
    enum how how;
    uint64_t place; /* DIRECT, SWAPPED: of the sender's block */
    struct hvd__slice
        bytes;     /* what moves: all or, SWAPPED, the sender's half */
    int64_t chunk; /* bytes of a chunk */
    int64_t n;     /* number of chunks */
    hvd__round_count *sent, *taken;
};

/* Returns whether the block from a peer takes the room of the one to it. */
static bool stays_in_place(const struct hvd__collective *c, int peer)
{
    return c->to[peer].data == c->from[peer].data &&
           c->to[peer].bytes == c->from[peer].bytes;
}

/* Returns the half of a block that one of the two ranks swaps, divided between
 * cache lines. */
static struct hvd__slice half_of(int64_t bytes, bool second)
{
    int64_t half = bytes / 128 * 64;

    return second ? (struct hvd__slice){half, bytes - half}
                  : (struct hvd__slice){0, half};
}

static enum how how_between(const struct hvd__shm_place *out,
                            const struct hvd__shm_place *back)
{
    if (!out->place)
        return BUFFERED;
    if (!out->in_place)
        return DIRECT;
    return back->place && back->in_place ? SWAPPED : BUFFERED;
}

static struct way way_of(const struct hvd__collective *c, int from, int to)
{
    const struct hvd__shm *shm = c->shared.shm;
    const struct hvd__shm_place *block = &hvd__shm_places(shm, from)[to];
    enum how how = how_between(block, &hvd__shm_places(shm, to)[from]);
    struct way way = {.how = how,
                      .place = block->place,
                      .bytes = {0, (int64_t)block->bytes},
                      .chunk = how == DIRECT ? HVD__CHUNK_BYTES
                                             : (int64_t)c->shared.chunk_bytes,
                      .sent = &hvd__shm_pairs(shm, from)[to].sent,
                      .taken = &hvd__shm_pairs(shm, to)[from].taken};

    if (how == SWAPPED)
        way.bytes = half_of(way.bytes.count, from > to);
    way.n = (way.bytes.count + way.chunk - 1) / way.chunk;
    return way;
}

/* Returns the bytes of chunk k. */
static struct hvd__slice chunk_of(const struct way *way, int64_t k)
{
    return hvd__slice_part(way->bytes, k * way->chunk, way->chunk);
}

/* Returns the address here of a block in its sender's heap. */
static unsigned char *block_at(const struct hvd__collective *c, int from,
                               const struct way *way)
{
    const struct hvd__shm *shm = c->shared.shm;
    const struct hvd__shm_place *block =
        &hvd__shm_places(shm, from)[c->team->rank];

    return hvd__heap_at(shm->heap, shm->world[from], way->place,
                        (size_t)block->bytes);
}

/* Sends what can go to a rank. Returns whether all has gone that the receiver
 * does not copy itself. */
static bool send_block(struct hvd__collective *c, int to)
{
    struct way way = way_of(c, c->team->rank, to);
    int64_t taken = hvd__round_get(way.taken, c->shared.round), sent;

    if (way.how != BUFFERED)
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

/* Returns how many bytes of the block from a rank, from the beginning, may be
 * written to. */
static int64_t writable_bytes(const struct hvd__collective *c, int from)
{
    struct way back = way_of(c, c->team->rank, from);
    int64_t sent;

    if (back.how != BUFFERED || !stays_in_place(c, from))
        return INT64_MAX;
    sent = hvd__round_get(back.sent, c->shared.round);
    return sent < back.n ? sent * back.chunk : INT64_MAX;
}

/* Swaps bytes of this rank's with those of another. */
static void swap_bytes(unsigned char *ours, unsigned char *theirs,
                       int64_t bytes)
{
    unsigned char piece[4096];

    while (bytes > 0) {
        size_t n = bytes < (int64_t)sizeof piece ? (size_t)bytes : sizeof piece;

        memcpy(piece, theirs, n);
        memcpy(theirs, ours, n);
        memcpy(ours, piece, n);
        ours += n;
        theirs += n;
        bytes -= (int64_t)n;
    }
}

/* Takes what has come from a rank. Returns whether that is all. */
static bool take_block(struct hvd__collective *c, int from)
{
    struct way way = way_of(c, from, c->team->rank);
    int64_t taken = hvd__round_get(way.taken, c->shared.round);
    int64_t writable = writable_bytes(c, from);
    int64_t sent = way.n;
    unsigned char *there = NULL, *data = c->from[from].data;

    if (way.how == BUFFERED)
        sent = hvd__round_get(way.sent, c->shared.round);
    else
        there = block_at(c, from, &way);
    for (; taken < way.n && taken < sent; taken++) {
        struct hvd__slice chunk = chunk_of(&way, taken);

        if (chunk.start + chunk.count > writable)
            break;
        if (way.how == SWAPPED)
            swap_bytes(data + chunk.start, there + chunk.start, chunk.count);
        else
            memcpy(data + chunk.start,
                   there ? there + chunk.start
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
            .in_place = stays_in_place(c, rank),
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
