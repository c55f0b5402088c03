/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - saves, loads and compares a model's weights. values: [variables],
 * in the model's order.
 */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "files/safetensors.h"
#include "model/model.h"

/* Returns the FNV-1a hash of the bytes of all variables, to compare ranks
 * by. */
uint64_t weights_hash(const struct model *model, float *const *values);

/*
 * Writes them as a safetensors file: length of the header (eight bytes, little
 * endian), header as JSON, the float32 of every variable. If some are
 * statistics, "__metadata__" says how many: they are the last. PROBLEM with the
 * text kept.
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

/* Returns names and shapes of the variables, without data: [variables], owned
 * by the caller, with what they point to owned by the model. NULL with the text
 * kept. */
struct safetensors_tensor *weights_tensors(const struct model *model);

/*
 * Makes the model's variables those of such a file, in its order, in place of
 * its own, and statistics of as many as it says; weights_load then reads their
 * values. On failure, PROBLEM with the text kept, and some variables may be
 * missing.
 */
int weights_adopt(const char *path, struct model *model);

/* Returns whether two models have the same variables, in the same order. */
bool weights_match(const struct model *model, const struct model *other);

#endif
