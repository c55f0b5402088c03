/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one file that sees both hvd*.h and ipu.h.
 *
 *          device, one run                     strategy
 *     backward pass computes gradient v
 *       where the strategy's buffer is
 *     host call "gradient/v"        ------>  hvd_strategy_ready(v)
 *     ... backward pass goes on               averaged meanwhile, in place
 *     receive "average/..."         ------>  hvd_strategy_step: waits for all
 *     optimiser, on averages and
 *       variables where they are
 *
 * ipu_engine_place puts gradients into the strategy's buffers and variables
 * into memory of the host, where the strategy broadcast and compares them and
 * evaluation finds them. Under IPU_POISON what a receive gives has memory of
 * its own, and average_wanted copies.
 *
 * A rank that is alone averages nothing: its program has neither host calls nor
 * receives, which would cost the chip more than all else that it does, and the
 * strategy only compares and keeps what there is.
 *
 * All averages are awaited at the first receive: the optimiser may not write
 * a variable as long as something may fail.
 *
 * With stages it is the pipeline that has the variables, and the host a copy of
 * them, after each update; joint_pipeline.c does what is described here.
 *
 * What hvd_strategy_ready or _step returns ends the device's run and comes
 * back through ipu_engine_callback_status.
 */
#include "trainer/trainer.h"

#include "command/agree.h"
#include "model/weights.h"
#include "output/clock.h"
#include "output/problem.h"
#include "output/profile.h"
#include "trainer/evaluation.h"
#include "trainer/program.h"
#include "trainer/stages.h"

#include <hvd_strategy.h>
#include <stdlib.h>
#include <string.h>

/* What the host's functions of one gradient are told. */
struct arrival {
    struct joint *joint;
    int32_t variable;
};

