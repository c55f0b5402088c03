/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_tensor.h - the tensors of ipu-run: from files, random, into files. All
 * functions print what is wrong, in one line, and return negative then.
 */
#ifndef MODELS_RUN_TENSOR_H
#define MODELS_RUN_TENSOR_H

#include "run/run_complain.h"

#include <ipu.h>
#include <stdint.h>

/* Returns the number of elements. */
int64_t run_count(int32_t ndim, const int64_t *extents);

/* Reads a tensor from a .npy, or from a file of ONNX (.pb). */
int run_read_tensor(const char *path, ipu_onnx_tensor *tensor);

/* Makes a tensor of random elements: floats from -1 to 1, and integers 0 or 1,
 * which may be labels or numbers of rows. *state is the state of the generator.
 */
int run_random_tensor(const ipu_onnx_value *like, uint64_t *state,
                      ipu_onnx_tensor *tensor);

/* Writes a .npy. */
int run_write_npy(const char *path, const ipu_onnx_tensor *tensor);

/* Prints a shape: "float [1,3,224,224]". The result may be used within the same
 * full expression. */
struct run_shape_text {
    char text[256];
};
struct run_shape_text run_shape(int32_t type, int32_t ndim,
                                const int64_t *extents);

#endif
