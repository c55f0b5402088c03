/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify_loops.c - checks a program's loops and queues.
 *
 * Bound values of a body have no memory in the body: their memory is that of
 * values of the outer program. So a block of a body is either in the body's own
 * memory or bound. A bound block has one bound value, and all other values of
 * the block are in that value's memory. The overlap of two values is decided in
 * the program that has their memory.
 *
 *     outermost   [ a ][ b  ]
 *                   |    |           bound
 *     body        [ x ][ y  ][ own ]
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "file/queues.h"
#include "file/verify.h"

/* The largest amount of bytes or cycles of an element. */
#define MOST_AMOUNT ((int64_t)1 << 53)

static bool within(int64_t i, int64_t count)
{
    return i >= 0 && i < count;
}

/* Returns true if the value exists and has a place. */
static bool has_place(const ipu_executable *e, int32_t v)
{
    return within(v, e->nvalues) && !e->values[v].inner;
}

/* ------------------------------------------------------------------- places */

/* The place of a value: the program that has its memory, and where. */
struct place {
    const struct ipu__verified *program;
    size_t offset, bytes;
};

static struct place place_of(const struct ipu__verified *p, int32_t v)
{
    size_t bytes = p->e->values[v].bytes;
    int32_t block = p->e->values[v].block;

    while (p->bound[block] >= 0) {
        v = p->inner->outer[p->bound[block]];
        p = p->outer;
        block = p->e->values[v].block;
    }
    return (struct place){p, p->e->blocks[block].offset, bytes};
}

size_t ipu__verified_room(const struct ipu__verified *p, int32_t block)
{
    if (p->bound[block] < 0)
        return p->e->blocks[block].bytes;
    return p->e->values[p->inner->inner[p->bound[block]]].bytes;
}

bool ipu__verified_overlap(const struct ipu__verified *p, int32_t a, int32_t b)
{
    struct place x = place_of(p, a), y = place_of(p, b);

    return x.program == y.program && x.offset < y.offset + y.bytes &&
           y.offset < x.offset + x.bytes;
}

bool ipu__verified_same(const struct ipu__verified *p, int32_t a, int32_t b)
{
    struct place x = place_of(p, a), y = place_of(p, b);

    return x.program == y.program && x.offset == y.offset && x.bytes == y.bytes;
}

/* ---------------------------------------------------------------- programs */

/* Checks that each bound value has a value in the outer program, and a separate
 * block. */
static int find_bound(const struct ipu__reader *r, struct ipu__verified *p)
{
    const struct ipu__inner *inner = p->inner;
    int32_t count = 0;

    for (int32_t i = 0; inner && i < inner->nbound; i++) {
        const struct ipu__value *value;

        if (!has_place(p->e, inner->inner[i]) ||
            !has_place(p->outer->e, inner->outer[i]))
            return ipu__damaged(r, "a body is bound to nothing");
        value = &p->e->values[inner->inner[i]];
        if (!value->bound || value->kind != IPU__VARIABLE ||
            p->bound[value->block] >= 0 ||
            !ipu__shape_equal(&value->shape,
                              &p->outer->e->values[inner->outer[i]].shape))
            return ipu__damaged(r, "%.60s is bound to something else",
                                value->name);
        p->bound[value->block] = i;
    }
    for (int32_t v = 0; v < p->e->nvalues; v++)
        count += p->e->values[v].bound;
    return count == (inner ? inner->nbound : 0)
               ? IPU_OK
               : ipu__damaged(r, "%d values are bound to nothing",
                              (int)(count - (inner ? inner->nbound : 0)));
}

static int verify_inner(const struct ipu__reader *r,
                        const struct ipu__verified *outer,
                        const struct ipu__inner *inner, const ipu_executable *e)
{
    struct ipu__verified p = {.e = e, .outer = outer, .inner = inner};
    size_t bytes = ((size_t)e->nblocks + 1) * sizeof *p.bound;
    int status;

    IPU_TRY(ipu__verify_blocks(r, e));
    p.bound = malloc(bytes);
    if (!p.bound)
        return ipu__fail_memory(bytes);
    memset(p.bound, -1, bytes);
    status = find_bound(r, &p);
    if (status == IPU_OK)
        status = ipu__verify_program(r, &p);
    free(p.bound);
    return status;
}

