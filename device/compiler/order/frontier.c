/* SPDX-License-Identifier: Apache-2.0 */
#include "compiler/order/frontier.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* ----------------------------------------------------- what a unit changes */

static bool dies(const struct ipu__ends *x, enum ipu__direction d, int32_t cell)
{
    if (x->o->stays[cell])
        return false;
    return d == IPU__FORWARD ? x->end[d].left[cell] == 1
                             : x->end[d].left[cell] == x->o->users[cell];
}

/* Bytes that makes need not have of their own. dying: a bit each of its first
 * uses. */
int64_t ipu__unit_reuses(const struct ipu__order *o, const struct ipu__unit *u,
                         uint64_t dying)
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

struct ipu__effect ipu__end_effect(const struct ipu__ends *x,
                                   enum ipu__direction d, int32_t unit)
{
    const struct ipu__order *o = x->o;
    const struct ipu__unit *u = &o->units[unit];
    int64_t made = 0, freed = 0, before;
    uint64_t dying = 0;
    struct ipu__effect effect;

    for (int32_t i = 0; i < u->nmakes; i++)
        made += o->bytes[o->makes[u->makes + i]];
    for (int32_t i = 0; i < u->nuses; i++) {
        int32_t cell = o->uses[u->uses + i];

        if (!dies(x, d, cell))
            continue;
        freed += o->bytes[cell];
        if (i < 64)
            dying |= 1ull << i;
    }
    before = x->end[d].live;
    if (d == IPU__BACKWARD)
        before += freed - made;
    effect.during = before + u->inside + made - ipu__unit_reuses(o, u, dying);
    effect.after = d == IPU__FORWARD ? before + made - freed : before;
    return effect;
}

static void set_ready(struct ipu__end *end, int32_t unit)
{
    int32_t word = unit / 64;

    end->ready[word] |= 1ull << unit % 64;
    if (word < end->low)
        end->low = word;
    if (word > end->high)
        end->high = word;
}

static void clear_ready(struct ipu__end *end, int32_t unit)
{
    end->ready[unit / 64] &= ~(1ull << unit % 64);
}

/* The units that wait for this one, seen from an end. */
const int32_t *ipu__end_next(const struct ipu__order *o, enum ipu__direction d,
                             int32_t unit, int32_t *count)
{
    const struct ipu__unit *u = &o->units[unit];

    *count = d == IPU__FORWARD ? u->nsuccs : u->npreds;
    return d == IPU__FORWARD ? o->succs + u->succs : o->preds + u->preds;
}

void ipu__end_run(struct ipu__ends *x, enum ipu__direction d, int32_t unit)
{
    const struct ipu__unit *u = &x->o->units[unit];
    struct ipu__end *end = &x->end[d];
    int32_t count;
    const int32_t *next = ipu__end_next(x->o, d, unit, &count);

    x->done[unit] = true;
    clear_ready(end, unit);
    for (int32_t i = 0; i < u->nuses; i++)
        end->left[x->o->uses[u->uses + i]]--;
    for (int32_t i = 0; i < count; i++)
        if (--end->waits[next[i]] == 0 && !x->done[next[i]])
            set_ready(end, next[i]);
}

void ipu__end_unrun(struct ipu__ends *x, enum ipu__direction d, int32_t unit)
{
    const struct ipu__unit *u = &x->o->units[unit];
    struct ipu__end *end = &x->end[d];
    int32_t count;
    const int32_t *next = ipu__end_next(x->o, d, unit, &count);

    for (int32_t i = 0; i < count; i++)
        if (end->waits[next[i]]++ == 0)
            clear_ready(end, next[i]);
    for (int32_t i = 0; i < u->nuses; i++)
        end->left[x->o->uses[u->uses + i]]++;
    x->done[unit] = false;
    set_ready(end, unit);
}

/* For good. */
void ipu__end_take(struct ipu__ends *x, enum ipu__direction d, int32_t unit)
{
    struct ipu__effect effect = ipu__end_effect(x, d, unit);

    ipu__end_run(x, d, unit);
    clear_ready(&x->end[1 - d], unit);
    x->end[d].live = effect.after;
    x->end[d].taken[x->end[d].ntaken++] = unit;
    if (x->peak < effect.during)
        x->peak = effect.during;
    x->rest--;
}

bool ipu__end_is_outermost(const struct ipu__ends *x, enum ipu__direction d,
                           int32_t unit)
{
    int32_t count;
    const int32_t *next = ipu__end_next(x->o, d, unit, &count);

    for (int32_t i = 0; i < count; i++)
        if (x->done[next[i]])
            return false;
    return true;
}

