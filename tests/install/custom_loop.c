/* SPDX-License-Identifier: Apache-2.0 */
/* A training loop of its own, on the installed libraries: the program runs the
 * device, and a strategy averages gradients and updates the variables. It
 * learns y = 2 a - 3 b + 1. */
#include <hvd.h>
#include <hvd_dataset.h>
#include <hvd_model.h>
#include <hvd_strategy.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 480, BATCH = 24, STEPS = 400 };

static void check(int status)
{
    if (status < 0) {
        fprintf(stderr, "custom_loop: %s %s\n", hvd_last_error(),
                ipu_last_error());
        exit(1);
    }
}

/* This rank's part of the data, in another order in each epoch. */
static hvd_dataset *data(void)
{
    static float ab[POINTS][2], y[POINTS][1];
    const hvd_component components[] = {{"ab", HVD_FLOAT32, 1, {2}},
                                        {"y", HVD_FLOAT32, 1, {1}}};
    const void *const arrays[] = {ab, y};
    hvd_dataset *d;

    for (int i = 0; i < POINTS; i++) {
        ab[i][0] = (float)sin(i);
        ab[i][1] = (float)cos(1.7 * i);
        y[i][0] = 2 * ab[i][0] - 3 * ab[i][1] + 1;
    }
    d = hvd_dataset_memory(2, components, arrays, POINTS, NULL, NULL);
    d = hvd_dataset_shard(hvd_dataset_shuffle(d, 1, 0), hvd_size(), hvd_rank());
    return hvd_dataset_batch(d, BATCH / hvd_size(), 1);
}

/* Builds forward and backward pass of a batch. */
static void build(ipu_graph *g, hvd_net *net, ipu_infeed *feed,
                  const hvd_variable **v)
{
    ipu_tensor in[2], y;

    check(hvd_net_begin(net, g, HVD_MODE_TRAIN));
    check(ipu_infeed_dequeue(g, feed, in));
    y = hvd_dense(net, "unit", in[0], 1, HVD_LINEAR);
    check(hvd_net_gradients(net, ipu_mean_squared_error(g, y, in[1])));
    check(hvd_net_end(net, v));
}

int main(void)
{
    hvd_strategy_options options;
    hvd_strategy *strategy;
    const hvd_variable *v;
    hvd_net *net;
    ipu_infeed *feed;
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine;

    check(hvd_init());
    check(hvd_net_new(1, &net));
    check(hvd_infeed_new(data(), NULL, NULL, &feed));
    check(ipu_infeed_start(feed));
    check(ipu_graph_new(&graph));
    build(graph, net, feed, &v);
    check(ipu_compile(graph, NULL, &executable));
    ipu_graph_free(graph);
    check(ipu_engine_new(executable, &engine));
    hvd_strategy_options_init(&options, sizeof options);
    options.optimizer = HVD_SGD;
    options.learning_rate = 0.2;
    check(hvd_strategy_new(&options, &strategy));
    check(hvd_net_connect(net, strategy, engine));
    for (int step = 1; step <= STEPS; step++) {
        check(ipu_engine_run(engine));
        check(hvd_strategy_step(strategy));
        if (step % 20 == 0 && hvd_rank() == 0)
            printf("step %d: y = %.5f a + %.5f b + %.5f\n", step,
                   (double)v[0].value[0], (double)v[0].value[1],
                   (double)v[1].value[0]);
    }
    hvd_strategy_free(strategy);
    ipu_engine_free(engine);
    ipu_executable_free(executable);
    ipu_infeed_free(feed);
    hvd_net_free(net);
    return hvd_shutdown() < 0;
}
