/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.h - shared by layer, group and batch normalisation.
 *
 * All see x as [outer, rows, groups, columns] and normalise over rows and
 * columns, by a mean and a variance for each outer and group; scale and offset
 * go with groups and columns:
 *
 *     layer    [leading, 1, 1, last]         over what scale covers
 *     group    [n, pixels, groups, c/groups]
 *     batch    [1, all, c, 1]
 */
#ifndef IPU_OPS_NORM_H
#define IPU_OPS_NORM_H

#include "ops/op.h"

struct ipu__norm {
    int64_t outer, rows, groups, columns;
    int64_t width;  /* groups * columns */
    int64_t number; /* number of elements that are normalised together */
    double epsilon;
};

/* Sets the output's shape of one of the three ops, or fails with what is wrong
 * with x, scale and offset, before there are statistics. */
int ipu__norm_parameters(const struct ipu__call *call,
                         struct ipu__shape *output);

/* Checks that the attributes' view is one of x, that the statistics, input i,
 * belong to it, and that the scale is as long as a row. */
int ipu__norm_check_view(const struct ipu__call *call,
                         const struct ipu__shape *x);
int ipu__norm_check_statistics(const struct ipu__call *call, int i);
int ipu__norm_check_scale(const struct ipu__call *call,
                          const struct ipu__shape *scale);

struct ipu__norm ipu__norm_of(const struct ipu__attributes *attributes);

/* Sums that the derivatives of a batch normalisation by its input, scale and
 * offset have in common: [2, channels], of dy and of dy (x - mean). The engine
 * may make them for all of these (ipu__call.sums). */

/* Returns whether an op is a derivative by the input or the scale, which read
 * all that the sums are made of: dy, x, ..., statistics. */
bool ipu__norm_has_sums(const struct ipu__op *op);
/* Returns the bytes of the sums, with room for making them. */
size_t ipu__norm_sums_bytes(const struct ipu__attributes *attributes);
/* Makes the sums of a call of such an op. */
void ipu__norm_sums(const struct ipu__call *call, double *sums);

/* 1 / sqrt(variance + epsilon) */
float ipu__norm_factor(const struct ipu__norm *norm, float variance);
/* Sets the factor of each of the width elements of a row: that of its group. */
void ipu__norm_factors(const struct ipu__norm *norm, float *wide,
                       const float *variances);

/* Sets, for each of the width elements of a row, its group's value. */
void ipu__norm_widen(const struct ipu__norm *norm, float *wide,
                     const float *by_group);

#endif
