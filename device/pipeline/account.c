/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.c - counts the contents of the IPUs, and the cycles of each of their
 * tasks.
 *
 * An IPU holds at the same time its variables, the stash of each of its stages,
 * the code of all its programs, and the memory that the largest of them needs
 * while it runs; only one runs at a time. Stash and variables are assumed to be
 * spread evenly over the tiles. Offloaded variables are in streaming memory
 * instead, and cross that bus whenever they are used; the compiler already
 * counts variables that a program uses within that program, so they are
 * subtracted from its need. If the pipeline has the choice (IPU_OFFLOAD_AUTO),
 * the optimiser's state of an IPU is offloaded only if the IPU is too full
 * otherwise and fits with it.
 *
 * The cycles of a stage are those of its program without host streams, which
 * are rings in a pipeline. Transfers between IPUs are counted separately, over
 * links; no other traffic shares the narrowest part between the two IPUs.
 */
#include <inttypes.h>
#include <string.h>

#include "compiler/program.h"
#include "pipeline/pipeline.h"
#include "target/cost.h"

static int cycles_of(const ipu_executable *e, int64_t *cycles)
{
    ipu_program_cycles info = {.size = sizeof info};

    *cycles = 0;
    if (!e)
        return IPU_OK;
    IPU_TRY(ipu_executable_cycles(e, &info));
    *cycles = info.compute + info.exchange + info.sync;
    return IPU_OK;
}

static int stream_cycles(const struct ipu_pipeline *p, int64_t bytes,
                         int64_t *cycles)
{
    ipu_cycles c = {.size = sizeof c};

    *cycles = 0;
    if (bytes == 0)
        return IPU_OK;
    IPU_TRY(ipu_model_streaming(&p->system, bytes, &c));
    *cycles = c.total;
    return IPU_OK;
}

/* ---------------------------------------------------------------- transfers */

static int link_cycles(const struct ipu_pipeline *p, int32_t from, int32_t to,
                       int64_t bytes, int64_t *sum_bytes, int64_t *sum_cycles)
{
    ipu_cycles c;

    if (from == to || bytes == 0)
        return IPU_OK;
    IPU_TRY(ipu__send_cycles(&p->system, from, to, bytes, &c));
    *sum_bytes += bytes;
    *sum_cycles += c.exchange; /* all IPUs synchronise once per slot anyway */
    return IPU_OK;
}

static int forward_transfers(const struct ipu_pipeline *p,
                             struct ipu__stage_part *part)
{
    const struct ipu__position *after = &p->positions[part->position + 1];
    int64_t bytes = 0;

    if (part->position == p->npositions - 1)
        return IPU_OK;
    for (int32_t k = 0; k < part->noutputs; k++)
        bytes += (int64_t)ipu__shape_bytes(&part->outputs[k].shape);
    for (int32_t i = 0; i < after->nparts; i++)
        IPU_TRY(link_cycles(p, part->ipu, p->parts[after->first_part + i].ipu,
                            bytes, &part->forward_sends, &part->forward_link));
    return IPU_OK;
}

static int backward_transfers(const struct ipu_pipeline *p,
                              struct ipu__stage_part *part)
{
    const struct ipu__position *before;
    int32_t first = 0;

    if (part->position == 0)
        return IPU_OK;
    before = &p->positions[part->position - 1];
    for (int32_t i = 0; i < before->nparts; i++) {
        const struct ipu__stage_part *to = &p->parts[before->first_part + i];
        int64_t bytes = 0;

        for (int32_t k = 0; k < to->noutputs; k++)
            if (part->sends[first + k])
                bytes += (int64_t)ipu__shape_bytes(&to->outputs[k].shape);
        first += to->noutputs;
        IPU_TRY(link_cycles(p, part->ipu, to->ipu, bytes, &part->backward_sends,
                            &part->backward_link));
    }
    return IPU_OK;
}

static int account_part(const struct ipu_pipeline *p,
                        struct ipu__stage_part *part)
{
    int64_t plain, offload = 0;

