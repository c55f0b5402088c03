/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - sums over rows, some columns at a time in registers. */
#include "ops/columns.h"

#include <string.h>

#include "ops/lanes.h"
#include "ops/wide.h"

/* Rows whose sums are float. */
enum { ROWS = 32 };

/* The terms of a sum, which are made of x, dy and the centers. */
enum kind {
    PLAIN,   /* x */
    MOMENTS, /* d = x - center, and d d */
    SLOPES   /* dy, and dy d */
};

/* Some rows, and where their sums go. */
struct block {
    int64_t rows, width;
    const float *x, *dy, *centers;
    float *first, *second;
};

/* Defines a function that makes the sums of n vectors abreast, from column at
 * on. */
enum { ABREAST = 2 };
#define UNROLL _Pragma("GCC unroll 2")
#define SUMS(type)                                                             \
    IPU__INLINE void sum_##type(const struct block *b, enum kind kind,         \
                                int64_t at, int n)                             \
    {                                                                          \
        enum { LANES = sizeof(type) / sizeof(float) };                         \
        type first[ABREAST] = {0}, second[ABREAST] = {0}, c[ABREAST] = {0};    \
                                                                               \
        UNROLL for (int i = 0; i < n && kind != PLAIN; i++) c[i] =             \
            *(const type *)(b->centers + at + i * LANES);                      \
        for (int64_t r = 0; r < b->rows; r++) {                                \
            UNROLL for (int i = 0; i < n; i++)                                 \
            {                                                                  \
                int64_t from = r * b->width + at + i * LANES;                  \
                type p = *(const type *)(b->x + from), d = p;                  \
                                                                               \
                if (kind != PLAIN)                                             \
                    p = d -= c[i];                                             \
                if (kind == SLOPES)                                            \
                    p = *(const type *)(b->dy + from);                         \
                first[i] += p;                                                 \
                if (kind != PLAIN)                                             \
                    second[i] += p * d;                                        \
            }                                                                  \
        }                                                                      \
        UNROLL for (int i = 0; i < n; i++)                                     \
        {                                                                      \
            *(type *)(b->first + at + i * LANES) = first[i];                   \
            if (kind != PLAIN)                                                 \
                *(type *)(b->second + at + i * LANES) = second[i];             \
        }                                                                      \
    }
typedef ipu__wide wide;
typedef ipu__half_wide half_wide;
typedef ipu__narrow narrow;
typedef ipu__single single;
SUMS(wide)
SUMS(half_wide)
SUMS(narrow)
SUMS(single)

IPU__INLINE void sum_block(const struct block *b, enum kind kind)
{
    int64_t by_16 = ipu__in_wide(b->width);
    int64_t by_8 = ipu__in_half_wide(b->width), i = 0;

    for (; i + 32 <= by_16; i += 32)
        sum_wide(b, kind, i, 2);
    for (; i < by_16; i += 16)
        sum_wide(b, kind, i, 1);
    for (; i + 16 <= by_8; i += 16)
        sum_half_wide(b, kind, i, 2);
    for (; i < by_8; i += 8)
        sum_half_wide(b, kind, i, 1);
    for (; i + 4 <= b->width; i += 4)
        sum_narrow(b, kind, i, 1);
    for (; i < b->width; i++)
        sum_single(b, kind, i, 1);
}

IPU__WIDE(static, void, sum_plain, (const struct block *b), (b))
{
    sum_block(b, PLAIN);
}

IPU__WIDE(static, void, sum_moments, (const struct block *b), (b))
{
    sum_block(b, MOMENTS);
}

IPU__WIDE(static, void, sum_slopes, (const struct block *b), (b))
{
    sum_block(b, SLOPES);
}

IPU__WIDE(static, void, add_to, (double *sums, const float *x, int64_t count),
          (sums, x, count))
{
    IPU__BY_ELEMENT
    for (int64_t i = 0; i < count; i++)
        sums[i] += (double)x[i];
}

static int64_t rows_from(int64_t first, int64_t rows)
{
    return rows - first < ROWS ? rows - first : ROWS;
}

void ipu__columns_sum(int64_t rows, int64_t width, const float *x, double *sums,
                      float *room)
{
    struct block b = {.width = width, .x = x, .first = room};

    for (int64_t r = 0; r < rows; r += b.rows) {
        b.rows = rows_from(r, rows);
        sum_plain(&b);
        add_to(sums, b.first, width);
        b.x += b.rows * width;
    }
}

void ipu__columns_slopes(int64_t rows, int64_t width, const float *dy,
                         const float *x, const float *centers, double *sums,
                         double *products, float *room)
{
    struct block b = {.width = width,
                      .x = x,
                      .dy = dy,
                      .centers = centers,
                      .first = room,
                      .second = room + width};

    for (int64_t r = 0; r < rows; r += b.rows) {
        b.rows = rows_from(r, rows);
        sum_slopes(&b);
        add_to(sums, b.first, width);
        add_to(products, b.second, width);
        b.x += b.rows * width;
        b.dy += b.rows * width;
    }
}

/* Combines the moments of before rows with those of the block, whose sums are
 * about its centers. The next block's are about the mean. */
IPU__WIDE(static, void, combine,
          (const struct block *b, double before, double *means, double *squares,
           float *centers),
          (b, before, means, squares, centers))
{
    double rows = (double)b->rows, all = before + rows;
    double share = rows / all, weight = before * share, each = 1 / rows;
    const float *first = b->first, *second = b->second;

    IPU__BY_ELEMENT
    for (int64_t i = 0; i < b->width; i++) {
        double sum = (double)first[i], mean = (double)centers[i] + sum * each;
        double distance = mean - means[i];
        double own = (double)second[i] - sum * sum * each;

        own = own < 0 ? 0 : own; /* by rounding; NaN stays */
        squares[i] += own + distance * distance * weight;
        means[i] += distance * share;
        centers[i] = (float)means[i];
    }
}

void ipu__columns_moments(int64_t rows, int64_t width, const float *x,
                          double *means, double *squares, float *room)
{
    float *centers = room + 2 * width;
    struct block b = {.rows = rows_from(0, rows),
                      .width = width,
                      .x = x,
                      .centers = centers,
                      .first = room,
                      .second = room + width};

    memset(means, 0, (size_t)width * sizeof *means);
    memset(squares, 0, (size_t)width * sizeof *squares);
    sum_plain(&b);
    for (int64_t i = 0; i < width; i++)
        centers[i] = b.first[i] / (float)b.rows;
    for (int64_t r = 0; r < rows; r += b.rows) {
        b.rows = rows_from(r, rows);
        sum_moments(&b);
        combine(&b, (double)r, means, squares, centers);
        b.x += b.rows * width;
    }
}
