/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liveness.c - from when to when each value is needed, and which values are
 * computed in the place of another.
 *
 * An op that can work in place takes over the memory of its input if this
 * step is the last that needs what is in it, and neither the host nor the next
 * run does. A reshape, which changes nothing, always shares it. Values joined
 * in this way form one block, alive from the birth of the first to the death
 * of the last.
 *
 * A variable that is assigned holds its old elements until the last step that
 * reads them. What takes over its memory must be its new value, computed by
 * that step, after everything that may fail; a reshape shares it only if it is
 * not needed once the variable has been written.
 */
#include <stdlib.h>

#include "compiler/program.h"
#include "graph/error.h"

/* From run to run. */
static bool stays(const struct ipu__value *value)
{
    return value->kind == IPU__VARIABLE || value->kind == IPU__CONSTANT;
}

static void needed_at(struct ipu__value *value, int32_t step)
{
    if (value->death < step)
        value->death = step;
}

static void find_lifetimes(struct ipu_executable *e)
{
    for (int32_t v = 0; v < e->nvalues; v++)
        e->values[v].birth = e->values[v].death = -1;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];

        needed_at(&e->values[step->output], i);
        if (step->gate)
            needed_at(&e->values[step->gate - 1], i);
        if (step->kind == IPU__HOST_CALL)
            continue;
        if (e->values[step->output].kind != IPU__VARIABLE)
            e->values[step->output].birth = i;
        for (int k = 0; k < step->op->ninputs; k++)
            needed_at(&e->values[step->inputs[k]], i);
    }
    for (int32_t i = 0; i < e->nstreams; i++) {
        if (e->streams[i].kind != IPU__STREAM_OUT)
            continue;
        e->values[e->streams[i].value].death = e->nsteps;
        if (e->streams[i].gate)
            e->values[e->streams[i].gate - 1].death = e->nsteps;
    }
    for (int32_t v = 0; v < e->nvalues; v++)
        if (stays(&e->values[v]))
            e->values[v].death = e->nsteps;
}

/* Until when the elements of each value are needed, also through those that
 * share its memory without a change: needs, [values]. Of variables, the old
 * elements. */
static void find_needs(const struct ipu_executable *e, int32_t *needs)
{
    for (int32_t v = 0; v < e->nvalues; v++)
        needs[v] = e->values[v].kind == IPU__VARIABLE ? -1 : e->values[v].death;
    for (int32_t i = e->nsteps - 1; i >= 0; i--) {
        const struct ipu__step *step = &e->steps[i];

        if (step->gate && needs[step->gate - 1] < i)
            needs[step->gate - 1] = i;
        if (step->kind == IPU__HOST_CALL) {
            needs[step->output] =
                needs[step->output] < i ? i : needs[step->output];
            continue;
        }
        for (int k = 0; k < step->op->ninputs; k++) {
            int32_t *need = &needs[step->inputs[k]];
            int32_t until = step->op->alias && k == step->op->in_place
                                ? needs[step->output]
                                : i;

            *need = *need < until ? until : *need;
        }
    }
}

/* The step that writes a variable; -1: none. value: what it becomes. */
static int32_t assigned_at(const struct ipu_executable *e, int32_t variable,
                           int32_t *value)
{
    for (int32_t i = e->nsteps - 1; i >= 0; i--)
        if (e->steps[i].kind == IPU__COMPUTE &&
            e->steps[i].op == &ipu__assign_step &&
            e->steps[i].output == variable) {
            *value = e->steps[i].inputs[0];
            return i;
        }
    return -1;
}

/* The value that opened the block. */
static int32_t first_of(const struct ipu_executable *e, int32_t block)
{
    for (int32_t v = 0;; v++)
        if (e->values[v].block == block && e->values[v].opens)
            return v;
}

/* The last step that may fail, which it does not if it did not before; -1:
 * none. */
static int32_t last_that_fails(const struct ipu_executable *e)
{
    for (int32_t i = e->nsteps - 1; i >= 0; i--)
        if (e->steps[i].kind == IPU__HOST_CALL ||
            (e->steps[i].op->checks && !e->steps[i].again))
            return i;
    return -1;
}

static bool can_take_over(const struct ipu_executable *e, int32_t i,
                          const int32_t *needs, int32_t fails)
{
    const struct ipu__step *step = &e->steps[i];
    const struct ipu__value *input;
    int32_t first, assigned = -1, value = -1;

    if (step->op->in_place < 0)
        return false;
    input = &e->values[step->inputs[step->op->in_place]];
    first = first_of(e, input->block);
    if (e->values[first].kind == IPU__VARIABLE)
        assigned = assigned_at(e, first, &value);
    if (step->op->alias)
        return assigned < 0 || input->renewed || needs[step->output] < assigned;
    for (int k = 0; k < step->op->ninputs; k++)
        if (k != step->op->in_place &&
            e->values[step->inputs[k]].block == input->block)
            return false; /* read twice: keep it simple */
    if (input->bytes != e->values[step->output].bytes)
        return false;
    /* A run that fails leaves the variable as it was. */
    if (assigned >= 0)
        return value == step->output && needs[first] <= i && fails <= i;
    /* The block, not the value: it may have aliases. */
    return e->blocks[input->block].death == i;
}

static void open_block(struct ipu_executable *e, struct ipu__value *value)
{
    e->blocks[e->nblocks] = (struct ipu__block){
        .bytes = value->bytes,
        .birth = value->birth,
        .death = value->death,
        .always = stays(value),
        .remote = value->remote,
    };
    value->block = e->nblocks++;
    value->opens = true;
}

/* In the place of a value that has a block. */
static void join_block(struct ipu_executable *e, struct ipu__value *value,
                       const struct ipu__step *step)
{
    const struct ipu__value *input =
        &e->values[step->inputs[step->op->in_place]];
    int32_t block = input->block;
    bool of_variable = e->values[first_of(e, block)].kind == IPU__VARIABLE;

    value->block = block;
    value->renewed = step->op->alias ? input->renewed : of_variable;
    if (e->blocks[block].death < value->death)
        e->blocks[block].death = value->death;
}

int ipu__liveness(struct ipu_executable *e)
{
    int32_t *needs = calloc((size_t)e->nvalues + 1, sizeof *needs);
    int32_t fails = last_that_fails(e);
    int status = IPU_OK;

    e->blocks = calloc((size_t)e->nvalues + 1, sizeof *e->blocks);
    if (!e->blocks || !needs) {
        free(needs);
        return ipu__fail_memory((size_t)e->nvalues * sizeof *e->blocks);
    }
    find_lifetimes(e);
    find_needs(e, needs);
    for (int32_t v = 0; v < e->nvalues; v++)
        if (e->values[v].kind != IPU__RESULT)
            open_block(e, &e->values[v]);
    for (int32_t i = 0; i < e->nsteps && status == IPU_OK; i++) {
        const struct ipu__step *step = &e->steps[i];

        status = ipu__progress(e->progress, "liveness", i + 1, e->nsteps);
        if (step->kind != IPU__COMPUTE || step->op == &ipu__assign_step)
            continue;
        if (can_take_over(e, i, needs, fails))
            join_block(e, &e->values[step->output], step);
        else
            open_block(e, &e->values[step->output]);
    }
    free(needs);
    return status;
}
