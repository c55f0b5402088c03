/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost.c - the pass that counts the cycles and memory of each step on the chip.
 *
 * An op describes its work, and the model of the target counts it
 * (target/cost.h). Host calls are streams; so are inputs before the first step
 * and outputs after the last. It runs after place.c has put tensors on tiles,
 * since the exchange of a step depends on their placement (exchange.c); place.c
 * then runs again, with the temporary memory that is found here.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/passes.h"
#include "compiler/placement/spread.h"
#include "ops/costs.h"
#include "target/cost.h"

static const char not_said[] = "the op does not say how many instructions an "
                               "element takes: one for a vector is assumed";

/* Describes the work of an op that does not say. */
static void guess_work(const struct ipu__call *call, struct ipu__work *work)
{
    work->kind = IPU__WORK_ELEMENTS;
    work->arithmetic = ipu__knows_slots(call->op)
                           ? ipu__slots(call->op, work->element_bytes)
                           : 1;
    work->compiled = call->op->loop_slots == 0 && work->arithmetic > 0;
    if (call->op->loop_slots > 0)
        work->arithmetic = call->op->loop_slots;
    work->elements = work->outputs;
    if (call->op->alias) {
        work->kind = IPU__WORK_NONE;
        return;
    }
    for (int i = 0; i < call->op->ninputs; i++) {
        int64_t count = ipu__shape_count(&call->inputs[i].shape);

        work->loads += count >= work->outputs;
        if (count > work->elements) {
            work->kind = IPU__WORK_SUM;
            work->elements = count;
        }
    }
    for (int i = 0; i < call->op->ninputs && !call->op->by_element; i++) {
        int64_t count = ipu__shape_count(&call->inputs[i].shape);

        if (count < work->elements)
            work->broadcast_bytes += count * work->element_bytes;
    }
}

/* Returns whether an assignment needs no copy: the value was computed in the
 * variable's place. */
static bool is_there(const struct ipu_executable *e,
                     const struct ipu__step_op *part)
{
    return part->op == &ipu__assign_step &&
           e->values[part->inputs[0]].block == e->values[part->output].block;
}

/* Returns on how many tiles a sum is. A tile holds neighbours: fewer than a run
 * of outputs comes from, or several runs. */
static int64_t tiles_of_a_sum(const struct ipu__work *work, int32_t used)
{
    int64_t here = work->share, run = work->run, parts;

    if (here >= run)
        parts = here % run ? 2 : 1; /* runs that begin on one tile, and end on
                                       the next */
    else
        parts = ipu__ceil_div(ipu__ceil_div(run, here) *
                                  ipu__least(here, work->run_outputs),
                              work->run_outputs);
    return ipu__least(parts, used);
}

/* Notes the placement of operands: the fewest tiles that hold one, and the
 * number of tiles that a sum is on. */
static void look_where(const struct ipu_executable *e,
                       const struct ipu__step_op *part, struct ipu__work *work)
{
    int32_t v = part->op->ninputs > 0 ? part->inputs[0] : -1;
    struct ipu__spread s;

    for (int i = 0; i < part->op->ninputs; i++)
        if (!e->values[part->inputs[i]].inner &&
            !e->blocks[e->values[part->inputs[i]].block].remote) {
            s = ipu__spread_of(e, part->inputs[i]);
            work->give_bytes += ipu__spread_share(&s);
        }
    if ((work->kind != IPU__WORK_SUM && work->kind != IPU__WORK_ROWS) ||
        work->run == 0 || work->run_outputs == 0 || e->values[v].inner)
        return;
    s = ipu__spread_of(e, v);
    if (ipu__spread_share(&s) == 0)
        return;
    work->share =
        ipu__ceil_div(ipu__spread_share(&s),
                      (int64_t)ipu__dtype_bytes(e->values[v].shape.dtype));
    work->parts = tiles_of_a_sum(work, s.used);
}

/* Returns the share of a tile's memory that a product may take for
 * temporaries, or 0 if the part is no product. */
static double proportion_of(const struct ipu_executable *e,
                            const struct ipu__step_op *part)
{
    double said = part->attributes.proportion;

    if (!part->op->product)
        return 0;
    return said > 0 ? said : e->proportions[part->op->product];
}

