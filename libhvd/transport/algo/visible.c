/* SPDX-License-Identifier: Apache-2.0 */
/*
 * visible.c - reductions and gathers of data that this rank can read.
 *
 * In place, each rank reduces one share of the data of all ranks, in their
 * order, and writes the result where it belongs, on all that want it: each byte
 * is read once and written once, and nothing is copied. The share is worked on
 * in chunks, between which the caller may look at other things.
 *
 * Any number of ranks and elements; shares may differ and be empty. Cost on n
 * ranks, m bytes, with γ for a byte that is read and reduced and β for one that
 * is written: 2α + mγ + mβ. A rank reduces an n-th of n contributions and
 * writes it n times; the caller waits twice, until all data is there and until
 * all shares are done.
 *
 * A gather of data in slots costs α + nmβ: every rank copies all of it.
 */
#include "transport/algo/visible.h"

#include <string.h>

#include "transport/algo/algo.h"

bool hvd__visible_add(struct hvd__visible *v, const struct hvd__shm *shm,
                      int rank, uint64_t input, uint64_t output, bool wanted,
                      size_t bytes)
{
    void *from = hvd__heap_at(shm->heap, shm->world[rank], input, bytes);
    void *to = from;

    if (wanted && output != input)
        to = hvd__heap_at(shm->heap, shm->world[rank], output, bytes);
    if (!from || !to)
        return false;
    v->sources[v->nsources++] = from;
    if (wanted)
        v->targets[v->ntargets++] = to;
    return true;
}

static void advance(struct hvd__visible *v, int64_t count)
{
    size_t bytes = (size_t)count * hvd__dtype_bytes(v->reduction.dtype);

    for (int i = 0; i < v->nsources; i++)
        v->sources[i] = (const char *)v->sources[i] + bytes;
    for (int i = 0; i < v->ntargets; i++)
        v->targets[i] = (char *)v->targets[i] + bytes;
}

void hvd__visible_begin(struct hvd__visible *v, int64_t start, int64_t count)
{
    advance(v, start);
    v->left = count;
}

bool hvd__visible_step(struct hvd__visible *v, int64_t *computing_ns)
{
    int64_t most =
        (int64_t)(HVD__CHUNK_BYTES / hvd__dtype_bytes(v->reduction.dtype));
    int64_t count = v->left < most ? v->left : most;

    hvd__timed_reduce(computing_ns, &v->reduction, v->targets, v->ntargets,
                      v->sources, v->nsources, count);
    v->left -= count;
    if (v->left > 0)
        advance(v, count);
    return v->left == 0;
}

void hvd__visible_gather(void *output, const void *const *sources, int n,
                         size_t bytes)
{
    unsigned char *to = output;

    if (bytes == 0)
        return; /* there may be no output */
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * bytes, sources[i], bytes);
}
