/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resumes FOLDER LOG STEPS [VICTIM] - trains two classes elastically up to so
 * many steps, from the checkpoints of a folder on, with a file of events. Rank
 * VICTIM dies when it first builds the network: after it has met the others,
 * and before they have taken up a checkpoint.
 */
#include <hvd_estimator.h>
#include <hvd_model.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 64 };

static bool dies; /* this process is the victim */

static hvd_dataset *data(void)
{
    static float places[ROWS];
    static int32_t classes[ROWS];
    const hvd_component components[] = {{"place", HVD_FLOAT32, 1, {1}},
                                        {"class", HVD_INT32, 0, {0}}};
    const void *const arrays[] = {places, classes};
    hvd_dataset *d;

    for (int i = 0; i < ROWS; i++) {
        places[i] = (float)i / ROWS;
        classes[i] = i > ROWS / 2;
    }
    d = hvd_dataset_memory(2, components, arrays, ROWS, NULL, NULL);
    return hvd_dataset_batch(hvd_dataset_repeat(d, -1), 4, 1);
}

static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    if (dies)
        raise(SIGKILL);
    return hvd_dense(net, "logits", x, 2, HVD_LINEAR);
}

int main(int argc, char **argv)
{
    hvd_estimator_options options;
    hvd_train_spec spec;
    hvd_model model;
    hvd_estimator *e = NULL;
    int status = hvd_init();

    hvd_model_init(&model, sizeof model);
    model.build = build;
    hvd_estimator_options_init(&options, sizeof options);
    options.model = &model;
    options.rate.rate = 0.05;
    options.elastic = 1;
    options.elastic_steps = 2;
    options.model_dir = argv[1];
    options.elastic_log = argv[2];
    hvd_train_spec_init(&spec, sizeof spec);
    spec.max_steps = atoi(argv[3]);
    dies = argc > 4 && status >= 0 && hvd_rank() == atoi(argv[4]);
    if (status >= 0)
        status = hvd_estimator_new(&options, &e);
    if (status >= 0)
        status = hvd_estimator_train(e, data(), &spec, NULL);
    if (status < 0)
        printf("failed: %s\n", hvd_last_error());
    hvd_estimator_free(e);
    return hvd_shutdown() < 0 || status < 0;
}
