/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.c - the backend that drives a pipeline.
 *
 *     feed -> infeed -> stage 0 -> stage 1 -> ... -> sink: losses
 *                         ^ arguments "rate" and, if it changes, "momentum"
 *
 * In an update the infeed's thread calls the feed ahead of the stages. Its data
 * ends with the mini-batches of the update, and the next update starts it
 * again: so a position in the data, and a change of the data, between two
 * updates mean what they mean with one device. Without an exchange the pipeline
 * averages over its own replicas only, and nothing is collective.
 */
#include "trainer/pipeline.h"

#include "output/clock.h"
#include "output/device_problem.h"
#include "output/problem.h"
#include "output/profile.h"
#include "trainer/pipeline_exchange.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------- making */

/* Returns 1 for a mini-batch, and 0 when this update has all of its own. */
static int next_of_update(void *context, void *const *buffers)
{
    struct pipeline *p = context;
    int status;

    if (p->left == 0)
        return 0;
    p->left--;
    status = feed_fill(&p->feed, buffers);
    if (status < 0)
        snprintf(p->why, sizeof p->why, "%s", problem_text());
    return status;
}

static int make_infeed(struct pipeline *p,
                       const struct pipeline_settings *settings)
{
    ipu_infeed_options o;

    ipu_infeed_options_init(&o, sizeof o);
    o.name = settings->feed_name;
    o.ntensors = settings->feed.ntensors;
    o.tensors = settings->feed.tensors;
    o.replicas = settings->device.replicas;
    o.source.next = next_of_update;
    o.source.context = p;
    return device_status(ipu_infeed_new(&o, &p->infeed));
}

static int take_loss(void *context, int32_t replica, int64_t mini_batch,
                     int32_t count, const void *const *data)
{
    struct pipeline *p = context;
    float loss;

    (void)replica, (void)mini_batch, (void)count;
    memcpy(&loss, data[0], sizeof loss);
    p->loss_sum += (double)loss;
    p->nlosses++;
    return 0;
}

static int make_device(struct pipeline *p,
                       const struct pipeline_settings *settings)
{
    static const ipu_feed_tensor rates[] = {{"rate", IPU_FLOAT32, 0, {0}},
                                            {"momentum", IPU_FLOAT32, 0, {0}}};
    ipu_pipeline_options o = settings->device;

    o.infeed = p->infeed;
    o.narguments = settings->rates;
    o.arguments = rates;
    if (!o.sink) {
        o.sink = take_loss;
        o.sink_context = p;
    }
    if (settings->exchange &&
        pipeline_exchange_new(&o, settings->exchange, &p->exchange) < 0)
        return PROBLEM;
    p->base.exchange = settings->exchange;
    return device_status(ipu_pipeline_new(&o, &p->device));
}

int pipeline_init(struct pipeline *p, const struct pipeline_settings *settings)
{
    *p = (struct pipeline){.base.functions = &pipeline_functions,
                           .base.steps = (int)settings->device.count,
                           .feed = settings->feed,
                           .batches = settings->device.count *
                                      settings->device.repeat_count *
                                      settings->device.replicas,
                           .rates = settings->rates};
    if (make_infeed(p, settings) < 0) {
        exchange_free(settings->exchange);
        return PROBLEM;
    }
    return make_device(p, settings);
}

static void pipeline_fini(struct backend *backend)
{
    struct pipeline *p = (struct pipeline *)backend;

    pipeline_exchange_free(p->exchange); /* frees the exchange, too */
    ipu_pipeline_free(p->device);
    ipu_infeed_free(p->infeed);
}

/* -------------------------------------------------------------------- using */

static int start_pipeline(struct backend *backend)
{
    struct pipeline *p = (struct pipeline *)backend;

    return p->exchange ? pipeline_exchange_start(p->exchange, p->device) : 0;
}

