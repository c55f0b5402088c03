/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product_search.c - the ways to make a product, and the search for the
 * cheapest: by slices of the output, of patches, with groups of channels
 * combined.
 *
 * A convolution fetches the input under its pixels once, and takes a pass for
 * each position of the kernel; or, where that is cheaper because there are few
 * channels, it fetches patches, and is computed as a product of these.
 *
 * Groups of few channels would leave most of the unit idle. So several may be
 * computed as one convolution of all their channels, whose kernel is zero
 * between channels of different groups, as Graphcore's planner does
 * (lib/poplin/ConvPlan.hpp: combineConvGroupsFactor): as many as fill the input
 * of a pass. The zeros are fetched and multiplied like other elements.
 *
 * A slice consists of whole groups of k, as the unit takes them, and is a
 * separate vertex. Early compilers could not do that: in Graphcore's poplibs of
 * 2019, for the Mk1, only output channels are split serially
 * (lib/poplin/ConvPlan.hpp: outChanSplit has a serial part, inChanSplit has
 * none). There, products run one after the other on all tiles, each for a part
 * of the output channels. Each fetches all of the other input again: that is
 * the price of saving memory.
 */
#include <math.h>

#include "target/cost.h"
#include "target/product.h"

/* Makes the cycles those of several rounds, one after the other: slices, or
 * what one tile has of the batch. */
static void repeat_rounds(ipu_cycles *c, int64_t rounds)
{
    c->compute *= rounds;
    c->exchange *= rounds;
    c->sync *= rounds;
    c->exchange_bytes *= rounds;
}

/* Bytes, copied on the tiles that have them. */
static int64_t copy_cycles(const ipu_target *target, double bytes)
{
    const double vector = (double)target->vector_bytes * target->tiles;
    int64_t vectors = (int64_t)ceil(bytes / vector);

    return IPU__LAUNCH_CYCLES +
           (IPU__VERTEX_SLOTS + ipu__ceil_div(vectors, target->workers)) *
               target->workers;
}

/* Slices of the output, one product each: its weights are taken from all of
 * them before, and its output put to the others behind. */
static void repeat_slices(const struct ipu__problem *p, int64_t slices,
                          struct ipu__choice *c)
{
    const ipu_product *d = p->product;
    double weights = (double)d->k * (double)d->n * d->element_bytes;
    double output = (double)d->m * (double)d->n * d->element_bytes;

    *(d->of_kernel ? &output : &weights) *= (double)p->taps;
    c->plan.output_slices = slices;
    if (slices == 1)
        return;
    c->cycles.compute += copy_cycles(p->target, weights * (double)d->batch) +
                         copy_cycles(p->target, output * (double)d->batch);
    repeat_rounds(&c->cycles, slices);
    c->total = c->cycles.compute + c->cycles.exchange + c->cycles.sync;
}

/* 1, 2, 3, 4, 6, 8, 12, 16, ... */
static int64_t more_slices(int64_t slices)
{
    bool power_of_two = (slices & (slices - 1)) == 0;

    if (slices == 1)
        return 2;
    return slices + (power_of_two ? slices / 2 : slices / 3);
}

/* Searches for the cheapest number of slices of the output: more slices first
 * make room for better grids, then only cost cycles. */
static void search_by_output(const struct ipu__problem *p,
                             struct ipu__choice *best)
{
    struct ipu__problem part = *p;
    ipu_product d = *p->product;

    part.bounds.least_cycles = 0; /* the bounds apply to all slices together */
    part.bounds.most_cycles = INT64_MAX;
    part.product = &d;
    part.whole = true;
    for (int64_t slices = 1, worse = 0; slices <= p->product->n && worse < 2;
         slices = more_slices(slices)) {
        struct ipu__choice c = {.total = 0};

        d.n = ipu__ceil_div(p->product->n, slices);
        ipu__search_grids(&part, &c);
        if (c.total == 0)
            continue;
        repeat_slices(&part, slices, &c);
        if (!ipu__is_within(&p->bounds, &c))
            continue;
        if (best->total > 0 && c.total >= best->total) {
            worse++;
        } else {
            worse = 0;
            *best = c;
        }
    }
}

