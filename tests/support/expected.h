/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expected.h - what collectives should compute, by another way: every rank
 * can tell what every other was given, so that each works out all results by
 * itself, in double.
 */
#ifndef HVD_TESTS_EXPECTED_H
#define HVD_TESTS_EXPECTED_H

#include <stdint.h>

#include "hvd.h"

/* Element i of a rank's tensor: small enough that every dtype holds every
 * result of op exactly (a product of 8 ranks of at most 2), different on
 * every rank. Elements that far apart repeat. */
double expected_given(hvd_dtype dtype, hvd_op op, int rank, int64_t i);

/* Element i of the reduction over the ranks of which has[rank] is not 0
 * (NULL: all nranks). An average divides by divisor. */
double expected_reduced(hvd_dtype dtype, hvd_op op, int nranks, const int *has,
                        int divisor, int64_t i);

/* Of an average, relative; everything else must be exact. */
double expected_tolerance(hvd_dtype dtype, hvd_op op);

int expected_is_integer(hvd_dtype dtype);

#endif
