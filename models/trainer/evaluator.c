/* SPDX-License-Identifier: Apache-2.0 */
#include "trainer/evaluator.h"

#include "model/weights.h"
#include "output/problem.h"
#include "trainer/evaluation.h"
#include "trainer/program.h"

#include <stdlib.h>

struct evaluator {
    struct model *model; /* owned */
    float **values;      /* owned, [variables], each owned */
    struct evaluation evaluation;
};

static int prepare(struct evaluator *e, int threads, hvd_progress *progress)
{
    if (ipu_set_threads(threads) < 0)
        return program_device_problem();
    e->values = model_values(e->model);
    if (!e->values)
        return PROBLEM;
    if (evaluation_init(&e->evaluation, e->model, EVALUATION_ON_HOST, false, 0,
                        progress) < 0)
        return PROBLEM;
    return evaluation_place(&e->evaluation, e->values);
}

int evaluator_new(struct model *model, int threads, hvd_progress *progress,
                  struct evaluator **evaluator)
{
    struct evaluator *fresh = model ? calloc(1, sizeof *fresh) : NULL;
    int status = PROBLEM; /* without a model, its text is kept */

    *evaluator = NULL;
    if (fresh) {
        fresh->model = model;
        status = prepare(fresh, threads, progress);
    } else if (model) {
        status = problem_set("no memory for the network");
        model_free(model);
    }
    if (status == 0)
        *evaluator = fresh;
    else
        evaluator_free(fresh);
    return status;
}

void evaluator_free(struct evaluator *e)
{
    if (!e)
        return;
    evaluation_fini(&e->evaluation);
    model_values_free(e->model, e->values);
    model_free(e->model);
    free(e);
}

struct safetensors_tensor *evaluator_tensors(const struct evaluator *e,
                                             int *count)
{
    *count = e->model->nvariables;
    return weights_tensors(e->model);
}

float *const *evaluator_values(const struct evaluator *e)
{
    return e->values;
}

int evaluator_measure(struct evaluator *e, fill_test_fn *fill, void *context,
                      double *loss_sum, double *correct)
{
    return evaluation_measure(&e->evaluation, fill, context, NULL, NULL,
                              loss_sum, correct);
}