static struct ipu__problem problem_of(const ipu_target *t, const ipu_product *d)
{
    struct ipu__problem p = {
        .target = t, .product = d, .tiles = t->tiles, .bounds = ipu__no_bounds};

    p.taps = (int64_t)d->kernel[0] * d->kernel[1];
    p.unit = ipu__product_unit_of(t, d->element_bytes);
    p.sum_bytes = d->element_bytes == 2 && t->half_sums ? 2 : 4;
    p.tiles = t->tiles / ipu__least(d->batch, t->tiles);
    p.rounds = ipu__ceil_div(d->batch, t->tiles);
    return p;
}

/* A convolution as a product of patches: each position of the kernel is one
 * more channel. */
static ipu_product of_patches(const ipu_product *d)
{
    ipu_product p = *d;
    int64_t *channels = d->of_kernel ? &p.m : &p.k;

    *channels *= (int64_t)d->kernel[0] * d->kernel[1];
    p.kernel[0] = p.kernel[1] = 1;
    p.stride[0] = p.stride[1] = 1;
    p.of_kernel = 0;
    return p;
}

/* Returns the part of compute in which the mean tile waits: tiles outside the
 * grid have no work, the last of each row and column have less than others, and
 * the last round may have fewer of the batch. */
static int64_t uneven(const struct ipu__problem *p, const ipu_plan *plan,
                      int64_t compute)
{
    const ipu_product *d = p->product;
    int64_t n = ipu__ceil_div(d->n, plan->output_slices);
    int64_t rows = ipu__ceil_div(d->m, plan->grid_m);
    double most = (double)rows * (double)ipu__ceil_div(d->k, plan->grid_k) *
                  (double)ipu__ceil_div(n, plan->grid_n) *
                  (double)plan->output_slices;
    double all = (double)d->batch * (double)d->m * (double)d->k * (double)d->n;

    most *= (double)p->rounds * p->target->tiles;
    return (int64_t)((double)compute * (1 - fmin(1, all / most)));
}

/* Finds the best way for the whole batch. */
static void search_ways(const ipu_target *target, const ipu_product *d,
                        int64_t room, const struct ipu__bounds *bounds,
                        struct ipu__choice *best)
{
    struct ipu__problem p = problem_of(target, d);
    struct ipu__choice c = {.total = 0};

    p.room = room;
    p.bounds = *bounds; /* bounds of one round */
    p.bounds.least_cycles = ipu__ceil_div(bounds->least_cycles, p.rounds);
    p.bounds.most_cycles /= p.rounds;
    if (target->output_slices)
        search_by_output(&p, &c);
    else
        ipu__search_grids(&p, &c);
    c.total *= p.rounds;
    if (c.total == 0 || (best->total > 0 && c.total >= best->total))
        return;
    repeat_rounds(&c.cycles, p.rounds);
    c.plan.tiles *= ipu__least(d->batch, target->tiles);
    c.cycles.waiting = uneven(&p, &c.plan, c.cycles.compute);
    *best = c;
}

/* Returns the product with that many groups of channels as one. */
static ipu_product combined(const ipu_product *d, int64_t groups)
{
    ipu_product p = *d;

    p.batch = ipu__ceil_div(d->batch, groups);
    p.n *= groups;
    *(d->of_kernel ? &p.m : &p.k) *= groups;
    return p;
}

/* The best with so much room, of both ways of a convolution, and of all numbers
 * of groups that go into a pass together; total 0: there is none. */
struct ipu__choice ipu__search_products(const ipu_target *target,
                                        const ipu_product *d, int64_t room,
                                        const struct ipu__bounds *bounds)
{
    const struct ipu__product_unit unit =
        ipu__product_unit_of(target, d->element_bytes);
    int64_t channels = d->of_kernel ? d->m : d->k;
    struct ipu__choice best = {.plan = {0}};

    for (int64_t groups = 1; groups == 1 || (d->grouped && groups <= d->batch &&
                                             groups * channels <= unit.in);
         groups *= 2) {
        const ipu_product one = combined(d, groups);
        const ipu_product patches = of_patches(&one);

        search_ways(target, &one, room, bounds, &best);
        if (d->kernel[0] * d->kernel[1] > 1)
            search_ways(target, &patches, room, bounds, &best);
    }
    return best;
}
