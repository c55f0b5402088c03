/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section_storages.c - finds the storages that each unit uses and makes, and
 * the outputs that take the place of an input that is dead afterwards.
 * section.c calls it.
 *
 * liveness.c makes the final decision about these places; this file predicts it
 * as far as it is known by now. order.c compares the real plans.
 */
#include "base/error.h"
#include "compiler/order/section.h"
#include "compiler/program.h"

enum { MOST_REUSED = 64 };

/* Returns the number of a value's storage in the problem, a new one if need
 * be. */
static int32_t number_of(struct ipu__sections *p, int32_t value,
                         const struct ipu__section *s)
{
    struct ipu__order_problem *o = &p->problem;
    int32_t storage = p->lifetimes->storage[value], n = p->number[storage];

    if (n != IPU__NONE)
        return n;
    n = p->number[storage] = o->nstorages++;
    o->bytes[n] = (int64_t)p->lifetimes->e->values[storage].bytes;
    o->users[n] = 0;
    o->stays[n] = p->lifetimes->death[storage] >= s->end;
    if (p->lifetimes->birth[storage] < s->first)
        o->around -= o->bytes[n]; /* it is in the storage instead */
    return n;
}

static void add_storage(struct ipu__sections *p, struct ipu__order_unit *u,
                        int32_t value, const struct ipu__section *s)
{
    struct ipu__order_problem *o = &p->problem;
    int32_t birth, n;

    if (p->lifetimes->storage[value] == IPU__NONE)
        return;
    birth = p->lifetimes->birth[p->lifetimes->storage[value]];
    n = number_of(p, value, s);
    if (birth >= s->first &&
        p->members[p->member_of[birth]].unit == (int32_t)(u - o->units)) {
        for (int32_t i = 0; i < u->nmakes; i++)
            if (o->makes[u->makes + i] == n)
                return;
        o->makes[u->makes + u->nmakes++] = n;
        return;
    }
    for (int32_t i = 0; i < u->nuses; i++)
        if (o->uses[u->uses + i] == n)
            return;
    o->uses[u->uses + u->nuses++] = n;
    o->users[n]++;
}

void ipu__add_storages(struct ipu__sections *p, struct ipu__order_unit *u,
                       int32_t step, const struct ipu__section *s)
{
    if (step == IPU__NONE)
        return;
    for (int32_t k = 0; k < p->lifetimes->reads[step].count; k++)
        add_storage(p, u,
                    p->lifetimes->entries[p->lifetimes->reads[step].first + k],
                    s);
    for (int32_t k = 0; k < p->lifetimes->writes[step].count; k++)
        add_storage(p, u,
                    p->lifetimes->entries[p->lifetimes->writes[step].first + k],
                    s);
}

/* ---------------------------------------------------- in place of an input */

static int32_t place_in(const int32_t *list, int32_t count, int32_t storage)
{
    for (int32_t i = 0; i < count && i < MOST_REUSED; i++)
        if (list[i] == storage)
            return i;
    return IPU__NONE;
}

/* Notes that an output of a unit's last step may take the place of an input. If
 * the input is made in the same unit, it does: returns whether. */
static int offer_reuse(struct ipu__sections *p, struct ipu__order_unit *u,
                       int32_t input, int32_t output)
{
    struct ipu__order_problem *o = &p->problem;
    int32_t from = p->lifetimes->storage[input],
            to = p->lifetimes->storage[output], used, made;

    if (from == IPU__NONE || to == IPU__NONE ||
        p->lifetimes->e->values[from].bytes !=
            p->lifetimes->e->values[to].bytes)
        return 0;
    made = place_in(o->makes + u->makes, u->nmakes, p->number[to]);
    used = place_in(o->uses + u->uses, u->nuses, p->number[from]);
    if (made == IPU__NONE)
        return 0;
    if (used == IPU__NONE) {
        if (o->users[p->number[from]] != 0 || o->stays[p->number[from]])
            return 0;
        o->users[p->number[from]] = IPU__NONE; /* no other takes it */
        u->inside -= o->bytes[p->number[from]];
        return 1;
    }
    IPU_TRY(ipu__reserve((void **)&o->reuses, u->reuses + u->nreuses,
                         &p->reuse_capacity, sizeof *o->reuses));
    o->reuses[u->reuses + u->nreuses++] = (struct ipu__reuse){made, used};
    return 0;
}

