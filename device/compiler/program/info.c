/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info.c - queries on a compiled program: the memory of the whole program;
 * memory and cycles of a step, and of a tile. cycles.c has the cycles of the
 * whole program. Programs and reports call them.
 */
#include "base/error.h"
#include "compiler/program.h"
#include "target/target.h"

#include <string.h>

int ipu__check_info(const char *what, const ipu_executable *e, const void *info)
{
    if (e && info)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "%s: %s is NULL", what,
                     e ? "the place for the info" : "the executable");
}

int ipu__check_step(const struct ipu_executable *e, int32_t step)
{
    if (step >= 0 && step < e->nsteps)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "there is no step %d: the program has 0 to %d", (int)step,
                     (int)e->nsteps - 1);
}

const char *ipu__step_name(const struct ipu__step *step)
{
    if (step->kind == IPU__HOST_CALL)
        return "host_call";
    return step->kind == IPU__FUSED && step->head ? step->head->name
                                                  : step->op->name;
}

int ipu_executable_memory(const ipu_executable *executable,
                          ipu_memory_info *info)
{
    uint32_t size;

    IPU_TRY(ipu__check_info("memory", executable, info));
    IPU_TRY(ipu__check_size("memory info", info->size, sizeof *info));
    size = info->size;
    *info = executable->info;
    info->size = size;
    return IPU_OK;
}

int ipu_executable_step(const ipu_executable *executable, int32_t step,
                        ipu_step_info *info)
{
    const struct ipu__step *s;
    uint32_t size;

    IPU_TRY(ipu__check_info("step", executable, info));
    IPU_TRY(ipu__check_size("step info", info->size, sizeof *info));
    IPU_TRY(ipu__check_step(executable, step));
    s = &executable->steps[step];
    size = info->size;
    *info = (ipu_step_info){
        .op = ipu__step_name(s),
        .tensor = executable->values[s->output].name,
        .compute_cycles = s->cycles.compute,
        .waiting_cycles = s->cycles.waiting,
        .exchange_cycles = s->cycles.exchange,
        .sync_cycles = s->cycles.sync,
        .total_cycles = s->cycles.total,
        .exchange_bytes = s->cycles.exchange_bytes,
        .temporary_bytes = s->cycles.temporary_bytes,
        .flops = s->cycles.flops,
        .busy_tiles = (int32_t)s->busy_tiles,
        .fullest_tile = s->fullest_tile,
        .fullest_tile_bytes = s->full_bytes + executable->code_bytes,
        .estimate = s->cycles.estimate,
        .update_count = s->count > 0 ? s->count : 1,
        .again = s->again,
        .parts = s->text,
        .code_of = s->body >= 0 ? s->body : step,
        .calls = s->calls > 1 ? s->calls : 1,
        .copied_bytes = s->copied_bytes,
        .available_memory_proportion = s->proportion,
    };
    info->size = size;
    return IPU_OK;
}

int ipu__check_tile(const ipu_executable *e, int32_t tile)
{
    if (tile >= 0 && tile < e->target.tiles)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT, "there is no tile %d: '%s' has 0 to %d",
                     (int)tile, e->target.name, (int)e->target.tiles - 1);
}

int ipu_executable_tile(const ipu_executable *executable, int32_t tile,
                        ipu_tile_info *info)
{
    const struct ipu__tile *t;
    uint32_t size;

    IPU_TRY(ipu__check_info("tile", executable, info));
    IPU_TRY(ipu__check_size("tile info", info->size, sizeof *info));
    IPU_TRY(ipu__check_tile(executable, tile));
    t = &executable->tiles[tile];
    size = info->size;
    *info = (ipu_tile_info){
        .code_bytes = executable->code_bytes,
        .always_live_bytes = t->always_bytes,
        .not_always_live_bytes = t->peak_bytes - t->always_bytes,
        .peak_bytes = t->peak_bytes + executable->code_bytes,
        .peak_step = t->peak_step,
        .exchange_code_bytes = executable->exchange_code_bytes,
        .state_bytes = executable->state_bytes,
        .constant_bytes = t->constant_bytes,
        .tensor_bytes = t->peak_bytes - t->always_bytes - t->temporary_bytes,
        .exchange_bytes = t->fetch_bytes,
        .partial_bytes = t->partial_bytes,
        .temporary_bytes = t->temporary_bytes,
    };
    info->size = size;
    return IPU_OK;
}

/* Steps begin on tile 0, and all busy tiles compute for the same time. So a
 * tile either computes as long as the busiest or waits for it. */
int ipu_executable_tile_cycles(const ipu_executable *executable, int32_t step,
                               int32_t tile, ipu_cycles *cycles)
{
    const struct ipu__step *s;
    uint32_t size;

    IPU_TRY(ipu__check_info("tile cycles", executable, cycles));
    IPU_TRY(ipu__check_size("cycles", cycles->size, sizeof *cycles));
    IPU_TRY(ipu__check_tile(executable, tile));
    IPU_TRY(ipu__check_step(executable, step));
    s = &executable->steps[step];
    size = cycles->size;
    *cycles = s->cycles;
    cycles->size = size;
    cycles->waiting = 0; /* this tile counts it as sync */
    if (tile >= s->busy_tiles) {
        cycles->sync += cycles->compute;
        cycles->compute = 0;
        cycles->exchange_bytes = 0;
    }
    return IPU_OK;
}
