/* SPDX-License-Identifier: Apache-2.0 */
/*
 * code.c - counts the code that every tile holds, and the state of its
 * vertices.
 *
 * Code of vertices exists once for each kind of step, that is for the same ops
 * in the same order. Each step has its own code of exchanges, unless it shares
 * that of a congruent step (outline.c). place.c and outline.c call it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/passes.h"

enum {
    STATE_BYTES = 16,   /* state of a vertex; a step has one for each context */
    CONTROL_BYTES = 24, /* code of the program around a step */
    COPY_CODE_BYTES =
        52 /* code of the vertex that copies, as of any vertex by element */
};

int64_t ipu__own_code_bytes(const struct ipu_executable *e,
                            const struct ipu__step *step)
{
    return step->cycles.exchange_code_bytes +
           (int64_t)STATE_BYTES * e->target.workers;
}

/* Returns the code bytes of that many copies: each operand has the state of a
 * vertex, whose code all copies share, and a short program runs them. */
int64_t ipu__copy_code_bytes(int32_t copies)
{
    return copies > 0 ? CONTROL_BYTES + (int64_t)STATE_BYTES * copies : 0;
}

/* Steps that differ in their code: a hash table. */
struct kinds {
    int32_t *steps; /* owned, [size]; -1: none */
    size_t size;    /* a power of 2, at least twice the steps */
};

/* Returns whether two steps run the same code. */
static bool same_code(const struct ipu_executable *e, const struct ipu__step *a,
                      const struct ipu__step *b)
{
    struct ipu__step_op first, second;

    if (a->op != b->op || ipu__nparts(a) != ipu__nparts(b))
        return false;
    for (int32_t k = 0; k < ipu__nparts(a); k++)
        if (ipu__part_of(e, a, k, &first)->op !=
            ipu__part_of(e, b, k, &second)->op)
            return false;
    return true;
}

static size_t hash_of(const struct ipu_executable *e,
                      const struct ipu__step *step)
{
    uint64_t hash = (uintptr_t)step->op;
    struct ipu__step_op place;

    for (int32_t k = 0; k < ipu__nparts(step); k++)
        hash = hash * 0x100000001b3u +
               (uintptr_t)ipu__part_of(e, step, k, &place)->op;
    return (size_t)(hash ^ hash >> 29);
}

/* Returns whether no step before has its code. */
static bool is_new(const struct ipu_executable *e, int32_t step,
                   struct kinds *kinds)
{
    size_t at = hash_of(e, &e->steps[step]) & (kinds->size - 1);

    while (kinds->steps[at] >= 0) {
        if (same_code(e, &e->steps[kinds->steps[at]], &e->steps[step]))
            return false;
        at = (at + 1) & (kinds->size - 1);
    }
    kinds->steps[at] = step;
    return true;
}

int ipu__count_code(struct ipu_executable *e)
{
    struct kinds kinds = {.size = 16};
    bool copies = false;

    while (kinds.size < 2 * (size_t)e->nsteps)
        kinds.size *= 2;
    kinds.steps = malloc(kinds.size * sizeof *kinds.steps);
    if (!kinds.steps)
        return ipu__fail_memory(kinds.size * sizeof *kinds.steps);
    memset(kinds.steps, -1, kinds.size * sizeof *kinds.steps);
    e->code_bytes = e->exchange_code_bytes = e->state_bytes = 0;
    e->info.shared_code_bytes = 0;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *step = &e->steps[i];

        e->code_bytes += CONTROL_BYTES * (1 + (step->copies > 0));
        e->state_bytes += (int64_t)STATE_BYTES * step->copies;
        e->info.shared_code_bytes -= ipu__copy_code_bytes(step->copies);
        copies |= step->copies > 0;
        if (step->body < 0) {
            e->exchange_code_bytes += step->cycles.exchange_code_bytes;
            e->state_bytes += (int64_t)STATE_BYTES * e->target.workers;
        } else {
            e->info.shared_code_bytes += ipu__own_code_bytes(e, step);
        }
        if (step->kind != IPU__HOST_CALL && is_new(e, i, &kinds))
            e->code_bytes += step->cycles.code_bytes;
    }
    if (copies) {
        e->code_bytes += COPY_CODE_BYTES;
        e->info.shared_code_bytes -= COPY_CODE_BYTES;
    }
    e->code_bytes += e->exchange_code_bytes + e->state_bytes;
    free(kinds.steps);
    return IPU_OK;
}
