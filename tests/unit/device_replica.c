/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests replicas. Sums and means equal the same in double, in groups and in
 * gradients, and R replicas with a batch each train as one program with the
 * whole batch does. The number of replicas is 1 to 8, with threads and without.
 * device_replica_loops.c tests replicas that run loops.
 */
#include "suite.h"

#include <math.h>

#include "replicated.h"

/* -------------------------------------------------------------- collectives */

static float x[8][COUNT], y[8][COUNT], z[8][COUNT];

/* _i is the number of replicas. */
LOOP_TEST(sums_and_means_are_over_all, 1, 9)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(COUNT));

    MUST(ipu_output(d.graph, "sum", ipu_cross_replica_sum(d.graph, in, 0)));
    MUST(ipu_output(d.graph, "mean",
                    ipu_relu(d.graph, ipu_cross_replica_mean(d.graph, in, 0))));
    options.threads = _i % 3;
    start(_i);
    connect("x", x, (size_t)_i * COUNT);
    connect("sum", y, (size_t)_i * COUNT);
    connect("mean", z, (size_t)_i * COUNT);
    for (int r = 0; r < _i; r++)
        device_fill(x[r], COUNT, (uint64_t)r + 1);
    MUST(ipu_replicas_run(replicas));
    for (int k = 0; k < COUNT; k++) {
        double sum = 0;

        for (int r = 0; r < _i; r++)
            sum += (double)x[r][k];
        ck_assert_double_le(fabs(sum - (double)y[0][k]), 2e-6);
        ck_assert_double_le(fabs(fmax(sum / _i, 0) - (double)z[0][k]), 2e-6);
        for (int r = 1; r < _i; r++) {
            ck_assert_mem_eq(&y[r][k], &y[0][k], 4);
            ck_assert_mem_eq(&z[r][k], &z[0][k], 4);
        }
    }
    ck_assert_int_eq(stats().collectives, 2);
    ck_assert_int_eq(stats().done, 2);
    ck_assert_int_eq(stats().sent_bytes > 0, _i > 1);
}

TEST(groups_are_of_consecutive_replicas)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(COUNT));

    MUST(ipu_output(d.graph, "sum", ipu_cross_replica_sum(d.graph, in, 2)));
    start(6);
    connect("x", x, 6 * COUNT);
    connect("sum", y, 6 * COUNT);
    for (int r = 0; r < 6; r++)
        device_fill(x[r], COUNT, (uint64_t)r + 1);
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 6; r++)
        for (int k = 0; k < COUNT; k++)
            ck_assert_float_eq(y[r][k], x[r / 2 * 2][k] + x[r / 2 * 2 + 1][k]);
}

TEST(integers_wrap_and_halves_are_rounded_once)
{
    int32_t whole[3] = {INT32_MAX, 1, 5}, total[3];
    uint16_t half[3] = {0x3c00, 0x1000, 0x1000}, result[3]; /* 1, 2^-11 twice */
    ipu_tensor a = ipu_input(d.graph, "a", IPU_INT32, 0, NULL);
    ipu_tensor b = ipu_input(d.graph, "b", IPU_FLOAT16, 0, NULL);

    MUST(ipu_output(d.graph, "c", ipu_cross_replica_sum(d.graph, a, 0)));
    MUST(ipu_output(d.graph, "d", ipu_cross_replica_sum(d.graph, b, 0)));
    start(3);
    MUST(ipu_replicas_connect(replicas, "a", whole, 12));
    MUST(ipu_replicas_connect(replicas, "b", half, 6));
    MUST(ipu_replicas_connect(replicas, "c", total, 12));
    MUST(ipu_replicas_connect(replicas, "d", result, 6));
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(total[r], (int32_t)((uint32_t)INT32_MAX + 6));
        ck_assert_int_eq(result[r], 0x3c01); /* 1 + 2^-10, not 1 */
    }
}

