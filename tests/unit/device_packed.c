/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that an engine keeps constant weights as the processor multiplies them:
 * results are those of an engine that runs for the first time, bit by bit, and
 * weights that may change are never kept.
 */
#include "suite.h"

#include <stdbool.h>

#include "device.h"
#include "ops/wide.h"

enum { ROWS = 100, DEPTH = 48, COLUMNS = 40, SIDE = 12, CHANNELS = 16 };
enum { X = ROWS * DEPTH, Y = ROWS * COLUMNS };
enum { IMAGE = SIDE * SIDE * CHANNELS, KERNEL = 9 * CHANNELS * CHANNELS };

static struct device d;
static float x[X], weights[DEPTH * COLUMNS], image[IMAGE], kernel[KERNEL];
static float y[Y], made[IMAGE];

static void set_up(void)
{
    d = device_new();
    device_fill(x, X, 1);
    device_fill(weights, DEPTH * COLUMNS, 2);
    device_fill(image, IMAGE, 3);
    device_fill(kernel, KERNEL, 4);
}

static void tear_down(void)
{
    device_free(&d);
}

static ipu_tensor weights_of(bool constant, const char *name, int32_t ndim,
                             const int64_t *shape, const float *data)
{
    return constant ? ipu_constant(d.graph, IPU_FLOAT32, ndim, shape, data)
                    : ipu_variable(d.graph, name, IPU_FLOAT32, ndim, shape);
}

/* A product, which is fused with a relu, and a convolution. */
static void build(bool constant)
{
    const ipu_conv_options options = {
        .size = sizeof options, .stride = {1, 1}, .same = 1};
    ipu_tensor w = weights_of(constant, "w", 2, SHAPE(DEPTH, COLUMNS), weights);
    ipu_tensor k =
        weights_of(constant, "k", 4, SHAPE(3, 3, CHANNELS, CHANNELS), kernel);
    ipu_tensor product =
        ipu_matmul(d.graph, device_floats(&d, "x", 2, SHAPE(ROWS, DEPTH)), w);
    ipu_tensor convolved = ipu_conv2d(
        d.graph, device_floats(&d, "image", 4, SHAPE(1, SIDE, SIDE, CHANNELS)),
        k, &options);

    MUST(ipu_output(d.graph, "y", ipu_relu(d.graph, product)));
    MUST(ipu_output(d.graph, "made", convolved));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
}

static ipu_engine *new_engine(void)
{
    ipu_engine *engine;

    MUST(ipu_engine_new(d.executable, &engine));
    MUST(ipu_engine_connect(engine, "x", x, sizeof x));
    MUST(ipu_engine_connect(engine, "image", image, sizeof image));
    MUST(ipu_engine_connect(engine, "y", y, sizeof y));
    MUST(ipu_engine_connect(engine, "made", made, sizeof made));
    return engine;
}

/* Compares a run of the engine with the first run of another. */
static void check_run(ipu_engine *engine)
{
    static float first[Y], convolved[IMAGE];
    ipu_engine *other = new_engine();

    MUST(ipu_engine_run(other));
    memcpy(first, y, sizeof y);
    memcpy(convolved, made, sizeof made);
    ipu_engine_free(other);
    memset(y, 0xff, sizeof y);
    memset(made, 0xff, sizeof made);
    MUST(ipu_engine_run(engine));
    ck_assert_mem_eq(y, first, sizeof y);
    ck_assert_mem_eq(made, convolved, sizeof made);
}

/* With a set of instructions that has strips, both weights are kept, rounded up
 * to whole panels. */
TEST(constants_are_packed_once)
{
    ipu_engine *engine;
    int64_t packed;

    build(true);
    engine = new_engine();
    ck_assert_int_eq(ipu_engine_packed_bytes(engine), 0);
    for (int run = 0; run < 3; run++) {
        x[run] += 1; /* other numbers, the same weights */
        image[run] += 1;
        check_run(engine);
        packed = ipu_engine_packed_bytes(engine);
        if (ipu__kernels() == IPU__KERNELS_GENERIC)
            ck_assert_int_eq(packed, 0);
        else
            ck_assert_int_eq(packed, 4 * (DEPTH * 48 + KERNEL));
    }
    ipu_engine_free(engine);
    ck_assert_int_eq(ipu_engine_packed_bytes(NULL), 0);
}

/* What a run reads is what was written before it. */
TEST(variables_are_not_kept)
{
    static float first[Y];
    ipu_engine *engine;

    build(false);
    engine = new_engine();
    MUST(ipu_engine_write(engine, "w", weights, sizeof weights));
    MUST(ipu_engine_write(engine, "k", kernel, sizeof kernel));
    MUST(ipu_engine_run(engine));
    ck_assert_int_eq(ipu_engine_packed_bytes(engine), 0);
    memcpy(first, y, sizeof y);
    for (int i = 0; i < DEPTH * COLUMNS; i++)
        weights[i] *= 2;
    MUST(ipu_engine_write(engine, "w", weights, sizeof weights));
    MUST(ipu_engine_run(engine));
    for (int i = 0; i < Y; i++)
        ck_assert_float_eq(y[i], 2 * first[i]);
    ipu_engine_free(engine);
}

TEST_MAIN("device_packed", .set_up = set_up, .tear_down = tear_down)
