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
 */
#include <stdlib.h>

#include "compiler/program.h"
#include "graph/error.h"

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
        if (step->kind == IPU__HOST_CALL)
            continue;
        e->values[step->output].birth = i;
        for (int k = 0; k < step->op->ninputs; k++)
            needed_at(&e->values[step->inputs[k]], i);
    }
    for (int32_t i = 0; i < e->nstreams; i++)
        if (e->streams[i].kind == IPU__STREAM_OUT)
            e->values[e->streams[i].value].death = e->nsteps;
    for (int32_t v = 0; v < e->nvalues; v++)
        if (e->values[v].kind == IPU__VARIABLE)
            e->values[v].death = e->nsteps;
}

static bool can_take_over(const struct ipu_executable *e, int32_t i)
{
    const struct ipu__step *step = &e->steps[i];
    const struct ipu__value *input;

    if (step->op->in_place < 0)
        return false;
    if (step->op->alias)
        return true;
    input = &e->values[step->inputs[step->op->in_place]];
    for (int k = 0; k < step->op->ninputs; k++)
        if (k != step->op->in_place &&
            e->values[step->inputs[k]].block == input->block)
            return false; /* read twice: keep it simple */
    /* The block, not the value: it may have aliases. */
    return e->blocks[input->block].death == i &&
           input->bytes == e->values[step->output].bytes;
}

static void open_block(struct ipu_executable *e, struct ipu__value *value)
{
    e->blocks[e->nblocks] = (struct ipu__block){
        .bytes = value->bytes,
        .birth = value->birth,
        .death = value->death,
        .always = value->kind == IPU__VARIABLE,
    };
    value->block = e->nblocks++;
}

static void join_block(struct ipu_executable *e, struct ipu__value *value,
                       int32_t block)
{
    value->block = block;
    if (e->blocks[block].death < value->death)
        e->blocks[block].death = value->death;
}

int ipu__liveness(struct ipu_executable *e)
{
    e->blocks = calloc((size_t)e->nvalues + 1, sizeof *e->blocks);
    if (!e->blocks)
        return ipu__fail_memory((size_t)e->nvalues * sizeof *e->blocks);
    find_lifetimes(e);
    for (int32_t v = 0; v < e->nvalues; v++)
        if (e->values[v].kind != IPU__RESULT)
            open_block(e, &e->values[v]);
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];

        if (step->kind != IPU__COMPUTE)
            continue;
        if (can_take_over(e, i))
            join_block(e, &e->values[step->output],
                       e->values[step->inputs[step->op->in_place]].block);
        else
            open_block(e, &e->values[step->output]);
    }
    return IPU_OK;
}
