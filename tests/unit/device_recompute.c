/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests activations that are computed again in the backward pass: gradients
 * have the same bits, memory is less, and cycles are more.
 */
#include "suite.h"

#include <math.h>
#include <stdbool.h>

#include "device.h"

enum { ROWS = 96, WIDTH = 24, LAYERS = 9, CLASSES = 5 };

/* Ways to keep activations. */
enum { PLAIN, CHECKPOINTS, CHOSEN, WAYS };

struct network {
    struct device d;
    ipu_tensor variables[2 * LAYERS];
    ipu_tensor gradients[2 * LAYERS];
    ipu_tensor loss;
    int count;
};

static struct network networks[WAYS];

static ipu_tensor layer(struct network *n, ipu_tensor x)
{
    ipu_graph *graph = n->d.graph;
    char name[16];
    ipu_tensor w, b;

    snprintf(name, sizeof name, "w%d", n->count);
    w = ipu_variable(graph, name, IPU_FLOAT32, 2, SHAPE(WIDTH, WIDTH));
    n->variables[n->count++] = w;
    snprintf(name, sizeof name, "b%d", n->count);
    b = ipu_variable(graph, name, IPU_FLOAT32, 1, SHAPE(WIDTH));
    n->variables[n->count++] = b;
    return ipu_bias_add(graph, ipu_matmul(graph, x, w), b);
}

/* Adds a layer's op after its product; the next layer but one sees some layers'
 * inputs, too. */
static ipu_tensor activation(struct network *n, int i, ipu_tensor x,
                             ipu_tensor step)
{
    ipu_graph *graph = n->d.graph;

    switch (i % 3) {
    case 0: return ipu_tanh(graph, x);
    case 1: return ipu_dropout(graph, ipu_gelu(graph, x), 0.3, 17, step);
    default:
        x = ipu_reshape(graph, x, 3, SHAPE(ROWS, WIDTH / 2, 2));
        x = ipu_relu(graph, ipu_multiply(graph, x, x));
        return ipu_reshape(graph, x, 2, SHAPE(ROWS, WIDTH));
    }
}

