/* SPDX-License-Identifier: Apache-2.0 */
/*
 * new.c - makes a pipeline from its description: checks it, places it on IPUs,
 * builds it stage by stage, compiles it, accounts for it, and gives it memory.
 *
 * plan does all but the memory, and is also enough to measure a pipeline that
 * never runs (ipu__pipeline_measure). The steps are functions of this room;
 * pipeline.h lists them in their order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/program.h"
#include "engine/counts.h"
#include "pipeline/pipeline.h"
#include "streams/streams.h"

static int take_options(struct ipu_pipeline *p, const ipu_pipeline_options *o)
{
    p->options = *o;
    p->training = o->optimizer != NULL;
    IPU_TRY(ipu__new_array(&p->argument_names, (size_t)o->narguments,
                           sizeof *p->argument_names));
    for (int32_t i = 0; i < o->narguments; i++) {
        p->argument_names[i] = strdup(o->arguments[i].name);
        if (!p->argument_names[i])
            return ipu__fail_memory(strlen(o->arguments[i].name));
    }
    if (o->recompute && p->training)
        p->info.recompute = o->recompute_mode != IPU_RECOMPUTE_AUTO
                                ? o->recompute_mode
                            : o->schedule == IPU_SCHEDULE_SEQUENTIAL
                                ? IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED
                                : IPU_RECOMPUTE_THEN_BACKPROPAGATE;
    return IPU_OK;
}

static int make_parts(struct ipu_pipeline *p, const ipu_pipeline_options *o)
{
    p->nparts = o->nstages;
    p->parts = calloc((size_t)o->nstages, sizeof *p->parts);
    p->chips = calloc((size_t)o->nstages, sizeof *p->chips);
    if (!p->parts || !p->chips)
        return ipu__fail_memory((size_t)o->nstages * sizeof *p->parts);
    for (int32_t i = 0; i < o->nstages; i++) {
        struct ipu__stage_part *part = &p->parts[i];
        char number[16];

        snprintf(number, sizeof number, "%d", (int)i);
        part->stage = &o->stages[i];
        part->name = strdup(o->stages[i].name ? o->stages[i].name : number);
        if (!part->name)
            return ipu__fail_memory(sizeof number);
        if (!o->stages[i].beside)
            p->positions[p->npositions++].first_part = i;
        part->position = p->npositions - 1;
        p->positions[part->position].nparts++;
    }
    return IPU_OK;
}

static int make_plan(struct ipu_pipeline *p)
{
    p->schedule = (ipu_schedule_options){
        .size = sizeof p->schedule,
        .schedule = p->options.schedule,
        .stages = p->npositions,
        .training = p->training,
        .io_tiles = p->options.io_tiles,
        .count = p->options.count,
    };
    p->plan.size = sizeof p->plan;
    return ipu_schedule_plan(&p->schedule, &p->plan);
}

/* Describes the outputs that go to the queue, in their order. */
static int describe_outfeed(struct ipu_pipeline *p,
                            const ipu_pipeline_options *o)
{
    const struct ipu__position *last = &p->positions[p->npositions - 1];
    ipu_feed_tensor tensors[IPU_MAX_STAGE_TENSORS];
    char numbers[IPU_MAX_STAGE_TENSORS][16];
    int32_t output = 0, count = 0;

    for (int32_t i = 0; i < last->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[last->first_part + i];

        for (int32_t k = 0; k < part->noutputs; k++) {
            const struct ipu__shape *s = &part->outputs[k].shape;

            if (p->kept_back[output++])
                continue;
            snprintf(numbers[count], sizeof *numbers, "%d", (int)count);
            tensors[count] = (ipu_feed_tensor){
                .name = numbers[count], .dtype = s->dtype, .ndim = s->ndim};
            if (o->outfeed_names && count < o->noutfeed_names)
                tensors[count].name = o->outfeed_names[count];
            memcpy(tensors[count].shape, s->extents, sizeof s->extents);
            count++;
        }
    }
    if (o->outfeed_names && o->noutfeed_names != count)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: %d names for the %d tensors that go to the "
                         "outfeed",
                         (int)o->noutfeed_names, (int)count);
    return count > 0 ? ipu__outfeed_describe(o->outfeed, count, tensors)
                     : IPU_OK;
}

