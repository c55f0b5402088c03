/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests derivatives through collectives of the device's network, and batch
 * normalisation over processes: 1 to 8 of them, with a batch each, normalise,
 * differentiate and keep statistics as one program with the whole batch does.
 * So do replicas of processes.
 */
#include "suite.h"

#include <math.h>
#include <stdatomic.h>

#include "joined.h"

enum { ROWS = 6, CHANNELS = 5, BATCH_FLOATS = ROWS * CHANNELS, RUNS = 3 };

static const int worlds[] = {1, 2, 3, 4, 5, 8};
enum { WORLDS = sizeof worlds / sizeof *worlds };
static const char *const names[] = {"scale", "offset", "mean", "variance"};

static struct device d;
static ipu_network network;
static float x[8 * BATCH_FLOATS], weight[8 * BATCH_FLOATS];

static void set_up(void)
{
    d = device_new();
    ipu_network_init(&network, sizeof network);
    /* Processes have other means, so that none normalises alone as all do. */
    device_fill(x, 8 * BATCH_FLOATS, 5);
    device_fill(weight, 8 * BATCH_FLOATS, 6);
    for (int k = 0; k < 8 * BATCH_FLOATS; k++)
        x[k] += (float)(k / BATCH_FLOATS);
}

static void tear_down(void)
{
    joined_end();
    device_free(&d);
}

static void check_close(const float *a, const float *b, int count)
{
    for (int k = 0; k < count; k++)
        ck_assert_float_le(fabsf(a[k] - b[k]), 2e-5f * (1 + fabsf(b[k])));
}

/* The loss of process r is r + 1 times the sum of the squares of what all have:
 * the derivative is that of the sum of all losses. */
LOOP_TEST(sums_and_means_have_derivatives, 0, 2 * WORLDS)
{
    const int n = worlds[_i / 2];
    const bool mean = _i % 2 != 0;
    float dx[8][BATCH_FLOATS], factors[8];
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(BATCH_FLOATS)), y, slope;

    network.processes = n;
    y = (mean ? ipu_collective_mean : ipu_collective_sum)(d.graph, &network,
                                                          "c", in);
    y = ipu_multiply(d.graph,
                     ipu_reduce_sum(d.graph, ipu_square(d.graph, y), 1),
                     ipu_input(d.graph, "factor", IPU_FLOAT32, 0, NULL));
    MUST(ipu_gradients(d.graph, y, 1, &in, &slope));
    MUST(ipu_output(d.graph, "dx", slope));
    joined_load_all(&d, n);
    for (int r = 0; r < n; r++)
        factors[r] = (float)(r + 1);
    joined_connect("x", x, sizeof dx[0]);
    joined_connect("factor", factors, 4);
    joined_connect("dx", dx, sizeof dx[0]);
    joined_run();
    for (int k = 0; k < BATCH_FLOATS; k++) {
        double sum = 0, losses = n * (n + 1) / 2.0;

        for (int r = 0; r < n; r++)
            sum += (double)x[r * BATCH_FLOATS + k];
        for (int r = 0; r < n; r++)
            ck_assert_double_eq_tol((double)dx[r][k],
                                    2 * losses * sum / (mean ? n * n : 1),
                                    1e-4 * losses * (1 + fabs(sum)));
    }
    ck_assert_int_eq(cable.done, n == 1 ? 0 : 2);
}

/* Two derivatives of one collective are two collectives. */
TEST(a_collective_can_be_differentiated_twice)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(4)), y, first, second;

    network.processes = 2;
    y = ipu_collective_sum(d.graph, &network, "c", in);
    MUST(ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 1, &in, &first));
    MUST(
        ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 3), 1, &in, &second));
    MUST(ipu_output(d.graph, "y", ipu_add(d.graph, first, second)));
    joined_load_all(&d, 2);
    float y_of[2][4];

    joined_connect("x", x, 16);
    joined_connect("y", y_of, 16);
    joined_run();
    for (int k = 0; k < 8; k++)
        ck_assert_float_eq(y_of[k / 4][k % 4], 8);
}

/* Normalises rows of x; the loss is the sum of the products with weights. With
 * derivatives by variables, these are outputs, too. */
