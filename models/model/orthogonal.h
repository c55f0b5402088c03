/* SPDX-License-Identifier: Apache-2.0 */
/* orthogonal.h - draws orthogonal matrices. */
#ifndef MODELS_ORTHOGONAL_H
#define MODELS_ORTHOGONAL_H

#include "data/random.h"

/* Draws a matrix [rows, columns] whose columns, or rows if there are fewer, are
 * orthogonal to each other and have that length. */
void orthogonal_draw(struct random *r, int64_t rows, int64_t columns,
                     double length, float *matrix);

#endif
