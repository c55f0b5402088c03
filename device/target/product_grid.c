/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product_grid.c - the cost of a product on a grid of blocks, and the cheapest
 * grid.
 *
 * A tile fetches the parts of both inputs that its block needs, in slices of k
 * if they do not fit together with its own data, and multiplies in passes of
 * its product unit (passes.c). Small blocks pay for passes, uneven ones for
 * padding, and all blocks for fetching their inputs at 4 bytes a cycle: this
 * keeps products below the peak.
 */
#include <math.h>

#include "target/cost.h"
#include "target/product.h"

/* Returns the input elements of one channel under a square of that many output
 * pixels. */
static int64_t under(const struct ipu__problem *p, int64_t pixels)
{
    const ipu_product *d = p->product;
    double side = sqrt((double)pixels);
    double reach = (side - 1) * d->stride[0] + d->kernel[0];
    double width = (side - 1) * d->stride[1] + d->kernel[1];
    int64_t all = pixels * p->taps;

    return p->taps == 1 ? pixels
                        : ipu__least(all, (int64_t)ceil(reach * width));
}

/* Return the bytes of both operands of a block [rows, k, n], and the sums of
 * its output. The derivative of a kernel sums over pixels. */
static int64_t operand_bytes(const struct ipu__problem *p, int64_t rows,
                             int64_t k, int64_t n)
{
    int64_t elements = p->product->of_kernel
                           ? rows * under(p, k) + k * n
                           : k * (under(p, rows) + n * p->taps);

    return p->product->element_bytes * elements;
}

static int64_t sums_of(const struct ipu__problem *p, int64_t rows, int64_t n)
{
    return rows * n * (p->product->of_kernel ? p->taps : 1);
}

/* Counts the addition of the partial results of the parts of k. Each tile adds
 * its share of them. */
static void count_partials(const struct ipu__problem *p, int64_t elements,
                           int64_t parts, ipu_cycles *c)
{
    const ipu_target *t = p->target;
    int64_t mine = ipu__ceil_div(elements, parts);
    int64_t vectors = ipu__ceil_div(mine * p->sum_bytes, t->vector_bytes);

    if (parts == 1)
        return;
    ipu__count_exchange(t, mine * (parts - 1) * p->sum_bytes, parts - 1, c);
    c->compute +=
        IPU__LAUNCH_CYCLES +
        ipu__vertices_cycles(t, t->workers,
                             IPU__VERTEX_SLOTS +
                                 parts * ipu__ceil_div(vectors, t->workers));
}

/* Counts one vertex that makes that many sums, with slots for each vector of
 * them. */
static int64_t count_sweep(const struct ipu__problem *p, int64_t sums,
                           int64_t slots)
{
    const ipu_target *t = p->target;
    int64_t vectors = ipu__ceil_div(sums * p->sum_bytes, t->vector_bytes);

    return IPU__LAUNCH_CYCLES +
           (IPU__VERTEX_SLOTS + slots * ipu__ceil_div(vectors, t->workers)) *
               t->workers;
}

/* Returns the number of slices of k that are needed to fit the fetched bytes
 * into the memory beside the sums; 0 if no number of slices fits. */
static int64_t slices_of(int64_t groups, int64_t bytes, int64_t sums,
                         double room)
{
    double whole;

    if ((double)bytes <= room - (double)sums)
        return 1;
    room -= 2 * (double)sums; /* sums of this slice, and of those before */
    whole = floor(room / ((double)bytes / (double)groups));
    return whole < 1 ? 0 : ipu__ceil_div(groups, (int64_t)whole);
}

/* Counts the passes of a block. In the derivative of a kernel, the positions of
 * the kernel are the rows. Each position reads the same input with an offset,
 * and the tile first transposes that input, element by element, so that its
 * pixels are side by side. */
static int64_t count_block(const struct ipu__problem *p, int64_t rows,
                           int64_t k, int64_t n)
{
    const ipu_target *t = p->target;
    int64_t turned = rows * under(p, k);

    if (!p->product->of_kernel)
        return ipu__passes_cycles(t, &p->unit, rows, k, n, p->taps);
    return ipu__passes_cycles(t, &p->unit, rows * p->taps, k, n, 1) +
           IPU__LAUNCH_CYCLES +
           ipu__vertices_cycles(t, t->workers,
                                IPU__VERTEX_SLOTS +
                                    ipu__ceil_div(turned, t->workers));
}

/* Counts the fetch and the multiplication of one slice of k of that thickness.
 */
static ipu_cycles slice_cycles(const struct ipu__problem *p, int64_t rows,
                               int64_t thick, int64_t n)
{
    int64_t bytes = operand_bytes(p, rows, thick, n);
    ipu_cycles c = {.compute = count_block(p, rows, thick, n),
                    .temporary_bytes = bytes};

    ipu__count_exchange(p->target, bytes, 2, &c);
    return c;
}

