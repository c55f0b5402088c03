/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loops.c - loops as steps of a program.
 *
 * A body is compiled by the same passes to a program of its own, before the
 * graph around it. There a loop is one step, which the engine runs by running
 * the body's program count times. Values of the body that are imported or
 * carried have no memory in it: they are bound to values of the program around
 * it, whose memory they are.
 *
 * What a body takes is taken once and multiplied: cycles by the iterations,
 * beside some for counting them. What it holds on a tile of its own is what the
 * loop's step needs for itself; its code is the step's.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/program.h"
#include "streams/streams.h"

/* Instructions to count an iteration and to branch, on every tile: decrement,
 * compare, branch, in the supervisor's thread. */
enum { COUNT_SLOTS = 3, ENTER_SLOTS = 8 };

/* ---------------------------------------------------------------- compiling
 */

/* Which value of the program each import and carried value is. */
static int find_inner(const struct ipu__block_graph *from, int32_t ncarried,
                      struct ipu__inner *to)
{
    const ipu_graph *g = from->graph;
    size_t n = (size_t)g->nimports + (size_t)ncarried + 1;
    const int32_t *value_of = to->program->value_of;

    to->inner = calloc(n, sizeof *to->inner);
    to->outer = calloc(n, sizeof *to->outer);
    if (!to->inner || !to->outer)
        return ipu__fail_memory(n * sizeof *to->inner);
    for (int32_t i = 0; i < ncarried; i++)
        to->inner[to->nbound++] = value_of[from->carried[i]];
    for (int32_t i = 0; i < g->nimports; i++)
        if (g->tensors[g->imports[i].inner].kind == IPU__VARIABLE)
            to->inner[to->nbound++] = value_of[g->imports[i].inner];
    return IPU_OK;
}

static int compile_inner(const struct ipu__block_graph *from, int32_t ncarried,
                         const ipu_compile_options *options,
                         const struct ipu__setting *setting,
                         struct ipu__inner *to)
{
    ipu_compile_options alone = *options;

    if (!from->graph)
        return IPU_OK;
    /* Whether it fits is seen of the whole. */
    alone.allow_out_of_memory = 1;
    IPU_TRY(ipu__compile(from->graph, &alone, setting, &to->program));
    return find_inner(from, ncarried, to);
}

int ipu__compile_loops(const ipu_graph *g, const ipu_compile_options *options,
                       int64_t beside, struct ipu_executable *e)
{
    if (g->nloops == 0)
        return IPU_OK;
    e->loops = calloc((size_t)g->nloops, sizeof *e->loops);
    if (!e->loops)
        return ipu__fail_memory((size_t)g->nloops * sizeof *e->loops);
    for (int32_t i = 0; i < g->nloops; i++) {
        const struct ipu__loop *loop = &g->loops[i];
        struct ipu__loop_code *code = &e->loops[e->nloops++];
        const struct ipu__setting setting = {e->plans, beside, e->automatic};
        size_t n = (size_t)loop->ncarried + 1;

        code->name = loop->condition.graph ? "while" : "repeat";
        code->count = loop->count;
        code->ncarried = loop->ncarried;
        code->initial = calloc(n, sizeof *code->initial);
        code->outputs = calloc(n, sizeof *code->outputs);
        if (!code->initial || !code->outputs)
            return ipu__fail_memory(n * sizeof *code->initial);
        IPU_TRY(compile_inner(&loop->body, loop->ncarried, options, &setting,
                              &code->body));
        IPU_TRY(compile_inner(&loop->condition, loop->ncarried, options,
                              &setting, &code->condition));
    }
    return IPU_OK;
}

static void free_inner(struct ipu__inner *inner)
{
    ipu_executable_free(inner->program);
    free(inner->inner);
    free(inner->outer);
}

void ipu__loop_codes_free(struct ipu_executable *e)
{
    for (int32_t i = 0; i < e->nloops; i++) {
        free_inner(&e->loops[i].body);
        free_inner(&e->loops[i].condition);
        free(e->loops[i].initial);
        free(e->loops[i].outputs);
    }
    free(e->loops);
    for (int32_t i = 0; i < e->nfeeds; i++) {
        ipu__infeed_release(e->feeds[i].infeed);
        ipu__outfeed_release(e->feeds[i].outfeed);
        free(e->feeds[i].values);
    }
    free(e->feeds);
    free(e->value_of);
}

/* ---------------------------------------------------- what a loop's step uses
 */

const struct ipu__loop_code *ipu__loop_of(const struct ipu_executable *e,
                                          const struct ipu__step *step)
{
    return step->kind == IPU__LOOP ? &e->loops[step->loop] : NULL;
}

int32_t ipu__loop_read(const struct ipu_executable *e,
                       const struct ipu__step *step, int32_t i)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, step);

    if (!loop)
        return -1;
    if (i < loop->ncarried)
        return loop->initial[i];
    i -= loop->ncarried;
    if (i < loop->body.nbound)
        return loop->body.outer[i];
    i -= loop->body.nbound;
    return i < loop->condition.nbound ? loop->condition.outer[i] : -1;
}

int32_t ipu__loop_makes(const struct ipu_executable *e,
                        const struct ipu__step *step, int32_t i)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, step);

    return loop && i < loop->ncarried ? loop->outputs[i] : -1;
}

/* -------------------------------------------------------------------- cycles
 */

int64_t ipu__loop_times(const struct ipu__loop_code *loop)
{
    return loop->condition.program && loop->count == 0 ? 1 : loop->count;
}