int ipu__verify(const struct ipu__reader *r, const ipu_executable *e)
{
    return verify_inner(r, NULL, NULL, e);
}

/* -------------------------------------------------------------------- loops */

/* Checks the carried values. A loop begins by copying the first values into
 * them. */
static int verify_carried(const struct ipu__reader *r,
                          const struct ipu__verified *p,
                          const struct ipu__loop_code *loop)
{
    const ipu_executable *e = p->e;

    for (int32_t i = 0; i < loop->ncarried; i++) {
        int32_t from = loop->initial[i], to = loop->outputs[i];

        if (!has_place(e, from) || !has_place(e, to) ||
            e->values[to].kind != IPU__RESULT ||
            !ipu__shape_equal(&e->values[from].shape, &e->values[to].shape))
            return ipu__damaged(r, "a loop carries nothing");
        if (ipu__verified_overlap(p, from, to) &&
            !ipu__verified_same(p, from, to))
            return ipu__damaged(r, "a loop writes over what it begins with");
    }
    return IPU_OK;
}

/* Checks that the first bound values are those that the loop carries. */
static bool binds_carried(const struct ipu__loop_code *loop,
                          const struct ipu__inner *inner)
{
    if (inner->nbound < loop->ncarried)
        return false;
    for (int32_t i = 0; i < loop->ncarried; i++)
        if (inner->outer[i] != loop->outputs[i])
            return false;
    return true;
}

/* Checks that a condition has one output, a number, and no queues. */
static bool is_condition(const ipu_executable *e)
{
    const struct ipu__shape *shape;

    if (e->nstreams != 1 || e->streams[0].kind != IPU__STREAM_OUT ||
        e->nfeeds > 0)
        return false;
    shape = &e->values[e->streams[0].value].shape;
    return shape->dtype == IPU_INT32 && shape->ndim == 0;
}

static int verify_loop(const struct ipu__reader *r,
                       const struct ipu__verified *p,
                       const struct ipu__loop_code *loop)
{
    const ipu_executable *condition = loop->condition.program;

    if (loop->count < 0)
        return ipu__damaged(r, "a loop runs less than 0 times");
    IPU_TRY(verify_carried(r, p, loop));
    if (!binds_carried(loop, &loop->body) ||
        (condition && !binds_carried(loop, &loop->condition)))
        return ipu__damaged(r, "a body has not what its loop carries");
    IPU_TRY(verify_inner(r, p, &loop->body, loop->body.program));
    if (!condition)
        return IPU_OK;
    IPU_TRY(verify_inner(r, p, &loop->condition, condition));
    return is_condition(condition)
               ? IPU_OK
               : ipu__damaged(r, "a condition does not give one number");
}

int ipu__verify_loops(const struct ipu__reader *r,
                      const struct ipu__verified *p)
{
    for (int32_t i = 0; i < p->e->nloops; i++)
        IPU_TRY(verify_loop(r, p, &p->e->loops[i]));
    return IPU_OK;
}

/* ------------------------------------------------------------------- queues */

int ipu__verify_feeds(const struct ipu__reader *r, const ipu_executable *e)
{
    for (int32_t i = 0; i < e->nfeeds; i++) {
        const struct ipu__feed_code *f = &e->feeds[i];
        const ipu_feed_tensor *tensors;
        int32_t count = f->infeed ? ipu_infeed_tensors(f->infeed, &tensors)
                                  : ipu__outfeed_tensors(f->outfeed, &tensors);

        if (f->bytes < 0 || f->cycles < 0 || f->bytes > MOST_AMOUNT ||
            f->cycles > MOST_AMOUNT)
            return ipu__damaged(r, "a queue of no bytes, or that never moves");
        if (count != f->count)
            return ipu__damaged(r, "a queue of %d tensors has %d values",
                                (int)count, (int)f->count);
        for (int32_t k = 0; k < count; k++) {
            int32_t v = f->values[k];
            struct ipu__shape shape;

            if (f->infeed && v == -1)
                continue; /* no loop uses it */
            if (!has_place(e, v) ||
                (f->infeed && e->values[v].kind != IPU__INPUT) ||
                !ipu__queue_shape(tensors, count, k, &shape) ||
                !ipu__shape_equal(&shape, &e->values[v].shape))
                return ipu__damaged(r, "tensor %d of a queue is no value",
                                    (int)k);
        }
    }
    return IPU_OK;
}