/* Counts all slices; the last may be thinner than the others. The result of
 * each slice is added to the results before it. Returns false if there is no
 * room. */
static bool count_slices(const struct ipu__problem *p, int64_t rows, int64_t k,
                         int64_t n, struct ipu__choice *choice)
{
    ipu_cycles *c = &choice->cycles;
    int64_t groups = ipu__ceil_div(k, p->unit.in);
    int64_t elements = sums_of(p, rows, n), sums = elements * p->sum_bytes;
    int64_t bytes = operand_bytes(p, rows, k, n);
    double room = (double)p->room;
    int64_t slices, thick;

    if (choice->plan.grid_k > 1)
        room -= (double)sums; /* sums of others, added to a share */
    slices = slices_of(groups, bytes, sums, room);
    if (slices == 0 || (p->whole && slices > 1))
        return false;
    thick = ipu__least(ipu__ceil_div(groups, slices) * p->unit.in, k);
    slices = ipu__ceil_div(k, thick);
    *c = slice_cycles(p, rows, thick, n);
    if (slices > 1) {
        const ipu_cycles last =
            slice_cycles(p, rows, k - (slices - 1) * thick, n);

        c->compute = c->compute * (slices - 1) + last.compute +
                     count_sweep(p, elements, 1) * slices;
        c->exchange = c->exchange * (slices - 1) + last.exchange;
        c->sync *= slices;
        c->exchange_bytes =
            c->exchange_bytes * (slices - 1) + last.exchange_bytes;
        c->exchange_code_bytes *=
            2; /* code of the loop, and of the last slice */
        sums *= 2;
    }
    c->temporary_bytes += sums;
    c->partial_bytes = sums;
    choice->plan.slices = slices;
    choice->needs = c->temporary_bytes;
    if (choice->plan.grid_k > 1)
        choice->needs += elements * p->sum_bytes;
    return true;
}

bool ipu__is_within(const struct ipu__bounds *b, const struct ipu__choice *c)
{
    return c->cycles.temporary_bytes >= b->least_bytes &&
           c->cycles.temporary_bytes <= b->most_bytes &&
           c->total >= b->least_cycles && c->total <= b->most_cycles;
}

static void try_grid(const struct ipu__problem *p, int64_t gm, int64_t gk,
                     int64_t gn, struct ipu__choice *best)
{
    const ipu_product *d = p->product;
    int64_t rows = ipu__ceil_div(d->m, gm), k = ipu__ceil_div(d->k, gk);
    int64_t n = ipu__ceil_div(d->n, gn);
    struct ipu__choice c = {
        .plan = {.grid_m = gm, .grid_k = gk, .grid_n = gn, .output_slices = 1}};

    c.plan.tiles = gm * gk * gn;
    if (!count_slices(p, rows, k, n, &c))
        return;
    count_partials(p, sums_of(p, rows, n), gk, &c.cycles);
    if (d->element_bytes < p->sum_bytes && gk == 1)
        c.cycles.compute += count_sweep(p, sums_of(p, rows, n), 1);
    c.total = c.cycles.compute + c.cycles.exchange + c.cycles.sync;
    if ((best->total == 0 || c.total < best->total) &&
        ipu__is_within(&p->bounds, &c))
        *best = c;
}

/* Returns the next larger number of parts for which the parts are smaller; 0 if
 * there is none. */
static int64_t next_parts(int64_t extent, int64_t parts)
{
    int64_t size = ipu__ceil_div(extent, parts);

    return size <= 1 ? 0 : ipu__ceil_div(extent, size - 1);
}

/* Returns the number of parts into which k must be cut so that a block of the
 * grid has room without slices of k. If no number is enough, returns more parts
 * than there are groups. */
static int64_t least_parts(const struct ipu__problem *p, int64_t groups,
                           int64_t gm, int64_t gn)
{
    const ipu_product *d = p->product;
    int64_t rows = ipu__ceil_div(d->m, gm), n = ipu__ceil_div(d->n, gn);
    int64_t room = p->room - p->sum_bytes * sums_of(p, rows, n), fitting;

    if (!p->whole || d->of_kernel)
        return 1;
    fitting = room < 0 ? 0 : room / operand_bytes(p, rows, p->unit.in, n);
    return fitting < 1 ? groups + 1 : ipu__ceil_div(groups, fitting);
}

void ipu__search_grids(const struct ipu__problem *p, struct ipu__choice *best)
{
    const ipu_product *d = p->product;
    int64_t groups = ipu__ceil_div(d->k, p->unit.in);

    for (int64_t gm = 1; gm && gm <= p->tiles; gm = next_parts(d->m, gm))
        for (int64_t gn = 1; gn && gm * gn <= p->tiles;
             gn = next_parts(d->n, gn)) {
            int64_t most = p->tiles / (gm * gn);
            int64_t gk = least_parts(p, groups, gm, gn);

            for (; gk && gk <= most; gk = next_parts(groups, gk))
                try_grid(p, gm, gk, gn, best);
        }
}
