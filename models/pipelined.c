/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelined - trains a network that is spread over several software IPUs: in
 * stages, which work at the same time on different mini-batches, in replicas of
 * these, and on every rank. Gradients are averaged over all
 * of them once an update, which takes --count mini-batches for each replica;
 * those of a stage are averaged while the stages before it still go backwards.
 *
 * Ranks agree before they go on, so that a failure of one ends all of them.
 */
#include "command/command.h"
#include "mnist/dataset.h"
#include "options/values.h"
#include "output/clock.h"
#include "output/problem.h"
#include "output/profile.h"
#include "pipeline/job.h"
#include "trainer/agree.h"

#include <hvd.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

struct run {
    struct dataset_source source;
    struct job_options job_options;
    struct dataset dataset;
    struct job *job;
    hvd_progress *progress; /* the command's */
    int64_t epochs, updates;
    bool quiet;
};

/* ------------------------------------------------------------ command line */

enum {
    MODEL = 1000,
    STAGES,
    SCHEDULE,
    COUNT,
    REPLICAS,
    RECOMPUTE,
    OPTIMIZER,
    LR,
    UPDATES,
    TRAIN_IMAGES,
    TEST_IMAGES,
    SEED,
    THREADS,
    PROFILE
};

static const struct argp_option table[] = {
    {"model", MODEL, "NAME", 0, "mlp, cnn, resnet or towers (mlp)", 0},
    {"stages", STAGES, "N", 0, "number of stages: 2 to 8 (2; 4 for towers)", 0},
    {"schedule", SCHEDULE, "NAME", 0,
     "schedule of the stages: grouped, interleaved or sequential (grouped)", 0},
    {"count", COUNT, "N", 0,
     "mini-batches of an update (8 or more, as the stages need)", 0},
    {"accumulate", COUNT, NULL, OPTION_ALIAS, NULL, 0},
    {"replicas", REPLICAS, "N", 0, "copies of the pipeline: 1 to 8 (1)", 0},
    {"recompute", RECOMPUTE, NULL, 0,
     "compute activations again, instead of keeping them", 0},
    {"optimizer", OPTIMIZER, "NAME", 0,
     "sgd, momentum, adam, adamw, lamb, nesterov, rmsprop, adagrad, adadelta, "
     "lion or lars (momentum)",
     0},
    {"lr", LR, "X", 0,
     "learning rate (0.1 for sgd, 0.05 for momentum, else 0.001)", 0},
    {"batch-size", 'b', "N", 0, "images of a mini-batch (16)", 0},
    {"epochs", 'e', "N", 0, "passes over the training images (1)", 0},
    {"updates", UPDATES, "N", 0, "most updates in all (no limit)", 0},
    {"data", 'd', "DIR", 0, "directory of MNIST files (digits are drawn)", 0},
    {"train-images", TRAIN_IMAGES, "N", 0,
     "most training images (all, or 40000 drawn)", 0},
    {"test-images", TEST_IMAGES, "N", 0,
     "most test images (all, or 5000 drawn)", 0},
    {"seed", SEED, "N", 0, "seed of weights, order and drawn digits (1)", 0},
    {"threads", THREADS, "N", 0,
     "threads that stages run on; 0: one for each, if there are cores (0)", 0},
    LINE_PROFILE_ROW(PROFILE),
    {"quiet", 'q', NULL, 0, LINE_QUIET_HELP, 0},
    LINE_ROWS,
    {0}};

static int take_seed(struct run *run, const char *value)
{
    int64_t seed = 1;
    int status = value_whole("--seed", value, 0, INT64_MAX, &seed);

    run->source.seed = run->job_options.seed = (uint64_t)seed;
    return status;
}

