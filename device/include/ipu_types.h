/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ipu_types.h - the types that all headers of the device share: dtypes,
 * statuses and their texts, handles of objects. ipu.h includes it.
 */
#ifndef IPU_TYPES_H
#define IPU_TYPES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t ipu_dtype;
enum {
    IPU_FLOAT32 = 0,
    IPU_INT32 = 1,
    IPU_FLOAT16 = 2,
    IPU_BFLOAT16 = 3,
    IPU_NUM_DTYPES = 4
};

enum {
    IPU_OK = 0,
    IPU_ERR_ARGUMENT = -1, /* an argument is out of its range */
    IPU_ERR_SHAPE = -2,    /* shapes or dtypes do not fit the op */
    IPU_ERR_NAME = -3,     /* a name is unknown, or taken */
    IPU_ERR_STATE = -4,    /* the object is not ready: a stream is not
                              connected, ... */
    IPU_ERR_MEMORY = -5,   /* host memory ran out */
    IPU_ERR_CALLBACK = -6, /* a host call returned a failure */
    IPU_ERR_DATA = -7,     /* a value is out of range: a label, an index; a
                              file cannot be read, or holds something else */
    IPU_ERR_FULL = -8,     /* the program does not fit into tile memory */
    IPU_ERR_END = -9       /* the data of an infeed has ended */
};

/* Returns a short text for a status; static. */
const char *ipu_strerror(int status);

/* Returns the full text of the calling thread's last failure, borrowed until
 * its next one. Never NULL. */
const char *ipu_last_error(void);

typedef struct ipu_graph ipu_graph;
typedef struct ipu_executable ipu_executable;
typedef struct ipu_engine ipu_engine;

/* A tensor of one graph; id < 0 is invalid. It is one number, and is passed by
 * value. */
typedef struct ipu_tensor {
    int32_t id;
} ipu_tensor;

enum { IPU_MAX_DIMS = 8 };

#ifdef __cplusplus
}
#endif

#endif