/* L = sum over replicas' shares: d (w * sum of x) / dx = w, added up again. */
TEST(derivatives_are_added_up_too)
{
    ipu_tensor in = ipu_variable(d.graph, "x", IPU_FLOAT32, 1, SHAPE(3));
    ipu_tensor w = device_floats(&d, "w", 1, SHAPE(3)), slope;
    ipu_tensor sum = ipu_cross_replica_sum(d.graph, in, 0);
    float weights[2][3] = {{1, 2, 3}, {10, 20, 30}}, slopes[2][3];

    sum = ipu_reduce_sum(d.graph, ipu_multiply(d.graph, sum, w), 1);
    MUST(ipu_gradients(d.graph, sum, 1, &in, &slope));
    MUST(ipu_output(d.graph, "slope", slope));
    start(2);
    connect("w", weights, 6);
    connect("slope", slopes, 6);
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 2; r++)
        for (int k = 0; k < 3; k++)
            ck_assert_float_eq(slopes[r][k], 11 * (float)(k + 1));
}

TEST(one_engine_is_its_only_replica)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(4));
    float values[] = {1, -2, 3, -4}, got[4];
    int32_t index = 7;

    MUST(ipu_output(d.graph, "y", ipu_cross_replica_mean(d.graph, in, 0)));
    MUST(ipu_output(d.graph, "i", ipu_replica_index(d.graph)));
    device_load(&d);
    device_connect(&d, "x", values, 4);
    device_connect(&d, "y", got, 4);
    device_connect(&d, "i", &index, 1);
    MUST(ipu_engine_run(d.engine));
    ck_assert_mem_eq(values, got, sizeof got);
    ck_assert_int_eq(index, 0);
}

TEST(replicas_know_which_they_are)
{
    int32_t index[4];
    ipu_tensor first = ipu_replica_index(d.graph);

    ck_assert_int_eq(first.id, ipu_replica_index(d.graph).id);
    MUST(ipu_output(d.graph, "i", first));
    start(4);
    connect("i", index, 4);
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 4; r++)
        ck_assert_int_eq(index[r], r);
    MUST(ipu_replicas_check_equal(replicas));
}

/* ----------------------------------------------------------------- training */

enum { BATCH = 6, FEATURES = 5, HIDDEN = 7, CLASSES = 3, STEPS = 100 };

static const char *const names[] = {"w1", "b1", "w2"};
static const int counts[] = {FEATURES * HIDDEN, HIDDEN, HIDDEN *CLASSES};

/* number: SGD, momentum, Adam. */
static void build(ipu_graph *graph, int batch, int number, int average,
                  int accumulate)
{
    const ipu_sgd_options momentum = {.size = sizeof momentum, .momentum = 0.9};
    ipu_tensor v[3], g[3], h, loss, rate, step;
    ipu_tensor in =
        ipu_input(graph, "x", IPU_FLOAT32, 2, SHAPE(batch, FEATURES));
    ipu_tensor labels = ipu_input(graph, "labels", IPU_INT32, 1, SHAPE(batch));

    v[0] =
        ipu_variable(graph, names[0], IPU_FLOAT32, 2, SHAPE(FEATURES, HIDDEN));
    v[1] = ipu_variable(graph, names[1], IPU_FLOAT32, 1, SHAPE(HIDDEN));
    v[2] =
        ipu_variable(graph, names[2], IPU_FLOAT32, 2, SHAPE(HIDDEN, CLASSES));
    h = ipu_bias_add(graph, ipu_matmul(graph, in, v[0]), v[1]);
    h = ipu_matmul(graph, ipu_tanh(graph, h), v[2]);
    loss = ipu_reduce_sum(graph, ipu_softmax_cross_entropy(graph, h, labels),
                          1.0 / batch);
    MUST(ipu_gradients(graph, loss, 3, v, g));
    for (int i = 0; i < 3 && accumulate > 1; i++)
        g[i] = ipu_accumulate(graph, v[i], g[i], accumulate, NULL);
    if (average)
        MUST(ipu_cross_replica_gradients(graph, 3, g, g));
    rate = ipu_fill(graph, IPU_FLOAT32, 0, NULL, 0.05);
    if (accumulate > 1)
        MUST(ipu_update_begin(graph, accumulate));
    step = ipu_counter(graph, "step");
    for (int i = 0; i < 3; i++)
        MUST(number == 2
                 ? ipu_adam(graph, v[i], g[i], rate, step, NULL)
                 : ipu_sgd(graph, v[i], g[i], rate, number ? &momentum : NULL));
    if (accumulate > 1)
        MUST(ipu_update_end(graph));
    MUST(ipu_output(graph, "loss", loss));
}

