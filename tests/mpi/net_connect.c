/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops of a program's own: a network that is connected to a strategy makes the
 * steps of gradient descent, with the optimiser on every rank and on parameter
 * servers; an engine of evaluation sees the same variables; and mistakes name
 * what is wrong.
 */
#include <hvd_strategy.h>
#include <ipu.h>
#include <stdbool.h>
#include <string.h>

#include "lines.h"

enum { BATCH = 4 };

/* A training program, and what it works on. */
struct loop {
    hvd_net *net;
    const hvd_variable *v;
    ipu_executable *program;
    ipu_engine *engine;
    float x[BATCH][FEATURES], y[BATCH][1], result[BATCH][1];
};

/* Builds a line, with a loss and its gradients in training. Returns the number
 * of variables. */
static int build(struct loop *loop, hvd_mode mode, bool gradients)
{
    const int64_t in[] = {BATCH, FEATURES}, out[] = {BATCH, 1};
    ipu_graph *graph;
    ipu_tensor y;
    int count;

    ck_assert_int_eq(ipu_graph_new(&graph), IPU_OK);
    MUST(hvd_net_begin(loop->net, graph, mode));
    y = hvd_dense(loop->net, "line", ipu_input(graph, "x", IPU_FLOAT32, 2, in),
                  1, HVD_LINEAR);
    if (mode == HVD_MODE_TRAIN && gradients)
        MUST(hvd_net_gradients(
            loop->net,
            ipu_mean_squared_error(
                graph, y, ipu_input(graph, "y", IPU_FLOAT32, 2, out))));
    else
        ck_assert_int_eq(ipu_output(graph, "result", y), IPU_OK);
    count = hvd_net_end(loop->net, &loop->v);
    ck_assert_int_eq(ipu_compile(graph, NULL, &loop->program), IPU_OK);
    ipu_graph_free(graph);
    return count;
}

static void start(struct loop *loop)
{
    ck_assert_int_eq(ipu_engine_new(loop->program, &loop->engine), IPU_OK);
    ck_assert_int_eq(
        ipu_engine_connect(loop->engine, "x", loop->x, sizeof loop->x), IPU_OK);
    ipu_engine_connect(loop->engine, "y", loop->y, sizeof loop->y);
    ipu_engine_connect(loop->engine, "result", loop->result,
                       sizeof loop->result);
}

static void end(struct loop *loop)
{
    ipu_engine_free(loop->engine);
    ipu_executable_free(loop->program);
}

/* Reads this worker's rows of a step. */
static void feed(struct loop *loop, int step, int workers)
{
    const int first = (step * workers + ranks_rank()) * BATCH;

    for (int i = 0; i < BATCH; i++) {
        memcpy(loop->x[i], lines_x[(first + i) % ROWS], sizeof loop->x[i]);
        loop->y[i][0] = lines_y[(first + i) % ROWS];
    }
}

static hvd_strategy *strategy_with(int servers)
{
    hvd_strategy_options o;
    hvd_strategy *strategy;

    hvd_strategy_options_init(&o, sizeof o);
    MUST(hvd_strategy_options_set_optimizer(&o, HVD_SGD));
    o.learning_rate = 0.1;
    o.servers = servers;
    o.kind =
        servers > 0 ? HVD_STRATEGY_PARAMETER_SERVER : HVD_STRATEGY_ALL_REDUCE;
    MUST(hvd_strategy_new(&o, &strategy));
    return strategy;
}

static void run(struct loop *loop)
{
    ck_assert_msg(ipu_engine_run(loop->engine) == IPU_OK, "%s %s",
                  ipu_last_error(), hvd_last_error());
}

/* Makes steps, and compares with gradient descent over the rows of all workers.
 */
static void descend(struct loop *loop, hvd_strategy *strategy, int steps,
                    int workers)
{
    double w[FEATURES], b = (double)loop->v[1].value[0];

    for (int k = 0; k < FEATURES; k++)
        w[k] = (double)loop->v[0].value[k];
    for (int step = 0; step < steps; step++) {
        feed(loop, step, workers);
        run(loop);
        MUST(hvd_strategy_step(strategy));
    }
    lines_descend(BATCH * workers, 0, steps, 0.1, w, &b);
    for (int k = 0; k < FEATURES; k++)
        ck_assert_double_eq_tol((double)loop->v[0].value[k], w[k], 1e-5);
    ck_assert_double_eq_tol((double)loop->v[1].value[0], b, 1e-5);
}

/* Another program, of the same variables. */
static void predict(struct loop *loop)
{
    struct loop other = {.net = loop->net};
    double expected;

    ck_assert_int_eq(build(&other, HVD_MODE_PREDICT, false), 2);
    start(&other);
    MUST(hvd_net_connect(other.net, NULL, other.engine));
    feed(&other, 0, 1);
    run(&other);
    for (int i = 0; i < BATCH; i++) {
        expected = (double)other.v[1].value[0];
        for (int k = 0; k < FEATURES; k++)
            expected += (double)other.v[0].value[k] * (double)other.x[i][k];
        ck_assert_double_eq_tol((double)other.result[i][0], expected, 1e-5);
    }
    end(&other);
}

LOOP_TEST(steps_are_those_of_gradient_descent, 0, 3)
{
    const int workers = ranks_size() - _i;
    struct loop loop = {.engine = NULL};
    hvd_strategy *strategy;

    if (workers < 1)
        return;
    lines_fill();
    /* Other first values on each rank: those of rank 0 count. */
    MUST(hvd_net_new(1 + (uint64_t)ranks_rank(), &loop.net));
    ck_assert_int_eq(build(&loop, HVD_MODE_TRAIN, true), 2);
    ck_assert_ptr_null(loop.v[0].value);
    strategy = strategy_with(_i);
    if (ranks_rank() >= workers) {
        MUST(hvd_net_connect(loop.net, strategy, NULL));
        MUST(hvd_strategy_serve(strategy));
    } else {
        start(&loop);
        MUST(hvd_net_connect(loop.net, strategy, loop.engine));
        ck_assert_ptr_null(loop.v[0].mean);
        descend(&loop, strategy, 12, workers);
        predict(&loop);
    }
    hvd_strategy_free(strategy);
    end(&loop);
    hvd_net_free(loop.net);
}

TEST(mistakes_are_told)
{
    struct loop loop = {.engine = NULL};
    hvd_strategy *strategy;

    MUST(hvd_net_new(1, &loop.net));
    ck_assert_int_lt(hvd_net_gradients(loop.net, (ipu_tensor){0}), 0);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "for training"));
    ck_assert_int_lt(hvd_net_connect(loop.net, NULL, NULL), 0);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "has been built"));
    build(&loop, HVD_MODE_TRAIN, true);
    start(&loop);
    /* A run before the network is connected. */
    ck_assert_int_lt(ipu_engine_run(loop.engine), 0);
    ck_assert_ptr_nonnull(strstr(hvd_last_error(), "call hvd_net_connect"));
    end(&loop);
    /* A program that has no gradients. */
    loop.engine = NULL;
    build(&loop, HVD_MODE_TRAIN, false);
    start(&loop);
    strategy = strategy_with(0);
    ck_assert_int_lt(hvd_net_connect(loop.net, strategy, loop.engine), 0);
    ck_assert_msg(strstr(hvd_last_error(), "gradient/line/"), "%s",
                  hvd_last_error());
    hvd_strategy_free(strategy);
    end(&loop);
    hvd_net_free(loop.net);
}

RANKS_TEST_MAIN(HVD_STARTS_MPI, "mpi_net_connect")
