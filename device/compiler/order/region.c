/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region.c - some steps as a problem that search.c can solve.
 *
 * A step keeps its place relative to
 *
 *     what it reads, and what reads it
 *     who writes a variable, where it reads it, and the other way round
 *     other steps that do more than make their outputs
 *     assignments to variables, where it may fail: they come afterwards
 *
 * These are its predecessors; for the last there is a fence, a member of the
 * stretch that is no step. A step that uses no cell, and that one other waits
 * for, as a fill, or what brings a variable to the chip, comes right before
 * that: both are one unit. It frees nothing, so there is no reason to run it
 * earlier.
 */
#include "compiler/order/region.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"

/* -------------------------------------------------- what must stand before */

static int add_pred(struct ipu__stretcher *p, int32_t m, int32_t pred)
{
    if (pred < 0 || pred == m || p->stamp[pred] == m)
        return IPU_OK;
    p->stamp[pred] = m;
    IPU_TRY(ipu__reserve((void **)&p->preds, p->npreds, &p->pred_capacity,
                         sizeof *p->preds));
    p->preds[p->npreds++] = pred;
    p->members[m].preds.count++;
    p->members[pred].nsuccs++;
    p->members[pred].succ = m;
    return IPU_OK;
}

static int32_t add_member(struct ipu__stretcher *p, int32_t step)
{
    int32_t m = p->nmembers++;

    p->members[m] = (struct ipu__member){
        .step = step, .preds = {p->npreds, 0}, .owner = m, .next = IPU__NONE};
    p->stamp[m] = IPU__NONE;
    return m;
}

/* Who reads and writes a variable, in any of its states and views, does so in
 * the order that there is. */
static bool is_rewritten(const struct ipu__stretcher *p, int32_t v)
{
    return p->cells->e->values[v].kind == IPU__VARIABLE ||
           p->cells->e->values[v].bound;
}

static int add_reads(struct ipu__stretcher *p, int32_t m,
                     const struct ipu__span *reads)
{
    for (int32_t k = 0; k < reads->count; k++) {
        int32_t at = reads->first + k,
                root = p->cells->root[p->cells->entries[at]];

        IPU_TRY(add_pred(p, m, p->writer[p->cells->entries[at]]));
        if (!is_rewritten(p, root))
            continue;
        IPU_TRY(add_pred(p, m, p->writer[root]));
        p->before[at] = p->readers[root];
        p->readers[root] = at;
        p->reader[at] = m;
    }
    return IPU_OK;
}

static int add_writes(struct ipu__stretcher *p, int32_t m,
                      const struct ipu__span *writes)
{
    for (int32_t k = 0; k < writes->count; k++) {
        int32_t v = p->cells->entries[writes->first + k];

        if (is_rewritten(p, v)) {
            IPU_TRY(add_pred(p, m, p->writer[v]));
            for (int32_t at = p->readers[v]; at != IPU__NONE;
                 at = p->before[at])
                IPU_TRY(add_pred(p, m, p->reader[at]));
            p->readers[v] = IPU__NONE;
        }
        p->writer[v] = m;
    }
    return IPU_OK;
}

static bool is_assignment(const struct ipu_executable *e,
                          const struct ipu__step *step)
{
    struct ipu__step_op place;

    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__op *op = ipu__part_of(e, step, k, &place)->op;

        if (op == &ipu__assign_step || op == &ipu__remote_store)
            return true;
    }
    return false;
}

static bool may_fail(const struct ipu__step *step)
{
    return step->kind == IPU__LOOP || step->op->checks;
}

/* It does more than to make its outputs. */
static bool has_effects(const struct ipu__step *step)
{
    return step->kind == IPU__LOOP || step->op->collective ||
           (step->op->effects && step->op != &ipu__assign_step &&
            step->op != &ipu__remote_load && step->op != &ipu__remote_store);
}

/* Between what may fail, up to a step, and assignments. */
static int add_fence(struct ipu__stretcher *p, int32_t first, int32_t end,
                     int32_t *fence)
{
    *fence = add_member(p, IPU__NONE);
    for (int32_t i = first; i < end; i++)
        if (may_fail(&p->cells->e->steps[i]))
            IPU_TRY(add_pred(p, *fence, p->member_of[i]));
    return IPU_OK;
}

static int add_members(struct ipu__stretcher *p, const struct ipu__stretch *s)
{
    int32_t fence = IPU__NONE, effect = IPU__NONE;

    p->nmembers = p->npreds = 0;
    for (int32_t i = s->first; i < s->end; i++) {
        const struct ipu__step *step = &p->cells->e->steps[i];
        bool assigns = is_assignment(p->cells->e, step);
        int32_t m;

        if (assigns && fence == IPU__NONE)
            IPU_TRY(add_fence(p, s->first, i, &fence));
        m = add_member(p, i);
        p->member_of[i] = m;
        if (assigns)
            IPU_TRY(add_pred(p, m, fence));
        if (has_effects(step)) {
            IPU_TRY(add_pred(p, m, effect));
            effect = m;
        }
        IPU_TRY(add_reads(p, m, &p->cells->reads[i]));
        IPU_TRY(add_writes(p, m, &p->cells->writes[i]));
    }
    return IPU_OK;
}

