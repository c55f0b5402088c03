/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - what is done with a model's weights: a file, and a number to
 * compare ranks by. values: [variables], in the model's order.
 */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include "model/model.h"

/* FNV-1a over the bytes of all variables. */
uint64_t weights_hash(const struct model *model, float *const *values);

/*
 * Write them as a safetensors file: length of the header (eight bytes, little
 * endian), header as JSON, the float32 of every variable. PROBLEM with the
 * text kept.
 */
int weights_save(const char *path, const struct model *model,
                 float *const *values);

/*
 * Read them from such a file, of whatever program: each of the model's
 * variables must be there, as F32 of its shape; others are passed over. On
 * failure, PROBLEM with the text kept, and values may have been written.
 */
int weights_load(const char *path, const struct model *model,
                 float *const *values);

#endif
