/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - what a step by element must fetch, tile by tile.
 *
 * An element is computed where its output lies. What a tile needs for its part
 * of the output, and does not hold, it receives: the same elements of inputs
 * that are as large, if they are spread otherwise; of rows that are repeated,
 * as many as its elements go over; scalars. Where a step makes several
 * outputs, the others are sent from where the first lies.
 *
 * Products, sums and moves are not among these: their plans say what they
 * exchange (target/).
 */
#include <stdlib.h>

#include "compiler/program.h"

/* Bytes [from, to) of a tensor. */
struct range {
    int64_t from, to;
};

static int64_t length(struct range r)
{
    return r.to > r.from ? r.to - r.from : 0;
}

static int64_t common(struct range a, struct range b)
{
    return length((struct range){a.from > b.from ? a.from : b.from,
                                 a.to < b.to ? a.to : b.to});
}

/* How a block is spread. */
struct spread {
    int64_t bytes, each, more; /* grains of a tile; tiles that have one more */
    int32_t first, used, tiles;
};

static struct spread spread_of(const struct ipu_executable *e, int32_t v)
{
    const struct ipu__block *b = &e->blocks[e->values[v].block];
    int64_t grains = ipu__grains(b->bytes);
    int32_t used = ipu__block_width(e, b);

    return (struct spread){.bytes = (int64_t)e->values[v].bytes,
                           .each = used ? grains / used : 0,
                           .more = used ? grains % used : 0,
                           .first = b->first_tile,
                           .used = used,
                           .tiles = e->target.tiles};
}

static struct range held(const struct spread *s, int32_t tile)
{
    int64_t i = tile - s->first;
    struct range r;

    if (i < 0)
        i += s->tiles;
    if (i >= s->used)
        return (struct range){0, 0};
    r.from = (i * s->each + (i < s->more ? i : s->more)) * IPU__GRAIN_BYTES;
    r.to = r.from + (s->each + (i < s->more)) * IPU__GRAIN_BYTES;
    if (r.to > s->bytes)
        r.to = s->bytes;
    return r;
}

static bool alike(const struct spread *a, const struct spread *b)
{
    return a->bytes == b->bytes && a->first == b->first && a->used == b->used;
}

/* ------------------------------------------------------------------ one input
 */

struct fetch {
    struct spread from, to;     /* the input, the output */
    int64_t from_size, to_size; /* of an element */
    int64_t period;             /* elements of a row; 0: as many as there are */
};

/* What tile receives. */
static int64_t missing(const struct fetch *f, int32_t tile)
{
    struct range mine = held(&f->to, tile), here = held(&f->from, tile);
    int64_t first = mine.from / f->to_size, size = f->from_size;
    int64_t count = (length(mine) + f->to_size - 1) / f->to_size, to;

    if (count == 0)
        return 0;
    if (f->period == 0)
        return count * size -
               common(here,
                      (struct range){first * size, (first + count) * size});
    if (count >= f->period)
        return f->period * size - length(here);
    first %= f->period;
    to = first + count;
    if (to <= f->period)
        return count * size -
               common(here, (struct range){first * size, to * size});
    return count * size -
           common(here, (struct range){first * size, f->period * size}) -
           common(here, (struct range){0, (to - f->period) * size});
}

static void note(struct ipu__received *r, const struct fetch *f)
{
    int64_t share = f->from.each * IPU__GRAIN_BYTES, most = 0;

    for (int32_t i = 0; i < f->to.used; i++) {
        int32_t tile = (f->to.first + i) % f->to.tiles;
        int64_t bytes = missing(f, tile);

        most = bytes > most ? bytes : most;
        if (bytes == 0)
            continue;
        r->bytes[tile] += bytes;
        if (r->bytes[tile] > r->most)
            r->most = r->bytes[tile];
    }
    if (most > 0)
        r->messages += 1 + most / (share > 0 ? share : 1);
}

/* ------------------------------------------------------------------ a step */

static int64_t element_bytes(const struct ipu_executable *e, int32_t v)
{
    return (int64_t)ipu__dtype_bytes(e->values[v].shape.dtype);
}

static bool seen(const struct ipu_executable *e, const struct ipu__step *step,
                 int32_t k, int32_t i)
{
    struct ipu__step_op place, other;
    const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

    for (int32_t p = 0; p <= k; p++) {
        const struct ipu__step_op *before = ipu__part_of(e, step, p, &other);

        for (int n = 0; n < (p < k ? before->op->ninputs : i); n++)
            if (before->inputs[n] == part->inputs[i] && before->op->by_element)
                return true;
    }
    return false;
}

/* The output where a step computes; -1: it is none by element. */
static int32_t main_output(const struct ipu_executable *e,
                           const struct ipu__step *step)
{
    struct ipu__step_op place;

    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        if ((part->op->by_element || (step->head && k == 0)) &&
            !part->op->alias && !e->values[part->output].inner)
            return part->output;
    }
    return -1;
}

static void receive_inputs(const struct ipu_executable *e,
                           const struct ipu__step *step, int32_t k,
                           int32_t output, struct ipu__received *r)
{
    struct ipu__step_op place;
    const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

    for (int i = 0; i < part->op->ninputs; i++) {
        int32_t v = part->inputs[i];
        struct fetch f = {.from_size = element_bytes(e, v),
                          .to_size = element_bytes(e, output)};

        if (e->values[v].inner || v == output || seen(e, step, k, i))
            continue;
        f.from = spread_of(e, v);
        f.to = spread_of(e, output);
        if (ipu__view_of(e, part, i) != IPU__WHOLE)
            f.period = ipu__shape_count(&e->values[v].shape);
        else if (alike(&f.from, &f.to))
            continue;
        note(r, &f);
    }
}

static void receive_output(const struct ipu_executable *e, int32_t v,
                           int32_t output, struct ipu__received *r)
{
    struct fetch f = {.from_size = element_bytes(e, output),
                      .to_size = element_bytes(e, v)};

    if (v == output || e->values[v].inner)
        return;
    f.from = spread_of(e, output);
    f.to = spread_of(e, v);
    f.from_size = f.to_size;
    if (!alike(&f.from, &f.to))
        note(r, &f);
}

void ipu__receive(const struct ipu_executable *e, const struct ipu__step *step,
                  struct ipu__received *r)
{
    int32_t output = main_output(e, step);
    struct ipu__step_op place;

    r->most = r->messages = 0;
    if (output < 0 || ipu__shape_count(&e->values[output].shape) == 0)
        return;
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        if (!part->op->by_element)
            continue;
        receive_inputs(e, step, k, output, r);
        receive_output(e, part->output, output, r);
    }
}
