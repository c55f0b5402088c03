/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allreduce_direct.c - for small tensors: every rank sends all it has to
 * every other, and reduces what it got, in the order of the ranks.
 *
 * Any number of ranks. One step of latency; all ranks compute the same bits
 * because they do the same additions in the same order.
 * Cost on n ranks, m bytes: α + (n−1)(mβ + mγ).
 */
#include "base/status.h"
#include "transport/algo/algo.h"

/* Where the m(n−1)β of this one meets the 2α of scatter and gather: about
 * 8 KiB in all through the shared memory of Open MPI 4.1. */
enum { DIRECT_MAX = 8 << 10 };

static size_t bytes_of(const struct hvd__collective *c)
{
    return (size_t)c->count * hvd__dtype_bytes(c->reduction.dtype);
}

static bool applies(const struct hvd__collective *c)
{
    return bytes_of(c) * (size_t)(c->transport->size - 1) <= DIRECT_MAX;
}

static int start(struct hvd__collective *c, struct hvd__segment *segment)
{
    struct hvd__transfer *transfer = hvd__segment_transfers(c, segment);
    unsigned char *scratch = hvd__segment_scratch(c, segment);
    struct hvd__transport *t = c->transport;
    size_t bytes = bytes_of(c);

    segment->count = c->count;
    for (int i = 1; i < t->size; i++) {
        int from = (t->rank - i + t->size) % t->size;
        int to = (t->rank + i) % t->size;

        HVD_TRY(t->receive(t, from, c->tag, scratch, bytes, transfer++));
        HVD_TRY(t->send(t, to, c->tag, c->input, bytes, transfer++));
        c->workspace->sources[from] = scratch;
        scratch += bytes;
    }
    c->workspace->sources[t->rank] = c->input;
    return HVD_OK;
}

static int step(struct hvd__collective *c, struct hvd__segment *segment,
                const struct hvd__segment *before)
{
    struct hvd__transport *t = c->transport;
    int done = hvd__transfers_done(t, hvd__segment_transfers(c, segment),
                                   2 * (t->size - 1));

    (void)before;
    if (done == 1)
        hvd__reduce(&c->reduction, c->output, c->workspace->sources, t->size,
                    c->count);
    return done;
}

const struct hvd__algorithm hvd__allreduce_direct = {
    .name = "direct",
    .description = "all send everything to all; small tensors",
    .kind = HVD_ALLREDUCE,
    .applies = applies,
    .start = start,
    .step = step,
};
