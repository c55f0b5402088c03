/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.c - matrix products and convolutions, planned and counted.
 *
 * The output, [m, n] for each of batch, is cut into a grid of blocks; where
 * that leaves tiles idle, k is cut too, and the partial sums are added up
 * afterwards. A tile fetches the parts of both inputs that its block needs,
 * in slices of k if they do not fit beside its own data, and multiplies in
 * passes of its product unit (passes.c). Sums are float32; those of float16
 * products are rounded at the end, unless the target keeps them in float16. So
 * small blocks pay for passes, uneven ones for padding, and everything for
 * fetching its inputs through 4 bytes a cycle: that is what keeps products
 * below the peak.
 *
 * A convolution fetches what lies under its pixels once, and takes a pass for
 * each position of the kernel; or, where that is cheaper since there are few
 * channels, it fetches patches, and is a product of these.
 *
 * Groups of few channels would leave most of the unit idle. So several may be
 * computed as one convolution of all their channels, whose kernel is zero
 * between channels of different groups, as Graphcore's planner does it
 * (lib/poplin/ConvPlan.hpp: combineConvGroupsFactor): as many as fill what goes
 * into a pass. The zeros are fetched and multiplied like others.
 *
 * A slice is whole groups of k, as the unit takes them, and its own vertex.
 * Early compilers could not do that: in Graphcore's poplibs of 2019, for the
 * Mk1, only output channels are split serially (lib/poplin/ConvPlan.hpp:
 * outChanSplit has a serial part, inChanSplit has none). There, one product
 * comes after the other, of a part of the output channels each, on all tiles.
 * Each fetches all of the other input again, which is what memory costs then.
 *
 * The plan is the cheapest of all grids. The chip's own compiler searches
 * more ways (and takes the weights from the other side), so a real plan may
 * be better.
 */
#include <math.h>
#include <stdbool.h>

#include "base/error.h"
#include "target/cost.h"
#include "target/plans.h"
#include "target/target.h"

/* Of a tile, for what a product fetches and adds up in between, as Graphcore's
 * libraries have it unless they are told otherwise. */
static const double USUAL_PROPORTION = 0.6;

/* Of a vertex with its loops, and of adding up. */
enum { PRODUCT_CODE_BYTES = 624 };

/* Room, of a tile: more than any product asks. */
#define UNLIMITED (INT64_C(1) << 60)

/* Years on any chip; cycles still count in 64 bits. */
static const double MOST_PRODUCTS = 0x1p55;

/* What a plan must be beside having room: temporary bytes, and cycles. */
struct bounds {
    int64_t least_bytes, most_bytes;
    int64_t least_cycles, most_cycles;
};

static const struct bounds no_bounds = {0, INT64_MAX, 0, INT64_MAX};

struct problem {
    const ipu_target *target;
    const ipu_product *product;
    struct ipu__product_unit unit;
    int64_t taps;      /* positions of the kernel */
    int64_t tiles;     /* for one of the batch */
    int64_t rounds;    /* of the batch */
    int64_t room;      /* for what it fetches and adds up in between */
    int64_t sum_bytes; /* of a sum that is not complete */
    bool whole;        /* k is not sliced */
    struct bounds bounds;
};

/* Input elements of one channel under so many output pixels that lie in a
 * square. */
static int64_t under(const struct problem *p, int64_t pixels)
{
    const ipu_product *d = p->product;
    double side = sqrt((double)pixels);
    double reach = (side - 1) * d->stride[0] + d->kernel[0];
    double width = (side - 1) * d->stride[1] + d->kernel[1];
    int64_t all = pixels * p->taps;

    return p->taps == 1 ? pixels
                        : ipu__least(all, (int64_t)ceil(reach * width));
}

/* Bytes of both operands of a block [rows, k, n]; sums of its output. Of the
 * derivative of a kernel, pixels are what is summed up over. */
