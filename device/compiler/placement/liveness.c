/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liveness.c - the pass that finds the lifetime of each value, and which values
 * are computed in the place of another. order.c runs it, too, to compare plans.
 *
 * An op that can work in place takes over the memory of its input if its step
 * is the last that needs its contents, and neither the host nor the next run
 * needs them. A reshape, which changes nothing, always shares memory. Values
 * joined in this way form one block, alive from the birth of the first to the
 * death of the last.
 *
 * The outputs of a fused step take over the memory of inputs in the same way,
 * if its parts are done with an input's block when they write the output's. A
 * value that only passes between its parts has no memory.
 *
 * A variable that is assigned holds its old elements until the last step that
 * reads them. Only its new value may take over its memory, computed by that
 * step, after everything that may fail; a reshape shares it only if it is not
 * needed once the variable has been written.
 */
#include <stdlib.h>

#include "base/error.h"
#include "compiler/passes.h"

/* Returns whether a value is kept from run to run. */
static bool is_kept(const struct ipu__value *value)
{
    return value->kind == IPU__VARIABLE || value->kind == IPU__CONSTANT;
}

static void needed_at(struct ipu__value *value, int32_t step)
{
    if (value->death < step)
        value->death = step;
}

/* Notes the values that a loop's step needs and makes. */
static void find_loop_lifetimes(struct ipu_executable *e, int32_t i)
{
    const struct ipu__step *step = &e->steps[i];
    int32_t v;

    if (step->kind != IPU__LOOP)
        return;
    e->values[step->output].birth = i;
    needed_at(&e->values[step->output], i);
    for (int32_t k = 0; (v = ipu__loop_read(e, step, k)) >= 0; k++)
        needed_at(&e->values[v], i);
    for (int32_t k = 0; (v = ipu__loop_makes(e, step, k)) >= 0; k++) {
        e->values[v].birth = i;
        needed_at(&e->values[v], i);
    }
}

/* Keeps the values of queues until the end. */
static void find_enqueued(struct ipu_executable *e)
{
    for (int32_t i = 0; i < e->nfeeds; i++)
        for (int32_t k = 0; e->feeds[i].outfeed && k < e->feeds[i].count; k++)
            e->values[e->feeds[i].values[k]].death = e->nsteps;
}

static void find_lifetimes(struct ipu_executable *e)
{
    for (int32_t v = 0; v < e->nvalues; v++)
        e->values[v].birth = e->values[v].death = -1;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];
        struct ipu__step_op place;

        if (step->gate >= 0)
            needed_at(&e->values[step->gate], i);
        if (step->kind == IPU__HOST_CALL)
            needed_at(&e->values[step->output], i);
        for (int32_t k = 0; k < ipu__nparts(step); k++) {
            const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

            needed_at(&e->values[part->output], i);
            if (e->values[part->output].kind != IPU__VARIABLE)
                e->values[part->output].birth = i;
            for (int n = 0; n < part->op->ninputs; n++)
                needed_at(&e->values[part->inputs[n]], i);
        }
        find_loop_lifetimes(e, i);
    }
    find_enqueued(e);
    for (int32_t i = 0; i < e->nstreams; i++) {
        if (e->streams[i].kind != IPU__STREAM_OUT)
            continue;
        e->values[e->streams[i].value].death = e->nsteps;
        if (e->streams[i].gate >= 0)
            e->values[e->streams[i].gate].death = e->nsteps;
    }
    for (int32_t v = 0; v < e->nvalues; v++)
        if (is_kept(&e->values[v]))
            e->values[v].death = e->nsteps;
}

/* Notes the values that a part of step i needs. */
static void note_needs(const struct ipu__step_op *part, int32_t i,
                       int32_t *needs)
{
    for (int k = 0; k < part->op->ninputs; k++) {
        int32_t *need = &needs[part->inputs[k]];
        int32_t until = part->op->alias && k == ipu__in_place(part->op)
                            ? needs[part->output]
                            : i;

        *need = *need < until ? until : *need;
    }
}

