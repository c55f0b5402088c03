/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards.c - one program on several chips, without a pipeline: the contents of
 * each chip, and the transfers between them.
 *
 * Every value is on one chip, where it is computed, and steps of different
 * chips run one after the other: sharding gains memory, not speed. A value that
 * a step on another chip reads is copied there once a run, before the first
 * that needs it, and kept until the last; constants are on every chip that
 * needs them from the beginning.
 *
 *     chip 0   x -- step -- h         dh -- step -- dw0
 *                            \       /
 *     chip 1                  step -- step -- dw1
 *
 * The memory of a chip has variables and constants, its tensors and copies of
 * others' while they are alive, the temporary memory of a step, and code: each
 * chip is assumed to have the same share of the code as of the steps. Tensors
 * are assumed to be spread evenly over the tiles.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "compiler/compiler.h"
#include "target/cost.h"
#include "target/target.h"

/* The first and the last step on a chip that need each value; -1: none. */
struct uses {
    int32_t *first, *last; /* owned, [values] */
};

struct account {
    const struct ipu_executable *executable;
    int32_t shard;
    struct uses uses;
    int64_t *changes; /* owned, [steps + 2]: bytes alive, from step - 1 on */
    ipu_shard_info info;
};

static int32_t shard_of_step(const struct ipu_executable *e,
                             const struct ipu__step *step)
{
    return e->values[step->output].shard;
}

int32_t ipu_executable_shards(const ipu_executable *e)
{
    int32_t most = 0;

    if (!e)
        return ipu__fail(IPU_ERR_ARGUMENT, "shards: the executable is NULL");
    for (int32_t v = 0; v < e->nvalues; v++)
        if (most < e->values[v].shard)
            most = e->values[v].shard;
    return most + 1;
}

static void note_use(struct uses *uses, int32_t v, int32_t step)
{
    if (v < 0)
        return;
    if (uses->first[v] < 0)
        uses->first[v] = step;
    uses->last[v] = step;
}

static void note_step(const struct ipu_executable *e, int32_t i,
                      struct uses *uses)
{
    const struct ipu__step *step = &e->steps[i];
    struct ipu__step_op place;
    int32_t read;

    if (step->kind == IPU__HOST_CALL)
        note_use(uses, step->output, i);
    for (int32_t k = 0; (read = ipu__loop_read(e, step, k)) >= 0; k++)
        note_use(uses, read, i);
    for (int32_t k = 0; k < ipu__nparts(step); k++) {
        const struct ipu__step_op *part = ipu__part_of(e, step, k, &place);

        for (int n = 0; n < part->op->ninputs; n++)
            note_use(uses, part->inputs[n], i);
    }
}

/* Makes room for the uses of one chip, to be freed whatever is returned. */
static int uses_init(const struct ipu_executable *e, struct uses *uses)
{
    size_t n = (size_t)e->nvalues + 1;

    uses->first = malloc(n * sizeof *uses->first);
    uses->last = malloc(n * sizeof *uses->last);
    return uses->first && uses->last
               ? IPU_OK
               : ipu__fail_memory(n * sizeof *uses->first);
}

static void uses_fini(struct uses *uses)
{
    free(uses->first);
    free(uses->last);
}

static void find_uses(const struct ipu_executable *e, int32_t shard,
                      struct uses *uses)
{
    memset(uses->first, -1, (size_t)e->nvalues * sizeof *uses->first);
    memset(uses->last, -1, (size_t)e->nvalues * sizeof *uses->last);
    for (int32_t i = 0; i < e->nsteps; i++)
        if (shard_of_step(e, &e->steps[i]) == shard)
            note_step(e, i, uses);
}

static void add_alive(struct account *a, int32_t birth, int32_t death,
                      int64_t bytes)
{
    int32_t nsteps = a->executable->nsteps;

    a->changes[birth + 1] += bytes;
    if (death < nsteps - 1)
        a->changes[(death < birth ? birth : death) + 2] -= bytes;
}

static void add_own(struct account *a, const struct ipu__value *value)
{
    const struct ipu__block *block = &a->executable->blocks[value->block];

    if (!value->opens || block->remote)
        return;
    if (block->always)
        a->info.variable_bytes += (int64_t)block->bytes;
    add_alive(a, block->birth, block->death, (int64_t)block->bytes);
}

static void add_copies(struct account *a)
{
    const struct ipu_executable *e = a->executable;

    for (int32_t v = 0; v < e->nvalues; v++) {
        const struct ipu__value *value = &e->values[v];
        int32_t first = a->uses.first[v];

        if (value->shard == a->shard) {
            add_own(a, value);
            continue;
        }
        if (first < 0 || value->inner)
            continue;
        if (value->kind == IPU__CONSTANT) {
            a->info.variable_bytes += (int64_t)value->bytes;
            add_alive(a, -1, e->nsteps, (int64_t)value->bytes);
            continue;
        }
        a->info.received_bytes += (int64_t)value->bytes;
        add_alive(a, first, a->uses.last[v], (int64_t)value->bytes);
    }
}

