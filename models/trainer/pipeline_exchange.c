/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beside trainer.c, which does the like for one program of the device, the file
 * that sees both hvd*.h and ipu.h.
 *
 *          device, one run                     strategy
 *     last stage: back, last mini-batch
 *       ready(v), v of the last stage  ----->  hvd_strategy_ready(v)
 *     ... stages before it go back             averaged meanwhile, in place
 *       ready(v), v of the first stage ----->  hvd_strategy_ready(v)
 *     wait                             ----->  hvd_strategy_step: waits for all
 *     every IPU updates its weights
 *
 * Variables are added to the strategy in the order in which they become ready,
 * from the pipeline's last to its first, so that those that travel together are
 * neighbours in its memory, where ipu_pipeline_place has the device accumulate.
 * An accumulator of another dtype is copied.
 */
#include "trainer/pipeline_exchange.h"

#include "command/agree.h"
#include "output/device_problem.h"
#include "output/problem.h"
#include "trainer/partition.h"

#include <hvd_strategy.h>
#include <ipu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A trained variable, by its number in the strategy. */
struct trained {
    float *value;    /* owned: where it lives, of the first replica */
    float *gradient; /* borrowed from the strategy */
    float *given;    /* borrowed: where the device wants the average */
    int64_t count;
};

struct pipeline_exchange {
    ipu_pipeline *pipeline; /* borrowed; from the start on */
    hvd_strategy *strategy;
    struct trained *trained; /* owned */
    int32_t ntrained;
    int problem; /* of this run: what the strategy has said; 0: nothing */
    int compression, serial, check_every;
};

/* The device counts stage after stage; the strategy, as they become ready. */
static int32_t number_of(const struct pipeline_exchange *exchange,
                         int32_t variable)
{
    return exchange->ntrained - 1 - variable;
}

static const char *name_of(const struct pipeline_exchange *exchange,
                           int32_t number)
{
    return ipu_pipeline_variable(exchange->pipeline,
                                 number_of(exchange, number));
}

/* ------------------------------------------------------------- in the run */

/* The first failure is kept: what follows may have other words. */
static int keep(struct pipeline_exchange *exchange, int status)
{
    if (status < 0 && exchange->problem == 0)
        exchange->problem = agree_hvd_problem(status);
    return status;
}

static int gradient_ready(void *context, int32_t variable, const char *name,
                          float *data, int64_t count)
{
    struct pipeline_exchange *exchange = context;
    int32_t number = number_of(exchange, variable);
    struct trained *t = &exchange->trained[number];

    (void)name;
    t->given = data;
    if (data != t->gradient)
        memcpy(t->gradient, data, (size_t)count * sizeof *data);
    return keep(exchange, hvd_strategy_ready(exchange->strategy, number));
}

static int gradients_wait(void *context, int failed)
{
    struct pipeline_exchange *exchange = context;
    int status;

    if (failed < 0)
        return hvd_strategy_abandon(exchange->strategy, ipu_last_error());
    status = hvd_strategy_step(exchange->strategy);
    for (int32_t i = 0; status >= 0 && i < exchange->ntrained; i++) {
        const struct trained *t = &exchange->trained[i];

        if (t->given != t->gradient)
            memcpy(t->given, t->gradient, (size_t)t->count * sizeof *t->given);
    }
    return keep(exchange, status);
}

int pipeline_exchange_run(struct pipeline_exchange *exchange)
{
    exchange->problem = 0;
    if (ipu_pipeline_run(exchange->pipeline) >= 0)
        return 0;
    return exchange->problem ? exchange->problem : device_problem();
}

/* ------------------------------------------------------------------- making
 */

int pipeline_exchange_new(ipu_pipeline_options *options,
                          struct pipeline_exchange **made)
{
    struct pipeline_exchange *exchange = calloc(1, sizeof *exchange);

    if (!exchange)
        return problem_set("no memory for the pipeline");
    options->ready = gradient_ready;
    options->wait = gradients_wait;
    options->exchange_context = exchange;
    *made = exchange;
    return 0;
}

void pipeline_exchange_set(struct pipeline_exchange *exchange, int compression,
                           int serial, int check_every)
{
    exchange->compression = compression;
    exchange->serial = serial;
    exchange->check_every = check_every;
}

/* Its elements stay: what they are now, rank 0's will be everywhere. */
static int place_value(struct pipeline_exchange *exchange, int32_t number)
{
    struct trained *t = &exchange->trained[number];
    const char *name = name_of(exchange, number);
    int64_t shape[IPU_MAX_DIMS];
    ipu_dtype dtype;
    int32_t ndim =
        ipu_pipeline_variable_info(exchange->pipeline, name, &dtype, shape);
    size_t bytes;

    if (ndim < 0)
        return device_problem();
    if (dtype != IPU_FLOAT32)
        return problem_set("variable '%s' is not float32: ranks average "
                           "float32 only",
                           name);
    t->count = 1;
    for (int32_t i = 0; i < ndim; i++)
        t->count *= shape[i];
    bytes = (size_t)t->count * sizeof *t->value;
    t->value = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!t->value)
        return problem_set("no memory for the weights");
    if (ipu_pipeline_place(exchange->pipeline, name, t->value, bytes) < 0)
        return device_problem();
    int status =
        hvd_strategy_add(exchange->strategy, name, t->value, ndim, shape);
    return status < 0 ? agree_hvd_problem(status) : 0;
}

