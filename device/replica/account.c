/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - counts what replicas send each other in a run, and how long that
 * takes.
 *
 * Collectives that do not need one another may be sent together, which saves
 * starting twice: those that follow one another in the program, until one needs
 * what another of them has made, or is of another kind or update region, or the
 * buffer is full. Each such exchange is over the replicas of a group; groups do
 * theirs at the same time. A sum goes the way of the algorithm (algorithm.c),
 * in packs if that is asked for; a reduce-scatter or an all-gather is half of a
 * ring.
 *
 * A step of an update region runs in every count-th run or iteration only. Two
 * numbers are carried along for that: how often a program runs in a run of the
 * replicas that has as many updates as one can have, and in one on average.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/error.h"
#include "compiler/program.h"
#include "replica/algorithm.h"
#include "replica/replica.h"
#include "target/cost.h"

/* Collectives that are sent together. */
struct exchange {
    int64_t bytes;
    int32_t group;
    int32_t kind;  /* enum ipu__collective */
    int32_t gate;  /* of their steps */
    int64_t times; /* times that they are sent in a run */
    double mean;   /* the same on average */
};

struct account {
    const ipu_executable *executable;
    const ipu_system *system;
    int32_t count;
    const ipu_replicas_options *options;
    int64_t limit; /* bytes that are sent together */
    int64_t times; /* times that the program runs in a run */
    double mean;   /* the same on average */
    bool *depends; /* owned, [values]: depends on what is in the buffer */
    struct exchange buffer;
    ipu_replicas_info *info;
};

/* Adds a number to a sum that is reported in 32 bits. */
static void add_number(int32_t *sum, int64_t number)
{
    int64_t whole = *sum;

    ipu__add_times(&whole, 1, number);
    *sum = whole > INT32_MAX ? INT32_MAX : (int32_t)whole;
}

/* Counts number exchanges of that many bytes each. */
static int count_packs(struct account *a, int64_t number, int64_t bytes)
{
    const struct exchange *x = &a->buffer;
    bool whole = x->kind == IPU__ALL_REDUCE;
    const struct ipu__group group = {
        .system = a->system,
        .algorithm = whole ? a->options->cross_replica_algorithm
                           : IPU_CROSS_REPLICA_RING,
        .replicas = x->group,
        .shards = a->options->shards};
    int64_t cycles, sent = 0, times = 0;

    IPU_TRY(ipu__group_cycles(&group, bytes, &sent, &cycles));
    if (!whole) {
        cycles /= 2;
        sent /= 2;
    }
    ipu__add_times(&times, x->times, number);
    ipu__add_times(&a->info->exchange_cycles, cycles, times);
    ipu__add_times(&a->info->sent_bytes, sent, times);
    add_number(&a->info->exchanges, times);
    a->info->mean_exchange_cycles += (double)(cycles * number) * x->mean;
    a->info->mean_sent_bytes += (double)(sent * number) * x->mean;
    return IPU_OK;
}

/* Packs are of equal size; the last one has what is left. */
static int send_exchange(struct account *a)
{
    int64_t bytes = a->buffer.bytes;
    int64_t packs = a->options->packs > 1 ? a->options->packs : 1;
    int64_t pack = ipu__ceil_div(bytes, packs);

    if (bytes == 0)
        return IPU_OK;
    IPU_TRY(count_packs(a, bytes / pack, pack));
    if (bytes % pack)
        IPU_TRY(count_packs(a, 1, bytes % pack));
    a->buffer.bytes = 0;
    for (int32_t v = 0; v < a->executable->nvalues; v++)
        a->depends[v] = false;
    return IPU_OK;
}

/* Can a collective go with what is in the buffer? */
static bool goes_with(const struct account *a, const struct exchange *one)
{
    const struct exchange *x = &a->buffer;

    return x->group == one->group && x->kind == one->kind &&
           x->gate == one->gate && one->bytes <= a->limit - x->bytes;
}

