/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outline.c - the pass by which congruent steps share code.
 *
 * A step's code is its exchange and the state of its vertices. It contains the
 * addresses of the step's operands. So congruent steps (congruent.c) can run
 * the same code only if their operands are at the same addresses at that time:
 *
 *     step 3   matmul (a3, w3) -> b3      calls    matmul at  A, W -> B
 *     step 8   matmul (a8, w8) -> b8      calls    the same
 *
 *     a3, a8   are never alive together: both are stored at A
 *     w3, w8   are alive together: each is copied to W before its call
 *     b3, b8   are alive together: each is copied from B after its call
 *
 * An operand costs nothing if two conditions hold: the operands that take its
 * place in the steps of the group are never alive together, and none of them is
 * alive together with a block that another group has put there (struct places).
 * Any other operand is copied, which costs cycles, and memory while the step
 * runs. A tile copies only within its own memory, so the operands must lie on
 * the same tiles; align.c places them so.
 *
 * Free memory has no value. So the pass shares code only in programs that
 * would not fit without it and fit with it, and shares no more than they need.
 * It begins with the groups that cost nothing and continues with those that
 * cost the fewest cycles for the bytes they save.
 */
#include "compiler/outline/outline.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/compiler.h"
#include "compiler/passes.h"
#include "compiler/placement/spread.h"
#include "target/cost.h"

/* Rounds of sharing. A round makes copies, which take memory, so the next may
 * have to share more. */
enum { MOST_ROUNDS = 4 };

/* ------------------------------------------------------------------ places */

/* A block, in a list that is put in order. */
struct tenant {
    int32_t birth, block;
};

/* Blocks by address: all blocks at one address form a list. */
struct places {
    const struct ipu_executable *e;
    int32_t *place;      /* [blocks]: the block that represents its place */
    int32_t *next;       /* [blocks]: the next in its place; -1: no more */
    int32_t *stamp;      /* [blocks]: the last gathering that had its place */
    struct tenant *some; /* [blocks]: what was gathered */
    int32_t gatherings;
    bool *fixed; /* [blocks]: it is always there, or another program's */
};

static void places_fini(struct places *p)
{
    free(p->place);
    free(p->next);
    free(p->stamp);
    free(p->some);
    free(p->fixed);
}

/* Puts each block at a separate place. */
static void places_reset(struct places *p)
{
    for (int32_t b = 0; b < p->e->nblocks; b++) {
        p->place[b] = b;
        p->next[b] = -1;
    }
}

static int places_init(const struct ipu_executable *e, struct places *p)
{
    size_t n = (size_t)e->nblocks + 1;

    *p = (struct places){.e = e,
                         .place = calloc(n, sizeof *p->place),
                         .next = calloc(n, sizeof *p->next),
                         .stamp = calloc(n, sizeof *p->stamp),
                         .some = calloc(n, sizeof *p->some),
                         .fixed = calloc(n, sizeof *p->fixed)};
    if (!p->place || !p->next || !p->stamp || !p->some || !p->fixed)
        return ipu__fail_memory(n * sizeof *p->some);
    for (int32_t b = 0; b < e->nblocks; b++)
        p->fixed[b] = e->blocks[b].always;
    for (int32_t v = 0; v < e->nvalues; v++)
        if (e->values[v].bound && !e->values[v].inner)
            p->fixed[e->values[v].block] = true;
    return IPU_OK;
}

static int by_birth(const void *first, const void *second)
{
    const struct tenant *a = first, *b = second;

    if (a->birth != b->birth)
        return a->birth < b->birth ? -1 : 1;
    return a->block < b->block ? -1 : a->block > b->block;
}

/* Gathers in some all blocks at the places of n blocks. Returns their number;
 * -1 if they cannot all be at one place because some are alive together. */
