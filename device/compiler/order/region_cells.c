/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_cells.c - the memory of units: which cells each uses and makes, and
 * which of its outputs take the place of an input that is dead after it. The
 * latter where liveness.c will let them, as far as that can be told by now.
 */
#include "base/error.h"
#include "compiler/order/region.h"
#include "compiler/program.h"

enum { MOST_REUSED = 64 };

/* The cell's number in the problem. */
static int32_t number_of(struct ipu__stretcher *p, int32_t value,
                         const struct ipu__stretch *s)
{
    struct ipu__order *o = &p->order;
    int32_t cell = p->cells->cell[value], n = p->number[cell];

    if (n != IPU__NONE)
        return n;
    n = p->number[cell] = o->ncells++;
    o->bytes[n] = (int64_t)p->cells->e->values[cell].bytes;
    o->users[n] = 0;
    o->stays[n] = p->cells->death[cell] >= s->end;
    if (p->cells->birth[cell] < s->first)
        o->around -= o->bytes[n]; /* it is in the cell instead */
    return n;
}

static void add_cell(struct ipu__stretcher *p, struct ipu__unit *u,
                     int32_t value, const struct ipu__stretch *s)
{
    struct ipu__order *o = &p->order;
    int32_t birth, n;

    if (p->cells->cell[value] == IPU__NONE)
        return;
    birth = p->cells->birth[p->cells->cell[value]];
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

void ipu__add_cells(struct ipu__stretcher *p, struct ipu__unit *u, int32_t step,
                    const struct ipu__stretch *s)
{
    if (step == IPU__NONE)
        return;
    for (int32_t k = 0; k < p->cells->reads[step].count; k++)
        add_cell(p, u, p->cells->entries[p->cells->reads[step].first + k], s);
    for (int32_t k = 0; k < p->cells->writes[step].count; k++)
        add_cell(p, u, p->cells->entries[p->cells->writes[step].first + k], s);
}

/* ---------------------------------------------------- in place of an input */

static int32_t place_in(const int32_t *list, int32_t count, int32_t cell)
{
    for (int32_t i = 0; i < count && i < MOST_REUSED; i++)
        if (list[i] == cell)
            return i;
    return IPU__NONE;
}

/* An output of a unit's last step may take the place of an input: of one that
 * is made in the same unit, it does. Whether it does. */
static int offer(struct ipu__stretcher *p, struct ipu__unit *u, int32_t input,
                 int32_t output)
{
    struct ipu__order *o = &p->order;
    int32_t from = p->cells->cell[input], to = p->cells->cell[output], used,
            made;

    if (from == IPU__NONE || to == IPU__NONE ||
        p->cells->e->values[from].bytes != p->cells->e->values[to].bytes)
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

/* How often parts from the k-th on read what is in the cell of a value. */
static int32_t count_reads(const struct ipu__stretcher *p,
                           const struct ipu__step *step, int32_t k,
                           int32_t value)
{
    struct ipu__step_op place;
    int32_t count = 0;

    for (; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part =
            ipu__part_of(p->cells->e, step, k, &place);

        for (int i = 0; i < part->op->ninputs; i++)
            count += !p->cells->e->values[part->inputs[i]].inner &&
                     p->cells->cell[part->inputs[i]] == p->cells->cell[value];
    }
    return count;
}

static int offer_fused(struct ipu__stretcher *p, struct ipu__unit *u,
                       const struct ipu__step *step, int32_t last)
{
    const struct ipu__step_op *parts = &p->cells->e->parts[step->first_part];
    int32_t output = parts[last].output;

    if (p->cells->e->values[output].inner || parts[last].op->alias ||
        (last == 0 && (step->head || parts[0].op->in_place < 0)))
        return IPU_OK;
    for (int32_t k = 0; k <= last; k++) {
        for (int i = 0; parts[k].op->by_element && i < parts[k].op->ninputs;
             i++) {
            int32_t v = parts[k].inputs[i];
            int status = 0;

            if (p->cells->e->values[v].inner ||
                (k == last && i != parts[k].op->in_place) ||
                ipu__view_of(p->cells->e, &parts[k], i) != IPU__WHOLE ||
                count_reads(p, step, last + 1, v) > 0)
                continue;
            status = offer(p, u, v, output);
            if (status != 0)
                return status;
        }
    }
    return IPU_OK;
}

static int offer_loop(struct ipu__stretcher *p, struct ipu__unit *u,
                      const struct ipu__step *step)
{
    const struct ipu__loop_code *loop = ipu__loop_of(p->cells->e, step);

    for (int32_t k = 0; k < loop->ncarried; k++) {
        int32_t from = p->cells->cell[loop->initial[k]], reads = 0, v;

        for (int32_t n = 0; (v = ipu__loop_read(p->cells->e, step, n)) >= 0;
             n++)
            reads += p->cells->cell[v] == from;
        if (reads == 1)
            IPU_TRY(offer(p, u, loop->initial[k], loop->outputs[k]));
    }
    return IPU_OK;
}

static int find_reuses(struct ipu__stretcher *p, struct ipu__unit *u,
                       const struct ipu__step *step)
{
    if (step->kind == IPU__LOOP)
        return offer_loop(p, u, step);
    if (step->kind == IPU__FUSED) {
        for (int32_t k = 0; k < step->nparts; k++)
            IPU_TRY(offer_fused(p, u, step, k));
        return IPU_OK;
    }
    if (step->op->in_place < 0 || step->op->alias ||
        count_reads(p, step, 0, step->inputs[step->op->in_place]) != 1)
        return IPU_OK;
    return offer(p, u, step->inputs[step->op->in_place], step->output);
}

/* What a unit makes and nobody else uses is there only while it runs. */
static void drop_inside(struct ipu__order *o, struct ipu__unit *u)
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

int ipu__add_reuses(struct ipu__stretcher *p, struct ipu__unit *u, int32_t step)
{
    drop_inside(&p->order, u);
    if (step == IPU__NONE)
        return IPU_OK;
    return find_reuses(p, u, &p->cells->e->steps[step]);
}
