/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - saves, loads and compares a model's weights. values: [variables],
 * in the model's order.
 */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "model/model.h"

/* Returns the FNV-1a hash of the bytes of all variables, to compare ranks
 * by. */
uint64_t weights_hash(const struct model *model, float *const *values);

/*
 * Writes them as a safetensors file: length of the header (eight bytes, little
 * endian), header as JSON, the float32 of every variable. PROBLEM with the text
 * kept.
 */
int weights_save(const char *path, const struct model *model,
                 float *const *values);

/*
 * Reads them from such a file, of any program: each of the model's variables
 * must be there, as F32 of its shape; others are ignored. On failure, PROBLEM
 * with the text kept, and some values may have been written.
 */
int weights_load(const char *path, const struct model *model,
                 float *const *values);

#endif
