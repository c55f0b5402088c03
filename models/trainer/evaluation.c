/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluation.c - owns the program, the engine and the buffers of an evaluation.
 * Its variables are the memory that the trainer, or the sample, passes to
 * evaluation_place. Rows that are blank are computed, too; evaluation_add
 * leaves them out.
 */
#include "trainer/evaluation.h"

#include "output/problem.h"
#include "trainer/program.h"

#include <stdlib.h>

/* All elements have four bytes. */
static size_t bytes_of(const struct model_tensor *tensor)
{
    return (size_t)model_tensor_count(tensor) * sizeof(float);
}

static size_t losses_bytes(const struct model *model)
{
    return (size_t)model->rows * sizeof(float);
}

/* Makes the memory of a tensor, and connects it by its name. */
static int connect_tensor(struct evaluation *e,
                          const struct model_tensor *tensor, void **memory)
{
    *memory = model_memory(bytes_of(tensor));
    if (!*memory)
        return problem_set("no memory for a batch");
    return ipu_engine_connect(e->engine, tensor->name, *memory,
                              bytes_of(tensor)) < 0
               ? program_device_problem()
               : 0;
}

static int connect_losses(struct evaluation *e)
{
    e->losses = model_memory(losses_bytes(e->model));
    if (!e->losses)
        return problem_set("no memory for a batch");
    return ipu_engine_connect(e->engine, "losses", e->losses,
                              losses_bytes(e->model)) < 0
               ? program_device_problem()
               : 0;
}

static int connect_all(struct evaluation *e)
{
    const struct model *m = e->model;
    int status = e->predicts ? 0 : connect_losses(e);

    for (int i = 0; i < m->ninputs && status == 0; i++)
        if (!e->predicts || model_predicts_from(m, i))
            status = connect_tensor(e, &m->inputs[i], &e->inputs[i]);
    for (int i = 0; i < m->noutputs && status == 0; i++)
        status = connect_tensor(e, &m->outputs[i], &e->outputs[i]);
    return status;
}

int evaluation_init(struct evaluation *e, const struct model *model, int chips,
                    bool predicts, double proportion, hvd_progress *progress)
{
    *e = (struct evaluation){.model = model, .predicts = predicts};
    if (program_evaluation(model, chips, predicts, proportion, progress,
                           &e->program) < 0)
        return PROBLEM;
    if (ipu_engine_new(e->program, &e->engine) < 0)
        return program_device_problem();
    return connect_all(e);
}

int evaluation_place(struct evaluation *e, float *const *values)
{
    for (int i = 0; i < e->model->nvariables; i++) {
        const struct model_variable *v = &e->model->variables[i];

        if (ipu_engine_place(e->engine, v->name, values[i],
                             (size_t)v->count * sizeof(float)) < 0)
            return program_device_problem();
    }
    return 0;
}

int evaluation_run(struct evaluation *e)
{
    return ipu_engine_run(e->engine) < 0 ? program_device_problem() : 0;
}

int evaluation_visit(struct evaluation *e, fill_test_fn *fill, void *context,
                     visit_batch_fn *visit, void *visit_context)
{
    int status = 0;

    for (int64_t step = 0; status == 0; step++) {
        const struct trainer_results results = {
            .rows = fill(context, step, e->inputs),
            .losses = e->losses,
            .inputs = e->inputs,
            .outputs = e->outputs,
            .model = e->model};

        if (results.rows <= 0)
            return results.rows < 0 ? (int)results.rows : 0;
        status = evaluation_run(e);
        if (status == 0)
            status = visit(visit_context, &results);
    }
    return status;
}

/* Returns true if the largest logit of a row is that of its class. The first
 * output has logits, and the second input the classes. */
static bool is_correct(const struct trainer_results *r, int64_t row)
{
    const int32_t *labels = r->inputs[1];
    int64_t classes = r->model->outputs[0].shape[1];
    const float *logits = (const float *)r->outputs[0] + row * classes;
    int64_t best = 0;

    for (int64_t k = 1; k < classes; k++)
        if (logits[k] > logits[best])
            best = k;
    return best == labels[row];
}

struct sums {
    double *loss, *correct;
    visit_batch_fn *visit; /* NULL: nobody looks */
    void *visit_context;
};

static int add_results(void *context, const struct trainer_results *r)
{
    const struct sums *sums = context;

    for (int64_t i = 0; i < r->rows; i++) {
        *sums->correct += is_correct(r, i);
        *sums->loss += (double)r->losses[i];
    }
    return sums->visit ? sums->visit(sums->visit_context, r) : 0;
}

int evaluation_measure(struct evaluation *e, fill_test_fn *fill, void *context,
                       visit_batch_fn *visit, void *visit_context,
                       double *loss_sum, double *correct)
{
    struct sums sums = {loss_sum, correct, visit, visit_context};

    return evaluation_visit(e, fill, context, add_results, &sums);
}

void evaluation_fini(struct evaluation *e)
{
    ipu_engine_free(e->engine);
    ipu_executable_free(e->program);
    for (int i = 0; i < MODEL_MOST_INPUTS; i++)
        free(e->inputs[i]);
    for (int i = 0; i < MODEL_MOST_OUTPUTS; i++)
        free(e->outputs[i]);
    free(e->losses);
    *e = (struct evaluation){0};
}