static void build(ipu_graph *g, int rows, bool joined, bool by_variables)
{
    const int64_t shape[] = {rows / 2, 2, CHANNELS};
    ipu_tensor v[4], slope[3];
    ipu_tensor in = ipu_input(g, "x", IPU_FLOAT32, 3, shape);
    ipu_tensor by = ipu_input(g, "weight", IPU_FLOAT32, 3, shape), y;

    for (int i = 0; i < 4; i++)
        v[i] = ipu_variable(g, names[i], IPU_FLOAT32, 1, SHAPE(CHANNELS));
    y = joined ? ipu_collective_batch_norm(g, &network, "norm", in, v[0], v[1],
                                           v[2], v[3], 0.75, 1e-3)
               : ipu_batch_norm(g, in, v[0], v[1], v[2], v[3], 0.75, 1e-3);
    MUST(ipu_output(g, "y", y));
    MUST(ipu_gradients(g, ipu_reduce_sum(g, ipu_multiply(g, y, by), 1), 3,
                       (const ipu_tensor[]){in, v[0], v[1]}, slope));
    MUST(ipu_output(g, "dx", slope[0]));
    if (!by_variables)
        return;
    /* As gradients of a strategy, those of variables are of all rows. */
    for (int i = 1; joined && i < 3; i++)
        slope[i] = ipu_collective_sum(g, &network, names[i - 1], slope[i]);
    MUST(ipu_output(g, "dscale", slope[1]));
    MUST(ipu_output(g, "doffset", slope[2]));
}

static void write_first(ipu_engine *engine)
{
    for (int i = 0; i < 4; i++) {
        float values[CHANNELS];

        device_fill(values, CHANNELS, (uint64_t)i + 77);
        for (int c = 0; c < CHANNELS; c++)
            values[c] += i == 3 ? 2 : 0;
        MUST(ipu_engine_write(engine, names[i], values, sizeof values));
    }
}

static void connect_whole(struct device *whole, int floats, float *y, float *dx,
                          float (*of_variables)[CHANNELS])
{
    device_connect(whole, "x", x, floats);
    device_connect(whole, "weight", weight, floats);
    device_connect(whole, "y", y, floats);
    device_connect(whole, "dx", dx, floats);
    if (!of_variables)
        return;
    device_connect(whole, "dscale", of_variables[0], CHANNELS);
    device_connect(whole, "doffset", of_variables[1], CHANNELS);
}

LOOP_TEST(processes_normalise_as_the_whole_batch, 0, WORLDS)
{
    const int n = worlds[_i];
    static float y[8 * BATCH_FLOATS], dx[8 * BATCH_FLOATS];
    static float whole_y[8 * BATCH_FLOATS], whole_dx[8 * BATCH_FLOATS];
    float dscale[8][CHANNELS], doffset[8][CHANNELS], expected[2][CHANNELS];
    struct device whole = device_new();

    network.processes = n;
    build(d.graph, ROWS, true, true);
    build(whole.graph, n * ROWS, false, true);
    device_load(&whole);
    joined_load_all(&d, n);
    connect_whole(&whole, n * BATCH_FLOATS, whole_y, whole_dx, expected);
    joined_connect("x", x, sizeof(float[BATCH_FLOATS]));
    joined_connect("weight", weight, sizeof(float[BATCH_FLOATS]));
    joined_connect("y", y, sizeof(float[BATCH_FLOATS]));
    joined_connect("dx", dx, sizeof(float[BATCH_FLOATS]));
    joined_connect("dscale", dscale, sizeof dscale[0]);
    joined_connect("doffset", doffset, sizeof doffset[0]);
    write_first(whole.engine);
    for (int r = 0; r < n; r++)
        write_first(processes[r].engine);
    for (int run = 0; run < RUNS; run++) {
        MUST(ipu_engine_run(whole.engine));
        joined_run();
    }
    check_close(y, whole_y, n * BATCH_FLOATS);
    check_close(dx, whole_dx, n * BATCH_FLOATS);
    for (int r = 0; r < n; r++) {
        check_close(dscale[r], expected[0], CHANNELS);
        check_close(doffset[r], expected[1], CHANNELS);
        for (int i = 0; i < 4; i++) {
            float kept[CHANNELS], wanted[CHANNELS], first[CHANNELS];

            MUST(ipu_engine_read(processes[r].engine, names[i], kept,
                                 sizeof kept));
            MUST(ipu_engine_read(processes[0].engine, names[i], first,
                                 sizeof first));
            MUST(
                ipu_engine_read(whole.engine, names[i], wanted, sizeof wanted));
            check_close(kept, wanted, CHANNELS);
            ck_assert_mem_eq(kept, first, sizeof kept);
        }
    }
    /* Two for mean and variance, two for their derivatives. */
    ck_assert_int_eq(cable.done, n == 1 ? 0 : RUNS * 6);
    device_free(&whole);
}

