/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the data of the small programs: digits, or what is in a file of
 * any format that hvd_dataset.h reads. Both return NULL with the text kept.
 */
#ifndef MODELS_CHAPTER_SOURCE_H
#define MODELS_CHAPTER_SOURCE_H

#include <hvd_dataset.h>

/* Returns batches of "images", float32 [784] from 0 to 1, and "labels", int32:
 * the training images of a directory of MNIST files, or, if it is NULL, as many
 * digits as fill some batches, drawn. */
hvd_dataset *source_digits(const char *directory, int64_t batch);

/*
 * Returns the elements of a file. Its format is one of source_formats; -1: as
 * the file is called. fields describes the components of a CSV file (columns of
 * these names) and of TFRecords: "pixels:float32:28x28,label:int32"; other
 * files tell theirs.
 */
hvd_dataset *source_file(const char *path, int format, const char *fields);

extern const char *const source_formats[]; /* ends with NULL */

#endif
