/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_fit.h - whether a model fits on a chip, and what would make it fit.
 */
#ifndef MODELS_RUN_FIT_H
#define MODELS_RUN_FIT_H

#include "run/run_model.h"

/* Finds the chip that a text names: one of the library's, or a JSON file.
 * Leaves the text of what is wrong to ipu_last_error. */
int run_find_target(const char *name, ipu_target *target);

/* Prints the memory of the fullest tile of a model that was built for the
 * target and, if it does not fit, the remedies; of one that was built for
 * several chips, what each of them has, and how it does as a pipeline. *fits
 * says whether it fits; the text of what is wrong is left to ipu_last_error. */
int run_print_fit(const struct run_model *run, const ipu_target *target,
                  int *fits);

#endif
