/* SPDX-License-Identifier: Apache-2.0 */
/*
 * congruent.c - finds steps that the same code could run. outline.c calls it.
 *
 * The code of a step is its vertices, and the messages of its exchange: their
 * sender, receiver, size and time. So congruent steps have the same ops with
 * the same attributes (but for seeds, which are data), on operands of the same
 * shapes, on the same tiles, in the same pattern: where one step has an operand
 * twice, or makes its output in the place of an input, the other does, too.
 * Such steps take the same cycles, except where the plan of a product depends
 * on the memory around it; so cycles are compared as well.
 *
 * Loops, and steps that leave the chip, are not candidates.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/outline/outline.h"

/* ---------------------------------------------------------------- operands */

static int32_t note_use(const struct ipu_executable *e, int32_t v, bool makes,
                        struct ipu__block_use *users, int32_t n)
{
    int32_t i = 0;

    if (e->values[v].inner)
        return n;
    while (i < n && users[i].block != e->values[v].block)
        i++;
    if (i == n)
        users[n++] = (struct ipu__block_use){.block = e->values[v].block};
    users[i].reads |= !makes;
    users[i].makes |= makes;
    return n;
}

int32_t ipu__blocks_used(const struct ipu_executable *e,
                         const struct ipu__step *step,
                         struct ipu__block_use users[IPU__MOST_USED])
{
    struct ipu__step_op place;
    int32_t n = 0;

    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        for (int i = 0; i < part->op->ninputs; i++)
            n = note_use(e, part->inputs[i], false, users, n);
        n = note_use(e, part->output, true, users, n);
    }
    return n;
}

/* -------------------------------------------------------------- comparing */

static bool same_block(const struct ipu_executable *e, int32_t a, int32_t b,
                       bool placed)
{
    const struct ipu__block *x = &e->blocks[a], *y = &e->blocks[b];

    return x->bytes == y->bytes && x->tiles == y->tiles &&
           (!placed || x->first_tile == y->first_tile);
}

/* Returns whether two values are used in the same pattern. Blocks are listed
 * once, in the order of ops, so each value must be in the block of the same
 * number. */
static bool same_values(const struct ipu_executable *e, int32_t a, int32_t b,
                        const struct ipu__block_use *first,
                        const struct ipu__block_use *second, int32_t n)
{
    const struct ipu__value *x = &e->values[a], *y = &e->values[b];

    if (x->inner != y->inner || x->shard != y->shard ||
        !ipu__shape_equal(&x->shape, &y->shape))
        return false;
    for (int32_t i = 0; i < n && !x->inner; i++)
        if ((first[i].block == x->block) != (second[i].block == y->block))
            return false;
    return true;
}

static bool same_cycles(const struct ipu__step *a, const struct ipu__step *b)
{
    const ipu_cycles *x = &a->cycles, *y = &b->cycles;

    return x->compute == y->compute && x->exchange == y->exchange &&
           x->sync == y->sync && x->code_bytes == y->code_bytes &&
           x->exchange_code_bytes == y->exchange_code_bytes &&
           x->exchange_bytes == y->exchange_bytes &&
           x->temporary_bytes == y->temporary_bytes &&
           a->busy_tiles == b->busy_tiles;
}

static bool same_parts(const struct ipu_executable *e,
                       const struct ipu__step *a, const struct ipu__step *b,
                       const struct ipu__block_use *first,
                       const struct ipu__block_use *second, int32_t n)
{
    struct ipu__step_op here, there;

    for (int32_t k = 0; k < ipu__nparts(a); k++) {
        const struct ipu__step_op *x = ipu__part_of(e, a, k, &here);
        const struct ipu__step_op *y = ipu__part_of(e, b, k, &there);

        if (x->op != y->op ||
            !ipu__attributes_congruent(&x->attributes, &y->attributes) ||
            !same_values(e, x->output, y->output, first, second, n))
            return false;
        for (int i = 0; i < x->op->ninputs; i++)
            if (!same_values(e, x->inputs[i], y->inputs[i], first, second, n))
                return false;
    }
    return true;
}

static bool are_congruent(const struct ipu_executable *e,
                          const struct ipu__step *a, const struct ipu__step *b,
                          bool placed)
{
    struct ipu__block_use first[IPU__MOST_USED], second[IPU__MOST_USED];
    int32_t n;

    if (a->kind != b->kind || a->op != b->op || a->head != b->head ||
        ipu__nparts(a) != ipu__nparts(b) || a->elements != b->elements ||
        (placed && !same_cycles(a, b)))
        return false;
    n = ipu__blocks_used(e, a, first);
    if (n != ipu__blocks_used(e, b, second) ||
        !same_parts(e, a, b, first, second, n))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (!same_block(e, first[i].block, second[i].block, placed))
            return false;
    return true;
}

