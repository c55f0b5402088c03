/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that no model claims impossible costs, for many sizes, dtypes and
 * chips: more than the peak, more bytes than the wires carry, less time for
 * more work. Parts add up to wholes, in programs too.
 */
#include "suite.h"

#include <math.h>

#include "device.h"
#include "ipu_model.h"

static const char *const chips[] = {"mk1", "mk2", "bow"};
enum { NCHIPS = 3 };

static ipu_cycles c; /* of the last call */

static void set_up(void)
{
    c = (ipu_cycles){.size = sizeof c};
}

static ipu_target chip(int i)
{
    ipu_target target = {.size = sizeof target};

    MUST(ipu_target_find(chips[i % NCHIPS], &target));
    return target;
}

/* Checks any work: parts add up, nothing is negative, and each exchange takes
 * at least the time of its bytes. */
static void is_sane(const ipu_target *target, const char *what)
{
    double words = (double)c.exchange_bytes / target->exchange_bytes_per_cycle;

    ck_assert_msg(c.total == c.compute + c.exchange + c.sync &&
                      c.compute >= 0 && c.exchange >= 0 && c.sync >= 0,
                  "%s: %lld = %lld + %lld + %lld", what, (long long)c.total,
                  (long long)c.compute, (long long)c.exchange,
                  (long long)c.sync);
    ck_assert_msg((double)c.exchange >= words,
                  "%s: %lld bytes arrive in %lld cycles", what,
                  (long long)c.exchange_bytes, (long long)c.exchange);
    ck_assert_int_ge(c.temporary_bytes, c.partial_bytes);
}

/* Checks that each tile makes at most `lanes` operations a cycle. */
static void is_within(const ipu_target *target, double lanes, const char *what)
{
    double most = (double)c.compute * target->tiles * lanes;

    is_sane(target, what);
    ck_assert_msg(c.flops <= most * (1 + 1e-12),
                  "%s: %g operations, where %g are possible", what, c.flops,
                  most);
}

/* ----------------------------------------------------------------- products */

static const int64_t extents[] = {1, 3, 16, 64, 100, 777, 1024, 3000};
enum { NEXTENTS = sizeof extents / sizeof *extents };

static int64_t product(const ipu_target *target, ipu_product p)
{
    int status;

    p.size = sizeof p;
    status = ipu_model_product(target, &p, NULL, &c);
    if (status == IPU_ERR_FULL)
        return -1;
    MUST(status);
    is_within(target,
              2.0 * (p.element_bytes == 2 ? target->macs_float16
                                          : target->macs_float32),
              "a product");
    ck_assert_double_eq(c.flops, 2.0 * (double)p.batch * (double)p.m *
                                     (double)p.k * (double)p.n *
                                     (p.kernel[0] ? p.kernel[0] : 1) *
                                     (p.kernel[1] ? p.kernel[1] : 1));
    return c.total;
}

/* Checks that more work is not faster: a faster plan for twice as much would
 * also do for half of it. The search tries some plans only, so 2 % are
 * allowed. */
static void is_slower(int64_t more, int64_t less)
{
    if (more >= 0 && less >= 0)
        ck_assert_msg((double)more >= 0.98 * (double)less,
                      "%lld cycles for more than what takes %lld",
                      (long long)more, (long long)less);
}

LOOP_TEST(products_stay_within_the_peak_and_grow, 0, 2 * NCHIPS)
{
    ipu_target target = chip(_i);
    int32_t bytes = _i < NCHIPS ? 2 : 4;

    for (int m = 0; m < NEXTENTS; m++)
        for (int k = 0; k < NEXTENTS; k++)
            for (int n = 0; n < NEXTENTS; n += 2) {
                ipu_product p = {.element_bytes = bytes,
                                 .batch = 1,
                                 .m = extents[m],
                                 .k = extents[k],
                                 .n = extents[n]};
                int64_t one = product(&target, p);

                p.m *= 2;
                is_slower(product(&target, p), one);
                p.m /= 2;
                p.k *= 2;
                is_slower(product(&target, p), one);
                p.k /= 2;
                p.n *= 2;
                is_slower(product(&target, p), one);
            }
}

LOOP_TEST(batches_and_kernels_stay_within_the_peak, 0, 2 * NCHIPS)
{
    ipu_target target = chip(_i);
    static const int64_t batches[] = {1, 7, 96, 2000};

    for (int b = 0; b < 4; b++)
        for (int32_t kernel = 1; kernel <= 7; kernel += 2)
            for (int32_t stride = 1; stride <= 2; stride++) {
                ipu_product p = {.element_bytes = _i < NCHIPS ? 2 : 4,
                                 .batch = batches[b],
                                 .m = 196,
                                 .k = 33,
                                 .n = 65,
                                 .kernel = {kernel, kernel},
                                 .stride = {stride, stride}};
                int64_t one = product(&target, p);

                p.batch *= 2;
                is_slower(product(&target, p), one);
                p.batch /= 2;
                p.kernel[0]++;
                is_slower(product(&target, p), one);
                p.of_kernel = 1; /* channels, pixels, channels */
                p.m = 33;
                p.k = 196;
                one = product(&target, p);
                p.n *= 2;
                is_slower(product(&target, p), one);
            }
}