static int32_t gather_blocks(struct places *p, const int32_t *blocks, int32_t n)
{
    const struct ipu__block *all = p->e->blocks;
    int32_t count = 0, places = 0;
    bool fixed = false;

    p->gatherings++;
    for (int32_t i = 0; i < n; i++) {
        int32_t place = p->place[blocks[i]];

        if (p->stamp[place] == p->gatherings)
            continue;
        p->stamp[place] = p->gatherings;
        places++;
        for (int32_t b = place; b >= 0; b = p->next[b]) {
            p->some[count++] = (struct tenant){all[b].birth, b};
            fixed |= p->fixed[b];
        }
    }
    if (places == 1)
        return count;
    if (fixed)
        return -1;
    qsort(p->some, (size_t)count, sizeof *p->some, by_birth);
    for (int32_t i = 1; i < count; i++)
        if (p->some[i].birth <= all[p->some[i - 1].block].death)
            return -1;
    return count;
}

/* Puts the gathered blocks at one place. */
static void put_together(struct places *p, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        p->place[p->some[i].block] = p->some[0].block;
        p->next[p->some[i].block] = i + 1 < count ? p->some[i + 1].block : -1;
    }
}

/* ------------------------------------------------------------------ groups */

struct group {
    const int32_t *steps; /* [count] */
    int32_t count, nused;
    int32_t *blocks; /* [used, count] */
    /* Operands that each step copies; the copies' cost, and the savings */
    int32_t copies;
    int64_t copied_bytes, held_bytes;
    double cycles;       /* of a run */
    int64_t saved_bytes; /* of code */
};

struct outliner {
    struct ipu_executable *e;
    struct places places;
    struct ipu__congruent congruent;
    struct group *groups; /* [groups]; owned, as all arrays */
    int32_t *blocks;      /* of all groups */
    /* [steps], without copies: cycles; bytes of tensors on the fullest tile */
    ipu_cycles *cycles;
    int64_t *full_bytes;
    int64_t code_bytes;
};

/* Returns whether a step runs nothing: its output is the input, seen
 * differently. */
static bool does_nothing(const struct ipu__step *step)
{
    return step->cycles.total == 0 && step->cycles.exchange_code_bytes == 0;
}

/* Returns the bytes of a block on the tile that has most of it, also if it is
 * another program's. */
static int64_t share_of(const struct ipu_executable *e, int32_t block)
{
    int64_t grains = ipu__grains(e->blocks[block].bytes);
    int32_t width = ipu__block_width(e, &e->blocks[block]);

    return width ? (grains + width - 1) / width * IPU__GRAIN_BYTES : 0;
}

/* Counts the copies of a group that shares code, with their cycles, and the
 * code bytes that it saves, given the blocks that have been put together so
 * far. If commit, puts together those of its blocks that can be. */
static int evaluate_group(struct outliner *o, struct group *g, bool commit)
{
    struct ipu_executable *e = o->e;
    struct ipu__block_use users[IPU__MOST_USED];
    ipu_cycles cycles = {.size = sizeof cycles};

    ipu__blocks_used(e, &e->steps[g->steps[0]], users);
    g->copies = 0;
    g->copied_bytes = g->held_bytes = 0;
    for (int32_t k = 0; k < g->nused; k++) {
        int32_t count = gather_blocks(
            &o->places, g->blocks + (ptrdiff_t)k * g->count, g->count);
        int64_t bytes = share_of(e, users[k].block);

        if (count >= 0 && commit)
            put_together(&o->places, count);
        if (count >= 0)
            continue;
        g->copies++;
        g->held_bytes += bytes;
        g->copied_bytes += bytes * (users[k].reads + users[k].makes);
    }
    if (g->copies > 0)
        IPU_TRY(ipu__count_copies(e, g->copied_bytes, &cycles));
    g->cycles = 0;
    for (int32_t i = 0; i < g->count; i++) {
        int32_t every = e->steps[g->steps[i]].count;

        g->cycles += (double)cycles.total / (every > 0 ? every : 1);
    }
    g->saved_bytes =
        (g->count - 1) * ipu__own_code_bytes(e, &e->steps[g->steps[0]]) -
        g->count * ipu__copy_code_bytes(g->copies);
    return IPU_OK;
}

static int commit_group(struct outliner *o, struct group *g)
{
    IPU_TRY(evaluate_group(o, g, true));
    for (int32_t i = 0; i < g->count; i++) {
        struct ipu__step *step = &o->e->steps[g->steps[i]];

        step->body = i > 0 ? g->steps[0] : IPU__NONE;
        step->calls = g->count;
        step->copies = g->copies;
        step->copied_bytes = g->copied_bytes;
        step->held_bytes = g->held_bytes;
        if (g->copies == 0)
            continue;
        step->cycles.temporary_bytes += g->held_bytes;
        IPU_TRY(ipu__count_copies(o->e, g->copied_bytes, &step->cycles));
    }
    g->count = 0; /* it is done */
    return IPU_OK;
}