static ipu_tensor forward(struct network *n, int way, bool skips)
{
    ipu_graph *graph = n->d.graph;
    ipu_tensor step = ipu_counter(graph, "step"), before;
    ipu_tensor x = ipu_input(graph, "x", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
    ipu_tensor y = ipu_input(graph, "y", IPU_INT32, 1, SHAPE(ROWS));

    before = x;
    for (int i = 0; i < LAYERS; i++) {
        ipu_tensor in = x;

        x = activation(n, i, layer(n, x), step);
        if (skips)
            x = ipu_add(graph, x, before);
        before = in;
        if (way == CHECKPOINTS && i % 3 == 2)
            x = ipu_recomputation_checkpoint(graph, x);
    }
    x = ipu_softmax_cross_entropy(graph, x, y);
    return ipu_reduce_sum(graph, x, 1.0 / ROWS);
}

static struct network build(int way, bool skips)
{
    struct network n = {.d = device_new()};

    if (way != PLAIN)
        MUST(ipu_allow_recompute(n.d.graph, 1));
    n.loss = forward(&n, way, skips);
    MUST(ipu_gradients(n.d.graph, n.loss, n.count, n.variables, n.gradients));
    return n;
}

static void output_all(struct network *n)
{
    char name[16];

    MUST(ipu_output(n->d.graph, "loss", n->loss));
    for (int i = 0; i < n->count; i++) {
        snprintf(name, sizeof name, "g%d", i);
        MUST(ipu_output(n->d.graph, name, n->gradients[i]));
    }
}

static void set_up(void)
{
    memset(networks, 0, sizeof networks);
}

static void tear_down(void)
{
    for (int way = 0; way < WAYS; way++)
        device_free(&networks[way].d);
}

static void fill_inputs(struct network *n, float *x, int32_t *y)
{
    float w[WIDTH * WIDTH];

    device_fill(x, (int64_t)ROWS * WIDTH, 1);
    for (int i = 0; i < ROWS; i++)
        y[i] = i % WIDTH;
    for (int i = 0; i < n->count; i++) {
        int64_t count = device_count(&n->d, n->variables[i]);
        const char *name;

        device_fill(w, count, (uint64_t)i + 5);
        for (int64_t k = 0; k < count; k++)
            w[k] *= 0.3f;
        MUST(ipu_tensor_info(n->d.graph, n->variables[i], NULL, NULL, &name));
        MUST(ipu_engine_write(n->d.engine, name, w, (size_t)count * 4));
    }
    device_connect(&n->d, "x", x, (int64_t)ROWS * WIDTH);
    device_connect(&n->d, "y", y, ROWS);
}

/* Returns the bytes at the peak, without variables. */
static int64_t transient(const struct network *n)
{
    return device_memory(&n->d).peak_bytes -
           device_memory(&n->d).always_live_bytes;
}

static float results[WAYS][2 * LAYERS + 1][WIDTH * WIDTH];

static void run(struct network *n, int way)
{
    static float x[ROWS * WIDTH];
    static int32_t y[ROWS];

    fill_inputs(n, x, y);
    for (int i = 0; i <= n->count; i++) {
        char name[16] = "loss";

        if (i < n->count)
            snprintf(name, sizeof name, "g%d", i);
        device_connect(&n->d, name, results[way][i],
                       i < n->count ? device_count(&n->d, n->gradients[i]) : 1);
    }
    for (int i = 0; i < 3; i++)
        MUST(ipu_engine_run(n->d.engine));
}

/* _i is without connections over layers, and with them. */
LOOP_TEST(gradients_are_the_same_bits, 0, 2)
{
    memset(results, 0, sizeof results);
    for (int way = 0; way < WAYS; way++) {
        networks[way] = build(way, _i);
        output_all(&networks[way]);
        device_load(&networks[way].d);
        run(&networks[way], way);
    }
    ck_assert(results[PLAIN][0][0] != 0 && isfinite(results[PLAIN][0][0]));
    ck_assert_mem_eq(results[PLAIN], results[CHECKPOINTS], sizeof results[0]);
    ck_assert_mem_eq(results[PLAIN], results[CHOSEN], sizeof results[0]);
}

static void note_steps(const struct network *n, int32_t *loss, int32_t *first,
                       int32_t *again, int64_t *cycles)
{
    *loss = *first = -1;
    *again = 0;
    *cycles = 0;
    for (int32_t i = 0; i < device_memory(&n->d).steps; i++) {
        ipu_step_info step = {.size = sizeof step};

        MUST(ipu_executable_step(n->d.executable, i, &step));
        if (strcmp(step.op, "softmax_cross_entropy") == 0)
            *loss = i;
        if (!step.again)
            continue;
        *first = *first < 0 ? i : *first;
        *again += 1;
        *cycles += step.total_cycles;
    }
}

/* Recomputed steps are counted, and run when the backward pass has begun. */
LOOP_TEST(memory_falls_and_cycles_rise, 0, 2)
{
    int64_t cycles, plain;

    for (int way = 0; way < WAYS; way++) {
        networks[way] = build(way, _i);
        output_all(&networks[way]);
        device_load(&networks[way].d);
    }
    plain = device_cycles(&networks[PLAIN].d).total;
    ck_assert_int_eq(device_cycles(&networks[PLAIN].d).again, 0);
    for (int way = CHECKPOINTS; way < WAYS; way++) {
        int32_t loss, first, again;
        int64_t total = device_cycles(&networks[way].d).total;

        note_steps(&networks[way], &loss, &first, &again, &cycles);
        ck_assert_int_ge(again, 3); /* several ops in one step */
        ck_assert_int_gt(first, loss + 1);
        ck_assert_int_eq(device_cycles(&networks[way].d).again, cycles);
        ck_assert_double_eq_tol((double)(plain + cycles) / (double)total, 1,
                                0.01);
        /* Connections over layers carry some of it across checkpoints. */
        ck_assert_int_lt(transient(&networks[way]) * 10,
                         transient(&networks[PLAIN]) * (_i ? 9 : 6));
    }
}

/* In a chain of n equal layers every kth is a checkpoint: at the peak memory
 * holds one tensor for each checkpoint, and one part. */
TEST(peaks_are_those_of_checkpoints_and_a_part)
{
    enum { LONG = 24 };
    int64_t peaks[2], bytes = (int64_t)ROWS * WIDTH * 4;

    for (int way = 0; way < 2; way++) {
        struct device *d = &networks[way].d;
        ipu_tensor x, v;

        *d = device_new();
        v = ipu_variable(d->graph, "v", IPU_FLOAT32, 2, SHAPE(ROWS, WIDTH));
        MUST(ipu_allow_recompute(d->graph, way));
        x = ipu_scale(d->graph, v, 2, 0);
        for (int i = 0; i < LONG; i++) {
            x = ipu_tanh(d->graph, x);
            if (i % 4 == 3)
                ipu_recomputation_checkpoint(d->graph, x);
        }
        x = ipu_reduce_sum(d->graph, x, 1);
        MUST(ipu_gradients(d->graph, x, 1, &v, &x));
        MUST(ipu_output(d->graph, "g", x));
        device_load(d);
        peaks[way] = device_memory(&networks[way].d).peak_bytes - bytes;
    }
    ck_assert_int_ge(peaks[0], LONG * bytes);
    /* 6 checkpoints, 3 of a part, the derivative, and one to compute it. */
    ck_assert_int_le(peaks[1], (6 + 3 + 2) * bytes + 100);
}

static int order[2 * LAYERS], ncalls;

static int note(void *context, const char *name, void *data, int64_t count)
{
    (void)name, (void)data, (void)count;
    order[ncalls++] = (int)(intptr_t)context;
    return 0;
}

/* Gradients leave as early as they do without it: the last layer's first. */
TEST(host_calls_come_in_their_order)
{
    static float x[ROWS * WIDTH];
    static int32_t y[ROWS];
    int plain[2 * LAYERS] = {0};

    for (int way = 0; way < WAYS; way++) {
        struct network *n = &networks[way];
        char name[16];

        *n = build(way, true);
        for (int i = 0; i < n->count; i++) {
            snprintf(name, sizeof name, "g%d", i);
            MUST(ipu_host_call(n->d.graph, name, n->gradients[i], note,
                               (void *)(intptr_t)i)); // NOLINT
        }
        device_load(&n->d);
        fill_inputs(n, x, y);
        ncalls = 0;
        MUST(ipu_engine_run(n->d.engine));
        ck_assert_int_eq(ncalls, 2 * LAYERS);
        if (way == PLAIN)
            memcpy(plain, order, sizeof plain);
        ck_assert_mem_eq(plain, order, sizeof plain);
    }
}

/* Two losses in one graph, each with a backward pass of its own. */
TEST(several_losses_may_be_differentiated)
{
    ipu_tensor slopes[2 * LAYERS];

    for (int way = 0; way < WAYS; way++) {
        struct network *n = &networks[way];
        ipu_tensor other;

        *n = build(way, true);
        other = ipu_square(n->d.graph, n->loss);
        MUST(ipu_gradients(n->d.graph, other, n->count, n->variables, slopes));
        for (int i = 0; i < n->count; i++)
            n->gradients[i] = ipu_add(n->d.graph, n->gradients[i], slopes[i]);
        output_all(n);
        device_load(&n->d);
        run(n, way);
    }
    ck_assert_mem_eq(results[PLAIN], results[CHECKPOINTS], sizeof results[0]);
    ck_assert_mem_eq(results[PLAIN], results[CHOSEN], sizeof results[0]);
}

/* The test makes 100 steps of SGD, momentum or Adam; _i is the optimiser. */
LOOP_TEST(training_gives_the_same_weights, 0, 3)
{
    static float x[ROWS * WIDTH];
    static int32_t y[ROWS];
    static float weights[WAYS][WIDTH * WIDTH];
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};

    for (int way = 0; way < WAYS; way++) {
        struct network *n = &networks[way];
        ipu_optimizer o = {.size = sizeof o,
                           .kind =
                               _i == 2 ? IPU_OPTIMIZER_ADAM : IPU_OPTIMIZER_SGD,
                           .sgd = _i == 1 ? &momentum : NULL};

        *n = build(way, true);
        o.rate = ipu_fill(n->d.graph, IPU_FLOAT32, 0, NULL, 1e-4);
        MUST(
            ipu_optimize(n->d.graph, &o, n->count, n->variables, n->gradients));
        device_load(&n->d);
        fill_inputs(n, x, y);
        for (int i = 0; i < 100; i++)
            MUST(ipu_engine_run(n->d.engine));
        MUST(ipu_engine_read(n->d.engine, "w0", weights[way],
                             sizeof weights[way]));
        ck_assert(isfinite(weights[way][0]));
    }
    ck_assert_mem_eq(weights[PLAIN], weights[CHECKPOINTS], sizeof weights[0]);
    ck_assert_mem_eq(weights[PLAIN], weights[CHOSEN], sizeof weights[0]);
}

