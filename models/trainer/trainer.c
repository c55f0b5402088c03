/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.c - the part of a trainer that is the same for all backends: the
 * values of the variables on the host, which evaluation reads in place, and the
 * evaluation's program.
 *
 * Statistics have two places: what this rank's devices made of them, and their
 * means over all ranks, which are among the values; the exchange fills these
 * when they are read.
 *
 * trainer_new chooses the backend; no other function depends on the kind of
 * backend. The values are valid after the start of the backend and after each
 * of its updates. All ranks agree on errors that only one of them can find
 * before the first collective call.
 */
#include "trainer/trainer.h"

#include "model/weights.h"
#include "output/problem.h"
#include "output/profile.h"
#include "trainer/agree.h"
#include "trainer/backend_state.h"
#include "trainer/evaluation.h"
#include "trainer/model_backend.h"
#include "trainer/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct trainer {
    struct model *model;     /* owned */
    float **values;          /* owned, [variables], each owned */
    float **own;             /* owned, [statistics], each owned: this rank's */
    struct backend *backend; /* owned; NULL: it only evaluates */
    struct evaluation evaluation;
    struct evaluation prediction; /* made when it is needed first */
    float *const *shown; /* borrowed: what evaluations use; NULL: values */
    float *kept;         /* owned: the statistics; NULL: none */
    double proportion;
    int replicas;
    bool keeps;     /* gradients come to the host */
    bool serves;    /* there are parameter servers, as the next one */
    bool stopped;   /* and they do not serve now */
    bool lags;      /* they do not wait for all workers */
    bool networked; /* gradients take the devices' network */
    bool cycled;    /* likewise of optimizer_settings */
};

/* Has the model be that of the graphs in a folder: its variables are theirs.
 * Sets path, of PATH_MAX bytes, to the file with their first values. */
static int adopt_graphs(struct model *model, const char *folder, char *path)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, PROGRAM_WEIGHTS) >= PATH_MAX)
        return problem_set("--graphs %s: the path is too long", folder);
    model->graphs = folder;
    return weights_adopt(path, model);
}

static int draw_values(struct trainer *trainer,
                       const struct trainer_options *options)
{
    char first[PATH_MAX];
    const char *load = options->graphs ? first : options->load;

    if (options->graphs &&
        adopt_graphs(trainer->model, options->graphs, first) < 0)
        return PROBLEM;
    trainer->values = model_values(trainer->model);
    if (!trainer->values)
        return PROBLEM;
    /* Another seed on every rank: only the broadcast makes them equal. */
    model_initialize(trainer->model, options->seed + (uint64_t)options->rank,
                     trainer->values);
    if (!load || options->rank != 0)
        return 0;
    return weights_load(load, trainer->model, trainer->values);
}

/* Each statistic begins on every rank with the value that rank 0 has. */
static int make_own(struct trainer *trainer)
{
    const struct model *m = trainer->model;
    int count = model_statistics(m);

    trainer->own = calloc((size_t)count + 1, sizeof *trainer->own);
    for (int i = 0; i < count && trainer->own; i++) {
        size_t bytes =
            (size_t)m->variables[m->trained + i].count * sizeof(float);

        trainer->own[i] = model_memory(bytes);
        if (!trainer->own[i])
            return problem_set("no memory for the network's statistics");
        memcpy(trainer->own[i], trainer->values[m->trained + i], bytes);
    }
    return trainer->own ? 0
                        : problem_set("no memory for the network's statistics");
}

static void free_own(struct trainer *trainer)
{
    int count = trainer->own ? model_statistics(trainer->model) : 0;

    for (int i = 0; i < count; i++)
        free(trainer->own[i]);
    free(trainer->own);
}