void ipu__add_times(int64_t *sum, int64_t number, int64_t times)
{
    const int64_t most = INT64_C(1) << 56;
    int64_t product;

    if (__builtin_mul_overflow(number, times, &product) || product > most)
        product = most;
    *sum = *sum + product > most ? most : *sum + product;
}

static void add_times(const ipu_program_cycles *one, int64_t times,
                      ipu_program_cycles *sum)
{
    ipu__add_times(&sum->compute, one->compute, times);
    ipu__add_times(&sum->waiting, one->waiting, times);
    ipu__add_times(&sum->exchange, one->exchange, times);
    ipu__add_times(&sum->sync, one->sync, times);
    ipu__add_times(&sum->host, one->host, times);
    ipu__add_times(&sum->total, one->total, times);
    ipu__add_times(&sum->again, one->again, times);
    ipu__add_times(&sum->streaming, one->streaming, times);
    ipu__add_times(&sum->streaming_bytes, one->streaming_bytes, times);
    sum->flops += one->flops * (double)times;
    sum->estimates += one->estimates;
}

/* So many cycles or bytes of each iteration, of several: not of one any more,
 * but of those in which it runs. */
static void move(int64_t *one, int64_t *sum, int64_t number, int64_t runs)
{
    *one -= number;
    ipu__add_times(sum, number, runs);
}

/* What update regions pass over runs every so many times only: it is taken out
 * of an iteration. */
static void take_updates(const ipu_executable *e, int64_t times,
                         ipu_program_cycles *one, ipu_program_cycles *sum)
{
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];
        int64_t runs = s->count > 1 ? times / s->count : times;

        if (runs == times)
            continue;
        move(&one->total, &sum->total, s->cycles.total, runs);
        if (s->kind == IPU__HOST_CALL || s->op == &ipu__host_receive) {
            move(&one->host, &sum->host, s->cycles.total, runs);
            continue;
        }
        move(&one->compute, &sum->compute, s->cycles.compute, runs);
        move(&one->waiting, &sum->waiting, s->cycles.waiting, runs);
        move(&one->exchange, &sum->exchange, s->cycles.exchange, runs);
        move(&one->sync, &sum->sync, s->cycles.sync, runs);
        one->flops -= s->cycles.flops;
        sum->flops += s->cycles.flops * (double)runs;
        if (s->op == &ipu__remote_load || s->op == &ipu__remote_store) {
            move(&one->streaming, &sum->streaming, s->cycles.exchange, runs);
            move(&one->streaming_bytes, &sum->streaming_bytes,
                 (int64_t)e->values[s->output].bytes, runs);
        }
    }
}

int ipu__loop_cycles(const struct ipu_executable *e,
                     const struct ipu__step *step, ipu_program_cycles *sum)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, step);
    int64_t times = ipu__loop_times(loop), control = 0;
    ipu_program_cycles one = {.size = sizeof one};

    *sum = (ipu_program_cycles){.size = sizeof *sum};
    IPU_TRY(ipu_executable_cycles(loop->body.program, &one));
    take_updates(loop->body.program, times, &one, sum);
    add_times(&one, times, sum);
    if (loop->condition.program) {
        IPU_TRY(ipu_executable_cycles(loop->condition.program, &one));
        add_times(&one, times < INT64_MAX ? times + 1 : times, sum);
    }
    ipu__add_times(&control, (int64_t)COUNT_SLOTS * e->target.workers, times);
    ipu__add_times(&control, (int64_t)ENTER_SLOTS * e->target.workers, 1);
    ipu__add_times(&sum->compute, control, 1);
    ipu__add_times(&sum->total, control, 1);
    return IPU_OK;
}

/* By the fullest tile, beside code. */
static int64_t held_by(const ipu_executable *inner)
{
    return inner->info.fullest_tile_bytes - inner->info.code_bytes_per_tile;
}

int ipu__count_loop(const struct ipu_executable *e,
                    const struct ipu__step *step, ipu_cycles *cycles)
{
    const struct ipu__loop_code *loop = ipu__loop_of(e, step);
    const ipu_executable *body = loop->body.program;
    ipu_program_cycles sum;
    uint32_t size = cycles->size;

    IPU_TRY(ipu__loop_cycles(e, step, &sum));
    *cycles = (ipu_cycles){
        .size = size,
        .compute = sum.compute,
        .waiting = sum.waiting,
        .exchange = sum.exchange,
        .sync = sum.sync,
        .total = sum.total,
        .temporary_bytes = held_by(body),
        .exchange_code_bytes = body->info.code_bytes_per_tile,
        .flops = sum.flops,
        .estimate = sum.estimates > 0
                        ? "some of the body's steps are only estimates"
                        : NULL,
    };
    if (loop->condition.program) {
        int64_t held = held_by(loop->condition.program);

        /* One after the other. */
        if (cycles->temporary_bytes < held)
            cycles->temporary_bytes = held;
        cycles->exchange_code_bytes +=
            loop->condition.program->info.code_bytes_per_tile;
        cycles->estimate = "how many iterations there are is known when it "
                           "runs";
    }
    return IPU_OK;
}

/* -------------------------------------------------------------------- asking
 */

int ipu_executable_body(const ipu_executable *executable, int32_t step,
                        const ipu_executable **body, int64_t *count)
{
    const struct ipu__loop_code *loop;

    if (!executable)
        return ipu__fail(IPU_ERR_ARGUMENT, "body: the executable is NULL");
    IPU_TRY(ipu__check_step(executable, step));
    loop = ipu__loop_of(executable, &executable->steps[step]);
    if (body)
        *body = loop ? loop->body.program : NULL;
    if (count)
        *count = loop ? ipu__loop_times(loop) : 1;
    return loop != NULL;
}
