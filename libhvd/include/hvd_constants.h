/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hvd_constants.h - element types, reductions and kinds of requests: a part of
 * hvd.h, which includes it.
 *
 * Names and numbers follow Horovod 0.28 (horovod/common/message.h).
 */
#ifndef HVD_CONSTANTS_H
#define HVD_CONSTANTS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Functions and fields take these as int32_t: the size of a C enum is the
 * compiler's choice, and other languages have no enum. */

typedef int32_t hvd_dtype;
enum {
    HVD_UINT8 = 0,
    HVD_INT8 = 1,
    HVD_UINT16 = 2,
    HVD_INT16 = 3,
    HVD_INT32 = 4,
    HVD_INT64 = 5,
    HVD_FLOAT16 = 6, /* IEEE 754 binary16; reduced in float32 */
    HVD_FLOAT32 = 7,
    HVD_FLOAT64 = 8,
    HVD_BOOL = 9,      /* one byte; not 0 is true, results are 0 or 1 */
    HVD_BFLOAT16 = 10, /* upper half of a float32; reduced in float32 */
    HVD_NUM_DTYPES = 11
};

typedef int32_t hvd_op;
enum {
    HVD_AVERAGE = 0, /* sum divided by the number of ranks. Integers are summed
                        in a wider type, so that an average never wraps, and
                        truncate toward zero; 16-bit floats in float32. float32
                        and float64 are summed in their own type: a sum beyond
                        its range is infinite, whatever it is divided by; then
                        HVD_SUM with a prescale of 1 / size helps. Refused for
                        HVD_BOOL */
    HVD_SUM = 1,     /* integers wrap; on HVD_BOOL the logical or */
    HVD_ADASUM = 2,  /* HVD_ALLREDUCE of floating types only: the adaptive sum
                        of Maleki et al. (2020), pair by pair in the order of
                        the ranks: 0 with 1, 2 with 3 ..., then these sums two
                        by two, and so on; what has no partner is passed on. So
                        3 ranks give ((0 1) 2), 5 give (((0 1) (2 3)) 4) */
    HVD_MIN = 3,     /* a NaN on any rank gives NaN; HVD_BOOL: logical and */
    HVD_MAX = 4,     /* a NaN on any rank gives NaN; HVD_BOOL: logical or */
    HVD_PRODUCT = 5, /* HVD_BOOL: logical and */
    HVD_NUM_OPS = 6
};

typedef int32_t hvd_kind;
enum {
    HVD_ALLREDUCE = 0,
    HVD_ALLGATHER = 1, /* rows (first dimension) of all ranks, in their order */
    HVD_BROADCAST = 2,
    HVD_JOIN = 3,     /* this rank has no more data; see hvd_join */
    HVD_ALLTOALL = 5, /* some rows to each rank */
    HVD_BARRIER = 6,
    HVD_REDUCESCATTER = 7, /* each rank gets its rows of the reduction */
    HVD_GATHER = 8,        /* as HVD_ALLGATHER, to root only */
    HVD_REDUCE = 9,        /* as HVD_ALLREDUCE, to root only */
    HVD_NUM_KINDS = 10
};

/* Return "float32" and the like; NULL if unknown. Static. */
const char *hvd_dtype_name(hvd_dtype dtype);
const char *hvd_op_name(hvd_op op);
const char *hvd_kind_name(hvd_kind kind);

/* Return the constant of a name as the functions above print it, for languages
 * that cannot read this header; HVD_ERR_ARGUMENT if there is none. */
int hvd_dtype_from_name(const char *name);
int hvd_op_from_name(const char *name);
int hvd_kind_from_name(const char *name);

/* Returns the bytes of one element; HVD_ERR_ARGUMENT if unknown. */
int hvd_dtype_size(hvd_dtype dtype);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