/* The evaluation takes as many chips as the training, if there is one. */
static int make_evaluation(struct trainer *trainer,
                           const struct trainer_options *options)
{
    int stages = options->partition.stages;
    int chips = options->evaluates ? EVALUATION_ON_HOST
                : stages > 0       ? stages
                                   : 1;
    int status = evaluation_init(&trainer->evaluation, trainer->model, chips,
                                 false, options->proportion, options->progress);

    if (status < 0)
        return chips > 1 ? problem_set("the evaluation, on %d IPUs: %s", chips,
                                       problem_text())
                         : status;
    return options->rank == 0
               ? profile_start(options->profile, trainer->evaluation.engine)
               : 0;
}

/* Rows differ from rank to rank, and so does what is random. */
static uint64_t seed_of(const struct trainer_options *options)
{
    return options->seed * 1000003 + (uint64_t)options->rank;
}

/* Does everything that this rank does without the others. */
static int build_trainer(struct trainer *trainer,
                         const struct trainer_options *options)
{
    const bool staged = options->partition.stages > 0 && !options->evaluates;
    const struct model_backend of = {.model = trainer->model,
                                     .options = options,
                                     .seed = seed_of(options),
                                     .record =
                                         options->profile && options->rank == 0,
                                     .values = trainer->values,
                                     .own = trainer->own};
    int status = 0;

    if (ipu_set_threads(staged ? 1 : options->threads) < 0)
        return program_device_problem();
    /* Stages first: if they do not fit, their text is the one that helps. */
    if (staged) {
        hvd_progress_phase(options->progress, "compiling the stages", 0, 0,
                           NULL);
        status = stages_new(&of, &trainer->backend);
    }
    if (status == 0)
        status = make_evaluation(trainer, options);
    if (status == 0 && !staged && !options->evaluates)
        status = (options->replicas > 1 ? mirrored_new
                                        : single_new)(&of, &trainer->backend);
    return status;
}

/* Broadcasts the variables. */
static int start_trainer(struct trainer *trainer)
{
    struct backend *b = trainer->backend;
    int status = b ? b->functions->start(b) : 0;

    if (status < 0)
        return status;
    return agree(evaluation_place(&trainer->evaluation, trainer->values));
}

/* Returns the problem of a failed build: that of the world, if its end is what
 * has stopped it. */
static int build_problem(const struct trainer_options *options, int status)
{
    int ended = hvd_progress_check(options->progress);

    return ended < 0 ? ended : status;
}

/* A pipeline has other variables than the model, and a graph from a file calls
 * the host as it was saved. */
static bool keeps_gradients(const struct trainer_options *options)
{
    return options->keep_gradients && !options->graphs &&
           options->partition.stages == 0 &&
           options->strategy != STRATEGY_DEVICE_COLLECTIVE;
}

int trainer_new(struct model *model, const struct trainer_options *options,
                struct trainer **trainer)
{
    struct trainer *fresh = calloc(1, sizeof *fresh);
    int status = PROBLEM; /* a rank without a model has kept the text */

    if (fresh && model) {
        fresh->model = model;
        fresh->proportion = options->proportion;
        fresh->replicas = options->replicas;
        fresh->keeps = keeps_gradients(options);
        fresh->serves = options->servers.count > 0;
        fresh->lags = options->servers.backups > 0;
        fresh->networked = options->strategy == STRATEGY_DEVICE_COLLECTIVE;
        fresh->cycled = options->optimizer.cycled;
        status = draw_values(fresh, options);
        if (status == 0)
            status = make_own(fresh);
        if (status == 0)
            status = build_trainer(fresh, options);
        if (status < 0)
            status = build_problem(options, status);
    } else if (model) {
        status = problem_set("no memory for the network");
        model_free(model);
    }
    status = agree(status);
    if (fresh && status == 0)
        status = start_trainer(fresh);
    if (status < 0) {
        trainer_free(fresh);
        fresh = NULL;
    }
    *trainer = fresh;
    return status;
}

