/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files/idx.h - reads IDX files, in which MNIST is distributed.
 *
 * An IDX file is big-endian: two zero bytes, the element type, the number of
 * dimensions, each extent in four bytes, the elements. Nothing in it is
 * trusted: memory grows with the bytes actually read, not with the counts of
 * the header, and after the last element the file must end.
 */
#ifndef MODELS_FILES_IDX_H
#define MODELS_FILES_IDX_H

#include <stdint.h>

enum { IDX_UINT8 = 0x08, IDX_MOST_DIMS = 8 };

struct idx_array {
    int type;  /* the code in the file */
    int dtype; /* of hvd.h */
    int ndim;
    int64_t shape[IDX_MOST_DIMS];
    void *elements; /* owned, in the machine's order of bytes */
};

/* A demand of a caller; a zeroed one accepts anything. */
struct idx_demand {
    int type, ndim;              /* 0: any */
    const char *what;            /* "images as unsigned bytes", for messages */
    int64_t rows[IDX_MOST_DIMS]; /* shape[1] and on; 0: any */
};

/* Reads a file as a whole, plain or compressed. HVD_ERR_FILE or
 * HVD_ERR_MEMORY, with the text kept (problem.h), which begins with the path;
 * there is nothing to free then. */
int idx_read(const char *path, const struct idx_demand *demand,
             struct idx_array *array);

#endif