static struct ipu__work work_of(const struct ipu_executable *e,
                                const struct ipu__step *step,
                                const struct ipu__step_op *part,
                                int element_bytes)
{
    struct ipu__work work = {.plans = e->plans};
    struct ipu__call call;

    ipu__part_call(e, part, &call);
    work.element_bytes = ipu__dtype_bytes(call.output.dtype) < 4 ? 2 : 4;
    if (element_bytes)
        work.element_bytes = element_bytes;
    /* Bytes on the fullest tile scale with the size of elements. */
    work.others =
        element_bytes ? step->tile_bytes * element_bytes / 4 : step->tile_bytes;
    work.outputs = ipu__shape_count(&call.output.shape);
    work.stores = 1;
    if (is_there(e, part))
        work.kind = IPU__WORK_NONE;
    else if (call.op->cost)
        call.op->cost(&call, &work);
    else
        guess_work(&call, &work);
    work.product.available_memory_proportion = proportion_of(e, part);
    look_where(e, part, &work);
    return work;
}

/* ------------------------------------------------------------- fused steps */

/* Returns whether a value is in a register: one of the parts before the k-th
 * makes it, or reads it as a whole. */
static bool is_at_hand(const struct ipu_executable *e,
                       const struct ipu__step *step, int32_t k, int32_t v)
{
    for (int32_t p = 0; p < k; p++) {
        const struct ipu__step_op *part = &e->parts[step->first_part + p];

        if (part->output == v && (p > 0 || !step->head))
            return true;
        for (int i = 0; i < part->op->ninputs; i++)
            if (part->inputs[i] == v && part->op->by_element)
                return true;
    }
    return false;
}

/* Returns the arithmetic of a part of a fused step, whose loop is not the
 * library's. */
static int32_t arithmetic_of(const struct ipu__step_op *part,
                             const struct ipu__work *work)
{
    if (part->op->alias || part->op == &ipu__assign_step)
        return 0;
    return ipu__knows_slots(part->op)
               ? ipu__slots(part->op, work->element_bytes)
               : work->arithmetic;
}

/* Counts the values that a part loads from elsewhere, and stores for others. */
static void count_accesses(const struct ipu_executable *e,
                           const struct ipu__step *step, int32_t k,
                           struct ipu__work *all)
{
    const struct ipu__step_op *part = &e->parts[step->first_part + k];

    for (int i = 0; i < part->op->ninputs && !part->op->alias; i++)
        all->loads += ipu__view_of(e, part, i) == IPU__WHOLE &&
                      !is_at_hand(e, step, k, part->inputs[i]);
    if (part->op == &ipu__assign_step)
        all->stores +=
            e->values[part->inputs[0]].block != e->values[part->output].block;
    else
        all->stores += !part->op->alias && !e->values[part->output].inner;
}

/* Describes the work of all parts but the head: one vertex, compiled for them,
 * which loads what comes from elsewhere and stores what others need. If only
 * one of them computes, it may be the library's. */
static struct ipu__work work_of_parts(const struct ipu_executable *e,
                                      const struct ipu__step *step,
                                      int element_bytes)
{
    struct ipu__work all = {.kind = IPU__WORK_ELEMENTS,
                            .elements = step->elements,
                            .outputs = step->elements};
    struct ipu__work alone = {.arithmetic = 0};
    int32_t computing = 0;

    for (int32_t k = step->head != NULL; k < step->nparts; k++) {
        const struct ipu__step_op *part = &e->parts[step->first_part + k];
        struct ipu__work work = work_of(e, step, part, element_bytes);
        int32_t arithmetic = arithmetic_of(part, &work);

        if (all.element_bytes < work.element_bytes)
            all.element_bytes = work.element_bytes;
        all.arithmetic += arithmetic;
        count_accesses(e, step, k, &all);
        if (arithmetic > 0) {
            computing++;
            alone = work;
        }
    }
    all.compiled = computing > 0;
    if (computing == 1) {
        all.compiled = alone.compiled;
        all.arithmetic = alone.arithmetic;
    }
    return all;
}