static void list_blocks(struct outliner *o, struct group *g, int32_t *blocks)
{
    struct ipu__block_use users[IPU__MOST_USED];

    g->blocks = blocks;
    for (int32_t i = 0; i < g->count; i++) {
        const struct ipu__step *step = &o->e->steps[g->steps[i]];

        g->nused = ipu__blocks_used(o->e, step, users);
        for (int32_t k = 0; k < g->nused; k++)
            blocks[(ptrdiff_t)k * g->count + i] = users[k].block;
        if (does_nothing(step))
            g->nused = 0;
    }
}

static int outliner_init(struct ipu_executable *e, struct outliner *o)
{
    struct ipu__block_use users[IPU__MOST_USED];
    size_t nsteps = (size_t)e->nsteps + 1, nblocks = 1;

    *o = (struct outliner){.e = e};
    IPU_TRY(places_init(e, &o->places));
    IPU_TRY(ipu__congruent_init(e, true, &o->congruent));
    for (int32_t i = 0; i < e->nsteps; i++)
        nblocks += (size_t)ipu__blocks_used(e, &e->steps[i], users);
    o->groups = calloc((size_t)o->congruent.ngroups + 1, sizeof *o->groups);
    o->blocks = calloc(nblocks, sizeof *o->blocks);
    o->cycles = calloc(nsteps, sizeof *o->cycles);
    o->full_bytes = calloc(nsteps, sizeof *o->full_bytes);
    o->code_bytes = e->code_bytes;
    if (!o->groups || !o->blocks || !o->cycles || !o->full_bytes)
        return ipu__fail_memory(nsteps * sizeof *o->cycles);
    for (int32_t i = 0; i < e->nsteps; i++) {
        o->cycles[i] = e->steps[i].cycles;
        o->full_bytes[i] = e->steps[i].full_bytes;
    }
    return IPU_OK;
}

static void outliner_fini(struct outliner *o)
{
    places_fini(&o->places);
    ipu__congruent_fini(&o->congruent);
    free(o->groups);
    free(o->blocks);
    free(o->cycles);
    free(o->full_bytes);
}

/* Undoes all sharing, for another attempt. */
static void share_none(struct outliner *o)
{
    int32_t *blocks = o->blocks;

    places_reset(&o->places);
    for (int32_t i = 0; i < o->e->nsteps; i++) {
        struct ipu__step *step = &o->e->steps[i];

        step->body = IPU__NONE;
        step->calls = step->copies = 0;
        step->copied_bytes = step->held_bytes = 0;
        step->cycles = o->cycles[i];
    }
    for (int32_t g = 0; g < o->congruent.ngroups; g++) {
        const int32_t *firsts = o->congruent.firsts + g;
        struct group *group = &o->groups[g];

        *group = (struct group){.steps = o->congruent.steps + firsts[0],
                                .count = firsts[1] - firsts[0]};
        list_blocks(o, group, blocks);
        blocks += (ptrdiff_t)group->nused * group->count;
    }
}

/* Sorts groups that take the fewest cycles for what they save first; of those
 * that take none, the one that saves the most. */
static int by_price(const void *first, const void *second)
{
    const struct group *a = first, *b = second;
    double x = a->cycles * (double)b->saved_bytes;
    double y = b->cycles * (double)a->saved_bytes;

    if (x != y)
        return x < y ? -1 : 1;
    if (a->saved_bytes != b->saved_bytes)
        return a->saved_bytes > b->saved_bytes ? -1 : 1;
    return a->steps[0] < b->steps[0] ? -1 : a->steps[0] > b->steps[0];
}

/* Evaluates the current groups, and sorts those that save something by price.
 * Returns the number of these. */
