/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - sums and maxima of a row of floats, and the exp of a row, in an
 * order that does not depend on how wide vectors are: results are the same with
 * every set of instructions.
 */
#ifndef IPU_OPS_ROWS_H
#define IPU_OPS_ROWS_H

#include <stdint.h>

/* Elements that are added side by side: a cache line of floats. */
enum { IPU__LANES = 16 };

/* The sum, carried in double. */
double ipu__row_sum(const float *x, int64_t count);

/* The sum of the squares of x[i] - center, of which the differences are float
 * and the sum is double. */
double ipu__row_squares(const float *x, float center, int64_t count);

/* The sum of a[i] * b[i]. */
double ipu__row_dot(const float *a, const float *b, int64_t count);

/* The largest of these and of most; NaN if one is. */
float ipu__row_max(float most, const float *x, int64_t count);
/* y[i] becomes x[i] where that is larger; NaN if one of them is. */
void ipu__row_raise(float *y, const float *x, int64_t count);
/* These do the same for the smallest. */
float ipu__row_min(float least, const float *x, int64_t count);
void ipu__row_lower(float *y, const float *x, int64_t count);

/* y[i] = exp(x[i] - most); returns their sum. y may be x. */
double ipu__row_exp(float *y, const float *x, float most, int64_t count);
/* Returns only the sum. */
double ipu__row_exp_sum(const float *x, float most, int64_t count);

/* sums[i] += x[i] */
void ipu__row_accumulate(double *sums, const float *x, int64_t count);

/* x[i] *= factor */
void ipu__row_scale(float *x, float factor, int64_t count);

#endif
