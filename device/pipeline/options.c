/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - checks the options of a pipeline, each and against each other.
 *
 * It refuses everything that can be refused before a stage is built. The errors
 * name the stage or the option, and say what to do instead.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/pipeline.h"
#include "streams/streams.h"
#include "target/target.h"

void ipu_pipeline_options_init(ipu_pipeline_options *options, size_t size)
{
    const ipu_pipeline_options defaults = {
        .size = (uint32_t)size,
        .count = 1,
        .repeat_count = 1,
        .batch_serialization_iterations = 1,
        .replicas = 1,
        .accumulator = IPU_ACCUMULATOR_SAME,
        .offload_activations = IPU_OFFLOAD_OFF,
        .offload_accumulators = IPU_OFFLOAD_OFF,
        .offload_weights = IPU_OFFLOAD_OFF,
    };

    if (!options)
        return;
    memset(options, 0, size);
    memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

static const char *stage_name(const ipu_pipeline_options *o, int32_t i,
                              char *text)
{
    if (o->stages[i].name)
        return o->stages[i].name;
    snprintf(text, 16, "%d", (int)i);
    return text;
}

/* Counts the stages one after the other; concurrent stages count once. */
static int32_t count_positions(const ipu_pipeline_options *o)
{
    int32_t count = 0;

    for (int32_t i = 0; i < o->nstages; i++)
        count += !o->stages[i].beside;
    return count;
}

static int check_stages(const ipu_pipeline_options *o)
{
    char text[16];

    if (o->nstages > IPU_MAX_STAGES || o->nstages < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: %d stages, there may be 2 to %d",
                         (int)o->nstages, IPU_MAX_STAGES);
    if (o->nstages > 0 && !o->stages)
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: the stages are NULL");
    if (o->nstages > 0 && o->stages[0].beside)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: stage %s is the first: there is none that "
                         "it could be beside",
                         stage_name(o, 0, text));
    if (count_positions(o) < 2)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "Pipeline requires at least two computational "
                         "stages, one after the other: there %s %d.",
                         count_positions(o) == 1 ? "is" : "are",
                         (int)count_positions(o));
    for (int32_t i = 0; i < o->nstages; i++)
        if (!o->stages[i].build)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: stage %s has no function",
                             stage_name(o, i, text));
    return IPU_OK;
}

static int check_mapping(const ipu_pipeline_options *o)
{
    char first[16], second[16];

    if (o->nmappings == 0)
        return IPU_OK;
    if (!o->device_mapping)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: device_mapping is NULL, not a list of %d "
                         "IPUs",
                         (int)o->nmappings);
    if (o->nmappings != o->nstages)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "Each stage must be mapped to an IPU: %d mappings != "
                         "%d stages.",
                         (int)o->nmappings, (int)o->nstages);
    for (int32_t i = 0; i < o->nstages; i++) {
        bool beside = true; /* stage i, and all from k + 1 on */

        if (o->device_mapping[i] < 0 || o->device_mapping[i] >= IPU_MAX_IPUS)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: stage %s is mapped to IPU %d: there "
                             "are 0 to %d",
                             stage_name(o, i, first), (int)o->device_mapping[i],
                             IPU_MAX_IPUS - 1);
        for (int32_t k = i - 1; k >= 0; k--) {
            beside = beside && o->stages[k + 1].beside;
            if (o->device_mapping[k] != o->device_mapping[i])
                continue;
            if (beside)
                return ipu__fail(IPU_ERR_ARGUMENT,
                                 "pipeline: stages %s and %s work at the same "
                                 "time and are both mapped to IPU %d",
                                 stage_name(o, k, first),
                                 stage_name(o, i, second),
                                 (int)o->device_mapping[i]);
            if (o->optimizer && o->schedule == IPU_SCHEDULE_INTERLEAVED)
                return ipu__fail(IPU_ERR_ARGUMENT,
                                 "pipeline: stages %s and %s are both mapped "
                                 "to IPU %d: training in the interleaved "
                                 "schedule does one thing at a time on an IPU",
                                 stage_name(o, k, first),
                                 stage_name(o, i, second),
                                 (int)o->device_mapping[i]);
        }
    }
    return IPU_OK;
}