/* No work takes no time; one multiplication takes a vertex. */
LOOP_TEST(nothing_and_one, 0, NCHIPS)
{
    ipu_target target = chip(_i);
    ipu_product p = {.element_bytes = 4, .batch = 1, .m = 1, .k = 1, .n = 1};

    ck_assert_int_gt(product(&target, p), 0);
    ck_assert_int_lt(c.total, 2000);
    p.k = 0;
    ck_assert_int_eq(product(&target, p), 0);
    MUST(ipu_model_elementwise(&target, 1, 2, 1, 1, &c));
    ck_assert(c.total > 0 && c.total < 500);
    MUST(ipu_model_elementwise(&target, 0, 2, 1, 1, &c));
    ck_assert_int_eq(c.total, 0);
    MUST(ipu_model_reduce(&target, 1, 1, 4, &c));
    ck_assert(c.total > 0 && c.total < 500 && c.exchange_bytes == 0);
    MUST(ipu_model_reduce(&target, 0, 0, 4, &c));
    ck_assert_int_eq(c.total, 0);
    MUST(ipu_model_matvec(&target, 1, 1, 0, NULL, &c));
    ck_assert(c.total > 0 && c.total < 2000);
    MUST(ipu_model_stencil(&target, 1, 1, 3, 1, &c));
    ck_assert(c.total > 0 && c.exchange_bytes == 0);
}

/* ------------------------------------------------------------- on all tiles */

LOOP_TEST(elements_and_sums_stay_within_vectors, 0, 2 * NCHIPS)
{
    ipu_target target = chip(_i);
    int32_t bytes = _i < NCHIPS ? 2 : 4;
    double lanes = (double)target.vector_bytes / bytes;
    int64_t last = 0, sum = 0;

    for (int64_t count = 1; count < 1 << 26; count = count * 3 + 1) {
        for (int32_t arithmetic = 1; arithmetic < 40; arithmetic *= 3) {
            MUST(ipu_model_elementwise(&target, count, bytes, 2, arithmetic,
                                       &c));
            is_within(&target, lanes, "elements");
        }
        is_slower(c.total, last);
        last = c.total;
        for (int64_t outputs = 1; outputs <= count; outputs *= 100) {
            MUST(ipu_model_reduce(&target, count, outputs, bytes, &c));
            is_within(&target, lanes, "sums");
            if (outputs == 1) {
                is_slower(c.total, sum);
                sum = c.total;
            }
        }
    }
}

LOOP_TEST(memory_gives_no_more_than_it_has, 0, NCHIPS)
{
    ipu_target target = chip(_i);

    for (int loads = 0; loads < 5; loads++)
        for (int stores = 0; stores < 4; stores++)
            for (int tuned = 0; tuned < 2; tuned++) {
                const ipu_loop loop = {.size = sizeof loop,
                                       .tuned = tuned,
                                       .iterations = 100000,
                                       .loads = loads,
                                       .stores = stores,
                                       .arithmetic = 1,
                                       .one_element = loads == 3};
                double cycles;

                MUST(ipu_model_loop(&target, &loop, &c));
                is_sane(&target, "a loop");
                cycles = (double)c.compute;
                ck_assert_double_le(8.0 * loads * 1e5,
                                    cycles * target.load_bytes);
                ck_assert_double_le(8.0 * stores * 1e5,
                                    cycles * target.store_bytes);
            }
}

LOOP_TEST(wires_carry_no_more_than_they_can, 0, NCHIPS)
{
    ipu_target target = chip(_i);

    for (ipu_pattern p = 0; p < IPU_NUM_PATTERNS; p++) {
        int64_t last = 0;

        for (int64_t bytes = 0; bytes < 1 << 16; bytes = bytes * 3 + 1) {
            MUST(ipu_model_exchange(&target, p, bytes, &c));
            is_sane(&target, ipu_pattern_name(p));
            ck_assert_int_eq(c.total == 0, bytes == 0);
            ck_assert_int_ge(c.total, last);
            last = c.total;
        }
    }
}

LOOP_TEST(nothing_leaves_a_chip_faster_than_its_links, 0, 3)
{
    static const char *const names[] = {"C2", "M2000", "Bow-Pod16"};
    ipu_system system = {.size = sizeof system};
    double width;

    MUST(ipu_system_find(names[_i], &system));
    for (int32_t to = 1; to < system.ipus; to++)
        for (int64_t bytes = 1; bytes < 1 << 14; bytes = bytes * 5 + 1)
            for (int loaded = 0; loaded < 2; loaded++) {
                double moved = (double)bytes * (loaded ? system.ipu.tiles : 1);

                MUST(ipu_system_path(&system, 0, to, &width, NULL));
                MUST(ipu_model_link(&system, 0, to, bytes, loaded, &c));
                is_sane(&system.ipu, names[_i]);
                ck_assert_double_le(
                    moved, width * ipu_model_seconds(&system.ipu, c.total));
            }
}

