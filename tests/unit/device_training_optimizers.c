/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests optimisers that accumulate: n batches of b train like one of n b, for
 * each optimiser, with gradients added up in each dtype.
 */
#include "suite.h"

#include <math.h>

#include "accumulated.h"

enum { ROWS = 3, FEATURES = 6, CLASSES = 5, UPDATES = 100 };

enum { SGD, MOMENTUM, RMSPROP, LARS, ADAM, ADAMW, LAMB, OPTIMISERS };

static const ipu_sgd_options momentum = {.size = sizeof momentum,
                                         .momentum = 0.9};

static ipu_optimizer optimizer_of(ipu_graph *graph, int kind)
{
    static const ipu_optimizer_kind kinds[] = {
        IPU_OPTIMIZER_SGD,  IPU_OPTIMIZER_SGD,  IPU_OPTIMIZER_RMSPROP,
        IPU_OPTIMIZER_LARS, IPU_OPTIMIZER_ADAM, IPU_OPTIMIZER_ADAMW,
        IPU_OPTIMIZER_LAMB};

    static const ipu_rms_options rms = {
        .size = sizeof rms, .rho = 0.9, .epsilon = 1e-3};

    return (ipu_optimizer){
        .size = sizeof(ipu_optimizer),
        .kind = kinds[kind],
        .rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.05),
        .sgd = kind == MOMENTUM ? &momentum : NULL,
        .rms = &rms,
    };
}

/* Builds a layer of tanh and one of logits, on batches of `rows` rows, with an
 * update every `mini` batches; 0: a plain optimiser. */
static struct device classifier(int rows, int mini, int kind)
{
    struct device c = device_new();
    ipu_graph *graph = c.graph;
    ipu_tensor x = ipu_input(graph, "x", IPU_FLOAT32, 2, SHAPE(rows, FEATURES));
    ipu_tensor y = ipu_input(graph, "y", IPU_INT32, 1, SHAPE(rows));
    ipu_tensor v[] = {
        ipu_variable(graph, "w1", IPU_FLOAT32, 2, SHAPE(FEATURES, 7)),
        ipu_variable(graph, "b1", IPU_FLOAT32, 1, SHAPE(7)),
        ipu_variable(graph, "w2", IPU_FLOAT32, 2, SHAPE(7, CLASSES)),
    };
    ipu_tensor slopes[3], h, loss;
    const ipu_optimizer o = optimizer_of(graph, kind);
    const ipu_update_options u = {
        .size = sizeof u,
        .accumulation = {.size = sizeof u.accumulation,
                         .reduction = IPU_REDUCTION_MEAN}};

    h = ipu_tanh(graph, ipu_bias_add(graph, ipu_matmul(graph, x, v[0]), v[1]));
    loss = ipu_softmax_cross_entropy(graph, ipu_matmul(graph, h, v[2]), y);
    loss = ipu_reduce_sum(graph, loss, 1.0 / rows);
    MUST(ipu_gradients(graph, loss, 3, v, slopes));
    MUST(mini ? ipu_accumulating_optimizer(graph, &o, 3, v, slopes, mini, &u)
              : ipu_optimize(graph, &o, 3, v, slopes));
    device_load(&c);
    return c;
}

static void write_random(struct device *c, const char *name, int count,
                         uint64_t seed)
{
    float values[64];

    device_fill(values, count, seed);
    MUST(ipu_engine_write(c->engine, name, values, (size_t)count * 4));
}

static void train(struct device *c, int rows, int runs, float *x, int32_t *y)
{
    write_random(c, "w1", FEATURES * 7, 1);
    write_random(c, "w2", 7 * CLASSES, 2);
    for (int i = 0; i < runs; i++) {
        device_connect(c, "x", x + (ptrdiff_t)i * rows * FEATURES,
                       rows * FEATURES);
        device_connect(c, "y", y + (ptrdiff_t)i * rows, rows);
        MUST(ipu_engine_run(c->engine));
    }
}

