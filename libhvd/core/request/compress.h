/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress.h - the compression schemes for allreduces.
 *
 * Two schemes use another dtype: values are cast on the way into the fusion
 * buffer, reduced in that type and cast back. The others encode: each rank
 * sends its code to all, and every rank adds up the decoded values.
 */
#ifndef HVD_CORE_COMPRESS_H
#define HVD_CORE_COMPRESS_H

#include <stdbool.h>

#include "hvd.h"

/* Returns true if the scheme encodes. */
bool hvd__compression_encodes(hvd_compression compression);
/* Returns the dtype in which a tensor of dtype is sent. */
hvd_dtype hvd__compression_wire(hvd_compression compression, hvd_dtype dtype);

/*
 * Encodes values, multiplied by factor, into a new buffer; *bytes becomes its
 * size. The state of the scheme is kept under the process set and name until
 * hvd__compress_forget or hvd__compress_forget_set. Fails with HVD_ERR_MEMORY
 * or with the scheme's error.
 */
int hvd__compress_encode(hvd_compression compression, int32_t process_set,
                         const char *name, const float *values, int64_t count,
                         double factor, void **code, int64_t *bytes);

/* Adds the values that a code stands for to sum. */
int hvd__compress_add(hvd_compression compression, const void *code,
                      int64_t bytes, float *sum, int64_t count);

/* Frees the state of all schemes at the end of the world. */
void hvd__compress_forget(void);
/* Frees the state of a process set that has been removed and for which no
 * thread encodes any more. */
void hvd__compress_forget_set(int32_t process_set);

#endif