static int sort_groups(struct outliner *o)
{
    int32_t n = 0;

    for (int32_t g = 0; g < o->congruent.ngroups; g++) {
        struct group group = o->groups[g];

        if (group.count > 0)
            IPU_TRY(evaluate_group(o, &group, false));
        o->groups[g] = o->groups[n];
        if (group.count > 0 && group.saved_bytes > 0)
            o->groups[n++] = group;
        else
            o->groups[g] = group;
    }
    qsort(o->groups, (size_t)n, sizeof *o->groups, by_price);
    return n;
}

/* Returns whether a group makes a full tile fuller: a step holds more bytes for
 * the shared code than the group saves, and the tile has no room for them even
 * if that many bytes of code are saved in all. */
static bool is_too_full(const struct outliner *o, const struct group *g,
                        int64_t bytes)
{
    int64_t most = 0;

    if (g->held_bytes <= g->saved_bytes)
        return false;
    for (int32_t i = 0; i < g->count; i++)
        if (most < o->full_bytes[g->steps[i]])
            most = o->full_bytes[g->steps[i]];
    return most + g->held_bytes + o->code_bytes - bytes + o->e->reserved_bytes >
           o->e->target.bytes_per_tile;
}

/* Shares until that many bytes of code are saved. Returns 1 if they are, 0 if
 * not. */
static int share_bytes(struct outliner *o, int64_t wanted)
{
    int64_t saved = 0, all, bytes = wanted;
    int32_t n;

    share_none(o);
    for (int paid = 0; paid < 2; paid++) {
        n = sort_groups(o);
        IPU_TRY(n);
        all = saved;
        for (int32_t g = 0; g < n; g++)
            all += o->groups[g].saved_bytes;
        bytes = bytes < all ? bytes : all;
        for (int32_t g = 0; g < n && saved < bytes; g++) {
            struct group *group = &o->groups[g];

            /* Others may be at its places by now. */
            IPU_TRY(evaluate_group(o, group, false));

            if ((group->copies > 0 && !paid) || group->saved_bytes <= 0 ||
                is_too_full(o, group, bytes))
                continue;
            saved += group->saved_bytes;
            IPU_TRY(commit_group(o, group));
        }
    }
    return saved >= wanted;
}

/* --------------------------------------------------------------- how much */

/* Shares as much as it takes. */
static int share_until_it_fits(struct outliner *o)
{
    int64_t excess, bytes = 0;
    int more = 1;

    for (int round = 0; round < MOST_ROUNDS && more; round++) {
        IPU_TRY(ipu__excess(o->e, &excess));
        if (excess <= 0)
            return IPU_OK;
        bytes += excess << round;
        more = share_bytes(o, bytes);
        IPU_TRY(more);
        IPU_TRY(ipu__place(o->e, true));
    }
    return IPU_OK;
}

/* Shares code with tensors where they are. */
static int share_code(struct ipu_executable *e)
{
    struct outliner o;
    int status = outliner_init(e, &o);

    if (status >= 0)
        status = share_until_it_fits(&o);
    outliner_fini(&o);
    return status;
}

static int place_anew(struct ipu_executable *e)
{
    IPU_TRY(ipu__place(e, false));
    IPU_TRY(ipu__cost(e));
    return ipu__place(e, true);
}

/* Undoes all sharing, which has made the program no smaller. */
static int share_nothing(struct ipu_executable *e)
{
    for (int32_t i = 0; i < e->nsteps; i++) {
        struct ipu__step *step = &e->steps[i];

        step->body = IPU__NONE;
        step->calls = step->copies = 0;
        step->copied_bytes = step->held_bytes = 0;
    }
    return place_anew(e);
}

int ipu__outline(struct ipu_executable *e)
{
    int64_t before, after;
    struct ipu__congruent congruent;
    int status;

    IPU_TRY(ipu__excess(e, &before));
    /* A program that would not fit without any code shares none. */
    if (before <= 0 || before > e->code_bytes)
        return IPU_OK;
    status = ipu__congruent_init(e, false, &congruent);
    if (status >= 0 && congruent.ngroups > 0) {
        e->congruent = &congruent;
        status = place_anew(e);
        if (status >= 0)
            status = share_code(e);
        e->congruent = NULL;
        if (status >= 0)
            status = ipu__excess(e, &after);
        if (status >= 0 && after >= before)
            status = share_nothing(e);
    }
    ipu__congruent_fini(&congruent);
    return status;
}