static void batch_of(int step, float *in, int32_t *labels, int rows)
{
    device_fill(in, rows * FEATURES, (uint64_t)step + 50);
    for (int i = 0; i < rows; i++)
        labels[i] = (i * 3 + step) % CLASSES;
}

/* _i is the optimiser, and 2, 4 or 8 replicas. The whole batch adds its rows in
 * another order, so results are equal up to rounding. */
LOOP_TEST(replicas_train_as_one_program_of_the_whole_batch, 0, 9)
{
    int count = 2 << _i / 3, rows = BATCH * count;
    struct device whole = device_new();
    float in[8 * BATCH * FEATURES], values[HIDDEN * FEATURES], losses[8], loss;
    float others[HIDDEN * FEATURES];
    int32_t labels[8 * BATCH];

    build(d.graph, BATCH, _i % 3, 1, 1);
    build(whole.graph, rows, _i % 3, 0, 1);
    device_load(&whole);
    start(count);
    connect("x", in, (size_t)rows * FEATURES);
    connect("labels", labels, (size_t)rows);
    connect("loss", losses, (size_t)count);
    device_connect(&whole, "x", in, rows * FEATURES);
    device_connect(&whole, "labels", labels, rows);
    device_connect(&whole, "loss", &loss, 1);
    for (int i = 0; i < 3; i++) {
        device_fill(values, counts[i], (uint64_t)i + 9);
        MUST(ipu_replicas_write(replicas, names[i], values,
                                (size_t)counts[i] * 4));
        MUST(ipu_engine_write(whole.engine, names[i], values,
                              (size_t)counts[i] * 4));
    }
    for (int step = 0; step < STEPS; step++) {
        double mean = 0;

        batch_of(step, in, labels, rows);
        MUST(ipu_replicas_run(replicas));
        MUST(ipu_engine_run(whole.engine));
        for (int r = 0; r < count; r++)
            mean += (double)losses[r] / count;
        ck_assert_double_le(fabs(mean - (double)loss), 1e-4);
    }
    MUST(ipu_replicas_check_equal(replicas));
    for (int i = 0; i < 3; i++) {
        size_t bytes = (size_t)counts[i] * 4;

        MUST(ipu_replicas_read(replicas, count - 1, names[i], values, bytes));
        MUST(ipu_engine_read(whole.engine, names[i], others, bytes));
        for (int k = 0; k < counts[i]; k++)
            ck_assert_float_le(fabsf(values[k] - others[k]), 1e-4f);
    }
    device_free(&whole);
}

/* Threads, one and several: the same bits. */
TEST(threads_change_no_bit)
{
    static float kept[3][HIDDEN * FEATURES];
    float in[4 * BATCH * FEATURES], values[HIDDEN * FEATURES];
    int32_t labels[4 * BATCH];

    for (int threads = 1; threads <= 4; threads++) {
        tear_down();
        set_up();
        build(d.graph, BATCH, 2, 1, 1);
        options.threads = threads;
        start(4);
        connect("x", in, 4 * BATCH * FEATURES);
        connect("labels", labels, 4 * BATCH);
        for (int i = 0; i < 3; i++) {
            device_fill(values, counts[i], (uint64_t)i + 9);
            MUST(ipu_replicas_write(replicas, names[i], values,
                                    (size_t)counts[i] * 4));
        }
        for (int step = 0; step < 20; step++) {
            batch_of(step, in, labels, 4 * BATCH);
            MUST(ipu_replicas_run(replicas));
        }
        for (int i = 0; i < 3; i++) {
            size_t bytes = (size_t)counts[i] * 4;

            MUST(ipu_replicas_read(replicas, 2, names[i], values, bytes));
            if (threads == 1)
                memcpy(kept[i], values, bytes);
            ck_assert_mem_eq(kept[i], values, bytes);
        }
    }
}

