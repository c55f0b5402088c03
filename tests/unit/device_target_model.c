/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model's costs of computing on a chip are within a tenth of published
 * figures, change with sizes and loads as they must, and are refused for
 * impossible work. device_target_exchange.c is about moving data.
 */
#include "suite.h"

#include "target_model.h"

/* Graphcore's tutorial of matrix times vector, cycle for cycle: it knows no
 * sync. */
TEST(a_matrix_times_a_vector_exactly)
{
    ipu_target mk2 = chip("mk2");
    int64_t split = 0;

    MUST(ipu_model_matvec(&mk2, 10000, 1000, 0, &split, &c));
    ck_assert_int_eq(split, 7);
    ck_assert_int_eq(c.compute, 3696 + 108);
    ck_assert_int_eq(c.exchange, 143 + 49);
    ck_assert_int_eq(c.compute + c.exchange, 3996);
    ck_assert_int_gt(c.sync, 0);
    WITHIN(c.compute, 3717.6); /* measured on a chip */
    WITHIN(ipu_model_seconds(&mk2, 6681766), 5023.9e-6);
    /* One vertex a row: 7 a tile, in two turns of six. */
    MUST(ipu_model_matvec(&mk2, 10000, 1000, 1, &split, &c));
    ck_assert_int_eq(split, 1);
    ck_assert_int_eq(c.compute, 12 * 505 + 12 * 6);
}

static double product_flops(const ipu_target *target, int64_t n,
                            int32_t element_bytes)
{
    const ipu_product product = {.size = sizeof product,
                                 .element_bytes = element_bytes,
                                 .batch = 1,
                                 .m = n,
                                 .k = n,
                                 .n = n};
    ipu_plan plan = {.size = sizeof plan};

    MUST(ipu_model_product(target, &product, &plan, &c));
    ck_assert_int_le(plan.tiles, target->tiles);
    ck_assert_int_le(c.temporary_bytes, target->bytes_per_tile);
    return c.flops / ipu_model_seconds(target, c.total);
}

LOOP_TEST(products_come_near_the_peak_as_they_grow, 0, 2)
{
    ipu_target target = chip(_i ? "mk2" : "mk1");
    ipu_target_peaks peaks = {.size = sizeof peaks};
    double last = 0;

    MUST(ipu_target_get_peaks(&target, &peaks));
    for (int64_t n = 128; n <= 2048; n *= 2) {
        double flops = product_flops(&target, n, 4);

        ck_assert(flops > last && flops < peaks.flops_float32);
        last = flops;
    }
    ck_assert(last > peaks.flops_float32 / 2);
    ck_assert(product_flops(&target, 2048, 2) > 2 * last);
}

/* Sums of two bytes instead of four: half of what parts of k exchange, and
 * nothing to round at the end. Products of float32 are as they were. */
TEST(sums_may_be_halves)
{
    ipu_product product = {.size = sizeof product,
                           .element_bytes = 2,
                           .batch = 1,
                           .m = 64,
                           .k = 8192,
                           .n = 64};
    ipu_target mk2 = chip("mk2"), half = mk2;
    ipu_plan plan = {.size = sizeof plan};
    int64_t total, bytes;

    half.half_sums = 1;
    MUST(ipu_model_product(&mk2, &product, &plan, &c));
    ck_assert_int_gt(plan.grid_k, 1);
    total = c.total;
    bytes = c.partial_bytes;
    MUST(ipu_model_product(&half, &product, &plan, &c));
    ck_assert_int_lt(c.total, total);
    ck_assert_int_lt(c.partial_bytes, bytes);
    product.element_bytes = 4;
    MUST(ipu_model_product(&mk2, &product, &plan, &c));
    total = c.total;
    MUST(ipu_model_product(&half, &product, &plan, &c));
    ck_assert_int_eq(c.total, total);
}

/* Returns a convolution of 256 channels in groups of `channels`, 3 x 3, over 4
 * images of 14 x 14 pixels, or the derivative of its kernel. */
static ipu_product grouped(int64_t channels, int32_t element_bytes,
                           int32_t of_kernel)
{
    return (ipu_product){.size = sizeof(ipu_product),
                         .element_bytes = element_bytes,
                         .batch = 256 / channels,
                         .m = of_kernel ? channels : 784,
                         .k = of_kernel ? 784 : channels,
                         .n = channels,
                         .kernel = {3, 3},
                         .stride = {1, 1},
                         .of_kernel = of_kernel,
                         .grouped = 1};
}

