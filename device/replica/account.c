/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - what replicas send each other in a run, and how long that takes.
 *
 * Collectives that do not need one another may be sent together, which saves
 * starting twice: those that follow one another in the program, until one needs
 * what another of them has made, or the buffer is full. Each such exchange is
 * a ring over the replicas of a group; groups do theirs at the same time.
 */
#include <stdint.h>
#include <stdlib.h>

#include "compiler/program.h"
#include "graph/error.h"
#include "replica/replica.h"

int ipu__find_system(const ipu_system *asked, int32_t ipus, ipu_system *system)
{
    static const char *const names[] = {"M2000", "Pod16", "Pod64"};

    system->size = sizeof *system;
    if (asked) {
        *system = *asked;
        system->size = sizeof *system;
        return ipu_system_path(system, 0, 0, NULL, NULL);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        IPU_TRY(ipu_system_find(names[i], system));
        if (system->ipus >= ipus)
            break;
    }
    return IPU_OK;
}

struct account {
    const ipu_executable *executable;
    const ipu_system *system;
    int32_t count, shards;
    int64_t limit;
    bool *depends; /* owned, [values]: on what is in the buffer */
    int64_t bytes; /* in the buffer */
    int32_t group; /* of these */
    ipu_replicas_info *info;
};

static int send(struct account *a)
{
    int64_t cycles;

    if (a->bytes == 0)
        return IPU_OK;
    IPU_TRY(ipu__ring_cycles(a->system, a->group, a->shards, a->bytes,
                             &a->info->sent_bytes, &cycles));
    a->info->exchange_cycles += cycles;
    a->info->exchanges++;
    a->bytes = 0;
    for (int32_t v = 0; v < a->executable->nvalues; v++)
        a->depends[v] = false;
    return IPU_OK;
}

static int account_part(struct account *a, const struct ipu__step_op *part)
{
    int64_t bytes = (int64_t)a->executable->values[part->output].bytes;
    bool depends = false;

    for (int i = 0; i < part->op->ninputs; i++)
        depends |= a->depends[part->inputs[i]];
    if (part->op->collective) {
        int32_t size = part->attributes.size;
        int32_t group = size ? size : a->count;

        if (depends || group != a->group || a->bytes + bytes > a->limit)
            IPU_TRY(send(a));
        a->group = group;
        a->bytes += bytes;
        a->info->collectives++;
        depends = true;
    }
    a->depends[part->output] |= depends;
    return IPU_OK;
}

static int account_program(struct account *a);

/* A number that is told in 32 bits. */
static void add_number(int32_t *sum, int32_t number, int64_t times)
{
    int64_t whole = *sum;

    ipu__add_times(&whole, number, times);
    *sum = whole > INT32_MAX ? INT32_MAX : (int32_t)whole;
}

/* What is sent in an iteration, as often as there are. */
static int account_inner(struct account *a, const ipu_executable *program,
                         int64_t times)
{
    ipu_replicas_info one = {0};
    struct account inner = *a;

    if (!program)
        return IPU_OK;
    inner.executable = program;
    inner.info = &one;
    inner.bytes = 0;
    IPU_TRY(account_program(&inner));
    add_number(&a->info->collectives, one.collectives, times);
    add_number(&a->info->exchanges, one.exchanges, times);
    ipu__add_times(&a->info->sent_bytes, one.sent_bytes, times);
    ipu__add_times(&a->info->exchange_cycles, one.exchange_cycles, times);
    return IPU_OK;
}

/* A condition is asked once more than the body runs. */
static int account_loop(struct account *a, const struct ipu__loop_code *loop)
{
    int64_t times = ipu__loop_times(loop);

    IPU_TRY(send(a)); /* what comes before */
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

        IPU_TRY(account_part(a, ipu__part_of(a->executable, step, k, &place)));
    }
    return IPU_OK;
}

static int account_program(struct account *a)
{
    const ipu_executable *e = a->executable;
    int status = IPU_OK;

    a->depends = calloc((size_t)e->nvalues + 1, sizeof *a->depends);
    if (!a->depends)
        return ipu__fail_memory((size_t)e->nvalues);
    for (int32_t i = 0; status == IPU_OK && i < e->nsteps; i++)
        status = account_step(a, &e->steps[i]);
    if (status == IPU_OK)
        status = send(a);
    free(a->depends);
    return status;
}

int ipu__replicas_account(const ipu_executable *executable,
                          const ipu_system *system, int32_t count,
                          int32_t shards, int64_t limit,
                          ipu_replicas_info *info)
{
    struct account a = {.executable = executable,
                        .system = system,
                        .count = count,
                        .shards = shards,
                        .limit = limit,
                        .info = info};
    ipu_program_cycles cycles = {.size = sizeof cycles};

    *info = (ipu_replicas_info){.replicas = count};
    IPU_TRY(account_program(&a));
    IPU_TRY(ipu_executable_cycles(executable, &cycles));
    info->total_cycles = cycles.total + info->exchange_cycles;
    info->seconds = ipu_model_seconds(&system->ipu, info->total_cycles);
    return IPU_OK;
}
