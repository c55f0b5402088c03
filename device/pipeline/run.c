/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the driver: runs slot after slot, then the update.
 *
 *     for each slot
 *         elements for the first stage come in      the caller's thread
 *         every IPU does what the schedule says     all threads, which meet
 *         gradients that are complete are added up
 *         over replicas, and given to processes     the caller's thread
 *         what has left the last stage goes out     the caller's thread
 *     gradients of all processes are there          the caller's thread
 *     every IPU updates its weights                 all threads
 *
 * A failure ends the run where all threads meet. Then some stages may have run
 * that others have not: accumulators go back to zero, variables that stages
 * assign go back to their old values, and the content of the rings is dropped.
 * So the pipeline is as the last update left it, and can run again; elements
 * that the infeed has given are lost.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/counts.h"
#include "pipeline/feed.h"
#include "pipeline/pipeline.h"
#include "streams/streams.h"

struct run {
    struct ipu_pipeline *pipeline;
    int64_t repeat, slot;
};

/* ----------------------------------------------------------------- one slot */

int ipu__hand_out(struct ipu_pipeline *p, int64_t slot)
{
    ipu_schedule_entry entries[2 * IPU_MAX_STAGES];
    int count =
        ipu_schedule_slot(&p->schedule, slot, 2 * IPU_MAX_STAGES, entries);

    IPU_TRY(count);
    for (int32_t i = 0; i < p->nlanes; i++) {
        p->lanes[i].ntasks = 0;
        p->lanes[i].status = IPU_OK;
    }
    for (int e = 0; e < count; e++) {
        const struct ipu__position *at = &p->positions[entries[e].stage];

        for (int32_t i = 0; i < p->nlanes; i++)
            for (int32_t k = 0; k < at->nparts; k++) {
                int32_t part = at->first_part + k;

                if (p->parts[part].ipu != p->chips[p->lanes[i].chip].ipu)
                    continue;
                p->lanes[i].tasks[p->lanes[i].ntasks++] =
                    (struct ipu__task){.part = part,
                                       .kind = entries[e].kind,
                                       .mini_batch = entries[e].mini_batch};
            }
    }
    return IPU_OK;
}

static void do_lane(void *context, int32_t number)
{
    struct run *run = context;
    struct ipu__chip_lane *lane = &run->pipeline->lanes[number];

    for (int32_t k = 0; k < lane->ntasks && lane->status >= 0; k++) {
        lane->status = ipu__task_run(run->pipeline, lane, &lane->tasks[k]);
        lane->failed = k;
    }
    if (lane->status < 0)
        snprintf(lane->message, IPU__EXPLANATION_MAX, "%s", ipu_last_error());
}

/* Takes over the first failed lane's error on this thread. */
static int find_failure(struct run *run)
{
    struct ipu_pipeline *p = run->pipeline;

    for (int32_t i = 0; i < p->nlanes; i++) {
        const struct ipu__chip_lane *lane = &p->lanes[i];
        const struct ipu__task *task = &lane->tasks[lane->failed];

        if (lane->status >= 0)
            continue;
        p->callback_status = lane->callback_status;
        return ipu__fail(lane->status,
                         "pipeline: slot %" PRId64
                         ", stage %s, %s, mini-batch %" PRId64 ", replica %d: "
                         "%s",
                         run->slot, p->parts[task->part].name,
                         task->kind == IPU_STAGE_FORWARD ? "forwards"
                                                         : "backwards",
                         task->mini_batch, (int)lane->copy, lane->message);
    }
    return IPU_OK;
}

/* Returns the mini-batch that a stage goes forwards with in this slot, or
 * -1. */
static int64_t mini_batch_at(const struct run *run, int32_t position)
{
    const struct ipu_pipeline *p = run->pipeline;
    int32_t part = p->positions[position].first_part;

    for (int32_t i = 0; i < p->nchips; i++)
        for (int32_t k = 0; k < p->lanes[i].ntasks; k++)
            if (p->lanes[i].tasks[k].part == part &&
                p->lanes[i].tasks[k].kind == IPU_STAGE_FORWARD)
                return p->lanes[i].tasks[k].mini_batch;
    return -1;
}

static int run_slot(struct run *run)
{
    struct ipu_pipeline *p = run->pipeline;
    int64_t in, out;

    IPU_TRY(ipu__hand_out(p, run->slot));
    in = mini_batch_at(run, 0);
    out = mini_batch_at(run, p->npositions - 1);
    if (in >= 0)
        IPU_TRY(ipu__feed_in(p, run->repeat, run->slot, in));
    ipu__thread_pool_run(p->pool, p->nlanes, do_lane, run);
    IPU_TRY(find_failure(run));
    IPU_TRY(ipu__gradients_give(p));
    if (out >= 0)
        IPU_TRY(ipu__feed_out(p, run->repeat, out));
    return ipu__tally_slot(p, run->repeat * p->plan.slots + run->slot);
}

/* --------------------------------------------------------------- the update */

/* Connects the replica's shares of gradients to the update. */
static int connect_shares(const struct ipu_pipeline *p,
                          const struct ipu__copy *copy, int32_t chip,
                          ipu_engine *engine)
{
    for (int32_t i = 0; i < p->ngradients; i++) {
        const struct ipu__gradient *g = &p->gradients[i];
        ipu_dtype dtype = p->chips[g->chip].variables[g->sum].shape.dtype;
        char name[IPU__NAME_MAX];

        if (g->share == 0 || g->chip != chip)
            continue;
        ipu__share_name(g->name, name);
        IPU_TRY(ipu_engine_connect(engine, name, copy->shares[i].gradient,
                                   (size_t)g->share * ipu__dtype_bytes(dtype)));
    }
    return IPU_OK;
}

