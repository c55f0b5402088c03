/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - runs units to try, undoes and takes them, and counts the bytes
 * alive.
 *
 * A unit is ready when all its predecessors have run. A storage dies with the
 * last of its users, if nothing after the section needs it. valley.c and
 * search.c call this for each unit that they look at, so only init allocates.
 */
#include "compiler/order/front.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ------------------------------------------------------ changes by a unit */

int64_t ipu__unit_reused(const struct ipu__order_problem *o,
                         const struct ipu__order_unit *u, uint64_t dying)
{
    uint64_t placed = 0;
    int64_t bytes = 0;

    for (int32_t i = 0; i < u->nreuses; i++) {
        const struct ipu__reuse *r = &o->reuses[u->reuses + i];

        if (!(dying >> r->used & 1) || placed >> r->made & 1)
            continue;
        placed |= 1ull << r->made;
        dying &= ~(1ull << r->used);
        bytes += o->bytes[o->makes[u->makes + r->made]];
    }
    return bytes;
}

struct ipu__effect ipu__front_effect(const struct ipu__front *f, int32_t unit)
{
    const struct ipu__order_problem *o = f->problem;
    const struct ipu__order_unit *u = &o->units[unit];
    int64_t made = 0, freed = 0;
    uint64_t dying = 0;

    for (int32_t i = 0; i < u->nmakes; i++)
        made += o->bytes[o->makes[u->makes + i]];
    for (int32_t i = 0; i < u->nuses; i++) {
        int32_t s = o->uses[u->uses + i];

        if (o->stays[s] || f->left[s] > 1)
            continue;
        freed += o->bytes[s];
        if (i < 64)
            dying |= 1ull << i;
    }
    return (struct ipu__effect){.during = f->live + u->inside + made -
                                          ipu__unit_reused(o, u, dying),
                                .after = f->live + made - freed};
}

static void set_ready(struct ipu__front *f, int32_t unit)
{
    int32_t word = unit / 64;

    f->ready[word] |= 1ull << unit % 64;
    if (word < f->low)
        f->low = word;
    if (word > f->high)
        f->high = word;
}

static void clear_ready(struct ipu__front *f, int32_t unit)
{
    f->ready[unit / 64] &= ~(1ull << unit % 64);
}

void ipu__front_run(struct ipu__front *f, int32_t unit)
{
    const struct ipu__order_problem *o = f->problem;
    const struct ipu__order_unit *u = &o->units[unit];

    f->done[unit] = true;
    clear_ready(f, unit);
    for (int32_t i = 0; i < u->nuses; i++)
        f->left[o->uses[u->uses + i]]--;
    for (int32_t i = 0; i < u->nsuccs; i++)
        if (--f->waits[o->succs[u->succs + i]] == 0)
            set_ready(f, o->succs[u->succs + i]);
}

void ipu__front_undo(struct ipu__front *f, int32_t unit)
{
    const struct ipu__order_problem *o = f->problem;
    const struct ipu__order_unit *u = &o->units[unit];

    for (int32_t i = 0; i < u->nsuccs; i++)
        if (f->waits[o->succs[u->succs + i]]++ == 0)
            clear_ready(f, o->succs[u->succs + i]);
    for (int32_t i = 0; i < u->nuses; i++)
        f->left[o->uses[u->uses + i]]++;
    f->done[unit] = false;
    set_ready(f, unit);
}

void ipu__front_take(struct ipu__front *f, int32_t unit)
{
    struct ipu__effect effect = ipu__front_effect(f, unit);

    ipu__front_run(f, unit);
    f->live = effect.after;
    f->taken[f->ntaken++] = unit;
    if (f->peak < effect.during)
        f->peak = effect.during;
}

int32_t ipu__front_rest(const struct ipu__front *f)
{
    return f->problem->nunits - f->ntaken;
}

bool ipu__front_can_undo(const struct ipu__front *f, int32_t unit)
{
    const struct ipu__order_unit *u = &f->problem->units[unit];

    for (int32_t i = 0; i < u->nsuccs; i++)
        if (f->done[f->problem->succs[u->succs + i]])
            return false;
    return true;
}

int64_t ipu__front_without(const struct ipu__front *f, int32_t unit)
{
    const struct ipu__order_problem *o = f->problem;
    const struct ipu__order_unit *u = &o->units[unit];
    int64_t more = 0;

    for (int32_t i = 0; i < u->nmakes; i++)
        more -= o->bytes[o->makes[u->makes + i]];
    for (int32_t i = 0; i < u->nuses; i++) {
        int32_t s = o->uses[u->uses + i];

        if (!o->stays[s] && f->left[s] == 0)
            more += o->bytes[s];
    }
    return more;
}

/* ----------------------------------------------------- units that can run */

void ipu__front_add_if_ready(const struct ipu__front *f, int32_t unit,
                             int32_t most, int32_t *units, int32_t *count)
{
    if (*count >= most || f->waits[unit] > 0 || f->done[unit])
        return;
    for (int32_t i = 0; i < *count; i++)
        if (units[i] == unit)
            return;
    units[(*count)++] = unit;
}

void ipu__front_add_ready(struct ipu__front *f, int32_t most, int32_t *units,
                          int32_t *count)
{
    while (f->low < f->high && f->ready[f->low] == 0)
        f->low++;
    while (f->low < f->high && f->ready[f->high] == 0)
        f->high--;
    for (int32_t word = f->low; word <= f->high && *count < most; word++) {
        uint64_t bits = f->ready[word];

        for (; bits && *count < most; bits &= bits - 1)
            ipu__front_add_if_ready(f, word * 64 + __builtin_ctzll(bits), most,
                                    units, count);
    }
}

/* ------------------------------------------------------------------- making */

void ipu__front_begin(struct ipu__front *f, int64_t allowed)
{
    const struct ipu__order_problem *o = f->problem;

    memset(f->ready, 0, ((size_t)o->nunits / 64 + 1) * sizeof *f->ready);
    memset(f->done, 0, (size_t)o->nunits * sizeof *f->done);
    memcpy(f->left, o->users, (size_t)o->nstorages * sizeof *f->left);
    f->low = o->nunits / 64;
    f->high = 0;
    f->live = o->before;
    f->ntaken = 0;
    f->peak = allowed;
    for (int32_t u = 0; u < o->nunits; u++) {
        f->waits[u] = o->units[u].npreds;
        if (f->waits[u] == 0)
            set_ready(f, u);
    }
}

int ipu__front_init(struct ipu__front *f, const struct ipu__order_problem *o)
{
    size_t nunits = (size_t)o->nunits + 1;

    *f = (struct ipu__front){
        .problem = o,
        .waits = calloc(nunits, sizeof *f->waits),
        .ready = calloc(nunits / 64 + 1, sizeof *f->ready),
        .left = calloc((size_t)o->nstorages + 1, sizeof *f->left),
        .done = calloc(nunits, sizeof *f->done),
        .taken = calloc(nunits, sizeof *f->taken)};
    if (f->waits && f->ready && f->left && f->done && f->taken)
        return IPU_OK;
    return ipu__fail_memory(nunits * sizeof *f->taken);
}

void ipu__front_fini(struct ipu__front *f)
{
    free(f->waits);
    free(f->ready);
    free(f->left);
    free(f->done);
    free(f->taken);
}