static int take_option(void *context, int key, const char *value)
{
    struct run *run = context;
    struct job_options *j = &run->job_options;
    struct dataset_source *s = &run->source;

    switch (key) {
    case MODEL: j->net = net_from_name(value); return j->net < 0 ? PROBLEM : 0;
    case STAGES: return value_int("--stages", value, 2, 8, &j->stages);
    case SCHEDULE:
        return value_name("--schedule", value, partition_schedules,
                          &j->schedule);
    case COUNT: return value_int("--count", value, 1, 1 << 20, &j->count);
    case REPLICAS: return value_int("--replicas", value, 1, 8, &j->replicas);
    case RECOMPUTE: j->recompute = 1; return 0;
    case OPTIMIZER:
        return value_name("--optimizer", value, optimizer_names, &j->optimizer);
    case LR: return value_real("--lr", value, 0, 100, &j->rate);
    case 'b': return value_int("--batch-size", value, 1, 4096, &j->batch);
    case 'e': return value_whole("--epochs", value, 1, 100000, &run->epochs);
    case UPDATES:
        return value_whole("--updates", value, 1, 1 << 30, &run->updates);
    case 'd': return value_path("--data", value, &s->directory);
    case TRAIN_IMAGES:
        return value_whole("--train-images", value, 1, 1 << 24, &s->train);
    case TEST_IMAGES:
        return value_whole("--test-images", value, 1, 1 << 24, &s->test);
    case SEED: return take_seed(run, value);
    case 'q': run->quiet = true; return 0;
    case THREADS: return value_int("--threads", value, 0, 64, &j->threads);
    default: return value_path("--profile", value, &j->profile);
    }
}

/* Sets options that were not given and depend on others. */
static void fill_in(struct job_options *j)
{
    int towers = j->net == net_from_name("towers"), round;

    if (j->stages == 0)
        j->stages = towers ? 4 : 2;
    round = 2 * (towers ? 3 : j->stages);
    if (j->count == 0)
        j->count = (7 + round) / round * round;
    if (j->rate == 0)
        j->rate = j->optimizer == OPTIMIZER_SGD        ? 0.1
                  : j->optimizer == OPTIMIZER_MOMENTUM ? 0.05
                                                       : 0.001;
}

/* ------------------------------------------------------------------ training
 */

/* Checks that the ranks have the same options: mpirun can start them with
 * different command lines, and they would wait for each other. Stages and
 * schedule may differ; the exchange has compared the networks. */
static int check_options(const struct run *run)
{
    const struct job_options *j = &run->job_options;
    const struct agree_number same[] = {
        {"--count", j->count},         {"--replicas", j->replicas},
        {"--optimizer", j->optimizer}, {"--batch-size", j->batch},
        {"--epochs", run->epochs},     {"--updates", run->updates},
        {"--seed", (int64_t)j->seed},
    };

    return agree_numbers(same, sizeof same / sizeof *same);
}

static int load_data(struct run *run)
{
    struct images train = {0}, test = {0};
    int status = agree(profile_check(run->job_options.profile));

    if (!status)
        status =
            agree(dataset_load(&run->source, run->progress, &train, &test));
    if (!status)
        status =
            agree_same("the number of training images", (uint64_t)train.count);
    if (!status)
        status = agree(dataset_init(&run->dataset, &train, &test, hvd_rank(),
                                    hvd_size(), 1, run->job_options.batch,
                                    run->source.seed));
    images_fini(&train);
    images_fini(&test);
    hvd_progress_phase(run->progress, "compiling", 0, 0, NULL);
    if (!status)
        status = agree(job_new(&run->job_options, &run->dataset, &run->job));
    hvd_progress_end(run->progress);
    if (!status)
        status = job_start(run->job);
    return status;
}

/* Evaluates, and prints what came of it. */
static int test_epoch(struct run *run)
{
    double values[2] = {0};
    int64_t right = 0, images = 0;
    int status;

    hvd_progress_rename(run->progress, "evaluating");
    status = agree(job_test(run->job, &right, &images));
    values[0] = (double)right;
    values[1] = (double)images;
    if (!status)
        status = agree_sum(values, 2);
    if (!status)
        hvd_progress_line(run->progress, "test accuracy %.2f %% of %.0f images",
                          100 * values[0] / values[1], values[1]);
    return status;
}

