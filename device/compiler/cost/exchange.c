/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - counts, tile by tile, what a step by element or a step that only
 * moves must fetch. cost.c and place.c call it.
 *
 * An element is computed on the tile of its output. A tile receives the data
 * that it needs for its part of the output and does not hold: the same elements
 * of inputs of the same size, if they are spread differently; as many repeated
 * rows as its elements use; scalars. If a step makes several outputs, the
 * others are sent from the tiles of the first.
 *
 * For ops that only move (transpose, slice, concat, ...) each row is followed
 * from its source to its destination.
 *
 * Products and sums are not counted here: their plans contain the exchange
 * (target/), from as many tiles as hold their operands.
 */
#include <string.h>

#include "compiler/passes.h"
#include "compiler/placement/spread.h"
#include "ops/walk.h"
#include "target/cost.h"

/* ---------------------------------------------------------------- one input */

struct fetch {
    struct ipu__spread from, to; /* the input, the output */
    int64_t from_size, to_size;  /* of an element */
    int64_t period; /* elements of a row; 0: as many as there are */
};

/* Returns the bytes that a tile receives. */
static int64_t missing_bytes(const struct fetch *f, int32_t tile)
{
    struct ipu__range mine = ipu__spread_held(&f->to, tile),
                      here = ipu__spread_held(&f->from, tile);
    int64_t first = mine.from / f->to_size, size = f->from_size;
    int64_t count = (ipu__range_length(mine) + f->to_size - 1) / f->to_size, to;

    if (count == 0)
        return 0;
    if (f->period == 0)
        return count * size -
               ipu__range_common(
                   here,
                   (struct ipu__range){first * size, (first + count) * size});
    if (count >= f->period)
        return f->period * size - ipu__range_length(here);
    first %= f->period;
    to = first + count;
    if (to <= f->period)
        return count * size -
               ipu__range_common(here,
                                 (struct ipu__range){first * size, to * size});
    return count * size -
           ipu__range_common(
               here, (struct ipu__range){first * size, f->period * size}) -
           ipu__range_common(here,
                             (struct ipu__range){0, (to - f->period) * size});
}

static void note_fetch(struct ipu__received *r, const struct fetch *f)
{
    int64_t share = f->from.each * IPU__GRAIN_BYTES, most = 0, all = 0;

    for (int32_t i = 0; i < f->to.used; i++) {
        int32_t tile = (f->to.first + i) % f->to.tiles;
        int64_t bytes = missing_bytes(f, tile);

        most = bytes > most ? bytes : most;
        if (bytes == 0)
            continue;
        all += bytes;
        r->bytes[tile] += bytes;
        if (r->bytes[tile] > r->most)
            r->most = r->bytes[tile];
    }
    if (most == 0 || f->from.used == 0)
        return;
    r->messages += 1 + most / (share > 0 ? share : 1);
    /* A word is sent once, however many tiles receive it. */
    if (all > f->from.bytes)
        all = f->from.bytes;
    r->given += (all + f->from.used - 1) / f->from.used;
}

/* ------------------------------------------------------------------ moves */

static int64_t element_bytes(const struct ipu_executable *e, int32_t v)
{
    return (int64_t)ipu__dtype_bytes(e->values[v].shape.dtype);
}

/* Elements that are moved from one value to another. */
struct move {
    struct ipu__spread from, to;
    int64_t size;        /* of an element */
    int64_t all, pieces; /* bytes that all tiles receive; the number of rows, or
                            parts of rows, that carry them */
    struct ipu__received *r;
};

/* Counts which of the elements first + i step, for i in [0, count), are within
 * a range of bytes. */
static int64_t count_within(struct ipu__range r, int64_t size, int64_t first,
                            int64_t step, int64_t count)
{
    int64_t from = r.from / size, to = r.to / size, low, high;

    if (from >= to)
        return 0;
    if (step < 0) { /* count from the other end */
        first += (count - 1) * step;
        step = -step;
    }
    if (step == 0 || count == 1)
        return first >= from && first < to ? count : 0;
    low = first >= from ? 0 : (from - first + step - 1) / step;
    high = first >= to ? 0 : (to - first + step - 1) / step;
    high = high < count ? high : count;
    return high > low ? high - low : 0;
}

/* Moves a row of count elements, which are neighbours where they go, one tile
 * after the other. */