TEST(accumulation_divides_the_exchanges)
{
    float in[2 * BATCH * FEATURES], values[HIDDEN * FEATURES];
    int32_t labels[2 * BATCH];

    build(d.graph, BATCH, 0, 1, 5);
    start(2);
    for (int i = 0; i < 3; i++) {
        device_fill(values, counts[i], (uint64_t)i + 9);
        MUST(ipu_replicas_write(replicas, names[i], values,
                                (size_t)counts[i] * 4));
    }
    connect("x", in, 2 * BATCH * FEATURES);
    connect("labels", labels, 2 * BATCH);
    for (int step = 0; step < 20; step++) {
        batch_of(step, in, labels, 2 * BATCH);
        MUST(ipu_replicas_run(replicas));
        ck_assert_int_eq(stats().done, 3 * ((step + 1) / 5));
    }
    ck_assert_int_eq(stats().runs, 20);
    /* Each replica has its own accumulated sums in the middle of an update. */
    MUST(ipu_replicas_run(replicas));
    ck_assert_int_eq(ipu_replicas_check_equal(replicas), 3);
}

/* There are 3 gradients, of 140 + 28 + 84 bytes. */
TEST(sums_are_sent_together_up_to_the_buffer)
{
    static const struct {
        int64_t limit;
        int exchanges;
    } cases[] = {{0, 3}, {180, 2}, {1000, 1}};
    int64_t alone = 0;

    for (int i = 0; i < 3; i++) {
        tear_down();
        set_up();
        build(d.graph, BATCH, 0, 1, 1);
        options.maximum_cross_replica_sum_buffer_size = cases[i].limit;
        start(4);
        ck_assert_int_eq(stats().collectives, 3);
        ck_assert_int_eq(stats().exchanges, cases[i].exchanges);
        if (i == 0)
            alone = stats().exchange_cycles;
        else
            ck_assert_int_lt(stats().exchange_cycles, alone);
    }
}

/* ------------------------------------------------------------------- errors */

/* A Pod256 has 256 chips. Each of them is a replica, and all of them meet. */
TEST(there_are_as_many_replicas_as_a_pod256_has)
{
    static float in[256], out[256];
    ipu_tensor t = device_floats(&d, "x", 1, SHAPE(1));

    MUST(ipu_output(d.graph, "sum", ipu_cross_replica_sum(d.graph, t, 0)));
    start(256);
    for (int r = 0; r < 256; r++)
        in[r] = (float)r;
    connect("x", in, 256);
    connect("sum", out, 256);
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 256; r++)
        ck_assert_float_eq(out[r], 255 * 128);
    MUST(ipu_replicas_check_equal(replicas));
    MUST_FAIL(ipu_replica_count(257, 1), IPU_ERR_ARGUMENT, "1 to 256 of them");
}

TEST(ipus_are_a_multiple_of_shards)
{
    ck_assert_int_eq(ipu_replica_count(8, 2), 4);
    ck_assert_int_eq(ipu_replica_count(5, 1), 5);
    MUST_FAIL(ipu_replica_count(7, 2), IPU_ERR_ARGUMENT,
              "7 IPUs are no multiple of the 2 shards that a replica takes: "
              "take 6 or 8");
    MUST_FAIL(ipu_replica_count(2, 4), IPU_ERR_ARGUMENT,
              "a replica takes 4 IPUs, one a shard, and there are 2");
    MUST_FAIL(ipu_replica_count(0, 1), IPU_ERR_ARGUMENT,
              "replicas: 0 IPUs of 1 shards: 1 to 256 of them, and 1 or more");
    MUST_FAIL(ipu_replica_count(4, 0), IPU_ERR_ARGUMENT, "0 shards");
}