/* Images: convolutions, poolings, normalisations, an embedding of labels. */
static ipu_tensor images(struct device *d, ipu_tensor *v, int way)
{
    ipu_graph *g = d->graph;
    const ipu_conv_options same = {
        .size = sizeof same, .stride = {1, 1}, .same = 1};
    ipu_tensor x = device_floats(d, "x", 4, SHAPE(2, 9, 8, 3));
    ipu_tensor y = ipu_input(g, "y", IPU_INT32, 1, SHAPE(2));
    ipu_tensor mean = ipu_variable(g, "mean", IPU_FLOAT32, 1, SHAPE(6));
    ipu_tensor variance = ipu_variable(g, "variance", IPU_FLOAT32, 1, SHAPE(6));

    v[0] = ipu_variable(g, "k1", IPU_FLOAT32, 4, SHAPE(3, 3, 3, 6));
    v[1] = ipu_variable(g, "scale", IPU_FLOAT32, 1, SHAPE(6));
    v[2] = ipu_variable(g, "offset", IPU_FLOAT32, 1, SHAPE(6));
    v[3] = ipu_variable(g, "k2", IPU_FLOAT32, 4, SHAPE(3, 3, 6, 6));
    v[4] = ipu_variable(g, "table", IPU_FLOAT32, 2, SHAPE(4, 6));
    x = ipu_conv2d(g, x, v[0], &same);
    x = ipu_batch_norm(g, x, v[1], v[2], mean, variance, 0.9, 1e-5);
    x = ipu_max_pool2d(g, ipu_relu(g, x), 2);
    if (way == CHECKPOINTS)
        ipu_recomputation_checkpoint(g, x);
    x = ipu_avg_pool2d(g, ipu_silu(g, ipu_conv2d(g, x, v[3], &same)), 2);
    x = ipu_mean(g, x, 2, (const int32_t[]){1, 2}, 0);
    x = ipu_multiply(g, x, ipu_embedding(g, v[4], y));
    if (way == CHECKPOINTS)
        ipu_recomputation_checkpoint(g, x);
    return ipu_reduce_sum(g, ipu_square(g, x), 1);
}

