/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h - arrays of numpy: the bytes of a file .npy, and archives .npz, which
 * are zip files of them.
 *
 * Functions return 0 or a negative HVD_ERR_* status, with the text kept
 * (problem.h), which begins with the path.
 */
#ifndef MODELS_NPY_H
#define MODELS_NPY_H

#include "files/safetensors.h"

#include <stdbool.h>

/* The header of an array. */
struct npy {
    enum safetensors_dtype dtype;
    int32_t ndim;
    int64_t shape[32];
    bool swapped; /* the bytes of each element are in the other order */
    bool fortran; /* columns lie together, with two dimensions or more */
    size_t first; /* byte at which the elements begin */
    size_t bytes; /* of the elements */
    int64_t count;
};

/* Reads the header of an array, whose first bytes these are; whole: length of
 * the file. name: of the file, for messages. HVD_ERR_FILE: it is no array, is
 * too short, or has elements of another kind than numbers. */
int npy_parse(const char *name, const void *bytes, size_t length, size_t whole,
              struct npy *npy);

/* Copies elements in the usual order of bytes and of dimensions. in: the
 * elements as they lie in the file. */
void npy_copy(const struct npy *npy, const void *in, void *out);

/* Returns the header of an array, owned by the caller; *bytes: its length, a
 * multiple of 64. NULL with the text kept: numpy has no such dtype, or there is
 * no memory. */
char *npy_header(const struct safetensors_tensor *tensor, size_t *bytes);

/* An archive that is open. */
struct npz {
    char *path;
    int count;
    struct safetensors_tensor *tensors; /* [count], in the archive's order */
    void **owned;                       /* [count]: names, shapes and copies */
    unsigned char *map;
    size_t length;
};

/* Opens an archive with all its arrays, stored or deflated; their CRC is
 * checked. Members that are no .npy are left out. What safetensors_open says of
 * the map is true here. */
int npz_open(const char *path, struct npz **npz);
void npz_close(struct npz *npz); /* NULL is accepted */

/* Writes an archive that appears whole or not at all, without compression.
 * flags: of disk.h. */
int npz_save(const char *path, const struct safetensors_tensor *tensors,
             int count, int flags);

#endif
