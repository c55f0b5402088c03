/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - checks that a loaded program can run.
 *
 * A checksum does not show that the contents are valid. So that no file makes
 * an engine read or write out of bounds, these functions check that
 *
 *     every index is that of an existing item
 *     every value is within its block, and every block within the memory,
 *     at a valid address for an op (a multiple of 64)
 *     every op, asked again, makes of its inputs' shapes that of its output
 *     no op overwrites data that it still reads
 *     a stream is as long as its value
 *     a bound value of a loop's body is bound to a value of the outer program,
 *     of the same size (verify_loops.c)
 *
 * They do not check that a value still exists when a later step needs it, or
 * that the order of steps makes sense: an error there gives wrong numbers, but
 * no invalid access.
 */
#include "file/verify.h"

#include "base/error.h"
#include "file/members.h"

enum { ALIGNMENT = 64 };

/* The most cycles of all steps of a program together. */
#define MOST_CYCLES ((int64_t)1 << 61)

static bool within(int64_t i, int64_t count)
{
    return i >= 0 && i < count;
}

static int verify_block(const struct ipu__reader *r, const ipu_executable *e,
                        const struct ipu__block *b)
{
    size_t end;

    if (b->bytes > PTRDIFF_MAX / 2 || b->offset % ALIGNMENT ||
        __builtin_add_overflow(b->offset, b->bytes, &end) ||
        end > e->memory_bytes)
        return ipu__damaged(r, "a block of %zu bytes at %zu in %zu", b->bytes,
                            b->offset, e->memory_bytes);
    if (!within(b->tiles, (int64_t)e->target.tiles + 1) ||
        !within(b->first_tile, e->target.tiles) || b->birth < -1 ||
        b->birth > e->nsteps || b->death < -1 || b->death > e->nsteps)
        return ipu__damaged(r, "a block that is never anywhere");
    return IPU_OK;
}

static int verify_value(const struct ipu__reader *r,
                        const struct ipu__verified *p,
                        const struct ipu__value *v)
{
    const ipu_executable *e = p->e;

    if ((int32_t)v->kind < IPU__INPUT || v->kind > IPU__RESULT)
        return ipu__damaged(r, "no kind of values is %d", (int)v->kind);
    if ((v->inner && v->kind != IPU__RESULT) ||
        (ipu__verified_room(p, v->block) < v->bytes && !v->inner))
        return ipu__damaged(r, "%.60s has no place", v->name);
    if (!within(v->shard, IPU_MAX_IPUS))
        return ipu__damaged(r, "%.60s is on IPU %d", v->name, (int)v->shard);
    if (!within(v->own, IPU__OWN_REASONS))
        return ipu__damaged(r, "%.60s is a replica's own for no reason",
                            v->name);
    if (v->birth < -1 || v->birth > e->nsteps || v->death < -1 ||
        v->death > e->nsteps)
        return ipu__damaged(r, "%.60s is never there", v->name);
    return IPU_OK;
}

/* Checks that a step does not write what it reads, unless the op works in
 * place: then it writes exactly its one input. */
static bool keeps_apart(const struct ipu__verified *p,
                        const struct ipu__step *s)
{
    bool stores = s->op == &ipu__assign_step || s->op == &ipu__row_store;
    int in_place = stores ? 0 : ipu__in_place(s->op);

    for (int k = 0; k < s->op->ninputs; k++)
        if (ipu__verified_overlap(p, s->inputs[k], s->output) &&
            !(k == in_place && ipu__verified_same(p, s->inputs[k], s->output)))
            return false;
    return s->op != &ipu__row_store || s->inputs[0] == s->output;
}

/* A program writes results, and variables that it assigns. */
static bool may_write(const struct ipu__step *s, const struct ipu__value *v)
{
    if (s->op == &ipu__assign_step || s->op == &ipu__remote_store ||
        s->op == &ipu__row_store)
        return v->kind == IPU__VARIABLE;
    return v->kind == IPU__RESULT;
}

/* Checks that the condition of a step is a number. */
static bool is_gate(const ipu_executable *e, int32_t gate)
{
    const struct ipu__shape *shape;

    if (gate == IPU__NONE)
        return true;
    if (!within(gate, e->nvalues))
        return false;
    shape = &e->values[gate].shape;
    return !e->values[gate].inner && shape->dtype == IPU_INT32 &&
           shape->ndim == 0;
}