struct joint {
    struct model *model;   /* owned */
    struct stages *stages; /* NULL: program and training are in its place */
    int steps_at_once;
    hvd_strategy *strategy; /* NULL with stages, which have their own */
    ipu_executable *program;
    ipu_engine *training;
    struct evaluation evaluation; /* which has the batch */
    float **values;               /* owned, [variables], each owned */
    struct arrival *arrivals;
    void **contexts;
    bool alone; /* gradients stay on the device */
    float loss, rate;
    bool averaged;   /* in this step */
    double asked_at; /* for averages, in this step */
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

/* The device comes to where it needs an average. */
static int average_wanted(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;
    struct joint *joint = arrival->joint;
    const float *average =
        hvd_strategy_gradient(joint->strategy, arrival->variable);
    int status = 0;

    (void)name;
    if (!joint->averaged) {
        joint->asked_at = clock_seconds();
        status = hvd_strategy_step(joint->strategy);
        joint->averaged = true;
    }
    if (status >= 0 && data != average)
        memcpy(data, average, (size_t)count * sizeof(float));
    return status;
}

static size_t variable_bytes(const struct joint *joint, int32_t variable)
{
    return (size_t)joint->model->variables[variable].count * sizeof(float);
}

static int make_buffers(struct joint *joint)
{
    size_t variables = (size_t)joint->model->nvariables;

    joint->values = model_values(joint->model);
    if (!joint->values)
        return PROBLEM;
    joint->arrivals = calloc(variables + 1, sizeof *joint->arrivals);
    joint->contexts = calloc(variables + 1, sizeof *joint->contexts);
    if (!joint->arrivals || !joint->contexts)
        return problem_set("no memory for the network");
    for (int i = 0; i < joint->model->nvariables; i++) {
        joint->arrivals[i] = (struct arrival){joint, i};
        joint->contexts[i] = &joint->arrivals[i];
    }
    return 0;
}

/* What is random differs from rank to rank, as their rows do. */
static uint64_t random_seed_of(const struct joint_options *options)
{
    return options->seed * 1000003 + (uint64_t)hvd_rank();
}

/* The batch is the evaluation's. */
static int connect_training(struct joint *joint)
{
    const struct model *m = joint->model;
    const struct {
        const char *name;
        void *data;
        size_t bytes;
    } streams[] = {
        {m->input_name, joint->evaluation.input,
         (size_t)model_input_count(m) * sizeof(float)},
        {m->label_name, joint->evaluation.labels,
         (size_t)m->rows * sizeof(int32_t)},
        {"loss", &joint->loss, sizeof joint->loss},
        {"rate", &joint->rate, sizeof joint->rate},
    };

    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (ipu_engine_connect(joint->training, streams[i].name,
                               streams[i].data, streams[i].bytes) < 0)
            return program_device_problem();
    return 0;
}

static int make_training(struct joint *joint,
                         const struct joint_options *options)
{
    const struct program_exchange exchange = {gradient_ready, average_wanted,
                                              joint->contexts};

    /* What is compressed is not what it was, for one rank either. */
    joint->alone =
        hvd_size() == 1 && options->compression == HVD_COMPRESSION_NONE;
    if (program_training(joint->model, &options->optimizer,
                         random_seed_of(options),
                         joint->alone ? NULL : &exchange, options->proportion,
                         options->progress, &joint->program) < 0)
        return PROBLEM;
    if (ipu_engine_new(joint->program, &joint->training) < 0)
        return program_device_problem();
    return connect_training(joint);
}

static int make_stages(struct joint *joint, const struct joint_options *options)
{
    const struct stages_options stages = {.cut = options->cut,
                                          .optimizer = options->optimizer,
                                          .seed = random_seed_of(options),
                                          .threads = options->threads,
                                          .proportion = options->proportion,
                                          .record = options->profile &&
                                                    hvd_rank() == 0,
                                          .fill = options->fill,
                                          .fill_context = options->fill_context,
                                          .compression = options->compression,
                                          .serial = options->serial,
                                          .check_every = options->check_every};

    joint->steps_at_once = options->optimizer.accumulate;
    if (stages_new(joint->model, &stages, &joint->stages) < 0)
        return PROBLEM;
    return stages_write(joint->stages, joint->values);
}

/* On as many chips as it is trained on. */
static int make_evaluation(struct joint *joint,
                           const struct joint_options *options)
{
    int chips = options->cut.stages > 0 ? options->cut.stages : 1;

    int status = evaluation_init(&joint->evaluation, joint->model, chips,
                                 options->proportion, options->progress);

    return status < 0 && chips > 1
               ? problem_set("the evaluation, on %d IPUs: %s", chips,
                             problem_text())
               : status;
}

static int make_strategy(struct joint *joint,
                         const struct joint_options *options)
{
    hvd_strategy_options settings;

    hvd_strategy_options_init(&settings, sizeof settings);
    settings.optimizer = HVD_NO_OPTIMIZER;
    settings.serial = options->serial;
    settings.compression = options->compression;
    settings.check_every = options->check_every;
    int status = hvd_strategy_new(&settings, &joint->strategy);
    for (int i = 0; i < joint->model->nvariables && status >= 0; i++) {
        const struct model_variable *v = &joint->model->variables[i];
        status = hvd_strategy_add(joint->strategy, v->name, joint->values[i],
                                  v->ndim, v->shape);
    }
    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int first_values(struct joint *joint,
                        const struct joint_options *options)
{
    /* Another seed on every rank: only the broadcast makes them equal. */
    model_initialize(joint->model, options->seed + (uint64_t)hvd_rank(),
                     joint->values);
    if (!options->load || hvd_rank() != 0)
        return 0;
    return weights_load(options->load, joint->model, joint->values);
}

/* One program, and the strategy that averages its gradients. */
static int build_training(struct joint *joint,
                          const struct joint_options *options)
{
    if (make_training(joint, options) < 0)
        return PROBLEM;
    if (hvd_rank() == 0 && profile_start(options->profile, joint->training) < 0)
        return PROBLEM;
    return make_strategy(joint, options);
}

/* Everything this rank does alone. */
static int joint_build(struct joint *joint, const struct joint_options *options)
{
    bool cut = options->cut.stages > 0;

    joint->steps_at_once = 1;
    if (ipu_set_threads(cut ? 1 : options->threads) < 0)
        return program_device_problem();
    /* Stages first: where they do not fit, theirs is the text that helps. */
    if (make_buffers(joint) < 0 || first_values(joint, options) < 0 ||
        (cut && make_stages(joint, options) < 0) ||
        make_evaluation(joint, options) < 0)
        return PROBLEM;
    if (hvd_rank() == 0 &&
        profile_start(options->profile, joint->evaluation.engine) < 0)
        return PROBLEM;
    return cut ? 0 : build_training(joint, options);
}

static int place_gradient(struct joint *joint, int variable)
{
    return joint->alone
               ? IPU_OK
               : ipu_engine_place(
                     joint->training, joint->model->variables[variable].stream,
                     hvd_strategy_gradient(joint->strategy, variable),
                     variable_bytes(joint, variable));
}

/* What needs the strategy's buffers, and so comes after its start. */
static int place_tensors(struct joint *joint)
{
    for (int i = 0; i < joint->model->nvariables; i++)
        if (place_gradient(joint, i) < 0 ||
            ipu_engine_place(joint->training, joint->model->variables[i].name,
                             joint->values[i], variable_bytes(joint, i)) < 0)
            return program_device_problem();
    return 0;
}

/* Broadcast the variables, and place what the strategy has made. */
static int joint_start(struct joint *joint)
{
    int status;

    if (joint->stages) {
        status = stages_start(joint->stages);
        if (status == 0)
            status = agree(stages_read(joint->stages, joint->values));
    } else {
        status = hvd_strategy_start(joint->strategy);
        status = status < 0 ? agree_hvd_problem(status)
                            : agree(place_tensors(joint));
    }
    if (status < 0)
        return status;
    return agree(evaluation_place(&joint->evaluation, joint->values));
}

int joint_new(struct model *model, const struct joint_options *options,
              struct joint **joint)
{
    struct joint *fresh = calloc(1, sizeof *fresh);
    int status = PROBLEM; /* of who made no model, and has said why */

    if (fresh && model) {
        fresh->model = model;
        status = joint_build(fresh, options);
    } else if (model) {
        status = problem_set("no memory for the network");
        model_free(model);
    }
    status = agree(status);
    if (fresh && fresh->values && status == 0)
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
    stages_free(joint->stages);
    ipu_engine_free(joint->training);
    ipu_executable_free(joint->program);
    evaluation_fini(&joint->evaluation);
    if (joint->model)
        model_values_free(joint->model, joint->values);
    model_free(joint->model);
    free(joint->arrivals);
    free(joint->contexts);
    free(joint);
}

void *joint_input(struct joint *joint)
{
    return joint->evaluation.input;
}

int32_t *joint_labels(struct joint *joint)
{
    return joint->evaluation.labels;
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
    return program_device_problem();
}

/* Its weights are in the IPUs: the host gets a copy. */
static int update_stages(struct joint *joint, double rate, double *loss)
{
    double start = clock_seconds(), waited = joint->times.wait;
    int status = stages_update(joint->stages, rate, loss);

    if (status == 0)
        status = stages_read(joint->stages, joint->values);
    joint->times.wait = stages_wait_seconds(joint->stages);
    joint->times.compute +=
        clock_seconds() - start - (joint->times.wait - waited);
    return status;
}

int joint_steps(const struct joint *joint)
{
    return joint->steps_at_once;
}

int joint_step(struct joint *joint, double rate, double *loss)
{
    if (joint->stages)
        return update_stages(joint, rate, loss);
    double start = clock_seconds(), waited = waited_seconds(joint);
    int status;

    joint->rate = (float)rate;
    joint->averaged = false;
    joint->asked_at = start;
    status = ipu_engine_run(joint->training);
    double end = clock_seconds();
    if (!joint->averaged) /* gradients were accumulated only */
        joint->asked_at = end;
    waited = waited_seconds(joint) - waited;
    joint->times.wait += waited;
    joint->times.compute += joint->asked_at - start;
    joint->times.update += end - joint->asked_at - waited;
    if (status < 0)
        return explain_run(joint, status);
    *loss = (double)joint->loss;
    return 0;
}

int joint_evaluate(struct joint *joint, int64_t rows, double *loss_sum,
                   double *correct)
{
    int status = evaluation_run(&joint->evaluation);

    if (status == 0)
        evaluation_add(&joint->evaluation, rows, loss_sum, correct);
    return status;
}

float *const *joint_values(const struct joint *joint)
{
    return joint->values;
}

int joint_compare_ranks(struct joint *joint, uint64_t *hash)
{
    *hash = weights_hash(joint->model, joint->values);
    return agree_same("their trained weights, which should be equal", *hash);
}

int64_t joint_parameters(const struct joint *joint)
{
    return model_parameters(joint->model);
}

int joint_save(const struct joint *joint, const char *path)
{
    return weights_save(path, joint->model, joint->values);
}

int joint_profile(const struct joint *joint, const char *where,
                  const char *title)
{
    const struct profile_program programs[] = {
        {"training", joint->program, joint->training,
         joint->stages ? stages_pipeline(joint->stages) : NULL},
        {"evaluation", joint->evaluation.program, joint->evaluation.engine,
         NULL}};

    return profile_finish(where, title, 2, programs);
}

int joint_cut_stats(const struct joint *joint, struct cut_stats *stats)
{
    return joint->stages ? stages_stats(joint->stages, stats)
                         : problem_set("there is no pipeline");
}

void joint_get_times(const struct joint *joint, struct joint_times *times)
{
    *times = joint->times;
}
