/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section.c - turns the steps of a section into a problem for search.c.
 *
 * order.c calls it for each section in turn. A step keeps its place relative to
 *
 *     the steps that make what it reads, and that read what it makes
 *     the steps that write a variable that it reads, and the other way round
 *     other steps that do more than make their outputs
 *     assignments to variables, if it may fail: they come afterwards
 *
 * Such steps are predecessors. Assignments are separated from steps that may
 * fail by a fence: a member of the section that is not a step. If a step uses
 * no storage and only one other step waits for it, as for a fill or a load of a
 * remote variable, it runs right before that step, and both are one unit: it
 * frees nothing, so there is no reason to run it earlier.
 */
#include "compiler/order/section.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"

/* ----------------------------------------------------------- predecessors */

static int add_pred(struct ipu__sections *p, int32_t m, int32_t pred)
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

static int32_t add_member(struct ipu__sections *p, int32_t step)
{
    int32_t m = p->nmembers++;

    p->members[m] = (struct ipu__section_member){
        .step = step, .preds = {p->npreds, 0}, .owner = m, .next = IPU__NONE};
    p->stamp[m] = IPU__NONE;
    return m;
}

/* Returns whether steps that read and write a value, in any of its states and
 * views, keep their order: it is a variable, or bound to one. */
static bool is_rewritten(const struct ipu__sections *p, int32_t v)
{
    return p->lifetimes->e->values[v].kind == IPU__VARIABLE ||
           p->lifetimes->e->values[v].bound;
}

static int add_reads(struct ipu__sections *p, int32_t m,
                     const struct ipu__span *reads)
{
    for (int32_t k = 0; k < reads->count; k++) {
        int32_t at = reads->first + k,
                root = p->lifetimes->root[p->lifetimes->entries[at]];

        IPU_TRY(add_pred(p, m, p->writer[p->lifetimes->entries[at]]));
        if (!is_rewritten(p, root))
            continue;
        IPU_TRY(add_pred(p, m, p->writer[root]));
        p->before[at] = p->readers[root];
        p->readers[root] = at;
        p->reader[at] = m;
    }
    return IPU_OK;
}

