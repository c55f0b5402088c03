/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every collective of a device's program over ranks, by the network of the
 * training programs: reductions, broadcasts and gathers, which the strategy
 * does not use, of each dtype; and a failure of one rank, which all get.
 */
#include <hvd.h>
#include <ipu.h>
#include <string.h>

#include "output/problem.h"
#include "ranks.h"
#include "trainer/device_collective.h"

enum { LENGTH = 37 };

static struct device_collective *network;
static ipu_graph *graph;
static ipu_executable *executable;
static ipu_engine *engine;

#define MUST(call) ck_assert_msg((call) >= 0, "%s", ipu_last_error())

static void begin(void)
{
    ck_assert_msg(device_collective_new("full", -1, &network) == 0, "%s",
                  problem_text());
    MUST(ipu_graph_new(&graph));
}

static ipu_network model(void)
{
    const ipu_network *given = device_collective_model(network);
    ipu_network alone;

    ipu_network_init(&alone, sizeof alone);
    return given ? *given : alone;
}

static void load(void)
{
    MUST(ipu_compile(graph, NULL, &executable));
    MUST(ipu_engine_new(executable, &engine));
    ck_assert_msg(device_collective_connect(network, engine) == 0, "%s",
                  problem_text());
}

static void end(void)
{
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    ipu_graph_free(graph);
    device_collective_free(network);
    engine = NULL;
    executable = NULL;
}

TEST(every_kind_of_collective_goes_over_the_ranks)
{
    const int64_t length = LENGTH, three = 3;
    const int n = ranks_size(), rank = ranks_rank(), root = n / 2;
    static float x[LENGTH], sum[LENGTH], all[64 * LENGTH];
    int32_t number[3], first[3], numbers[64 * 3];
    ipu_network net;
    ipu_tensor floats, integers;

    begin();
    net = model();
    net.recipe = NULL; /* so that sums are exact */
    floats = ipu_input(graph, "x", IPU_FLOAT32, 1, &length);
    integers = ipu_input(graph, "number", IPU_INT32, 1, &three);
    MUST(
        ipu_output(graph, "sum", ipu_collective_sum(graph, &net, "s", floats)));
    MUST(
        ipu_output(graph, "first",
                   ipu_collective_broadcast(graph, &net, "b", integers, root)));
    MUST(ipu_output(graph, "all",
                    ipu_collective_gather(graph, &net, "g", floats)));
    MUST(ipu_output(graph, "numbers",
                    ipu_collective_gather(graph, &net, "h", integers)));
    load();
    MUST(ipu_engine_connect(engine, "x", x, sizeof x));
    MUST(ipu_engine_connect(engine, "number", number, sizeof number));
    MUST(ipu_engine_connect(engine, "sum", sum, sizeof sum));
    MUST(ipu_engine_connect(engine, "first", first, sizeof first));
    MUST(ipu_engine_connect(engine, "all", all,
                            (size_t)n * LENGTH * sizeof *all));
    MUST(ipu_engine_connect(engine, "numbers", numbers,
                            (size_t)n * sizeof number));
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < LENGTH; i++)
            x[i] = (float)(100 * rank + i + run);
        for (int i = 0; i < 3; i++)
            number[i] = 10 * rank + i + run;
        device_collective_begin(network);
        MUST(ipu_engine_run(engine));
        for (int i = 0; i < LENGTH; i++)
            ck_assert_float_eq(sum[i],
                               (float)(50 * n * (n - 1) + n * (i + run)));
        for (int i = 0; i < 3; i++)
            ck_assert_int_eq(first[i], 10 * root + i + run);
        for (int r = 0; r < n; r++) {
            ck_assert_float_eq(all[r * LENGTH + 5], (float)(100 * r + 5 + run));
            ck_assert_int_eq(numbers[r * 3 + 2], 10 * r + 2 + run);
        }
    }
    ck_assert_int_eq(device_collective_problem(network), 0);
    end();
}

TEST(converted_tensors_are_broadcast_and_gathered)
{
    const int64_t length = LENGTH;
    const int n = ranks_size(), rank = ranks_rank();
    static float x[LENGTH], first[LENGTH], all[64 * LENGTH];
    ipu_network net;
    ipu_tensor floats;

    begin();
    net = model();
    floats = ipu_input(graph, "x", IPU_FLOAT32, 1, &length);
    MUST(ipu_output(graph, "first",
                    ipu_collective_broadcast(graph, &net, "b", floats, 0)));
    MUST(ipu_output(graph, "all",
                    ipu_collective_gather(graph, &net, "g", floats)));
    load();
    MUST(ipu_engine_connect(engine, "x", x, sizeof x));
    MUST(ipu_engine_connect(engine, "first", first, sizeof first));
    MUST(ipu_engine_connect(engine, "all", all,
                            (size_t)n * LENGTH * sizeof *all));
    for (int i = 0; i < LENGTH; i++)
        x[i] = (float)(i - 8 * rank); /* exact in bfloat16 */
    device_collective_begin(network);
    MUST(ipu_engine_run(engine));
    for (int i = 0; i < LENGTH; i++) {
        ck_assert_float_eq(first[i], (float)i);
        ck_assert_float_eq(all[(n - 1) * LENGTH + i], (float)(i - 8 * (n - 1)));
    }
    end();
}

/* One rank's program has another count: all learn which tensor differs. */
TEST(programs_that_differ_are_an_error_on_every_rank)
{
    const int64_t length = LENGTH + (ranks_rank() == ranks_size() - 1);
    static float x[LENGTH + 1], mean[LENGTH + 1];
    ipu_network net;

    if (ranks_size() == 1)
        return;
    begin();
    net = model();
    MUST(ipu_output(
        graph, "mean",
        ipu_collective_mean(graph, &net, "odd",
                            ipu_input(graph, "x", IPU_FLOAT32, 1, &length))));
    load();
    MUST(ipu_engine_connect(engine, "x", x, (size_t)length * sizeof *x));
    MUST(ipu_engine_connect(engine, "mean", mean, (size_t)length * sizeof *x));
    device_collective_begin(network);
    ck_assert_int_eq(ipu_engine_run(engine), IPU_ERR_CALLBACK);
    ck_assert_int_eq(device_collective_problem(network), PROBLEM_EVERYWHERE);
    ck_assert_msg(strstr(ipu_last_error(), "device/odd") != NULL, "%s",
                  ipu_last_error());
    end();
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_device_collective")
