/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c - the parts that the algorithms share: the workspace of a
 * collective, the scratch and the transfers of its segments, shares, and timed
 * reductions. It calls no algorithm; algo.c, which calls them all, stands
 * apart.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "transport/algo/cost.h"

/* The scratch does not grow with the number of ranks: where what all send does
 * not fit, algorithms take less from each. Transfers are for as many partners
 * at a time as keep a network busy. */
enum { SEGMENT_BYTES = 1 << 20, LEAST_TRANSFERS = 64, MOST_TRANSFERS = 512 };

int hvd__workspace_init(struct hvd__workspace *workspace, int nranks)
{
    size_t ranks = (size_t)nranks;
    int transfers = 2 * nranks;

    if (transfers < LEAST_TRANSFERS)
        transfers = LEAST_TRANSFERS;
    if (transfers > MOST_TRANSFERS)
        transfers = MOST_TRANSFERS;
    workspace->segment_bytes = SEGMENT_BYTES;
    workspace->per_segment = transfers;
    workspace->scratch = malloc(HVD__SEGMENTS * workspace->segment_bytes);
    workspace->transfers =
        calloc(HVD__SEGMENTS * (size_t)workspace->per_segment,
               sizeof *workspace->transfers);
    workspace->sources = calloc(ranks, sizeof *workspace->sources);
    workspace->targets = calloc(ranks, sizeof *workspace->targets);
    workspace->blocks = calloc(2 * ranks, sizeof *workspace->blocks);
    workspace->places = calloc(ranks, sizeof *workspace->places);
    if (workspace->scratch && workspace->transfers && workspace->sources &&
        workspace->targets && workspace->blocks && workspace->places)
        return HVD_OK;
    hvd__workspace_fini(workspace);
    return hvd__fail_memory(HVD__SEGMENTS * SEGMENT_BYTES);
}

void hvd__workspace_fini(struct hvd__workspace *workspace)
{
    free(workspace->scratch);
    free(workspace->transfers);
    free(workspace->sources);
    free(workspace->targets);
    free(workspace->blocks);
    free(workspace->places);
    *workspace = (struct hvd__workspace){0};
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

int64_t hvd__largest_share(const struct hvd__collective *c, int n)
{
    int64_t most = 0;

    /* The first share is as large as any, unless the shares are given. */
    if (!c->shares)
        return hvd__slice_of(c->count, 0, n).count;
    for (int rank = 0; rank < n; rank++)
        if (c->shares[rank].count > most)
            most = c->shares[rank].count;
    return most;
}

int64_t hvd__total_count(const struct hvd__collective *c)
{
    return c->count;
}

void hvd__segment_take(const struct hvd__collective *c,
                       struct hvd__segment *segment, int64_t most)
{
    segment->count = c->total - segment->start;
    if (segment->count > most)
        segment->count = most;
}

/* Stops at the first that is not done: its test has moved all of them, so that
 * tests of the others would only ask the network again. */
int hvd__transfers_done(const struct hvd__team *team,
                        struct hvd__transfer *transfers, int count)
{
    struct hvd__transport *transport = team->transport;
    int done = 1;

    for (int i = 0; i < count && done > 0; i++)
        done = transport->test(transport, &transfers[i]);
    return done;
}

/* Returns true if a segment may meet its next partner in its phase. */
static bool may_meet(const struct hvd__segment *s,
                     const struct hvd__segment *before)
{
    return !before || before->phase > s->phase ||
           (before->phase == s->phase && before->met > s->met);
}

/* Bytes on their way from one host keep its link busy. Many more would come to
 * a host from all others at once, so that each connection gets a small part of
 * its link, and TCP, which takes that for the speed of the network, paces the
 * next ones by it. */
enum { BYTES_AT_ONCE = 256 << 10, LEAST_PARTNERS = 2 };

/* Returns with how many partners a rank exchanges so many bytes at a time. */
static int partners_at_once(const struct hvd__collective *c, int64_t bytes)
{
    int64_t most = c->workspace->per_segment / 2;
    int64_t fit =
        BYTES_AT_ONCE / hvd__cost_flows(c->team) / (bytes > 0 ? bytes : 1);

    if (fit < LEAST_PARTNERS)
        fit = LEAST_PARTNERS;
    return (int)(fit < most ? fit : most);
}

int hvd__segment_meet(struct hvd__collective *c, struct hvd__segment *s,
                      const struct hvd__segment *before, int64_t bytes,
                      int (*start)(struct hvd__collective *c,
                                   struct hvd__segment *s, int i,
                                   struct hvd__transfer *transfers))
{
    struct hvd__transfer *transfers = hvd__segment_transfers(c, s);
    int most = partners_at_once(c, bytes), all = c->team->size - 1;
    int done;

    while (s->met < all && may_meet(s, before)) {
        struct hvd__transfer *pair = transfers + 2 * (s->met % most);

        done = hvd__transfers_done(c->team, pair, 2);
        if (done <= 0)
            return done;
        pair[0] = pair[1] = (struct hvd__transfer){0};
        HVD_TRY(start(c, s, s->met + 1, pair));
        s->met++;
    }
    done = hvd__transfers_done(c->team, transfers,
                               2 * (s->met < most ? s->met : most));
    return done < 0 ? done : done && s->met == all;
}