TEST(images_are_computed_again)
{
    static const int64_t counts[] = {162, 6, 6, 324, 24};
    static float outputs[WAYS][5][324];
    float x[2 * 9 * 8 * 3], value[324];
    int32_t y[] = {3, 1};

    device_fill(x, 2 * 9 * 8 * 3, 3);
    for (int way = 0; way < WAYS; way++) {
        struct device *d = &networks[way].d;
        ipu_tensor v[5], slopes[5], loss;
        const char *names[] = {"k1", "scale", "offset", "k2", "table"};

        *d = device_new();
        MUST(ipu_allow_recompute(d->graph, way != PLAIN));
        loss = images(d, v, way);
        MUST(ipu_gradients(d->graph, loss, 5, v, slopes));
        for (int i = 0; i < 5; i++)
            MUST(ipu_output(d->graph, (char[]){(char)('a' + i), 0}, slopes[i]));
        device_load(d);
        for (int i = 0; i < 5; i++) {
            device_fill(value, counts[i], (uint64_t)i);
            MUST(ipu_engine_write(d->engine, names[i], value,
                                  (size_t)counts[i] * 4));
            device_connect(d, (char[]){(char)('a' + i), 0}, outputs[way][i],
                           counts[i]);
        }
        device_connect(d, "x", x, 2 * 9 * 8 * 3);
        device_connect(d, "y", y, 2);
        MUST(ipu_engine_run(d->engine));
    }
    ck_assert(outputs[PLAIN][0][0] != 0);
    ck_assert_mem_eq(outputs[PLAIN], outputs[CHECKPOINTS], sizeof outputs[0]);
    ck_assert_mem_eq(outputs[PLAIN], outputs[CHOSEN], sizeof outputs[0]);
}

/* ---------------------------------------------------------- nodes made once */

static int received; /* by the host's function */

static int receive(void *context, const char *name, void *data, int64_t count)
{
    float *values = data;

    (void)context, (void)name;
    received++;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(i % 5 + received);
    return 0;
}

static int halved(ipu_graph *graph, void *context, int32_t ninputs,
                  const ipu_tensor *inputs, int32_t noutputs,
                  ipu_tensor *outputs)
{
    (void)context, (void)noutputs;
    for (int32_t i = 0; i < ninputs; i++)
        outputs[i] = ipu_scale(graph, inputs[i], 0.5 / (i + 1), i);
    return 0;
}

/* A loop's outputs and the host's data come before a checkpoint: they are
 * kept. */
