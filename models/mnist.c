/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnist - trains a network to read digits, on every rank. Each rank has its own
 * software IPU and its own shard of the images; gradients are averaged while
 * the backward pass runs.
 */
#include "command/training_run.h"
#include "mnist/dataset.h"
#include "mnist/mistakes.h"
#include "mnist/report.h"
#include "networks/digit_networks.h"
#include "trainer/agree.h"

/* The data of a run. */
struct mnist {
    struct dataset dataset;
    struct mistakes mistakes; /* of the last evaluation, for a log */
};

/* An epoch is a part of the training. */
static void plan_epochs(struct training_run *run, struct dataset *dataset)
{
    const struct options *o = run->options;
    int64_t steps = dataset_steps(dataset);
    int64_t all = steps * o->epochs;

    run->outcome.examples = dataset->train.count;
    run->outcome.evaluated = dataset->test.count;
    run->outcome.per_step = (int64_t)o->batch_size * o->replicas;
    run->plan = (struct training_plan){
        .steps = o->steps > 0 && o->steps < all ? o->steps : all,
        .part = steps,
        .evaluate_every = o->eval_every,
        .fill = dataset_fill,
        .fill_test = dataset_fill_test,
        .data = dataset};
}

static int load_data(struct training_run *run)
{
    struct dataset *dataset = &((struct mnist *)run->own)->dataset;
    const struct options *o = run->options;
    const struct dataset_source source = {o->data, o->seed, o->train_images,
                                          o->test_images};
    struct images train = {0}, test = {0};

    int status =
        agree(dataset_load(&source, run->command->progress, &train, &test));
    if (!status)
        status =
            agree_same("the number of training images", (uint64_t)train.count);
    if (!status)
        status = agree_same("the number of test images", (uint64_t)test.count);
    if (!status)
        status = agree(dataset_init(dataset, &train, &test, run->command->rank,
                                    run->command->size, o->replicas,
                                    o->batch_size, o->seed));
    images_fini(&train);
    images_fini(&test);
    if (!status)
        plan_epochs(run, dataset);
    return status;
}

static void make_model(struct training_run *run, struct model **model)
{
    network_model((enum network)run->options->network, run->options->batch_size,
                  model);
}

static void free_data(struct training_run *run)
{
    dataset_fini(&((struct mnist *)run->own)->dataset);
}

static int visit_tests(void *own, const struct trainer_results *results)
{
    return mistakes_visit(&((struct mnist *)own)->mistakes, results);
}

static int log_mistakes(struct training_run *run, hvd_log *log)
{
    return mistakes_log(&((struct mnist *)run->own)->mistakes, log,
                        "test/mistakes", run->outcome.steps);
}

static const struct training_functions functions = {
    .program = OPTIONS_MNIST,
    .unit = "images",
    .speed = "images",
    .source = "--data",
    .load = load_data,
    .make_model = make_model,
    .report_head = mnist_report_head,
    .place = mnist_place,
    .named_parts = true,
    .evaluation = mnist_evaluation,
    .tests = "test",
    .visit_tests = visit_tests,
    .log_tests = log_mistakes,
    .report_results = mnist_report_results,
    .settings = mnist_settings,
    .results = mnist_results,
    .fini = free_data,
};

int main(int argc, char **argv)
{
    static struct mnist mnist;

    return training_main(&functions, &mnist, argc, argv);
}
