/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/algo/shared.h"

bool hvd__shared_applies(const struct hvd__collective *c)
{
    return c->team->slate && c->team->size > 1;
}

int hvd__shared_start(struct hvd__collective *c, struct hvd__segment *segment)
{
    c->shared = (struct hvd__shared){.round = ++c->team->slate->round};
    segment->count = c->total;
    return HVD_OK;
}

bool hvd__shared_may_begin(const struct hvd__collective *c)
{
    return hvd__slate_may_begin(c->team->slate, c->shared.round);
}

void hvd__shared_begin(struct hvd__collective *c, const void *input,
                       const void *output, size_t bytes)
{
    struct hvd__slate *slate = c->team->slate;

    slate->own->input = hvd__heap_place(slate->heap, input, bytes);
    slate->own->output = hvd__heap_place(slate->heap, output, bytes);
    atomic_store_explicit(&slate->own->round, c->shared.round,
                          memory_order_release);
    c->shared.began = true;
}

bool hvd__shared_all_began(const struct hvd__collective *c)
{
    const struct hvd__slate *slate = c->team->slate;

    for (int rank = 0; rank < slate->size; rank++)
        if (atomic_load_explicit(&slate->parts[rank]->round,
                                 memory_order_acquire) != c->shared.round)
            return false;
    return true;
}

void *hvd__shared_input(const struct hvd__collective *c, int rank, size_t bytes)
{
    const struct hvd__slate *slate = c->team->slate;

    return hvd__heap_at(slate->heap, slate->world[rank],
                        slate->parts[rank]->input, bytes);
}

void *hvd__shared_output(const struct hvd__collective *c, int rank,
                         size_t bytes)
{
    const struct hvd__slate *slate = c->team->slate;

    return hvd__heap_at(slate->heap, slate->world[rank],
                        slate->parts[rank]->output, bytes);
}

void hvd__shared_finish(struct hvd__collective *c)
{
    hvd__slate_finish(c->team->slate, c->shared.round);
}

int64_t hvd__shared_least(const struct hvd__collective *c, size_t count)
{
    return hvd__slate_least(c->team->slate, c->shared.round, count);
}

size_t hvd__shared_chunk_bytes(const struct hvd__collective *c)
{
    const struct hvd__slate *slate = c->team->slate;

    return slate->bounce_bytes / HVD__BUFFERS / (size_t)slate->size;
}
