/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weights.h - what is done with trained weights: a file, and a number to
 * compare ranks by.
 */
#ifndef MODELS_WEIGHTS_H
#define MODELS_WEIGHTS_H

#include <stdint.h>

/* FNV-1a over the bytes of all variables. */
uint64_t weights_hash(float *const *values);

/*
 * Write them as a safetensors file: length of the header (eight bytes, little
 * endian), header as JSON, the float32 of every variable. PROBLEM with the
 * text kept.
 */
int weights_save(const char *path, float *const *values);

#endif
