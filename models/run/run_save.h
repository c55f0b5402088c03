/* SPDX-License-Identifier: Apache-2.0 */
/* run_save.h - writes what ipu-run has trained. */
#ifndef MODELS_RUN_SAVE_H
#define MODELS_RUN_SAVE_H

#include "run/run_model.h"

#include <stdbool.h>

/* Returns whether a file of that name is one of variables alone. */
bool run_saves_variables(const char *path);

/* Writes the model; or, to a path that ends with .safetensors, its variables
 * alone, by their names. The model was
 * trained then. Returns 0, or 1
 * after a complaint. */
int run_save(const struct run_model *run, const char *path);

#endif
