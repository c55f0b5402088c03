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
 * them, after each update; pipeline_exchange.c does what is described here.
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
    struct trainer *trainer;
    int32_t variable;
};

struct trainer {
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
    struct trainer_times times;
};

/* The device's host call: a gradient is in the strategy's buffer. */
static int gradient_ready(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;

    (void)name;
    (void)data;
    (void)count;
    return hvd_strategy_ready(arrival->trainer->strategy, arrival->variable);
}

/* The device comes to where it needs an average. */
static int average_wanted(void *context, const char *name, void *data,
                          int64_t count)
{
    const struct arrival *arrival = context;
    struct trainer *trainer = arrival->trainer;
    const float *average =
        hvd_strategy_gradient(trainer->strategy, arrival->variable);
    int status = 0;

    (void)name;
    if (!trainer->averaged) {
        trainer->asked_at = clock_seconds();
        status = hvd_strategy_step(trainer->strategy);
        trainer->averaged = true;
    }
    if (status >= 0 && data != average)
        memcpy(data, average, (size_t)count * sizeof(float));
    return status;
}

static size_t variable_bytes(const struct trainer *trainer, int32_t variable)
{
    return (size_t)trainer->model->variables[variable].count * sizeof(float);
}

static int make_buffers(struct trainer *trainer)
{
    size_t variables = (size_t)trainer->model->nvariables;

    trainer->values = model_values(trainer->model);
    if (!trainer->values)
        return PROBLEM;
    trainer->arrivals = calloc(variables + 1, sizeof *trainer->arrivals);
    trainer->contexts = calloc(variables + 1, sizeof *trainer->contexts);
    if (!trainer->arrivals || !trainer->contexts)
        return problem_set("no memory for the network");
    for (int i = 0; i < trainer->model->nvariables; i++) {
        trainer->arrivals[i] = (struct arrival){trainer, i};
        trainer->contexts[i] = &trainer->arrivals[i];
    }
    return 0;
}

/* What is random differs from rank to rank, as their rows do. */
static uint64_t random_seed_of(const struct trainer_options *options)
{
    return options->seed * 1000003 + (uint64_t)hvd_rank();
}

/* The batch is the evaluation's. */
static int connect_training(struct trainer *trainer)
{
    const struct model *m = trainer->model;
    const struct {
        const char *name;
        void *data;
        size_t bytes;
    } streams[] = {
        {m->input_name, trainer->evaluation.input,
         (size_t)model_input_count(m) * sizeof(float)},
        {m->label_name, trainer->evaluation.labels,
         (size_t)m->rows * sizeof(int32_t)},
        {"loss", &trainer->loss, sizeof trainer->loss},
        {"rate", &trainer->rate, sizeof trainer->rate},
    };

    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        if (ipu_engine_connect(trainer->training, streams[i].name,
                               streams[i].data, streams[i].bytes) < 0)
            return program_device_problem();
    return 0;
}

static int make_training(struct trainer *trainer,
                         const struct trainer_options *options)
{
    const struct program_exchange exchange = {gradient_ready, average_wanted,
                                              trainer->contexts};

    /* What is compressed is not what it was, for one rank either. */
    trainer->alone =
        hvd_size() == 1 && options->compression == HVD_COMPRESSION_NONE;
    if (program_training(trainer->model, &options->optimizer,
                         random_seed_of(options),
                         trainer->alone ? NULL : &exchange, options->proportion,
                         options->progress, &trainer->program) < 0)
        return PROBLEM;
    if (ipu_engine_new(trainer->program, &trainer->training) < 0)
        return program_device_problem();
    return connect_training(trainer);
}

