/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - the pass that puts steps into an order that needs less memory.
 *
 * compile.c runs it after fusion and before liveness. Scheduling places host
 * calls as early as possible: only steps that a call or the calls before it
 * need run before it. This pass leaves the calls where they are. Steps change
 * places only within a section, that is between two calls (section.c,
 * search.c); starts and ends of collectives of the device's network are calls
 * in this sense. Sections are independent, since what is alive between two of
 * them follows from which steps have run, not in which order. Sections that may
 * need the most come first; once no remaining section can need more than an
 * ordered one, the rest stays as it is.
 *
 * The reuse of an input's memory by an output depends on more than is known
 * here. So liveness plans both orders, and the new one is taken only if its
 * plan has a smaller peak: the peak of the fullest chip, if there are several.
 */
#include "compiler/order/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/passes.h"

struct section {
    int32_t first, end; /* steps */
    int64_t bytes;      /* that it may need */
};

/* Puts sections that may need more first; of equals, earlier ones. */
static int by_need(const void *first, const void *second)
{
    const struct section *a = first, *b = second;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Returns whether a step stays where it is: the host or other devices wait for
 * it, or it waits for them. */
static bool stays(const struct ipu__step *step)
{
    return step->kind == IPU__HOST_CALL || step->op->network;
}

/* Lists the sections of two or more steps, [steps + 1]; returns how many. */
static int32_t find_sections(const struct ipu__lifetimes *lifetimes,
                             struct section *sections)
{
    const struct ipu_executable *e = lifetimes->e;
    int32_t count = 0, first = 0;

    for (int32_t i = 0; i <= e->nsteps; i++) {
        struct section *s = &sections[count];

        if (i < e->nsteps && !stays(&e->steps[i]))
            continue;
        *s = (struct section){.first = first, .end = i};
        for (int32_t k = first; k < i; k++) {
            int64_t bytes = ipu__bytes_during(lifetimes, k);

            s->bytes = s->bytes < bytes ? bytes : s->bytes;
        }
        count += i > first + 1; /* or there is nothing to order */
        first = i + 1;
    }
    qsort(sections, (size_t)count, sizeof *sections, by_need);
    return count;
}

/* Makes order, [steps], the new one. Returns whether that is another. */
static int find_order(struct ipu__sections *problems,
                      const struct section *sections, int32_t count,
                      int32_t *order)
{
    int64_t most = 0;
    int changed = 0;

    for (int32_t i = 0; i < count && sections[i].bytes > most; i++) {
        const struct section *s = &sections[i];
        int64_t peak = 0;
        int status = ipu__section_order(problems, s->first, s->end, most,
                                        order + s->first, &peak);

        IPU_TRY(status);
        changed |= status;
        most = most < peak ? peak : most;
    }
    return changed;
}

/* ------------------------------------------------------- plans compared */

/* Returns the most bytes in blocks at the same time, on one chip. */
static int peak_of_plan(const struct ipu_executable *e, int64_t *peak)
{
    int32_t chips = ipu_executable_shards(e);
    size_t n = (size_t)chips * ((size_t)e->nsteps + 3);
    int64_t *changes;

    IPU_TRY(ipu__new_array(&changes, n, sizeof *changes));
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

/* Plans the memory of the program in an order of the steps, to learn its peak,
 * and undoes that. values: [values], room for their copies. */
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

/* Returns whether the plan of another order of the steps has a smaller peak. */
static int is_better(struct ipu_executable *e, struct ipu__step *steps)
{
    struct ipu__value *values;
    int64_t before = 0, after = 0;
    int status;

    IPU_TRY(ipu__new_array(&values, (size_t)e->nvalues, sizeof *values));
    status = try_plan(e, e->steps, values, &before);
    if (status >= 0)
        status = try_plan(e, steps, values, &after);
    free(values);
    return status < 0 ? status : after < before;
}

static int put_in_order(struct ipu_executable *e, const int32_t *order)
{
    struct ipu__step *steps;
    int status;

    IPU_TRY(ipu__new_array(&steps, (size_t)e->nsteps, sizeof *steps));
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

/* order, sections: room for one more than there are steps. */
static int find_and_take(struct ipu_executable *e,
                         const struct ipu__lifetimes *lifetimes, int32_t *order,
                         struct section *sections)
{
    struct ipu__sections *problems = ipu__sections_new(lifetimes);
    int status;

    if (!problems)
        return ipu__fail_memory((size_t)e->nsteps * sizeof *sections);
    for (int32_t i = 0; i < e->nsteps; i++)
        order[i] = i;
    status = find_order(problems, sections, find_sections(lifetimes, sections),
                        order);
    ipu__sections_free(problems);
    return status > 0 ? put_in_order(e, order) : status;
}

int ipu__order(struct ipu_executable *e)
{
    size_t nsteps = (size_t)e->nsteps + 1;
    int32_t *order = calloc(nsteps, sizeof *order);
    struct section *sections = calloc(nsteps, sizeof *sections);
    struct ipu__lifetimes lifetimes;
    int status = ipu__lifetimes_init(&lifetimes, e);

    if (status >= 0)
        status = order && sections
                     ? find_and_take(e, &lifetimes, order, sections)
                     : ipu__fail_memory(nsteps * sizeof *sections);
    ipu__lifetimes_fini(&lifetimes);
    free(sections);
    free(order);
    return status < 0 ? status : IPU_OK;
}
