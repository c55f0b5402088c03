/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - steps in an order that needs less memory.
 *
 * Scheduling has seen to it that host calls come as early as they can: what
 * stands before each is what it and the calls before it need. This pass leaves
 * the calls where they are, and with them which steps stand between two of
 * them; only in such a stretch do steps change places (region.c, search.c).
 * Stretches can be looked at one by one, since what is alive between two of
 * them follows from which steps have run, not in which order. Those that may
 * need the most come first; once one cannot need more than another cannot do
 * without, those that are left stay as they are.
 *
 * Which output takes the place of which input depends on more than is known
 * here. So the plan of both orders is made, and the new one is taken only if
 * that has a smaller peak. Of several chips, the fullest one's counts.
 */
#include "compiler/order/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/passes.h"

struct stretch {
    int32_t first, end; /* steps */
    int64_t bytes;      /* that it may need */
};

/* Those that may need more first; of equals, earlier ones. */
static int by_need(const void *first, const void *second)
{
    const struct stretch *a = first, *b = second;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* stretches: [steps + 1] */
static int32_t find_stretches(const struct ipu__cells *cells,
                              struct stretch *stretches)
{
    const struct ipu_executable *e = cells->e;
    int32_t count = 0, first = 0;

    for (int32_t i = 0; i <= e->nsteps; i++) {
        struct stretch *s = &stretches[count];

        if (i < e->nsteps && e->steps[i].kind != IPU__HOST_CALL)
            continue;
        *s = (struct stretch){.first = first, .end = i};
        for (int32_t k = first; k < i; k++) {
            int64_t bytes = ipu__cells_during(cells, k);

            s->bytes = s->bytes < bytes ? bytes : s->bytes;
        }
        count += i > first + 1; /* or there is nothing to order */
        first = i + 1;
    }
    qsort(stretches, (size_t)count, sizeof *stretches, by_need);
    return count;
}

/* order: [steps], which becomes the new one. Whether that is another. */
static int find_order(struct ipu__stretcher *stretcher,
                      const struct stretch *stretches, int32_t count,
                      int32_t *order)
{
    int64_t most = 0;
    int changed = 0;

    for (int32_t i = 0; i < count && stretches[i].bytes > most; i++) {
        const struct stretch *s = &stretches[i];
        int64_t peak = 0;
        int status = ipu__stretch_order(stretcher, s->first, s->end, most,
                                        order + s->first, &peak);

        IPU_TRY(status);
        changed |= status;
        most = most < peak ? peak : most;
    }
    return changed;
}

/* ------------------------------------------------------ what it makes of the
 * plan */

/* The most bytes in blocks at the same time, on one chip. */
static int peak_of_plan(const struct ipu_executable *e, int64_t *peak)
{
    int32_t chips = ipu_executable_shards(e);
    size_t n = (size_t)chips * ((size_t)e->nsteps + 3);
    int64_t *changes = calloc(n, sizeof *changes);

    if (!changes)
        return ipu__fail_memory(n * sizeof *changes);
    for (int32_t v = 0; v < e->nvalues; v++) {
        const struct ipu__value *value = &e->values[v];
        const struct ipu__block *b = &e->blocks[value->block];
        int64_t *chip = changes + value->shard * ((int64_t)e->nsteps + 3);

        if (!value->opens || b->remote)
            continue;
        chip[b->birth + 1] += (int64_t)b->bytes;
        chip[b->death + 2] -= (int64_t)b->bytes;
    }
    *peak = 0;
    for (int32_t c = 0; c < chips; c++) {
        int64_t alive = 0;

        for (int32_t i = 0; i < e->nsteps + 3; i++) {
            alive += changes[c * ((int64_t)e->nsteps + 3) + i];
            *peak = *peak < alive ? alive : *peak;
        }
    }
    free(changes);
    return IPU_OK;
}

/* The peak of an order of the steps, of which nothing else is kept. values:
 * [values], room for them as they are. */
static int try_plan(struct ipu_executable *e, struct ipu__step *steps,
                    struct ipu__value *values, int64_t *peak)
{
    struct ipu__step *old = e->steps;
    size_t bytes = (size_t)e->nvalues * sizeof *values;
    int status;

    memcpy(values, e->values, bytes);
    e->steps = steps;
    status = ipu__liveness(e);
    if (status >= 0)
        status = peak_of_plan(e, peak);
    e->steps = old;
    memcpy(e->values, values, bytes);
    free(e->blocks);
    e->blocks = NULL;
    e->nblocks = 0;
    return status;
}

/* Whether the plan of another order of the steps, [steps], has a smaller
 * peak. */
static int is_better(struct ipu_executable *e, struct ipu__step *steps)
{
    struct ipu__value *values = calloc((size_t)e->nvalues + 1, sizeof *values);
    int64_t before = 0, after = 0;
    int status;

    if (!values)
        return ipu__fail_memory((size_t)e->nvalues * sizeof *values);
    status = try_plan(e, e->steps, values, &before);
    if (status >= 0)
        status = try_plan(e, steps, values, &after);
    free(values);
    return status < 0 ? status : after < before;
}

static int put_in_order(struct ipu_executable *e, const int32_t *order)
{
    struct ipu__step *steps = calloc((size_t)e->nsteps + 1, sizeof *steps);
    int status;

    if (!steps)
        return ipu__fail_memory((size_t)e->nsteps * sizeof *steps);
    for (int32_t i = 0; i < e->nsteps; i++)
        steps[i] = e->steps[order[i]];
    status = is_better(e, steps);
    if (status > 0) {
        struct ipu__step *old = e->steps;

        e->steps = steps;
        steps = old;
    }
    free(steps);
    return status;
}

/* order, stretches: room for as many as there are steps, and one */
static int find_and_take(struct ipu_executable *e,
                         const struct ipu__cells *cells, int32_t *order,
                         struct stretch *stretches)
{
    struct ipu__stretcher *stretcher = ipu__stretcher_new(cells);
    int status;

    if (!stretcher)
        return ipu__fail_memory((size_t)e->nsteps * sizeof *stretches);
    for (int32_t i = 0; i < e->nsteps; i++)
        order[i] = i;
    status = find_order(stretcher, stretches, find_stretches(cells, stretches),
                        order);
    ipu__stretcher_free(stretcher);
    return status > 0 ? put_in_order(e, order) : status;
}

int ipu__order(struct ipu_executable *e)
{
    size_t nsteps = (size_t)e->nsteps + 1;
    int32_t *order = calloc(nsteps, sizeof *order);
    struct stretch *stretches = calloc(nsteps, sizeof *stretches);
    struct ipu__cells cells;
    int status = ipu__cells_init(&cells, e);

    if (status >= 0)
        status = order && stretches
                     ? find_and_take(e, &cells, order, stretches)
                     : ipu__fail_memory(nsteps * sizeof *stretches);
    ipu__cells_fini(&cells);
    free(stretches);
    free(order);
    return status < 0 ? status : IPU_OK;
}
