/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - an order of units with a peak of memory as small as can be found.
 *
 * Valleys are gone to (valley.c) until all units are taken. If nothing was
 * given up on the way, there is no better order. If something was, all is done
 * again with a peak to allow: there are more valleys then, which are found
 * sooner, since hills below that are all alike. What to allow is found by
 * bisection, between what no order can do without and the best so far.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/order/valley.h"
#include "compiler/program/progress.h"

enum { MOST_ROUNDS = 8 };

struct search {
    const struct ipu__order *o; /* borrowed */
    struct ipu__valleys *valleys;
    struct ipu__progress *progress; /* borrowed */
    int32_t *units;                 /* [units]: of this round */
};

/* The peak of an order; NULL: as units are numbered. */
static int64_t peak_of(const struct search *s, const int32_t *units)
{
    struct ipu__ends *ends = ipu__valleys_begin(s->valleys, s->o->before);

    for (int32_t i = 0; i < s->o->nunits; i++)
        ipu__end_take(ends, IPU__FORWARD, units ? units[i] : i);
    return ends->peak;
}

/* An order with no care for what does not go over the peak that is allowed. */
static int order_all(struct search *s, int32_t round, int64_t allowed)
{
    const int64_t n = s->o->nunits;
    struct ipu__ends *ends = ipu__valleys_begin(s->valleys, allowed);
    const struct ipu__end *front = &ends->end[IPU__FORWARD];
    const struct ipu__end *back = &ends->end[IPU__BACKWARD];

    while (ends->rest > 0) {
        IPU_TRY(ipu__progress(s->progress, "order",
                              (round + 1) * n - ends->rest, n * MOST_ROUNDS));
        ipu__valleys_next(s->valleys);
    }
    memcpy(s->units, front->taken, (size_t)front->ntaken * sizeof *s->units);
    for (int32_t i = 0; i < back->ntaken; i++)
        s->units[n - 1 - i] = back->taken[i];
    return IPU_OK;
}

/* What no order can do without: each unit has what it uses and makes. */
static int64_t least_peak(const struct ipu__order *o)
{
    int64_t least = o->before < o->after ? o->after : o->before;

    for (int32_t n = 0; n < o->nunits; n++) {
        const struct ipu__unit *u = &o->units[n];
        int64_t bytes =
            o->around + u->inside - ipu__unit_reuses(o, u, UINT64_MAX);

        for (int32_t i = 0; i < u->nuses; i++)
            bytes += o->bytes[o->uses[u->uses + i]];
        for (int32_t i = 0; i < u->nmakes; i++)
            bytes += o->bytes[o->makes[u->makes + i]];
        least = least < bytes ? bytes : least;
    }
    return least;
}

static int try_all(struct search *s, int64_t limit, int32_t *best,
                   int64_t *peak)
{
    int64_t low = least_peak(s->o), allowed;

    *peak = peak_of(s, NULL);
    low = low < limit ? limit : low;
    allowed = low;
    for (int32_t i = 0; i < MOST_ROUNDS && low < *peak; i++) {
        int64_t got;
        bool gave_up;

        IPU_TRY(order_all(s, i, allowed));
        gave_up = ipu__valleys_gave_up(s->valleys);
        got = peak_of(s, s->units);
        if (got < *peak) {
            *peak = got;
            memcpy(best, s->units, (size_t)s->o->nunits * sizeof *best);
        }
        if (!gave_up && i == 0)
            break; /* it is the best there is */
        low = allowed + 1;
        allowed = low + (*peak - low) / 2;
    }
    return IPU_OK;
}

int ipu__order_search(const struct ipu__order *o, int64_t limit,
                      struct ipu__progress *progress, int32_t *best,
                      int64_t *peak)
{
    size_t nunits = (size_t)o->nunits + 1;
    struct search s = {.o = o,
                       .valleys = ipu__valleys_new(o),
                       .progress = progress,
                       .units = calloc(nunits, sizeof *s.units)};
    int status;

    for (int32_t i = 0; i < o->nunits; i++)
        best[i] = i;
    status = s.valleys && s.units ? try_all(&s, limit, best, peak)
                                  : ipu__fail_memory(nunits * sizeof *s.units);
    ipu__valleys_free(s.valleys);
    free(s.units);
    return status;
}
