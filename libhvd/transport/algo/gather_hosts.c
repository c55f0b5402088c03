/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_hosts.c - a block of each rank to all, over several hosts: each byte
 * comes to each host once, and its ranks take it from shared memory.
 *
 * Hosts form rings, one for each local number. In ring l, member l of a host
 * (modulo their number, where a host has fewer) carries the blocks of all
 * members l. It sends its own block to the carrier on the next host, and then
 * what comes from the host before, unless that is the next host's own:
 *
 *     host 0   A ──►        host 0   C ──►        host 0   A B C
 *     host 1   B ──► ...    host 1   A ──► ...    host 1   A B C
 *     host 2   C ──►        host 2   B ──►        host 2   A B C
 *
 * Blocks travel in chunks. A chunk is passed on as soon as it is there and its
 * turn has come. So each link carries one stream in each direction, and all
 * ranks of a host carry.
 *
 * Everything that a rank has, first its own block and then what it receives, it
 * also puts into its buffers, chunk by chunk, from which the other ranks of its
 * host fetch it. Two ranks count what has gone from one to the other.
 *
 * All ranks know the size of every block, and so all know the order in which a
 * carrier sends and shows chunks: step by step along the ring, in a step chunk
 * by chunk, and of each chunk number the blocks in the order of the rings.
 *
 * Any number of hosts and of ranks on each, blocks of any size. Source: the
 * ring of Thakur, Rabenseifner and Gropp (2005), between hosts. Cost on h hosts
 * of n ranks, m bytes in all: (h−1)α + m(h−1)/(hn) β for a rank's part of the
 * network, and m copied.
 */
#include <string.h>

#include "base/status.h"
#include "transport/algo/cost.h"
#include "transport/algo/shared.h"
#include "transport/hosts.h"

/* Chunks of CHUNK_BYTES make up for the cost of a message. UNDER_WAY of them
 * keep a link busy in each direction. */
enum { CHUNK_BYTES = 128 << 10, UNDER_WAY = 8 };

/* The bits of a segment's phase. MOVED changes with each progress, which is how
 * hvd__collective_step notices it. */
enum { NEW = 0, BEGUN = 1, MOVED = 2 };

static bool gathers_over_hosts(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;

    return h && h->shm && c->motion == HVD__GATHER_TO_ALL &&
           2 * UNDER_WAY <= HVD__SEGMENTS * c->workspace->per_segment;
}

static size_t chunk_bytes(const struct hvd__collective *c)
{
    size_t buffer = c->team->hosts->shm->bounce_bytes / HVD__BUFFERS;

    return buffer < CHUNK_BYTES ? buffer : CHUNK_BYTES;
}

/* Returns the bytes of all blocks. *most becomes those of the largest. */
static int64_t all_bytes(const struct hvd__collective *c, int64_t *most)
{
    int64_t all = 0;

    *most = 0;
    for (int rank = 0; rank < c->team->size; rank++) {
        int64_t bytes = (int64_t)c->from[rank].bytes;

        all += bytes;
        *most = bytes > *most ? bytes : *most;
    }
    return all;
}

static int64_t cost(const struct hvd__collective *c)
{
    const struct hvd__hosts *h = c->team->hosts;
    int64_t chunk = (int64_t)chunk_bytes(c), most;
    int64_t all = all_bytes(c, &most), others = h->n - 1;
    int64_t carried = (h->widest + h->narrowest - 1) / h->narrowest;

    return hvd__cost_ns(
        c->team, (struct hvd__cost){.steps = others,
                                    .messages = others * carried *
                                                ((most + chunk - 1) / chunk),
                                    .moved = all / h->n * others});
}

/* The work is one unit, because a rank without a block carries those of others.
 */
static int64_t total(const struct hvd__collective *c)
{
    int64_t most;

    return all_bytes(c, &most) > 0;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    const struct hvd__block *out = &c->to[c->team->rank];
    const struct hvd__block *in = &c->from[c->team->rank];

    hvd__shared_open(c, segment, c->team->hosts->shm, 1, chunk_bytes(c));
    memset(c->workspace->transfers, 0,
           2 * UNDER_WAY * sizeof *c->workspace->transfers);
    memset(c->workspace->places, 0,
           (size_t)c->shared.shm->size * sizeof *c->workspace->places);
    if (out->bytes > 0 && out->data != in->data)
        memcpy(in->data, out->data, out->bytes);
    return HVD_OK;
}

/* ------------------------------------------------------------ the sequence */

/* The sequence of a carrier: in step 0 it has its own block, in step s those
 * that come from the host s before. A place is one of its chunks. The place
 * behind the last has step h. */

