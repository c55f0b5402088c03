/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests programs with collectives of the device's network, at 1 to 8 processes:
 * sums, means, broadcasts and gathers of data that differ, packed gradients,
 * training, loops, update regions and failures. device_network_build.c tests
 * what is refused, recipes and costs.
 */
#include "suite.h"

#include <math.h>

#include "joined.h"

enum { LENGTH = 1031 };

static const int worlds[] = {1, 2, 3, 4, 5, 8};
enum { WORLDS = sizeof worlds / sizeof *worlds };

static struct device d;
static ipu_network network;

static void set_up(void)
{
    d = device_new();
    ipu_network_init(&network, sizeof network);
}

static void tear_down(void)
{
    joined_end();
    device_free(&d);
}

static float x[8][LENGTH], y[8][LENGTH], z[8][LENGTH], all[8][8 * LENGTH];

LOOP_TEST(collectives_are_over_all_processes, 0, WORLDS)
{
    const int n = worlds[_i], root = n - 1;
    int32_t whole[8][3], got[8][3], scalars[8][8];
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(LENGTH)), number;

    network.processes = n;
    number = ipu_input(d.graph, "number", IPU_INT32, 1, SHAPE(3));
    MUST(ipu_output(d.graph, "sum",
                    ipu_collective_sum(d.graph, &network, "s", in)));
    MUST(ipu_output(
        d.graph, "mean",
        ipu_relu(d.graph, ipu_collective_mean(d.graph, &network, "m", in))));
    MUST(ipu_output(
        d.graph, "root",
        ipu_collective_broadcast(d.graph, &network, "b", number, root)));
    MUST(ipu_output(d.graph, "all",
                    ipu_collective_gather(d.graph, &network, "g", in)));
    MUST(ipu_output(
        d.graph, "scalars",
        ipu_collective_gather(
            d.graph, &network, "h",
            ipu_reshape(d.graph, ipu_slice(d.graph, number, SHAPE(1), SHAPE(1)),
                        0, NULL))));
    joined_load_all(&d, n);
    joined_connect("x", x, sizeof x[0]);
    joined_connect("number", whole, sizeof whole[0]);
    joined_connect("sum", y, sizeof y[0]);
    joined_connect("mean", z, sizeof z[0]);
    joined_connect("root", got, sizeof got[0]);
    for (int r = 0; r < n; r++) {
        MUST(ipu_engine_connect(processes[r].engine, "all", all[r],
                                (size_t)n * sizeof x[0]));
        MUST(ipu_engine_connect(processes[r].engine, "scalars", scalars[r],
                                (size_t)n * 4));
        device_fill(x[r], LENGTH, (uint64_t)r + 1);
        for (int k = 0; k < 3; k++)
            whole[r][k] = 1000 * r + k + 1;
    }
    for (int run = 0; run < 3; run++)
        joined_run();
    for (int k = 0; k < LENGTH; k++) {
        double sum = 0;

        for (int r = 0; r < n; r++)
            sum += (double)x[r][k];
        for (int r = 0; r < n; r++) {
            ck_assert_double_le(fabs(sum - (double)y[r][k]), 2e-6);
            ck_assert_double_le(fabs(fmax(sum / n, 0) - (double)z[r][k]), 2e-6);
            ck_assert_mem_eq(&y[r][k], &y[0][k], 4);
        }
    }
    for (int r = 0; r < n; r++) {
        ck_assert_mem_eq(got[r], whole[root], sizeof got[r]);
        ck_assert_mem_eq(all[r], x, (size_t)n * sizeof x[0]);
        for (int k = 0; k < n; k++)
            ck_assert_int_eq(scalars[r][k], 1000 * k + 2);
    }
    ck_assert_int_eq(cable.done, n == 1 ? 0 : 15);
}

/* -------------------------------------------------------------- gradients */

static const int64_t lengths[] = {7, 30, 1, 12, 5};
enum { GRADIENTS = sizeof lengths / sizeof *lengths, ELEMENTS = 55 };