static int check_outputs(const struct ipu_pipeline *p,
                         const ipu_pipeline_options *o)
{
    int32_t noutputs = p->positions[p->npositions - 1].noutputs;
    const char *name = p->parts[p->nparts - 1].name;

    if (p->training && (o->loss < 0 || o->loss >= noutputs))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: the loss is output %d: stage %s gives %d "
                         "outputs",
                         (int)o->loss, name, (int)noutputs);
    if (!o->sink && !o->outfeed && !p->training && noutputs > 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: stage %s gives %d outputs, and there is no "
                         "outfeed that takes them",
                         name, (int)noutputs);
    if (o->noutfeed_mask > 0 && o->noutfeed_mask != noutputs)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: outfeed_mask has %d entries, stage %s "
                         "gives %d outputs",
                         (int)o->noutfeed_mask, name, (int)noutputs);
    return IPU_OK;
}

static int make_feeds(struct ipu_pipeline *p, const ipu_pipeline_options *o)
{
    for (int32_t i = 0; i < p->positions[p->npositions - 1].noutputs; i++)
        p->kept_back[i] = (o->outfeed_loss && i != o->loss) ||
                          (o->noutfeed_mask > 0 && o->outfeed_mask[i]);
    if (o->outfeed) {
        IPU_TRY(describe_outfeed(p, o));
        IPU_TRY(ipu__outfeed_attach(o->outfeed, o->replicas));
        ipu__outfeed_retain(o->outfeed);
        p->attached_outfeed = o->outfeed;
    }
    if (o->infeed) {
        IPU_TRY(ipu__infeed_attach(o->infeed, o->replicas));
        ipu__infeed_retain(o->infeed);
        p->attached_infeed = o->infeed;
    }
    return IPU_OK;
}

static void drop_feeds(struct ipu_pipeline *p)
{
    if (p->attached_outfeed) {
        ipu__outfeed_detach(p->attached_outfeed);
        ipu__outfeed_release(p->attached_outfeed);
    }
    if (p->attached_infeed) {
        ipu__infeed_detach(p->attached_infeed);
        ipu__infeed_release(p->attached_infeed);
    }
}

/* Drops what only the building needed, and what belongs to the caller. */
static void drop_sources(struct ipu_pipeline *p)
{
    for (int32_t i = 0; i < p->nparts; i++) {
        ipu_graph_free(p->parts[i].joint);
        p->parts[i].joint = NULL;
        p->parts[i].stage = NULL;
    }
    p->options.stages = NULL;
    p->options.device_mapping = NULL;
    p->options.system = NULL;
    p->options.arguments = NULL;
    p->options.outfeed_names = NULL;
    p->options.outfeed_mask = NULL;
}

/* Refuses a sum over replicas in a program that runs by itself: the program
 * would sum only its own part. */
static int check_alone(const struct ipu_pipeline *p, const char *where,
                       const ipu_executable *e)
{
    const struct ipu__value *sum = ipu__find_collective(e);

    if (!sum || p->options.replicas == 1)
        return IPU_OK;
    return ipu__fail(IPU_ERR_ARGUMENT,
                     "pipeline: %s has a sum over replicas, %s: replicas of a "
                     "pipeline meet only before the update, where it adds up "
                     "their gradients itself",
                     where, sum->name);
}

static int check_collectives(const struct ipu_pipeline *p)
{
    for (int32_t i = 0; i < p->nparts; i++) {
        const struct ipu__stage_part *part = &p->parts[i];
        char where[96];

        snprintf(where, sizeof where, "stage %.80s", part->name);
        IPU_TRY(check_alone(p, where, part->forward));
        IPU_TRY(check_alone(p, where, part->backward));
    }
    for (int32_t c = 0; c < p->nchips; c++)
        IPU_TRY(check_alone(p, "the optimizer", p->chips[c].update));
    return IPU_OK;
}

/* Makes everything except the parts that only runs need. */
static int plan_pipeline(struct ipu_pipeline *p, const ipu_pipeline_options *o)
{
    IPU_TRY(take_options(p, o));
    IPU_TRY(make_parts(p, o));
    IPU_TRY(make_plan(p));
    IPU_TRY(ipu__pipeline_map(p, o));
    IPU_TRY(ipu__pipeline_stages(p));
    IPU_TRY(check_outputs(p, o));
    IPU_TRY(ipu__pipeline_backward(p));
    IPU_TRY(ipu__pipeline_updates(p));
    IPU_TRY(check_collectives(p));
    IPU_TRY(ipu__pipeline_variables(p));
    IPU_TRY(ipu__gradients_list(p));
    IPU_TRY(ipu__pipeline_account(p));
    drop_sources(p);
    return ipu__pipeline_lanes(p);
}