/* Says why what an op takes is only an estimate; NULL: it is none. */
static const char *doubt_of_op(const struct ipu__op *op)
{
    if (op->estimate)
        return op->estimate;
    if (op->functions[0])
        return IPU__FUNCTION_ESTIMATE;
    return op->slots || op->cost || op->alias ? NULL : not_said;
}

static ipu_system system_of(const struct ipu_executable *e)
{
    ipu_system system = {.size = sizeof system,
                         .ipu = e->target,
                         .ipus = 1,
                         .ipus_per_board = 1,
                         .host_share = 1};

    memcpy(system.name, e->target.name, sizeof system.name);
    return system;
}

static int count_part(const struct ipu_executable *e,
                      const struct ipu__step *step,
                      const struct ipu__step_op *part, int element_bytes,
                      ipu_cycles *cycles, int64_t *tiles)
{
    const struct ipu__work work = work_of(e, step, part, element_bytes);

    IPU_TRY(ipu__work_cycles(&e->target, &work, cycles, tiles));
    if (!cycles->estimate && work.kind != IPU__WORK_NONE)
        cycles->estimate = doubt_of_op(part->op);
    return IPU_OK;
}

/* Returns the doubt of the first of the parts, without the head, that has one.
 */
static const char *doubt_of_parts(const struct ipu_executable *e,
                                  const struct ipu__step *step)
{
    const char *why = NULL;

    for (int32_t k = step->head != NULL; k < step->nparts && !why; k++)
        why = doubt_of_op(e->parts[step->first_part + k].op);
    return why;
}

/* Counts the head, then all other parts, which run where the head has made its
 * output. */
static int count_fused(const struct ipu_executable *e,
                       const struct ipu__step *step, int element_bytes,
                       ipu_cycles *cycles, int64_t *tiles)
{
    const struct ipu__work work = work_of_parts(e, step, element_bytes);
    ipu_cycles head = {.size = sizeof head};
    int64_t head_tiles = 0;

    IPU_TRY(ipu__work_cycles(&e->target, &work, cycles, tiles));
    if (!cycles->estimate)
        cycles->estimate = doubt_of_parts(e, step);
    if (!step->head)
        return IPU_OK;
    IPU_TRY(count_part(e, step, &e->parts[step->first_part], element_bytes,
                       &head, &head_tiles));
    ipu__follow(cycles, &head);
    if (*tiles < head_tiles)
        *tiles = head_tiles;
    return IPU_OK;
}

/* Adds the data that tiles fetch because operands are not where the step runs.
 */
static void count_received(const struct ipu_executable *e,
                           const struct ipu__step *step, int element_bytes,
                           ipu_cycles *cycles)
{
    int64_t bytes = step->fetch_bytes;

    if (element_bytes)
        bytes = bytes * element_bytes / 4;
    if (bytes == 0)
        return;
    ipu__count_exchange(&e->target, bytes, step->messages, cycles);
    if (step->give_bytes > step->fetch_bytes)
        cycles->exchange += ipu__words_cycles(&e->target, step->give_bytes) -
                            ipu__words_cycles(&e->target, step->fetch_bytes);
    cycles->temporary_bytes += bytes;
    cycles->total = cycles->compute + cycles->exchange + cycles->sync;
}

int ipu__count_copies(const struct ipu_executable *e, int64_t bytes,
                      ipu_cycles *cycles)
{
    const ipu_loop loop = {.size = sizeof loop,
                           .tuned = 1,
                           .loads = 1,
                           .stores = 1,
                           .iterations =
                               ipu__ceil_div(bytes, e->target.vector_bytes)};
    ipu_cycles copies = {.size = sizeof copies};

    IPU_TRY(ipu_model_loop(&e->target, &loop, &copies));
    cycles->compute += copies.compute;
    cycles->total += copies.compute;
    return IPU_OK;
}

/* Adds copies to where shared code has its operands, and back. */
static int count_copied(const struct ipu_executable *e,
                        const struct ipu__step *step, int element_bytes,
                        ipu_cycles *cycles)
{
    int64_t part = element_bytes ? element_bytes : 4;

    if (step->copies == 0)
        return IPU_OK;
    cycles->temporary_bytes += step->held_bytes * part / 4;
    return ipu__count_copies(e, step->copied_bytes * part / 4, cycles);
}

