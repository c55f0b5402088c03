/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.h - sums that several steps make of the same tensors. The derivatives of
 * a batch normalisation, by its input, scale and offset, all add up dy, or dy
 * and its products with the input, which do not fit into caches: the first of
 * them that runs makes the sums for all.
 *
 * This is for the CPU alone: the model of the chip counts every step for
 * itself, as Graphcore's library runs it. No bit of a result depends on it.
 */
#ifndef IPU_ENGINE_SUMS_H
#define IPU_ENGINE_SUMS_H

#include "compiler/program.h"

struct ipu__memory;
struct ipu__sums;

/* Finds the steps of a program, borrowed until ipu__sums_free, that have sums
 * in common. */
int ipu__sums_new(const struct ipu_executable *executable,
                  struct ipu__sums **sums);
void ipu__sums_free(struct ipu__sums *sums); /* NULL is accepted */

/* Forgets the sums of the run before. */
void ipu__sums_begin(struct ipu__sums *sums);

/* Returns the sums of a step that is about to run, making them if no step
 * before has; NULL: it has none in common with others. */
const double *ipu__sums_of(struct ipu__sums *sums,
                           const struct ipu__memory *memory,
                           const struct ipu__step *step);

#endif
