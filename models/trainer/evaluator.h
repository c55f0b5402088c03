/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluator.h - evaluates checkpoints of a training that other processes make.
 *
 * An evaluator takes no device: its program runs on the host, in as much memory
 * as it needs, whatever a tile would hold. The figures are the same to the bit.
 * It is not collective, and calls nothing of libhvd.
 */
#ifndef MODELS_EVALUATOR_H
#define MODELS_EVALUATOR_H

#include "trainer/trainer.h"

struct evaluator;

/* Compiles the evaluation of a model, which it takes over, also on failure;
 * then *evaluator is NULL, and PROBLEM is returned with the text kept. model
 * NULL: it could not be made, and its text is kept. progress may be NULL. */
int evaluator_new(struct model *model, int threads, hvd_progress *progress,
                  struct evaluator **evaluator);
void evaluator_free(struct evaluator *evaluator); /* NULL is accepted */

/* Return what a checkpoint is read into: names and shapes, [count], owned by
 * the caller, NULL with the text kept; and values, owned by the evaluator. */
struct safetensors_tensor *evaluator_tensors(const struct evaluator *evaluator,
                                             int *count);
float *const *evaluator_values(const struct evaluator *evaluator);

/* Evaluates all test batches: adds up the losses of their rows, and how many
 * are right. */
int evaluator_measure(struct evaluator *evaluator, fill_test_fn *fill,
                      void *context, double *loss_sum, double *correct);

#endif
