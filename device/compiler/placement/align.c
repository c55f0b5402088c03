/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.c - blocks that are spread alike, and tensors that the program maps
 * itself.
 *
 * A step by element computes element i of its outputs from elements i of its
 * inputs; a step by row, like a softmax, does so with rows. If all of these
 * tensors begin on the same tile, each tile has the data it needs. So blocks of
 * as many bytes that such steps use together are joined into classes, through
 * all steps: an activation with its derivative, a weight with its gradient and
 * its moments. Where congruent steps are to share code, their operands are
 * joined, too. place.c calls it.
 */
#include <stdio.h>

#include "base/error.h"
#include "compiler/outline/outline.h"
#include "compiler/passes.h"

static int32_t find_root(int32_t *roots, int32_t b)
{
    while (roots[b] != b) {
        roots[b] = roots[roots[b]];
        b = roots[b];
    }
    return b;
}

static void join_blocks(const struct ipu_executable *e, int32_t *roots,
                        int32_t a, int32_t b)
{
    if (e->blocks[a].tiles || e->blocks[b].tiles ||
        e->blocks[a].bytes != e->blocks[b].bytes)
        return;
    a = find_root(roots, a);
    b = find_root(roots, b);
    if (a < b)
        roots[b] = a;
    else
        roots[a] = b;
}

static void join_step(const struct ipu_executable *e,
                      const struct ipu__step *step, int32_t *roots)
{
    struct ipu__step_op place;
    int32_t with = -1;

    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        if (!part->op->by_element && !part->op->by_row)
            continue;
        for (int i = 0; i <= part->op->ninputs; i++) {
            bool is_output = i == part->op->ninputs;
            int32_t v = is_output ? part->output : part->inputs[i];

            if (e->values[v].inner || e->values[v].bytes == 0 ||
                (!is_output && ipu__view_of(e, part, i) != IPU__WHOLE))
                continue;
            if (with >= 0)
                join_blocks(e, roots, with, e->values[v].block);
            with = e->values[v].block;
        }
    }
}

/* Joins what congruent steps work on: they can share code if it begins on the
 * same tiles (outline.c). */
static void join_congruent(const struct ipu_executable *e,
                           const struct ipu__congruent *congruent,
                           int32_t *roots)
{
    struct ipu__block_use first[IPU__MOST_USED], other[IPU__MOST_USED];

    for (int32_t g = 0; g < congruent->ngroups; g++) {
        const int32_t *steps = congruent->steps + congruent->firsts[g];
        int32_t count = congruent->firsts[g + 1] - congruent->firsts[g];
        int32_t n = ipu__blocks_used(e, &e->steps[steps[0]], first);

        for (int32_t i = 1; i < count; i++) {
            ipu__blocks_used(e, &e->steps[steps[i]], other);
            for (int32_t k = 0; k < n; k++)
                join_blocks(e, roots, first[k].block, other[k].block);
        }
    }
}

void ipu__align(const struct ipu_executable *e, int32_t *roots)
{
    for (int32_t b = 0; b < e->nblocks; b++)
        roots[b] = b;
    for (int32_t i = 0; i < e->nsteps; i++)
        join_step(e, &e->steps[i], roots);
    if (e->congruent)
        join_congruent(e, e->congruent, roots);
    for (int32_t b = 0; b < e->nblocks; b++)
        roots[b] = find_root(roots, b);
}

int ipu__check_maps(const struct ipu_executable *e)
{
    for (int32_t v = 0; v < e->nvalues; v++) {
        const struct ipu__value *value = &e->values[v];
        const struct ipu__mapping *map = &value->map;
        char place[96] = "";

        if (map->tiles == 0 || map->tiles <= e->target.tiles - map->first)
            continue;
        if (value->file)
            snprintf(place, sizeof place, "%.80s:%d: ", value->file,
                     (int)value->line);
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "%s%s is mapped to %d tiles from %d on: '%s' has "
                         "tiles 0 to %d",
                         place, value->name, (int)map->tiles, (int)map->first,
                         e->target.name, (int)e->target.tiles - 1);
    }
    return IPU_OK;
}
