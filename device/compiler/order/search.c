/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - finds an order of units with a peak of memory as small as can be
 * found. section.c calls it.
 *
 * A round takes units from valley to valley (valley.c) until none is left. If
 * it never had to take a unit without a valley, there is no better order.
 * Otherwise, further rounds allow a higher peak from the beginning: there are
 * more valleys then, found sooner, since all hills below that peak are equal.
 * The peak to allow is found by bisection, between a lower bound for all orders
 * and the best so far.
 *
 * A greedy scheduler in place of this was measured: no rule kept the peak of
 * all networks of bench/ within a few percent.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/order/valley.h"
#include "compiler/program/progress.h"

enum { MOST_ROUNDS = 8 };

struct search {
    const struct ipu__order_problem *problem; /* borrowed */
    struct ipu__valleys *valleys;
    struct ipu__progress *progress; /* borrowed */
    int32_t *units;                 /* [units]: of this round */
};

/* Returns the peak of an order; units NULL: as they are numbered. */
static int64_t peak_of(const struct search *s, const int32_t *units)
{
    struct ipu__front *f = ipu__valleys_begin(s->valleys, s->problem->before);

    for (int32_t i = 0; i < s->problem->nunits; i++)
        ipu__front_take(f, units ? units[i] : i);
    return f->peak;
}

/* Finds an order that does not care what stays below the allowed peak. */
static int find_order(struct search *s, int32_t round, int64_t allowed)
{
    const int64_t n = s->problem->nunits;
    struct ipu__front *f = ipu__valleys_begin(s->valleys, allowed);

    while (ipu__front_rest(f) > 0) {
        IPU_TRY(ipu__progress(s->progress, "order", round * n + f->ntaken,
                              n * MOST_ROUNDS));
        ipu__valleys_next(s->valleys);
    }
    memcpy(s->units, f->taken, (size_t)n * sizeof *s->units);
    return IPU_OK;
}

/* Returns a lower bound for all orders: each unit has what it uses and makes.
 */
static int64_t least_peak(const struct ipu__order_problem *o)
{
    int64_t least = o->before < o->after ? o->after : o->before;

    for (int32_t n = 0; n < o->nunits; n++) {
        const struct ipu__order_unit *u = &o->units[n];
        int64_t bytes =
            o->around + u->inside - ipu__unit_reused(o, u, UINT64_MAX);

        for (int32_t i = 0; i < u->nuses; i++)
            bytes += o->bytes[o->uses[u->uses + i]];
        for (int32_t i = 0; i < u->nmakes; i++)
            bytes += o->bytes[o->makes[u->makes + i]];
        least = least < bytes ? bytes : least;
    }
    return least;
}

static int search_in_rounds(struct search *s, int64_t limit, int32_t *best,
                            int64_t *peak)
{
    int64_t low = least_peak(s->problem), allowed;

    *peak = peak_of(s, NULL);
    low = low < limit ? limit : low;
    allowed = low;
    for (int32_t i = 0; i < MOST_ROUNDS && low < *peak; i++) {
        int64_t got;
        bool gave_up;

        IPU_TRY(find_order(s, i, allowed));
        gave_up = ipu__valleys_gave_up(s->valleys);
        got = peak_of(s, s->units);
        if (got < *peak) {
            *peak = got;
            memcpy(best, s->units, (size_t)s->problem->nunits * sizeof *best);
        }
        if (!gave_up && i == 0)
            break; /* it is the best there is */
        low = allowed + 1;
        allowed = low + (*peak - low) / 2;
    }
    return IPU_OK;
}

int ipu__order_search(const struct ipu__order_problem *problem, int64_t limit,
                      struct ipu__progress *progress, int32_t *best,
                      int64_t *peak)
{
    size_t nunits = (size_t)problem->nunits + 1;
    struct search s = {.problem = problem,
                       .valleys = ipu__valleys_new(problem),
                       .progress = progress,
                       .units = calloc(nunits, sizeof *s.units)};
    int status;

    for (int32_t i = 0; i < problem->nunits; i++)
        best[i] = i;
    status = s.valleys && s.units ? search_in_rounds(&s, limit, best, peak)
                                  : ipu__fail_memory(nunits * sizeof *s.units);
    ipu__valleys_free(s.valleys);
    free(s.units);
    return status;
}