/* For the next stretch: who wrote and read is forgotten. */
static void forget(struct ipu__stretcher *p, const struct ipu__stretch *s)
{
    for (int32_t i = s->first; i < s->end; i++) {
        for (int32_t k = 0; k < p->cells->reads[i].count; k++) {
            int32_t v = p->cells->entries[p->cells->reads[i].first + k];

            p->readers[p->cells->root[v]] = IPU__NONE;
            if (p->cells->cell[v] != IPU__NONE)
                p->number[p->cells->cell[v]] = IPU__NONE;
        }
        for (int32_t k = 0; k < p->cells->writes[i].count; k++) {
            int32_t v = p->cells->entries[p->cells->writes[i].first + k];

            p->writer[v] = IPU__NONE;
            if (p->cells->cell[v] != IPU__NONE)
                p->number[p->cells->cell[v]] = IPU__NONE;
        }
    }
}

/* ------------------------------------------------------------------- units */

/* Right before the only one that waits for it, if that frees nothing later. */
static bool comes_right_before(const struct ipu__stretcher *p,
                               const struct ipu__member *m)
{
    if (m->step == IPU__NONE || m->nsuccs != 1 ||
        p->members[m->succ].step == IPU__NONE ||
        has_effects(&p->cells->e->steps[m->step]))
        return false;
    for (int32_t k = 0; k < p->cells->reads[m->step].count; k++)
        if (p->cells
                ->cell[p->cells->entries[p->cells->reads[m->step].first + k]] !=
            IPU__NONE)
            return false;
    return true;
}

/* Which members are one unit, and its number. */
static void find_units(struct ipu__stretcher *p)
{
    for (int32_t m = p->nmembers - 1; m >= 0; m--) {
        struct ipu__member *member = &p->members[m];

        if (!comes_right_before(p, member))
            continue;
        member->owner = p->members[member->succ].owner;
        member->next = p->members[member->owner].next;
        p->members[member->owner].next = m;
    }
    p->order.nunits = 0;
    for (int32_t m = 0; m < p->nmembers; m++)
        if (p->members[m].owner == m)
            p->members[m].unit = p->order.nunits++;
    for (int32_t m = 0; m < p->nmembers; m++)
        p->members[m].unit = p->members[p->members[m].owner].unit;
}

/* ------------------------------------------------------------- the problem */

static void link_units(struct ipu__stretcher *p)
{
    struct ipu__order *o = &p->order;
    int32_t total = 0;

    memset(p->stamp, -1, ((size_t)p->nmembers + 1) * sizeof *p->stamp);
    for (int32_t m = 0; m < p->nmembers; m++) {
        struct ipu__unit *u;

        if (p->members[m].owner != m)
            continue;
        u = &o->units[p->members[m].unit];
        u->preds = total;
        for (int32_t k = m; k != IPU__NONE; k = p->members[k].next) {
            const struct ipu__span *preds = &p->members[k].preds;

            for (int32_t i = 0; i < preds->count; i++) {
                int32_t n = p->members[p->preds[preds->first + i]].unit;

                if (n == p->members[m].unit || p->stamp[n] == m)
                    continue;
                p->stamp[n] = m;
                o->preds[total++] = n;
                u->npreds++;
                o->units[n].nsuccs++;
            }
        }
    }
    total = 0;
    for (int32_t n = 0; n < o->nunits; n++) {
        o->units[n].succs = total;
        total += o->units[n].nsuccs;
        o->units[n].nsuccs = 0;
    }
    for (int32_t n = 0; n < o->nunits; n++)
        for (int32_t i = 0; i < o->units[n].npreds; i++) {
            struct ipu__unit *pred = &o->units[o->preds[o->units[n].preds + i]];

            o->succs[pred->succs + pred->nsuccs++] = n;
        }
}

static int alloc_order(struct ipu__order *o, const struct ipu__stretcher *p,
                       const struct ipu__stretch *s)
{
    size_t nunits = (size_t)o->nunits + 1, nuses = 1, nmakes = 1;
    size_t npreds = (size_t)p->npreds + 1;

    for (int32_t i = s->first; i < s->end; i++) {
        nuses += (size_t)p->cells->reads[i].count +
                 (size_t)p->cells->writes[i].count;
        nmakes += (size_t)p->cells->writes[i].count;
    }
    o->units = calloc(nunits, sizeof *o->units);
    o->uses = calloc(nuses, sizeof *o->uses);
    o->makes = calloc(nmakes, sizeof *o->makes);
    o->preds = calloc(npreds, sizeof *o->preds);
    o->succs = calloc(npreds, sizeof *o->succs);
    o->bytes = calloc(nuses, sizeof *o->bytes);
    o->users = calloc(nuses, sizeof *o->users);
    o->stays = calloc(nuses, sizeof *o->stays);
    if (o->units && o->uses && o->makes && o->preds && o->succs && o->bytes &&
        o->users && o->stays)
        return IPU_OK;
    return ipu__fail_memory(nuses * sizeof *o->bytes);
}

