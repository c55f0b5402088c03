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

#include "compiler/program.h"
#include "graph/error.h"
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
                         struct ipu__inner *to)
{
    ipu_compile_options alone = *options;

    if (!from->graph)
        return IPU_OK;
    /* Whether it fits is seen of the whole. */
    alone.allow_out_of_memory = 1;
    IPU_TRY(ipu_compile_with(from->graph, &alone, &to->program));
    return find_inner(from, ncarried, to);
}

int ipu__compile_loops(const ipu_graph *g, const ipu_compile_options *options,
                       struct ipu_executable *e)
{
    if (g->nloops == 0)
        return IPU_OK;
    e->loops = calloc((size_t)g->nloops, sizeof *e->loops);
    if (!e->loops)
        return ipu__fail_memory((size_t)g->nloops * sizeof *e->loops);
    for (int32_t i = 0; i < g->nloops; i++) {
        const struct ipu__loop *loop = &g->loops[i];
        struct ipu__loop_code *code = &e->loops[e->nloops++];
        size_t n = (size_t)loop->ncarried + 1;

        code->name = loop->condition.graph ? "while" : "repeat";
        code->count = loop->count;
        code->ncarried = loop->ncarried;
        code->initial = calloc(n, sizeof *code->initial);
        code->outputs = calloc(n, sizeof *code->outputs);
        if (!code->initial || !code->outputs)
            return ipu__fail_memory(n * sizeof *code->initial);
        IPU_TRY(
            compile_inner(&loop->body, loop->ncarried, options, &code->body));
        IPU_TRY(compile_inner(&loop->condition, loop->ncarried, options,
                              &code->condition));
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

/* A sum of so many of them; more than a chip counts in a year is not told
 * apart, so that sums of such sums do not overflow. */
static void add(int64_t *sum, int64_t number, int64_t times)
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
    add(&sum->compute, one->compute, times);
    add(&sum->exchange, one->exchange, times);
    add(&sum->sync, one->sync, times);
    add(&sum->host, one->host, times);
    add(&sum->total, one->total, times);
    add(&sum->again, one->again, times);
    add(&sum->streaming, one->streaming, times);
    add(&sum->streaming_bytes, one->streaming_bytes, times);
    sum->flops += one->flops * (double)times;
    sum->estimates += one->estimates;
}

/* Without what update regions pass over: they run every so many times. */
static void take_updates(const ipu_executable *e, int64_t times,
                         ipu_program_cycles *sum)
{
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];
        int64_t passed = s->count > 1 ? times - times / s->count : 0;
        bool call = s->kind == IPU__HOST_CALL || s->op == &ipu__host_receive;

        if (passed == 0)
            continue;
        sum->total -= s->cycles.total * passed;
        if (call) {
            sum->host -= s->cycles.total * passed;
            continue;
        }
        sum->compute -= s->cycles.compute * passed;
        sum->exchange -= s->cycles.exchange * passed;
        sum->sync -= s->cycles.sync * passed;
        sum->flops -= s->cycles.flops * (double)passed;
        if (s->op == &ipu__remote_load || s->op == &ipu__remote_store) {
            sum->streaming -= s->cycles.exchange * passed;
            sum->streaming_bytes -=
                (int64_t)e->values[s->output].bytes * passed;
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
    add_times(&one, times, sum);
    take_updates(loop->body.program, times, sum);
    if (loop->condition.program) {
        IPU_TRY(ipu_executable_cycles(loop->condition.program, &one));
        add_times(&one, times < INT64_MAX ? times + 1 : times, sum);
    }
    add(&control, (int64_t)COUNT_SLOTS * e->target.workers, times);
    add(&control, (int64_t)ENTER_SLOTS * e->target.workers, 1);
    add(&sum->compute, control, 1);
    add(&sum->total, control, 1);
    return IPU_OK;
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
        .exchange = sum.exchange,
        .sync = sum.sync,
        .total = sum.total,
        .temporary_bytes =
            body->info.fullest_tile_bytes - body->info.code_bytes_per_tile,
        .exchange_code_bytes = body->info.code_bytes_per_tile,
        .flops = sum.flops,
        .estimate = sum.estimates > 0
                        ? "some of the body's steps are only estimates"
                        : NULL,
    };
    if (loop->condition.program) {
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
