/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnist - trains a network to read digits, on every rank that mpirun started:
 * each on its own software IPU with its own shard of the images, gradients
 * averaged while the backward pass runs.
 *
 * What only one rank can find wrong (a file that is missing on its host, an
 * output that cannot be written) is agreed on by all before they go on, so
 * that all end, non-zero, and one of them says why.
 */
#include "command/command.h"
#include "mnist/loop.h"
#include "mnist/network.h"
#include "mnist/report.h"
#include "output/clock.h"
#include "trainer/agree.h"

/* What the run needs, torn down together. */
struct run {
    struct command *command;
    const struct options *options; /* the command's */
    struct dataset dataset;
    struct trainer *trainer;
    struct summary summary;
};

static int prepare(struct command *command)
{
    const struct agree_number own[] = {
        {"--epochs", command->options->epochs},
        {"--model", command->options->network},
    };

    return command_prepare(command, own, sizeof own / sizeof *own);
}

static int load_data(struct run *run)
{
    const struct options *o = run->options;
    const struct dataset_source source = {o->data, o->seed, o->train_images,
                                          o->test_images};
    struct images train = {0}, test = {0};

    int status =
        agree(dataset_load(&source, &run->command->progress, &train, &test));
    if (!status)
        status =
            agree_same("the number of training images", (uint64_t)train.count);
    if (!status)
        status = agree_same("the number of test images", (uint64_t)test.count);
    if (!status)
        status =
            agree(dataset_init(&run->dataset, &train, &test, run->command->rank,
                               run->command->size, o->batch_size, o->seed));
    images_fini(&train);
    images_fini(&test);
    return status;
}

static int make_network(struct run *run)
{
    struct trainer_options options = options_trainer(run->options);
    struct model *model = NULL;

    network_model((enum network)run->options->network, run->options->batch_size,
                  &model);
    options.rank = run->command->rank;
    options.progress = &run->command->progress;
    options.fill = dataset_fill;
    options.fill_context = &run->dataset;
    return trainer_new(model, &options, &run->trainer);
}

/* Rank 0 writes what was asked for. */
static int write_results(struct run *run)
{
    int status = 0;

    if (run->command->rank == 0 && run->options->summary)
        status = summary_write(&run->summary, run->options->summary);
    if (status == 0)
        status = command_write_files(run->command, run->trainer);
    return agree(status);
}

static int train(struct run *run)
{
    struct progress *progress = &run->command->progress;
    struct outcome *outcome = &run->summary.outcome;
    struct mnist_loop loop = {run->options, &run->dataset, run->trainer,
                              progress, &run->summary};
    double start = clock_seconds();

    run->summary.train_images = run->dataset.train.count;
    run->summary.test_images = run->dataset.test.count;
    outcome->parameters = trainer_parameters(run->trainer);
    report_head(progress, &run->summary);
    int status = mnist_loop_run(&loop);
    if (!status)
        status = trainer_compare_ranks(run->trainer, &outcome->weights_hash);
    if (status)
        return status;
    outcome->times.total = clock_seconds() - start;
    report_results(progress, &run->summary);
    return write_results(run);
}

/* The whole run, on a started library. */
static int run_all(struct command *command)
{
    struct run run = {.command = command,
                      .options = command->options,
                      .summary.outcome = {.options = command->options,
                                          .world_size = command->size}};
    int status = prepare(command);

    if (!status)
        status = load_data(&run);
    if (!status)
        status = make_network(&run);
    if (!status)
        status = train(&run);
    trainer_free(run.trainer);
    dataset_fini(&run.dataset);
    summary_fini(&run.summary);
    return status;
}

int main(int argc, char **argv)
{
    return command_main(OPTIONS_MNIST, argc, argv, run_all);
}