static void free_order(struct ipu__order *o)
{
    free(o->units);
    free(o->uses);
    free(o->makes);
    free(o->reuses);
    free(o->preds);
    free(o->succs);
    free(o->bytes);
    free(o->users);
    free(o->stays);
    *o = (struct ipu__order){.nunits = 0};
}

static void fill_units(struct ipu__stretcher *p, const struct ipu__stretch *s)
{
    struct ipu__order *o = &p->order;
    int32_t uses = 0, makes = 0;

    for (int32_t m = 0; m < p->nmembers; m++) {
        struct ipu__unit *u = &o->units[p->members[m].unit];

        if (p->members[m].owner != m)
            continue;
        u->uses = uses;
        u->makes = makes;
        for (int32_t k = p->members[m].next; k != IPU__NONE;
             k = p->members[k].next)
            ipu__add_cells(p, u, p->members[k].step, s);
        ipu__add_cells(p, u, p->members[m].step, s);
        uses += u->nuses;
        makes += u->nmakes;
    }
}

static int build(struct ipu__stretcher *p, const struct ipu__stretch *s)
{
    struct ipu__order *o = &p->order;
    int32_t nreuses = 0;

    IPU_TRY(add_members(p, s));
    find_units(p);
    IPU_TRY(alloc_order(o, p, s));
    o->before = o->around = p->cells->alive[s->first];
    o->after = p->cells->alive[s->end];
    fill_units(p, s);
    for (int32_t m = 0; m < p->nmembers; m++) {
        struct ipu__unit *u = &o->units[p->members[m].unit];

        if (p->members[m].owner != m)
            continue;
        u->reuses = nreuses;
        IPU_TRY(ipu__add_reuses(p, u, p->members[m].step));
        nreuses += u->nreuses;
    }
    link_units(p);
    return IPU_OK;
}

/* The steps of units, in the order of these. */
static void fill_steps(const struct ipu__stretcher *p, int32_t *steps)
{
    int32_t n = 0;

    for (int32_t m = 0; m < p->nmembers; m++)
        if (p->members[m].owner == m)
            p->owners[p->members[m].unit] = m;
    for (int32_t i = 0; i < p->order.nunits; i++) {
        int32_t owner = p->owners[p->units[i]];

        for (int32_t k = p->members[owner].next; k != IPU__NONE;
             k = p->members[k].next)
            steps[n++] = p->members[k].step;
        if (p->members[owner].step != IPU__NONE)
            steps[n++] = p->members[owner].step;
    }
}

int ipu__stretch_order(struct ipu__stretcher *p, int32_t first, int32_t end,
                       int64_t limit, int32_t *steps, int64_t *peak)
{
    const struct ipu__stretch s = {first, end};
    int status;

    p->reuse_capacity = 0;
    status = build(p, &s);
    if (status >= 0)
        status = ipu__order_search(&p->order, limit, p->cells->e->progress,
                                   p->units, peak);
    if (status >= 0)
        fill_steps(p, steps);
    for (int32_t i = 0; status == IPU_OK && i < end - first; i++)
        status = steps[i] != first + i;
    forget(p, &s);
    free_order(&p->order);
    return status;
}

static int32_t *nones(size_t count)
{
    int32_t *array = malloc(count * sizeof *array);

    if (array)
        memset(array, -1, count * sizeof *array);
    return array;
}

struct ipu__stretcher *ipu__stretcher_new(const struct ipu__cells *cells)
{
    size_t nsteps = (size_t)cells->e->nsteps + 2;
    size_t nvalues = (size_t)cells->e->nvalues + 1;
    size_t nentries = (size_t)cells->nentries + 1;
    struct ipu__stretcher *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->cells = cells;
    p->members = calloc(nsteps, sizeof *p->members);
    p->member_of = nones(nsteps);
    p->units = nones(nsteps);
    p->owners = nones(nsteps);
    p->stamp = nones(nsteps);
    p->writer = nones(nvalues);
    p->readers = nones(nvalues);
    p->number = nones(nvalues);
    p->reader = nones(nentries);
    p->before = nones(nentries);
    if (p->members && p->member_of && p->units && p->owners && p->stamp &&
        p->writer && p->readers && p->number && p->reader && p->before)
        return p;
    ipu__stretcher_free(p);
    return NULL;
}

void ipu__stretcher_free(struct ipu__stretcher *p)
{
    if (!p)
        return;
    free(p->members);
    free(p->member_of);
    free(p->units);
    free(p->owners);
    free(p->preds);
    free(p->stamp);
    free(p->writer);
    free(p->readers);
    free(p->reader);
    free(p->before);
    free(p->number);
    free(p);
}