static int make_stages(struct trainer *trainer,
                       const struct trainer_options *options)
{
    const struct stages_options stages = {.partition = options->partition,
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

    trainer->steps_at_once = options->optimizer.accumulate;
    if (stages_new(trainer->model, &stages, &trainer->stages) < 0)
        return PROBLEM;
    return stages_write(trainer->stages, trainer->values);
}

/* On as many chips as it is trained on. */
static int make_evaluation(struct trainer *trainer,
                           const struct trainer_options *options)
{
    int chips = options->partition.stages > 0 ? options->partition.stages : 1;

    int status = evaluation_init(&trainer->evaluation, trainer->model, chips,
                                 options->proportion, options->progress);

    return status < 0 && chips > 1
               ? problem_set("the evaluation, on %d IPUs: %s", chips,
                             problem_text())
               : status;
}

static int make_strategy(struct trainer *trainer,
                         const struct trainer_options *options)
{
    hvd_strategy_options settings;

    hvd_strategy_options_init(&settings, sizeof settings);
    settings.optimizer = HVD_NO_OPTIMIZER;
    settings.serial = options->serial;
    settings.compression = options->compression;
    settings.check_every = options->check_every;
    int status = hvd_strategy_new(&settings, &trainer->strategy);
    for (int i = 0; i < trainer->model->nvariables && status >= 0; i++) {
        const struct model_variable *v = &trainer->model->variables[i];
        status = hvd_strategy_add(trainer->strategy, v->name,
                                  trainer->values[i], v->ndim, v->shape);
    }
    return status < 0 ? agree_hvd_problem(status) : 0;
}

static int first_values(struct trainer *trainer,
                        const struct trainer_options *options)
{
    /* Another seed on every rank: only the broadcast makes them equal. */
    model_initialize(trainer->model, options->seed + (uint64_t)hvd_rank(),
                     trainer->values);
    if (!options->load || hvd_rank() != 0)
        return 0;
    return weights_load(options->load, trainer->model, trainer->values);
}

/* One program, and the strategy that averages its gradients. */
static int build_training(struct trainer *trainer,
                          const struct trainer_options *options)
{
    if (make_training(trainer, options) < 0)
        return PROBLEM;
    if (hvd_rank() == 0 &&
        profile_start(options->profile, trainer->training) < 0)
        return PROBLEM;
    return make_strategy(trainer, options);
}

/* Everything this rank does alone. */
static int trainer_build(struct trainer *trainer,
                         const struct trainer_options *options)
{
    bool partition = options->partition.stages > 0;

    trainer->steps_at_once = 1;
    if (ipu_set_threads(partition ? 1 : options->threads) < 0)
        return program_device_problem();
    /* Stages first: where they do not fit, theirs is the text that helps. */
    if (make_buffers(trainer) < 0 || first_values(trainer, options) < 0 ||
        (partition && make_stages(trainer, options) < 0) ||
        make_evaluation(trainer, options) < 0)
        return PROBLEM;
    if (hvd_rank() == 0 &&
        profile_start(options->profile, trainer->evaluation.engine) < 0)
        return PROBLEM;
    return partition ? 0 : build_training(trainer, options);
}

static int place_gradient(struct trainer *trainer, int variable)
{
    return trainer->alone
               ? IPU_OK
               : ipu_engine_place(
                     trainer->training,
                     trainer->model->variables[variable].stream,
                     hvd_strategy_gradient(trainer->strategy, variable),
                     variable_bytes(trainer, variable));
}

/* What needs the strategy's buffers, and so comes after its start. */
static int place_tensors(struct trainer *trainer)
{
    for (int i = 0; i < trainer->model->nvariables; i++)
        if (place_gradient(trainer, i) < 0 ||
            ipu_engine_place(
                trainer->training, trainer->model->variables[i].name,
                trainer->values[i], variable_bytes(trainer, i)) < 0)
            return program_device_problem();
    return 0;
}

/* Broadcast the variables, and place what the strategy has made. */
static int trainer_start(struct trainer *trainer)
{
    int status;

    if (trainer->stages) {
        status = stages_start(trainer->stages);
        if (status == 0)
            status = agree(stages_read(trainer->stages, trainer->values));
    } else {
        status = hvd_strategy_start(trainer->strategy);
        status = status < 0 ? agree_hvd_problem(status)
                            : agree(place_tensors(trainer));
    }
    if (status < 0)
        return status;
    return agree(evaluation_place(&trainer->evaluation, trainer->values));
}

int trainer_new(struct model *model, const struct trainer_options *options,
                struct trainer **trainer)
{
    struct trainer *fresh = calloc(1, sizeof *fresh);
    int status = PROBLEM; /* of who made no model, and has said why */

    if (fresh && model) {
        fresh->model = model;
        status = trainer_build(fresh, options);
    } else if (model) {
        status = problem_set("no memory for the network");
        model_free(model);
    }
    status = agree(status);
    if (fresh && fresh->values && status == 0)
        status = trainer_start(fresh);
    if (status < 0) {
        trainer_free(fresh);
        fresh = NULL;
    }
    *trainer = fresh;
    return status;
}

void trainer_free(struct trainer *trainer)
{
    if (!trainer)
        return;
    /* First: it may still be writing to the variables. */
    hvd_strategy_free(trainer->strategy);
    stages_free(trainer->stages);
    ipu_engine_free(trainer->training);
    ipu_executable_free(trainer->program);
    evaluation_fini(&trainer->evaluation);
    if (trainer->model)
        model_values_free(trainer->model, trainer->values);
    model_free(trainer->model);
    free(trainer->arrivals);
    free(trainer->contexts);
    free(trainer);
}

void *trainer_input(struct trainer *trainer)
{
    return trainer->evaluation.input;
}

int32_t *trainer_labels(struct trainer *trainer)
{
    return trainer->evaluation.labels;
}

static double waited_seconds(const struct trainer *trainer)
{
    hvd_strategy_stats stats = {.size = sizeof stats};

    hvd_strategy_get_stats(trainer->strategy, &stats);
    return stats.wait_seconds;
}

/* A run that failed: the library's failure, if a host call passed one on. */
static int explain_run(struct trainer *trainer, int status)
{
    int passed_on = ipu_engine_callback_status(trainer->training);

    if (status == IPU_ERR_CALLBACK && passed_on < 0)
        return agree_hvd_problem(passed_on);
    return program_device_problem();
}

/* Its weights are in the IPUs: the host gets a copy. */
static int update_stages(struct trainer *trainer, double rate, double *loss)
{
    double start = clock_seconds(), waited = trainer->times.wait;
    int status = stages_update(trainer->stages, rate, loss);

    if (status == 0)
        status = stages_read(trainer->stages, trainer->values);
    trainer->times.wait = stages_wait_seconds(trainer->stages);
    trainer->times.compute +=
        clock_seconds() - start - (trainer->times.wait - waited);
    return status;
}

int trainer_steps(const struct trainer *trainer)
{
    return trainer->steps_at_once;
}

int trainer_step(struct trainer *trainer, double rate, double *loss)
{
    if (trainer->stages)
        return update_stages(trainer, rate, loss);
    double start = clock_seconds(), waited = waited_seconds(trainer);
    int status;

    trainer->rate = (float)rate;
    trainer->averaged = false;
    trainer->asked_at = start;
    status = ipu_engine_run(trainer->training);
    double end = clock_seconds();
    if (!trainer->averaged) /* gradients were accumulated only */
        trainer->asked_at = end;
    waited = waited_seconds(trainer) - waited;
    trainer->times.wait += waited;
    trainer->times.compute += trainer->asked_at - start;
    trainer->times.update += end - trainer->asked_at - waited;
    if (status < 0)
        return explain_run(trainer, status);
    *loss = (double)trainer->loss;
    return 0;
}

int trainer_evaluate(struct trainer *trainer, int64_t rows, double *loss_sum,
                     double *correct)
{
    int status = evaluation_run(&trainer->evaluation);

    if (status == 0)
        evaluation_add(&trainer->evaluation, rows, loss_sum, correct);
    return status;
}

float *const *trainer_values(const struct trainer *trainer)
{
    return trainer->values;
}

int trainer_compare_ranks(struct trainer *trainer, uint64_t *hash)
{
    *hash = weights_hash(trainer->model, trainer->values);
    return agree_same("their trained weights, which should be equal", *hash);
}

int64_t trainer_parameters(const struct trainer *trainer)
{
    return model_parameters(trainer->model);
}

int trainer_save(const struct trainer *trainer, const char *path)
{
    return weights_save(path, trainer->model, trainer->values);
}

int trainer_profile(const struct trainer *trainer, const char *where,
                    const char *title)
{
    const struct profile_program programs[] = {
        {"training", trainer->program, trainer->training,
         trainer->stages ? stages_pipeline(trainer->stages) : NULL},
        {"evaluation", trainer->evaluation.program, trainer->evaluation.engine,
         NULL}};

    return profile_finish(where, title, 2, programs);
}

int trainer_partition_stats(const struct trainer *trainer,
                            struct partition_stats *stats)
{
    return trainer->stages ? stages_stats(trainer->stages, stats)
                           : problem_set("there is no pipeline");
}

void trainer_get_times(const struct trainer *trainer,
                       struct trainer_times *times)
{
    *times = trainer->times;
}
