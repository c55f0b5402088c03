/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beside joint.c, which does the like for one program of the device, the file
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

struct joint_pipeline {
    ipu_pipeline *pipeline; /* borrowed; from the start on */
    hvd_strategy *strategy;
    struct trained *trained; /* owned */
    int32_t ntrained;
    int problem; /* of this run: what the strategy has said; 0: nothing */
    int compression, serial, check_every;
};

/* The device counts stage after stage; the strategy, as they become ready. */
static int32_t number_of(const struct joint_pipeline *joint, int32_t variable)
{
    return joint->ntrained - 1 - variable;
}

static const char *name_of(const struct joint_pipeline *joint, int32_t number)
{
    return ipu_pipeline_variable(joint->pipeline, number_of(joint, number));
}

/* ------------------------------------------------------------- in the run */

/* The first failure is kept: what follows may have other words. */
static int keep(struct joint_pipeline *joint, int status)
{
    if (status < 0 && joint->problem == 0)
        joint->problem = agree_hvd_problem(status);
    return status;
}

static int gradient_ready(void *context, int32_t variable, const char *name,
                          float *data, int64_t count)
{
    struct joint_pipeline *joint = context;
    int32_t number = number_of(joint, variable);
    struct trained *t = &joint->trained[number];

    (void)name;
    t->given = data;
    if (data != t->gradient)
        memcpy(t->gradient, data, (size_t)count * sizeof *data);
    return keep(joint, hvd_strategy_ready(joint->strategy, number));
}

static int gradients_wait(void *context, int failed)
{
    struct joint_pipeline *joint = context;
    int status;

    if (failed < 0)
        return hvd_strategy_abandon(joint->strategy, ipu_last_error());
    status = hvd_strategy_step(joint->strategy);
    for (int32_t i = 0; status >= 0 && i < joint->ntrained; i++) {
        const struct trained *t = &joint->trained[i];

        if (t->given != t->gradient)
            memcpy(t->given, t->gradient, (size_t)t->count * sizeof *t->given);
    }
    return keep(joint, status);
}

int joint_pipeline_run(struct joint_pipeline *joint)
{
    joint->problem = 0;
    if (ipu_pipeline_run(joint->pipeline) >= 0)
        return 0;
    return joint->problem ? joint->problem : device_problem();
}

/* ------------------------------------------------------------------- making
 */

int joint_pipeline_new(ipu_pipeline_options *options,
                       struct joint_pipeline **made)
{
    struct joint_pipeline *joint = calloc(1, sizeof *joint);

    if (!joint)
        return problem_set("no memory for the pipeline");
    options->ready = gradient_ready;
    options->wait = gradients_wait;
    options->exchange_context = joint;
    *made = joint;
    return 0;
}

void joint_pipeline_set(struct joint_pipeline *joint, int compression,
                        int serial, int check_every)
{
    joint->compression = compression;
    joint->serial = serial;
    joint->check_every = check_every;
}

/* Its elements stay: what they are now, rank 0's will be everywhere. */
static int place_value(struct joint_pipeline *joint, int32_t number)
{
    struct trained *t = &joint->trained[number];
    const char *name = name_of(joint, number);
    int64_t shape[IPU_MAX_DIMS];
    ipu_dtype dtype;
    int32_t ndim =
        ipu_pipeline_variable_info(joint->pipeline, name, &dtype, shape);
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
    if (ipu_pipeline_place(joint->pipeline, name, t->value, bytes) < 0)
        return device_problem();
    int status = hvd_strategy_add(joint->strategy, name, t->value, ndim, shape);
    return status < 0 ? agree_hvd_problem(status) : 0;
}

/* What this rank does alone. */
static int make(struct joint_pipeline *joint)
{
    hvd_strategy_options settings;
    int status;

    while (ipu_pipeline_variable(joint->pipeline, joint->ntrained))
        joint->ntrained++;
    joint->trained =
        calloc((size_t)joint->ntrained + 1, sizeof *joint->trained);
    if (!joint->trained)
        return problem_set("no memory for the weights");
    hvd_strategy_options_init(&settings, sizeof settings);
    settings.optimizer = HVD_NO_OPTIMIZER;
    settings.compression = joint->compression;
    settings.serial = joint->serial;
    settings.check_every = joint->check_every;
    status = hvd_strategy_new(&settings, &joint->strategy);
    if (status < 0)
        return agree_hvd_problem(status);
    status = 0;
    for (int32_t i = 0; status == 0 && i < joint->ntrained; i++)
        status = place_value(joint, i);
    return status;
}