static bool has_rows(const struct ipu__shape *shape)
{
    return shape->ndim > 0 && shape->extents[0] > 0;
}

static int verify_compute(const struct ipu__reader *r,
                          const struct ipu__verified *program, int32_t i)
{
    const ipu_executable *e = program->e;
    const struct ipu__step *s = &e->steps[i];
    struct ipu__call call = {.op = s->op, .attributes = &s->attributes};

    for (int k = 0; k < s->op->ninputs; k++) {
        if (!within(s->inputs[k], e->nvalues) || e->values[s->inputs[k]].inner)
            return ipu__damaged(r, "step %d, %s, has no input %d", (int)i,
                                s->op->name, k);
        call.inputs[k].name = e->values[s->inputs[k]].name;
        call.inputs[k].shape = e->values[s->inputs[k]].shape;
    }
    call.output.name = s->op->name;
    if (!s->op->shape)
        return ipu__damaged(r, "step %d: %s computes nothing", (int)i,
                            s->op->name);
    if ((s->op == &ipu__row_load || s->op == &ipu__row_store) &&
        !has_rows(&call.inputs[0].shape))
        return ipu__damaged(r, "step %d: %s: there are no rows", (int)i,
                            s->op->name);
    if (ipu__call_shape(&call) < 0)
        return ipu__damaged(r, "step %d: %s", (int)i, ipu_last_error());
    if (!ipu__shape_equal(&call.output.shape, &e->values[s->output].shape) ||
        !may_write(s, &e->values[s->output]))
        return ipu__damaged(r, "step %d, %s, makes something else", (int)i,
                            s->op->name);
    if (!keeps_apart(program, s))
        return ipu__damaged(r, "step %d, %s, writes over what it reads", (int)i,
                            s->op->name);
    return IPU_OK;
}

/* -------------------------------------------------------------- fused steps */

/* Checks that a part's inputs are allowed, and that it has as many elements as
 * the step processes. */
static bool part_fits(const ipu_executable *e, const struct ipu__step *s,
                      const struct ipu__step_op *part)
{
    int64_t period = ipu__period_of(e, part);

    if (!part->op->by_element && !part->op->alias)
        return false;
    for (int k = 0; k < part->op->ninputs; k++) {
        enum ipu__view view = ipu__view_of(e, part, k);
        int64_t count = ipu__shape_count(&e->values[part->inputs[k]].shape);

        if (view == IPU__NO_VIEW ||
            (view == IPU__ROW && count != period && count != 1) ||
            (view != IPU__WHOLE && e->values[part->inputs[k]].inner))
            return false;
    }
    return ipu__shape_count(&e->values[part->output].shape) == s->elements &&
           s->block % period == 0;
}

/* Checks that the output is either all of an input or apart from it; of the
 * head's inputs, apart from all but the one in whose place the head may work.
 */
static bool parts_keep_apart(const struct ipu__verified *program,
                             const struct ipu__step *s, int32_t v)
{
    const ipu_executable *e = program->e;

    for (int32_t p = 0; p < s->nparts; p++) {
        const struct ipu__step_op *part = &e->parts[s->first_part + p];

        for (int k = 0; k < part->op->ninputs; k++) {
            int32_t x = part->inputs[k];

            if (e->values[x].inner || e->values[v].inner ||
                !ipu__verified_overlap(program, x, v))
                continue;
            if ((s->head && p == 0 && k != ipu__in_place(part->op)) ||
                !ipu__verified_same(program, x, v))
                return false;
        }
    }
    return true;
}

/* Checks the buffer of an inner value. */
static bool has_buffer(const struct ipu__step *s, const struct ipu__value *v)
{
    return !v->inner || within(v->buffer, s->nbuffers);
}

static bool part_has_values(const ipu_executable *e, const struct ipu__step *s,
                            const struct ipu__step_op *part)
{
    if (!within(part->output, e->nvalues))
        return false;
    for (int k = 0; k < part->op->ninputs; k++)
        if (!within(part->inputs[k], e->nvalues) ||
            !has_buffer(s, &e->values[part->inputs[k]]))
            return false;
    return true;
}

