/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.c - matrix products and convolutions: checks the request, plans it,
 * and counts its cycles.
 *
 * The output, [m, n] for each of batch, is cut into a grid of blocks; where
 * that leaves tiles idle, k is cut too, and the partial sums are added up
 * afterwards (product_grid.c). Sums are float32; those of float16 products are
 * rounded at the end, unless the target keeps them in float16.
 *
 * The plan is the cheapest of all grids (product_search.c) that has the room
 * (product_room.c). The chip's own compiler searches more ways (and takes the
 * weights from the other side), so a real plan may be better.
 */
#include "target/product.h"
#include "base/error.h"
#include "target/cost.h"
#include "target/target.h"

/* Share of a tile that a product may fetch and add up in between: the default
 * of Graphcore's libraries. */
static const double USUAL_PROPORTION = 0.6;

/* Code of a vertex with its loops, and of adding up. */
enum { PRODUCT_CODE_BYTES = 624 };

/* Years on any chip; cycles still count in 64 bits. */
static const double MOST_PRODUCTS = 0x1p55;

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

static int check_product(const ipu_product *d)
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

/* Returns the bytes of a tile's share of inputs and output. */
static int64_t own_bytes(const ipu_target *t, const ipu_product *d)
{
    double m = (double)d->m, k = (double)d->k, n = (double)d->n;
    double taps = (double)d->kernel[0] * d->kernel[1];
    double elements = m * k * d->stride[0] * d->stride[1];

    elements += d->of_kernel ? k * n + m * n * taps : k * n * taps + m * n;
    return (int64_t)((double)d->batch * elements * d->element_bytes / t->tiles);
}

/* d: checked, without zeros. rooms: what it is asked to be content with, that
 * of the usual plan, and all that there is. */
static int plan_and_count(const ipu_target *target, const ipu_product *d,
                          const int64_t rooms[3], struct ipu__plans *plans,
                          struct ipu__choice *best)
{
    IPU_TRY(ipu__find_plan(target, d, rooms[1], plans, best));
    if (best->total > 0 && rooms[0] != rooms[1])
        IPU_TRY(ipu__find_share(target, d, rooms, plans, best));
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

/* Returns the product with kernels and strides of 1 where they are not set. */
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
    IPU_TRY(check_product(product));
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

/* Counts the product on a chip that has memory to spare. */
static int count_roomy(const ipu_target *target, const ipu_product *product,
                       int64_t *total)
{
    const int64_t rooms[3] = {IPU__UNLIMITED, IPU__UNLIMITED, IPU__UNLIMITED};
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
