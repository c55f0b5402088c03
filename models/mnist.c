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
#include "common/agree.h"
#include "common/clock.h"
#include "common/command.h"
#include "common/interrupt.h"
#include "common/network.h"
#include "common/options.h"
#include "common/outfile.h"
#include "common/problem.h"
#include "common/profile.h"
#include "common/report.h"
#include "common/trainer.h"

#include <hvd.h>
#include <string.h>

/* What the run needs, torn down together. */
struct run {
    struct options options;
    struct progress progress;
    struct dataset dataset;
    struct joint *joint;
    struct summary summary;
};

/* Results go to rank 0's files; they must be writable before hours pass. */
static int check_files(const struct options *options)
{
    int status = 0;

    if (hvd_rank() == 0) {
        status = outfile_check("--summary", options->summary);
        if (status == 0)
            status = outfile_check("--save-weights", options->weights);
        if (status == 0)
            status = profile_check(options->profile);
    }
    return agree(status);
}

static int check_options(const struct options *o)
{
    int status = agree_same("--epochs", (uint64_t)o->epochs);

    if (!status)
        status = agree_same("--model", (uint64_t)o->network);
    return status ? status : agree_options(o);
}

static int load_data(struct run *run)
{
    struct images train = {0}, test = {0};

    int status = agree(dataset_load(&run->options, &train, &test));
    if (!status)
        status =
            agree_same("the number of training images", (uint64_t)train.count);
    if (!status)
        status = agree_same("the number of test images", (uint64_t)test.count);
    if (!status)
        status = agree(dataset_init(&run->dataset, &train, &test, hvd_rank(),
                                    hvd_size(), run->options.batch_size,
                                    run->options.seed));
    images_fini(&train);
    images_fini(&test);
    return status;
}

/* Rank 0 writes what was asked for. */
static int write_files(struct run *run)
{
    int status = 0;

    if (hvd_rank() == 0 && run->options.summary)
        status = summary_write(&run->summary, run->options.summary);
    if (hvd_rank() == 0 && run->options.weights && status == 0)
        status = joint_save(run->joint, run->options.weights);
    if (hvd_rank() == 0 && status == 0)
        status = joint_profile(run->joint, run->options.profile,
                               options_name(OPTIONS_MNIST));
    return agree(status);
}

static int train(struct run *run)
{
    struct trainer trainer = {&run->options, &run->dataset, run->joint,
                              &run->progress, &run->summary};
    double start = clock_seconds();

    run->summary.train_images = run->dataset.train.count;
    run->summary.test_images = run->dataset.test.count;
    run->summary.parameters = joint_parameters(run->joint);
    report_head(&run->progress, &run->summary);
    int status = trainer_run(&trainer);
    if (!status)
        status = joint_compare_ranks(run->joint, &run->summary.weights_hash);
    if (status)
        return status;
    run->summary.total_seconds = clock_seconds() - start;
    report_results(&run->progress, &run->summary);
    return write_files(run);
}

static int make_network(struct run *run)
{
    struct joint_options options = options_joint(&run->options);
    struct model *model = NULL;

    network_model((enum network)run->options.network, run->options.batch_size,
                  &model);
    options.progress = &run->progress;
    return joint_new(model, &options, &run->joint);
}

/* The whole run, on a started library. */
static int run_all(struct run *run)
{
    int status = check_options(&run->options);
    if (!status)
        status = check_files(&run->options);
    if (!status)
        status = load_data(run);
    if (!status)
        status = make_network(run);
    if (!status)
        status = train(run);
    return status;
}

int main(int argc, char **argv)
{
    const char *program = options_name(OPTIONS_MNIST);
    struct run run = {0};

    interrupt_install();
    int status = options_parse(OPTIONS_MNIST, &run.options, argc, argv);
    if (status != OPTIONS_RUN)
        return command_settle(OPTIONS_MNIST, status);
    status = hvd_init();
    if (status < 0) {
        problem_set("hvd: %s", hvd_last_error());
        command_complain(program, PROBLEM_EVERYWHERE, progress_launch_rank(),
                         1);
        return 1;
    }
    int rank = hvd_rank();
    int size = hvd_size();
    if (run.options.learning_rate == 0)
        run.options.learning_rate = options_default_rate(&run.options, size);
    progress_init(&run.progress, stdout, rank == 0);
    run.summary = (struct summary){
        .program = program, .options = &run.options, .world_size = size};
    status = run_all(&run);
    progress_clear(&run.progress);
    if (status == 0)
        status = agree(command_flush());
    if (status < 0)
        command_complain(program, status, rank, size);
    joint_free(run.joint);
    dataset_fini(&run.dataset);
    summary_fini(&run.summary);
    hvd_shutdown();
    return status < 0;
}