static bool part_is_sound(const struct ipu__verified *program,
                          const struct ipu__step *s, int32_t p)
{
    const ipu_executable *e = program->e;
    const struct ipu__step_op *part = &e->parts[s->first_part + p];
    struct ipu__step alone;
    const struct ipu__value *y = &e->values[part->output];

    ipu__step_init(&alone, IPU__COMPUTE, part->op);
    if (!may_write(&alone, y) || !has_buffer(s, y) ||
        !parts_keep_apart(program, s, part->output))
        return false;
    if (p > 0 || !s->head)
        return part_fits(e, s, part);
    return part->op->run_in_parts && !y->inner && y->shape.ndim > 0 &&
           ipu__shape_count(&y->shape) == s->elements;
}

static bool makes_its_output(const ipu_executable *e,
                             const struct ipu__step_op *part)
{
    struct ipu__call call = {.op = part->op, .attributes = &part->attributes};

    for (int k = 0; k < part->op->ninputs; k++) {
        call.inputs[k].name = e->values[part->inputs[k]].name;
        call.inputs[k].shape = e->values[part->inputs[k]].shape;
    }
    call.output.name = part->op->name;
    return ipu__call_shape(&call) >= 0 &&
           ipu__shape_equal(&call.output.shape, &e->values[part->output].shape);
}

/* Checks that a head hands over whole rows of its output. */
static bool rows_fit(const ipu_executable *e, const struct ipu__step *s)
{
    const struct ipu__shape *y;

    if (!s->head)
        return true;
    y = &e->values[e->parts[s->first_part].output].shape;
    for (int32_t p = 1; p < s->nparts; p++)
        if (y->extents[y->ndim - 1] %
            ipu__period_of(e, &e->parts[s->first_part + p]))
            return false;
    return true;
}

static int verify_fused(const struct ipu__reader *r,
                        const struct ipu__verified *program, int32_t i)
{
    const ipu_executable *e = program->e;
    const struct ipu__step *s = &e->steps[i];

    if (s->nparts < 1 || s->nparts > IPU__MOST_PARTS || s->first_part < 0 ||
        s->first_part > e->nparts - s->nparts || s->elements < 1 ||
        s->block < 1 || s->block > IPU__MOST_BLOCK ||
        !within(s->nbuffers, IPU__MOST_PARTS + 1))
        return ipu__damaged(r, "step %d is made of nothing", (int)i);
    for (int32_t p = 0; p < s->nparts; p++)
        if (!part_has_values(e, s, &e->parts[s->first_part + p]))
            return ipu__damaged(r, "step %d has a part of nothing", (int)i);
    for (int32_t p = 0; p < s->nparts; p++) {
        if (!part_is_sound(program, s, p))
            return ipu__damaged(r, "step %d has a part that does not fit",
                                (int)i);
        if (!makes_its_output(e, &e->parts[s->first_part + p]))
            return ipu__damaged(r, "step %d has a part that makes another",
                                (int)i);
    }
    return rows_fit(e, s) ? IPU_OK
                          : ipu__damaged(r, "step %d cuts rows", (int)i);
}

/* Checks that a step has its own code, or that of an earlier step with its
 * own. */
static bool has_code(const ipu_executable *e, int32_t i)
{
    const struct ipu__step *s = &e->steps[i];

    return s->body == IPU__NONE ||
           (within(s->body, i) && e->steps[s->body].body == IPU__NONE);
}

static int verify_step(const struct ipu__reader *r,
                       const struct ipu__verified *program, int32_t i)
{
    const ipu_executable *e = program->e;
    const struct ipu__step *s = &e->steps[i];

    if (!within(s->output, e->nvalues) ||
        !within(s->fullest_tile, e->target.tiles) || s->busy_tiles < 0 ||
        s->busy_tiles > e->target.tiles)
        return ipu__damaged(r, "step %d makes nothing, or nowhere", (int)i);
    if (s->kind != IPU__FUSED && e->values[s->output].inner)
        return ipu__damaged(r, "step %d makes what has no place", (int)i);
    if (!is_gate(e, s->gate) || s->count < 0)
        return ipu__damaged(r, "step %d runs never", (int)i);
    if (!has_code(e, i))
        return ipu__damaged(r, "step %d runs the code of no step", (int)i);
    if (s->kind == IPU__COMPUTE)
        return verify_compute(r, program, i);
    if (s->kind == IPU__FUSED)
        return verify_fused(r, program, i);
    if (s->kind == IPU__LOOP)
        return within(s->loop, e->nloops)
                   ? IPU_OK
                   : ipu__damaged(r, "step %d repeats nothing", (int)i);
    if (s->kind != IPU__HOST_CALL || !within(s->stream, e->nstreams) ||
        e->streams[s->stream].kind != IPU__STREAM_CALL ||
        e->streams[s->stream].value != s->output)
        return ipu__damaged(r, "step %d calls nobody", (int)i);
    return IPU_OK;
}