static void note_loop_needs(const struct ipu_executable *e, int32_t i,
                            int32_t *needs)
{
    int32_t v;

    for (int32_t k = 0; (v = ipu__loop_read(e, &e->steps[i], k)) >= 0; k++)
        needs[v] = needs[v] < i ? i : needs[v];
}

/* Finds the last step that needs the elements of each value, or of values that
 * share its memory without a change: needs, [values]. Of variables, the old
 * elements. */
static void find_needs(const struct ipu_executable *e, int32_t *needs)
{
    for (int32_t v = 0; v < e->nvalues; v++)
        needs[v] = e->values[v].kind == IPU__VARIABLE ? -1 : e->values[v].death;
    for (int32_t i = e->nsteps - 1; i >= 0; i--) {
        const struct ipu__step *step = &e->steps[i];
        struct ipu__step_op place;

        if (step->gate >= 0 && needs[step->gate] < i)
            needs[step->gate] = i;
        if (step->kind == IPU__HOST_CALL) {
            needs[step->output] =
                needs[step->output] < i ? i : needs[step->output];
            continue;
        }
        for (int32_t k = ipu__nparts(step) - 1; k >= 0; k--)
            note_needs(ipu__part_of(e, step, k, &place), i, needs);
        note_loop_needs(e, i, needs);
    }
}

/* Facts about variables that are assigned, and about blocks. */
struct maps {
    int32_t *needs;    /* [values] */
    int32_t *assigned; /* [values]: the step that writes a variable; -1 */
    int32_t *becomes;  /* [values]: the value that the variable becomes */
    int32_t *first;    /* [blocks]: the value that opened it */
    int32_t fails;     /* the last step that may fail */
};

static void find_assigns(const struct ipu_executable *e, struct maps *m)
{
    for (int32_t v = 0; v < e->nvalues; v++)
        m->assigned[v] = -1;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];
        struct ipu__step_op place;

        for (int32_t k = 0; k < ipu__nparts(step); k++) {
            const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

            if (part->op != &ipu__assign_step)
                continue;
            m->assigned[part->output] = i;
            m->becomes[part->output] = part->inputs[0];
        }
    }
}

/* Returns whether a step's parts are done with a block, or a part of it, when
 * part p writes: those before read no more than p does, those after nothing.
 * by: the reads of p itself that are allowed. */
static bool done_with(const struct ipu_executable *e,
                      const struct ipu__step *step, int32_t p, int32_t block,
                      int by)
{
    struct ipu__step_op place;

    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        for (int i = 0; i < part->op->ninputs; i++) {
            if (e->values[part->inputs[i]].inner ||
                e->values[part->inputs[i]].block != block ||
                (part->op == &ipu__assign_step &&
                 e->values[part->output].block == block))
                continue; /* it changes something */
            if (k > p)
                return false;
            if (k == p) {
                by--;
                continue;
            }
            if (!part->op->alias && (!part->op->by_element ||
                                     ipu__view_of(e, part, i) != IPU__WHOLE))
                return false;
        }
    }
    return by >= 0;
}

/* Returns whether step i may change a variable that is assigned: a run that
 * fails leaves it as it was, unless it is only carried by a loop. */
static bool may_change(const struct ipu_executable *e, int32_t variable,
                       int32_t i, const struct maps *m)
{
    return e->values[variable].carried || m->fails <= i;
}

/* Returns whether the output of part p of step i can be where value v is. */
static bool can_be_at(const struct ipu_executable *e, int32_t i, int32_t p,
                      int32_t v, const struct maps *m)
{
    const struct ipu__step *step = &e->steps[i];
    struct ipu__step_op place;
    const struct ipu__step_op *part = ipu__part_of(e, step, p, &place);
    int32_t block = e->values[v].block, first = m->first[block];
    const struct ipu__mapping *map = &e->values[part->output].map;
    /* The part itself may read it once. */
    int by = 1;

    if (map->tiles && (map->tiles != e->blocks[block].tiles ||
                       map->first != e->blocks[block].first_tile))
        return false; /* the program has mapped it elsewhere */
    if (e->values[first].shared ||
        e->values[v].bytes != e->values[part->output].bytes ||
        !done_with(e, step, p, block, by))
        return false;
    if (m->assigned[first] >= 0)
        return m->becomes[first] == part->output && m->needs[first] <= i &&
               may_change(e, first, i, m);
    /* The block dies here, not the value, which may have aliases. */
    return e->blocks[block].death == i && !e->blocks[block].always;
}