static void compare(struct device *a, struct device *b, const char *name,
                    int count, double tolerance)
{
    float first[64], second[64];

    MUST(ipu_engine_read(a->engine, name, first, (size_t)count * 4));
    MUST(ipu_engine_read(b->engine, name, second, (size_t)count * 4));
    for (int i = 0; i < count; i++)
        if (!(fabs((double)first[i] - (double)second[i]) <= tolerance))
            ck_abort_msg("%s[%d]: %.9g and %.9g", name, i, (double)first[i],
                         (double)second[i]);
}

/* The weights are equal up to rounding: sums are added in another order. */
LOOP_TEST(n_small_batches_train_like_a_large_one, 0, OPTIMISERS)
{
    enum { ALL = N * ROWS * UPDATES };
    static float x[ALL * FEATURES];
    static int32_t y[ALL];
    struct device small = classifier(ROWS, N, _i);
    struct device large = classifier(ROWS * N, 0, _i);

    device_fill(x, ALL * FEATURES, 7);
    for (int i = 0; i < ALL; i++)
        y[i] = (int32_t)(fabsf(x[i * FEATURES]) * CLASSES) % CLASSES;
    train(&small, ROWS, N * UPDATES, x, y);
    train(&large, ROWS * N, UPDATES, x, y);
    compare(&small, &large, "w1", FEATURES * 7, 2e-4);
    compare(&small, &large, "b1", 7, 2e-4);
    compare(&small, &large, "w2", 7 * CLASSES, 2e-4);
    if (_i >= ADAM) {
        int32_t steps;

        MUST(ipu_engine_read(small.engine, "optimizer/step", &steps, 4));
        ck_assert_int_eq(steps, UPDATES);
    }
    device_free(&small);
    device_free(&large);
}

/* Bits are equal with one mini-batch, and with gradients whose sums are
 * exact. */
LOOP_TEST(exact_sums_give_the_same_bits, 0, OPTIMISERS)
{
    struct device plain = device_new();
    ipu_tensor v = ipu_variable(plain.graph, "w", IPU_FLOAT32, 1, SHAPE(COUNT));
    ipu_tensor h = device_floats(&plain, "g", 1, SHAPE(COUNT));
    const ipu_optimizer o = optimizer_of(d.graph, _i);
    const ipu_optimizer p = optimizer_of(plain.graph, _i);
    float values[COUNT], others[COUNT], slopes[COUNT], sums[COUNT];

    MUST(ipu_accumulating_optimizer(d.graph, &o, 1, &w, &g, N, NULL));
    MUST(ipu_optimize(plain.graph, &p, 1, &v, &h));
    device_load(&d);
    device_load(&plain);
    device_connect(&d, "g", slopes, COUNT);
    device_connect(&plain, "g", sums, COUNT);
    device_fill(values, COUNT, 3);
    MUST(ipu_engine_write(d.engine, "w", values, sizeof values));
    MUST(ipu_engine_write(plain.engine, "w", values, sizeof values));
    for (int i = 0; i < N * UPDATES; i++) {
        for (int k = 0; k < COUNT; k++) {
            slopes[k] = (float)((i * 7 + k * 3) % 16 - 8) / 64;
            sums[k] = (i % N ? sums[k] : 0) + slopes[k];
        }
        MUST(ipu_engine_run(d.engine));
        if (i % N == N - 1)
            MUST(ipu_engine_run(plain.engine));
    }
    MUST(ipu_engine_read(d.engine, "w", values, sizeof values));
    MUST(ipu_engine_read(plain.engine, "w", others, sizeof others));
    ck_assert_mem_eq(values, others, sizeof values);
    device_free(&plain);
}

TEST(the_first_version_takes_sgd_only)
{
    ipu_optimizer o = optimizer_of(d.graph, SGD);

    MUST(ipu_accumulating_optimizer_v1(d.graph, &o, 1, &w, &g, 1, NULL));
    ck_assert_int_eq(ipu_update_count(d.graph), 1);
    o = optimizer_of(d.graph, ADAM);
    MUST_FAIL(ipu_accumulating_optimizer_v1(d.graph, &o, 1, &w, &g, 2, NULL),
              IPU_ERR_ARGUMENT,
              "accumulation of the first version takes SGD and momentum only");
}

