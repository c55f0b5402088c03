/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - sums over the rows of a matrix of floats, column by column: what
 * normalisations and the derivatives of biases add up.
 *
 * A few rows are added in float, in registers, and their sums in double: a
 * plain sum over tens of thousands of rows would lose the small ones. The order
 * does not depend on how wide vectors are: results are the same with every set
 * of instructions.
 *
 * Matrices are [rows, width]. room is scratch, of IPU__COLUMNS_ROOM floats for
 * each column.
 */
#ifndef IPU_OPS_COLUMNS_H
#define IPU_OPS_COLUMNS_H

#include <stdint.h>

enum { IPU__COLUMNS_ROOM = 3 };

/* Adds the sum of each column to sums. */
void ipu__columns_sum(int64_t rows, int64_t width, const float *x, double *sums,
                      float *room);

/* Adds the sum of dy, and of dy (x - center), to sums and products. */
void ipu__columns_slopes(int64_t rows, int64_t width, const float *dy,
                         const float *x, const float *centers, double *sums,
                         double *products, float *room);

/*
 * Sets the mean of each column, and the sum of the squares of its distances
 * from it. Reads x once: the sums of a few rows are about the mean of the rows
 * before, those of the first about their own, and the two are combined (Chan,
 * Golub and LeVeque, 1979). What is lost if those means lie far from each other
 * is little, as the sum of squares is large then: x may be far from 0.
 */
void ipu__columns_moments(int64_t rows, int64_t width, const float *x,
                          double *means, double *squares, float *room);

#endif