static void move_row(struct move *m, int64_t to, int64_t from, int64_t step,
                     int64_t count)
{
    while (count > 0) {
        int32_t tile = ipu__spread_tile(&m->to, to * m->size);
        int64_t end = ipu__spread_held(&m->to, tile).to / m->size;
        int64_t here = end - to < count ? end - to : count;
        int64_t bytes = here - count_within(ipu__spread_held(&m->from, tile),
                                            m->size, from, step, here);

        bytes *= m->size;
        m->r->bytes[tile] += bytes;
        if (m->r->bytes[tile] > m->r->most)
            m->r->most = m->r->bytes[tile];
        m->all += bytes;
        m->pieces += bytes > 0;
        to += here;
        from += here * step;
        count -= here;
    }
}

static void receive_moves(const struct ipu_executable *e,
                          const struct ipu__step_op *part, int i,
                          struct ipu__received *r)
{
    int32_t v = part->inputs[i];
    struct move m = {.from = ipu__spread_of(e, v),
                     .to = ipu__spread_of(e, part->output),
                     .size = element_bytes(e, v),
                     .r = r};
    struct ipu__moves moves = {.to_offset = 0};
    ipu__strides strides[2];
    struct ipu__call call;
    struct ipu__walk w;

    ipu__part_call(e, part, &call);
    part->op->moves(&call, i, &moves);
    if (ipu__shape_count(&moves.shape) == 0 || m.to.used == 0)
        return;
    memcpy(strides[0], moves.to, sizeof strides[0]);
    memcpy(strides[1], moves.from, sizeof strides[1]);
    for (ipu__walk_start(&w, &moves.shape, 2, strides); !w.done;
         ipu__walk_next(&w))
        move_row(&m, moves.to_offset + w.offsets[0],
                 moves.from_offset + w.offsets[1], w.steps[1], w.length);
    r->messages += (m.pieces + m.to.used - 1) / m.to.used;
    if (m.from.used > 0)
        r->given += (m.all + m.from.used - 1) / m.from.used;
}

static void receive_all_moves(const struct ipu_executable *e,
                              const struct ipu__step_op *part,
                              struct ipu__received *r)
{
    for (int i = 0; part->op->moves && i < part->op->ninputs; i++)
        receive_moves(e, part, i, r);
}

/* ------------------------------------------------------------------ a step */

static bool was_seen(const struct ipu_executable *e,
                     const struct ipu__step *step, int32_t k, int32_t i)
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

/* Returns the output where a step computes; -1: it is no step by element. */
static int32_t main_output(const struct ipu_executable *e,
                           const struct ipu__step *step)
{
    struct ipu__step_op place;

    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        if ((part->op->by_element || part->op->by_row ||
             (step->head && k == 0)) &&
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

        if (e->values[v].inner || v == output || was_seen(e, step, k, i))
            continue;
        f.from = ipu__spread_of(e, v);
        f.to = ipu__spread_of(e, output);
        if (ipu__view_of(e, part, i) != IPU__WHOLE && part->op->by_row)
            continue; /* its cost counts that */
        if (ipu__view_of(e, part, i) != IPU__WHOLE)
            f.period = ipu__shape_count(&e->values[v].shape);
        else if (ipu__spread_equal(&f.from, &f.to))
            continue;
        note_fetch(r, &f);
    }
}

static void receive_output(const struct ipu_executable *e, int32_t v,
                           int32_t output, struct ipu__received *r)
{
    struct fetch f = {.from_size = element_bytes(e, v),
                      .to_size = element_bytes(e, v)};

    if (v == output || e->values[v].inner)
        return;
    f.from = ipu__spread_of(e, output);
    f.to = ipu__spread_of(e, v);
    if (!ipu__spread_equal(&f.from, &f.to))
        note_fetch(r, &f);
}

void ipu__receive(const struct ipu_executable *e, const struct ipu__step *step,
                  struct ipu__received *r)
{
    int32_t output = main_output(e, step);
    struct ipu__step_op place;

    r->most = r->messages = r->given = 0;
    if (ipu__nparts(step) == 1)
        receive_all_moves(e, ipu__part_of(e, step, 0, &place), r);
    if (output < 0 || ipu__shape_count(&e->values[output].shape) == 0)
        return;
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        if (!part->op->by_element && !part->op->by_row)
            continue;
        receive_inputs(e, step, k, output, r);
        receive_output(e, part->output, output, r);
    }
}