/* Writes the first values that rank 0 has. */
static int export_values(const struct model *model,
                         const struct trainer_options *options,
                         const char *folder)
{
    char path[PATH_MAX];
    float **values = model_values(model);
    int status = 0;

    if (!values)
        return PROBLEM;
    model_initialize(model, options->seed, values);
    if (options->load)
        status = weights_load(options->load, model, values);
    if (status == 0 &&
        snprintf(path, PATH_MAX, "%s/%s", folder, PROGRAM_WEIGHTS) >= PATH_MAX)
        status = problem_set("%s: the path is too long", folder);
    if (status == 0)
        status = weights_save(path, model, values);
    model_values_free(model, values);
    return status;
}

int trainer_export(struct model *model, const struct trainer_options *options,
                   int nranks, const char *folder)
{
    int status = model ? export_values(model, options, folder) : PROBLEM;

    if (status == 0)
        status = program_save_training(model, &options->optimizer,
                                       seed_of(options), nranks > 1, folder);
    if (status == 0)
        status = program_save_evaluation(model, folder);
    model_free(model);
    return status;
}

void trainer_free(struct trainer *trainer)
{
    if (!trainer)
        return;
    /* First: its exchange may still be writing to the variables. */
    backend_free(trainer->backend);
    evaluation_fini(&trainer->evaluation);
    evaluation_fini(&trainer->prediction);
    free_own(trainer);
    free(trainer->kept);
    if (trainer->model)
        model_values_free(trainer->model, trainer->values);
    model_free(trainer->model);
    free(trainer);
}

struct exchange_settings trainer_exchange(const struct trainer_options *options)
{
    return (struct exchange_settings){
        .compression = options->compression,
        .check_every = options->check_every,
        .serial = options->serial,
        .servers = options->servers.count > 0 ? &options->servers : NULL,
        .on_host = options->variables_on_host,
        .keeps = keeps_gradients(options),
        .optimizer = options->optimizer.optimizer,
        .weight_decay = options->optimizer.weight_decay,
    };
}

void trainer_stop(struct trainer *trainer)
{
    if (!trainer->serves || trainer->stopped)
        return;
    trainer->backend->exchange->functions->stop(trainer->backend->exchange);
    trainer->stopped = true;
}

int trainer_start(struct trainer *trainer)
{
    if (!trainer->stopped)
        return 0;
    trainer->stopped = false;
    return trainer->backend->functions->start(trainer->backend);
}

/* Writes the first count variables to all devices of this rank. */
static int write_values(struct trainer *trainer, int count)
{
    struct backend *b = trainer->backend;
    int status = 0;

    for (int i = 0; b && i < count && status == 0; i++) {
        const struct model_variable *v = &trainer->model->variables[i];

        status = b->functions->write(b, v->name, trainer->values[i],
                                     (size_t)v->count * sizeof(float));
    }
    return status;
}

int trainer_settle(struct trainer *trainer)
{
    struct exchange *x = trainer->backend->exchange;
    int status = 0;

    if (x && x->functions->settle && !trainer->stopped) {
        status = x->functions->settle(x);
        if (status == 0)
            status = write_values(trainer, trainer->model->trained);
    }
    return status < 0 ? status : trainer_read_statistics(trainer);
}

int trainer_meet(struct trainer *trainer)
{
    return trainer->lags ? trainer_settle(trainer) : 0;
}

int trainer_read_statistics(struct trainer *trainer)
{
    struct backend *b = trainer->backend;
    int status = 0;

    if (model_statistics(trainer->model) == 0 || trainer->stopped)
        return 0;
    if (b->functions->collect)
        status = agree(b->functions->collect(b));
    return status < 0 ? status
                      : b->exchange->functions->read_statistics(b->exchange);
}

void trainer_seek(struct trainer *trainer, int64_t steps)
{
    if (trainer->backend->source)
        trainer->backend->source->next = steps * trainer->replicas;
}

int trainer_steps(const struct trainer *trainer)
{
    return trainer->backend ? trainer->backend->steps : 1;
}

