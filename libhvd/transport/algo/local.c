/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of a world of one: only scaling is left to do. */
#include "transport/algo/algo.h"

static bool alone(const struct hvd__collective *c)
{
    return c->transport->size == 1;
}

static int start(struct hvd__collective *c, struct hvd__segment *segment)
{
    segment->count = c->count;
    return HVD_OK;
}

static int reduce(struct hvd__collective *c, struct hvd__segment *segment,
                  const struct hvd__segment *before)
{
    (void)segment, (void)before;
    hvd__reduce(&c->reduction, c->output, &c->input, 1, c->count);
    return 1;
}

static int nothing(struct hvd__collective *c, struct hvd__segment *segment,
                   const struct hvd__segment *before)
{
    (void)c, (void)segment, (void)before;
    return 1;
}

const struct hvd__algorithm hvd__allreduce_local = {
    .name = "local",
    .description = "one rank",
    .kind = HVD_ALLREDUCE,
    .applies = alone,
    .start = start,
    .step = reduce,
};

const struct hvd__algorithm hvd__broadcast_local = {
    .name = "local",
    .description = "one rank",
    .kind = HVD_BROADCAST,
    .applies = alone,
    .start = start,
    .step = nothing,
};