static int build(struct ipu_pipeline *p, const ipu_pipeline_options *o)
{
    IPU_TRY(plan_pipeline(p, o));
    IPU_TRY(ipu__pipeline_copies(p));
    IPU_TRY(ipu__thread_pool_new(p->options.threads, p->nlanes, &p->pool));
    if (p->options.record) {
        p->counts = ipu__counts_new(0);
        if (!p->counts)
            return ipu__fail_memory(sizeof *p->counts);
    }
    return make_feeds(p, o);
}

int ipu_pipeline_new(const ipu_pipeline_options *options,
                     ipu_pipeline **pipeline)
{
    struct ipu_pipeline *p;
    int status;

    if (!pipeline)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: the place for it is NULL");
    IPU_TRY(ipu__pipeline_check(options));
    IPU_TRY(ipu__new(&p, sizeof *p));
    status = build(p, options);
    if (status < 0) {
        ipu_pipeline_free(p);
        return status;
    }
    *pipeline = p;
    return IPU_OK;
}

static int measure(struct ipu_pipeline *p, const ipu_pipeline_options *o,
                   struct ipu__pipeline_cost *cost)
{
    IPU_TRY(plan_pipeline(p, o));
    for (int64_t slot = 0; slot < p->plan.slots; slot++) {
        IPU_TRY(ipu__hand_out(p, slot));
        IPU_TRY(ipu__tally_slot(p, slot));
    }
    if (p->training)
        IPU_TRY(ipu__tally_update(p, p->plan.slots - 1, 0));
    *cost = (struct ipu__pipeline_cost){.cycles = p->info.total_cycles};
    for (int32_t c = 0; c < p->nchips; c++) {
        if (cost->tile_bytes < p->chips[c].tile_bytes)
            cost->tile_bytes = p->chips[c].tile_bytes;
        if (cost->streaming_cycles < p->chips[c].offload_cycles)
            cost->streaming_cycles = p->chips[c].offload_cycles;
        cost->remote_bytes += p->chips[c].streaming_bytes;
    }
    return IPU_OK;
}

int ipu__pipeline_measure(const ipu_pipeline_options *options,
                          const ipu_compile_options *compiling,
                          struct ipu__plans *plans,
                          struct ipu__pipeline_cost *cost)
{
    ipu_pipeline_options o = *options;
    struct ipu_pipeline *p;
    int status;

    o.allow_out_of_memory = 1;
    IPU_TRY(ipu__pipeline_check(&o));
    IPU_TRY(ipu__new(&p, sizeof *p));
    p->compiling.progress = compiling->progress;
    p->compiling.progress_context = compiling->progress_context;
    p->compiling.available_memory_proportion =
        compiling->available_memory_proportion;
    p->compiling.matmul_memory_proportion = compiling->matmul_memory_proportion;
    p->compiling.convolution_memory_proportion =
        compiling->convolution_memory_proportion;
    p->plans = plans;
    status = measure(p, &o, cost);
    ipu_pipeline_free(p);
    return status;
}

static void free_part(struct ipu__stage_part *part)
{
    for (int32_t i = 0; i < part->ntrained; i++)
        free(part->trained[i].name);
    free(part->trained);
    free(part->stash);
    free(part->name);
    ipu_graph_free(part->joint);
    ipu_executable_free(part->forward);
    ipu_executable_free(part->backward);
    ipu_executable_free(part->plain);
}

void ipu_pipeline_free(ipu_pipeline *p)
{
    if (!p)
        return;
    drop_feeds(p);
    ipu__thread_pool_free(p->pool);
    ipu__pipeline_copies_free(p);
    for (int32_t i = 0; p->parts && i < p->nparts; i++)
        free_part(&p->parts[i]);
    for (int32_t c = 0; p->chips && c < p->nchips; c++) {
        for (int32_t i = 0; i < p->chips[c].nvariables; i++)
            free(p->chips[c].variables[i].name);
        free(p->chips[c].variables);
        for (int32_t i = 0; i < p->chips[c].nstates; i++) {
            free(p->chips[c].states[i].name);
            free(p->chips[c].states[i].of);
        }
        free(p->chips[c].states);
        ipu_executable_free(p->chips[c].update);
    }
    for (int32_t i = 0; p->argument_names && i < p->options.narguments; i++)
        free(p->argument_names[i]);
    free(p->argument_names);
    ipu__gradients_free(p);
    ipu__counts_free(p->counts);
    free(p->parts);
    free(p->chips);
    free(p->events);
    free(p);
}