static int size_of(const struct hvd__hosts *h, int host)
{
    return hvd__hosts_size(h, host);
}

/* Returns the block of the host that is step before ours in a ring, or NULL. */
static const struct hvd__block *block_of(const struct hvd__collective *c,
                                         int step, int slice)
{
    const struct hvd__hosts *h = c->team->hosts;
    int host = (h->own - step + h->n) % h->n;

    return slice < size_of(h, host)
               ? &c->from[h->members[h->first[host] + slice]]
               : NULL;
}

static struct hvd__block chunk_at(const struct hvd__collective *c,
                                  const struct hvd__place *place)
{
    const struct hvd__block *block = block_of(c, place->step, place->slice);
    struct hvd__slice part;

    if (!block)
        return (struct hvd__block){0};
    part = hvd__slice_part((struct hvd__slice){0, (int64_t)block->bytes},
                           place->chunk * (int64_t)c->shared.chunk_bytes,
                           (int64_t)c->shared.chunk_bytes);
    return part.count > 0 ? (struct hvd__block){block->data + part.start,
                                                (size_t)part.count}
                          : (struct hvd__block){0};
}

/* Goes to the next place of the sequence of member local of this host, if it
 * were empty or not. Behind the last chunk of a step comes the next step. */
static void go_on(const struct hvd__collective *c, int local,
                  struct hvd__place *place)
{
    const struct hvd__hosts *h = c->team->hosts;
    int next = place->slice + size_of(h, h->own);
    bool more = false;

    if (next < h->widest) {
        place->slice = next;
        return;
    }
    place->slice = local;
    place->chunk++;
    for (int slice = local; slice < h->widest && !more;
         slice += size_of(h, h->own)) {
        struct hvd__place first = {place->chunk, place->step, slice};

        more = chunk_at(c, &first).bytes > 0;
    }
    if (more)
        return;
    place->chunk = 0;
    place->step++;
}

/* Goes on to the first place that is not empty, this one included, before step
 * end. Returns its chunk, or an empty one. */
static struct hvd__block seek(const struct hvd__collective *c, int local,
                              struct hvd__place *place, int end)
{
    struct hvd__block chunk = {0};

    if (place->slice % size_of(c->team->hosts, c->team->hosts->own) != local)
        place->slice = local;
    while (place->step < end && (chunk = chunk_at(c, place)).bytes == 0)
        go_on(c, local, place);
    return chunk;
}

/* Returns whether a place lies before another in one sequence. */
static bool is_before(const struct hvd__place *a, const struct hvd__place *b)
{
    if (a->step != b->step)
        return a->step < b->step;
    return a->chunk != b->chunk ? a->chunk < b->chunk : a->slice < b->slice;
}

/* ------------------------------------------------------------- the network */

/* Counts, of chunks: gathered, those that this rank has begun to receive;
 * combined, those that have come; summed, those that it has begun to send;
 * fetched, those that have left; copied, those in its buffers. */

static struct hvd__transfer *transfer_of(const struct hvd__collective *c,
                                         bool sends, int64_t number)
{
    return &c->workspace
                ->transfers[(sends ? UNDER_WAY : 0) + number % UNDER_WAY];
}

static int carrier(const struct hvd__collective *c, int distance, int slice)
{
    const struct hvd__hosts *h = c->team->hosts;

    return hvd__hosts_carrier(h, (h->own + distance) % h->n, slice);
}

static int receive(struct hvd__collective *c, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__block chunk;
    int done;

    while (s->combined < s->gathered) {
        done =
            hvd__transfers_done(c->team, transfer_of(c, false, s->combined), 1);
        if (done < 0)
            return done;
        if (!done)
            break;
        seek(c, s->shm->rank, &s->came, h->n);
        go_on(c, s->shm->rank, &s->came);
        s->combined++;
        *moved = true;
    }
    while (s->gathered - s->combined < UNDER_WAY &&
           (chunk = seek(c, s->shm->rank, &s->coming, h->n)).bytes > 0) {
        HVD_TRY(hvd__team_receive(
            c->team, carrier(c, h->n - 1, s->coming.slice), c->tag, chunk.data,
            chunk.bytes, transfer_of(c, false, s->gathered)));
        go_on(c, s->shm->rank, &s->coming);
        s->gathered++;
        *moved = true;
    }
    return HVD_OK;
}

/* Returns whether the chunk at a place is in the output. */
static bool is_here(const struct hvd__collective *c,
                    const struct hvd__place *place)
{
    return place->step == 0 || is_before(place, &c->shared.came);
}