static int64_t operand_bytes(const struct problem *p, int64_t rows, int64_t k,
                             int64_t n)
{
    int64_t elements = p->product->of_kernel
                           ? rows * under(p, k) + k * n
                           : k * (under(p, rows) + n * p->taps);

    return p->product->element_bytes * elements;
}

static int64_t sums_of(const struct problem *p, int64_t rows, int64_t n)
{
    return rows * n * (p->product->of_kernel ? p->taps : 1);
}

/* Add up what parts of k have made: each tile its share. */
static void count_partials(const struct problem *p, int64_t elements,
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

/* One vertex over that many sums, with slots for each vector of them. */
static int64_t sweep(const struct problem *p, int64_t sums, int64_t slots)
{
    const ipu_target *t = p->target;
    int64_t vectors = ipu__ceil_div(sums * p->sum_bytes, t->vector_bytes);

    return IPU__LAUNCH_CYCLES +
           (IPU__VERTEX_SLOTS + slots * ipu__ceil_div(vectors, t->workers)) *
               t->workers;
}

/* Into how many slices of k the memory divides what is fetched: bytes in all,
 * sums kept meanwhile. 0: no number of them helps. */
static int64_t slices_of(int64_t groups, int64_t bytes, int64_t sums,
                         double room)
{
    double whole;

    if ((double)bytes <= room - (double)sums)
        return 1;
    room -= 2 * (double)sums; /* of this slice, and of those before */
    whole = floor(room / ((double)bytes / (double)groups));
    return whole < 1 ? 0 : ipu__ceil_div(groups, (int64_t)whole);
}

/* The passes of a block. Of the derivative of a kernel, its positions are rows:
 * each reads the same input elsewhere, which is first turned to have pixels
 * side by side, an element at a time. */
static int64_t multiply(const struct problem *p, int64_t rows, int64_t k,
                        int64_t n)
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

/* One slice of k, so thick: fetch, multiply. */
static ipu_cycles slice_cycles(const struct problem *p, int64_t rows,
                               int64_t thick, int64_t n)
{
    int64_t bytes = operand_bytes(p, rows, thick, n);
    ipu_cycles c = {.compute = multiply(p, rows, thick, n),
                    .temporary_bytes = bytes};

    ipu__count_exchange(p->target, bytes, 2, &c);
    return c;
}

/* All slices, each added to those before: alike but for the last. false: there
 * is no room. */
static bool count_slices(const struct problem *p, int64_t rows, int64_t k,
                         int64_t n, struct ipu__choice *choice)
{
    ipu_cycles *c = &choice->cycles;
    int64_t groups = ipu__ceil_div(k, p->unit.in);
    int64_t elements = sums_of(p, rows, n), sums = elements * p->sum_bytes;
    int64_t bytes = operand_bytes(p, rows, k, n);
    double room = (double)p->room;
    int64_t slices, thick;

    if (choice->plan.grid_k > 1)
        room -= (double)sums; /* those of others, added to a share */
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
                     sweep(p, elements, 1) * slices;
        c->exchange = c->exchange * (slices - 1) + last.exchange;
        c->sync *= slices;
        c->exchange_bytes =
            c->exchange_bytes * (slices - 1) + last.exchange_bytes;
        c->exchange_code_bytes *= 2; /* of the loop, and the last */
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

static bool is_within(const struct bounds *b, const struct ipu__choice *c)
{
    return c->cycles.temporary_bytes >= b->least_bytes &&
           c->cycles.temporary_bytes <= b->most_bytes &&
           c->total >= b->least_cycles && c->total <= b->most_cycles;
}

static void consider(const struct problem *p, int64_t gm, int64_t gk,
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
        c.cycles.compute += sweep(p, sums_of(p, rows, n), 1);
    c.total = c.cycles.compute + c.cycles.exchange + c.cycles.sync;
    if ((best->total == 0 || c.total < best->total) &&
        is_within(&p->bounds, &c))
        *best = c;
}

/* The next number of parts that makes smaller ones; 0: there is none. */
static int64_t next_parts(int64_t extent, int64_t parts)
{
    int64_t size = ipu__ceil_div(extent, parts);

    return size <= 1 ? 0 : ipu__ceil_div(extent, size - 1);
}

/* Into how many parts k must be cut for a block of the grid to have room, if it
 * is not sliced; more than there are groups: none are enough. */
static int64_t least_parts(const struct problem *p, int64_t groups, int64_t gm,
                           int64_t gn)
{
    const ipu_product *d = p->product;
    int64_t rows = ipu__ceil_div(d->m, gm), n = ipu__ceil_div(d->n, gn);
    int64_t room = p->room - p->sum_bytes * sums_of(p, rows, n), fitting;

    if (!p->whole || d->of_kernel)
        return 1;
    fitting = room < 0 ? 0 : room / operand_bytes(p, rows, p->unit.in, n);
    return fitting < 1 ? groups + 1 : ipu__ceil_div(groups, fitting);
}

static void search(const struct problem *p, struct ipu__choice *best)
{
    const ipu_product *d = p->product;
    int64_t groups = ipu__ceil_div(d->k, p->unit.in);

    for (int64_t gm = 1; gm && gm <= p->tiles; gm = next_parts(d->m, gm))
        for (int64_t gn = 1; gn && gm * gn <= p->tiles;
             gn = next_parts(d->n, gn)) {
            int64_t most = p->tiles / (gm * gn);
            int64_t gk = least_parts(p, groups, gm, gn);

            for (; gk && gk <= most; gk = next_parts(groups, gk))
                consider(p, gm, gk, gn, best);
        }
}

/* One after the other: slices, or what one tile has of the batch. */
static void repeat(ipu_cycles *c, int64_t rounds)
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
static void repeat_slices(const struct problem *p, int64_t slices,
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
    repeat(&c->cycles, slices);
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

/* The cheapest number of slices of the output: more of them first make room for
 * better grids, then only cost. */
static void search_by_output(const struct problem *p, struct ipu__choice *best)
{
    struct problem part = *p;
    ipu_product d = *p->product;

    part.bounds.least_cycles = 0; /* those of all slices are seen here */
    part.bounds.most_cycles = INT64_MAX;
    part.product = &d;
    part.whole = true;
    for (int64_t slices = 1, worse = 0; slices <= p->product->n && worse < 2;
         slices = more_slices(slices)) {
        struct ipu__choice c = {.total = 0};

        d.n = ipu__ceil_div(p->product->n, slices);
        search(&part, &c);
        if (c.total == 0)
            continue;
        repeat_slices(&part, slices, &c);
        if (!is_within(&p->bounds, &c))
            continue;
        if (best->total > 0 && c.total >= best->total) {
            worse++;
        } else {
            worse = 0;
            *best = c;
        }
    }
}

double ipu__proportion_of(double said)
{
    return said > 0 ? said : USUAL_PROPORTION;
}

static double proportion_of(const ipu_product *product)
{
    return ipu__proportion_of(product->available_memory_proportion);
}

static int64_t share_of(const ipu_target *target, double proportion)
{
    return (int64_t)(proportion * (double)target->bytes_per_tile);
}

int ipu__check_proportion(const char *what, double proportion)
{
    if (proportion >= 0 && proportion <= 1) /* not of a NaN */
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "%s: %g of a tile's memory for what a product needs in "
                     "between: it must be more than 0 and at most 1, or 0 for "
                     "%g",
                     what, proportion, USUAL_PROPORTION);
}

static int check(const ipu_product *d)
{
    double products;

    if (!d)
        return ipu__fail(IPU_ERR_ARGUMENT, "the product is NULL");
    IPU_TRY(ipu__check_size("product", d->size, sizeof *d));
    IPU_TRY(ipu__check_proportion("available memory proportion",
                                  d->available_memory_proportion));
    if (d->element_bytes != 2 && d->element_bytes != 4)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a product of elements of %d bytes: 2 or 4",
                         (int)d->element_bytes);
    for (int i = 0; i < 2; i++)
        if (d->kernel[i] < 0 || d->stride[i] < 0 || d->kernel[i] > 1 << 15 ||
            d->stride[i] > 1 << 15)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "a product with a kernel of %d x %d, stride %d x "
                             "%d: 0 to %d each",
                             (int)d->kernel[0], (int)d->kernel[1],
                             (int)d->stride[0], (int)d->stride[1], 1 << 15);
    if (d->batch < 0 || d->m < 0 || d->k < 0 || d->n < 0 ||
        d->batch > 1 << 30 || d->m > 1 << 30 || d->k > 1 << 30 ||
        d->n > 1 << 30)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a product of %lld x [%lld, %lld] x [%lld, %lld]: 0 "
                         "to 2^30 each",
                         (long long)d->batch, (long long)d->m, (long long)d->k,
                         (long long)d->k, (long long)d->n);
    products = (double)d->batch * (double)d->m * (double)d->k * (double)d->n *
               (d->kernel[0] ? d->kernel[0] : 1) *
               (d->kernel[1] ? d->kernel[1] : 1);
    if (products > MOST_PRODUCTS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "a product that multiplies %g times; at most %g",
                         products, MOST_PRODUCTS);
    return IPU_OK;
}