/* Returns the block where part p of a fused step may write: that of a value
 * from outside of the step, or from its head, which parts take in blocks. -1:
 * there is none. */
static int32_t place_in_fused(const struct ipu_executable *e, int32_t i,
                              int32_t p, const struct maps *m)
{
    const struct ipu__step *step = &e->steps[i];

    if (ipu__in_place(e->parts[step->first_part + p].op) < 0 && p == 0)
        return -1;
    for (int32_t k = 0; k <= p; k++) {
        const struct ipu__step_op *part = &e->parts[step->first_part + k];

        if (!part->op->by_element)
            continue;
        for (int n = 0; n < part->op->ninputs; n++) {
            int32_t v = part->inputs[n];

            if (k == p && n != ipu__in_place(part->op))
                continue;
            if (!e->values[v].inner && ipu__view_of(e, part, n) == IPU__WHOLE &&
                can_be_at(e, i, p, v, m))
                return e->values[v].block;
        }
    }
    return -1;
}

/* Returns the last step that may fail for the first time; -1: none does. */
static int32_t last_that_fails(const struct ipu_executable *e)
{
    for (int32_t i = e->nsteps - 1; i >= 0; i--)
        if (e->steps[i].kind == IPU__HOST_CALL ||
            (e->steps[i].op->checks && !e->steps[i].again))
            return i;
    return -1;
}

/* Returns the block that the output of part p of step i can be in; -1: a new
 * one. */
static int32_t place_of(const struct ipu_executable *e, int32_t i, int32_t p,
                        const struct maps *m)
{
    const struct ipu__step *step = &e->steps[i];
    struct ipu__step_op place;
    const struct ipu__step_op *part = ipu__part_of(e, step, p, &place);
    int32_t first, input;

    if (step->kind == IPU__FUSED && !part->op->alias &&
        !(p == 0 && (step->head != NULL)))
        return place_in_fused(e, i, p, m);
    if (ipu__in_place(part->op) < 0)
        return -1;
    input = part->inputs[ipu__in_place(part->op)];
    if (!part->op->alias)
        return can_be_at(e, i, p, input, m) ? e->values[input].block : -1;
    first = m->first[e->values[input].block];
    if (e->values[first].shared)
        return -1; /* it changes while others may read it */
    return m->assigned[first] < 0 || e->values[input].renewed ||
                   m->needs[part->output] < m->assigned[first]
               ? e->values[input].block
               : -1;
}

static void open_block(struct ipu_executable *e, int32_t v, struct maps *m)
{
    struct ipu__value *value = &e->values[v];

    e->blocks[e->nblocks] = (struct ipu__block){
        .bytes = value->inner || value->bound ? 0 : value->bytes,
        .birth = value->birth,
        .death = value->death,
        .always = is_kept(value),
        .constant = value->kind == IPU__CONSTANT,
        .first_tile = value->map.first,
        .tiles = value->map.tiles,
        .remote = value->remote || value->bound,
    };
    m->first[e->nblocks] = v;
    value->block = e->nblocks++;
    value->opens = true;
}

/* Puts a value in the block of another. */
static void join_block(struct ipu_executable *e,
                       const struct ipu__step_op *part, int32_t block,
                       const struct maps *m)
{
    struct ipu__value *value = &e->values[part->output];

    value->block = block;
    value->renewed = e->values[m->first[block]].kind == IPU__VARIABLE;
    if (part->op->alias)
        value->renewed =
            e->values[part->inputs[ipu__in_place(part->op)]].renewed;
    if (e->blocks[block].death < value->death)
        e->blocks[block].death = value->death;
}