static void add_steps(struct account *a)
{
    const struct ipu_executable *e = a->executable;
    int64_t live = a->changes[0];

    a->info.peak_bytes = live;
    for (int32_t i = 0; i < e->nsteps; i++) {
        const ipu_cycles *c = &e->steps[i].cycles;
        int64_t tile;

        live += a->changes[i + 1];
        if (a->info.peak_bytes < live)
            a->info.peak_bytes = live;
        tile = (live + e->target.tiles - 1) / e->target.tiles;
        if (shard_of_step(e, &e->steps[i]) == a->shard) {
            a->info.steps++;
            a->info.cycles += c->compute + c->exchange + c->sync;
            tile += c->temporary_bytes;
        }
        if (a->info.tile_bytes < tile)
            a->info.tile_bytes = tile;
    }
    a->info.code_bytes_per_tile =
        e->nsteps ? e->code_bytes * a->info.steps / e->nsteps : 0;
    a->info.tile_bytes += a->info.code_bytes_per_tile;
    a->info.bytes_per_tile = e->target.bytes_per_tile;
}

static int account_of(const ipu_executable *e, int32_t shard,
                      ipu_shard_info *info)
{
    struct account a = {.executable = e, .shard = shard};
    uint32_t size = info->size;
    int status = uses_init(e, &a.uses);

    a.changes = calloc((size_t)e->nsteps + 3, sizeof *a.changes);
    if (!a.changes)
        status = ipu__fail_memory((size_t)e->nsteps * sizeof *a.changes);
    if (status >= 0) {
        find_uses(e, shard, &a.uses);
        add_copies(&a);
        add_steps(&a);
        *info = a.info;
        info->size = size;
    }
    uses_fini(&a.uses);
    free(a.changes);
    return status;
}

int ipu_executable_shard(const ipu_executable *executable, int32_t shard,
                         ipu_shard_info *info)
{
    int32_t count = ipu_executable_shards(executable);

    IPU_TRY(count);
    if (!info)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "shards: the place for an account is NULL");
    IPU_TRY(ipu__check_size("shard info", info->size, sizeof *info));
    if (shard < 0 || shard >= count)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "there is no shard %d: the program has 0 to %d",
                         (int)shard, (int)count - 1);
    return account_of(executable, shard, info);
}

int ipu__check_shards(const struct ipu_executable *e)
{
    for (int32_t s = 0; s < ipu_executable_shards(e); s++) {
        ipu_shard_info info = {.size = sizeof info};

        IPU_TRY(account_of(e, s, &info));
        if (info.tile_bytes > info.bytes_per_tile)
            return ipu__fail(
                IPU_ERR_FULL,
                "shard %d needs %" PRId64 " bytes on its fullest tile and has "
                "%" PRId64 ": of the chip, variables take %" PRId64
                ", and all that is alive at once %" PRId64
                ": put less on it, take more shards, or a pipeline that "
                "recomputes",
                (int)s, info.tile_bytes, info.bytes_per_tile,
                info.variable_bytes, info.peak_bytes);
    }
    return IPU_OK;
}

/* ---------------------------------------------------------------- transfers */

/* Adds the bytes that are sent to one chip. */
static int add_transfers(const ipu_executable *e, const ipu_system *system,
                         int32_t shard, struct uses *uses,
                         ipu_sharding_info *sum)
{
    find_uses(e, shard, uses);
    for (int32_t v = 0; v < e->nvalues; v++) {
        const struct ipu__value *value = &e->values[v];
        ipu_cycles c;

        if (value->shard == shard || uses->first[v] < 0 || value->inner ||
            value->kind == IPU__CONSTANT)
            continue;
        IPU_TRY(ipu__send_cycles(system, value->shard, shard,
                                 (int64_t)value->bytes, &c));
        sum->transfers++;
        sum->inter_ipu_bytes += (int64_t)value->bytes;
        sum->exchange_cycles += c.total;
    }
    return IPU_OK;
}

int ipu_executable_sharding(const ipu_executable *executable,
                            const ipu_system *system, ipu_sharding_info *info)
{
    ipu_program_cycles cycles = {.size = sizeof cycles};
    ipu_sharding_info sum = {.shards = ipu_executable_shards(executable)};
    ipu_system smallest;
    struct uses uses;
    int status;

    IPU_TRY(sum.shards);
    if (!info)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "sharding: the place for an account is NULL");
    IPU_TRY(ipu__check_size("sharding info", info->size, sizeof *info));
    if (!system) {
        IPU_TRY(ipu__find_system(NULL, sum.shards, &smallest));
        smallest.ipu = executable->target;
        system = &smallest;
    }
    if (sum.shards > system->ipus)
        return ipu__fail(IPU_ERR_STATE,
                         "sharding: the program has %d shards, '%s' has %d "
                         "IPUs",
                         (int)sum.shards, system->name, (int)system->ipus);
    status = uses_init(executable, &uses);
    for (int32_t s = 0; s < sum.shards && status >= 0; s++)
        status = add_transfers(executable, system, s, &uses, &sum);
    uses_fini(&uses);
    IPU_TRY(status);
    IPU_TRY(ipu_executable_cycles(executable, &cycles));
    sum.total_cycles = cycles.total + sum.exchange_cycles;
    sum.seconds = ipu_model_seconds(&system->ipu, sum.total_cycles);
    sum.size = info->size;
    *info = sum;
    return IPU_OK;
}