static int train_epoch(struct run *run, int64_t epoch, int64_t updates)
{
    const struct job_options *j = &run->job_options;
    int64_t images =
        updates * j->count * j->replicas * j->batch * (int64_t)hvd_size();
    double loss, start = clock_seconds();
    char name[64];
    int status;

    snprintf(name, sizeof name, "epoch %" PRId64 " of %" PRId64, epoch + 1,
             run->epochs);
    hvd_progress_rename(run->progress, name);
    status = job_train(run->job, updates, run->progress, &loss);
    if (!status)
        status = agree_average(&loss, 1);
    if (!status)
        hvd_progress_line(run->progress,
                          "epoch %" PRId64 ": %" PRId64 " updates, loss %.4f, "
                          "%.0f images/s",
                          epoch + 1, updates, loss,
                          (double)images / (clock_seconds() - start));
    return status ? status : test_epoch(run);
}

static int train_epochs(struct run *run)
{
    int64_t per_update =
        (int64_t)run->job_options.count * run->job_options.replicas;
    int64_t updates = dataset_steps(&run->dataset) / per_update;
    int64_t left = updates * run->epochs;
    int status = 0;

    if (updates == 0) {
        problem_set("--train-images: %" PRId64 " mini-batches of %d images "
                    "make an update, there are %" PRId64,
                    per_update, run->job_options.batch,
                    dataset_steps(&run->dataset));
        return PROBLEM_EVERYWHERE;
    }
    if (run->updates && run->updates < left)
        left = run->updates;
    hvd_progress_phase(run->progress, "training", 0, left, "updates");
    for (int64_t epoch = 0; !status && left > 0; epoch++) {
        int64_t now = updates < left ? updates : left;

        left -= now;
        status = train_epoch(run, epoch, now);
    }
    hvd_progress_end(run->progress);
    return status;
}

static int print_report(struct run *run)
{
    struct partition_stats s;
    uint64_t hash = 0;
    int status = agree(job_stats(run->job, &s));

    if (!status)
        status = agree(job_hash(run->job, &hash));
    if (!status)
        status = agree_same("the weights' hash", hash);
    if (status || hvd_rank() != 0)
        return status;
    hvd_progress_line(
        run->progress,
        "on %d modelled IPUs each: %.3g s, idle %.1f %%, %" PRId64
        " slots, %" PRId64 " updates\n"
        "fullest tile %" PRId64 " of %" PRId64 " bytes, most stashed on an "
        "IPU %" PRId64 " bytes, %" PRId64 " bytes between IPUs\n"
        "allreduces %" PRId64 ", %" PRId64 " of them done before they were "
        "needed, waited %.3g s\n"
        "weights %016" PRIx64,
        s.ipus, s.seconds, 100 * s.idle, s.slots, s.updates, s.tile_bytes,
        s.bytes_per_tile, s.stash_bytes, s.inter_ipu_bytes, s.averages, s.early,
        s.wait, hash);
    return job_profile(run->job);
}

static int run_all(struct command *command)
{
    struct run *run = command->context;
    int status;

    run->progress = command->progress;
    status = load_data(run);
    if (!status)
        status = check_options(run);
    if (!status)
        status = train_epochs(run);
    if (!status)
        status = print_report(run);
    job_free(run->job);
    dataset_fini(&run->dataset);
    return status;
}

int main(int argc, char **argv)
{
    struct run run = {.epochs = 1,
                      .source.seed = 1,
                      .job_options = {.replicas = 1,
                                      .batch = 16,
                                      .optimizer = OPTIMIZER_MOMENTUM,
                                      .seed = 1}};
    const struct line line = {
        "pipelined",
        "Train a network that reads digits, spread over several software IPUs, "
        "on every rank that mpirun started or TF_CONFIG describes.\v"
        "Exit status: 0 trained, 1 failed, 64 wrong command line, 130 or 143 "
        "interrupted.",
        table,
        take_option,
        &run,
        NULL,
        NULL};
    struct command command = {.run = run_all, .context = &run};
    int outcome = line_parse(&line, argc, argv);

    fill_in(&run.job_options);
    command.quiet = run.quiet;
    return command_run(&line, outcome, &command);
}