LOOP_TEST(the_first_version_accumulates, 0, 2)
{
    const ipu_optimizer o = optimizer_of(d.graph, _i);

    MUST(ipu_accumulating_optimizer_v1(d.graph, &o, 1, &w, &g, 2, NULL));
    device_load(&d);
    run_with(1);
    ck_assert_float_eq(read_first("w"), 0);
    run_with(2);
    ck_assert_double_eq_tol((double)read_first("w"), -0.15, 1e-6);
}

LOOP_TEST(optimizers_refuse, 0, 6)
{
    ipu_optimizer o = optimizer_of(d.graph, SGD);
    const ipu_update_options small = {.size = 4};

    switch (_i) {
    case 0: o.kind = 9; break;
    case 1: o.size = 0; break;
    default: break;
    }
    ck_assert_int_lt(_i == 2   ? ipu_optimize(d.graph, NULL, 1, &w, &g)
                     : _i == 3 ? ipu_optimize(d.graph, &o, -1, &w, &g)
                     : _i == 4 ? ipu_accumulating_optimizer(d.graph, &o, 1,
                                                            NULL, &g, 2, NULL)
                     : _i == 5 ? ipu_accumulating_optimizer(d.graph, &o, 1, &w,
                                                            &g, 2, &small)
                               : ipu_optimize(d.graph, &o, 1, &w, &g),
                     0);
    ck_assert_int_lt(ipu_compile(d.graph, NULL, &d.executable), 0);
    ck_assert_int_eq(ipu_optimize(NULL, &o, 1, &w, &g), IPU_ERR_ARGUMENT);
    ck_assert_int_eq(ipu_update_begin(NULL, 2), IPU_ERR_ARGUMENT);
    ck_assert_int_lt(ipu_accumulate(NULL, w, g, 2, NULL).id, 0);
}

/* ------------------------------------------------------------------- dtypes */

enum { MANY = 4096 };

static ipu_dtype wide_for_w(void *context, const char *variable,
                            ipu_dtype dtype)
{
    *(int *)context += strcmp(variable, "h") == 0 && dtype == IPU_FLOAT16;
    return IPU_FLOAT32;
}

/* The test adds 4096 gradients of 1 / 4096: sums in float16 stop growing. _i is
 * float16, float32, and the host function's choice. */
static ipu_dtype wide_for_large(void *context, const char *variable,
                                ipu_dtype dtype)
{
    (void)context, (void)dtype;
    return strcmp(variable, "large") == 0 ? IPU_FLOAT32 : IPU_FLOAT16;
}

/* The memory report has the bytes of accumulators, by their dtype: that of the
 * variable, one that is named, one for each. */
LOOP_TEST(accumulators_take_what_their_dtype_does, 0, 3)
{
    enum { LARGE = 4096, SMALL = 1024 };
    static const int64_t bytes[] = {4 * (LARGE + SMALL), 2 * (LARGE + SMALL),
                                    4 * LARGE + 2 * SMALL};
    const ipu_dtype half = IPU_FLOAT16;
    const ipu_update_options u = {
        .size = sizeof u,
        .offload = IPU_OFFLOAD_OFF,
        .accumulation = {.size = sizeof u.accumulation,
                         .dtype = _i == 1 ? &half : NULL,
                         .choose = _i == 2 ? wide_for_large : NULL,
                         .cast = 1}};
    int64_t always[2];

    for (int k = 0; k < 2; k++) {
        struct device c = device_new();
        const ipu_optimizer sgd = {
            .size = sizeof sgd,
            .rate = ipu_fill(c.graph, IPU_FLOAT32, 0, NULL, 0.1)};
        ipu_memory_info memory = {.size = sizeof memory};
        ipu_tensor v[2], slopes[2], loss;

        v[0] = ipu_variable(c.graph, "large", IPU_FLOAT32, 1, SHAPE(LARGE));
        v[1] = ipu_variable(c.graph, "small", IPU_FLOAT32, 1, SHAPE(SMALL));
        loss = ipu_add(c.graph,
                       ipu_reduce_sum(c.graph, ipu_square(c.graph, v[0]), 1),
                       ipu_reduce_sum(c.graph, ipu_square(c.graph, v[1]), 1));
        MUST(ipu_gradients(c.graph, loss, 2, v, slopes));
        MUST(ipu_accumulating_optimizer(c.graph, &sgd, 2, v, slopes, k ? 4 : 1,
                                        &u));
        MUST(ipu_compile(c.graph, NULL, &c.executable));
        MUST(ipu_executable_memory(c.executable, &memory));
        always[k] = memory.always_live_bytes;
        device_free(&c);
    }
    /* Four mini-batches need an accumulator for each variable, and a count, and
     * some constants. */
    ck_assert_int_ge(always[1] - always[0], bytes[_i] + 4);
    ck_assert_int_le(always[1] - always[0], bytes[_i] + 32);
}