static int verify_stream(const struct ipu__reader *r, const ipu_executable *e,
                         const struct ipu__stream *s)
{
    if ((int32_t)s->kind < IPU__STREAM_IN || s->kind > IPU__STREAM_CALL)
        return ipu__damaged(r, "no kind of streams is %d", (int)s->kind);
    if (s->kind == IPU__STREAM_IN && s->value == -1)
        return IPU_OK;
    if (!is_gate(e, s->gate) || !within(s->value, e->nvalues) ||
        s->bytes != e->values[s->value].bytes || e->values[s->value].inner)
        return ipu__damaged(r, "stream '%.60s' is of no value", s->name);
    return IPU_OK;
}

/* Checks that sums of the amounts cannot overflow. */
static int verify_amounts(const struct ipu__reader *r, const ipu_executable *e)
{
    int64_t sum = 0;
    size_t bytes = 0;

    IPU_TRY(ipu__check_amounts(r, &ipu__executable_layout, e));
    for (int32_t i = 0; i < e->nblocks; i++)
        IPU_TRY(ipu__check_amounts(r, &ipu__block_layout, &e->blocks[i]));
    for (int32_t i = 0; i < e->nstreams; i++)
        IPU_TRY(ipu__check_amounts(r, &ipu__stream_layout, &e->streams[i]));
    for (int32_t i = 0; i < e->target.tiles; i++)
        IPU_TRY(ipu__check_amounts(r, &ipu__tile_layout, &e->tiles[i]));
    for (int32_t i = 0; i < e->nsteps; i++) {
        const ipu_cycles *c = &e->steps[i].cycles;

        IPU_TRY(ipu__check_amounts(r, &ipu__step_layout, &e->steps[i]));
        sum += c->compute + c->exchange + c->sync + c->total;
        if (sum > MOST_CYCLES)
            return ipu__damaged(r, "step %d never ends", (int)i);
        if (c->waiting > c->compute)
            return ipu__damaged(r,
                                "tiles wait longer in step %d than others "
                                "compute",
                                (int)i);
    }
    for (int32_t v = 0; v < e->nvalues; v++)
        if (__builtin_add_overflow(bytes, e->values[v].bytes, &bytes) ||
            bytes > PTRDIFF_MAX / 2)
            return ipu__damaged(r, "more values than memory can hold");
    return IPU_OK;
}

int ipu__verify_program(const struct ipu__reader *r,
                        const struct ipu__verified *program)
{
    const ipu_executable *e = program->e;

    IPU_TRY(verify_amounts(r, e));
    for (int32_t i = 0; i < e->nvalues; i++)
        IPU_TRY(verify_value(r, program, &e->values[i]));
    for (int32_t i = 0; i < e->nsteps; i++)
        IPU_TRY(verify_step(r, program, i));
    for (int32_t i = 0; i < e->nstreams; i++)
        IPU_TRY(verify_stream(r, e, &e->streams[i]));
    for (int32_t i = 0; i < e->target.tiles; i++)
        if (e->tiles[i].peak_step < -1 || e->tiles[i].peak_step > e->nsteps)
            return ipu__damaged(r, "tile %d is never full", (int)i);
    IPU_TRY(ipu__verify_feeds(r, e));
    return ipu__verify_loops(r, program);
}

int ipu__verify_blocks(const struct ipu__reader *r, const ipu_executable *e)
{
    if (e->memory_bytes > PTRDIFF_MAX / 2)
        return ipu__damaged(r, "%zu bytes of memory", e->memory_bytes);
    for (int32_t i = 0; i < e->nblocks; i++)
        IPU_TRY(verify_block(r, e, &e->blocks[i]));
    for (int32_t i = 0; i < e->nvalues; i++)
        if (!within(e->values[i].block, e->nblocks))
            return ipu__damaged(r, "%.60s has no place", e->values[i].name);
    return IPU_OK;
}
