/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derivatives of loops in programs of several chips, and in programs that do
 * not fit, for which the compiler tries remedies on a copy of the graph.
 */
#include "suite.h"

#include <math.h>

#include "device.h"

enum { BATCH = 8, STEPS = 6, WIDTH = 16, COUNT = WIDTH * WIDTH };

/* What the body of a recurrence uses. */
struct layer {
    ipu_tensor w, x;
};

static int recur(ipu_graph *g, void *context, int32_t ninputs,
                 const ipu_tensor *in, int32_t noutputs, ipu_tensor *out)
{
    const struct layer *l = context;
    ipu_tensor h = ipu_matmul(g, in[1], l->w);

    (void)ninputs, (void)noutputs;
    h = ipu_tanh(g, ipu_add(g, h, ipu_gather(g, l->x, in[0], 1)));
    out[0] = ipu_add(g, in[0], device_scalar(g, IPU_INT32, 1));
    out[1] = h;
    out[2] = ipu_dynamic_update(g, in[2], in[0], h, 1);
    return 0;
}

/* x: [batch, steps, width] -> the same */
static ipu_tensor add_layer(ipu_graph *g, ipu_tensor x, const char *name,
                            int64_t batch, int64_t steps, int64_t width,
                            ipu_tensor *w)
{
    struct layer l = {
        ipu_variable(g, name, IPU_FLOAT32, 2, SHAPE(width, width)), x};
    ipu_tensor v[3] = {
        device_scalar(g, IPU_INT32, 0),
        ipu_fill(g, IPU_FLOAT32, 2, SHAPE(batch, width), 0),
        ipu_fill(g, IPU_FLOAT32, 3, SHAPE(batch, steps, width), 0)};

    MUST(ipu_repeat(g, steps, recur, &l, 3, v, NULL, v));
    *w = l.w;
    return v[2];
}

/* Two layers, and gradient descent on the sum of squares. chips: 1 or 2. */
static void build(ipu_graph *g, int64_t batch, int64_t steps, int64_t width,
                  int chips)
{
    ipu_tensor y =
        ipu_input(g, "x", IPU_FLOAT32, 3, SHAPE(batch, steps, width));
    ipu_tensor w[2], slopes[2], rate = device_scalar(g, IPU_FLOAT32, 0.01),
                                loss;

    if (chips > 1)
        MUST(ipu_shard(g, 0));
    y = add_layer(g, y, "w0", batch, steps, width, &w[0]);
    if (chips > 1)
        MUST(ipu_shard(g, 1));
    y = add_layer(g, y, "w1", batch, steps, width, &w[1]);
    loss = ipu_reduce_sum(g, ipu_square(g, y), 1.0 / (double)batch);
    MUST(ipu_shard(g, -1));
    MUST(ipu_gradients(g, loss, 2, w, slopes));
    for (int i = 0; i < 2; i++)
        MUST(ipu_sgd(g, w[i], slopes[i], rate, NULL));
    MUST(ipu_output(g, "loss", loss));
}

static float weights[2][2][COUNT];

/* Makes some steps; returns the last loss. */
static float train(struct device *d, float (*w)[COUNT])
{
    static float x[BATCH * STEPS * WIDTH];
    float loss;

    device_fill(x, BATCH * STEPS * WIDTH, 3);
    device_connect(d, "x", x, BATCH * STEPS * WIDTH);
    device_connect(d, "loss", &loss, 1);
    for (int i = 0; i < 2; i++) {
        device_fill(w[i], COUNT, (uint64_t)i + 1);
        for (int k = 0; k < COUNT; k++)
            w[i][k] /= 4;
        MUST(ipu_engine_write(d->engine, i ? "w1" : "w0", w[i], sizeof *w));
    }
    for (int i = 0; i < 5; i++)
        MUST(ipu_engine_run(d->engine));
    for (int i = 0; i < 2; i++)
        MUST(ipu_engine_read(d->engine, i ? "w1" : "w0", w[i], sizeof *w));
    return loss;
}

TEST(two_chips_give_the_bits_of_one)
{
    float losses[2];

    for (int i = 0; i < 2; i++) {
        struct device d = device_new();
        build(d.graph, BATCH, STEPS, WIDTH, i + 1);
        device_load(&d);
        losses[i] = train(&d, weights[i]);
        device_free(&d);
    }
    ck_assert(isfinite(losses[0]) && losses[0] > 0);
    ck_assert_float_eq(losses[0], losses[1]);
    ck_assert_mem_eq(weights[0], weights[1], sizeof weights[0]);
}

/* Loops take the whole batch of what they read, so no part of it is advised;
 * halves are. */
TEST(what_does_not_fit_is_advised)
{
    struct device d = device_new();
    ipu_target target;

    ipu_target_init(&target, sizeof target);
    target.tiles = 16;
    target.bytes_per_tile = 96 * 1024;
    build(d.graph, 64, 40, 64, 1);
    MUST_FAIL(ipu_compile(d.graph, &target, &d.executable), IPU_ERR_FULL,
              "What would change that");
    ck_assert_ptr_nonnull(
        strstr(ipu_last_error(), "'tanh:3 kept' float32 [40,64,64] 40960"));
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "float16 throughout"));
    ck_assert_ptr_null(strstr(ipu_last_error(), "of the batch, gradients"));
    device_free(&d);
}

TEST_MAIN("device_loop_gradients_programs")