static int add_writes(struct ipu__sections *p, int32_t m,
                      const struct ipu__span *writes)
{
    for (int32_t k = 0; k < writes->count; k++) {
        int32_t v = p->lifetimes->entries[writes->first + k];

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

/* Returns whether a step does more than make its outputs. */
static bool has_effects(const struct ipu__step *step)
{
    return step->kind == IPU__LOOP || step->op->collective ||
           (step->op->effects && step->op != &ipu__assign_step &&
            step->op != &ipu__remote_load && step->op != &ipu__remote_store);
}

/* Adds the fence, which waits for the steps up to end that may fail. */
static int add_fence(struct ipu__sections *p, int32_t first, int32_t end,
                     int32_t *fence)
{
    *fence = add_member(p, IPU__NONE);
    for (int32_t i = first; i < end; i++)
        if (may_fail(&p->lifetimes->e->steps[i]))
            IPU_TRY(add_pred(p, *fence, p->member_of[i]));
    return IPU_OK;
}

static int add_members(struct ipu__sections *p, const struct ipu__section *s)
{
    int32_t fence = IPU__NONE, effect = IPU__NONE;

    p->nmembers = p->npreds = 0;
    for (int32_t i = s->first; i < s->end; i++) {
        const struct ipu__step *step = &p->lifetimes->e->steps[i];
        bool assigns = is_assignment(p->lifetimes->e, step);
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
        IPU_TRY(add_reads(p, m, &p->lifetimes->reads[i]));
        IPU_TRY(add_writes(p, m, &p->lifetimes->writes[i]));
    }
    return IPU_OK;
}

/* Forgets the writers and readers, for the next section. */
static void forget_section(struct ipu__sections *p,
                           const struct ipu__section *s)
{
    for (int32_t i = s->first; i < s->end; i++) {
        for (int32_t k = 0; k < p->lifetimes->reads[i].count; k++) {
            int32_t v = p->lifetimes->entries[p->lifetimes->reads[i].first + k];

            p->readers[p->lifetimes->root[v]] = IPU__NONE;
            if (p->lifetimes->storage[v] != IPU__NONE)
                p->number[p->lifetimes->storage[v]] = IPU__NONE;
        }
        for (int32_t k = 0; k < p->lifetimes->writes[i].count; k++) {
            int32_t v =
                p->lifetimes->entries[p->lifetimes->writes[i].first + k];

            p->writer[v] = IPU__NONE;
            if (p->lifetimes->storage[v] != IPU__NONE)
                p->number[p->lifetimes->storage[v]] = IPU__NONE;
        }
    }
}

/* ------------------------------------------------------------------- units */

/* Returns whether a member comes right before the only one that waits for it.
 */
static bool comes_right_before(const struct ipu__sections *p,
                               const struct ipu__section_member *m)
{
    if (m->step == IPU__NONE || m->nsuccs != 1 ||
        p->members[m->succ].step == IPU__NONE ||
        has_effects(&p->lifetimes->e->steps[m->step]))
        return false;
    for (int32_t k = 0; k < p->lifetimes->reads[m->step].count; k++)
        if (p->lifetimes->storage
                [p->lifetimes->entries[p->lifetimes->reads[m->step].first +
                                       k]] != IPU__NONE)
            return false;
    return true;
}

/* Finds which members are one unit, and numbers the units. */
static void find_units(struct ipu__sections *p)
{
    for (int32_t m = p->nmembers - 1; m >= 0; m--) {
        struct ipu__section_member *member = &p->members[m];

        if (!comes_right_before(p, member))
            continue;
        member->owner = p->members[member->succ].owner;
        member->next = p->members[member->owner].next;
        p->members[member->owner].next = m;
    }
    p->problem.nunits = 0;
    for (int32_t m = 0; m < p->nmembers; m++)
        if (p->members[m].owner == m)
            p->members[m].unit = p->problem.nunits++;
    for (int32_t m = 0; m < p->nmembers; m++)
        p->members[m].unit = p->members[p->members[m].owner].unit;
}

/* ------------------------------------------------------------- the problem */

static void link_units(struct ipu__sections *p)
{
    struct ipu__order_problem *o = &p->problem;
    int32_t total = 0;

    memset(p->stamp, -1, ((size_t)p->nmembers + 1) * sizeof *p->stamp);
    for (int32_t m = 0; m < p->nmembers; m++) {
        struct ipu__order_unit *u;

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
            struct ipu__order_unit *pred =
                &o->units[o->preds[o->units[n].preds + i]];

            o->succs[pred->succs + pred->nsuccs++] = n;
        }
}

static int alloc_order(struct ipu__order_problem *o,
                       const struct ipu__sections *p,
                       const struct ipu__section *s)
{
    size_t nunits = (size_t)o->nunits + 1, nuses = 1, nmakes = 1;
    size_t npreds = (size_t)p->npreds + 1;

    for (int32_t i = s->first; i < s->end; i++) {
        nuses += (size_t)p->lifetimes->reads[i].count +
                 (size_t)p->lifetimes->writes[i].count;
        nmakes += (size_t)p->lifetimes->writes[i].count;
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

static void free_order(struct ipu__order_problem *o)
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
    *o = (struct ipu__order_problem){.nunits = 0};
}

static void fill_units(struct ipu__sections *p, const struct ipu__section *s)
{
    struct ipu__order_problem *o = &p->problem;
    int32_t uses = 0, makes = 0;

    for (int32_t m = 0; m < p->nmembers; m++) {
        struct ipu__order_unit *u = &o->units[p->members[m].unit];

        if (p->members[m].owner != m)
            continue;
        u->uses = uses;
        u->makes = makes;
        for (int32_t k = p->members[m].next; k != IPU__NONE;
             k = p->members[k].next)
            ipu__add_storages(p, u, p->members[k].step, s);
        ipu__add_storages(p, u, p->members[m].step, s);
        uses += u->nuses;
        makes += u->nmakes;
    }
}

static int build_problem(struct ipu__sections *p, const struct ipu__section *s)
{
    struct ipu__order_problem *o = &p->problem;
    int32_t nreuses = 0;

    IPU_TRY(add_members(p, s));
    find_units(p);
    IPU_TRY(alloc_order(o, p, s));
    o->before = o->around = p->lifetimes->alive[s->first];
    o->after = p->lifetimes->alive[s->end];
    fill_units(p, s);
    for (int32_t m = 0; m < p->nmembers; m++) {
        struct ipu__order_unit *u = &o->units[p->members[m].unit];

        if (p->members[m].owner != m)
            continue;
        u->reuses = nreuses;
        IPU_TRY(ipu__add_reuses(p, u, p->members[m].step));
        nreuses += u->nreuses;
    }
    link_units(p);
    return IPU_OK;
}

/* Lists the steps of units, in the order of these. */
static void fill_steps(const struct ipu__sections *p, int32_t *steps)
{
    int32_t n = 0;

    for (int32_t m = 0; m < p->nmembers; m++)
        if (p->members[m].owner == m)
            p->owners[p->members[m].unit] = m;
    for (int32_t i = 0; i < p->problem.nunits; i++) {
        int32_t owner = p->owners[p->units[i]];

        for (int32_t k = p->members[owner].next; k != IPU__NONE;
             k = p->members[k].next)
            steps[n++] = p->members[k].step;
        if (p->members[owner].step != IPU__NONE)
            steps[n++] = p->members[owner].step;
    }
}

int ipu__section_order(struct ipu__sections *p, int32_t first, int32_t end,
                       int64_t limit, int32_t *steps, int64_t *peak)
{
    const struct ipu__section s = {first, end};
    int status;

    p->reuse_capacity = 0;
    status = build_problem(p, &s);
    if (status >= 0)
        status = ipu__order_search(&p->problem, limit,
                                   p->lifetimes->e->progress, p->units, peak);
    if (status >= 0)
        fill_steps(p, steps);
    for (int32_t i = 0; status == IPU_OK && i < end - first; i++)
        status = steps[i] != first + i;
    forget_section(p, &s);
    free_order(&p->problem);
    return status;
}

static int32_t *new_nones(size_t count)
{
    int32_t *array = malloc(count * sizeof *array);

    if (array)
        memset(array, -1, count * sizeof *array);
    return array;
}

struct ipu__sections *ipu__sections_new(const struct ipu__lifetimes *storages)
{
    size_t nsteps = (size_t)storages->e->nsteps + 2;
    size_t nvalues = (size_t)storages->e->nvalues + 1;
    size_t nentries = (size_t)storages->nentries + 1;
    struct ipu__sections *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->lifetimes = storages;
    p->members = calloc(nsteps, sizeof *p->members);
    p->member_of = new_nones(nsteps);
    p->units = new_nones(nsteps);
    p->owners = new_nones(nsteps);
    p->stamp = new_nones(nsteps);
    p->writer = new_nones(nvalues);
    p->readers = new_nones(nvalues);
    p->number = new_nones(nvalues);
    p->reader = new_nones(nentries);
    p->before = new_nones(nentries);
    if (p->members && p->member_of && p->units && p->owners && p->stamp &&
        p->writer && p->readers && p->number && p->reader && p->before)
        return p;
    ipu__sections_free(p);
    return NULL;
}

void ipu__sections_free(struct ipu__sections *p)
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
