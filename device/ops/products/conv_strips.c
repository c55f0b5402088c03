/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_strips.c - a convolution in strips: an implicit product, whose patches
 * are read where they lie in x.
 *
 * The kernel is packed into panels once a run; one that no run changes is
 * packed once, if packing takes a good part of the time. Then, for a block of
 * pixels that stays in the second-level cache with its results:
 *
 *     for each piece of the depth        rows of the kernel, or a part of one
 *         for each few panels            which stay in the nearest cache
 *             for each strip of pixels
 *                 for each of the panels
 *
 * With the last strip, the panel that comes next is fetched into the nearest
 * cache. multiply_block exchanges the outer two loops where that pays.
 *
 * A patch that reaches over an edge has to be gathered, a row of zeros where x
 * has none; so has every patch if its rows are not dense in x (groups,
 * dilation).
 */
#include "ops/products/conv2d.h"
#include "ops/products/strips.h"

#include <stdlib.h>

/* A kernel is kept in panels for at most so many pixels: packing an element
 * takes as long as some 100 products, of which each has one for each pixel. */
enum { MOST_PIXELS_TO_KEEP = 8192 };

enum {
    PIECE = 256,            /* elements of the depth */
    PANELS_BYTES = 24 << 10 /* of the nearest cache */
};

struct work {
    const struct ipu__conv *c;
    const struct ipu__strips *strips;
    const float *panels; /* [groups][panels_count] */
    struct ipu__conv_patch *found;
    int64_t segments, width; /* of a patch */
};

/* A part of the depth. */
struct piece {
    int64_t segment, segments; /* the first, and how many */
    int64_t offset, width;     /* within each */
};

/* Columns of the result, [from, to). */
struct columns {
    int64_t from, to;
    bool left; /* by the last strip: the panels behind them come next */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ------------------------------------------------------------------ packing */

/* Packs columns [first, first + n) of the kernel whose taps are mirrored, and
 * whose channels are exchanged: kernel: [kh, kw, cog, ci]. */
static void pack_mirrored(const struct ipu__conv *c, const float *kernel,
                          int64_t first, int64_t n, int64_t columns,
                          float *panel)
{
    int64_t taps = c->kh * c->kw;

    for (int64_t t = 0; t < taps; t++, panel += c->cig * columns)
        ipu__panel_pack_columns(kernel +
                                    ((taps - 1 - t) * c->cog + first) * c->ci,
                                c->ci, c->cig, n, columns, panel);
}

static void pack(const struct work *w, const float *kernel, bool mirrored,
                 float *panels)
{
    const struct ipu__conv *c = w->c;
    int64_t columns;

    for (int64_t first = 0; first < c->cog; first += columns) {
        int64_t left = c->cog - first;
        float *panel = panels + first * c->depth;

        columns = ipu__panel_columns(w->strips, first, c->cog);
        if (left > columns)
            left = columns;
        if (mirrored)
            pack_mirrored(c, kernel, first, left, columns, panel);
        else
            ipu__panel_pack(kernel + first, c->co, c->depth, left, columns,
                            panel);
    }
}

static int64_t panels_of_group(const struct ipu__conv *c)
{
    return ipu__panels_count(c->depth, c->cog);
}

static size_t panels_bytes(const struct ipu__conv *c)
{
    return ipu__aligned((size_t)(c->groups * panels_of_group(c)) *
                        sizeof(float));
}

static void pack_groups(const struct work *w,
                        const struct ipu__conv_kernel *kernel, float *panels)
{
    int64_t advance = kernel->mirrored ? w->c->cig : w->c->cog;

    for (int64_t g = 0; g < w->c->groups; g++)
        pack(w, kernel->data + g * advance, kernel->mirrored,
             panels + g * panels_of_group(w->c));
}

/* Returns the panels of a kernel that an earlier run has kept, or keeps them;
 * NULL: they are not to be kept, or there is too little memory. */
static const float *keep_panels(const struct work *w,
                                const struct ipu__conv_kernel *kernel)
{
    struct ipu__packed *kept = kernel->packed;
    size_t bytes = panels_bytes(w->c);

    if (!kept || w->c->pixels > MOST_PIXELS_TO_KEEP)
        return NULL;
    if (kept->data && kept->form == w->strips)
        return kept->data;
    free(kept->data);
    kept->data = aligned_alloc(IPU__ALIGNMENT, bytes);
    kept->bytes = kept->data ? bytes : 0;
    kept->form = w->strips;
    if (kept->data)
        pack_groups(w, kernel, kept->data);
    return kept->data;
}

/* -------------------------------------------------------------- multiplying */

/* Sets the rows of the strip that begins with pixel i of count. */
static void take_rows(const struct work *w, const struct piece *piece,
                      int64_t i, int64_t count, struct ipu__strip *strip)
{
    int rows = w->strips->rows;

    strip->rows_used = count - i < rows ? (int)(count - i) : rows;
    for (int r = 0; r < rows; r++) {
        const struct ipu__conv_patch *p =
            &w->found[i + (r < strip->rows_used ? r : 0)];

        strip->rows[r] = p->data + piece->segment * p->pitch + piece->offset;
        strip->pitches[r] = p->pitch;
    }
}

/* Returns the panel behind that of columns [first, first + n), if the group has
 * another one of the same size; NULL: it has none. */
static const float *next_panel(const struct work *w, const float *panels,
                               int64_t first, int64_t n, int64_t row)
{
    const struct ipu__conv *c = w->c;
    int64_t next = first + n;

    if (next >= c->cog || ipu__panel_columns(w->strips, next, c->cog) != n)
        return NULL;
    return panels + next * c->depth + row * n;
}

/* Multiplies a strip with the panels of some columns. */
static void multiply_strip(const struct work *w, const struct piece *piece,
                           struct ipu__strip *strip, const float *panels,
                           struct columns columns, float *y)
{
    const struct ipu__conv *c = w->c;
    int64_t row = piece->segment * w->width + piece->offset, n;
    struct ipu__strip_result result = {.pitch = c->co, .add = row > 0};

