/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - the sparse gradient of a variable: some of its rows, each with its
 * index. Parameter servers and workers send the same form to each other.
 */
#ifndef HVD_STRATEGY_ROWS_H
#define HVD_STRATEGY_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* All zero: no rows. Indices and values are one block of memory, indices first:
 * that block is what travels. */
struct hvd__rows {
    int64_t n;
    int64_t *indices; /* owned; [n], ascending, each once */
    float *values;    /* in the same block; [n, width] */
};

/* Returns the bytes of n rows with their indices. */
size_t hvd__rows_bytes(int64_t n, int64_t width);
/* Makes room for n rows, whose content is not set. */
int hvd__rows_new(struct hvd__rows *rows, int64_t n, int64_t width);
/* Frees the rows; none are left. */
void hvd__rows_free(struct hvd__rows *rows);

/* Makes rows of n rows in any order. Those of one index are added, in their
 * order; so the same input gives the same bits on every rank. Rows of width 0
 * need no values: NULL. */
int hvd__rows_combine(struct hvd__rows *rows, const int64_t *indices,
                      const float *values, int64_t n, int64_t width);
/* Copies the rows from first on and before end. */
int hvd__rows_slice(struct hvd__rows *slice, const struct hvd__rows *rows,
                    int64_t width, int64_t first, int64_t end);

/* Returns the first index that is below first, or not below end, or not above
 * the one before it; -1 if there is none. */
int64_t hvd__rows_misplaced(const struct hvd__rows *rows, int64_t first,
                            int64_t end);

/* Copies the rows from or to a variable, whose value begins with the row
 * first. */
void hvd__rows_gather(struct hvd__rows *rows, const float *value, int64_t width,
                      int64_t first);
void hvd__rows_scatter(const struct hvd__rows *rows, float *value,
                       int64_t width, int64_t first);

#endif
