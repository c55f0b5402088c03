/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cycles.c - counts the cycles of a whole program, and of a loop in it.
 *
 * A loop's step takes the cycles of its body, multiplied by the iterations, and
 * some instructions to count them. The two count each other: a program may have
 * loops, and a loop's body is a program. cost.c calls it for loops; reports,
 * advice and users for programs.
 */
#include "base/error.h"
#include "compiler/passes.h"
#include "compiler/program.h"
#include "ops/transfers/network.h"
#include "target/target.h"

/* The supervisor of every tile counts an iteration with COUNT_SLOTS
 * instructions: decrement, compare, branch. */
enum { COUNT_SLOTS = 3, ENTER_SLOTS = 8 };

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
    ipu__add_times(&sum->network, one->network, times);
    ipu__add_times(&sum->network_busy, one->network_busy, times);
    ipu__add_times(&sum->network_bytes, one->network_bytes, times);
    sum->flops += one->flops * (double)times;
    sum->estimates += one->estimates;
}

/* Moves cycles or bytes of one iteration to the sum over those in which they
 * occur. */
static void move_cycles(int64_t *one, int64_t *sum, int64_t number,
                        int64_t runs)
{
    *one -= number;
    ipu__add_times(sum, number, runs);
}

/* Counts a step that starts a collective of the network, or waits for it. */
static void count_network(const ipu_executable *e, const struct ipu__step *s,
                          ipu_program_cycles *sum)
{
    if (s->op->network == IPU__ARRIVES)
        sum->network += s->cycles.exchange;
    if (s->op->network != IPU__DEPARTS)
        return;
    sum->network_busy += ipu__network_cycles(e, s);
    sum->network_bytes += ipu__network_bytes(&s->attributes);
}

/* Takes steps of update regions, which run only every count-th time, out of one
 * iteration. */
static void take_updates(const ipu_executable *e, int64_t times,
                         ipu_program_cycles *one, ipu_program_cycles *sum)
{
    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];
        int64_t runs = s->count > 1 ? times / s->count : times;

        if (runs == times)
            continue;
        move_cycles(&one->total, &sum->total, s->cycles.total, runs);
        if (s->kind == IPU__HOST_CALL || s->op == &ipu__host_receive) {
            move_cycles(&one->host, &sum->host, s->cycles.total, runs);
            continue;
        }
        move_cycles(&one->compute, &sum->compute, s->cycles.compute, runs);
        move_cycles(&one->waiting, &sum->waiting, s->cycles.waiting, runs);
        move_cycles(&one->exchange, &sum->exchange, s->cycles.exchange, runs);
        move_cycles(&one->sync, &sum->sync, s->cycles.sync, runs);
        one->flops -= s->cycles.flops;
        sum->flops += s->cycles.flops * (double)runs;
        if (s->op == &ipu__remote_load || s->op == &ipu__remote_store) {
            move_cycles(&one->streaming, &sum->streaming, s->cycles.exchange,
                        runs);
            move_cycles(&one->streaming_bytes, &sum->streaming_bytes,
                        (int64_t)e->values[s->output].bytes, runs);
        }
        if (s->op->network) {
            ipu_program_cycles own = {.network = 0};

            count_network(e, s, &own);
            move_cycles(&one->network, &sum->network, own.network, runs);
            move_cycles(&one->network_busy, &sum->network_busy,
                        own.network_busy, runs);
            move_cycles(&one->network_bytes, &sum->network_bytes,
                        own.network_bytes, runs);
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

/* Returns the bytes of the fullest tile without code. */
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

        /* Condition and body run one after the other. */
        if (cycles->temporary_bytes < held)
            cycles->temporary_bytes = held;
        cycles->exchange_code_bytes +=
            loop->condition.program->info.code_bytes_per_tile;
        cycles->estimate = "how many iterations there are is known when it "
                           "runs";
    }
    return IPU_OK;
}