/* ------------------------------------------------------------------ groups */

static bool leaves_chip(const struct ipu_executable *e,
                        const struct ipu__step_op *part)
{
    for (int i = 0; i < part->op->ninputs; i++)
        if (e->values[part->inputs[i]].remote)
            return true;
    return e->values[part->output].remote || part->op == &ipu__host_receive ||
           part->op == &ipu__remote_load || part->op == &ipu__remote_store ||
           part->op == &ipu__row_load || part->op == &ipu__row_store ||
           part->op->collective || part->op->network;
}

/* Returns whether a step has its own code, which others might run. */
static bool may_share(const struct ipu_executable *e,
                      const struct ipu__step *step)
{
    struct ipu__step_op place;

    if (step->kind != IPU__COMPUTE && step->kind != IPU__FUSED)
        return false;
    for (int32_t k = 0; k < ipu__nparts(step); k++)
        if (leaves_chip(e, ipu__part_of(e, step, k, &place)))
            return false;
    return true;
}

static size_t hash_of(const struct ipu_executable *e,
                      const struct ipu__step *step, bool placed)
{
    const struct ipu__value *output = &e->values[step->output];
    const struct ipu__shape *shape = &output->shape;
    uint64_t hash = (uintptr_t)step->op;
    struct ipu__step_op place;

    if (placed && !output->inner)
        hash += (uint64_t)step->cycles.total * 4099 +
                (uint64_t)e->blocks[output->block].first_tile;

    for (int32_t k = 0; k < ipu__nparts(step); k++)
        hash = (hash ^ (uintptr_t)ipu__part_of(e, step, k, &place)->op) *
               0x100000001b3u;
    for (int32_t i = 0; i < shape->ndim; i++)
        hash = (hash ^ (uint64_t)shape->extents[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 20 ^ hash);
}

/* Finds the first step of each group. slots: [size], first steps by hash, -1:
 * none; group: [steps], the first of its group, or -1; counts: [steps], steps
 * in the group of a first one. */
static void find_firsts(const struct ipu_executable *e, bool placed,
                        int32_t *slots, size_t size, int32_t *group,
                        int32_t *counts)
{
    for (int32_t i = 0; i < e->nsteps; i++) {
        size_t at;

        group[i] = -1;
        if (!may_share(e, &e->steps[i]))
            continue;
        at = hash_of(e, &e->steps[i], placed) & (size - 1);
        while (slots[at] >= 0 &&
               !are_congruent(e, &e->steps[slots[at]], &e->steps[i], placed))
            at = (at + 1) & (size - 1);
        if (slots[at] < 0)
            slots[at] = i;
        group[i] = slots[at];
        counts[slots[at]]++;
    }
}

static void list_groups(const struct ipu_executable *e, const int32_t *group,
                        int32_t *counts, struct ipu__congruent *congruent)
{
    int32_t n = 0;

    for (int32_t i = 0; i < e->nsteps; i++) {
        int32_t first = group[i], count = first == i ? counts[i] : 0;

        if (count < 2)
            continue;
        congruent->firsts[congruent->ngroups++] = n;
        counts[i] = -n - 1; /* now the place of its next member */
        n += count;
    }
    congruent->firsts[congruent->ngroups] = n;
    for (int32_t i = 0; i < e->nsteps; i++) {
        int32_t *next = group[i] < 0 ? NULL : &counts[group[i]];

        if (!next || *next >= 0)
            continue;
        congruent->steps[-*next - 1] = i;
        (*next)--;
    }
}

int ipu__congruent_init(const struct ipu_executable *e, bool placed,
                        struct ipu__congruent *congruent)
{
    size_t n = (size_t)e->nsteps + 1, size = 16;
    int32_t *slots, *group = calloc(n, sizeof *group);
    int32_t *counts = calloc(n, sizeof *counts);
    bool enough;

    while (size < 2 * n)
        size *= 2;
    slots = malloc(size * sizeof *slots);
    *congruent =
        (struct ipu__congruent){.firsts = calloc(n, sizeof *congruent->firsts),
                                .steps = calloc(n, sizeof *congruent->steps)};
    enough = slots && group && counts && congruent->firsts && congruent->steps;
    if (enough) {
        memset(slots, -1, size * sizeof *slots);
        find_firsts(e, placed, slots, size, group, counts);
        list_groups(e, group, counts, congruent);
    }
    free(slots);
    free(group);
    free(counts);
    return enough ? IPU_OK : ipu__fail_memory(size * sizeof *slots);
}

void ipu__congruent_fini(struct ipu__congruent *congruent)
{
    free(congruent->firsts);
    free(congruent->steps);
    *congruent = (struct ipu__congruent){.ngroups = 0};
}