static int count_step(const struct ipu_executable *e,
                      const struct ipu__step *step, int element_bytes,
                      ipu_cycles *cycles, int64_t *tiles)
{
    struct ipu__step_op place;

    if (step->kind == IPU__HOST_CALL || step->op == &ipu__host_receive) {
        const ipu_system system = system_of(e);

        *tiles = 0;
        return ipu_model_host(&system, (int64_t)e->values[step->output].bytes,
                              cycles);
    }
    if (step->kind == IPU__LOOP) {
        *tiles = e->target.tiles;
        return ipu__count_loop(e, step, cycles);
    }
    IPU_TRY(step->kind == IPU__FUSED
                ? count_fused(e, step, element_bytes, cycles, tiles)
                : count_part(e, step, ipu__part_of(e, step, 0, &place),
                             element_bytes, cycles, tiles));
    count_received(e, step, element_bytes, cycles);
    return count_copied(e, step, element_bytes, cycles);
}

/* Counts queues: an element is one transfer. */
static int count_feeds(struct ipu_executable *e, const ipu_system *system)
{
    for (int32_t i = 0; i < e->nfeeds; i++) {
        ipu_cycles cycles = {.size = sizeof cycles};
        struct ipu__feed_code *feed = &e->feeds[i];

        feed->bytes = 0;
        for (int32_t k = 0; k < feed->count; k++)
            if (feed->values[k] >= 0)
                feed->bytes += (int64_t)e->values[feed->values[k]].bytes;
        IPU_TRY(ipu_model_host(system, feed->bytes, &cycles));
        feed->cycles = cycles.total;
        e->stream_cycles += cycles.total;
    }
    return IPU_OK;
}

static int count_streams(struct ipu_executable *e)
{
    const ipu_system system = system_of(e);

    e->stream_cycles = 0;
    IPU_TRY(count_feeds(e, &system));
    for (int32_t i = 0; i < e->nstreams; i++) {
        struct ipu__stream *s = &e->streams[i];
        ipu_cycles cycles = {.size = sizeof cycles};

        if (s->kind == IPU__STREAM_CALL || s->value < 0)
            continue;
        IPU_TRY(ipu_model_host(&system, (int64_t)s->bytes, &cycles));
        s->cycles = cycles.total;
        e->stream_cycles += cycles.total;
    }
    return IPU_OK;
}

/* Finds the data that each step fetches. */
static int find_received(struct ipu_executable *e)
{
    struct ipu__received r = {0};

    for (int32_t i = 0; i < e->nsteps; i++) {
        IPU_TRY(
            ipu__new_array(&r.bytes, (size_t)e->target.tiles, sizeof *r.bytes));
        ipu__receive(e, &e->steps[i], &r);
        e->steps[i].fetch_bytes = r.most;
        e->steps[i].messages = r.messages;
        e->steps[i].give_bytes = r.given;
        free(r.bytes);
    }
    return IPU_OK;
}

int ipu__cost(struct ipu_executable *e)
{
    IPU_TRY(find_received(e));
    for (int32_t i = 0; i < e->nsteps; i++) {
        struct ipu__step *step = &e->steps[i];
        struct ipu__step_op place;

        step->cycles.size = sizeof step->cycles;
        step->proportion = 0;
        if (ipu__nparts(step) > 0)
            step->proportion =
                proportion_of(e, ipu__part_of(e, step, 0, &place));
        IPU_TRY(count_step(e, step, 0, &step->cycles, &step->busy_tiles));
        IPU_TRY(ipu__progress(e->progress,
                              e->congruent ? "cost to share code" : "cost",
                              i + 1, e->nsteps));
    }
    IPU_TRY(ipu__network_cost(e));
    return count_streams(e);
}

int64_t ipu__cycles_with(const struct ipu_executable *e, int element_bytes)
{
    int64_t total = 0, tiles;

    for (int32_t i = 0; i < e->nsteps; i++) {
        ipu_cycles cycles = {.size = sizeof cycles};

        if (count_step(e, &e->steps[i], element_bytes, &cycles, &tiles) >= 0)
            total += cycles.total;
    }
    return total;
}
