/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orthogonal.c - makes normal vectors orthogonal by Gram and Schmidt's method,
 * twice each, so that rounding leaves them orthogonal. A vector that has
 * vanished is drawn again.
 */
#include "model/orthogonal.h"

#include <math.h>
#include <stdbool.h>

/* A vector of a matrix: its elements lie stride apart. */
struct line {
    float *at;
    int64_t stride, count;
};

static double product(const struct line *a, const struct line *b)
{
    double sum = 0;

    for (int64_t i = 0; i < a->count; i++)
        sum += (double)a->at[i * a->stride] * (double)b->at[i * b->stride];
    return sum;
}

/* Adds factor times b to a, which is then scaled. */
static void combine(const struct line *a, double factor, const struct line *b,
                    double scale)
{
    for (int64_t i = 0; i < a->count; i++)
        a->at[i * a->stride] =
            (float)(scale * ((double)a->at[i * a->stride] +
                             factor * (double)b->at[i * b->stride]));
}

/* Makes line number n of unit length and orthogonal to those before it. Returns
 * false if nothing is left of it. */
static bool straighten(struct line lines, int64_t step, int64_t n)
{
    struct line mine = lines;
    double length = 1;

    mine.at += n * step;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t k = 0; k < n; k++) {
            struct line other = lines;

            other.at += k * step;
            combine(&mine, -product(&mine, &other), &other, 1);
        }
        length = sqrt(product(&mine, &mine));
        if (length < 1e-3)
            return false;
        combine(&mine, 0, &mine, 1 / length);
    }
    return true;
}

void orthogonal_draw(struct random *r, int64_t rows, int64_t columns,
                     double length, float *matrix)
{
    bool across = rows < columns; /* the lines are rows */
    struct line lines = {matrix, across ? 1 : columns, across ? columns : rows};
    int64_t count = across ? rows : columns, step = across ? columns : 1;

    for (int64_t n = 0; n < count; n++)
        do
            for (int64_t i = 0; i < lines.count; i++)
                matrix[n * step + i * lines.stride] = (float)random_bell(r);
        while (!straighten(lines, step, n));
    for (int64_t i = 0; i < rows * columns; i++)
        matrix[i] *= (float)length;
}