    for (int64_t first = columns.from; first < columns.to; first += n) {
        n = ipu__panel_columns(w->strips, first, c->cog);
        result.y = y + first;
        result.columns = c->cog - first < n ? c->cog - first : n;
        strip->ahead =
            columns.left ? next_panel(w, panels, first, n, row) : NULL;
        w->strips->multiply(strip, panels + first * c->depth + row * n,
                            &result);
    }
}

static void multiply_piece(const struct work *w, const struct piece *piece,
                           int64_t count, const float *panels,
                           struct columns columns, float *y)
{
    const struct ipu__conv *c = w->c;
    int64_t most = 2 * w->strips->lanes;
    int64_t depth = piece->segments * piece->width;
    int64_t fit = PANELS_BYTES / (depth * most * (int64_t)sizeof(float));
    int64_t step = (fit > 1 ? fit : 1) * most;
    struct ipu__strip strip = {.segments = piece->segments,
                               .width = piece->width};

    for (int64_t from = columns.from; from < columns.to; from += step) {
        struct columns some = {from, smaller(from + step, columns.to), false};

        for (int64_t i = 0; i < count; i += w->strips->rows) {
            take_rows(w, piece, i, count, &strip);
            some.left = i + w->strips->rows >= count;
            multiply_strip(w, piece, &strip, panels, some, y + i * c->co);
        }
    }
}

/* Multiplies a block of pixels with the panels of some columns. Pieces are
 * whole segments, or equal parts of one. */
static void multiply_columns(const struct work *w, int64_t count,
                             const float *panels, struct columns columns,
                             float *y)
{
    int64_t parts = (w->width + PIECE - 1) / PIECE;
    int64_t width = (w->width + parts - 1) / parts;
    int64_t together = parts > 1 || width > PIECE / 2 ? 1 : PIECE / width;

    for (int64_t s = 0; s < w->segments; s += together)
        for (int64_t k = 0; k < w->width; k += width) {
            struct piece piece = {s, smaller(together, w->segments - s), k,
                                  smaller(width, w->width - k)};

            multiply_piece(w, &piece, count, panels, columns, y);
        }
}

/* Multiplies a block of pixels. If it has several pieces and makes more results
 * than it reads elements, the results would leave the second-level cache from
 * piece to piece: then all pieces of one panel come before the next panel. */
static void multiply_block(const struct work *w, int64_t count,
                           const float *panels, float *y)
{
    const struct ipu__conv *c = w->c;
    bool many = c->depth > PIECE && c->cog > c->depth;
    int64_t step = many ? 2 * w->strips->lanes : c->cog;

    for (int64_t from = 0; from < c->cog; from += step)
        multiply_columns(
            w, count, panels,
            (struct columns){from, smaller(from + step, c->cog), false}, y);
}

/* ---------------------------------------------------------- the convolution */

bool ipu__conv_mirror(const struct ipu__conv *c, struct ipu__conv *mirrored)
{
    *mirrored = *c;
    for (int i = 0; i < 2; i++) {
        int64_t reach = (i ? c->kw - 1 : c->kh - 1) * c->dilation[i];

        mirrored->pad[i] = reach - c->pad[i];
        if (c->stride[i] != 1 || mirrored->pad[i] < 0)
            return false;
    }
    mirrored->h = c->ho, mirrored->w = c->wo, mirrored->ci = c->co;
    mirrored->ho = c->h, mirrored->wo = c->w, mirrored->co = c->ci;
    ipu__conv_complete(mirrored);
    return true;
}

size_t ipu__conv_strips_scratch(const struct ipu__conv *c)
{
    return ipu__conv_scratch(c) + panels_bytes(c) +
           (size_t)c->block * sizeof(struct ipu__conv_patch) + IPU__ALIGNMENT;
}

bool ipu__conv_strips(const struct ipu__conv *c, const float *x,
                      const struct ipu__conv_kernel *kernel, float *y,
                      void *scratch, ipu__done *done, void *context)
{
    struct work w = {.c = c, .strips = ipu__strips()};
    float *patches = scratch, *panels;

    if (!w.strips)
        return false;
    panels = (void *)((char *)scratch + ipu__aligned(ipu__conv_scratch(c)));
    w.found = (void *)(panels + c->groups * panels_of_group(c));
    w.segments = ipu__conv_is_segmented(c) ? c->kh : 1;
    w.width = c->depth / w.segments;
    w.panels = keep_panels(&w, kernel);
    if (!w.panels)
        pack_groups(&w, kernel, panels);
    w.panels = w.panels ? w.panels : panels;
    for (int64_t first = 0; first < c->pixels; first += c->block) {
        int64_t count =
            first + c->block < c->pixels ? c->block : c->pixels - first;

        for (int64_t g = 0; g < c->groups; g++) {
            ipu__conv_find(c, x, g, first, count, patches, w.found);
            multiply_block(&w, count, w.panels + g * panels_of_group(c),
                           y + first * c->co + g * c->cog);
        }
        if (done)
            done(context, first * c->co, count * c->co);
    }
    return true;
}
