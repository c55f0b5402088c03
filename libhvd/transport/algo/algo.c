/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algo.c - the table of algorithms, the choice, and what all share: a
 * collective is cut into segments, of which a few are under way at once, so
 * that one is reduced while another travels.
 *
 * The choice depends only on what all ranks agree on (motion, count, dtype,
 * number of ranks), never on addresses or load: all ranks choose alike.
 */
#include "transport/algo/algo.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"

/* The first that applies is taken. */
static const struct hvd__algorithm *const algorithms[] = {
    &hvd__reduce_local,    &hvd__reduce_adasum,     &hvd__reduce_shared,
    &hvd__reduce_hosts,    &hvd__reduce_direct,     &hvd__reduce_scatter,
    &hvd__broadcast_local, &hvd__broadcast_shared,  &hvd__broadcast_binomial,
    &hvd__exchange_shared, &hvd__exchange_pairwise,
};

/* For each segment: room for what every peer sends of one slice, and a send
 * and a receive a peer. */
enum { SEGMENT_BYTES = 1 << 20, SEGMENT_BYTES_A_RANK = 64 << 10 };

int hvd__workspace_init(struct hvd__workspace *workspace, int nranks)
{
    size_t bytes = SEGMENT_BYTES;
    size_t ranks = (size_t)nranks;

    if (bytes < ranks * SEGMENT_BYTES_A_RANK)
        bytes = ranks * SEGMENT_BYTES_A_RANK;
    workspace->segment_bytes = bytes;
    workspace->per_segment = nranks < 32 ? 64 : 2 * nranks;
    workspace->scratch = malloc(HVD__SEGMENTS * bytes);
    workspace->transfers =
        calloc(HVD__SEGMENTS * (size_t)workspace->per_segment,
               sizeof *workspace->transfers);
    workspace->sources = calloc(ranks, sizeof *workspace->sources);
    workspace->targets = calloc(ranks, sizeof *workspace->targets);
    workspace->blocks = calloc(2 * ranks, sizeof *workspace->blocks);
    if (workspace->scratch && workspace->transfers && workspace->sources &&
        workspace->targets && workspace->blocks)
        return HVD_OK;
    hvd__workspace_fini(workspace);
    return hvd__fail_memory(HVD__SEGMENTS * bytes);
}

void hvd__workspace_fini(struct hvd__workspace *workspace)
{
    free(workspace->scratch);
    free(workspace->transfers);
    free(workspace->sources);
    free(workspace->targets);
    free(workspace->blocks);
    *workspace = (struct hvd__workspace){0};
}

static const struct hvd__algorithm *choose(
    const struct hvd__collective *collective)
{
    size_t i = 0;

    while (!algorithms[i]->applies(collective))
        i++;
    return algorithms[i];
}

bool hvd__collective_can_narrow(const struct hvd__collective *collective)
{
    return choose(collective)->narrows;
}

void hvd__collective_start(struct hvd__collective *collective)
{
    collective->algorithm = choose(collective);
    collective->total = collective->algorithm->total(collective);
    collective->started = 0;
    collective->head = collective->tail = 0;
}

static struct hvd__segment *segment_at(struct hvd__collective *c,
                                       int64_t number)
{
    return &c->segments[number % HVD__SEGMENTS];
}

static int start_segments(struct hvd__collective *c, bool *moved)
{
    while (c->started < c->total && c->tail - c->head < HVD__SEGMENTS) {
        struct hvd__segment *segment = segment_at(c, c->tail);

        segment->start = c->started;
        segment->phase = 0;
        HVD_TRY(c->algorithm->start(c, segment));
        c->started += segment->count;
        c->tail++;
        *moved = true;
    }
    return HVD_OK;
}

int hvd__collective_step(struct hvd__collective *c, bool *moved)
{
    const struct hvd__segment *before = NULL;

    HVD_TRY(start_segments(c, moved));
    for (int64_t i = c->head; i < c->tail; i++) {
        struct hvd__segment *segment = segment_at(c, i);
        int phase = segment->phase;
        int done = c->algorithm->step(c, segment, before);

        if (done < 0)
            return done;
        *moved |= done || segment->phase != phase;
        if (done && i == c->head)
            c->head++;
        else
            before = segment;
    }
    return c->head == c->tail && c->started == c->total;
}

void hvd__timed_reduce(int64_t *ns, const struct hvd__reduction *reduction,
                       void *const *outs, int nouts, const void *const *sources,
                       int nsources, int64_t count)
{
    bool timed =
        (size_t)count * hvd__dtype_bytes(reduction->dtype) >= HVD__TIMED_BYTES;
    int64_t since = timed ? hvd__now_ns() : 0;

    hvd__reduce_to(reduction, outs, nouts, sources, nsources, count);
    if (timed)
        *ns += hvd__now_ns() - since;
}

struct hvd__transfer *hvd__segment_transfers(struct hvd__collective *c,
                                             const struct hvd__segment *s)
{
    return c->workspace->transfers +
           (s - c->segments) * c->workspace->per_segment;
}

unsigned char *hvd__segment_scratch(struct hvd__collective *c,
                                    const struct hvd__segment *s)
{
    return c->workspace->scratch +
           (size_t)(s - c->segments) * c->workspace->segment_bytes;
}

struct hvd__slice hvd__share_of(const struct hvd__collective *c, int rank)
{
    if (c->shares)
        return c->shares[rank];
    return hvd__slice_of(c->count, rank, c->team->size);
}

int hvd__transfers_done(const struct hvd__team *team,
                        struct hvd__transfer *transfers, int count)
{
    struct hvd__transport *transport = team->transport;
    int all = 1;

    for (int i = 0; i < count; i++) {
        int done = transport->test(transport, &transfers[i]);
        if (done < 0)
            return done;
        all &= done;
    }
    return all;
}
