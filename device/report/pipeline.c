/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - adds a pipeline to a profile: its programs, the slots of its
 * last run, and the cost of that run as a whole.
 *
 * A program sees its inputs and outputs as streams. In a pipeline few of them
 * belong to the host: the others wait in the stash of a chip, or pass between
 * stages, and are named accordingly. An update is a separate slot, after those
 * of its mini-batches, because the chips synchronise before it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/counts.h"
#include "pipeline/pipeline.h"
#include "report/profile.h"

/* ----------------------------------------------------------------- programs */

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

/* Returns the kind of a stream of a stage's program; "input" and "output"
 * belong to the host. */
static const char *kind_of(const struct ipu_pipeline *p,
                           const struct ipu__stage_part *part,
                           const struct ipu__profile_stream *stream,
                           bool forward)
{
    int number = 0;

    if (begins(stream->name, "stash:"))
        return "stash";
    if (begins(stream->name, "grad:") || begins(stream->name, "dx:"))
        return "link";
    if (!forward)
        return begins(stream->name, "in:") ? "stash" : "argument";
    if (begins(stream->name, "out:"))
        return part->position == p->npositions - 1 ? "output" : "link";
    if (part->position > 0)
        return "link";
    if (sscanf(stream->name, "in:%d", &number) == 1 &&
        number < p->options.narguments)
        return "argument";
    return "input";
}

/* Adds a program and the bodies of its loops. part NULL: the program of an
 * update. */
static int add(const struct ipu_pipeline *p, ipu_profile *profile,
               const char *name, const struct ipu__stage_part *part,
               bool forward, int32_t ipu, const ipu_executable *executable,
               const ipu_engine *engine, int64_t cycles)
{
    int32_t number = profile->nprograms;
    struct ipu__program *program;

    if (!executable)
        return IPU_OK;
    IPU_TRY(ipu_profile_add(profile, name, ipu, executable, engine));
    program = &profile->programs[number];
    program->pipeline_cycles = cycles;
    for (int32_t i = 0; i < program->nstreams; i++) {
        struct ipu__profile_stream *s = &program->streams[i];

        if (strcmp(s->kind, "call") != 0)
            s->kind = part ? kind_of(p, part, s, forward) : "link";
    }
    return IPU_OK;
}

static int add_programs(const struct ipu_pipeline *p, ipu_profile *profile)
{
    const struct ipu__copy *copy = &p->copies[0];
    char text[128];

    for (int32_t i = 0; i < p->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[i];

        snprintf(text, sizeof text, "%.80s forward", part->name);
        IPU_TRY(add(p, profile, text, part, true, part->ipu, part->forward,
                    copy->forward[i], part->forward_cycles));
        snprintf(text, sizeof text, "%.80s backward", part->name);
        IPU_TRY(add(p, profile, text, part, false, part->ipu, part->backward,
                    copy->backward[i],
                    part->backward_cycles + part->recompute_cycles));
    }
    for (int32_t c = 0; c < p->nchips; c++) {
        snprintf(text, sizeof text, "update on IPU %d", (int)p->chips[c].ipu);
        IPU_TRY(add(p, profile, text, NULL, false, p->chips[c].ipu,
                    p->chips[c].update, copy->update[c],
                    p->chips[c].update_cycles));
    }
    return IPU_OK;
}

/* ----------------------------------------------------- tasks of the slots */

static int add_events(const ipu_pipeline *p, ipu_profile *profile)
{
    ipu_pipeline_slot *slots;
    int status;

    IPU_TRY(ipu__new_array(&slots, (size_t)p->nevents, sizeof *slots));
    for (int64_t i = 0; i < p->nevents; i++) {
        const ipu_pipeline_event *e = &p->events[i];
        bool update = e->kind == IPU_STAGE_UPDATE;
        int64_t updates = update ? e->mini_batch + 1 : e->slot / p->plan.slots;

        slots[i] = (ipu_pipeline_slot){
            .ipu = e->ipu,
            .slot = (int32_t)(e->slot + (p->training ? updates : 0)),
            .stage = update ? 0 : e->stage,
            .kind = e->kind,
            .mini_batch = update ? -1 : (int32_t)e->mini_batch,
            .cycles = e->cycles,
        };
    }
    status = ipu_profile_set_pipeline(profile, (int32_t)p->nevents, slots);
    free(slots);
    return status;
}

/* --------------------------------------------------------------- as a whole */

/* Returns the mean time of an execution; 0 if it was not measured. */
static int64_t mean_ns(const ipu_engine *engine)
{
    ipu_engine_times times = {.size = sizeof times};

    if (!engine || ipu_engine_get_times(engine, &times) < 0 || times.runs == 0)
        return 0;
    return times.run_ns / times.runs;
}

