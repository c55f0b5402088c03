/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluation.h - a model that is looked at, not trained: its program on an
 * engine, and the memory that a batch and what comes of it are in.
 */
#ifndef MODELS_EVALUATION_H
#define MODELS_EVALUATION_H

#include "model/model.h"
#include "output/progress.h"

struct evaluation {
    const struct model *model; /* borrowed */
    ipu_executable *program;
    ipu_engine *engine;
    void *input;     /* owned, as the model's */
    int32_t *labels; /* owned, [rows] */
    float *losses;   /* owned, [rows] */
    float *logits;   /* owned, [rows, classes] */
};

/*
 * Compile for so many chips, which work one after the other: more than one make
 * room, and give the same bits. proportion: as compiling_run. progress (may be
 * NULL): of the compilation. PROBLEM with the text kept, also of the next two;
 * evaluation_fini then, too.
 */
int evaluation_init(struct evaluation *evaluation, const struct model *model,
                    int chips, double proportion, struct progress *progress);

/* Where the variables are, [variables]: borrowed until fini. */
int evaluation_place(struct evaluation *evaluation, float *const *values);

/* Run it on the batch that input and labels hold. */
int evaluation_run(struct evaluation *evaluation);

/* What the last run has found for the first rows of the batch: adds their
 * losses, and how many classes are right. */
void evaluation_add(const struct evaluation *evaluation, int64_t rows,
                    double *loss_sum, double *correct);

void evaluation_fini(struct evaluation *evaluation); /* zeroed is accepted */

#endif