/* Counts how often parts from the k-th on read what is in a value's storage. */
static int32_t count_reads(const struct ipu__sections *p,
                           const struct ipu__step *step, int32_t k,
                           int32_t value)
{
    struct ipu__step_op place;
    int32_t count = 0;

    for (; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part =
            ipu__part_of(p->lifetimes->e, step, k, &place);

        for (int i = 0; i < part->op->ninputs; i++)
            count += !p->lifetimes->e->values[part->inputs[i]].inner &&
                     p->lifetimes->storage[part->inputs[i]] ==
                         p->lifetimes->storage[value];
    }
    return count;
}

static int offer_fused(struct ipu__sections *p, struct ipu__order_unit *u,
                       const struct ipu__step *step, int32_t last)
{
    const struct ipu__step_op *parts =
        &p->lifetimes->e->parts[step->first_part];
    int32_t output = parts[last].output;

    if (p->lifetimes->e->values[output].inner || parts[last].op->alias ||
        (last == 0 && (step->head || ipu__in_place(parts[0].op) < 0)))
        return IPU_OK;
    for (int32_t k = 0; k <= last; k++) {
        for (int i = 0; parts[k].op->by_element && i < parts[k].op->ninputs;
             i++) {
            int32_t v = parts[k].inputs[i];
            int status = 0;

            if (p->lifetimes->e->values[v].inner ||
                (k == last && i != ipu__in_place(parts[k].op)) ||
                ipu__view_of(p->lifetimes->e, &parts[k], i) != IPU__WHOLE ||
                count_reads(p, step, last + 1, v) > 0)
                continue;
            status = offer_reuse(p, u, v, output);
            if (status != 0)
                return status;
        }
    }
    return IPU_OK;
}

static int offer_loop(struct ipu__sections *p, struct ipu__order_unit *u,
                      const struct ipu__step *step)
{
    const struct ipu__loop_code *loop = ipu__loop_of(p->lifetimes->e, step);

    for (int32_t k = 0; k < loop->ncarried; k++) {
        int32_t from = p->lifetimes->storage[loop->initial[k]], reads = 0, v;

        for (int32_t n = 0; (v = ipu__loop_read(p->lifetimes->e, step, n)) >= 0;
             n++)
            reads += p->lifetimes->storage[v] == from;
        if (reads == 1)
            IPU_TRY(offer_reuse(p, u, loop->initial[k], loop->outputs[k]));
    }
    return IPU_OK;
}

static int find_reuses(struct ipu__sections *p, struct ipu__order_unit *u,
                       const struct ipu__step *step)
{
    if (step->kind == IPU__LOOP)
        return offer_loop(p, u, step);
    if (step->kind == IPU__FUSED) {
        for (int32_t k = 0; k < step->nparts; k++)
            IPU_TRY(offer_fused(p, u, step, k));
        return IPU_OK;
    }
    if (ipu__in_place(step->op) < 0 || step->op->alias ||
        count_reads(p, step, 0, step->inputs[ipu__in_place(step->op)]) != 1)
        return IPU_OK;
    return offer_reuse(p, u, step->inputs[ipu__in_place(step->op)],
                       step->output);
}

/* Drops storages that a unit makes and no other unit uses: they are inside the
 * unit. */
static void drop_inside(struct ipu__order_problem *o, struct ipu__order_unit *u)
{
    int32_t count = 0;

    for (int32_t i = 0; i < u->nmakes; i++) {
        int32_t n = o->makes[u->makes + i];

        if (o->users[n] > 0 || o->stays[n])
            o->makes[u->makes + count++] = n;
        else
            u->inside += o->bytes[n];
    }
    u->nmakes = count;
}

int ipu__add_reuses(struct ipu__sections *p, struct ipu__order_unit *u,
                    int32_t step)
{
    drop_inside(&p->problem, u);
    if (step == IPU__NONE)
        return IPU_OK;
    return find_reuses(p, u, &p->lifetimes->e->steps[step]);
}