static int add_stages(const ipu_pipeline *p, struct ipu__profile_run *run,
                      ipu_profile *profile)
{
    int64_t serial = p->options.batch_serialization_iterations;

    IPU_TRY(
        ipu__new_array(&run->stages, (size_t)p->nparts, sizeof *run->stages));
    run->nstages = p->nparts;
    for (int32_t i = 0; i < p->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[i];
        int64_t ns = mean_ns(p->copies[0].forward[i]) +
                     mean_ns(p->copies[0].backward[i]);

        run->stages[i] = (struct ipu__profile_stage){
            .name = ipu__profile_keep(profile, part->name),
            .position = part->position,
            .ipu = part->ipu,
            .forward = serial * part->forward_cycles,
            .backward = serial * part->backward_cycles,
            .recompute = serial * part->recompute_cycles,
            .stash_bytes = serial * part->stash_bytes,
            .stash_depth = ipu_schedule_stash(&p->schedule, part->position),
            .sent_bytes = serial * (part->forward_sends + part->backward_sends),
            .ns = ns > 0 ? serial * ns : -1,
        };
    }
    return IPU_OK;
}

static int add_chips(const ipu_pipeline *p, struct ipu__profile_run *run)
{
    IPU_TRY(ipu__new_array(&run->chips, (size_t)p->nlanes, sizeof *run->chips));
    run->nchips = p->nlanes;
    for (int32_t i = 0; i < p->nlanes; i++) {
        ipu_pipeline_ipu_info info = {.size = sizeof info};

        IPU_TRY(ipu_pipeline_ipu(p, i, &info));
        run->chips[i] = (struct ipu__profile_chip){
            .ipu = info.ipu,
            .update = info.update_cycles,
            .offload = info.offload_cycles,
            .variable_bytes = info.variable_bytes,
            .stash_bytes = info.stash_bytes,
            .program_bytes = info.program_bytes,
            .streaming_bytes = info.streaming_bytes,
            .automatic_bytes = info.automatic_bytes,
            .tile_bytes = info.tile_bytes,
            .bytes_per_tile = info.bytes_per_tile,
        };
    }
    return IPU_OK;
}

/* Adds the figures of the last run. */
static void add_figures(const ipu_pipeline *p, struct ipu__profile_run *run)
{
    const ipu_pipeline_info *now = &p->info, *before = &p->began;

    run->replicas = p->options.replicas;
    run->io_tiles = p->options.io_tiles;
    run->clock_hz = p->system.ipu.clock_hz;
    run->mini_batches = now->mini_batches - before->mini_batches;
    run->updates = now->updates - before->updates;
    run->slots = now->slots - before->slots;
    run->total = now->total_cycles - before->total_cycles;
    run->work = now->compute_cycles - before->compute_cycles;
    run->exchange = now->exchange_cycles - before->exchange_cycles;
    run->sync = now->sync_cycles - before->sync_cycles;
    run->host = now->host_cycles - before->host_cycles;
    run->update = now->update_cycles - before->update_cycles;
}

static void add_times(const ipu_pipeline *p, struct ipu__profile_run *run)
{
    const struct ipu__counts *c = p->counts;

    run->times.size = sizeof run->times;
    if (!c || c->runs == 0)
        return;
    run->measured = true;
    run->times.runs = c->runs;
    run->times.run_ns = c->run_ns;
    run->times.fastest_ns = c->fastest_ns;
    run->times.between_ns = ipu__counts_between(c);
}

static int add_run(const ipu_pipeline *p, ipu_profile *profile)
{
    struct ipu__profile_run run = {0};
    int status;

    add_figures(p, &run);
    add_times(p, &run);
    status = add_stages(p, &run, profile);
    if (status >= 0)
        status = add_chips(p, &run);
    if (status >= 0 && profile->lacks_memory)
        status = ipu__fail_memory(1);
    if (status < 0) {
        ipu__run_free(&run);
        return status;
    }
    ipu__run_free(&profile->run);
    profile->run = run;
    return IPU_OK;
}

int ipu_pipeline_profile(const ipu_pipeline *pipeline, ipu_profile *profile)
{
    if (!pipeline || !profile)
        return ipu__fail(IPU_ERR_ARGUMENT, "%s is NULL",
                         pipeline ? "the profile" : "the pipeline");
    IPU_TRY(add_programs(pipeline, profile));
    if (pipeline->nevents == 0)
        return IPU_OK;
    IPU_TRY(add_events(pipeline, profile));
    return add_run(pipeline, profile);
}