/* Has the other ranks not wait for gradients that will not come. The text of
 * the failure stays. */
static void abandon_step(struct trainer *trainer)
{
    struct exchange *x = trainer->backend->exchange;
    char why[1024];

    if (!x || x->alone || x->problem || trainer->networked)
        return;
    snprintf(why, sizeof why, "%s", problem_text());
    x->functions->abandon(x, why);
    problem_set("%s", why);
}

int trainer_step(struct trainer *trainer, double rate, double *loss)
{
    int status =
        trainer->backend->functions->update(trainer->backend, rate, loss);

    if (status < 0)
        abandon_step(trainer);
    return status;
}

struct trainer_nonfinite trainer_nonfinite(const struct trainer *trainer)
{
    return trainer->backend->nonfinite;
}

void trainer_set_momentum(struct trainer *trainer, double momentum)
{
    struct backend *b = trainer->backend;

    if (!trainer->cycled)
        return;
    b->momentum = (float)momentum;
    if (b->exchange)
        b->exchange->momentum = momentum;
}

void trainer_set_scale(struct trainer *trainer, double scale)
{
    trainer->backend->scale = (float)scale;
}

/* Copies the statistics of all devices to what is kept, or back. Returns the
 * elements. */
static int64_t copy_statistics(struct trainer *trainer, bool back)
{
    const struct model *m = trainer->model;
    const struct backend *b = trainer->backend;
    const int count = model_statistics(m);
    int64_t elements = 0;

    for (int i = 0; i < b->nstatistics; i++) {
        const int64_t n = m->variables[m->trained + i % count].count;

        if (trainer->kept)
            memcpy(back ? b->statistics[i] : trainer->kept + elements,
                   back ? trainer->kept + elements : b->statistics[i],
                   (size_t)n * sizeof(float));
        elements += n;
    }
    return elements;
}

int trainer_keep_statistics(struct trainer *trainer)
{
    if (trainer->backend->nstatistics == 0)
        return 0;
    if (!trainer->kept)
        trainer->kept = model_memory((size_t)copy_statistics(trainer, false) *
                                     sizeof(float));
    if (!trainer->kept)
        return problem_set("no memory for the network's statistics");
    copy_statistics(trainer, false);
    return 0;
}

void trainer_revert_statistics(struct trainer *trainer)
{
    if (trainer->kept)
        copy_statistics(trainer, true);
}

int trainer_evaluate(struct trainer *trainer, fill_test_fn *fill, void *context,
                     visit_batch_fn *visit, void *visit_context,
                     double *loss_sum, double *correct)
{
    return evaluation_measure(&trainer->evaluation, fill, context, visit,
                              visit_context, loss_sum, correct);
}

static float *const *shown(const struct trainer *trainer)
{
    return trainer->shown ? trainer->shown : trainer->values;
}

int trainer_show(struct trainer *trainer, float *const *values)
{
    int status = 0;

    if (trainer->shown == values)
        return 0;
    trainer->shown = values;
    status = evaluation_place(&trainer->evaluation, shown(trainer));
    if (status == 0 && trainer->prediction.program)
        status = evaluation_place(&trainer->prediction, shown(trainer));
    return status;
}

static int make_prediction(struct trainer *trainer)
{
    int status =
        evaluation_init(&trainer->prediction, trainer->model,
                        EVALUATION_ON_HOST, true, trainer->proportion, NULL);

    if (status == 0)
        status = evaluation_place(&trainer->prediction, shown(trainer));
    if (status < 0)
        evaluation_fini(&trainer->prediction);
    return status;
}

int trainer_visit(struct trainer *trainer, bool predicts, fill_test_fn *fill,
                  void *context, visit_batch_fn *visit, void *visit_context)
{
    if (predicts && !trainer->prediction.program &&
        make_prediction(trainer) < 0)
        return PROBLEM;
    return evaluation_visit(predicts ? &trainer->prediction
                                     : &trainer->evaluation,
                            fill, context, visit, visit_context);
}