/* ----------------------------------------------------------------- replicas */

/* A network to a second process that has the same tensors: what arrives is what
 * has left. Replicas call it at once. */
static atomic_int departed, arrived;

static int depart(void *context, const ipu_collective *what, void *data)
{
    (void)context, (void)what, (void)data;
    departed++;
    return 0;
}

static int arrive(void *context, const ipu_collective *what, void *data)
{
    (void)context, (void)data;
    arrived++;
    return what->mean ? 0 : -3;
}

static void abandon(void *context)
{
    (void)context;
}

static const ipu_network_functions to_twin = {.size = sizeof to_twin,
                                              .start = depart,
                                              .finish = arrive,
                                              .abandon = abandon};

/* Replicas of two processes normalise together: with twice the same rows, as
 * one program with all of them once. */
TEST(replicas_of_processes_normalise_as_the_whole_batch)
{
    enum { REPLICAS = 3, FLOATS = REPLICAS * BATCH_FLOATS };
    static float y[FLOATS], dx[FLOATS], whole_y[FLOATS], whole_dx[FLOATS];
    float first[CHANNELS];
    struct device whole = device_new();
    ipu_replicas_options options;
    ipu_replicas *replicas;

    network.processes = 2;
    build(d.graph, ROWS, true, false);
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    ipu_replicas_options_init(&options, sizeof options);
    options.ipus = REPLICAS;
    MUST(ipu_replicas_new(d.executable, &options, &replicas));
    MUST(ipu_replicas_connect(replicas, "x", x, sizeof y));
    MUST(ipu_replicas_connect(replicas, "weight", weight, sizeof y));
    MUST(ipu_replicas_connect(replicas, "y", y, sizeof y));
    MUST(ipu_replicas_connect(replicas, "dx", dx, sizeof dx));
    ck_assert_int_eq(ipu_replicas_run(replicas), IPU_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(ipu_last_error(), "ipu_replicas_network"));
    ck_assert_int_eq(ipu_replicas_network(replicas, &to_twin, NULL, 3),
                     IPU_ERR_ARGUMENT);
    MUST(ipu_replicas_network(replicas, &to_twin, NULL, 2));
    build(whole.graph, REPLICAS * ROWS, false, false);
    device_load(&whole);
    connect_whole(&whole, FLOATS, whole_y, whole_dx, NULL);
    write_first(whole.engine);
    for (int i = 0; i < 4; i++) {
        MUST(ipu_engine_read(whole.engine, names[i], first, sizeof first));
        MUST(ipu_replicas_write(replicas, names[i], first, sizeof first));
    }
    MUST(ipu_engine_run(whole.engine));
    MUST(ipu_replicas_run(replicas));
    check_close(y, whole_y, FLOATS);
    check_close(dx, whole_dx, FLOATS);
    ck_assert_int_eq(departed, 4 * REPLICAS);
    ck_assert_int_eq(arrived, 4 * REPLICAS);
    MUST(ipu_replicas_check_equal(replicas));
    ipu_replicas_free(replicas);
    device_free(&whole);
}

TEST(what_has_no_derivative_is_refused)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(4)), slope;
    ipu_tensor y = ipu_collective_broadcast(d.graph, &network, "b", in, 0);

    ck_assert_int_eq(
        ipu_gradients(d.graph, ipu_reduce_sum(d.graph, y, 1), 1, &in, &slope),
        IPU_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(
        strstr(ipu_last_error(), "collective broadcast 'b' has no derivative"));
}

/* _i: no network, no name, a name that is taken, a wrong momentum. */
LOOP_TEST(arguments_of_the_norm_are_checked, 0, 4)
{
    static const char *const texts[] = {
        "the network is NULL", "the name is NULL or empty",
        "another collective of this program has that name",
        "momentum is 1.5, not within 0 and 1"};
    ipu_tensor in = device_floats(&d, "x", 2, SHAPE(ROWS, CHANNELS));
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(CHANNELS));

    if (_i == 2)
        ipu_collective_sum(d.graph, &network, "n/mean", v);
    device_refused(&d,
                   ipu_collective_batch_norm(d.graph, _i == 0 ? NULL : &network,
                                             _i == 1 ? "" : "n", in, v, v, v, v,
                                             _i == 3 ? 1.5 : 0.5, 1e-3),
                   _i == 2 ? IPU_ERR_NAME : IPU_ERR_ARGUMENT, texts[_i]);
}

TEST_MAIN("device_network_norm", .set_up = set_up, .tear_down = tear_down)
