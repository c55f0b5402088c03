/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluates.c - evaluates [VICTIM]: trains a network elastically, evaluates and
 * predicts, and does both again while rank VICTIM dies, in the world of those
 * who are left (hvd_recover). They have to find the same, from all rows.
 */
#include <hvd_elastic.h>
#include <hvd_estimator.h>
#include <hvd_model.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 101 };

static float places[ROWS][2];
static int32_t classes[ROWS];
static int victim; /* -1: nobody dies */

static void draw(void)
{
    for (int i = 0; i < ROWS; i++) {
        places[i][0] = sinf((float)i);
        places[i][1] = cosf((float)i * 3);
        classes[i] = places[i][0] > places[i][1];
    }
}

static hvd_dataset *data(bool train)
{
    const hvd_component components[] = {{"places", HVD_FLOAT32, 1, {2}},
                                        {"classes", HVD_INT32, 0, {0}}};
    const void *const arrays[] = {places, classes};
    hvd_dataset *d =
        hvd_dataset_memory(2, components, arrays, ROWS, NULL, NULL);

    return hvd_dataset_batch(d, 4, train);
}

static ipu_tensor build(hvd_net *net, ipu_tensor x, void *context)
{
    (void)context;
    x = hvd_dense(net, "hidden", x, 8, HVD_TANH);
    return hvd_dense(net, "logits", x, 2, HVD_LINEAR);
}

/* Counts the rows of this rank, and has the victim die at its first ones. */
static int visit(void *context, int64_t rows, const void *const *outputs,
                 const float *losses)
{
    (void)outputs, (void)losses;
    if (hvd_rank() == victim)
        raise(SIGKILL);
    *(double *)context += (double)rows;
    return 0;
}

typedef int use_fn(hvd_estimator *e, hvd_eval_spec *spec, hvd_results *found);

static int evaluate(hvd_estimator *e, hvd_eval_spec *spec, hvd_results *found)
{
    return hvd_estimator_evaluate(e, data(false), spec, found);
}

static int predict(hvd_estimator *e, hvd_eval_spec *spec, hvd_results *found)
{
    double *rows = spec->visit_context;
    int status = hvd_estimator_predict(e, data(false), spec);

    if (status == 0)
        status = hvd_allreduce(rows, rows, 1, HVD_FLOAT64, HVD_SUM);
    found->rows = (int64_t)*rows;
    return status;
}

/* Does so until it has worked in a world without lost ranks. */
static int use(use_fn *function, hvd_estimator *e, hvd_results *found)
{
    hvd_eval_spec spec;
    double rows;
    int status;

    hvd_eval_spec_init(&spec, sizeof spec);
    spec.visit = visit;
    spec.visit_context = &rows;
    do {
        rows = 0;
        *found = (hvd_results){.size = sizeof *found};
        status = function(e, &spec, found);
        if (status < 0 && hvd_check() == HVD_ERR_LOST)
            victim = -1;
    } while (status < 0 && hvd_check() == HVD_ERR_LOST &&
             hvd_recover(NULL, 0) >= 0);
    return status;
}

static int run(hvd_estimator *e, int dies)
{
    hvd_results before = {.size = sizeof before}, after = before;
    hvd_train_spec spec;
    int status;

    hvd_train_spec_init(&spec, sizeof spec);
    spec.max_steps = 20;
    victim = -1;
    status = hvd_estimator_train(e, data(true), &spec, NULL);
    if (status >= 0)
        status = use(evaluate, e, &before);
    for (int way = 0; way < 2 && status >= 0; way++) {
        victim = dies >= 0 ? dies - way : -1;
        status = use(way == 0 ? evaluate : predict, e, &after);
        printf("%s %d rows of %d with %d ranks: %s\n",
               way == 0 ? "evaluated" : "predicted", (int)after.rows, ROWS,
               hvd_size(),
               way == 0 && !(fabs(after.loss - before.loss) < 1e-6)
                   ? "another loss"
                   : "right");
        fflush(stdout);
    }
    return status;
}

int main(int argc, char **argv)
{
    hvd_estimator_options options;
    hvd_model model;
    hvd_estimator *e = NULL;
    int status = hvd_init();

    draw();
    hvd_model_init(&model, sizeof model);
    model.build = build;
    hvd_estimator_options_init(&options, sizeof options);
    options.model = &model;
    options.rate.rate = 0.05;
    options.elastic = 1;
    if (status >= 0)
        status = hvd_estimator_new(&options, &e);
    if (status >= 0)
        status = run(e, argc > 1 ? atoi(argv[1]) : -1);
    if (status < 0)
        printf("failed: %s\n", hvd_last_error());
    hvd_estimator_free(e);
    return hvd_shutdown() < 0 || status < 0;
}