static struct problem problem_of(const ipu_target *t, const ipu_product *d)
{
    struct problem p = {
        .target = t, .product = d, .tiles = t->tiles, .bounds = no_bounds};

    p.taps = (int64_t)d->kernel[0] * d->kernel[1];
    p.unit = ipu__product_unit_of(t, d->element_bytes);
    p.sum_bytes = d->element_bytes == 2 && t->half_sums ? 2 : 4;
    p.tiles = t->tiles / ipu__least(d->batch, t->tiles);
    p.rounds = ipu__ceil_div(d->batch, t->tiles);
    return p;
}

/* A tile's share of inputs and output. */
static int64_t own_bytes(const ipu_target *t, const ipu_product *d)
{
    double m = (double)d->m, k = (double)d->k, n = (double)d->n;
    double taps = (double)d->kernel[0] * d->kernel[1];
    double elements = m * k * d->stride[0] * d->stride[1];

    elements += d->of_kernel ? k * n + m * n * taps : k * n * taps + m * n;
    return (int64_t)((double)d->batch * elements * d->element_bytes / t->tiles);
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

/* Of compute, what the mean tile waits: tiles beside the grid have nothing to
 * do, the last of each row and column less than others, and in the last round
 * there may be fewer of the batch. */
static int64_t uneven(const struct problem *p, const ipu_plan *plan,
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

/* The best for all of the batch. */
static void find(const ipu_target *target, const ipu_product *d, int64_t room,
                 const struct bounds *bounds, struct ipu__choice *best)
{
    struct problem p = problem_of(target, d);
    struct ipu__choice c = {.total = 0};

    p.room = room;
    p.bounds = *bounds; /* of one round */
    p.bounds.least_cycles = ipu__ceil_div(bounds->least_cycles, p.rounds);
    p.bounds.most_cycles /= p.rounds;
    if (target->output_slices)
        search_by_output(&p, &c);
    else
        search(&p, &c);
    c.total *= p.rounds;
    if (c.total == 0 || (best->total > 0 && c.total >= best->total))
        return;
    repeat(&c.cycles, p.rounds);
    c.plan.tiles *= ipu__least(d->batch, target->tiles);
    c.cycles.waiting = uneven(&p, &c.plan, c.cycles.compute);
    *best = c;
}

/* So many groups of channels as one. */
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
static struct ipu__choice search_all(const ipu_target *target,
                                     const ipu_product *d, int64_t room,
                                     const struct bounds *bounds)
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

        find(target, &one, room, bounds, &best);
        if (d->kernel[0] * d->kernel[1] > 1)
            find(target, &patches, room, bounds, &best);
    }
    return best;
}

