/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.c - finds the derivatives of each batch normalisation, and keeps their
 * sums for the time of a run.
 *
 * A derivative by the offset reads only dy, and may run first. It belongs to
 * the others if all that they read is there already; none of that is
 * overwritten before the last of them has run.
 */
#include "engine/sums.h"

#include <stdlib.h>

#include "base/error.h"
#include "engine/memory.h"
#include "ops/norms/norm.h"

/* The derivatives of one normalisation. */
struct group {
    int32_t source; /* a step that reads all that the sums are made of */
    int32_t dy, x, statistics; /* the values that it reads */
    int32_t members;
    double *data; /* owned; NULL: not made in any run yet */
    bool made;    /* in this run */
};

struct ipu__sums {
    const struct ipu_executable *e;
    struct group *groups; /* owned, [steps] */
    int32_t ngroups;
    int32_t *group_of; /* owned, [steps]: of a step, or -1 */
};

/* ------------------------------------------------------------------ finding */

/* Sets the value that each is a view of. */
static void find_roots(const struct ipu_executable *e, int32_t *roots)
{
    for (int32_t v = 0; v < e->nvalues; v++)
        roots[v] = v;
    for (int32_t i = 0; i < e->nsteps; i++)
        for (int32_t k = 0; k < ipu__nparts(&e->steps[i]); k++) {
            struct ipu__step_op place;
            const struct ipu__step_op *part =
                ipu__part_of(e, &e->steps[i], k, &place);

            if (part->op->alias)
                roots[part->output] =
                    roots[part->inputs[ipu__in_place(part->op)]];
        }
}

static bool is_float(const struct ipu_executable *e, int32_t v)
{
    return e->values[v].shape.dtype == IPU_FLOAT32 &&
           e->values[v].kind != IPU__VARIABLE;
}

/* Returns whether a step may join a group: it runs whenever the others do, and
 * what the sums are made of is there. */
static bool can_join(const struct ipu__sums *s, const struct group *g,
                     int32_t i)
{
    const struct ipu_executable *e = s->e;
    const struct ipu__step *step = &e->steps[i], *other = &e->steps[g->source];

    return step->gate == other->gate && step->count == other->count &&
           step->again == other->again && e->values[g->dy].birth < i &&
           e->values[g->x].birth < i && e->values[g->statistics].birth < i;
}

/* Opens groups: each has the first derivative of a normalisation by its input
 * or scale. last: [values], the last group of a dy; -1: none. */
static void open_groups(struct ipu__sums *s, const int32_t *roots,
                        int32_t *last)
{
    const struct ipu_executable *e = s->e;

    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];
        struct group g = {.source = i};

        if (step->kind != IPU__COMPUTE || !ipu__norm_has_sums(step->op) ||
            step->attributes.view[0] != 1 || step->attributes.view[2] == 1)
            continue;
        g.dy = step->inputs[0];
        g.x = step->inputs[1];
        g.statistics = step->inputs[step->op->ninputs - 1];
        if (!is_float(e, g.dy) || !is_float(e, g.x))
            continue;
        if (last[roots[g.dy]] >= 0 && s->groups[last[roots[g.dy]]].x == g.x &&
            s->groups[last[roots[g.dy]]].statistics == g.statistics)
            continue;
        last[roots[g.dy]] = s->ngroups;
        s->groups[s->ngroups++] = g;
    }
}

/* Returns whether a step makes one of the sums of a group of its dy. */
static bool belongs_to(const struct ipu__sums *s, const struct group *g,
                       const struct ipu__step *step)
{
    const struct ipu_executable *e = s->e;
    const struct ipu__shape *y = &e->values[step->output].shape;

    if (ipu__norm_has_sums(step->op))
        return step->inputs[1] == g->x &&
               step->inputs[step->op->ninputs - 1] == g->statistics;
    return step->op == &ipu__bias_add_grad && y->dtype == IPU_FLOAT32 &&
           ipu__shape_count(y) == e->steps[g->source].attributes.view[2];
}

static void find_members(struct ipu__sums *s, const int32_t *roots,
                         const int32_t *last)
{
    const struct ipu_executable *e = s->e;

    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];
        int32_t k = IPU__NONE;

        s->group_of[i] = IPU__NONE;
        if (step->kind == IPU__COMPUTE && step->op->ninputs > 0)
            k = last[roots[step->inputs[0]]];
        if (k >= 0 && belongs_to(s, &s->groups[k], step) &&
            can_join(s, &s->groups[k], i)) {
            s->group_of[i] = k;
            s->groups[k].members++;
        }
    }
}

int ipu__sums_new(const struct ipu_executable *e, struct ipu__sums **sums)
{
    size_t nsteps = (size_t)e->nsteps, nvalues = (size_t)e->nvalues;
    int32_t *roots = NULL, *last = NULL;
    struct ipu__sums *s;
    int status;

    IPU_TRY(ipu__new_array(sums, 1, sizeof **sums));
    s = *sums;
    s->e = e;
    status = ipu__new_array(&s->groups, nsteps, sizeof *s->groups);
    if (status >= 0)
        status = ipu__new_array(&s->group_of, nsteps, sizeof *s->group_of);
    if (status >= 0)
        status = ipu__new_array(&roots, nvalues, sizeof *roots);
    if (status >= 0)
        status = ipu__new_array(&last, nvalues, sizeof *last);
    if (status >= 0) {
        for (int32_t v = 0; v < e->nvalues; v++)
            last[v] = IPU__NONE;
        find_roots(e, roots);
        open_groups(s, roots, last);
        find_members(s, roots, last);
    }
    free(roots);
    free(last);
    return status;
}

void ipu__sums_free(struct ipu__sums *s)
{
    for (int32_t i = 0; s && i < s->ngroups; i++)
        free(s->groups[i].data);
    if (s) {
        free(s->groups);
        free(s->group_of);
    }
    free(s);
}

/* ------------------------------------------------------------------ running */

void ipu__sums_begin(struct ipu__sums *s)
{
    for (int32_t i = 0; i < s->ngroups; i++)
        s->groups[i].made = false;
}

const double *ipu__sums_of(struct ipu__sums *s, const struct ipu__memory *m,
                           const struct ipu__step *step)
{
    int32_t k = s->group_of[step - s->e->steps];
    struct group *g = k >= 0 ? &s->groups[k] : NULL;
    struct ipu__call call;

    if (!g || g->members < 2)
        return NULL;
    if (g->made)
        return g->data;
    ipu__step_call(s->e, &s->e->steps[g->source], &call);
    call.inputs[0].data = ipu__memory_of(m, g->dy);
    call.inputs[1].data = ipu__memory_of(m, g->x);
    call.inputs[call.op->ninputs - 1].data = ipu__memory_of(m, g->statistics);
    if (!g->data)
        g->data = malloc(ipu__norm_sums_bytes(call.attributes));
    if (!g->data)
        return NULL; /* each step makes its own */
    ipu__norm_sums(&call, g->data);
    g->made = true;
    return g->data;
}
