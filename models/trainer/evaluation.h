/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluation.h - evaluates a model without training it: a program on an engine,
 * and the memory of a batch and of its results.
 */
#ifndef MODELS_EVALUATION_H
#define MODELS_EVALUATION_H

#include "model/model.h"
#include "output/progress.h"

struct evaluation {
    const struct model *model; /* borrowed */
    ipu_executable *program;
    ipu_engine *engine;
    void *input;     /* owned: the model's input */
    int32_t *labels; /* owned, [rows] */
    float *losses;   /* owned, [rows] */
    float *logits;   /* owned, [rows, classes] */
};

/*
 * Compiles for a number of chips, which work one after the other: with more
 * than one there is more memory, and the bits are the same. proportion and
 * progress are those of compiling_run. PROBLEM with the text kept, as for the
 * next two; call evaluation_fini then, too.
 */
int evaluation_init(struct evaluation *evaluation, const struct model *model,
                    int chips, double proportion, struct progress *progress);

/* Has the engine use the variables where they are, [variables]: borrowed until
 * fini. */
int evaluation_place(struct evaluation *evaluation, float *const *values);

/* Runs the program on the batch that input and labels hold. */
int evaluation_run(struct evaluation *evaluation);

/* Adds the results of the last run for the first rows of the batch: their
 * losses, and how many classes are right. */
void evaluation_add(const struct evaluation *evaluation, int64_t rows,
                    double *loss_sum, double *correct);

void evaluation_fini(struct evaluation *evaluation); /* zeroed is accepted */

#endif