    IPU_TRY(cycles_of(part->forward, &part->forward_cycles));
    IPU_TRY(cycles_of(part->backward, &part->backward_cycles));
    if (part->recomputes) {
        IPU_TRY(cycles_of(part->plain, &plain));
        part->recompute_cycles = part->backward_cycles - plain;
        part->backward_cycles = plain;
    }
    if (p->options.offload_activations == IPU_OFFLOAD_ON)
        IPU_TRY(stream_cycles(p, part->stash_bytes, &offload));
    part->forward_cycles += offload;
    part->backward_cycles += offload;
    IPU_TRY(forward_transfers(p, part));
    return p->training ? backward_transfers(p, part) : IPU_OK;
}

/* ------------------------------------------------------------------- memory */

/* Returns true if a variable is in streaming memory between its uses. */
static bool is_offloaded(const struct ipu_pipeline *p,
                         const struct ipu__chip *chip,
                         const struct ipu__variable *v)
{
    const ipu_pipeline_options *o = &p->options;
    enum { LEAST = 128 }; /* bytes that are worth the transfer */
    bool can = p->system.ipu.streaming_bytes_per_second > 0;

    if ((int64_t)v->bytes < LEAST || !p->training || !can)
        return false;
    if (!v->resident)
        return chip->state_beside;
    if (ipu__is_accumulator(v->name))
        return o->offload_accumulators == IPU_OFFLOAD_ON;
    return v->trained && o->offload_weights == IPU_OFFLOAD_ON;
}

/* Computes what a program needs besides variables: bytes on its fullest tile,
 * bytes in all, and bytes of code. */
static void need_of(const ipu_executable *e, int64_t *tile, int64_t *bytes,
                    int64_t *code)
{
    if (!e)
        return;
    *code += e->code_bytes;
    for (int32_t t = 0; t < e->target.tiles; t++)
        if (*tile < e->tiles[t].peak_bytes - e->tiles[t].always_bytes)
            *tile = e->tiles[t].peak_bytes - e->tiles[t].always_bytes;
    if (*bytes < e->info.peak_bytes - e->info.always_live_bytes)
        *bytes = e->info.peak_bytes - e->info.always_live_bytes;
}

static int account_variables(const struct ipu_pipeline *p,
                             struct ipu__chip *chip)
{
    for (int32_t i = 0; i < chip->nvariables; i++) {
        const struct ipu__variable *v = &chip->variables[i];
        int64_t cycles, times = 2; /* both ways, in an update */

        if (!is_offloaded(p, chip, v)) {
            chip->variable_bytes += (int64_t)v->bytes;
            continue;
        }
        chip->streaming_bytes += (int64_t)v->bytes;
        IPU_TRY(stream_cycles(p, (int64_t)v->bytes, &cycles));
        if (v->resident) /* both ways, or in both directions of each mini-batch
                          */
            times += 2 * p->options.count;
        chip->offload_cycles += times * cycles;
    }
    return IPU_OK;
}

static int check_fit(const struct ipu_pipeline *p, const struct ipu__chip *chip)
{
    int64_t there = p->system.ipu.bytes_per_tile;

    if (p->options.allow_out_of_memory || chip->tile_bytes <= there)
        return IPU_OK;
    return ipu__fail(
        IPU_ERR_FULL,
        "pipeline: IPU %d needs %" PRId64 " bytes on its fullest tile and has "
        "%" PRId64 ", %" PRId64 " too few: variables take %" PRId64
        " of the chip, stashes %" PRId64 ", programs %" PRId64
        " beside their code: %s%s%s%s or take more stages, a smaller "
        "mini-batch or float16",
        (int)chip->ipu, chip->tile_bytes, there, chip->tile_bytes - there,
        chip->variable_bytes, chip->stash_bytes, chip->program_bytes,
        p->training && !p->options.recompute ? "recompute, " : "",
        p->training && p->options.schedule == IPU_SCHEDULE_GROUPED
            ? "take the interleaved schedule, "
            : "",
        p->training && p->options.offload_state == IPU_OFFLOAD_OFF
            ? "leave offload_state to the pipeline, "
            : "",
        p->options.offload_activations == IPU_OFFLOAD_ON
            ? ""
            : "offload activations,");
}

