/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dtype.h - the one list of element types and the one list of reduction
 * operations. Names, sizes and kernels are all made from these lists.
 */
#ifndef HVD_BASE_DTYPE_H
#define HVD_BASE_DTYPE_H

#include <stdbool.h>

#include "hvd.h"

/* X(constant, name, bytes, reduce.inc function suffix) in numeric order */
#define HVD__DTYPES(X)                                                         \
    X(HVD_UINT8, "uint8", 1, u8)                                               \
    X(HVD_INT8, "int8", 1, i8)                                                 \
    X(HVD_UINT16, "uint16", 2, u16)                                            \
    X(HVD_INT16, "int16", 2, i16)                                              \
    X(HVD_INT32, "int32", 4, i32)                                              \
    X(HVD_INT64, "int64", 8, i64)                                              \
    X(HVD_FLOAT16, "float16", 2, f16)                                          \
    X(HVD_FLOAT32, "float32", 4, f32)                                          \
    X(HVD_FLOAT64, "float64", 8, f64)                                          \
    X(HVD_BOOL, "bool", 1, b8)                                                 \
    X(HVD_BFLOAT16, "bfloat16", 2, bf16)

/* X(constant, name) in numeric order */
#define HVD__OPS(X)                                                            \
    X(HVD_AVERAGE, "average")                                                  \
    X(HVD_SUM, "sum")                                                          \
    X(HVD_ADASUM, "adasum")                                                    \
    X(HVD_MIN, "min")                                                          \
    X(HVD_MAX, "max")                                                          \
    X(HVD_PRODUCT, "product")

/* Returns the bytes of an element of a valid dtype. */
size_t hvd__dtype_bytes(hvd_dtype dtype);

static inline bool hvd__dtype_is_float(hvd_dtype dtype)
{
    return dtype == HVD_FLOAT16 || dtype == HVD_BFLOAT16 ||
           dtype == HVD_FLOAT32 || dtype == HVD_FLOAT64;
}

#endif
