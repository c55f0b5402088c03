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

/* Of the training images of a directory of MNIST files; directory NULL: as many
 * are drawn as fill some batches. PROBLEM (problem.h), also if they are not one
 * batch. */
int digits_source_init(struct digits_source *source, const char *directory,
                       int batch);
void digits_source_fini(struct digits_source *source);

/* Options of an infeed, which borrows the source and begins anew at its end:
 * what does not fill a batch is left out. */
ipu_infeed_options digits_source_options(struct digits_source *source,
                                         const char *name);

#endif