/* Counts what of the sum does not run each time, and the mean. */
static void count_updates(const struct ipu_executable *e,
                          ipu_program_cycles *sum)
{
    double saved = 0;

    for (int32_t i = 0; i < e->nsteps; i++) {
        const struct ipu__step *s = &e->steps[i];

        if (s->count == 0)
            continue;
        sum->update += s->cycles.total;
        saved += (double)s->cycles.total * (1 - 1.0 / s->count);
    }
    sum->mean_total = sum->total - (int64_t)saved;
}

/* Adds a loop. Loops have overlapped their own streams, so their cycles are
 * added to the total by themselves. */
static void add_loop(const ipu_program_cycles *loop, ipu_program_cycles *sum,
                     ipu_program_cycles *loops)
{
    loops->compute += loop->compute;
    loops->waiting += loop->waiting;
    loops->exchange += loop->exchange;
    loops->sync += loop->sync;
    loops->host += loop->host;
    loops->total += loop->total;
    sum->flops += loop->flops;
    sum->again += loop->again;
    sum->streaming += loop->streaming;
    sum->streaming_bytes += loop->streaming_bytes;
    sum->network += loop->network;
    sum->network_busy += loop->network_busy;
    sum->network_bytes += loop->network_bytes;
    sum->estimates += loop->estimates;
}

/* Counts a row that passes between the chip and a remote buffer. */
static void count_row(const struct ipu_executable *e, const struct ipu__step *s,
                      ipu_program_cycles *sum)
{
    const struct ipu__value *all;

    if (s->op != &ipu__row_load && s->op != &ipu__row_store)
        return;
    all = &e->values[s->inputs[0]];
    sum->streaming += s->cycles.exchange;
    sum->streaming_bytes += (int64_t)all->bytes / all->shape.extents[0];
}

int ipu_executable_cycles(const ipu_executable *executable,
                          ipu_program_cycles *info)
{
    ipu_program_cycles sum = {0}, loops = {0};

    IPU_TRY(ipu__check_info("cycles", executable, info));
    IPU_TRY(ipu__check_size("program cycles", info->size, sizeof *info));
    sum.host = executable->stream_cycles;
    for (int32_t i = 0; i < executable->nsteps; i++) {
        const struct ipu__step *s = &executable->steps[i];

        sum.estimates += s->cycles.estimate != NULL;
        if (s->kind == IPU__HOST_CALL || s->op == &ipu__host_receive) {
            sum.host += s->cycles.total;
            continue;
        }
        if (s->kind == IPU__LOOP) {
            ipu_program_cycles loop;

            IPU_TRY(ipu__loop_cycles(executable, s, &loop));
            add_loop(&loop, &sum, &loops);
            continue;
        }
        sum.compute += s->cycles.compute;
        sum.waiting += s->cycles.waiting;
        sum.exchange += s->cycles.exchange;
        sum.sync += s->cycles.sync;
        sum.flops += s->cycles.flops;
        sum.again += s->again ? s->cycles.total : 0;
        if (s->op == &ipu__remote_load || s->op == &ipu__remote_store) {
            sum.streaming += s->cycles.exchange;
            sum.streaming_bytes += (int64_t)executable->values[s->output].bytes;
        }
        count_row(executable, s, &sum);
        count_network(executable, s, &sum);
    }
    sum.total = sum.compute + sum.exchange + sum.sync;
    /* I/O tiles serve streams while the others compute. */
    if (executable->target.io_tiles == 0)
        sum.total += sum.host;
    else if (sum.total < sum.host)
        sum.total = sum.host;
    sum.total += loops.total;
    sum.host += loops.host;
    sum.compute += loops.compute;
    sum.waiting += loops.waiting;
    sum.exchange += loops.exchange;
    sum.sync += loops.sync;
    count_updates(executable, &sum);
    sum.seconds = ipu_model_seconds(&executable->target, sum.total);
    sum.size = info->size;
    *info = sum;
    return IPU_OK;
}
