/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused.c - runs a fused step: block by block, all parts on each.
 *
 * The head, if there is one, runs as a whole, and hands over what it has
 * completed; the other parts follow while that is still in the cache. A matrix
 * product hands over all of its rows at once: given fewer rows, OpenBLAS adds
 * up in another order, and takes longer than the cache saves. A part's op is
 * called as for a tensor of the block's elements, [n], or [rows, n] if it takes
 * rows that are repeated. Inner values are in buffers; all others are where the
 * program has them, from the block's first element on.
 */
#include "base/error.h"
#include "compiler/program.h"
#include "engine/memory.h"
#include "ops/half.h"

struct run {
    struct ipu__memory *memory;
    const struct ipu__step *step;
    char *buffers;
    void *wide; /* scratch for halves */
    /* Parts, with the shapes of a block's operands and, where they lie whole,
     * their memory. */
    struct ipu__call calls[IPU__MOST_PARTS];
    int64_t periods[IPU__MOST_PARTS]; /* elements of each part's rows; 0: it has
                                         none */
    bool rows[IPU__MOST_PARTS][IPU__MAX_INPUTS]; /* repeated: always the same */
};

static bool in_blocks(const struct run *r, int32_t k)
{
    return k > 0 || !r->step->head;
}

/* Returns the address of value v's elements of a block. */
static void *block_of(const struct run *r, int32_t v, int64_t first)
{
    const struct ipu_executable *x = r->memory->executable;
    const struct ipu__value *value = &x->values[v];

    if (value->inner)
        return r->buffers + (size_t)value->buffer * ipu__buffer_bytes(r->step);
    return (char *)ipu__memory_of(r->memory, v) +
           (size_t)first * ipu__dtype_bytes(value->shape.dtype);
}

/* The shape of count elements of it. */
static void cut_shape(struct ipu__shape *shape, int64_t count, int64_t period)
{
    shape->ndim = period ? 2 : 1;
    shape->extents[0] = period ? count / period : count;
    shape->extents[1] = period;
}

static void prepare_part(struct run *r, int32_t k)
{
    const struct ipu_executable *x = r->memory->executable;
    const struct ipu__step_op *part = &x->parts[r->step->first_part + k];
    struct ipu__call *call = &r->calls[k];

    ipu__part_call(x, part, call);
    call->scratch = r->wide;
    r->periods[k] = 0;
    for (int i = 0; i < part->op->ninputs; i++) {
        enum ipu__view view = ipu__view_of(x, part, i);
        struct ipu__shape *shape = &call->inputs[i].shape;

        r->rows[k][i] = view != IPU__WHOLE;
        if (view == IPU__ROW) {
            r->periods[k] = ipu__period_of(x, part);
            shape->extents[0] = ipu__shape_count(shape);
            shape->ndim = 1;
        }
        if (view != IPU__WHOLE)
            call->inputs[i].data = ipu__memory_of(r->memory, part->inputs[i]);
    }
}

static void run_part(struct run *r, int32_t k, int64_t first, int64_t count)
{
    const struct ipu_executable *x = r->memory->executable;
    const struct ipu__step_op *part = &x->parts[r->step->first_part + k];
    struct ipu__call call = r->calls[k];

    call.first = first;
    for (int i = 0; i < part->op->ninputs; i++) {
        if (r->rows[k][i])
            continue;
        call.inputs[i].data = block_of(r, part->inputs[i], first);
        cut_shape(&call.inputs[i].shape, count, r->periods[k]);
    }
    call.output.data = block_of(r, part->output, first);
    cut_shape(&call.output.shape, count, r->periods[k]);
    ipu__run_wide(&call); /* Ops by element do not fail. */
}

static void run_block(struct run *r, int64_t first, int64_t count)
{
    for (int32_t k = r->step->head != NULL; k < r->step->nparts; k++)
        run_part(r, k, first, count);
}

static void run_blocks(void *context, int64_t first, int64_t count)
{
    struct run *r = context;
    int64_t block = r->step->block;

    for (int64_t i = 0; i < count; i += block)
        run_block(r, first + i, count - i < block ? count - i : block);
}

static int run_head(struct run *r)
{
    const struct ipu_executable *x = r->memory->executable;
    const struct ipu__step_op *part = &x->parts[r->step->first_part];
    struct ipu__call call;

    ipu__part_call(x, part, &call);
    for (int i = 0; i < part->op->ninputs; i++)
        call.inputs[i].data = ipu__memory_of(r->memory, part->inputs[i]);
    call.output.data = ipu__memory_of(r->memory, part->output);
    call.scratch = r->memory->scratch;
    call.packed = ipu__memory_packed(r->memory, r->step);
    return part->op->run_in_parts(&call, run_blocks, r);
}

int ipu__run_fused(struct ipu__memory *memory, const struct ipu__step *step)
{
    const struct ipu_executable *x = memory->executable;
    struct run r = {.memory = memory, .step = step};

    r.buffers = (char *)memory->scratch + ipu__head_scratch(x, step);
    r.wide = r.buffers + (size_t)step->nbuffers * ipu__buffer_bytes(step);
    for (int32_t k = 0; k < step->nparts; k++)
        if (in_blocks(&r, k))
            prepare_part(&r, k);
    if (step->head)
        return run_head(&r);
    run_blocks(&r, 0, step->elements);
    return IPU_OK;
}
