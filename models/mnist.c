/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnist - trains a network to read digits, on every rank that mpirun started.
 * Each rank has its own software IPU and its own shard of the images; gradients
 * are averaged while the backward pass runs.
 */
#include "command/training_run.h"
#include "mnist/loop.h"
#include "mnist/report.h"
#include "model/digit_networks.h"
#include "trainer/agree.h"

struct mnist {
    struct dataset dataset;
    struct summary summary;
};

static int prepare_run(struct training_run *run)
{
    const struct agree_number own[] = {
        {"--epochs", run->options->epochs},
        {"--model", run->options->network},
    };

    return command_prepare(run->command, own, sizeof own / sizeof *own);
}

static int load_data(struct training_run *run)
{
    struct mnist *mnist = run->own;
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
        status = agree(dataset_init(&mnist->dataset, &train, &test,
                                    run->command->rank, run->command->size,
                                    o->batch_size, o->seed));
    images_fini(&train);
    images_fini(&test);
    mnist->summary.train_images = mnist->dataset.train.count;
    mnist->summary.test_images = mnist->dataset.test.count;
    return status;
}

static void make_model(struct training_run *run,
                       struct trainer_options *options, struct model **model)
{
    options->fill = dataset_fill;
    options->fill_context = &((struct mnist *)run->own)->dataset;
    network_model((enum network)run->options->network, run->options->batch_size,
                  model);
}

static struct summary *summary_of(struct training_run *run)
{
    return &((struct mnist *)run->own)->summary;
}

static void print_head(struct training_run *run)
{
    report_head(&run->command->progress, summary_of(run));
}

static int run_loop(struct training_run *run)
{
    struct mnist *mnist = run->own;
    struct mnist_loop loop = {run->options, &mnist->dataset, run->trainer,
                              &run->command->progress, &mnist->summary};

    return mnist_loop_run(&loop);
}

static void print_results(struct training_run *run)
{
    report_results(&run->command->progress, summary_of(run));
}

static int write_summary(struct training_run *run, const char *path)
{
    return summary_write(summary_of(run), path);
}

static void free_data(struct training_run *run)
{
    dataset_fini(&((struct mnist *)run->own)->dataset);
    summary_fini(summary_of(run));
}

static const struct training_functions functions = {
    .program = OPTIONS_MNIST,
    .prepare = prepare_run,
    .load = load_data,
    .make_model = make_model,
    .report_head = print_head,
    .train = run_loop,
    .report_results = print_results,
    .write_summary = write_summary,
    .fini = free_data,
};

int main(int argc, char **argv)
{
    struct mnist mnist = {0};

    return training_main(&functions, &mnist.summary.outcome, &mnist, argc,
                         argv);
}