/* The packs of a maximum in bytes: they are made from the last gradient on. */
static const struct {
    int64_t bytes;
    int packs;
} limits[] = {{0, 1}, {1 << 20, 1}, {120, 3}, {72, 3}, {4, 5}};

LOOP_TEST(gradients_are_packed, 0, 5 * WORLDS)
{
    const int n = worlds[_i / 5];
    ipu_tensor gradients[GRADIENTS];
    float in[8][ELEMENTS], out[GRADIENTS][8][30];

    network.processes = n;
    network.pack_bytes = limits[_i % 5].bytes;
    for (int i = 0; i < GRADIENTS; i++) {
        char name[8] = {'g', (char)('0' + i), 0};

        gradients[i] = device_floats(&d, name, 2, SHAPE(1, lengths[i]));
    }
    MUST(ipu_collective_gradients(d.graph, &network, GRADIENTS, gradients,
                                  gradients));
    for (int i = 0; i < GRADIENTS; i++) {
        char name[8] = {'a', (char)('0' + i), 0};

        MUST(ipu_output(d.graph, name, gradients[i]));
    }
    joined_load_all(&d, n);
    for (int r = 0; r < n; r++) {
        size_t at = 0;

        device_fill(in[r], ELEMENTS, (uint64_t)r + 7);
        for (int i = 0; i < GRADIENTS; i++) {
            char name[8] = {'g', (char)('0' + i), 0};

            MUST(ipu_engine_connect(processes[r].engine, name, in[r] + at,
                                    (size_t)lengths[i] * 4));
            name[0] = 'a';
            MUST(ipu_engine_connect(processes[r].engine, name, out[i][r],
                                    (size_t)lengths[i] * 4));
            at += (size_t)lengths[i];
        }
    }
    joined_run();
    for (int r = 0; r < n; r++)
        for (int i = 0, at = 0; i < GRADIENTS; at += (int)lengths[i++])
            for (int k = 0; k < lengths[i]; k++) {
                double sum = 0;

                for (int p = 0; p < n; p++)
                    sum += (double)in[p][at + k];
                ck_assert_double_le(fabs(sum / n - (double)out[i][r][k]), 2e-6);
            }
    if (n == 1)
        return;
    ck_assert_int_eq(cable.done, limits[_i % 5].packs);
    ck_assert_int_eq(cable.most, limits[_i % 5].packs);
}

/* ----------------------------------------------------------------- training */

enum { ROWS = 6, IN = 5, HIDDEN = 9, STEPS = 6 };

/* Builds a network of two layers and its update, every count-th run. The loss
 * is the mean over its rows. */
static void build_training(ipu_graph *g, int rows, int count, bool joined)
{
    ipu_tensor in = ipu_input(g, "x", IPU_FLOAT32, 2, SHAPE(rows, IN));
    ipu_tensor v[] = {
        ipu_variable(g, "v0", IPU_FLOAT32, 2, SHAPE(IN, HIDDEN)),
        ipu_variable(g, "v1", IPU_FLOAT32, 2, SHAPE(HIDDEN, 1)),
    };
    ipu_tensor h = ipu_tanh(g, ipu_matmul(g, in, v[0])), loss, dv[2];

    h = ipu_square(g, ipu_matmul(g, h, v[1]));
    loss = ipu_reduce_sum(g, h, 1.0 / rows);
    MUST(ipu_gradients(g, loss, 2, v, dv));
    if (count > 1) {
        const ipu_accumulation_options mean = {.size = sizeof mean,
                                               .reduction = IPU_REDUCTION_MEAN};

        MUST(ipu_update_begin(g, count));
        for (int i = 0; i < 2; i++)
            dv[i] = ipu_accumulate(g, v[i], dv[i], count, &mean);
    }
    if (joined)
        MUST(ipu_collective_gradients(g, &network, 2, dv, dv));
    for (int i = 0; i < 2; i++)
        MUST(ipu_sgd(g, v[i], dv[i], ipu_fill(g, IPU_FLOAT32, 0, NULL, 0.3),
                     NULL));
    if (count > 1)
        MUST(ipu_update_end(g));
    MUST(ipu_output(g, "loss", loss));
}

