/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest model, on the installed library: one dense unit, which learns by
 * plain SGD that 1 gives 1. Each step leaves a fifth of the error. */
#include <hvd.h>
#include <hvd_estimator.h>
#include <hvd_model.h>
#include <stdio.h>
#include <stdlib.h>

static hvd_dataset *data(int64_t count)
{
    static const float one = 1;
    const hvd_component components[] = {{"x", HVD_FLOAT32, 1, {1}},
                                        {"y", HVD_FLOAT32, 1, {1}}};
    const void *const arrays[] = {&one, &one};
    hvd_dataset *d = hvd_dataset_memory(2, components, arrays, 1, NULL, NULL);

    return hvd_dataset_batch(hvd_dataset_repeat(d, count), 10, 1);
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

static void print_loss(void *context, int64_t step, double loss, double speed)
{
    (void)context, (void)speed;
    printf("step %d loss %.9f\n", (int)step, loss);
}

static int print_first(void *context, int64_t rows, const void *const *outputs,
                       const float *losses)
{
    (void)context, (void)losses;
    if (rows > 0 && hvd_rank() == 0)
        printf("1 gives %.6f\n", (double)*(const float *)outputs[0]);
    return 0;
}

static void check(int status)
{
    if (status < 0) {
        fprintf(stderr, "dense1: %s\n", hvd_last_error());
        exit(1);
    }
}

/* dense1 [REPLICAS] */
int main(int argc, char **argv)
{
    hvd_estimator_options options;
    hvd_estimator *estimator;
    hvd_results results = {.size = sizeof results};
    hvd_train_spec train;
    hvd_eval_spec eval;
    hvd_model model;

    check(hvd_init());
    hvd_model_init(&model, sizeof model);
    model.build = build;
    model.loss = squared_error;
    hvd_estimator_options_init(&options, sizeof options);
    options.model = &model;
    options.optimizer = "sgd";
    options.rate.rate = 0.2;
    options.replicas = argc > 1 ? atoi(argv[1]) : 1;
    options.log_step_count_steps = 1;
    options.log = print_loss;
    check(hvd_estimator_new(&options, &estimator));
    hvd_train_spec_init(&train, sizeof train);
    train.max_steps = 10;
    check(hvd_estimator_train(estimator, data(10000), &train, NULL));
    check(hvd_estimator_evaluate(estimator, data(40), NULL, &results));
    if (hvd_rank() == 0)
        printf("evaluation loss %.9f\n", results.loss);
    hvd_eval_spec_init(&eval, sizeof eval);
    eval.steps = 1;
    eval.visit = print_first;
    check(hvd_estimator_predict(estimator, data(40), &eval));
    hvd_estimator_free(estimator);
    check(hvd_shutdown());
    return 0;
}