TEST(misuse_is_refused)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(2));
    ipu_system c2 = {.size = sizeof c2};
    float values[6];

    MUST(ipu_output(d.graph, "y", ipu_cross_replica_sum(d.graph, in, 2)));
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    options.ipus = 3;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_ARGUMENT, "over groups of 2: 3 replicas");
    options.ipus = 7;
    options.shards = 2;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_ARGUMENT, "7 IPUs are no multiple");
    MUST(ipu_system_find("C2", &c2));
    options.system = &c2;
    options.ipus = 4;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_STATE, "4 IPUs: 'C2' has 2");
    options.shards = 1;
    options.ipus = 2;
    options.threads = -1;
    MUST_FAIL(ipu_replicas_new(d.executable, &options, &replicas),
              IPU_ERR_ARGUMENT, "-1 threads");
    options.threads = 0;
    MUST_FAIL(ipu_replicas_new(NULL, &options, &replicas), IPU_ERR_ARGUMENT,
              "replicas: the executable is NULL");
    MUST(ipu_replicas_new(d.executable, &options, &replicas));
    MUST_FAIL(ipu_replicas_run(replicas), IPU_ERR_STATE,
              "replica 0: input 'x' is not connected");
    MUST_FAIL(ipu_replicas_connect(replicas, "x", values, 17), IPU_ERR_SHAPE,
              "2 replicas");
    MUST_FAIL(ipu_replicas_connect(replicas, "x", values, 24), IPU_ERR_SHAPE,
              "takes 8 bytes, not 12");
    MUST_FAIL(ipu_replicas_connect_shared(replicas, "y", values, 8),
              IPU_ERR_ARGUMENT, "no input");
    MUST_FAIL(ipu_replicas_read(replicas, 2, "v", values, 4), IPU_ERR_ARGUMENT,
              "no replica 2");
    MUST_FAIL(ipu_replicas_run(NULL), IPU_ERR_ARGUMENT,
              "the replicas are NULL");
}

LOOP_TEST(builders_refuse, 0, 2)
{
    ipu_tensor n = ipu_input(d.graph, "n", IPU_INT32, 0, NULL);

    if (_i == 0)
        ck_assert_int_lt(ipu_cross_replica_mean(d.graph, n, 0).id, 0);
    else
        ck_assert_int_lt(ipu_cross_replica_sum(d.graph, n, -1).id, 0);
    MUST_FAIL(ipu_compile(d.graph, NULL, &d.executable),
              _i ? IPU_ERR_ARGUMENT : IPU_ERR_SHAPE,
              _i ? "groups of -1" : "cast it first");
}

static int fails_in_one(void *context, const char *name, void *data,
                        int64_t count)
{
    (void)context, (void)name, (void)count;
    return ((const float *)data)[0] > 100 ? -8 : 0;
}

/* One replica's host call fails: none of them has written a variable. */
LOOP_TEST(a_failure_of_one_ends_the_run_of_all, 0, 4)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(1));
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(1));
    float values[] = {1, 2, 1000}, got;

    MUST(ipu_host_call(d.graph, "look", in, fails_in_one, NULL));
    MUST(
        ipu_assign(d.graph, v,
                   ipu_add(d.graph, v, ipu_cross_replica_sum(d.graph, in, 0))));
    ipu_counter(d.graph, "runs");
    options.threads = _i;
    start(3);
    connect("x", values, 3);
    MUST_FAIL(ipu_replicas_run(replicas), IPU_ERR_CALLBACK,
              "replica 2: host call 'look' returned -8");
    ck_assert_int_eq(ipu_replicas_callback_status(replicas), -8);
    MUST(ipu_replicas_check_equal(replicas));
    values[2] = 3;
    MUST(ipu_replicas_run(replicas));
    for (int r = 0; r < 3; r++) {
        MUST(ipu_replicas_read(replicas, r, "v", &got, 4));
        ck_assert_float_eq(got, 6);
    }
}

/* A replica's variable in memory of the host takes its elements, and is written
 * there; the other's stays where it is. */
TEST(a_variable_of_one_replica_lives_on_the_host)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(1));
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(1));
    float values[] = {1, 2}, placed = 10, got;

    MUST(
        ipu_assign(d.graph, v,
                   ipu_add(d.graph, v, ipu_cross_replica_sum(d.graph, in, 0))));
    start(2);
    connect("x", values, 2);
    MUST(ipu_replicas_place(replicas, 0, "v", &placed, sizeof placed));
    MUST(ipu_replicas_run(replicas));
    ck_assert_float_eq(placed, 13);
    MUST(ipu_replicas_read(replicas, 1, "v", &got, sizeof got));
    ck_assert_float_eq(got, 3);
    MUST_FAIL(ipu_replicas_check_equal(replicas), IPU_ERR_DATA, "'v'");
    MUST_FAIL(ipu_replicas_place(replicas, 2, "v", &placed, sizeof placed),
              IPU_ERR_ARGUMENT, "no replica 2");
    MUST(ipu_replicas_place(replicas, 0, "v", NULL, 0));
    MUST(ipu_replicas_read(replicas, 0, "v", &got, sizeof got));
    ck_assert_float_eq(got, 13);
}

TEST_MAIN("device_replica", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
