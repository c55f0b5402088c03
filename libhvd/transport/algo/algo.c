/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algo.c - the table of algorithms, the choice, and the steps of a collective.
 * A collective is cut into segments, of which a few are under way at once, so
 * that one is reduced while another travels.
 *
 * The choice depends only on what all ranks agree on (motion, count, dtype,
 * number of ranks, the hosts that they are on), never on addresses or load, so
 * that all ranks choose the same. core/run/execute.c starts and steps
 * collectives.
 */
#include "transport/algo/algo.h"

#include "base/status.h"

/* Of the algorithms that apply, the one of the least cost is taken, the first
 * of equals; one that states no cost costs nothing. */
static const struct hvd__algorithm *const algorithms[] = {
    &hvd__reduce_local,          &hvd__reduce_adasum_hosts,
    &hvd__reduce_adasum,         &hvd__reduce_shared,
    &hvd__reduce_hosts_doubling, &hvd__reduce_hosts_halving,
    &hvd__reduce_hosts,          &hvd__reduce_hosts_chain,
    &hvd__scatter_hosts,         &hvd__reduce_direct,
    &hvd__reduce_doubling,       &hvd__reduce_scatter,
    &hvd__reduce_halving,        &hvd__broadcast_local,
    &hvd__broadcast_shared,      &hvd__broadcast_hosts,
    &hvd__broadcast_binomial,    &hvd__exchange_shared,
    &hvd__gather_hosts,          &hvd__exchange_hosts,
    &hvd__exchange_pairwise,
};

const struct hvd__algorithm *hvd__collective_choose(
    const struct hvd__collective *collective)
{
    const struct hvd__algorithm *best = NULL;
    int64_t least = INT64_MAX;

    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++) {
        const struct hvd__algorithm *algorithm = algorithms[i];
        int64_t cost;

        if (!algorithm->applies(collective))
            continue;
        if (!algorithm->cost)
            return algorithm;
        cost = algorithm->cost(collective);
        if (cost < least) {
            best = algorithm;
            least = cost;
        }
    }
    return best;
}

bool hvd__collective_can_narrow(const struct hvd__collective *collective)
{
    struct hvd__collective narrow = *collective;

    narrow.narrows = true;
    return hvd__collective_choose(&narrow)->narrows;
}

void hvd__collective_start(struct hvd__collective *collective)
{
    collective->algorithm = hvd__collective_choose(collective);
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
        segment->phase = segment->met = 0;
        segment->is_done = false;
        HVD_TRY(c->algorithm->start(c, segment));
        c->started += segment->count;
        c->tail++;
        *moved = true;
    }
    return HVD_OK;
}

static int step_segment(struct hvd__collective *c, struct hvd__segment *segment,
                        const struct hvd__segment *before, bool *moved)
{
    int phase = segment->phase, met = segment->met;
    int done = c->algorithm->step(c, segment, before);

    if (done < 0)
        return done;
    segment->is_done = done;
    *moved |= done || segment->phase != phase || segment->met != met;
    return HVD_OK;
}

/* A segment may be done before an earlier one. Then it stays until that is done,
 * too, and has nothing left to move. */
int hvd__collective_step(struct hvd__collective *c, bool *moved)
{
    const struct hvd__segment *before = NULL;

    HVD_TRY(start_segments(c, moved));
    for (int64_t i = c->head; i < c->tail; i++) {
        struct hvd__segment *segment = segment_at(c, i);

        if (!segment->is_done)
            HVD_TRY(step_segment(c, segment, before, moved));
        if (segment->is_done && i == c->head)
            c->head++;
        else
            before = segment;
    }
    return c->head == c->tail && c->started == c->total;
}