LOOP_TEST(a_wide_accumulator_keeps_small_gradients, 0, 3)
{
    const ipu_dtype wide = IPU_FLOAT32;
    int asked = 0;
    const ipu_accumulation_options o = {.size = sizeof o,
                                        .dtype = _i == 1 ? &wide : NULL,
                                        .choose = _i == 2 ? wide_for_w : NULL,
                                        .context = &asked,
                                        .cast = 1};
    ipu_tensor h = ipu_variable(d.graph, "h", IPU_FLOAT16, 1, SHAPE(COUNT));
    ipu_tensor slope =
        ipu_fill(d.graph, IPU_FLOAT16, 1, SHAPE(COUNT), 1.0 / MANY);
    ipu_tensor seen =
        ipu_variable(d.graph, "seen", IPU_FLOAT32, 1, SHAPE(COUNT));

    slope = ipu_accumulate(d.graph, h, slope, MANY, &o);
    MUST(ipu_assign(d.graph, h, slope));
    MUST(ipu_assign(d.graph, seen, ipu_cast(d.graph, slope, IPU_FLOAT32)));
    device_load(&d);
    for (int i = 0; i < MANY; i++)
        run_with(0);
    if (_i)
        ck_assert_float_eq(read_first("seen"), 1);
    else
        ck_assert_float_lt(read_first("seen"), 0.6f);
    ck_assert_int_eq(asked, _i == 2);
}

/* The program asks for accumulating in the optimiser's region, but each run
 * does it, with the ops that it needs: gradients of another dtype are cast. */
TEST(all_mini_batches_reach_a_wide_accumulator)
{
    const ipu_dtype wide = IPU_FLOAT32;
    const ipu_optimizer sgd = {.size = sizeof sgd, .rate = rate};
    const ipu_update_options u = {
        .size = sizeof u,
        .accumulation = {
            .size = sizeof u.accumulation, .dtype = &wide, .cast = 1}};
    ipu_tensor h = ipu_variable(d.graph, "h", IPU_FLOAT16, 1, SHAPE(COUNT));
    ipu_tensor slope = ipu_cast(d.graph, g, IPU_FLOAT16);

    MUST(ipu_accumulating_optimizer(d.graph, &sgd, 1, &h, &slope, 3, &u));
    MUST(ipu_assign(d.graph, w, ipu_cast(d.graph, h, IPU_FLOAT32)));
    device_load(&d);
    for (int i = 0; i < 4; i++)
        run_with((float)(1 << i));
    ck_assert_float_eq(read_first("w"), -0.5f * (1 + 2 + 4));
}

TEST(an_optimiser_takes_its_own_dtype)
{
    const ipu_dtype wide = IPU_FLOAT32;
    const ipu_accumulation_options o = {.size = sizeof o, .dtype = &wide};
    ipu_tensor h = ipu_variable(d.graph, "h", IPU_FLOAT16, 1, SHAPE(COUNT));
    ipu_tensor slope = ipu_cast(d.graph, g, IPU_FLOAT16);

    slope = ipu_accumulate(d.graph, h, slope, 2, &o);
    MUST_FAIL(ipu_sgd(d.graph, h, slope, rate, NULL), IPU_ERR_SHAPE,
              ": the dtypes must be the same: ipu_cast one of them");
}

TEST_MAIN("device_training_optimizers", .set_up = set_up,
          .tear_down = tear_down, .seconds = 120)
