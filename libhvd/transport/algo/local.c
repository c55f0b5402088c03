/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of a team of one only scale: cost mγ. */
#include "transport/algo/algo.h"

static bool reduces_alone(const struct hvd__collective *c)
{
    return c->motion <= HVD__REDUCE_TO_SHARES && c->team->size == 1;
}

static bool broadcasts_alone(const struct hvd__collective *c)
{
    return c->motion == HVD__SEND_FROM_ROOT && c->team->size == 1;
}

/* If there are shares, this rank takes only its own: another may belong to a
 * rank that has joined. */
static int64_t all(const struct hvd__collective *c)
{
    return c->shares ? c->shares[0].count : c->count;
}

static int64_t none(const struct hvd__collective *c)
{
    (void)c;
    return 0;
}

static int start_segment(struct hvd__collective *c,
                         struct hvd__segment *segment)
{
    segment->count = c->total;
    return HVD_OK;
}

static int reduce(struct hvd__collective *c, struct hvd__segment *segment,
                  const struct hvd__segment *before)
{
    struct hvd__slice slice = hvd__share_of(c, 0);
    const void *source =
        (const char *)c->input +
        (size_t)slice.start * hvd__dtype_bytes(c->reduction.dtype);

    (void)segment, (void)before;
    hvd__timed_reduce(&c->computing_ns, &c->reduction, &c->output, 1, &source,
                      1, c->total);
    return 1;
}

static int nothing(struct hvd__collective *c, struct hvd__segment *segment,
                   const struct hvd__segment *before)
{
    (void)c, (void)segment, (void)before;
    return 1;
}

const struct hvd__algorithm hvd__reduce_local = {
    .name = "local",
    .description = "reductions of one rank",
    .applies = reduces_alone,
    .total = all,
    .start = start_segment,
    .step = reduce,
};

const struct hvd__algorithm hvd__broadcast_local = {
    .name = "local",
    .description = "broadcasts of one rank",
    .applies = broadcasts_alone,
    .total = none,
    .start = start_segment,
    .step = nothing,
};
