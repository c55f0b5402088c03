/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elements.h - single elements of tensors as double precision numbers, for what
 * looks at tensors of any dtype.
 */
#ifndef MODELS_ELEMENTS_H
#define MODELS_ELEMENTS_H

#include "files/safetensors.h"

#include <stdbool.h>

/* Returns whether element_get and element_put know the dtype: all but those of
 * less than 8 bits, F8_E4M3, F8_E8M0 and C64. */
bool element_is_known(enum safetensors_dtype dtype);

/* Returns whether the dtype is a floating type. */
bool element_is_float(enum safetensors_dtype dtype);

/* Returns an element, exactly; but integers of 64 bits beyond 2^53 are
 * rounded. data need not be aligned. */
double element_get(enum safetensors_dtype dtype, const void *data, int64_t i);

/* Sets an element to the nearest number that the dtype has, ties to even.
 * Floating types beyond their range become infinite; integers saturate, and NaN
 * becomes 0. */
void element_put(enum safetensors_dtype dtype, void *data, int64_t i,
                 double value);

/* Converts elements; of one dtype to itself it copies bytes. */
void elements_convert(enum safetensors_dtype to, void *out,
                      enum safetensors_dtype from, const void *in,
                      int64_t count);

#endif
