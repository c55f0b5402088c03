/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a network of its own on data of its own, with the installed library
 * alone: three spirals, which a perceptron tells apart. */
#include <hvd.h>
#include <hvd_estimator.h>
#include <hvd_model.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 600, SPIRALS = 3 };
static float places[POINTS][2];
static int32_t spirals[POINTS];

static void draw(void)
{
    for (int i = 0; i < POINTS; i++) {
        int spiral = i % SPIRALS;
        double r = (double)i / POINTS, wobble = sin(i * 12.9898) * 0.1;
        double angle = 4 * r + 2.0944 * spiral + wobble;

        places[i][0] = (float)(r * cos(angle));
        places[i][1] = (float)(r * sin(angle));
        spirals[i] = spiral;
    }
}

static hvd_dataset *data(int global_batch, int train)
{
    const hvd_component components[] = {{"places", HVD_FLOAT32, 1, {2}},
                                        {"spirals", HVD_INT32, 0, {0}}};
    const void *const arrays[] = {places, spirals};
    hvd_dataset *d =
        hvd_dataset_memory(2, components, arrays, POINTS, NULL, NULL);

    if (train)
        d = hvd_dataset_shuffle(d, 7, 0);
    return hvd_dataset_batch_global(d, global_batch, train);
}

static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    x = hvd_dense(net, "hidden1", x, 32, HVD_TANH);
    x = hvd_net_next_piece(net, x); /* here may be another device */
    x = hvd_dropout(net, hvd_dense(net, "hidden2", x, 32, HVD_TANH), 0);
    return hvd_dense(net, "logits", x, SPIRALS, HVD_LINEAR);
}

static void print_loss(void *context, int64_t step, double loss, double speed)
{
    (void)context, (void)speed;
    printf("step %d loss %.6f\n", (int)step, loss);
}

static int check(int status)
{
    if (status < 0)
        exit(fprintf(stderr, "spirals: %s\n", hvd_last_error()) > 0);
    return status;
}

/* spirals REPLICAS STEPS [FOLDER [SERVERS [STAGES]]] */
int main(int argc, char **argv)
{
    hvd_estimator_options options;
    hvd_estimator *estimator;
    hvd_results results = {.size = sizeof results};
    hvd_train_spec spec;
    hvd_model model;

    check(hvd_init());
    draw();
    hvd_model_init(&model, sizeof model);
    model.build = build;
    hvd_estimator_options_init(&options, sizeof options);
    options.model = &model;
    options.replicas = argc > 1 ? atoi(argv[1]) : 1;
    options.model_dir = argc > 3 ? argv[3] : NULL;
    options.rate.rate = 0.01;
    options.servers = argc > 4 ? atoi(argv[4]) : 0;
    options.stages = argc > 5 ? atoi(argv[5]) : 0;
    options.accumulate = options.stages > 0 ? 4 : 1;
    options.skip_nonfinite = argc > 4 ? 0 : 3;
    options.ema_decay = 0.9;
    options.log_step_count_steps = 10;
    options.save_checkpoints_steps = 25;
    options.log = print_loss;
    check(hvd_estimator_new(&options, &estimator));
    hvd_train_spec_init(&spec, sizeof spec);
    spec.max_steps = argc > 2 ? atoi(argv[2]) : 200;
    check(hvd_estimator_train(estimator, data(24, 1), &spec, &results));
    check(hvd_estimator_evaluate(estimator, data(50, 0), NULL, &results));
    if (hvd_rank() == 0)
        printf("%d points, %.2f %% right, loss %.6f\n", (int)results.rows,
               100 * results.accuracy, results.loss);
    hvd_estimator_free(estimator);
    return check(hvd_shutdown());
}
