/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluation.h - evaluates a model without training it: a program on an engine,
 * and the memory of a batch and of its results.
 */
#ifndef MODELS_EVALUATION_H
#define MODELS_EVALUATION_H

#include "model/model.h"
#include "trainer/trainer.h"

#include <hvd_progress.h>

struct evaluation {
    const struct model *model; /* borrowed */
    bool predicts;
    ipu_executable *program;
    ipu_engine *engine;
    /* Owned, each, as the next: those of a batch. */
    void *inputs[MODEL_MOST_INPUTS];
    void *outputs[MODEL_MOST_OUTPUTS];
    float *losses; /* owned, [rows] */
};

/* A number of chips: none. The program runs on the host, in as much memory as
 * it needs. */
enum { EVALUATION_ON_HOST = 0 };

/*
 * Compiles for a number of chips, which work one after the other: with more
 * than one there is more memory, and the bits are the same. If it predicts, it
 * has no losses (program.h). proportion and progress are those of
 * compiling_run. PROBLEM with the text kept, as for the
 * next two; call evaluation_fini then, too.
 */
int evaluation_init(struct evaluation *evaluation, const struct model *model,
                    int chips, bool predicts, double proportion,
                    hvd_progress *progress);

/* Has the engine use the variables where they are, [variables]: borrowed until
 * fini. */
int evaluation_place(struct evaluation *evaluation, float *const *values);

/* Runs the program on the batch that inputs holds. */
int evaluation_run(struct evaluation *evaluation);

/* Runs the program on all batches that fill has, and has visit look at each. */
int evaluation_visit(struct evaluation *evaluation, fill_test_fn *fill,
                     void *context, visit_batch_fn *visit, void *visit_context);

/* Does the same, and adds up their results. visit may be NULL. */
int evaluation_measure(struct evaluation *evaluation, fill_test_fn *fill,
                       void *context, visit_batch_fn *visit,
                       void *visit_context, double *loss_sum, double *correct);

void evaluation_fini(struct evaluation *evaluation); /* zeroed is accepted */

#endif
