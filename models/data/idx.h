/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx.h - reads the IDX files in which MNIST is distributed.
 *
 * An IDX file is big-endian: two zero bytes, the element type (8: unsigned
 * bytes), the number of dimensions, each extent in four bytes, the elements.
 */
#ifndef MODELS_IDX_H
#define MODELS_IDX_H

#include "data/images.h"

/*
 * Load PART-images-idx3-ubyte and PART-labels-idx1-ubyte of a directory, part
 * being "train" or "t10k"; each may end in .gz, and may be spelt with a dot
 * for the second dash, as some unpackers do. limit > 0: the first limit
 * images, which must be there. PROBLEM, naming the file, what it holds and
 * what was expected; images is then untouched.
 */
int idx_load(const char *directory, const char *part, int64_t limit,
             struct images *images);

#endif
