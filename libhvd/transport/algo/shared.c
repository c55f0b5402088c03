/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/algo/shared.h"

#include <string.h>

bool hvd__shared_applies(const struct hvd__collective *c)
{
    return c->team->shm && c->team->size > 1;
}

void hvd__shared_open(struct hvd__collective *c, struct hvd__segment *segment,
                      struct hvd__shm *shm, int nslices, size_t chunk_bytes)
{
    c->shared = (struct hvd__shared){.shm = shm,
                                     .nslices = nslices,
                                     .chunk_bytes = chunk_bytes,
                                     .round = ++shm->round};
    segment->count = c->total;
}

int hvd__shared_start(struct hvd__collective *c, struct hvd__segment *segment)
{
    struct hvd__shm *shm = c->team->shm;

    hvd__shared_open(c, segment, shm, shm->size,
                     shm->bounce_bytes / HVD__BUFFERS / (size_t)shm->size);
    return HVD_OK;
}

/* ----------------------------------------------------------- the way of all */

void hvd__shared_begin(struct hvd__collective *c, const void *input,
                       const void *output, size_t bytes)
{
    struct hvd__shm *shm = c->shared.shm;

    shm->own->input = hvd__heap_place(shm->heap, input, bytes);
    shm->own->output = hvd__heap_place(shm->heap, output, bytes);
    atomic_store_explicit(&shm->own->round, c->shared.round,
                          memory_order_release);
}

static bool all_began(const struct hvd__collective *c)
{
    const struct hvd__shm *shm = c->shared.shm;

    for (int rank = 0; rank < shm->size; rank++)
        if (atomic_load_explicit(&shm->areas[rank]->round,
                                 memory_order_acquire) != c->shared.round)
            return false;
    return true;
}

/* Phase NEW: the area is not free, or not written. BEGUN: other ranks have not
 * begun. In MOVING and MOVED, all have; each progress changes one to the other,
 * which is how hvd__collective_step notices it. */
enum { NEW, BEGUN, MOVING, MOVED };

int hvd__shared_step(struct hvd__collective *c, struct hvd__segment *segment,
                     const struct hvd__shared_parts *parts)
{
    struct hvd__shared *s = &c->shared;
    int64_t was = s->copied + s->combined + s->fetched;

    if (segment->phase == NEW) {
        if (!hvd__shm_may_begin(s->shm, s->round))
            return 0;
        parts->begin(c);
        segment->phase = BEGUN;
    }
    if (segment->phase == BEGUN) {
        if (!all_began(c))
            return 0;
        s->direct = parts->is_direct && parts->is_direct(c);
        segment->phase = MOVING;
    }
    if (parts->move(c)) {
        hvd__shm_finish(s->shm, s->round);
        return 1;
    }
    if (s->copied + s->combined + s->fetched != was)
        segment->phase = segment->phase == MOVING ? MOVED : MOVING;
    return 0;
}

void *hvd__shared_output(const struct hvd__collective *c, int rank,
                         size_t bytes)
{
    const struct hvd__shm *shm = c->shared.shm;

    return hvd__heap_at(shm->heap, shm->world[rank], shm->areas[rank]->output,
                        bytes);
}

/* ------------------------------------------------------------------- chunks */

int64_t hvd__shared_chunk_count(const struct hvd__collective *c)
{
    return (int64_t)(c->shared.chunk_bytes / hvd__bytes_of(c, 1));
}

int64_t hvd__shared_nchunks(const struct hvd__collective *c)
{
    int64_t most = hvd__shared_chunk_count(c);

    return (hvd__largest_share(c, c->shared.nslices) + most - 1) / most;
}

struct hvd__slice hvd__shared_range(const struct hvd__collective *c, int slice,
                                    int64_t k)
{
    int64_t most = hvd__shared_chunk_count(c);
    struct hvd__slice all =
        c->shares ? c->shares[slice]
                  : hvd__slice_of(c->count, slice, c->shared.nslices);

    return hvd__slice_part(all, k * most, most);
}

unsigned char *hvd__shared_buffer(const struct hvd__collective *c, int rank,
                                  int64_t k, int slice)
{
    size_t slices = (size_t)c->shared.nslices;
    size_t chunk = (size_t)(k % HVD__BUFFERS) * slices + (size_t)slice;

    return hvd__shm_buffers(c->shared.shm, rank) +
           chunk * c->shared.chunk_bytes;
}

void hvd__shared_copy(const struct hvd__collective *c, int64_t k)
{
    const struct hvd__shm *shm = c->shared.shm;

    for (int slice = 0; slice < c->shared.nslices; slice++) {
        struct hvd__slice r = hvd__shared_range(c, slice, k);

        if (slice % shm->size != shm->rank && r.count > 0)
            memcpy(hvd__shared_buffer(c, shm->rank, k, slice),
                   (const char *)c->input + hvd__bytes_of(c, r.start),
                   hvd__bytes_of(c, r.count));
    }
}

void hvd__shared_fetch(const struct hvd__collective *c, int64_t k)
{
    const struct hvd__shm *shm = c->shared.shm;

    for (int slice = 0; slice < c->shared.nslices; slice++) {
        struct hvd__slice r = hvd__shared_range(c, slice, k);
        int owner = slice % shm->size;

        if (owner != shm->rank && r.count > 0)
            memcpy((char *)c->output + hvd__bytes_of(c, r.start),
                   hvd__shared_buffer(c, owner, k, slice),
                   hvd__bytes_of(c, r.count));
    }
}