/* The same, where it may be known: first of that without limit, which is the
 * best wherever it has the room. */
static int find_plan(const ipu_target *target, const ipu_product *d,
                     int64_t room, struct ipu__plans *plans,
                     struct ipu__choice *best)
{
    const int64_t rooms[] = {UNLIMITED, room};
    const struct ipu__choice *known = NULL;

    if (room > 0 && !plans)
        *best = search_all(target, d, room, &no_bounds);
    for (int i = target->output_slices ? 1 : 0;
         i < 2 && plans && room > 0 && !known; i++) {
        if (!ipu__plans_find(plans, d, rooms[i])) {
            *best = search_all(target, d, rooms[i], &no_bounds);
            if (best->total == 0)
                best->needs = 0; /* nor is there one with less */
            else if (target->output_slices)
                best->needs = room; /* that search does not see all */
            IPU_TRY(ipu__plans_add(plans, d, rooms[i], best));
        }
        known = ipu__plans_find(plans, d, room);
    }
    if (known)
        *best = *known;
    return IPU_OK;
}

/*
 * From one plan to those with less room, in steps: each the best that takes no
 * more temporary memory and no fewer cycles than the one before, down to one
 * that is content with room; or to the last that there is. The way does not
 * depend on room, so that with less of it one goes further on the same way.
 */
