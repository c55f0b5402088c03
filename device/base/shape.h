/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.h - the dtype and shape of a tensor, wherever it lives: in a graph, in
 * a queue, or in a file.
 */
#ifndef IPU_BASE_SHAPE_H
#define IPU_BASE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Builders are defined here, not called from a program. */
#ifndef IPU_NO_SOURCES
#define IPU_NO_SOURCES
#endif
#include "ipu.h"

struct ipu__shape {
    ipu_dtype dtype;
    int32_t ndim;
    int64_t extents[IPU_MAX_DIMS];
};

/* "float32" and 4; NULL and 0 if it is none. */
const char *ipu__dtype_name(ipu_dtype dtype);
size_t ipu__dtype_bytes(ipu_dtype dtype);

/* Returns whether the dtype is float16 or bfloat16. */
bool ipu__is_half(ipu_dtype dtype);

/* IPU_ERR_SHAPE or IPU_ERR_ARGUMENT if it cannot be; what names it. Zero
 * extents are legal: an empty batch. shape may hold extents. */
int ipu__shape_make(const char *what, ipu_dtype dtype, int32_t ndim,
                    const int64_t *extents, struct ipu__shape *shape);

bool ipu__shape_equal(const struct ipu__shape *a, const struct ipu__shape *b);
int64_t ipu__shape_count(const struct ipu__shape *shape);
/* Returns the number of elements of dimensions first to end - 1. */
int64_t ipu__shape_span(const struct ipu__shape *shape, int32_t first,
                        int32_t end);
size_t ipu__shape_bytes(const struct ipu__shape *shape);

/* A shape as text: "float32 [64,10]". A call's result may be used within the
 * same full expression: ipu__shape_print(s).text. */
struct ipu__shape_text {
    char text[224];
};

struct ipu__shape_text ipu__shape_print(const struct ipu__shape *shape);

#endif
