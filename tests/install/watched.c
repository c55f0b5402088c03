/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a line: the same program is chief, worker, parameter server and
 * evaluator, by its TF_CONFIG, and ends when two evaluations do not improve. */
#include <hvd.h>
#include <hvd_estimator.h>
#include <hvd_model.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 240, MANY = 1000000 };
static float x[POINTS], y[POINTS];

/* The first half is trained on, the other evaluated; context: not NULL. */
static hvd_dataset *data(void *context)
{
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {1}},
                                        {"y", HVD_FLOAT32, 1, {1}}};
    const int first = context ? POINTS / 2 : 0;
    const void *const arrays[] = {x + first, y + first};
    hvd_dataset *d;

    for (int i = 0; i < POINTS; i++) {
        x[i] = (float)sin(i * 1.3);
        y[i] = 3 * x[i] - 1 + (float)(0.1 * cos(i * 7.1));
    }
    d = hvd_dataset_memory(2, components, arrays, POINTS / 2, NULL, NULL);
    return hvd_dataset_batch_global(d, context ? 50 : 24, !context);
}

static ipu_tensor build(hvd_net *net, ipu_tensor in, void *context)
{
    (void)context;
    return hvd_dense(net, "line", in, 1, HVD_LINEAR);
}

static ipu_tensor squares(hvd_net *net, ipu_tensor out, void *context)
{
    (void)context;
    return ipu_squared_error(hvd_net_graph(net), out, hvd_net_input(net, "y"));
}

static void print_loss(void *context, int64_t step, double loss, double speed)
{
    (void)context, (void)speed;
    printf("step %d loss %f\n", (int)step, loss);
}

static void check(int status)
{
    if (status < 0)
        exit(fprintf(stderr, "watched: %s\n", hvd_last_error()) > 0);
}

/* watched FOLDER [STEPS] */
int main(int argc, char **argv)
{
    hvd_results found = {.size = sizeof found};
    hvd_early_stopping_options stopping;
    hvd_estimator_options options;
    hvd_estimator *e;
    hvd_train_spec train;
    hvd_eval_spec eval;
    hvd_model model;
    hvd_hook *stop;

    check(hvd_estimator_init());
    hvd_model_init(&model, sizeof model);
    model.build = build;
    model.loss = squares;
    hvd_early_stopping_options_init(&stopping, sizeof stopping);
    stopping.patience = 2;
    stopping.min_delta = 1e-3;
    check(hvd_early_stopping_new(&stopping, &stop));
    hvd_estimator_options_init(&options, sizeof options);
    options.model = &model;
    options.model_dir = argv[1];
    options.rate.rate = 0.01;
    options.log = print_loss;
    options.log_step_count_steps = 10;
    options.save_checkpoints_steps = 100;
    options.hooks = &stop;
    options.nhooks = 1;
    check(hvd_estimator_new(&options, &e));
    hvd_train_spec_init(&train, sizeof train);
    train.max_steps = argc > 2 ? atoi(argv[2]) : MANY;
    train.data = data;
    hvd_eval_spec_init(&eval, sizeof eval);
    eval.start_delay_secs = eval.throttle_secs = 0;
    eval.data = data;
    eval.data_context = &eval;
    check(hvd_estimator_train_and_evaluate(e, &train, &eval, NULL, &found));
    if (found.rows == POINTS / 2)
        printf("evaluated step %d: loss %f\n", (int)found.global_step,
               found.loss);
    hvd_estimator_free(e);
    hvd_hook_free(stop);
    return hvd_shutdown() < 0;
}