TEST(loops_and_the_host_are_not_asked_again)
{
    static float slopes[WAYS][3][WIDTH * WIDTH];
    float x[ROWS * WIDTH], value[WIDTH * WIDTH];

    device_fill(x, (int64_t)ROWS * WIDTH, 7);
    for (int way = 0; way < WAYS; way++) {
        struct device *d = &networks[way].d;
        ipu_tensor w[3], g[3], h[2];

        *d = device_new();
        MUST(ipu_allow_recompute(d->graph, way != PLAIN));
        h[0] = h[1] = device_floats(d, "x", 2, SHAPE(ROWS, WIDTH));
        MUST(ipu_repeat(d->graph, 3, halved, NULL, 2, h, NULL, h));
        h[0] =
            ipu_add(d->graph, ipu_multiply(d->graph, h[0], h[1]),
                    ipu_host_receive(d->graph, "given", h[1], receive, NULL));
        for (int i = 0; i < 3; i++) {
            char name[] = {'w', (char)('0' + i), 0};

            w[i] = ipu_variable(d->graph, name, IPU_FLOAT32, 2,
                                SHAPE(WIDTH, WIDTH));
            h[0] = ipu_tanh(d->graph, ipu_matmul(d->graph, h[0], w[i]));
            if (way == CHECKPOINTS && i == 1)
                h[0] = ipu_recomputation_checkpoint(d->graph, h[0]);
        }
        MUST(ipu_gradients(d->graph, ipu_reduce_sum(d->graph, h[0], 1), 3, w,
                           g));
        for (int i = 0; i < 3; i++)
            MUST(ipu_output(d->graph, (char[]){(char)('a' + i), 0}, g[i]));
        device_load(d);
        device_connect(d, "x", x, ROWS * WIDTH);
        received = 0;
        for (int i = 0; i < 3; i++) {
            device_fill(value, WIDTH * WIDTH, (uint64_t)i + 1);
            for (int k = 0; k < WIDTH * WIDTH; k++)
                value[k] *= 0.05f;
            MUST(ipu_engine_write(d->engine, (char[]){'w', (char)('0' + i), 0},
                                  value, sizeof value));
            device_connect(d, (char[]){(char)('a' + i), 0}, slopes[way][i],
                           WIDTH * WIDTH);
        }
        MUST(ipu_engine_run(d->engine));
        ck_assert_int_eq(received, 1);
    }
    ck_assert(slopes[PLAIN][0][0] != 0);
    ck_assert_mem_eq(slopes[PLAIN], slopes[CHECKPOINTS], sizeof slopes[0]);
    ck_assert_mem_eq(slopes[PLAIN], slopes[CHOSEN], sizeof slopes[0]);
}

/* The graph has nothing to forget: it is one node, or a checkpoint that nothing
 * comes before. */
LOOP_TEST(small_graphs_stay_as_they_are, 0, 3)
{
    struct network *n = &networks[0];
    int32_t loss, first, again;
    ipu_tensor v, x;
    int64_t cycles;

    n->d = device_new();
    MUST(ipu_allow_recompute(n->d.graph, 1));
    v = ipu_variable(n->d.graph, "v", IPU_FLOAT32, 1, SHAPE(3));
    x = ipu_reduce_sum(n->d.graph, v, 1);
    if (_i)
        ipu_recomputation_checkpoint(n->d.graph, _i == 1 ? x : v);
    MUST(ipu_gradients(n->d.graph, x, 1, &v, &x));
    MUST(ipu_output(n->d.graph, "g", x));
    device_load(&n->d);
    note_steps(n, &loss, &first, &again, &cycles);
    ck_assert_int_eq(again, 0);
}

TEST(checkpoints_refuse)
{
    struct device *d = &networks[0].d, *other = &networks[1].d;
    ipu_tensor x;

    *d = device_new();
    *other = device_new();
    x = device_floats(d, "x", 1, SHAPE(3));
    ck_assert_int_eq(ipu_allow_recompute(NULL, 1), IPU_ERR_ARGUMENT);
    ck_assert_int_lt(ipu_recomputation_checkpoint(NULL, x).id, 0);
    ck_assert_int_eq(ipu_recomputation_checkpoint(d->graph, x).id, x.id);
    ck_assert_int_lt(ipu_recomputation_checkpoint(other->graph, x).id, 0);
    MUST_FAIL(ipu_compile(other->graph, NULL, &other->executable),
              IPU_ERR_ARGUMENT, "checkpoint: tensor");
    ck_assert_int_lt(ipu_recomputation_checkpoint(other->graph, x).id, 0);
    ck_assert_int_eq(ipu_allow_recompute(other->graph, 1), IPU_ERR_ARGUMENT);
}

TEST_MAIN("device_recompute", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