static float first_v0[IN * HIDDEN], first_v1[HIDDEN];

static void write_first(ipu_engine *engine)
{
    device_fill(first_v0, IN * HIDDEN, 3);
    device_fill(first_v1, HIDDEN, 4);
    MUST(ipu_engine_write(engine, "v0", first_v0, sizeof first_v0));
    MUST(ipu_engine_write(engine, "v1", first_v1, sizeof first_v1));
}

/* n processes train on a part of each batch, as one does on all of it; also if
 * an update takes two runs. */
LOOP_TEST(training_is_that_of_the_whole_batch, 0, 2 * WORLDS)
{
    const int n = worlds[_i / 2], count = 1 + _i % 2;
    struct device whole = device_new();
    float rows[8 * ROWS][IN], loss, losses[8], v0[IN * HIDDEN],
        other[IN * HIDDEN];

    network.processes = n;
    network.pack_bytes = 4; /* two packs */
    build_training(d.graph, ROWS, count, true);
    build_training(whole.graph, n * ROWS, count, false);
    device_load(&whole);
    joined_load_all(&d, n);
    write_first(whole.engine);
    for (int r = 0; r < n; r++)
        write_first(processes[r].engine);
    MUST(ipu_engine_connect(whole.engine, "x", rows,
                            (size_t)n * ROWS * sizeof rows[0]));
    MUST(ipu_engine_connect(whole.engine, "loss", &loss, 4));
    joined_connect("x", rows, ROWS * sizeof rows[0]);
    joined_connect("loss", losses, 4);
    for (int step = 0; step < STEPS; step++) {
        double mean = 0;

        device_fill(rows[0], 8 * ROWS * IN, (uint64_t)step + 20);
        MUST(ipu_engine_run(whole.engine));
        joined_run();
        for (int r = 0; r < n; r++)
            mean += (double)losses[r] / n;
        ck_assert_double_le(fabs(mean - (double)loss), 1e-5);
    }
    MUST(ipu_engine_read(whole.engine, "v0", v0, sizeof v0));
    for (int r = 0; r < n; r++) {
        MUST(ipu_engine_read(processes[r].engine, "v0", other, sizeof other));
        for (int k = 0; k < IN * HIDDEN; k++)
            ck_assert_double_le(fabs((double)v0[k] - (double)other[k]), 1e-5);
    }
    ck_assert_float_ne(v0[0], first_v0[0]);
    ck_assert_int_eq(cable.done, n == 1 ? 0 : 2 * STEPS / count);
    device_free(&whole);
}

/* The pack of the last layer leaves before the first layer's gradient is
 * computed. */
TEST(a_pack_leaves_while_the_backward_pass_runs)
{
    const char *program, *start, *finish, *last = NULL;

    network.processes = 2;
    network.pack_bytes = 4;
    build_training(d.graph, ROWS, 1, true);
    MUST(ipu_compile(d.graph, NULL, &d.executable));
    program = device_program(&d);
    start = strstr(program, "  gradients/0 (");
    finish = strstr(program, "  network_finish:");
    for (const char *at = program; (at = strstr(at, "  matmul:")) != NULL; at++)
        last = at;
    ck_assert_msg(start && start < last && last < finish, "%s", program);
}

/* A loop's body meets the others in each iteration. */
static int add_body(ipu_graph *body, void *context, int32_t ninputs,
                    const ipu_tensor *inputs, int32_t noutputs,
                    ipu_tensor *outputs)
{
    (void)context, (void)ninputs, (void)noutputs;
    outputs[0] = ipu_collective_sum(body, &network, "in a loop", inputs[0]);
    return 0;
}

