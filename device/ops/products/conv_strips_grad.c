/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_strips_grad.c - the derivative of a convolution's kernel in strips: the
 * patches of x, transposed, times dy. Their elements are read where they lie in
 * x, as in conv_strips.c; a strip is a few elements of all patches of a block
 * of pixels, and a panel a few channels of dy, copied for the block.
 *
 * Sums go over the pixels of a block, and then over blocks.
 */
#include "ops/products/conv2d.h"
#include "ops/products/strips.h"

struct work {
    const struct ipu__conv *c;
    const struct ipu__strips *strips;
    struct ipu__conv_patch *found;
    const float **at;        /* a row of each patch */
    int64_t segments, width; /* of a patch */
    int64_t count;           /* of the block's pixels */
    bool add;                /* it is not the first block */
};

/* Multiplies one row of the patches with a panel. dkernel: where the products
 * of this row and these channels go. The last strip of a row begins early
 * enough to be whole, and does not store what the one before has. */
static void multiply_segment(const struct work *w, const float *panel,
                             int64_t columns, float *dkernel)
{
    struct ipu__strip_columns strip = {.at = w->at, .count = w->count};
    struct ipu__strip_result result = {
        .pitch = w->c->co, .columns = columns, .add = w->add};
    int rows = w->strips->rows;

    for (int64_t k = 0; k < w->width; k += rows) {
        strip.offset = k + rows <= w->width ? k : w->width - rows;
        strip.skipped = (int)(k - strip.offset);
        result.y = dkernel + strip.offset * w->c->co;
        w->strips->multiply_columns(&strip, panel, &result);
    }
}

/* Multiplies the patches of a group with a block of its channels of dy. */
static void multiply_block(const struct work *w, const float *dy,
                           float *dkernel, float *panel)
{
    const struct ipu__conv *c = w->c;
    int64_t columns;

    for (int64_t first = 0; first < c->cog; first += columns) {
        int64_t left = c->cog - first, n;

        columns = ipu__panel_columns(w->strips, first, c->cog);
        n = left < columns ? left : columns;
        ipu__panel_pack(dy + first, c->co, w->count, n, columns, panel);
        for (int64_t s = 0; s < w->segments; s++) {
            for (int64_t i = 0; i < w->count; i++)
                w->at[i] = w->found[i].data + s * w->found[i].pitch;
            multiply_segment(w, panel, n,
                             dkernel + s * w->width * c->co + first);
        }
    }
}

static size_t panel_bytes(const struct ipu__conv *c)
{
    return (size_t)(c->block * IPU__PANEL_COLUMNS) * sizeof(float);
}

size_t ipu__conv_strips_grad_scratch(const struct ipu__conv *c)
{
    return ipu__aligned(ipu__conv_scratch(c)) + panel_bytes(c) +
           (size_t)c->block *
               (sizeof(struct ipu__conv_patch) + sizeof(const float *));
}

bool ipu__conv_strips_grad(const struct ipu__conv *c, const float *x,
                           const float *dy, float *dkernel, void *scratch)
{
    struct work w = {.c = c, .strips = ipu__strips()};
    float *patches = scratch, *panel;

    w.segments = ipu__conv_is_segmented(c) ? c->kh : 1;
    w.width = c->depth / w.segments;
    if (!w.strips || w.width < w.strips->rows)
        return false;
    panel = (void *)((char *)scratch + ipu__aligned(ipu__conv_scratch(c)));
    w.found = (void *)((char *)panel + panel_bytes(c));
    w.at = (void *)(w.found + c->block);
    for (int64_t first = 0; first < c->pixels; first += c->block) {
        w.count = first + c->block < c->pixels ? c->block : c->pixels - first;
        w.add = first > 0;
        for (int64_t g = 0; g < c->groups; g++) {
            ipu__conv_find(c, x, g, first, w.count, patches, w.found);
            multiply_block(&w, dy + first * c->co + g * c->cog,
                           dkernel + g * c->cog, panel);
        }
    }
    return true;
}