/* Runs the pipeline once. The feed's thread has ended when this returns. */
static int run_update(struct pipeline *p)
{
    int status;

    p->why[0] = '\0';
    p->left = p->batches;
    if (ipu_infeed_start(p->infeed) < 0)
        return device_problem();
    status = p->exchange ? pipeline_exchange_run(p->exchange)
                         : device_status(ipu_pipeline_run(p->device));
    ipu_infeed_stop(p->infeed);
    return status < 0 && p->why[0] ? problem_set("%s", p->why) : status;
}

static int set_argument(struct pipeline *p, const char *name, float value)
{
    return device_status(
        ipu_pipeline_argument(p->device, name, &value, sizeof value));
}

static int update_pipeline(struct backend *backend, double rate, double *loss)
{
    struct pipeline *p = (struct pipeline *)backend;
    double start = clock_seconds(), waited = backend->times.wait;
    int status;

    p->loss_sum = 0;
    p->nlosses = 0;
    if ((p->rates > 0 && set_argument(p, "rate", (float)rate) < 0) ||
        (p->rates > 1 && set_argument(p, "momentum", backend->momentum) < 0))
        return PROBLEM;
    status = run_update(p);
    backend->times.wait = exchange_get_stats(backend->exchange).wait;
    backend->times.compute +=
        clock_seconds() - start - (backend->times.wait - waited);
    if (status == 0)
        *loss = p->nlosses ? p->loss_sum / (double)p->nlosses : 0;
    return status;
}

static int write_pipeline(struct backend *backend, const char *variable,
                          const float *values, size_t bytes)
{
    struct pipeline *p = (struct pipeline *)backend;

    return device_status(
        ipu_pipeline_write(p->device, variable, values, bytes));
}

static int read_pipeline(const struct backend *backend, const char *variable,
                         float *values, size_t bytes)
{
    const struct pipeline *p = (const struct pipeline *)backend;

    return device_status(
        ipu_pipeline_read(p->device, 0, variable, values, bytes));
}

static void describe_pipeline(const struct backend *backend,
                              struct profile_program *program)
{
    program->pipeline = ((const struct pipeline *)backend)->device;
}

/* Adds the largest figures of any IPU. */
static int add_largest(const struct pipeline *p, int ipus,
                       struct partition_stats *stats)
{
    for (int i = 0; i < ipus; i++) {
        ipu_pipeline_ipu_info ipu = {.size = sizeof ipu};

        if (ipu_pipeline_ipu(p->device, i, &ipu) < 0)
            return device_problem();
        if (stats->tile_bytes < ipu.tile_bytes)
            stats->tile_bytes = ipu.tile_bytes;
        if (stats->stash_bytes < ipu.stash_bytes)
            stats->stash_bytes = ipu.stash_bytes;
        stats->bytes_per_tile = ipu.bytes_per_tile;
    }
    return 0;
}

static int get_stats(const struct backend *backend,
                     struct partition_stats *stats)
{
    const struct pipeline *p = (const struct pipeline *)backend;
    ipu_pipeline_info info = {.size = sizeof info};
    struct exchange_stats own = exchange_get_stats(backend->exchange);

    if (ipu_pipeline_stats(p->device, &info) < 0)
        return device_problem();
    *stats = (struct partition_stats){.ipus = info.ipus,
                                      .mini_batches = info.mini_batches,
                                      .updates = info.updates,
                                      .slots = info.slots,
                                      .idle = info.idle_fraction,
                                      .seconds = info.seconds,
                                      .inter_ipu_bytes = info.inter_ipu_bytes,
                                      .averages = own.averages,
                                      .early = own.early,
                                      .wait = own.wait};
    return add_largest(p, info.ipus, stats);
}

const struct backend_functions pipeline_functions = {
    .start = start_pipeline,
    .update = update_pipeline,
    .write = write_pipeline,
    .read = read_pipeline,
    .describe = describe_pipeline,
    .get_stats = get_stats,
    .fini = pipeline_fini,
};