/* What this rank does alone. */
static int make(struct pipeline_exchange *exchange)
{
    hvd_strategy_options settings;
    int status;

    while (ipu_pipeline_variable(exchange->pipeline, exchange->ntrained))
        exchange->ntrained++;
    exchange->trained =
        calloc((size_t)exchange->ntrained + 1, sizeof *exchange->trained);
    if (!exchange->trained)
        return problem_set("no memory for the weights");
    hvd_strategy_options_init(&settings, sizeof settings);
    settings.optimizer = HVD_NO_OPTIMIZER;
    settings.compression = exchange->compression;
    settings.serial = exchange->serial;
    settings.check_every = exchange->check_every;
    status = hvd_strategy_new(&settings, &exchange->strategy);
    if (status < 0)
        return agree_hvd_problem(status);
    status = 0;
    for (int32_t i = 0; status == 0 && i < exchange->ntrained; i++)
        status = place_value(exchange, i);
    return status;
}

/* Where a gradient is accumulated; what lies there belongs to a failed run, or
 * nobody. */
static int accumulator_name(const struct pipeline_exchange *exchange,
                            int32_t number, char *text, size_t size)
{
    int length =
        snprintf(text, size, "%s/accumulator", name_of(exchange, number));

    return length > 0 && (size_t)length < size
               ? 0
               : problem_set("the name of variable '%s' is too long",
                             name_of(exchange, number));
}

/* Rank 0's values to all replicas, and gradients to the strategy's memory. */
static int settle(struct pipeline_exchange *exchange)
{
    for (int32_t i = 0; i < exchange->ntrained; i++) {
        struct trained *t = &exchange->trained[i];
        size_t bytes = (size_t)t->count * sizeof *t->value;
        char sum[512];
        ipu_dtype dtype;

        t->gradient = hvd_strategy_gradient(exchange->strategy, i);
        if (accumulator_name(exchange, i, sum, sizeof sum) < 0)
            return PROBLEM;
        if (ipu_pipeline_write(exchange->pipeline, name_of(exchange, i),
                               t->value, bytes) < 0 ||
            ipu_pipeline_variable_info(exchange->pipeline, sum, &dtype, NULL) <
                0 ||
            (dtype == IPU_FLOAT32 &&
             ipu_pipeline_place(exchange->pipeline, sum, t->gradient, bytes) <
                 0))
            return device_problem();
    }
    return 0;
}

int pipeline_exchange_start(struct pipeline_exchange *exchange,
                            ipu_pipeline *pipeline)
{
    int status;

    exchange->pipeline = pipeline;
    status = agree(make(exchange));
    if (status < 0)
        return status;
    status = hvd_strategy_start(exchange->strategy);
    if (status < 0)
        return agree_hvd_problem(status);
    return agree(settle(exchange));
}

/* Back to the device's own memory, before ours goes. */
static void take_back(struct pipeline_exchange *exchange, int32_t number)
{
    char sum[512];

    if (!exchange->trained[number].value)
        return;
    ipu_pipeline_place(exchange->pipeline, name_of(exchange, number), NULL, 0);
    if (accumulator_name(exchange, number, sum, sizeof sum) == 0)
        ipu_pipeline_place(exchange->pipeline, sum, NULL, 0);
}

void pipeline_exchange_free(struct pipeline_exchange *exchange)
{
    if (!exchange)
        return;
    for (int32_t i = 0; exchange->trained && i < exchange->ntrained; i++)
        take_back(exchange, i);
    /* Before the values: it may still be writing to them. */
    hvd_strategy_free(exchange->strategy);
    for (int32_t i = 0; exchange->trained && i < exchange->ntrained; i++)
        free(exchange->trained[i].value);
    free(exchange->trained);
    free(exchange);
}

void pipeline_exchange_get_stats(const struct pipeline_exchange *exchange,
                                 struct pipeline_exchange_stats *stats)
{
    hvd_strategy_stats s = {.size = sizeof s};

    if (hvd_strategy_get_stats(exchange->strategy, &s) < 0)
        s = (hvd_strategy_stats){0};
    *stats = (struct pipeline_exchange_stats){
        .averages = s.gradients, .early = s.early, .wait = s.wait_seconds};
}

int pipeline_exchange_account(const struct pipeline_exchange *exchange,
                              struct partition_stats *stats)
{
    ipu_pipeline_info info = {.size = sizeof info};
    struct pipeline_exchange_stats own;

    pipeline_exchange_get_stats(exchange, &own);
    if (ipu_pipeline_stats(exchange->pipeline, &info) < 0)
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
    for (int i = 0; i < info.ipus; i++) {
        ipu_pipeline_ipu_info ipu = {.size = sizeof ipu};

        if (ipu_pipeline_ipu(exchange->pipeline, i, &ipu) < 0)
            return device_problem();
        if (stats->tile_bytes < ipu.tile_bytes)
            stats->tile_bytes = ipu.tile_bytes;
        if (stats->stash_bytes < ipu.stash_bytes)
            stats->stash_bytes = ipu.stash_bytes;
        stats->bytes_per_tile = ipu.bytes_per_tile;
    }
    return 0;
}
