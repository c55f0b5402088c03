/* SPDX-License-Identifier: Apache-2.0 */
/* data/idx.h - reads the IDX files in which MNIST is distributed. */
#ifndef MODELS_DATA_IDX_H
#define MODELS_DATA_IDX_H

#include "data/images.h"

/*
 * Loads PART-images-idx3-ubyte and PART-labels-idx1-ubyte of a directory; part
 * is "train" or "t10k". Each name may end in .gz, and may have a dot for the
 * second dash, as some unpackers write it. limit > 0: loads the first limit
 * images, which must be there. On failure PROBLEM with a text that names the
 * file, its contents and what was expected; images is then untouched.
 */
int idx_load(const char *directory, const char *part, int64_t limit,
             struct images *images);

#endif
