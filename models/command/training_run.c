/* SPDX-License-Identifier: Apache-2.0 */
#include "command/training_run.h"

#include "output/clock.h"
#include "trainer/agree.h"

static int make_trainer(struct training_run *run)
{
    struct trainer_options options = options_trainer(run->options);
    struct model *model = NULL;

    options.rank = run->command->rank;
    options.progress = &run->command->progress;
    run->functions->make_model(run, &options, &model);
    return trainer_new(model, &options, &run->trainer);
}

/* Rank 0 writes the files that the command line requests. */
static int write_results(struct training_run *run)
{
    const struct training_functions *f = run->functions;
    int status = 0;

    if (run->command->rank == 0) {
        if (run->options->summary)
            status = f->write_summary(run, run->options->summary);
        if (status == 0)
            status = command_write_files(run->command, run->trainer);
        if (status == 0 && f->write_more)
            status = f->write_more(run);
    }
    return agree(status);
}

static int train_and_report(struct training_run *run)
{
    const struct training_functions *f = run->functions;
    struct outcome *outcome = run->outcome;
    double start = clock_seconds();

    outcome->parameters = trainer_parameters(run->trainer);
    f->report_head(run);
    int status = f->train(run);
    if (!status)
        status = trainer_compare_ranks(run->trainer, &outcome->weights_hash);
    if (!status && run->options->partition.stages > 0)
        status =
            agree(trainer_partition_stats(run->trainer, &outcome->partition));
    if (status)
        return status;
    outcome->times.total = clock_seconds() - start;
    f->report_results(run);
    return write_results(run);
}

/* Does the whole run, after the library has started. */
static int run_training(struct command *command)
{
    struct training_run *run = command->context;
    const struct training_functions *f = run->functions;

    run->command = command;
    run->options = command->options;
    run->outcome->options = command->options;
    run->outcome->world_size = command->size;
    int status = f->prepare(run);
    if (!status)
        status = f->load(run);
    if (!status)
        status = make_trainer(run);
    if (!status)
        status = train_and_report(run);
    trainer_free(run->trainer);
    f->fini(run);
    return status;
}

int training_main(const struct training_functions *functions,
                  struct outcome *outcome, void *own, int argc, char **argv)
{
    struct training_run run = {
        .functions = functions, .outcome = outcome, .own = own};
    struct options options;
    struct command command = {.options = &options, .context = &run};
    int parsed = options_parse(functions->program, &options, argc, argv);

    return command_run(options_line(functions->program, &options), parsed,
                       &command, run_training);
}
