/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elements.h - the elements of an ONNX tensor on the host. They are kept in one
 * of two forms, whatever the type: floats of all widths as float32, integers
 * and bool as int64.
 */
#ifndef IPU_ONNX_ELEMENTS_H
#define IPU_ONNX_ELEMENTS_H

#include "onnx/model.h"

/* Describes a type of elements, in a file and on the device. */
struct ipu__onnx_kind {
    const char *name;    /* NULL: the type is unknown */
    size_t bytes;        /* of an element in a file; 0: not on this device */
    bool whole;          /* integers and bool */
    ipu_dtype dtype;     /* on the device */
    int64_t least, most; /* of integers */
};

const struct ipu__onnx_kind *ipu__onnx_kind(int64_t type);

/* The elements of a tensor, and its shape. */
struct ipu__onnx_elements {
    int32_t type; /* IPU_ONNX_* */
    int32_t ndim;
    int64_t extents[IPU_MAX_DIMS];
    const float *floats;   /* borrowed from the file; or NULL */
    const int64_t *wholes; /* the same, of integers */
};

/* Returns the number of elements. */
int64_t ipu__onnx_count(int32_t ndim, const int64_t *extents);

/* Sets the shape of a tensor. what names it: "FILE: tensor 'x'". Returns
 * IPU_ERR_DATA if it can be none, or IPU_ERR_SHAPE if it is none of the
 * device's. */
int ipu__onnx_set_shape(const char *what, size_t ndim, const int64_t *extents,
                        struct ipu__onnx_elements *elements);

/* Reads the elements of a tensor, from the file or from the one that it names.
 */
int ipu__onnx_decode(struct ipu__onnx_file *file,
                     const struct ipu__onnx_tensor *tensor,
                     struct ipu__onnx_elements *elements);

/* Convert between elements in memory and their forms: floats and wholes, of
 * which the one of that type is used. A value that the type cannot hold is
 * refused: the second returns the index of the first one; -1: there is none.
 */
void ipu__onnx_unpack(int32_t type, int64_t count, const void *from,
                      float *floats, int64_t *wholes);
int64_t ipu__onnx_pack(int32_t type, int64_t count, const float *floats,
                       const int64_t *wholes, void *to);

/* Reads the bytes of a tensor that lie in another file, below the folder of
 * this one. Returns IPU_ERR_DATA, with the reason, if there are not so many. */
int ipu__onnx_external(struct ipu__onnx_file *file,
                       const struct ipu__onnx_tensor *tensor, size_t bytes,
                       struct ipu__wire *raw);

#endif
