/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiled program tells of itself: memory and cycles, of steps, of
 * tiles, of all. */
#include "base/error.h"
#include "compiler/program.h"
#include "target/target.h"

static int check(const char *what, const ipu_executable *e, const void *place)
{
    if (e && place)
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

    IPU_TRY(check("memory", executable, info));
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

    IPU_TRY(check("step", executable, info));
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
        .code_of = s->body ? s->body - 1 : step,
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

    IPU_TRY(check("tile", executable, info));
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

/* Steps begin on tile 0, and the busiest are all alike: so a tile computes
 * as long as the busiest, or waits for them. */
int ipu_executable_tile_cycles(const ipu_executable *executable, int32_t step,
                               int32_t tile, ipu_cycles *cycles)
{
    const struct ipu__step *s;
    uint32_t size;

    IPU_TRY(check("tile cycles", executable, cycles));
    IPU_TRY(ipu__check_size("cycles", cycles->size, sizeof *cycles));
    IPU_TRY(ipu__check_tile(executable, tile));
    IPU_TRY(ipu__check_step(executable, step));
    s = &executable->steps[step];
    size = cycles->size;
    *cycles = s->cycles;
    cycles->size = size;
    cycles->waiting = 0; /* of this tile it is among sync */
    if (tile >= s->busy_tiles) {
        cycles->sync += cycles->compute;
        cycles->compute = 0;
        cycles->exchange_bytes = 0;
    }
    return IPU_OK;
}

/* What of the sum does not run each time, and what that makes of the mean. */
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

/* Loops have overlapped their own streams: their parts are not in the total
 * again. */
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
    sum->estimates += loop->estimates;
}

/* A row between the chip and a remote buffer. */
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

    IPU_TRY(check("cycles", executable, info));
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
    }
    sum.total = sum.compute + sum.exchange + sum.sync;
    /* Tiles that serve streams do so while the others compute. */
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
