/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one file that sees both hvd*.h and ipu.h.
 *
 *          device                              strategy
 *   ipu_engine_run                          gradient buffer v
 *     backward pass ... gradient v  ------>  (connected to the stream)
 *     host call "gradient/v"        ------>  hvd_strategy_ready(v)
 *     ... backward pass goes on               averaged meanwhile
 *   returns                                 hvd_strategy_step
 *     ipu_engine_write(v)           <------   v updated: callback
 *
 * The same buffers serve training and evaluation batches: an evaluation runs
 * on an engine of its own with the same batch size.
 *
 * Errors pass both ways: what hvd_strategy_ready returns ends the device's
 * run and comes back through ipu_engine_callback_status; what
 * ipu_engine_write returns ends the strategy's step (device_failed remembers
 * that it was the device's, as its numbers mean something else to hvd).
 */
#include "common/joint.h"

#include "common/agree.h"
#include "common/clock.h"
#include "common/network.h"
#include "common/problem.h"
#include "common/profile.h"
#include "common/weights.h"

#include <hvd_strategy.h>
#include <ipu.h>

/* What the host call of one gradient is told. */
struct arrival {
    struct joint *joint;
    int32_t variable;
};

struct joint {
    hvd_strategy *strategy;
    ipu_executable *programs[2];
    ipu_engine *training;
    ipu_engine *evaluation;
    float *values[NETWORK_VARIABLES]; /* owned; the strategy borrows them */
    struct arrival arrivals[NETWORK_VARIABLES];
    int batch_size;
    float *pixels;
    int32_t *labels;
    float *losses;
    float *logits;
    float loss;
    bool device_failed;
    struct joint_times times;
};

/* The device's host call: a gradient is in the strategy's buffer. */
static int gradient_ready(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;

    (void)name;
    (void)data;
    (void)count;
    return hvd_strategy_ready(arrival->joint->strategy, arrival->variable);
}

static size_t variable_bytes(int32_t variable)
{
    return (size_t)network_variables[variable].count * sizeof(float);
}

/* The strategy's callback: a variable has its new value. */
static int variable_updated(void *context, int32_t variable)
{
    struct joint *joint = context;

    int status =
        ipu_engine_write(joint->training, network_variables[variable].name,
                         joint->values[variable], variable_bytes(variable));
    if (status < 0)
        joint->device_failed = true;
    return status;
}

static int make_buffers(struct joint *joint)
{
    size_t batch = (size_t)joint->batch_size;

    joint->pixels = calloc(batch * IMAGE_PIXELS, sizeof(float));
    joint->labels = calloc(batch, sizeof(int32_t));
    joint->losses = calloc(batch, sizeof(float));
    joint->logits = calloc(batch * CLASSES, sizeof(float));
    bool missing =
        !joint->pixels || !joint->labels || !joint->losses || !joint->logits;
    for (int i = 0; i < NETWORK_VARIABLES; i++) {
        joint->values[i] =
            calloc((size_t)network_variables[i].count, sizeof(float));
        missing = missing || !joint->values[i];
    }
    return missing ? problem_set("no memory for the network") : 0;
}

/* Both programs, each loaded on an engine. */
static int make_engines(struct joint *joint)
{
    void *contexts[NETWORK_VARIABLES];

    for (int i = 0; i < NETWORK_VARIABLES; i++) {
        joint->arrivals[i] = (struct arrival){joint, i};
        contexts[i] = &joint->arrivals[i];
    }
    if (network_compile_training(joint->batch_size, gradient_ready, contexts,
                                 &joint->programs[0]) < 0 ||
        network_compile_evaluation(joint->batch_size, &joint->programs[1]) < 0)
        return PROBLEM;
    if (ipu_engine_new(joint->programs[0], &joint->training) < 0 ||
        ipu_engine_new(joint->programs[1], &joint->evaluation) < 0)
        return network_device_problem();
    return 0;
}

/* The streams both programs have, and the evaluation's outputs. */
static int connect_batches(struct joint *joint)
{
    size_t rows = (size_t)joint->batch_size;
    size_t pixels = rows * IMAGE_PIXELS * sizeof(float);
    size_t labels = rows * sizeof(int32_t);
    ipu_engine *const engines[] = {joint->training, joint->evaluation};

    for (int i = 0; i < 2; i++)
        if (ipu_engine_connect(engines[i], "images", joint->pixels, pixels) <
                0 ||
            ipu_engine_connect(engines[i], "labels", joint->labels, labels) < 0)
            return network_device_problem();
    if (ipu_engine_connect(joint->training, "loss", &joint->loss,
                           sizeof joint->loss) < 0 ||
        ipu_engine_connect(joint->evaluation, "losses", joint->losses,
                           rows * sizeof(float)) < 0 ||
        ipu_engine_connect(joint->evaluation, "logits", joint->logits,
                           rows * CLASSES * sizeof(float)) < 0)
        return network_device_problem();
    return 0;
}

static int make_strategy(struct joint *joint, const struct options *options)
{
    hvd_strategy_options settings;

    hvd_strategy_options_init(&settings, sizeof settings);
    settings.optimizer = options->optimizer;
    settings.learning_rate = options->learning_rate;
    settings.serial = options->serial;
    settings.compression = options->compression;
    settings.check_every = options->check_every;
    settings.updated = variable_updated;
    settings.context = joint;
    int status = hvd_strategy_new(&settings, &joint->strategy);
    for (int i = 0; i < NETWORK_VARIABLES && status >= 0; i++)
        status = hvd_strategy_add(joint->strategy, network_variables[i].name,
                                  joint->values[i], network_variables[i].ndim,
                                  network_variables[i].shape);
    return status < 0 ? agree_hvd_problem(status) : 0;
}

