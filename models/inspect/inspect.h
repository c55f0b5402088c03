/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.h - what hvd-checkpoint does with checkpoints and other files of
 * tensors: safetensors and numpy's .npz, by the ending of the path. A path may
 * be a folder: then its newest whole checkpoint is meant.
 *
 * Functions print to standard output, and return 0 or a negative status with
 * the text kept (problem.h).
 */
#ifndef MODELS_INSPECT_H
#define MODELS_INSPECT_H

#include "checkpoint/file.h"
#include "files/npy.h"

/* A file that is open; a zeroed one is none. */
struct source {
    struct safetensors *file; /* owned; or */
    struct npz *archive;      /* owned */
    struct checkpoint_record record;
    bool is_checkpoint;
    const char *path;
    int count;
    const struct safetensors_tensor *tensors; /* [count] */
};

/* Opens a file, and checks a checkpoint's checksum. source_close is accepted
 * after a failure, too. */
int source_open(struct source *source, const char *path);
void source_close(struct source *source);

/* Returns a tensor; NULL: there is none. */
const struct safetensors_tensor *source_find(const struct source *source,
                                             const char *name);

/* Writes "[2,3]". */
void inspect_shape(const struct safetensors_tensor *tensor, char *text,
                   size_t bytes);

/* Writes when something was saved, and how large it is. */
void inspect_time(double seconds, char text[32]);
void inspect_bytes(int64_t bytes, char text[32]);

/* Writes tensors to a file of the kind that its ending says. */
int inspect_write(const char *path, const struct safetensors_tensor *tensors,
                  int count, const json_t *metadata);

/* A command gets a request. */
struct inspect_request {
    const char *const *paths; /* [count] */
    int count;
    const char *output; /* average: the file to write */
    double tolerance;   /* diff: the largest difference that counts as none */
    int dtype;          /* convert: of floating tensors; -1: as they are */
};

int inspect_list(const struct inspect_request *request); /* 1 folder */
int inspect_show(const struct inspect_request *request); /* 1 path */

/* Compares 2 paths. Returns 1 if they differ. */
int inspect_diff(const struct inspect_request *request);

/* Averages floating tensors in float64; others are those of the last path. */
int inspect_average(const struct inspect_request *request);

/* Converts the file at the first path into one at the second. */
int inspect_convert(const struct inspect_request *request);

#endif
