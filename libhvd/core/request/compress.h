/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compress.h - the compression schemes of allreduces.
 *
 * Two schemes are another dtype: values are cast on the way into the fusion
 * buffer, reduced in that type and cast back. The others encode: each rank
 * sends its code to all, and every rank adds up what the codes stand for.
 */
#ifndef HVD_CORE_COMPRESS_H
#define HVD_CORE_COMPRESS_H

#include <stdbool.h>

#include "hvd.h"

/* Returns true if the scheme encodes. */
bool hvd__compression_encodes(hvd_compression compression);
/* The dtype that a tensor of dtype travels in. */
hvd_dtype hvd__compression_wire(hvd_compression compression, hvd_dtype dtype);

/*
 * Encode values, multiplied by factor, into a buffer that is allocated;
 * *bytes becomes its size. What the scheme remembers is kept under the name
 * (of a process set) until hvd__compress_forget or hvd__compress_forget_set.
 * HVD_ERR_MEMORY, or what the scheme says.
 */
int hvd__compress_encode(hvd_compression compression, int32_t process_set,
                         const char *name, const float *values, int64_t count,
                         double factor, void **code, int64_t *bytes);

/* Adds the values that a code stands for to sum. */
int hvd__compress_add(hvd_compression compression, const void *code,
                      int64_t bytes, float *sum, int64_t count);

/* The world has ended: what schemes remember is forgotten. */
void hvd__compress_forget(void);
/* Forgets the state of a process set that has been removed, and for which
 * nobody encodes any more. */
void hvd__compress_forget_set(int32_t process_set);

#endif