static int send(struct hvd__collective *c, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    const struct hvd__hosts *h = c->team->hosts;
    struct hvd__block chunk;
    int done;

    while (s->fetched < s->summed) {
        done =
            hvd__transfers_done(c->team, transfer_of(c, true, s->fetched), 1);
        if (done < 0)
            return done;
        if (!done)
            break;
        s->fetched++;
        *moved = true;
    }
    /* What comes in the last step is the next host's own. */
    while (s->summed - s->fetched < UNDER_WAY &&
           (chunk = seek(c, s->shm->rank, &s->going, h->n - 1)).bytes > 0 &&
           is_here(c, &s->going)) {
        HVD_TRY(hvd__team_send(c->team, carrier(c, 1, s->going.slice), c->tag,
                               chunk.data, chunk.bytes,
                               transfer_of(c, true, s->summed)));
        go_on(c, s->shm->rank, &s->going);
        s->summed++;
        *moved = true;
    }
    return HVD_OK;
}

/* ------------------------------------------------------------- on this host */

/* Returns the least number of chunks that another rank has taken from this one.
 */
static int64_t least_taken(const struct hvd__collective *c)
{
    const struct hvd__shm *shm = c->shared.shm;
    int64_t least = INT64_MAX;

    for (int rank = 0; rank < shm->size; rank++) {
        int64_t taken;

        if (rank == shm->rank)
            continue;
        taken = hvd__round_get(&hvd__shm_pairs(shm, rank)[shm->rank].taken,
                               c->shared.round);
        least = taken < least ? taken : least;
    }
    return least;
}

/* Shows the other ranks of the host what this one has. Returns whether that is
 * all. */
static bool show(struct hvd__collective *c, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    struct hvd__block chunk;

    if (s->shm->size == 1)
        return true;
    while ((chunk = seek(c, s->shm->rank, &s->shown, c->team->hosts->n)).bytes >
               0 &&
           is_here(c, &s->shown) && s->copied - HVD__BUFFERS < least_taken(c)) {
        memcpy(hvd__shared_buffer(c, s->shm->rank, s->copied, 0), chunk.data,
               chunk.bytes);
        hvd__round_set(&s->shm->own->copied, s->round, ++s->copied);
        go_on(c, s->shm->rank, &s->shown);
        *moved = true;
    }
    return chunk.bytes == 0;
}

/* Takes what another rank of the host shows. Returns whether that is all. */
static bool take(struct hvd__collective *c, int local, bool *moved)
{
    struct hvd__shared *s = &c->shared;
    struct hvd__place *place = &c->workspace->places[local];
    hvd__round_count *count =
        &hvd__shm_pairs(s->shm, s->shm->rank)[local].taken;
    int64_t taken = hvd__round_get(count, s->round);
    int64_t shown = hvd__round_get(&s->shm->areas[local]->copied, s->round);
    struct hvd__block chunk;

    while ((chunk = seek(c, local, place, c->team->hosts->n)).bytes > 0 &&
           taken < shown) {
        memcpy(chunk.data, hvd__shared_buffer(c, local, taken, 0), chunk.bytes);
        hvd__round_set(count, s->round, ++taken);
        go_on(c, local, place);
        *moved = true;
    }
    return chunk.bytes == 0;
}

/* ----------------------------------------------------------------- the door */

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before)
{
    struct hvd__shared *s = &c->shared;
    const struct hvd__hosts *h = c->team->hosts;
    bool moved = false, done;

    (void)before;
    if (segment->phase == NEW) {
        if (!hvd__shm_may_begin(s->shm, s->round))
            return 0;
        s->coming.step = s->came.step = 1;
        segment->phase = BEGUN;
    }
    HVD_TRY(receive(c, &moved));
    HVD_TRY(send(c, &moved));
    done = show(c, &moved);
    for (int i = 1; i < s->shm->size; i++)
        done &= take(c, (s->shm->rank + i) % s->shm->size, &moved);
    if (moved)
        segment->phase ^= MOVED;
    done = done && s->combined == s->gathered && s->fetched == s->summed &&
           seek(c, s->shm->rank, &s->coming, h->n).bytes == 0 &&
           seek(c, s->shm->rank, &s->going, h->n - 1).bytes == 0;
    if (done)
        hvd__shm_finish(s->shm, s->round);
    return done;
}

const struct hvd__algorithm hvd__gather_hosts = {
    .name = "hosts",
    .description = "a block of each to all, along rings of the hosts, and in "
                   "shared memory; any size",
    .applies = gathers_over_hosts,
    .cost = cost,
    .total = total,
    .start = start_segment,
    .step = step_segment,
};