LOOP_TEST(loops_meet, 0, WORLDS)
{
    const int n = worlds[_i];
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(LENGTH)), out;
    float ones[8][LENGTH];

    network.processes = n;
    MUST(ipu_repeat(d.graph, 3, add_body, NULL, 1, &in, NULL, &out));
    MUST(ipu_output(d.graph, "y", out));
    joined_load_all(&d, n);
    joined_connect("x", ones, sizeof ones[0]);
    joined_connect("y", y, sizeof y[0]);
    for (int r = 0; r < n; r++)
        for (int k = 0; k < LENGTH; k++)
            ones[r][k] = (float)(r + 1);
    joined_run();
    for (int r = 0; r < n; r++)
        for (int k = 0; k < LENGTH; k++)
            ck_assert_float_eq(y[r][k], (float)(n * n * (n * (n + 1) / 2)));
    ck_assert_int_eq(cable.done, n == 1 ? 0 : 3);
}

/* ----------------------------------------------------------------- failures */

/* A process that fails ends the run of all, with what each network says; no
 * variable has changed, and all can run again. */
TEST(a_failure_ends_the_run_of_all)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(1));
    ipu_tensor v = ipu_variable(d.graph, "v", IPU_FLOAT32, 1, SHAPE(1));
    float values[] = {1, 2, 4}, got;

    network.processes = 3;
    MUST(ipu_assign(
        d.graph, v,
        ipu_add(d.graph, v, ipu_collective_sum(d.graph, &network, "s", in))));
    MUST(ipu_output(d.graph, "y",
                    ipu_collective_mean(d.graph, &network, "t", in)));
    joined_load_all(&d, 3);
    joined_connect("x", values, 4);
    joined_connect("y", y, sizeof y[0][0]);
    cable.fails = 1;
    joined_try();
    for (int r = 0; r < 3; r++) {
        const struct joined_process *p = &processes[r];
        const char *words = r == 1 ? "collective 's': its start returned -77: "
                                     "the port is down"
                                   : "returned -55: process 1 has gone";

        ck_assert_int_eq(p->status, IPU_ERR_CALLBACK);
        ck_assert_int_eq(p->callback_status, r == 1 ? -77 : -55);
        ck_assert_msg(strstr(p->text, words) != NULL, "%s", p->text);
        MUST(ipu_engine_read(p->engine, "v", &got, 4));
        ck_assert_float_eq(got, 0);
    }
    ck_assert_int_le(cable.abandoned, 2);
    joined_end();
    joined_load_all(&d, 3);
    joined_connect("x", values, 4);
    for (int i = 1; i <= 2; i++) {
        joined_run();
        MUST(ipu_engine_read(processes[2].engine, "v", &got, 4));
        ck_assert_float_eq(got, 7.0f * (float)i);
    }
    ck_assert_int_eq(cable.abandoned, 0);
}

static int refuses(void *context, const char *name, void *data, int64_t count)
{
    (void)context, (void)name, (void)data, (void)count;
    return -8;
}

/* What has started when the program itself fails is abandoned. */
TEST(what_is_under_way_is_abandoned)
{
    ipu_tensor in = device_floats(&d, "x", 1, SHAPE(1));
    float value = 1;

    network.processes = 2;
    MUST(ipu_output(d.graph, "y",
                    ipu_host_receive(d.graph, "never", in, refuses, NULL)));
    MUST(ipu_output(d.graph, "z",
                    ipu_collective_sum(d.graph, &network, "t", in)));
    joined_load_all(&d, 2);
    for (int r = 0; r < 2; r++)
        MUST(ipu_engine_connect(processes[r].engine, "x", &value, 4));
    joined_try();
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(processes[r].callback_status, -8);
    ck_assert_msg(cable.abandoned == 2, "%d: %s", cable.abandoned,
                  device_program(&d));
}

TEST_MAIN("device_network", .set_up = set_up, .tear_down = tear_down,
          .seconds = 120)