static int account_collective(struct account *a, const struct ipu__step *step,
                              const struct ipu__step_op *part, bool depends)
{
    int64_t bytes = (int64_t)a->executable->values[part->output].bytes;
    int32_t size = part->attributes.size;
    int32_t every = step->count > 1 ? step->count : 1;
    const struct exchange one = {
        .bytes = bytes,
        .group = size ? size : a->count,
        .kind = part->attributes.order[0],
        .gate = step->gate,
        .times = a->times / every + (a->times % every != 0),
        .mean = a->mean / every,
    };

    if (depends || !goes_with(a, &one))
        IPU_TRY(send_exchange(a));
    bytes = a->buffer.bytes;
    a->buffer = one;
    a->buffer.bytes += bytes;
    add_number(&a->info->collectives, one.times);
    a->info->mean_collectives += one.mean;
    return IPU_OK;
}

static int account_part(struct account *a, const struct ipu__step *step,
                        const struct ipu__step_op *part)
{
    bool depends = false;

    for (int i = 0; i < part->op->ninputs; i++)
        depends |= a->depends[part->inputs[i]];
    if (part->op->collective) {
        IPU_TRY(account_collective(a, step, part, depends));
        depends = true;
    }
    a->depends[part->output] |= depends;
    return IPU_OK;
}

static int account_program(struct account *a);

/* Counts what a program sends that runs so often for each run of this one. */
static int account_inner(struct account *a, const ipu_executable *program,
                         int64_t times)
{
    struct account inner = *a;

    if (!program)
        return IPU_OK;
    inner.executable = program;
    inner.buffer.bytes = 0;
    inner.times = 0;
    ipu__add_times(&inner.times, a->times, times);
    inner.mean = a->mean * (double)times;
    return account_program(&inner);
}

/* A condition is asked once more than the body runs. */
static int account_loop(struct account *a, const struct ipu__loop_code *loop)
{
    int64_t times = ipu__loop_times(loop);

    IPU_TRY(send_exchange(a)); /* what comes before */
    IPU_TRY(account_inner(a, loop->body.program, times));
    return account_inner(a, loop->condition.program,
                         times < INT64_MAX ? times + 1 : times);
}

static int account_step(struct account *a, const struct ipu__step *step)
{
    const struct ipu__loop_code *loop = ipu__loop_of(a->executable, step);

    if (loop)
        return account_loop(a, loop);
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        struct ipu__step_op place;

        IPU_TRY(account_part(a, step,
                             ipu__part_of(a->executable, step, k, &place)));
    }
    return IPU_OK;
}

static int account_program(struct account *a)
{
    const ipu_executable *e = a->executable;
    int status = IPU_OK;

    IPU_TRY(
        ipu__new_array(&a->depends, (size_t)e->nvalues, sizeof *a->depends));
    for (int32_t i = 0; status == IPU_OK && i < e->nsteps; i++)
        status = account_step(a, &e->steps[i]);
    if (status == IPU_OK)
        status = send_exchange(a);
    free(a->depends);
    return status;
}

int ipu__replicas_account(const ipu_executable *executable,
                          const ipu_system *system, int32_t count,
                          const ipu_replicas_options *options,
                          ipu_replicas_info *info)
{
    int64_t limit = options->packs
                        ? INT64_MAX
                        : options->maximum_cross_replica_sum_buffer_size;
    struct account a = {.executable = executable,
                        .system = system,
                        .count = count,
                        .options = options,
                        .limit = limit,
                        .times = 1,
                        .mean = 1,
                        .info = info};
    ipu_program_cycles cycles = {.size = sizeof cycles};

    *info = (ipu_replicas_info){.replicas = count};
    IPU_TRY(account_program(&a));
    IPU_TRY(ipu_executable_cycles(executable, &cycles));
    info->total_cycles = cycles.total + info->exchange_cycles;
    info->mean_total_cycles =
        (double)cycles.mean_total + info->mean_exchange_cycles;
    info->seconds = ipu_model_seconds(&system->ipu, info->total_cycles);
    return IPU_OK;
}
