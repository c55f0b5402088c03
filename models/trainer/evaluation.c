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

static size_t rows_bytes(const struct model *model)
{
    return (size_t)model->rows * sizeof(float);
}

static int make_buffers(struct evaluation *e)
{
    const struct model *m = e->model;

    e->input = model_memory((size_t)model_input_count(m) * sizeof(float));
    e->labels = model_memory(rows_bytes(m));
    e->losses = model_memory(rows_bytes(m));
    e->logits = model_memory(rows_bytes(m) * (size_t)m->classes);
    if (!e->input || !e->labels || !e->losses || !e->logits)
        return problem_set("no memory for a batch");
    return 0;
}

static int connect_streams(struct evaluation *e)
{
    const struct model *m = e->model;
    size_t input = (size_t)model_input_count(m) * sizeof(float);

    if (ipu_engine_connect(e->engine, m->input_name, e->input, input) < 0 ||
        ipu_engine_connect(e->engine, m->label_name, e->labels, rows_bytes(m)) <
            0 ||
        ipu_engine_connect(e->engine, "losses", e->losses, rows_bytes(m)) < 0 ||
        ipu_engine_connect(e->engine, "logits", e->logits,
                           rows_bytes(m) * (size_t)m->classes) < 0)
        return program_device_problem();
    return 0;
}

int evaluation_init(struct evaluation *e, const struct model *model, int chips,
                    double proportion, struct progress *progress)
{
    *e = (struct evaluation){.model = model};
    if (make_buffers(e) < 0 ||
        program_evaluation(model, chips, proportion, progress, &e->program) < 0)
        return PROBLEM;
    if (ipu_engine_new(e->program, &e->engine) < 0)
        return program_device_problem();
    return connect_streams(e);
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

/* Returns true if the largest logit of a row is that of its class. */
static bool is_correct(const struct evaluation *e, int64_t row)
{
    int64_t classes = e->model->classes;
    const float *logits = e->logits + row * classes;
    int64_t best = 0;

    for (int64_t k = 1; k < classes; k++)
        if (logits[k] > logits[best])
            best = k;
    return best == e->labels[row];
}

void evaluation_add(const struct evaluation *e, int64_t rows, double *loss_sum,
                    double *correct)
{
    for (int64_t i = 0; i < rows; i++) {
        *correct += is_correct(e, i);
        *loss_sum += (double)e->losses[i];
    }
}

void evaluation_fini(struct evaluation *e)
{
    ipu_engine_free(e->engine);
    ipu_executable_free(e->program);
    free(e->input);
    free(e->labels);
    free(e->losses);
    free(e->logits);
    *e = (struct evaluation){0};
}
