/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expected.h - computes what collectives should compute: every rank knows what
 * every other rank was given, and works out all results by itself, in double.
 */
#ifndef HVD_TESTS_EXPECTED_H
#define HVD_TESTS_EXPECTED_H

#include <stdint.h>

#include "hvd.h"

/* Returns element i of a rank's tensor. Every dtype holds every result of op
 * exactly (such as a product over 8 ranks), every rank has other elements, and
 * the elements repeat with a period of 132,000. */
double expected_given(hvd_dtype dtype, hvd_op op, int rank, int64_t i);

/* Returns element i of the reduction over the ranks of which has[rank] is not 0
 * (NULL: all nranks). An average divides by divisor. */
double expected_reduced(hvd_dtype dtype, hvd_op op, int nranks, const int *has,
                        int divisor, int64_t i);

/* Returns the relative error that an average may have; every other result is
 * exact. */
double expected_tolerance(hvd_dtype dtype, hvd_op op);

int expected_is_integer(hvd_dtype dtype);

/* Whole tensors of these elements. They are runs of EXPECTED_RUN elements, each
 * a piece of one sequence that repeats every EXPECTED_PERIOD elements, so
 * filling and comparing take little time. */
enum { EXPECTED_PERIOD = 132, EXPECTED_RUN = 1000 };

struct expected {
    hvd_dtype dtype;
    double tolerance; /* relative */
    double values[EXPECTED_PERIOD];
    char sequence[(EXPECTED_PERIOD + EXPECTED_RUN) * 8]; /* as the dtype */
};

/* Describes a rank's tensor, and the reduction over all nranks. */
struct expected expected_tensor(hvd_dtype dtype, hvd_op op, int rank);
struct expected expected_result(hvd_dtype dtype, hvd_op op, int nranks);

/* Writes the elements from first on to out, which may be misaligned. */
void expected_fill(const struct expected *tensor, int64_t first, int64_t count,
                   void *out);

/* Compares count elements at data with the tensor's from first on. Returns the
 * index in data of the first wrong one and sets *want to the right value, or
 * returns -1 if all are right. */
int64_t expected_difference(const struct expected *tensor, int64_t first,
                            int64_t count, const void *data, double *want);

#endif