int64_t ipu__end_without(const struct ipu__ends *x, enum ipu__direction d,
                         int32_t unit)
{
    const struct ipu__order *o = x->o;
    const struct ipu__unit *u = &o->units[unit];
    const int32_t *left = x->end[d].left;
    int64_t more = 0, sign = d == IPU__FORWARD ? 1 : -1;

    for (int32_t i = 0; i < u->nmakes; i++)
        more -= sign * o->bytes[o->makes[u->makes + i]];
    for (int32_t i = 0; i < u->nuses; i++) {
        int32_t cell = o->uses[u->uses + i];

        if (!o->stays[cell] &&
            left[cell] == (d == IPU__FORWARD ? 0 : o->users[cell] - 1))
            more += sign * o->bytes[cell];
    }
    return more;
}

/* ---------------------------------------------------------- what can be run */

void ipu__end_candidate(const struct ipu__ends *x, enum ipu__direction d,
                        int32_t unit, int32_t most, int32_t *units,
                        int32_t *count)
{
    if (*count >= most || x->end[d].waits[unit] > 0 || x->done[unit])
        return;
    for (int32_t i = 0; i < *count; i++)
        if (units[i] == unit)
            return;
    units[(*count)++] = unit;
}

/* As they are numbered, seen from the end. */
void ipu__end_ready(struct ipu__ends *x, enum ipu__direction d, int32_t most,
                    int32_t *units, int32_t *count)
{
    struct ipu__end *end = &x->end[d];

    while (end->low < end->high && end->ready[end->low] == 0)
        end->low++;
    while (end->low < end->high && end->ready[end->high] == 0)
        end->high--;
    for (int32_t i = 0; i <= end->high - end->low; i++) {
        int32_t word = d == IPU__FORWARD ? end->low + i : end->high - i;
        uint64_t bits = end->ready[word];

        while (bits && *count < most) {
            int bit = d == IPU__FORWARD ? __builtin_ctzll(bits)
                                        : 63 - __builtin_clzll(bits);

            bits &= ~(1ull << bit);
            ipu__end_candidate(x, d, word * 64 + bit, most, units, count);
        }
        if (*count == most)
            return;
    }
}

/* -------------------------------------------------------------------- making
 */

static void begin_end(struct ipu__ends *x, enum ipu__direction d)
{
    const struct ipu__order *o = x->o;
    struct ipu__end *end = &x->end[d];

    memset(end->ready, 0, ((size_t)o->nunits / 64 + 1) * sizeof *end->ready);
    end->low = o->nunits / 64;
    end->high = 0;
    end->live = d == IPU__FORWARD ? o->before : o->after;
    end->ntaken = 0;
    memcpy(end->left, o->users, (size_t)o->ncells * sizeof *end->left);
    for (int32_t u = 0; u < o->nunits; u++) {
        end->waits[u] =
            d == IPU__FORWARD ? o->units[u].npreds : o->units[u].nsuccs;
        if (end->waits[u] == 0)
            set_ready(end, u);
    }
}

void ipu__ends_begin(struct ipu__ends *x, int64_t allowed)
{
    begin_end(x, IPU__FORWARD);
    begin_end(x, IPU__BACKWARD);
    memset(x->done, 0, (size_t)x->o->nunits * sizeof *x->done);
    x->rest = x->o->nunits;
    x->peak = allowed;
}

static bool init_end(struct ipu__end *end, const struct ipu__order *o)
{
    size_t nunits = (size_t)o->nunits + 1;

    end->waits = calloc(nunits, sizeof *end->waits);
    end->ready = calloc(nunits / 64 + 1, sizeof *end->ready);
    end->left = calloc((size_t)o->ncells + 1, sizeof *end->left);
    end->taken = calloc(nunits, sizeof *end->taken);
    return end->waits && end->ready && end->left && end->taken;
}

static void fini_end(struct ipu__end *end)
{
    free(end->waits);
    free(end->ready);
    free(end->left);
    free(end->taken);
}

int ipu__ends_init(struct ipu__ends *x, const struct ipu__order *o)
{
    *x = (struct ipu__ends){.o = o};
    x->done = calloc((size_t)o->nunits + 1, sizeof *x->done);
    if (init_end(&x->end[0], o) && init_end(&x->end[1], o) && x->done)
        return IPU_OK;
    return ipu__fail_memory((size_t)o->nunits * sizeof *x->end[0].taken);
}

void ipu__ends_fini(struct ipu__ends *x)
{
    fini_end(&x->end[0]);
    fini_end(&x->end[1]);
    free(x->done);
}
