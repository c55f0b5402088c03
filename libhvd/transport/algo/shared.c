/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/algo/shared.h"

bool hvd__shared_applies(const struct hvd__collective *c)
{
    return c->team->shm && c->team->size > 1;
}

int hvd__shared_start(struct hvd__collective *c, struct hvd__segment *segment)
{
    c->shared = (struct hvd__shared){.round = ++c->team->shm->round};
    segment->count = c->total;
    return HVD_OK;
}

bool hvd__shared_may_begin(const struct hvd__collective *c)
{
    return hvd__shm_may_begin(c->team->shm, c->shared.round);
}

void hvd__shared_begin(struct hvd__collective *c, const void *input,
                       const void *output, size_t bytes)
{
    struct hvd__shm *shm = c->team->shm;

    shm->own->input = hvd__heap_place(shm->heap, input, bytes);
    shm->own->output = hvd__heap_place(shm->heap, output, bytes);
    atomic_store_explicit(&shm->own->round, c->shared.round,
                          memory_order_release);
    c->shared.began = true;
}

bool hvd__shared_all_began(const struct hvd__collective *c)
{
    const struct hvd__shm *shm = c->team->shm;

    for (int rank = 0; rank < shm->size; rank++)
        if (atomic_load_explicit(&shm->areas[rank]->round,
                                 memory_order_acquire) != c->shared.round)
            return false;
    return true;
}

void *hvd__shared_output(const struct hvd__collective *c, int rank,
                         size_t bytes)
{
    const struct hvd__shm *shm = c->team->shm;

    return hvd__heap_at(shm->heap, shm->world[rank], shm->areas[rank]->output,
                        bytes);
}

void hvd__shared_finish(struct hvd__collective *c)
{
    hvd__shm_finish(c->team->shm, c->shared.round);
}

int64_t hvd__shared_least(const struct hvd__collective *c, size_t count)
{
    return hvd__shm_least(c->team->shm, c->shared.round, count);
}

size_t hvd__shared_chunk_bytes(const struct hvd__collective *c)
{
    const struct hvd__shm *shm = c->team->shm;

    return shm->bounce_bytes / HVD__BUFFERS / (size_t)shm->size;
}
