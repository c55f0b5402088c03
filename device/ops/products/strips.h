/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strips.h - products of a matrix whose rows lie anywhere, in segments, with
 * one that has been packed: what a convolution multiplies, without copying its
 * patches.
 *
 * A strip is a few rows. It is multiplied with a panel, a few columns of the
 * other matrix, and the results stay in registers meanwhile: strips.inc has the
 * loop, which is compiled for AVX2 and for AVX-512. Each element of the result
 * is summed up in the order of the depth, whatever stands around it.
 */
#ifndef IPU_OPS_STRIPS_H
#define IPU_OPS_STRIPS_H

#include <stdbool.h>
#include <stdint.h>

/* The most rows of a strip, and columns of a panel, of any set. */
enum { IPU__STRIP_ROWS = 8, IPU__PANEL_COLUMNS = 32 };

struct ipu__strip {
    const float *rows[IPU__STRIP_ROWS]; /* the first segment of each */
    int64_t pitches[IPU__STRIP_ROWS];   /* from segment to segment */
    int rows_used;           /* the others are computed, not stored */
    int64_t segments, width; /* width: elements of a segment */
    const float *ahead;      /* a panel of this size that comes next, fetched
                                into the nearest cache meanwhile; NULL: none */
};

/* The matrix y, [rows, columns], that receives the products. Its rows begin
 * pitch elements from each other. */
struct ipu__strip_result {
    float *y;
    int64_t pitch;
    int64_t columns; /* of the panel, as many as are stored */
    bool add;        /* to what is there */
};

/* panel: [segments * width, columns], rounded up to whole vectors: one or two.
 */
typedef void ipu__strip_loop(const struct ipu__strip *strip, const float *panel,
                             const struct ipu__strip_result *result);

/* A strip of columns of the matrix: the rows of the result, as many as a strip
 * has rows. They lie side by side in each row of the matrix. */
struct ipu__strip_columns {
    const float *const *at; /* the rows of the matrix */
    int64_t count, offset;  /* of rows; of the first column */
    int skipped;            /* the first so many are computed, not stored */
};

/* panel: [count, columns], rounded up as above. */
typedef void ipu__strip_columns_loop(const struct ipu__strip_columns *strip,
                                     const float *panel,
                                     const struct ipu__strip_result *result);

/* The loops of one set of instructions, and the sizes that they work on. */
struct ipu__strips {
    int rows;  /* of a strip */
    int lanes; /* columns of a vector; a panel has one or two vectors */
    ipu__strip_loop *multiply;
    ipu__strip_columns_loop *multiply_columns; /* the matrix transposed */
};

/* The one for the set in use; NULL: it has none, and OpenBLAS is to multiply.
 */
const struct ipu__strips *ipu__strips(void);

/* Floats that a packed matrix takes with any set. */
int64_t ipu__panels_count(int64_t depth, int64_t columns);
/* The columns of the panel that begins with column first; rounded up to whole
 * vectors. */
int64_t ipu__panel_columns(const struct ipu__strips *strips, int64_t first,
                           int64_t columns);

/* Copies rows of n numbers, pitch from each other, into a panel, and zeros
 * behind them up to its columns; or columns: number r of row i goes to column i
 * of row r. */
void ipu__panel_pack(const float *from, int64_t pitch, int64_t rows, int64_t n,
                     int64_t columns, float *panel);
void ipu__panel_pack_columns(const float *from, int64_t pitch, int64_t rows,
                             int64_t n, int64_t columns, float *panel);

#endif