static void go_down(const ipu_target *target, const ipu_product *d,
                    int64_t room, struct bounds bounds,
                    struct ipu__choice *best)
{
    enum { LEAST_ROOM = 64, STEPS = 12 };
    int64_t tried = best->needs;

    while (best->needs > room && tried > LEAST_ROOM) {
        struct ipu__choice next;

        tried -= 1 + tried / STEPS;
        bounds.most_bytes = best->cycles.temporary_bytes;
        bounds.least_cycles = best->total;
        next = search_all(target, d, tried, &bounds);
        /* Kernels' derivatives may need a little more than was tried. */
        if (next.total > 0 && next.needs < best->needs) {
            *best = next;
            tried = ipu__least(tried, next.needs);
        }
    }
}

/* With more room than the usual plan was found with: the plans from the largest
 * room down that take more temporary memory than the usual one, and no more
 * cycles; or that one. */
static void go_up(const ipu_target *target, const ipu_product *d, int64_t room,
                  int64_t most, struct ipu__choice *best)
{
    const struct bounds bounds = {.least_bytes = best->cycles.temporary_bytes,
                                  .most_bytes = INT64_MAX,
                                  .most_cycles = best->total};
    struct ipu__choice other = search_all(target, d, most, &bounds);

    if (other.total == 0)
        return;
    go_down(target, d, room, bounds, &other);
    if (other.needs <= room)
        *best = other;
}

/* The plan for so much room, where the usual plan was found with usual bytes,
 * and most is the tile's. */
static int find_share(const ipu_target *target, const ipu_product *d,
                      const int64_t rooms[3], struct ipu__plans *plans,
                      struct ipu__choice *best)
{
    const int64_t share = rooms[0], usual = rooms[1], most = rooms[2];
    const struct ipu__choice *known =
        plans ? ipu__plans_find_share(plans, d, usual, share) : NULL;

    if (known) {
        *best = *known;
        return IPU_OK;
    }
    if (share < usual)
        go_down(target, d, share, no_bounds, best);
    else
        go_up(target, d, share, most, best);
    return plans ? ipu__plans_add_share(plans, d, usual, share, best) : IPU_OK;
}

/* d: checked, without zeros. rooms: what it is asked to be content with, that
 * of the usual plan, and all that there is. */