/* Where a gradient is accumulated; what lies there belongs to a failed run, or
 * nobody. */
static int accumulator_name(const struct joint_pipeline *joint, int32_t number,
                            char *text, size_t size)
{
    int length = snprintf(text, size, "%s/accumulator", name_of(joint, number));

    return length > 0 && (size_t)length < size
               ? 0
               : problem_set("the name of variable '%s' is too long",
                             name_of(joint, number));
}

/* Rank 0's values to all replicas, and gradients to the strategy's memory. */
static int settle(struct joint_pipeline *joint)
{
    for (int32_t i = 0; i < joint->ntrained; i++) {
        struct trained *t = &joint->trained[i];
        size_t bytes = (size_t)t->count * sizeof *t->value;
        char sum[512];
        ipu_dtype dtype;

        t->gradient = hvd_strategy_gradient(joint->strategy, i);
        if (accumulator_name(joint, i, sum, sizeof sum) < 0)
            return PROBLEM;
        if (ipu_pipeline_write(joint->pipeline, name_of(joint, i), t->value,
                               bytes) < 0 ||
            ipu_pipeline_variable_info(joint->pipeline, sum, &dtype, NULL) <
                0 ||
            (dtype == IPU_FLOAT32 &&
             ipu_pipeline_place(joint->pipeline, sum, t->gradient, bytes) < 0))
            return device_problem();
    }
    return 0;
}

int joint_pipeline_start(struct joint_pipeline *joint, ipu_pipeline *pipeline)
{
    int status;

    joint->pipeline = pipeline;
    status = agree(make(joint));
    if (status < 0)
        return status;
    status = hvd_strategy_start(joint->strategy);
    if (status < 0)
        return agree_hvd_problem(status);
    return agree(settle(joint));
}

/* Back to the device's own memory, before ours goes. */
static void take_back(struct joint_pipeline *joint, int32_t number)
{
    char sum[512];

    if (!joint->trained[number].value)
        return;
    ipu_pipeline_place(joint->pipeline, name_of(joint, number), NULL, 0);
    if (accumulator_name(joint, number, sum, sizeof sum) == 0)
        ipu_pipeline_place(joint->pipeline, sum, NULL, 0);
}

void joint_pipeline_free(struct joint_pipeline *joint)
{
    if (!joint)
        return;
    for (int32_t i = 0; joint->trained && i < joint->ntrained; i++)
        take_back(joint, i);
    /* Before the values: it may still be writing to them. */
    hvd_strategy_free(joint->strategy);
    for (int32_t i = 0; joint->trained && i < joint->ntrained; i++)
        free(joint->trained[i].value);
    free(joint->trained);
    free(joint);
}

void joint_pipeline_get_stats(const struct joint_pipeline *joint,
                              struct joint_pipeline_stats *stats)
{
    hvd_strategy_stats s = {.size = sizeof s};

    if (hvd_strategy_get_stats(joint->strategy, &s) < 0)
        s = (hvd_strategy_stats){0};
    *stats = (struct joint_pipeline_stats){
        .averages = s.gradients, .early = s.early, .wait = s.wait_seconds};
}

int joint_pipeline_account(const struct joint_pipeline *joint,
                           struct cut_stats *stats)
{
    ipu_pipeline_info info = {.size = sizeof info};
    struct joint_pipeline_stats own;

    joint_pipeline_get_stats(joint, &own);
    if (ipu_pipeline_stats(joint->pipeline, &info) < 0)
        return device_problem();
    *stats = (struct cut_stats){.ipus = info.ipus,
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

        if (ipu_pipeline_ipu(joint->pipeline, i, &ipu) < 0)
            return device_problem();
        if (stats->tile_bytes < ipu.tile_bytes)
            stats->tile_bytes = ipu.tile_bytes;
        if (stats->stash_bytes < ipu.stash_bytes)
            stats->stash_bytes = ipu.stash_bytes;
        stats->bytes_per_tile = ipu.bytes_per_tile;
    }
    return 0;
}