static int check_serialization(const ipu_pipeline_options *o)
{
    if (o->batch_serialization_iterations < 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: batch_serialization_iterations is %" PRId64
                         ", it must be 1 or more",
                         o->batch_serialization_iterations);
    if (o->batch_serialization_iterations == 1)
        return IPU_OK;
    if (o->schedule != IPU_SCHEDULE_SEQUENTIAL)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "Batch serialization is only supported with the "
                         "sequential schedule, this is the %s one.",
                         ipu_schedule_name(o->schedule));
    for (int32_t i = 0; i < o->nstages; i++)
        if (o->nmappings == 0 || o->device_mapping[i] != o->device_mapping[0])
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "Batch serialization is only supported with all "
                             "stages on a single IPU: set device_mapping.");
    if (o->reduction != IPU_REDUCTION_SUM)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "Batch serialization is only supported with the "
                         "reduction SUM.");
    return IPU_OK;
}

static int check_sharing(const ipu_pipeline_options *o)
{
    if (o->replicated_optimizer_state_sharding < 0 ||
        o->replicated_optimizer_state_sharding > 1)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: replicated_optimizer_state_sharding is %d: "
                         "0 or 1",
                         (int)o->replicated_optimizer_state_sharding);
    if (!o->replicated_optimizer_state_sharding)
        return IPU_OK;
    if (!o->optimizer)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: replicated_optimizer_state_sharding needs "
                         "an optimizer");
    if (o->offload_state == IPU_OFFLOAD_OFF)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: an optimizer's state that replicas share "
                         "must be offloaded: offload_state IPU_OFFLOAD_ON, or "
                         "AUTO");
    return IPU_OK;
}

static int check_training(const ipu_pipeline_options *o)
{
    if (o->continuous_updates)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: continuous weight updates do not exist");
    IPU_TRY(check_sharing(o));
    if (!ipu_reduction_name(o->reduction))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: reduction %d is none: 0 SUM, 1 MEAN, 2 "
                         "RUNNING_MEAN",
                         (int)o->reduction);
    if (!o->optimizer && (o->outfeed_loss || o->noutfeed_mask > 0))
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: %s needs an optimizer",
                         o->outfeed_loss ? "outfeed_loss" : "outfeed_mask");
    if (o->outfeed_loss && o->noutfeed_mask > 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: outfeed_loss and outfeed_mask exclude each "
                         "other");
    if (o->noutfeed_mask > 0 && !o->outfeed_mask)
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: outfeed_mask is NULL");
    if (!o->ready != !o->wait)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: %s is NULL, and %s is not: what gradients "
                         "become between processes takes both",
                         o->ready ? "wait" : "ready",
                         o->ready ? "ready" : "wait");
    if (!o->sink && !o->outfeed && (o->accumulate_outfeed || o->outfeed_loss))
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: %s without an outfeed",
                         o->outfeed_loss ? "outfeed_loss"
                                         : "accumulate_outfeed");
    if (o->accumulate_outfeed && o->outfeed &&
        ipu__outfeed_mode(o->outfeed) != IPU_OUTFEED_ALL)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: accumulate_outfeed needs an outfeed of "
                         "mode ALL, and '%s' keeps only the last element",
                         ipu__outfeed_name(o->outfeed));
    return IPU_OK;
}

/* Checks which recomputation goes with which schedule. The rules are those of
 * the reference. */
