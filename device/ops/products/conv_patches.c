/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_patches.c - the patches of a convolution: the elements of x under the
 * kernel at each pixel of y, and zeros where it reaches over an edge.
 */
#include <string.h>

#include "ops/products/conv2d.h"

/* A pixel of y, and where its patch starts in x, which may be outside. */
struct place {
    int64_t image, row, column;
    int64_t top, left;
};

static void find_patch(const struct ipu__conv *c, struct place *p)
{
    p->top = p->row * c->stride[0] - c->pad[0];
    p->left = p->column * c->stride[1] - c->pad[1];
}

static struct place place_of(const struct ipu__conv *c, int64_t pixel)
{
    struct place p = {
        .image = pixel / c->wo / c->ho,
        .row = pixel / c->wo % c->ho,
        .column = pixel % c->wo,
    };

    find_patch(c, &p);
    return p;
}

/* Goes to the next pixel: a division for each would take as long as its
 * patch. */
static void next_pixel(const struct ipu__conv *c, struct place *p)
{
    if (++p->column == c->wo) {
        p->column = 0;
        if (++p->row == c->ho) {
            p->row = 0;
            p->image++;
        }
    }
    find_patch(c, p);
}

/* Steps that go at least so far. Dividing takes longer than a patch's row does
 * to copy, and nearly all steps are 1. */
static inline int64_t steps_over(int64_t distance, int64_t step)
{
    return step == 1 ? distance : (distance + step - 1) / step;
}

/* Sets [from, to) to the columns of the kernel that are inside x in row ky of a
 * patch; none: from == to. Returns the row of x, from the patch's first column
 * on. */
static inline const float *inside(const struct ipu__conv *c, const float *x,
                                  const struct place *p, int64_t ky,
                                  int64_t *from, int64_t *to)
{
    int64_t y = p->top + ky * c->dilation[0], step = c->dilation[1];
    int64_t room = c->w - p->left; /* columns from the first on */

    *from = p->left < 0 ? steps_over(-p->left, step) : 0;
    *to = room < 1 ? 0 : steps_over(room, step);
    if (*to > c->kw)
        *to = c->kw;
    if (y < 0 || y >= c->h || *to < *from)
        *from = *to = 0;
    return x + ((p->image * c->h + y) * c->w + p->left) * c->ci;
}

/* Gathers one row of a patch whose elements lie one after the other in x. */
static void gather_dense(float *patch, const float *row, int64_t from,
                         int64_t to, int64_t width)
{
    for (int64_t k = 0; k < from; k++)
        patch[k] = 0;
    for (int64_t k = from; k < to; k++)
        patch[k] = row[k];
    for (int64_t k = to; k < width; k++)
        patch[k] = 0;
}

/* Gathers a patch that has only some channels of some columns. */
static void gather_sparse(const struct ipu__conv *c, float *patch,
                          const float *row, int64_t from, int64_t to)
{
    for (int64_t kx = 0; kx < c->kw; kx++, patch += c->cig)
        if (kx >= from && kx < to)
            memcpy(patch, row + kx * c->dilation[1] * c->ci,
                   (size_t)c->cig * sizeof *patch);
        else
            memset(patch, 0, (size_t)c->cig * sizeof *patch);
}

static bool is_dense(const struct ipu__conv *c)
{
    return c->groups == 1 && c->dilation[1] == 1;
}

/* Returns whether no patch reaches over an edge. */
static bool is_inside(const struct ipu__conv *c)
{
    return c->pad[0] == 0 && c->pad[1] == 0 &&
           (c->ho - 1) * c->stride[0] + (c->kh - 1) * c->dilation[0] < c->h &&
           (c->wo - 1) * c->stride[1] + (c->kw - 1) * c->dilation[1] < c->w;
}

/* Rows of patches that are dense and inside: nothing to find out for each.
 * width is 3 in the first layer of most networks of grey images. */
static void gather_inside(const struct ipu__conv *c, const float *x,
                          int64_t first, int64_t count, float *patches)
{
    int64_t width = c->kw * c->ci, pitch = c->dilation[0] * c->w * c->ci;
    struct place p = place_of(c, first);

    for (int64_t i = 0; i < count; i++, next_pixel(c, &p)) {
        const float *row =
            x + ((p.image * c->h + p.top) * c->w + p.left) * c->ci;

        for (int64_t ky = 0; ky < c->kh; ky++, patches += width, row += pitch)
            if (width == 3) {
                patches[0] = row[0];
                patches[1] = row[1];
                patches[2] = row[2];
            } else {
                memcpy(patches, row, (size_t)width * sizeof *patches);
            }
    }
}

void ipu__conv_gather(const struct ipu__conv *c, const float *x, int64_t group,
                      int64_t first, int64_t count, float *patches)
{
    int64_t width = c->kw * c->cig;
    struct place p = place_of(c, first);

    if (is_dense(c) && is_inside(c)) {
        gather_inside(c, x, first, count, patches);
        return;
    }
    for (int64_t i = 0; i < count; i++, next_pixel(c, &p)) {
        for (int64_t ky = 0; ky < c->kh; ky++, patches += width) {
            int64_t from, to;
            const float *row = inside(c, x, &p, ky, &from, &to);

            if (is_dense(c))
                gather_dense(patches, row, from * c->ci, to * c->ci, width);
            else
                gather_sparse(c, patches, row + group * c->cig, from, to);
        }
    }
}

void ipu__conv_scatter(const struct ipu__conv *c, float *x, int64_t group,
                       int64_t first, int64_t count, const float *patches)
{
    struct place p = place_of(c, first);

    for (int64_t i = 0; i < count; i++, next_pixel(c, &p)) {
        for (int64_t ky = 0; ky < c->kh; ky++, patches += c->kw * c->cig) {
            int64_t from, to;
            float *row = x + (inside(c, x, &p, ky, &from, &to) - x);

            if (is_dense(c)) {
                for (int64_t k = from * c->ci; k < to * c->ci; k++)
                    row[k] += patches[k];
                continue;
            }
            row += group * c->cig;
            for (int64_t kx = from; kx < to; kx++)
                for (int64_t k = 0; k < c->cig; k++)
                    row[kx * c->dilation[1] * c->ci + k] +=
                        patches[kx * c->cig + k];
        }
    }
}

/* ----------------------------------------------------------- where they lie */

/* Returns whether a patch is inside x on all sides. */
static bool patch_is_inside(const struct ipu__conv *c, const struct place *p)
{
    return p->top >= 0 && p->left >= 0 &&
           p->top + (c->kh - 1) * c->dilation[0] < c->h &&
           p->left + (c->kw - 1) * c->dilation[1] < c->w;
}

bool ipu__conv_is_segmented(const struct ipu__conv *c)
{
    return is_dense(c) || c->kw == 1;
}

void ipu__conv_find(const struct ipu__conv *c, const float *x, int64_t group,
                    int64_t first, int64_t count, float *patches,
                    struct ipu__conv_patch *found)
{
    bool segmented = ipu__conv_is_segmented(c);
    struct place p = place_of(c, first);

    for (int64_t i = 0; i < count; i++, next_pixel(c, &p)) {
        if (segmented && patch_is_inside(c, &p)) {
            found[i].data = x + group * c->cig +
                            ((p.image * c->h + p.top) * c->w + p.left) * c->ci;
            found[i].pitch = c->dilation[0] * c->w * c->ci;
            continue;
        }
        found[i].data = patches + i * c->depth;
        found[i].pitch = segmented ? c->kw * c->cig : 0;
        ipu__conv_gather(c, x, group, first + i, 1, patches + i * c->depth);
    }
}