/* Several groups of few channels share the unit, padded with zeros: one channel
 * each never takes longer than several do. */
LOOP_TEST(groups_of_few_channels_share_passes, 0, 8)
{
    ipu_target target = chip(_i & 1 ? "mk2" : "mk1");
    int32_t element_bytes = _i & 2 ? 2 : 4, of_kernel = _i & 4 ? 1 : 0;
    int64_t last = 0;

    for (int64_t channels = 1; channels <= 64; channels *= 2) {
        ipu_product product = grouped(channels, element_bytes, of_kernel);

        MUST(ipu_model_product(&target, &product, NULL, &c));
        ck_assert_int_ge(c.total, last);
        ck_assert_double_eq(c.flops, 2.0 * 784 * 9 * 256 * (double)channels);
        last = c.total;
    }
}

TEST(groups_by_themselves_leave_the_unit_idle)
{
    ipu_product product = grouped(1, 2, 1);
    ipu_target mk2 = chip("mk2");
    int64_t together;

    MUST(ipu_model_product(&mk2, &product, NULL, &c));
    together = c.compute;
    product.grouped = 0; /* 256 independent products */
    MUST(ipu_model_product(&mk2, &product, NULL, &c));
    ck_assert_int_gt(c.compute, 3 * together / 2);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* A product that does not fit is computed in slices of its sum; on a Mk1, of
 * its output, each of which fetches all rows again. */
TEST(products_without_room_come_in_slices)
{
    const ipu_product product = {.size = sizeof product,
                                 .element_bytes = 2,
                                 .batch = 1,
                                 .m = 3072,
                                 .k = 3072,
                                 .n = 3072};
    ipu_target mk1 = chip("mk1");
    ipu_plan plan = {.size = sizeof plan};
    int64_t sliced, fetched, k, rows, n, sums;

    mk1.output_slices = 0;
    MUST(ipu_model_product(&mk1, &product, &plan, &c));
    ck_assert_int_gt(plan.slices, 1);
    ck_assert_int_eq(plan.output_slices, 1);
    sliced = c.exchange_bytes;
    mk1 = chip("mk1");
    MUST(ipu_model_product(&mk1, &product, &plan, &c));
    ck_assert_int_eq(plan.slices, 1);
    ck_assert_int_gt(plan.output_slices, 1);
    ck_assert_int_gt(c.exchange_bytes, sliced);
    ck_assert_int_lt(c.temporary_bytes, mk1.bytes_per_tile);
    rows = ceil_div(3072, plan.grid_m);
    n = ceil_div(ceil_div(3072, plan.output_slices), plan.grid_n);
    k = 16 * ceil_div(3072 / 16, plan.grid_k);
    sums = ceil_div(rows * n, plan.grid_k) * (plan.grid_k - 1);
    fetched = plan.output_slices * (2 * k * (rows + n) + 4 * sums);
    WITHIN(c.exchange_bytes, (double)fetched);
}

TEST(a_product_with_room_is_not_sliced)
{
    ipu_target mk1 = chip("mk1");
    double flops = product_flops(&mk1, 512, 2);

    mk1.output_slices = 0;
    ck_assert_double_eq(product_flops(&mk1, 512, 2), flops);
}

/* Jia et al. measured 18.9 and 58.9 TFLOPS as the best of square matrices on a
 * Mk1. The figures are quoted from memory; the sizes are not known. */
TEST(the_best_products_of_a_mk1)
{
    static const double published[] = {[2] = 58.9e12, [4] = 18.9e12};
    ipu_target mk1 = chip("mk1");

    for (int bytes = 2; bytes <= 4; bytes += 2) {
        double best = 0;

        for (int64_t n = 1024; n <= 3584; n += 128) {
            double flops = product_flops(&mk1, n, bytes);

            best = flops > best ? flops : best;
        }
        WITHIN(best, published[bytes]);
    }
}

TEST(a_product_that_does_not_fit_says_so)
{
    ipu_target mk1 = chip("mk1");
    ipu_product product = {.size = sizeof product,
                           .element_bytes = 4,
                           .batch = 1,
                           .m = 20000,
                           .k = 20000,
                           .n = 20000};

    MUST_FAIL(ipu_model_product(&mk1, &product, NULL, &c), IPU_ERR_FULL,
              "does not fit on 'mk1': a tile of 262144 bytes");
    product.element_bytes = 3;
    MUST_FAIL(ipu_model_product(&mk1, &product, NULL, &c), IPU_ERR_ARGUMENT,
              "elements of 3 bytes");
    product.element_bytes = 4;
    product.kernel[0] = -1;
    MUST_FAIL(ipu_model_product(&mk1, &product, NULL, &c), IPU_ERR_ARGUMENT,
              "a product with a kernel of -1 x 0, stride 0 x 0: 0 to 32768 "
              "each");
    product.kernel[0] = product.kernel[1] = 1 << 10;
    MUST_FAIL(ipu_model_product(&mk1, &product, NULL, &c), IPU_ERR_ARGUMENT,
              "a product that multiplies 8.38861e+18 times; at most "
              "3.60288e+16");
    product.kernel[0] = product.kernel[1] = 1;
    product.m = -1;
    MUST_FAIL(ipu_model_product(&mk1, &product, NULL, &c), IPU_ERR_ARGUMENT,
              "[-1, 20000]");
    product.m = 0;
    MUST(ipu_model_product(&mk1, &product, NULL, &c));
    ck_assert_int_eq(c.total, 0);
}

/* A convolution has as many multiplications, but its inputs are fetched once
 * for nine. */
TEST(a_convolution_fetches_less_than_a_product)
{
    ipu_target mk2 = chip("mk2");
    ipu_product product = {.size = sizeof product,
                           .element_bytes = 2,
                           .batch = 1,
                           .m = 4 * 56 * 56,
                           .k = 9 * 64,
                           .n = 64};
    int64_t bytes;

    MUST(ipu_model_product(&mk2, &product, NULL, &c));
    bytes = c.exchange_bytes;
    product.k = 64;
    product.kernel[0] = product.kernel[1] = 3;
    MUST(ipu_model_product(&mk2, &product, NULL, &c));
    ck_assert_int_lt(c.exchange_bytes, bytes);
}

/* The derivative of its kernel fetches less, too; with few channels, patches
 * are cheaper than a pass for each position. */
TEST(derivatives_of_kernels_fetch_less_than_products)
{
    ipu_target mk2 = chip("mk2");
    ipu_product patches = {.size = sizeof patches,
                           .element_bytes = 2,
                           .batch = 1,
                           .m = 9 * 256,
                           .k = 4 * 28 * 28,
                           .n = 256};
    ipu_product kernel = patches;
    int64_t bytes, total;

    kernel.m = 256;
    kernel.kernel[0] = kernel.kernel[1] = 3;
    kernel.of_kernel = 1;
    MUST(ipu_model_product(&mk2, &patches, NULL, &c));
    bytes = c.exchange_bytes;
    total = c.total;
    MUST(ipu_model_product(&mk2, &kernel, NULL, &c));
    ck_assert_int_lt(c.exchange_bytes, bytes);
    ck_assert_int_lt(c.total, total);
    patches.m = 9 * 3;
    kernel.m = 3;
    MUST(ipu_model_product(&mk2, &patches, NULL, &c));
    total = c.total;
    MUST(ipu_model_product(&mk2, &kernel, NULL, &c));
    ck_assert_int_le(c.total, total);
}

TEST(a_batch_is_spread_over_the_tiles)
{
    ipu_target mk2 = chip("mk2");
    ipu_product product = {.size = sizeof product,
                           .element_bytes = 4,
                           .batch = 1472,
                           .m = 64,
                           .k = 64,
                           .n = 64};
    int64_t once;

    MUST(ipu_model_product(&mk2, &product, NULL, &c));
    once = c.total;
    product.batch *= 3;
    MUST(ipu_model_product(&mk2, &product, NULL, &c));
    ck_assert_int_eq(c.total, 3 * once);
}

TEST(sums_go_through_stages)
{
    ipu_target mk2 = chip("mk2");

    MUST(ipu_model_reduce(&mk2, 1 << 20, 1, 4, &c));
    /* All partial sums into one tile at once would take 1472 words. */
    ck_assert_int_lt(c.exchange, 1472);
    ck_assert_int_ge(c.sync, 2 * mk2.sync_cycles);
    MUST(ipu_model_reduce(&mk2, 1472, 1472, 4, &c));
    ck_assert_int_eq(c.exchange, 0);
    MUST_FAIL(ipu_model_reduce(&mk2, 4, 5, 4, &c), IPU_ERR_ARGUMENT,
              "4 elements to 5 sums");
}

TEST(elements_are_spread_and_added_two_at_a_time)
{
    ipu_target mk2 = chip("mk2");
    int64_t half;

    MUST(ipu_model_elementwise(&mk2, 1472 * 1200, 2, 2, 1, &c));
    half = c.compute;
    ck_assert_int_eq(c.exchange, 0);
    MUST(ipu_model_elementwise(&mk2, 1472 * 1200, 4, 2, 1, &c));
    ck_assert_int_eq(c.compute - half, 300);
    MUST(ipu_model_elementwise(&mk2, 0, 4, 2, 1, &c));
    ck_assert_int_eq(c.total, 0);
    MUST_FAIL(ipu_model_elementwise(&mk2, -1, 4, 2, 1, &c), IPU_ERR_ARGUMENT,
              "elementwise: -1 elements; 0 to 2^48");
    MUST_FAIL(ipu_model_elementwise(&mk2, 1, 3, 2, 1, &c), IPU_ERR_ARGUMENT,
              "elementwise: elements of 3 bytes; 2 or 4");
}

/* A published implementation of the heat equation in C++, seven points in
 * three dimensions, reaches 0.87 to 1.03 TFLOPS on a Mk2. */
TEST(a_compiled_stencil)
{
    ipu_target mk2 = chip("mk2");
    double compiled, tuned;

    MUST(ipu_model_stencil(&mk2, 3, 360, 7, 0, &c));
    compiled = c.flops / ipu_model_seconds(&mk2, c.total);
    ck_assert(compiled > 0.9 * 0.87e12 && compiled < 1.1 * 1.03e12);
    MUST(ipu_model_stencil(&mk2, 3, 360, 7, 1, &c));
    tuned = c.flops / ipu_model_seconds(&mk2, c.total);
    ck_assert(tuned > 1.44e12);
    MUST_FAIL(ipu_model_stencil(&mk2, 3, 2000, 7, 0, &c), IPU_ERR_FULL,
              "2000^3 cells does not fit on 'mk2'");
    MUST_FAIL(ipu_model_stencil(&mk2, 4, 10, 7, 0, &c), IPU_ERR_ARGUMENT,
              "10^4 cells");
}

TEST(arguments_are_checked)
{
    ipu_target mk2 = chip("mk2"), none = {.size = sizeof none};
    ipu_loop loop = {.size = sizeof loop, .iterations = -1};
    int64_t split;

    MUST_FAIL(ipu_model_loop(&mk2, &loop, &c), IPU_ERR_ARGUMENT, "negative");
    MUST_FAIL(ipu_model_loop(&mk2, NULL, &c), IPU_ERR_ARGUMENT,
              "the loop is NULL");
    loop.size = 0;
    MUST_FAIL(ipu_model_loop(&mk2, &loop, &c), IPU_ERR_ARGUMENT, "size is 0");
    MUST_FAIL(ipu_model_exchange(&none, 0, 4, &c), IPU_ERR_ARGUMENT,
              "tiles is 0");
    MUST_FAIL(ipu_model_exchange(&mk2, 6, 4, &c), IPU_ERR_ARGUMENT,
              "6 is not a pattern");
    MUST_FAIL(ipu_model_exchange(&mk2, 0, -4, &c), IPU_ERR_ARGUMENT,
              "-4 bytes");
    MUST_FAIL(ipu_model_exchange(&mk2, 0, 4, NULL), IPU_ERR_ARGUMENT,
              "the place for cycles is NULL");
    MUST_FAIL(ipu_model_matvec(&mk2, 10, 10, 11, &split, &c), IPU_ERR_ARGUMENT,
              "in 11 parts");
    MUST_FAIL(ipu_model_product(&mk2, NULL, NULL, &c), IPU_ERR_ARGUMENT,
              "the product is NULL");
    c.size = 1;
    MUST_FAIL(ipu_model_exchange(&mk2, 0, 4, &c), IPU_ERR_ARGUMENT,
              "size is 1");
}

TEST_MAIN("device_target_model", .set_up = set_up)