static int check_recompute(const ipu_pipeline_options *o)
{
    if (o->recompute_mode < 0 || o->recompute_mode > 2)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: recompute_mode %d is none: 0 auto, 1 then "
                         "backpropagate, 2 interleaved with it",
                         (int)o->recompute_mode);
    if (!o->recompute)
        return IPU_OK;
    if (o->recompute_mode == IPU_RECOMPUTE_THEN_BACKPROPAGATE &&
        o->schedule == IPU_SCHEDULE_SEQUENTIAL)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: RecomputeThenBackpropagate is not "
                         "implemented for the sequential schedule: take "
                         "RecomputeAndBackpropagateInterleaved");
    if (o->recompute_mode == IPU_RECOMPUTE_AND_BACKPROPAGATE_INTERLEAVED &&
        o->schedule == IPU_SCHEDULE_INTERLEAVED)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: RecomputeAndBackpropagateInterleaved is "
                         "not implemented for the interleaved schedule: take "
                         "RecomputeThenBackpropagate");
    return IPU_OK;
}

static int check_arguments(const ipu_pipeline_options *o)
{
    struct ipu__shape shape;
    char text[96];

    if (o->narguments < 0 || (o->narguments > 0 && !o->arguments))
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: %d arguments%s",
                         (int)o->narguments,
                         o->narguments < 0 ? "" : ", and the list is NULL");
    for (int32_t i = 0; i < o->narguments; i++) {
        if (!o->arguments[i].name)
            return ipu__fail(IPU_ERR_ARGUMENT,
                             "pipeline: argument %d has no name", (int)i);
        snprintf(text, sizeof text, "pipeline: argument %d '%.40s'", (int)i,
                 o->arguments[i].name);
        IPU_TRY(ipu__shape_make(text, o->arguments[i].dtype,
                                o->arguments[i].ndim, o->arguments[i].shape,
                                &shape));
    }
    return IPU_OK;
}

static int check_feeds(const ipu_pipeline_options *o)
{
    int32_t elements = 0, replicas;

    IPU_TRY(check_arguments(o));
    if (o->infeed)
        elements = ipu_infeed_tensors(o->infeed, NULL);
    if (o->narguments + elements > IPU_MAX_STAGE_TENSORS)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: %d arguments and %d tensors of the infeed: "
                         "a stage takes %d",
                         (int)o->narguments, (int)elements,
                         IPU_MAX_STAGE_TENSORS);
    replicas = o->infeed ? ipu__infeed_replicas(o->infeed) : o->replicas;
    if (replicas != o->replicas)
        return ipu__fail(IPU_ERR_STATE,
                         "pipeline: %d replicas, and the infeed '%s' was made "
                         "for %d",
                         (int)o->replicas, ipu__infeed_name(o->infeed),
                         (int)replicas);
    replicas = o->outfeed ? ipu__outfeed_replicas(o->outfeed) : o->replicas;
    if (replicas != o->replicas)
        return ipu__fail(IPU_ERR_STATE,
                         "pipeline: %d replicas, and the outfeed '%s' was made "
                         "for %d",
                         (int)o->replicas, ipu__outfeed_name(o->outfeed),
                         (int)replicas);
    return IPU_OK;
}

int ipu__pipeline_check(const ipu_pipeline_options *o)
{
    if (!o)
        return ipu__fail(IPU_ERR_ARGUMENT, "pipeline: the options are NULL");
    IPU_TRY(ipu__check_size("pipeline options", o->size, sizeof *o));
    IPU_TRY(check_stages(o));
    IPU_TRY(check_mapping(o));
    if (!ipu_schedule_name(o->schedule))
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: schedule %d is none: 0 grouped, 1 "
                         "interleaved, 2 sequential",
                         (int)o->schedule);
    IPU_TRY(check_serialization(o));
    IPU_TRY(check_training(o));
    IPU_TRY(check_recompute(o));
    IPU_TRY(check_feeds(o));
    IPU_TRY(ipu__check_proportion("pipeline: available_memory_proportion",
                                  o->available_memory_proportion));
    if (o->repeat_count < 1 || o->replicas < 1 || o->threads < 0)
        return ipu__fail(IPU_ERR_ARGUMENT,
                         "pipeline: repeat_count is %" PRId64
                         ", replicas %d, threads %d: 1, 1 and 0 or more",
                         o->repeat_count, (int)o->replicas, (int)o->threads);
    return IPU_OK;
}