/* Puts what a fused step makes for a variable alone where the variable is. */
static void make_in_variables(struct ipu_executable *e, int32_t i,
                              const struct maps *m)
{
    const struct ipu__step *step = &e->steps[i];

    for (int32_t k = 0; k < step->nparts; k++) {
        const struct ipu__step_op *part = &e->parts[step->first_part + k];
        int32_t v = part->inputs[0], maker = 0;

        if (part->op != &ipu__assign_step || !e->values[v].inner)
            continue;
        while (e->parts[step->first_part + maker].output != v)
            maker++;
        if (e->parts[step->first_part + maker].op->alias ||
            m->needs[part->output] > i || !may_change(e, part->output, i, m) ||
            e->values[part->output].shared ||
            !done_with(e, step, maker, e->values[part->output].block, 1))
            continue;
        e->values[v].inner = false;
        e->values[v].renewed = true;
        e->values[v].block = e->values[part->output].block;
    }
}

/* Returns whether a carried value begins where its initial value is: nobody
 * else needs that. */
static bool begins_in_place(const struct ipu_executable *e, int32_t i,
                            int32_t k)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, &e->steps[i]);
    const struct ipu__value *from = &e->values[loop->initial[k]];
    int32_t v;

    if (e->blocks[from->block].death != i || e->blocks[from->block].always ||
        from->bytes != e->values[loop->outputs[k]].bytes)
        return false;
    for (int32_t n = 0; (v = ipu__loop_read(e, &e->steps[i], n)) >= 0; n++)
        if (n != k && e->values[v].block == from->block)
            return false;
    return true;
}

static void place_loop_outputs(struct ipu_executable *e, int32_t i,
                               struct maps *m)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, &e->steps[i]);

    if (loop->ncarried == 0)
        open_block(e, e->steps[i].output, m);
    for (int32_t k = 0; k < loop->ncarried; k++) {
        struct ipu__value *output = &e->values[loop->outputs[k]];
        int32_t block = e->values[loop->initial[k]].block;

        if (!begins_in_place(e, i, k)) {
            open_block(e, loop->outputs[k], m);
            continue;
        }
        output->block = block;
        if (e->blocks[block].death < output->death)
            e->blocks[block].death = output->death;
    }
}

static void place_outputs(struct ipu_executable *e, int32_t i, struct maps *m)
{
    const struct ipu__step *step = &e->steps[i];
    struct ipu__step_op place;

    if (step->kind == IPU__FUSED)
        make_in_variables(e, i, m);
    if (step->kind == IPU__LOOP)
        place_loop_outputs(e, i, m);
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);
        struct ipu__value *output = &e->values[part->output];
        int32_t block;

        if (part->op == &ipu__assign_step || output->block >= 0)
            continue;
        block = output->inner ? -1 : place_of(e, i, k, m);
        if (block >= 0)
            join_block(e, part, block, m);
        else
            open_block(e, part->output, m);
    }
}

int ipu__liveness(struct ipu_executable *e)
{
    size_t n = (size_t)e->nvalues + 1;
    int32_t *room = calloc(4 * n, sizeof *room);
    struct maps m = {.fails = last_that_fails(e)};
    int status = IPU_OK;

    e->blocks = calloc(n, sizeof *e->blocks);
    if (!e->blocks || !room) {
        free(room);
        return ipu__fail_memory(n * sizeof *e->blocks);
    }
    m.needs = room;
    m.assigned = room + n;
    m.becomes = room + 2 * n;
    m.first = room + 3 * n;
    find_lifetimes(e);
    find_needs(e, m.needs);
    find_assigns(e, &m);
    for (int32_t v = 0; v < e->nvalues; v++) {
        e->values[v].block = -1;
        if (e->values[v].kind != IPU__RESULT)
            open_block(e, v, &m);
    }
    for (int32_t i = 0; i < e->nsteps && status == IPU_OK; i++) {
        status = ipu__progress(e->progress, "liveness", i + 1, e->nsteps);
        place_outputs(e, i, &m);
    }
    free(room);
    return status;
}
