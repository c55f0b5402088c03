/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnist - trains a network to read digits, on every rank. Each rank has its own
 * software IPU and its own shard of the images; gradients are averaged while
 * the backward pass runs.
 */
#include "command/data_mark.h"
#include "command/training_run.h"
#include "mnist/dataset.h"
#include "mnist/mistakes.h"
#include "mnist/report.h"
#include "networks/digit_networks.h"
#include "output/problem.h"
#include "trainer/agree.h"

/* Batches that are ready when the device wants the next: an MLP takes one in
 * half a millisecond. */
enum { PREFETCHED = 8 };

/* Loads or draws digits, and checks that all ranks have as many. Collective. */
static int load_digits(struct training_run *run, int set, const char *what,
                       hvd_dataset **digits, int64_t *count)
{
    const struct options *o = run->options;
    const struct digits_source source = {o->data, o->seed,
                                         set == DIGITS_TRAIN ? o->train_images
                                                             : o->test_images};
    int status;

    *digits = digits_dataset(&source, set, run->command->progress);
    *count = *digits ? hvd_dataset_count(*digits) : 0;
    status = agree(*digits ? 0 : PROBLEM);
    return status ? status : agree_same(what, (uint64_t)*count);
}

/* An epoch is a part of the training. */
static void plan_epochs(struct training_run *run)
{
    const struct options *o = run->options;
    struct training_plan *plan = &run->plan;
    int64_t all = o->epochs * (plan->examples / training_rows(run));

    run->outcome.examples = plan->examples;
    run->outcome.per_step = (int64_t)o->batch_size * o->replicas;
    plan->part = plan->examples / training_rows(run);
    plan->steps = o->steps > 0 && o->steps < all ? o->steps : all;
    plan->evaluate_every = o->eval_every;
}

/* Makes images of rows of pixels. */
static hvd_dataset *shape_images(hvd_dataset *digits)
{
    const int64_t shape[] = {IMAGE_SIDE, IMAGE_SIDE, 1};

    return hvd_dataset_reshape(digits, "images", 3, shape);
}

static int load_data(struct training_run *run)
{
    struct training_plan *plan = &run->plan;
    const struct options *o = run->options;
    int status = load_digits(run, DIGITS_TRAIN, "the number of training images",
                             &plan->train, &plan->examples);

    if (!status && (o->elastic_log || o->elastic_replay))
        status = agree(data_mark(plan->train, &plan->data_mark));
    if (!status)
        status = load_digits(run, DIGITS_TEST, "the number of test images",
                             &plan->tests, &run->outcome.evaluated);
    if (o->network != NETWORK_MLP) {
        plan->train = shape_images(plan->train);
        plan->tests = shape_images(plan->tests);
    }
    plan->train = hvd_dataset_batch(
        hvd_dataset_shuffle(plan->train, o->seed, 0), o->batch_size, 1);
    plan->train = hvd_dataset_prefetch(plan->train, PREFETCHED);
    plan->tests = hvd_dataset_batch(plan->tests, o->batch_size, 0);
    plan_epochs(run);
    return status;
}

static const struct hvd_model *get_network(struct training_run *run)
{
    return network_public((enum network)run->options->network);
}

static void make_model(struct training_run *run, struct model **model)
{
    network_model((enum network)run->options->network, run->options->batch_size,
                  model);
}

static int log_mistakes(struct training_run *run, hvd_log *log)
{
    return mistakes_log(run->own, log, "test/mistakes", run->outcome.steps);
}

static const struct training_functions functions = {
    .program = OPTIONS_MNIST,
    .unit = "images",
    .examples = "training images",
    .speed = "images",
    .source = "--data",
    .load = load_data,
    .network = get_network,
    .make_model = make_model,
    .report_head = mnist_report_head,
    .place = mnist_place,
    .named_parts = true,
    .evaluation = mnist_evaluation,
    .tests = "test",
    .visit_tests = mistakes_visit,
    .log_tests = log_mistakes,
    .report_results = mnist_report_results,
    .settings = mnist_settings,
    .results = mnist_results,
};

int main(int argc, char **argv)
{
    static struct mistakes mistakes; /* of the last evaluation, for a log */

    return training_main(&functions, &mistakes, argc, argv);
}