/* ----------------------------------------------------------------- programs */

/* Builds a program with a bit of everything: a convolution, norms, attention,
 * sums, moves, training. */
static void some_of_everything(struct device *d, int64_t width)
{
    ipu_graph *g = d->graph;
    ipu_tensor x = device_floats(d, "x", 4, SHAPE(2, 9, 7, 3));
    ipu_tensor kernel =
        ipu_variable(g, "kernel", IPU_FLOAT32, 4, SHAPE(3, 3, 3, 3 * width));
    ipu_tensor scale =
        ipu_variable(g, "scale", IPU_FLOAT32, 1, SHAPE(3 * width));
    ipu_tensor gradients[2], loss;
    const float rate = 0.1F;
    const ipu_tensor wanted[] = {kernel, scale};

    x = ipu_conv2d(g, x, kernel, NULL);
    x = ipu_reshape(g, x, 3, SHAPE(2, 35, 3 * width));
    x = ipu_layer_norm(g, x, scale, scale, 1e-5);
    x = ipu_attention(g, x, 1, 1);
    x = ipu_gelu(g, ipu_transpose(g, x, (const int32_t[]){0, 2, 1}));
    x = ipu_concat(g, 2, (const ipu_tensor[]){x, ipu_softmax(g, x)}, 1);
    loss = ipu_reduce_sum(g, ipu_square(g, x), 1);
    MUST(ipu_output(g, "loss", loss));
    MUST(ipu_gradients(g, loss, 2, wanted, gradients));
    for (int i = 0; i < 2; i++)
        MUST(ipu_sgd(g, wanted[i], gradients[i],
                     ipu_constant(g, IPU_FLOAT32, 0, NULL, &rate), NULL));
}

/* Checks that every tile takes the same time through a superstep, and that the
 * busiest computes for as long as the step reports. */
static void tiles_agree(const struct device *d, int32_t i,
                        const ipu_step_info *step, int32_t tiles)
{
    int64_t most = 0;

    for (int32_t t = 0; t < tiles; t++) {
        MUST(ipu_executable_tile_cycles(d->executable, i, t, &c));
        ck_assert_int_eq(c.compute + c.exchange + c.sync, step->total_cycles);
        most = c.compute > most ? c.compute : most;
    }
    ck_assert_int_eq(most, step->compute_cycles);
}

LOOP_TEST(steps_add_up_to_programs, 0, 3 * NCHIPS)
{
    static const int64_t widths[] = {1, 5, 64};
    ipu_target target = chip(_i);
    ipu_target_peaks peaks = {.size = sizeof peaks};
    struct device d = device_new();
    const ipu_compile_options options = {.size = sizeof options,
                                         .target = &target};
    ipu_program_cycles sum = {0}, all = {.size = sizeof all};
    ipu_step_info step = {.size = sizeof step};

    some_of_everything(&d, widths[_i / NCHIPS]);
    MUST(ipu_compile_with(d.graph, &options, &d.executable));
    MUST(ipu_executable_cycles(d.executable, &all));
    MUST(ipu_target_get_peaks(&target, &peaks));
    for (int32_t i = 0; ipu_executable_step(d.executable, i, &step) >= 0; i++) {
        ck_assert_int_eq(step.total_cycles, step.compute_cycles +
                                                step.exchange_cycles +
                                                step.sync_cycles);
        ck_assert_double_ge((double)step.exchange_cycles *
                                target.exchange_bytes_per_cycle,
                            (double)step.exchange_bytes);
        ck_assert_double_le(step.flops * target.clock_hz,
                            peaks.flops_float32 * (double)step.compute_cycles);
        tiles_agree(&d, i, &step, target.tiles);
        sum.compute += step.compute_cycles;
        sum.exchange += step.exchange_cycles;
        sum.sync += step.sync_cycles;
        sum.estimates += step.estimate != NULL;
    }
    ck_assert_int_eq(sum.compute, all.compute);
    ck_assert_int_eq(sum.exchange, all.exchange);
    ck_assert_int_eq(sum.sync, all.sync);
    ck_assert_int_eq(sum.estimates, all.estimates);
    ck_assert_int_eq(all.total,
                     all.compute + all.exchange + all.sync + all.host);
    device_free(&d);
}

/* Tensors of no elements, and of one. */
LOOP_TEST(nothing_costs_nothing, 0, 2)
{
    struct device d = device_new();
    ipu_tensor x = device_floats(&d, "x", 2, SHAPE(_i, 3));
    ipu_program_cycles all = {.size = sizeof all};

    x = ipu_softmax(d.graph, ipu_transpose(d.graph, ipu_exp(d.graph, x), NULL));
    x = ipu_sum(d.graph, x, 1, (const int32_t[]){0}, 0);
    MUST(ipu_output(d.graph, "y", x));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    MUST(ipu_executable_cycles(d.executable, &all));
    ck_assert_int_eq(all.compute > 0, _i > 0);
    ck_assert_int_lt(all.compute + all.exchange + all.sync, 3000);
    device_free(&d);
}

TEST_MAIN("device_target_sanity", .set_up = set_up, .seconds = 120)
