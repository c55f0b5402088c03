/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - the ops that a step is made of, and how each sees its inputs.
 *
 * An op that is a step by itself looks the same as one that is a part of a
 * fused step, so callers handle only one kind.
 */
#include "compiler/program.h"

const struct ipu__op ipu__fused_step = {
    .name = "fused",
    .raw = true,
};

void ipu__step_init(struct ipu__step *step, enum ipu__step_kind kind,
                    const struct ipu__op *op)
{
    *step = (struct ipu__step){
        .kind = kind, .op = op, .gate = IPU__NONE, .body = IPU__NONE};
}

int32_t ipu__nparts(const struct ipu__step *step)
{
    if (step->kind == IPU__FUSED)
        return step->nparts;
    return step->kind == IPU__COMPUTE ? 1 : 0;
}

const struct ipu__step_op *ipu__part_of(const struct ipu_executable *e,
                                        const struct ipu__step *step, int32_t k,
                                        struct ipu__step_op *place)
{
    if (step->kind == IPU__FUSED)
        return &e->parts[step->first_part + k];
    *place = (struct ipu__step_op){
        .op = step->op, .attributes = step->attributes, .output = step->output};
    for (int i = 0; i < step->op->ninputs; i++)
        place->inputs[i] = step->inputs[i];
    return place;
}

const struct ipu__value *ipu__find_collective(const struct ipu_executable *e)
{
    const struct ipu__value *found = NULL;

    for (int32_t i = 0; e && i < e->nsteps; i++)
        if (e->steps[i].kind == IPU__COMPUTE && e->steps[i].op->collective)
            return &e->values[e->steps[i].output];
    for (int32_t i = 0; e && i < e->nloops && !found; i++) {
        found = ipu__find_collective(e->loops[i].body.program);
        if (!found)
            found = ipu__find_collective(e->loops[i].condition.program);
    }
    return found;
}

void ipu__part_call(const struct ipu_executable *e,
                    const struct ipu__step_op *part, struct ipu__call *call)
{
    *call = (struct ipu__call){.op = part->op, .attributes = &part->attributes};
    for (int i = 0; i < part->op->ninputs; i++) {
        call->inputs[i].name = e->values[part->inputs[i]].name;
        call->inputs[i].shape = e->values[part->inputs[i]].shape;
    }
    call->output.name = e->values[part->output].name;
    call->output.shape = e->values[part->output].shape;
    ipu__show_wide(call); /* they fitted when the graph was built */
}

void ipu__step_call(const struct ipu_executable *e,
                    const struct ipu__step *step, struct ipu__call *call)
{
    struct ipu__step_op part;

    ipu__part_call(e, ipu__part_of(e, step, 0, &part), call);
    call->attributes = &step->attributes;
}

/* Returns whether a shape, but for leading extents of 1, is the end of another.
 */
static bool is_end_of(const struct ipu__shape *end,
                      const struct ipu__shape *shape)
{
    int32_t from = 0;

    while (from < end->ndim && end->extents[from] == 1)
        from++;
    if (end->ndim - from > shape->ndim)
        return false;
    for (int32_t i = from; i < end->ndim; i++)
        if (end->extents[i] != shape->extents[shape->ndim - end->ndim + i])
            return false;
    return true;
}

enum ipu__view ipu__view_of(const struct ipu_executable *e,
                            const struct ipu__step_op *part, int k)
{
    const struct ipu__shape *x = &e->values[part->inputs[k]].shape;
    const struct ipu__shape *y = &e->values[part->output].shape;
    int64_t count = ipu__shape_count(x);

    if (count == ipu__shape_count(y))
        return IPU__WHOLE;
    if (x->ndim == 0)
        return IPU__SCALAR;
    return count > 0 && is_end_of(x, y) ? IPU__ROW : IPU__NO_VIEW;
}

int64_t ipu__period_of(const struct ipu_executable *e,
                       const struct ipu__step_op *part)
{
    int64_t longest = 1;

    for (int i = 0; i < part->op->ninputs; i++) {
        int64_t count = ipu__shape_count(&e->values[part->inputs[i]].shape);

        if (ipu__view_of(e, part, i) == IPU__ROW && count > longest)
            longest = count;
    }
    return longest;
}