static void do_update(void *context, int32_t number)
{
    struct run *run = context;
    struct ipu_pipeline *p = run->pipeline;
    struct ipu__chip_lane *lane = &p->lanes[number];
    struct ipu__copy *copy = &p->copies[lane->copy];
    ipu_engine *engine = copy->update[lane->chip];
    int64_t last =
        p->options.count * p->options.batch_serialization_iterations - 1;

    lane->status = IPU_OK;
    for (int32_t i = 0; i < p->positions[p->npositions - 1].noutputs; i++) {
        const struct ipu__stage_buffer *ring = &copy->carried[p->npositions][i];
        char name[32];

        snprintf(name, sizeof name, "output:%d", (int)i);
        if (lane->status >= 0)
            lane->status = ipu_engine_connect(
                engine, name, ipu__ring_at(ring, last), ring->bytes);
    }
    if (lane->status >= 0)
        lane->status = connect_shares(p, copy, lane->chip, engine);
    if (lane->status >= 0)
        lane->status = ipu_engine_run(engine);
    if (lane->status >= 0)
        return;
    lane->callback_status = ipu_engine_callback_status(engine);
    snprintf(lane->message, IPU__EXPLANATION_MAX, "%s", ipu_last_error());
}

static int run_update(struct run *run)
{
    struct ipu_pipeline *p = run->pipeline;

    IPU_TRY(ipu__gradients_wait(p));
    ipu__shares_take(p);
    ipu__thread_pool_run(p->pool, p->nlanes, do_update, run);
    for (int32_t i = 0; i < p->nlanes; i++)
        if (p->lanes[i].status < 0) {
            p->callback_status = p->lanes[i].callback_status;
            return ipu__fail(p->lanes[i].status,
                             "pipeline: the weight update on IPU %d, replica "
                             "%d: %s",
                             (int)p->chips[p->lanes[i].chip].ipu,
                             (int)p->lanes[i].copy, p->lanes[i].message);
        }
    ipu__shares_gather(p);
    return ipu__tally_update(p, (run->repeat + 1) * p->plan.slots - 1,
                             run->repeat);
}

/* ---------------------------------------------------------------- the whole */

/* Copies what a failure may change: saves it, or restores it. */
static void save_variables(struct ipu_pipeline *p, bool restore)
{
    for (int32_t r = 0; r < p->options.replicas; r++)
        for (int32_t c = 0; c < p->nchips; c++)
            for (int32_t i = 0; i < p->chips[c].nvariables; i++) {
                void *now = ipu__copy_variable(&p->copies[r], c, i);
                void *saved = p->copies[r].places[c][i].saved;
                size_t bytes = p->chips[c].variables[i].bytes;

                if (saved && bytes > 0)
                    memcpy(restore ? now : saved, restore ? saved : now, bytes);
            }
}

/* Sets the pipeline back to the state that the last update left. */
static void forget_run(struct ipu_pipeline *p)
{
    save_variables(p, true);
    for (int32_t r = 0; r < p->options.replicas; r++) {
        for (int32_t i = 0; i < p->nparts; i++)
            p->copies[r].done[i].waiting = 0;
        for (int32_t i = 0; i < p->ngradients; i++) {
            const struct ipu__gradient *g = &p->gradients[i];

            memset(ipu__copy_variable(&p->copies[r], g->chip, g->sum), 0,
                   p->chips[g->chip].variables[g->sum].bytes);
        }
    }
    ipu__feed_forget(p);
}

static int run_all(struct ipu_pipeline *p)
{
    struct run run = {.pipeline = p};

    for (run.repeat = 0; run.repeat < p->options.repeat_count; run.repeat++) {
        save_variables(p, false);
        ipu__feed_forget(p);
        ipu__gradients_begin(p);
        for (run.slot = 0; run.slot < p->plan.slots; run.slot++)
            IPU_TRY(run_slot(&run));
        if (p->training)
            IPU_TRY(run_update(&run));
        p->info.mini_batches += p->options.count * p->options.replicas;
    }
    return IPU_OK;
}

int ipu_pipeline_run(ipu_pipeline *pipeline)
{
    int status;

    if (!pipeline)
        return ipu__fail(IPU_ERR_ARGUMENT, "the pipeline is NULL");
    if (pipeline->running)
        return ipu__fail(IPU_ERR_STATE,
                         "the pipeline is running: what it calls cannot run "
                         "it");
    pipeline->running = true;
    pipeline->nevents = 0;
    pipeline->began = pipeline->info;
    if (pipeline->counts)
        ipu__counts_begin(pipeline->counts);
    pipeline->callback_status = 0;
    if (pipeline->options.outfeed)
        ipu__outfeed_begin(pipeline->options.outfeed);
    status = run_all(pipeline);
    if (status < 0) {
        ipu__gradients_abandon(pipeline, status);
        forget_run(pipeline);
    }
    if (pipeline->options.outfeed)
        ipu__outfeed_end(pipeline->options.outfeed, status);
    if (pipeline->counts)
        ipu__counts_end(pipeline->counts, status >= 0);
    pipeline->running = false;
    return status;
}

int ipu_pipeline_callback_status(const ipu_pipeline *pipeline)
{
    return pipeline ? pipeline->callback_status : 0;
}
