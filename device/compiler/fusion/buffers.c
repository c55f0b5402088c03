/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.c - the scratch memory of steps.
 *
 * Most steps need the scratch memory of their op. A fused step keeps the values
 * that pass between its parts there: each inner value has one of a few buffers
 * of a block, which is free again when no part needs the value. The engine lays
 * it out as
 *
 *     scratch of the head | buffers | room to widen halves of one part
 *
 * each beginning at a multiple of 64 bytes.
 */
#include "compiler/passes.h"
#include "ops/half.h"

enum { MOST_BUFFERS = 64 };

/* Returns the last part that reads a value or a view of it. */
static int32_t last_use(const struct ipu_executable *e,
                        const struct ipu__step *step, int32_t from, int32_t v)
{
    int32_t last = from;

    for (int32_t k = from + 1; k < step->nparts; k++) {
        const struct ipu__step_op *part = &e->parts[step->first_part + k];

        for (int i = 0; i < part->op->ninputs; i++) {
            int32_t until = k;

            if (part->inputs[i] != v)
                continue;
            if (part->op->alias)
                until = last_use(e, step, k, part->output);
            last = last < until ? until : last;
        }
    }
    return last;
}

static void assign_buffers(struct ipu_executable *e, struct ipu__step *step)
{
    int32_t until[MOST_BUFFERS] = {0}; /* the part after which each is free */

    for (int32_t k = 0; k < step->nparts; k++) {
        const struct ipu__step_op *part = &e->parts[step->first_part + k];
        struct ipu__value *y = &e->values[part->output];
        int32_t b = 0;

        if (!y->inner)
            continue;
        if (part->op->alias) {
            y->buffer = e->values[part->inputs[ipu__in_place(part->op)]].buffer;
            continue;
        }
        while (b < step->nbuffers && until[b] >= k)
            b++;
        y->buffer = b;
        until[b] = last_use(e, step, k, part->output);
        if (b == step->nbuffers)
            step->nbuffers++;
    }
}

int ipu__buffers(struct ipu_executable *e)
{
    for (int32_t i = 0; i < e->nsteps; i++)
        if (e->steps[i].kind == IPU__FUSED)
            assign_buffers(e, &e->steps[i]);
    return IPU_OK;
}

size_t ipu__buffer_bytes(const struct ipu__step *step)
{
    int64_t block = step->elements < step->block ? step->elements : step->block;

    return ipu__aligned((size_t)block * 4);
}

size_t ipu__head_scratch(const struct ipu_executable *e,
                         const struct ipu__step *step)
{
    struct ipu__call call;

    if (!step->head)
        return 0;
    ipu__part_call(e, &e->parts[step->first_part], &call);
    return call.op->scratch ? ipu__aligned(call.op->scratch(&call)) : 0;
}

static size_t fused_scratch(const struct ipu_executable *e,
                            const struct ipu__step *step)
{
    size_t wide = (IPU__MAX_INPUTS + 1) * ipu__buffer_bytes(step);

    return ipu__head_scratch(e, step) +
           (size_t)step->nbuffers * ipu__buffer_bytes(step) + wide;
}

void ipu__find_scratch(struct ipu_executable *e)
{
    for (int32_t i = 0; i < e->nsteps; i++) {
        struct ipu__call call;
        size_t bytes;

        if (e->steps[i].kind == IPU__HOST_CALL || e->steps[i].kind == IPU__LOOP)
            continue;
        if (e->steps[i].kind == IPU__FUSED) {
            bytes = fused_scratch(e, &e->steps[i]);
        } else {
            ipu__step_call(e, &e->steps[i], &call);
            bytes = ipu__wide_scratch(&call);
            if (bytes == 0 && call.op->scratch)
                bytes = call.op->scratch(&call);
        }
        if (bytes > e->scratch_bytes)
            e->scratch_bytes = bytes;
    }
}