/* Everything this rank does alone. */
static int joint_build(struct joint *joint, const struct options *options)
{
    joint->batch_size = options->batch_size;
    if (ipu_set_threads(options->threads) < 0)
        return network_device_problem();
    if (make_buffers(joint) < 0 || make_engines(joint) < 0 ||
        connect_batches(joint) < 0)
        return PROBLEM;
    if (hvd_rank() == 0 &&
        (profile_start(options->profile, joint->training) < 0 ||
         profile_start(options->profile, joint->evaluation) < 0))
        return PROBLEM;
    /* Another seed on every rank: only the broadcast makes them equal. */
    network_initialize(options->seed + (uint64_t)hvd_rank(), joint->values);
    return make_strategy(joint, options);
}

/* What needs the strategy's buffers, and so comes after its start. */
static int connect_gradients(struct joint *joint)
{
    for (int i = 0; i < NETWORK_VARIABLES; i++)
        if (ipu_engine_connect(joint->training, network_variables[i].stream,
                               hvd_strategy_gradient(joint->strategy, i),
                               variable_bytes(i)) < 0 ||
            variable_updated(joint, i) < 0)
            return network_device_problem();
    return 0;
}

/* Broadcast the variables, and connect what the strategy has made. */
static int joint_start(struct joint *joint)
{
    int status = hvd_strategy_start(joint->strategy);

    if (status < 0)
        return agree_hvd_problem(status);
    return agree(connect_gradients(joint));
}

int joint_new(const struct options *options, struct joint **joint)
{
    struct joint *fresh = calloc(1, sizeof *fresh);

    int status = agree(fresh ? joint_build(fresh, options)
                             : problem_set("no memory for the network"));
    if (fresh && status == 0)
        status = joint_start(fresh);
    if (status < 0) {
        joint_free(fresh);
        fresh = NULL;
    }
    *joint = fresh;
    return status;
}

void joint_free(struct joint *joint)
{
    if (!joint)
        return;
    /* First: it may still be writing to the variables. */
    hvd_strategy_free(joint->strategy);
    ipu_engine_free(joint->training);
    ipu_engine_free(joint->evaluation);
    for (int i = 0; i < 2; i++)
        ipu_executable_free(joint->programs[i]);
    for (int i = 0; i < NETWORK_VARIABLES; i++)
        free(joint->values[i]);
    free(joint->pixels);
    free(joint->labels);
    free(joint->losses);
    free(joint->logits);
    free(joint);
}

float *joint_pixels(struct joint *joint)
{
    return joint->pixels;
}

int32_t *joint_labels(struct joint *joint)
{
    return joint->labels;
}

static double waited_seconds(const struct joint *joint)
{
    hvd_strategy_stats stats = {.size = sizeof stats};

    hvd_strategy_get_stats(joint->strategy, &stats);
    return stats.wait_seconds;
}

/* A run that failed: the library's failure, if a host call passed one on. */
static int explain_run(struct joint *joint, int status)
{
    int passed_on = ipu_engine_callback_status(joint->training);

    if (status == IPU_ERR_CALLBACK && passed_on < 0)
        return agree_hvd_problem(passed_on);
    return network_device_problem();
}

int joint_step(struct joint *joint, double *loss)
{
    double start = clock_seconds();
    int status = ipu_engine_run(joint->training);
    double ran = clock_seconds();

    joint->times.compute += ran - start;
    if (status < 0)
        return explain_run(joint, status);
    double waited = waited_seconds(joint);
    status = hvd_strategy_step(joint->strategy);
    waited = waited_seconds(joint) - waited;
    joint->times.wait += waited;
    joint->times.update += clock_seconds() - ran - waited;
    if (status < 0 && joint->device_failed)
        return network_device_problem();
    if (status < 0)
        return agree_hvd_problem(status);
    *loss = (double)joint->loss;
    return 0;
}

int joint_evaluation_start(struct joint *joint)
{
    for (int i = 0; i < NETWORK_VARIABLES; i++)
        if (ipu_engine_write(joint->evaluation, network_variables[i].name,
                             joint->values[i], variable_bytes(i)) < 0)
            return network_device_problem();
    return 0;
}

int joint_evaluation_batch(struct joint *joint, int rows, double *loss_sum,
                           double *correct)
{
    if (ipu_engine_run(joint->evaluation) < 0)
        return network_device_problem();
    for (int i = 0; i < rows; i++) {
        const float *logits = joint->logits + (size_t)i * CLASSES;
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            if (logits[k] > logits[best])
                best = k;
        *correct += best == joint->labels[i];
        *loss_sum += (double)joint->losses[i];
    }
    return 0;
}

int joint_compare_ranks(struct joint *joint, uint64_t *hash)
{
    *hash = weights_hash(joint->values);
    return agree_same("their trained weights, which should be equal", *hash);
}

int joint_profile(const struct joint *joint, const struct options *options,
                  const char *title)
{
    const struct profile_program programs[] = {
        {"training", joint->programs[0], joint->training},
        {"evaluation", joint->programs[1], joint->evaluation}};

    return profile_finish(options->profile, title, 2, programs);
}

int joint_save(const struct joint *joint, const char *path)
{
    return weights_save(path, joint->values);
}

int64_t joint_parameters(void)
{
    return network_parameters();
}

void joint_get_times(const struct joint *joint, struct joint_times *times)
{
    *times = joint->times;
}
