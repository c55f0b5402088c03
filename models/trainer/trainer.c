/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer.c - the part of a trainer that is the same for all backends: the
 * values of the variables on the host, which evaluation reads in place, and the
 * evaluation's program.
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
#include "trainer/evaluation.h"
#include "trainer/model_backend.h"
#include "trainer/program.h"

struct trainer {
    struct model *model; /* owned */
    float **values;      /* owned, [variables], each owned */
    struct backend *backend;
    struct evaluation evaluation;
};

static int draw_values(struct trainer *trainer,
                       const struct trainer_options *options)
{
    trainer->values = model_values(trainer->model);
    if (!trainer->values)
        return PROBLEM;
    /* Another seed on every rank: only the broadcast makes them equal. */
    model_initialize(trainer->model, options->seed + (uint64_t)options->rank,
                     trainer->values);
    if (!options->load || options->rank != 0)
        return 0;
    return weights_load(options->load, trainer->model, trainer->values);
}

/* The evaluation takes as many chips as the training. */
static int make_evaluation(struct trainer *trainer,
                           const struct trainer_options *options)
{
    int stages = options->partition.stages, chips = stages > 0 ? stages : 1;
    int status = evaluation_init(&trainer->evaluation, trainer->model, chips,
                                 options->proportion, options->progress);

    if (status < 0)
        return chips > 1 ? problem_set("the evaluation, on %d IPUs: %s", chips,
                                       problem_text())
                         : status;
    return options->rank == 0
               ? profile_start(options->profile, trainer->evaluation.engine)
               : 0;
}

/* Does everything that this rank does without the others. */
static int build_trainer(struct trainer *trainer,
                         const struct trainer_options *options)
{
    const bool staged = options->partition.stages > 0;
    const struct model_backend of = {
        .model = trainer->model,
        .options = options,
        /* Rows differ from rank to rank, and so does what is random. */
        .seed = options->seed * 1000003 + (uint64_t)options->rank,
        .record = options->profile && options->rank == 0,
        .values = trainer->values};
    int status = 0;

    if (ipu_set_threads(staged ? 1 : options->threads) < 0)
        return program_device_problem();
    /* Stages first: if they do not fit, their text is the one that helps. */
    if (staged)
        status = stages_new(&of, &trainer->backend);
    if (status == 0)
        status = make_evaluation(trainer, options);
    if (status == 0 && !staged)
        status = single_new(&of, &trainer->backend);
    return status;
}

/* Broadcasts the variables. */
static int start_trainer(struct trainer *trainer)
{
    int status = trainer->backend->functions->start(trainer->backend);

    if (status < 0)
        return status;
    return agree(evaluation_place(&trainer->evaluation, trainer->values));
}

/* Returns the problem of a failed build: that of the world, if its end is what
 * has stopped it. */
static int build_problem(const struct trainer_options *options, int status)
{
    int ended = progress_ask(options->progress);

    return ended < 0 ? ended : status;
}

int trainer_new(struct model *model, const struct trainer_options *options,
                struct trainer **trainer)
{
    struct trainer *fresh = calloc(1, sizeof *fresh);
    int status = PROBLEM; /* a rank without a model has kept the text */

    if (fresh && model) {
        fresh->model = model;
        status = draw_values(fresh, options);
        if (status == 0)
            status = build_trainer(fresh, options);
        if (status < 0)
            status = build_problem(options, status);
    } else if (model) {
        status = problem_set("no memory for the network");
        model_free(model);
    }
    status = agree(status);
    if (fresh && fresh->backend && status == 0)
        status = start_trainer(fresh);
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
    /* First: its exchange may still be writing to the variables. */
    backend_free(trainer->backend);
    evaluation_fini(&trainer->evaluation);
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
        .optimizer = options->optimizer.optimizer,
        .weight_decay = options->optimizer.weight_decay,
    };
}

int trainer_steps(const struct trainer *trainer)
{
    return trainer->backend->steps;
}

int trainer_step(struct trainer *trainer, double rate, double *loss)
{
    return trainer->backend->functions->update(trainer->backend, rate, loss);
}

int trainer_evaluate(struct trainer *trainer, fill_test_fn *fill, void *context,
                     double *loss_sum, double *correct)
{
    struct evaluation *e = &trainer->evaluation;
    int status = 0;

    for (int64_t step = 0; status == 0; step++) {
        int64_t rows = fill(context, step, e->input, e->labels);

        if (rows == 0)
            break;
        status = evaluation_run(e);
        if (status == 0)
            evaluation_add(e, rows, loss_sum, correct);
    }
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
    struct profile_program programs[] = {{.name = "training"},
                                         {"evaluation",
                                          trainer->evaluation.program,
                                          trainer->evaluation.engine, NULL}};

    trainer->backend->functions->describe(trainer->backend, &programs[0]);
    return profile_finish(where, title, 2, programs);
}

int trainer_partition_stats(const struct trainer *trainer,
                            struct partition_stats *stats)
{
    const struct backend *b = trainer->backend;

    return b->functions->get_stats ? b->functions->get_stats(b, stats)
                                   : problem_set("there is no pipeline");
}

struct trainer_times trainer_times(const struct trainer *trainer)
{
    return trainer->backend->times;
}
