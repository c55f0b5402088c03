/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digits_source.h - images of digits as a data set of the software IPU: batches
 * of pixels, 0 to 1, and labels.
 */
#ifndef MODELS_CHAPTER_DIGITS_SOURCE_H
#define MODELS_CHAPTER_DIGITS_SOURCE_H

#include <ipu.h>

#include "data/images.h"

struct digits_source {
    struct images images; /* owned */
    int batch;
    int64_t next;               /* image */
    ipu_feed_tensor tensors[2]; /* "pixels" [batch, 784], "labels" [batch] */
};

/* Loads the training images of a directory of MNIST files; directory NULL:
 * draws as many digits as fill some batches. PROBLEM (problem.h), also if the
 * images do not fill one batch. */
int digits_source_init(struct digits_source *source, const char *directory,
                       int batch);
void digits_source_fini(struct digits_source *source);

/* Returns options of an infeed, which borrows the source and begins again at
 * its end. Images that do not fill a batch are left out. */
ipu_infeed_options digits_source_options(struct digits_source *source,
                                         const char *name);

#endif