static int plan_and_count(const ipu_target *target, const ipu_product *d,
                          const int64_t rooms[3], struct ipu__plans *plans,
                          struct ipu__choice *best)
{
    IPU_TRY(find_plan(target, d, rooms[1], plans, best));
    if (best->total > 0 && rooms[0] != rooms[1])
        IPU_TRY(find_share(target, d, rooms, plans, best));
    if (best->total == 0)
        return ipu__fail(
            IPU_ERR_FULL,
            "a product of %lld x [%lld, %lld] x [%lld, %lld] does not fit on "
            "'%s': a tile of %lld bytes would hold %lld of its own, and has no "
            "room to multiply; smaller, or on several chips",
            (long long)d->batch, (long long)d->m, (long long)d->k,
            (long long)d->k, (long long)d->n, target->name,
            (long long)target->bytes_per_tile, (long long)own_bytes(target, d));
    best->cycles.flops = 2.0 * (double)d->batch * (double)d->m * (double)d->k *
                         (double)d->n * d->kernel[0] * d->kernel[1];
    best->cycles.code_bytes += PRODUCT_CODE_BYTES;
    return IPU_OK;
}

/* With kernels and strides of 1 where that is not said. */
static ipu_product completed(const ipu_product *product)
{
    ipu_product d = *product;

    for (int i = 0; i < 2; i++) {
        d.kernel[i] = d.kernel[i] ? d.kernel[i] : 1;
        d.stride[i] = d.stride[i] ? d.stride[i] : 1;
    }
    return d;
}

static int check_call(const ipu_target *target, const ipu_product *product,
                      const ipu_plan *plan, const ipu_cycles *cycles)
{
    IPU_TRY(ipu__check_model(target, cycles));
    IPU_TRY(check(product));
    return plan ? ipu__check_size("plan", plan->size, sizeof *plan) : IPU_OK;
}

static int count_in(const ipu_target *target, const ipu_product *product,
                    const int64_t rooms[3], struct ipu__plans *plans,
                    ipu_plan *plan, ipu_cycles *cycles)
{
    struct ipu__choice best = {.plan = {0}};
    ipu_product d;

    IPU_TRY(check_call(target, product, plan, cycles));
    d = completed(product);
    if (d.batch && d.m && d.k && d.n)
        IPU_TRY(plan_and_count(target, &d, rooms, plans, &best));
    best.cycles.estimate = "the chip's compiler may find another plan";
    if (plan) {
        best.plan.size = plan->size;
        *plan = best.plan;
    }
    ipu__finish(&best.cycles, cycles);
    return IPU_OK;
}

int ipu__product_within(const ipu_target *target, const ipu_product *product,
                        int64_t room, struct ipu__plans *plans, ipu_plan *plan,
                        ipu_cycles *cycles)
{
    const int64_t rooms[3] = {
        ipu__least(room, share_of(target, proportion_of(product))), room, room};

    return count_in(target, product, rooms, plans, plan, cycles);
}

int ipu__product_beside(const ipu_target *target, const ipu_product *product,
                        int64_t others, struct ipu__plans *plans,
                        ipu_plan *plan, ipu_cycles *cycles)
{
    int64_t rooms[3];
    ipu_product d;

    IPU_TRY(check_call(target, product, plan, cycles));
    d = completed(product);
    if (others < 0)
        others = own_bytes(target, &d);
    rooms[2] = target->bytes_per_tile - others - IPU__CODE_BYTES;
    rooms[1] = ipu__least(share_of(target, USUAL_PROPORTION), rooms[2]);
    rooms[0] = ipu__least(share_of(target, proportion_of(&d)), rooms[2]);
    return count_in(target, &d, rooms, plans, plan, cycles);
}

/* What the product would take on a chip that has memory to spare. */
static int count_roomy(const ipu_target *target, const ipu_product *product,
                       int64_t *total)
{
    const int64_t rooms[3] = {UNLIMITED, UNLIMITED, UNLIMITED};
    ipu_cycles cycles = {.size = sizeof cycles};

    IPU_TRY(count_in(target, product, rooms, NULL, NULL, &cycles));
    *total = cycles.total;
    return IPU_OK;
}

int ipu_model_product(const ipu_target *target, const ipu_product *product,
                      ipu_plan *plan, ipu_cycles *cycles)
{
    IPU_TRY(ipu__product_beside(target, product, -1, NULL, plan, cycles));
    return plan ? count_roomy(target, product, &plan->roomy_cycles) : IPU_OK;
}