/* Accounts for everything but variables. Returns the bytes on the fullest tile,
 * without stashes. */
static int64_t account_programs(const struct ipu_pipeline *p,
                                struct ipu__chip *chip)
{
    int64_t tile = 0, code = 0;

    for (int32_t i = 0; i < p->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[i];
        int64_t waiting = ipu_schedule_stash(&p->schedule, part->position) + 1;
        int64_t bytes = waiting * part->stash_bytes *
                        p->options.batch_serialization_iterations;

        if (part->ipu != chip->ipu)
            continue;
        if (p->options.offload_activations == IPU_OFFLOAD_ON)
            chip->streaming_bytes += bytes;
        else
            chip->stash_bytes += bytes;
        need_of(part->forward, &tile, &chip->program_bytes, &code);
        need_of(part->backward, &tile, &chip->program_bytes, &code);
    }
    need_of(chip->update, &tile, &chip->program_bytes, &code);
    return tile + code;
}

/* Places variables next to programs that take that much of a tile. */
static int place_variables(const struct ipu_pipeline *p, int64_t programs,
                           struct ipu__chip *chip)
{
    int64_t tiles = p->system.ipu.tiles;

    IPU_TRY(account_variables(p, chip));
    chip->tile_bytes =
        (chip->variable_bytes + chip->stash_bytes + tiles - 1) / tiles +
        programs;
    return IPU_OK;
}

/* Offloads the optimiser's state of a chip that is too full, if the chip fits
 * then. empty: the chip without variables. */
static int make_room(const struct ipu_pipeline *p,
                     const struct ipu__chip *empty, int64_t programs,
                     struct ipu__chip *chip)
{
    struct ipu__chip beside = *empty;

    beside.state_beside = true;
    IPU_TRY(place_variables(p, programs, &beside));
    if (beside.tile_bytes > p->system.ipu.bytes_per_tile)
        return IPU_OK;
    beside.automatic_bytes = chip->variable_bytes - beside.variable_bytes;
    beside.tile_bytes_without = chip->tile_bytes;
    *chip = beside;
    return IPU_OK;
}

static int account_chip(const struct ipu_pipeline *p, struct ipu__chip *chip)
{
    int64_t programs = account_programs(p, chip);
    struct ipu__chip empty = *chip;

    chip->state_beside = p->options.offload_state == IPU_OFFLOAD_ON;
    IPU_TRY(place_variables(p, programs, chip));
    if (p->options.offload_state == IPU_OFFLOAD_AUTO &&
        chip->tile_bytes > p->system.ipu.bytes_per_tile)
        IPU_TRY(make_room(p, &empty, programs, chip));
    IPU_TRY(cycles_of(chip->update, &chip->update_cycles));
    chip->update_cycles += chip->offload_cycles;
    return check_fit(p, chip);
}

int ipu__pipeline_account(struct ipu_pipeline *p)
{
    const ipu_pipeline_options *o = &p->options;

    if (p->system.ipu.streaming_bytes_per_second <= 0 &&
        (o->offload_activations == IPU_OFFLOAD_ON ||
         o->offload_state == IPU_OFFLOAD_ON ||
         o->offload_accumulators == IPU_OFFLOAD_ON ||
         o->offload_weights == IPU_OFFLOAD_ON))
        return ipu__fail(
            IPU_ERR_STATE,
            "pipeline: to offload takes streaming memory, of which "
            "'%s' has none beside its IPUs",
            p->system.name);
    for (int32_t i = 0; i < p->nparts; i++)
        IPU_TRY(account_part(p, &p->parts[i]));
    for (int32_t c = 0; c < p->nchips; c++)
        IPU_TRY(account_chip(p, &p->chips[c]));
    return IPU_OK;
}
