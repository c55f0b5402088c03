/* SPDX-License-Identifier: Apache-2.0 */
/*
 * regression MILLISECONDS [BATCH [LEAST]] - a task of an elastic cluster that
 * fits a line by an estimator, as anybody's program would, as long as LEAST
 * ranks are left; join_training.bats compiles it, starts it, kills it, and
 * starts it again. Each step takes so long. It writes
 *
 *     end rank R of N step S loss L unit U
 *
 * The data has 240 samples in another order in each epoch. A hook keeps the
 * number of steps that were made: what commits keep of it is what newcomers
 * get, so that it must be the step on all ranks, and else it writes "wrong".
 */
#include <hvd.h>
#include <hvd_estimator.h>
#include <hvd_model.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SAMPLES = 240 };

static float xs[SAMPLES], ys[SAMPLES];
static int pause_us, batch = 4;
static int64_t steps; /* the hook's */

static hvd_dataset *make_data(void)
{
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {1}},
                                        {"y", HVD_FLOAT32, 1, {1}}};
    const void *const arrays[] = {xs, ys};
    hvd_dataset *d;

    for (int i = 0; i < SAMPLES; i++) {
        xs[i] = (float)(i % 60) / 30 - 1;
        ys[i] = 3 * xs[i] + 1;
    }
    d = hvd_dataset_memory(2, components, arrays, SAMPLES, NULL, NULL);
    return hvd_dataset_batch(hvd_dataset_shuffle(d, 5, 0), batch, 1);
}

static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    return hvd_dense(net, "unit", x, 1, HVD_LINEAR);
}

static ipu_tensor squared_error(hvd_net *net, ipu_tensor y, void *context)
{
    (void)context;
    return ipu_squared_error(hvd_net_graph(net), y, hvd_net_input(net, "y"));
}

static int count(void *context, hvd_estimator *estimator, hvd_event *event)
{
    (void)context, (void)estimator;
    usleep((useconds_t)pause_us);
    if (++steps != event->step)
        printf("wrong: %d steps are counted, %d were made\n", (int)steps,
               (int)event->step);
    return 0;
}

static const hvd_checkpoint_tensor *list(void *context,
                                         hvd_estimator *estimator, int32_t *n)
{
    static const int64_t one = 1;
    static const hvd_checkpoint_tensor tensor = {.name = "steps",
                                                 .dtype = HVD_INT64,
                                                 .ndim = 1,
                                                 .shape = &one,
                                                 .data = &steps};

    (void)context, (void)estimator;
    *n = 1;
    return &tensor;
}

static void check(int status)
{
    if (status < 0) {
        fprintf(stderr, "%d: %s\n", status, hvd_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    hvd_hook hook = {.size = sizeof hook,
                     .name = "count",
                     .after_step = count,
                     .tensors = list};
    hvd_hook *const hooks[] = {&hook};
    hvd_results results = {.size = sizeof results};
    hvd_estimator_options options;
    hvd_estimator *estimator;
    hvd_train_spec train;
    hvd_model model;
    float unit;

    setvbuf(stdout, NULL, _IOLBF, 0);
    pause_us = argc > 1 ? 1000 * atoi(argv[1]) : 0;
    batch = argc > 2 ? atoi(argv[2]) : batch;
    check(hvd_init());
    hvd_model_init(&model, sizeof model);
    model.build = build;
    model.loss = squared_error;
    hvd_estimator_options_init(&options, sizeof options);
    options.model = &model;
    options.optimizer = "momentum";
    options.rate.rate = 0.01;
    options.elastic = argc > 3 ? atoi(argv[3]) : 1;
    options.elastic_log = "events";
    options.elastic_steps = 5;
    options.hooks = hooks;
    options.nhooks = 1;
    check(hvd_estimator_new(&options, &estimator));
    hvd_train_spec_init(&train, sizeof train);
    train.epochs = 20;
    check(hvd_estimator_train(estimator, make_data(), &train, NULL));
    check(hvd_estimator_evaluate(estimator, make_data(), NULL, &results));
    check(hvd_estimator_variable(estimator, "unit/kernel", &unit, 1));
    printf("end rank %d of %d step %d loss %.7g unit %.9g\n", hvd_rank(),
           hvd_size(), (int)results.global_step, results.loss, (double)unit);
    hvd_estimator_free(estimator);
    check(hvd_shutdown());
    return 0;
}