/* ---------------------------------------------------------------- the state */

int trainer_states(const struct trainer *trainer, struct trainer_state **states)
{
    *states = NULL;
    return trainer->backend
               ? backend_states(trainer->backend, trainer->model, states)
               : 0;
}

int trainer_state_read(struct trainer *trainer, void *const *data)
{
    int status = trainer->backend ? backend_state_read(trainer->backend,
                                                       trainer->model, data)
                                  : 0;

    return status < 0 ? status : write_values(trainer, trainer->model->trained);
}

int trainer_state_write(struct trainer *trainer, const void *const *data)
{
    return trainer->backend
               ? backend_state_write(trainer->backend, trainer->model, data)
               : 0;
}

int trainer_write_values(struct trainer *trainer)
{
    const struct model *m = trainer->model;

    for (int i = m->trained; i < m->nvariables; i++)
        memcpy(trainer->own[i - m->trained], trainer->values[i],
               (size_t)m->variables[i].count * sizeof(float));
    return write_values(trainer, m->nvariables);
}

const struct model *trainer_model(const struct trainer *trainer)
{
    return trainer->model;
}

float *const *trainer_values(const struct trainer *trainer)
{
    return trainer->values;
}

const float *trainer_gradient(const struct trainer *trainer, int i)
{
    const struct exchange *x = trainer->backend->exchange;

    return trainer->keeps && x && !x->alone && i < trainer->model->trained
               ? x->functions->gradient(x, i)
               : NULL;
}

int trainer_compare_ranks(struct trainer *trainer, uint64_t *hash)
{
    struct backend *b = trainer->backend;
    int status = b->functions->check ? b->functions->check(b) : 0;

    status = agree(status);
    if (status < 0)
        return status;
    *hash = weights_hash(trainer->model, trainer->values);
    return agree_same("their trained weights, which should be equal", *hash);
}

int64_t trainer_parameters(const struct trainer *trainer)
{
    return model_parameters(trainer->model);
}

int trainer_save(const struct trainer *trainer, float *const *values,
                 const char *path)
{
    return weights_save(path, trainer->model, values);
}

struct safetensors_tensor *trainer_tensors(const struct trainer *trainer,
                                           int *count)
{
    *count = trainer->model->nvariables;
    return weights_tensors(trainer->model);
}

int trainer_profile(const struct trainer *trainer, const char *where,
                    const char *title)
{
    struct profile_program programs[] = {{.name = "training"},
                                         {"evaluation",
                                          trainer->evaluation.program,
                                          trainer->evaluation.engine, NULL}};

    trainer->backend->functions->describe(trainer->backend, &programs[0]);
    return profile_finish(where, title, 2, programs);
}

int trainer_record(const struct trainer *trainer, bool on)
{
    struct profile_program program = {0};

    trainer->backend->functions->describe(trainer->backend, &program);
    return program.engine ? profile_record(program.engine, on) : 0;
}

int trainer_write_profile(const struct trainer *trainer, const char *folder,
                          const char *title)
{
    struct profile_program program = {.name = "training"};

    trainer->backend->functions->describe(trainer->backend, &program);
    return profile_write(folder, title, 1, &program);
}

int trainer_partition_stats(const struct trainer *trainer,
                            struct partition_stats *stats)
{
    const struct backend *b = trainer->backend;

    return b->functions->get_stats ? b->functions->get_stats(b, stats)
                                   : problem_set("there is no pipeline");
}

int trainer_sums_stats(const struct trainer *trainer, struct sums_stats *stats)
{
    const struct backend *b = trainer->backend;

    return b->functions->get_sums ? b->functions->get_sums(b, stats)
                                  : problem_set("there are no replicas");
}

struct trainer_times trainer_times(const struct trainer *trainer)
{
    return trainer->backend->times;
}
