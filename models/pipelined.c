/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelined - trains a network that is spread over several software IPUs: in
 * stages, which work at the same time on different mini-batches, in replicas
 * of these, and on every rank that mpirun started. Gradients of all of them are
 * averaged once an update, which is of --count mini-batches for each replica:
 * those of a stage while the stages before it still go backwards.
 *
 * Ranks agree before they go on, so that a failure of one ends all.
 */
#include "common/agree.h"
#include "common/clock.h"
#include "common/command.h"
#include "common/dataset.h"
#include "common/interrupt.h"
#include "common/problem.h"
#include "common/profile.h"
#include "common/progress.h"
#include "common/values.h"
#include "pipeline/job.h"

#include <getopt.h>
#include <hvd.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int net_from_name(const char *name);
extern const char net_names[];

static const char program[] = "pipelined";

static const char help[] =
    "Usage: pipelined [OPTION]...\n"
    "Train a network that reads digits, spread over several software IPUs.\n"
    "\n"
    "  --model NAME       mlp, cnn, resnet or towers (mlp)\n"
    "  --stages N         to cut it into: 2 to 8 (2; 4 of towers)\n"
    "  --schedule NAME    grouped, interleaved or sequential (grouped)\n"
    "  --count N          mini-batches to an update (8 or more, as it fits)\n"
    "  --replicas N       copies of the pipeline: 1 to 8 (1)\n"
    "  --recompute        compute activations again, instead of keeping them\n"
    "  --optimizer NAME   sgd, momentum, adam, adamw, lamb (momentum)\n"
    "  --lr RATE          learning rate (0.1 of sgd, 0.05 of momentum, else "
    "0.001)\n"
    "  --batch-size N     images of a mini-batch (16)\n"
    "  --epochs N         passes over the training images (1)\n"
    "  --updates N        at most so many updates in all (no limit)\n"
    "  --data DIR         MNIST files (draws digits)\n"
    "  --train-images N, --test-images N\n"
    "                     at most so many of them (all; 40000 and 5000 drawn)\n"
    "  --seed N           of weights, order and drawn digits (1)\n"
    "  --threads N        that stages run on; 0: one a core (0)\n"
    "  --profile DIR      write profile.json and report.html there, or\n"
    "                     'text': print it\n"
    "  --help, --version\n";

struct run {
    struct options options; /* what the dataset is told */
    struct job_options job_options;
    struct dataset dataset;
    struct job *job;
    int64_t epochs, updates;
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
    BATCH_SIZE,
    EPOCHS,
    UPDATES,
    DATA,
    TRAIN_IMAGES,
    TEST_IMAGES,
    SEED,
    THREADS,
    PROFILE,
    HELP,
    VERSION
};

static const struct option long_options[] = {
    {"model", required_argument, NULL, MODEL},
    {"stages", required_argument, NULL, STAGES},
    {"schedule", required_argument, NULL, SCHEDULE},
    {"count", required_argument, NULL, COUNT},
    {"replicas", required_argument, NULL, REPLICAS},
    {"recompute", no_argument, NULL, RECOMPUTE},
    {"optimizer", required_argument, NULL, OPTIMIZER},
    {"lr", required_argument, NULL, LR},
    {"batch-size", required_argument, NULL, BATCH_SIZE},
    {"epochs", required_argument, NULL, EPOCHS},
    {"updates", required_argument, NULL, UPDATES},
    {"data", required_argument, NULL, DATA},
    {"train-images", required_argument, NULL, TRAIN_IMAGES},
    {"test-images", required_argument, NULL, TEST_IMAGES},
    {"seed", required_argument, NULL, SEED},
    {"threads", required_argument, NULL, THREADS},
    {"profile", required_argument, NULL, PROFILE},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {0},
};

static int whole(const char *option, int64_t low, int64_t high, int *number)
{
    int64_t value = 0;
    int status = value_whole(option, optarg, low, high, &value);

    if (status == 0)
        *number = (int)value;
    return status;
}

static int take_option(struct run *run, int option)
{
    struct job_options *j = &run->job_options;
    struct options *o = &run->options;
    int64_t seed;
    int status;

    switch (option) {
    case MODEL:
        return value_name("--model", optarg, net_from_name, net_names, &j->net);
    case STAGES: return whole("--stages", 2, 8, &j->stages);
    case SCHEDULE:
        return value_name("--schedule", optarg, cut_schedule_from_name,
                          cut_schedule_names, &j->schedule);
    case COUNT: return whole("--count", 1, 1 << 20, &j->count);
    case REPLICAS: return whole("--replicas", 1, 8, &j->replicas);
    case RECOMPUTE: j->recompute = 1; return 0;
    case OPTIMIZER:
        return value_name("--optimizer", optarg, optimizer_from_name,
                          optimizer_names, &j->optimizer);
    case LR: return value_real("--lr", optarg, 0, 100, &j->rate);
    case BATCH_SIZE: return whole("--batch-size", 1, 4096, &j->batch);
    case EPOCHS:
        return value_whole("--epochs", optarg, 1, 100000, &run->epochs);
    case UPDATES:
        return value_whole("--updates", optarg, 1, 1 << 30, &run->updates);
    case DATA: return value_path("--data", optarg, &o->data);
    case TRAIN_IMAGES:
        return value_whole("--train-images", optarg, 1, 1 << 24,
                           &o->train_images);
    case TEST_IMAGES:
        return value_whole("--test-images", optarg, 1, 1 << 24,
                           &o->test_images);
    case SEED:
        status = value_whole("--seed", optarg, 0, INT64_MAX, &seed);
        if (status == 0)
            o->seed = j->seed = (uint64_t)seed;
        return status;
    case THREADS: return whole("--threads", 0, 64, &j->threads);
    case PROFILE: return value_path("--profile", optarg, &j->profile);
    default: return problem_set("try 'pipelined --help'");
    }
}

/* What depends on other options, unless it was given. */
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

static int parse(struct run *run, int argc, char **argv)
{
    int option, status = 0;

    run->epochs = 1;
    run->options.seed = 1;
    run->job_options = (struct job_options){
        .replicas = 1, .batch = 16, .optimizer = OPTIMIZER_MOMENTUM, .seed = 1};
    opterr = 0;
    while (status == 0 &&
           (option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == HELP)
            return OPTIONS_HELP;
        if (option == VERSION)
            return OPTIONS_VERSION;
        if (option == '?')
            return problem_set("%s is no option, or lacks its value: try "
                               "'pipelined --help'",
                               argv[optind - 1]);
        status = take_option(run, option);
    }
    if (status == 0 && optind < argc)
        return problem_set("%s is no option: try 'pipelined --help'",
                           argv[optind]);
    fill_in(&run->job_options);
    return status;
}

/* Help, version or a wrong command line: rank 0 speaks. */
static int settle(int outcome)
{
    int rank = progress_launch_rank();

    if (outcome < 0 && rank == 0)
        fprintf(stderr, "%s: %s\n", program, problem_text());
    if (outcome < 0)
        return OPTIONS_EXIT_USAGE;
    if (rank > 0)
        return 0;
    if (outcome == OPTIONS_HELP)
        fputs(help, stdout);
    else
        printf("%s %s\n", program, HVD_VERSION_STRING);
    return fflush(stdout) != 0;
}

/* ------------------------------------------------------------------ training
 */

static int load(struct run *run)
{
    struct images train = {0}, test = {0};
    int status = agree(profile_check(run->job_options.profile));

    if (!status)
        status = agree(dataset_load(&run->options, &train, &test));
    if (!status)
        status =
            agree_same("the number of training images", (uint64_t)train.count);
    if (!status)
        status = agree(dataset_init(&run->dataset, &train, &test, hvd_rank(),
                                    hvd_size(), run->job_options.batch,
                                    run->options.seed));
    images_fini(&train);
    images_fini(&test);
    if (!status)
        status = agree(job_new(&run->job_options, &run->dataset, &run->job));
    if (!status)
        status = job_start(run->job);
    return status;
}

static int train(struct run *run)
{
    int64_t per_update =
        (int64_t)run->job_options.count * run->job_options.replicas;
    int64_t updates =
        dataset_steps(&run->dataset, run->job_options.batch) / per_update;
    int64_t left = run->updates ? run->updates : INT64_MAX;

    if (updates == 0) {
        problem_set("--train-images: %" PRId64 " mini-batches of %d images "
                    "make an update, there are %" PRId64,
                    per_update, run->job_options.batch,
                    dataset_steps(&run->dataset, run->job_options.batch));
        return PROBLEM_EVERYWHERE;
    }
    for (int64_t epoch = 0; epoch < run->epochs && left > 0; epoch++) {
        double values[2] = {0}, start = clock_seconds();
        int64_t now = updates < left ? updates : left, right, images;
        int status = job_train(run->job, now, &values[0]);

        left -= now;
        if (!status)
            status = agree_average(values, 1);
        if (hvd_rank() == 0 && !status)
            printf("epoch %" PRId64 ": %" PRId64 " updates, loss %.4f, "
                   "%.0f images/s\n",
                   epoch + 1, now, values[0],
                   (double)(now * per_update * run->job_options.batch *
                            hvd_size()) /
                       (clock_seconds() - start));
        if (!status)
            status = agree(job_test(run->job, &right, &images));
        if (status)
            return status;
        values[0] = (double)right;
        values[1] = (double)images;
        status = agree_sum(values, 2);
        if (status)
            return status;
        if (hvd_rank() == 0)
            printf("test accuracy %.2f %% of %.0f images\n",
                   100 * values[0] / values[1], values[1]);
    }
    return 0;
}

static int report(struct run *run)
{
    struct cut_stats s;
    uint64_t hash = 0;
    int status = agree(job_stats(run->job, &s));

    if (!status)
        status = agree(job_hash(run->job, &hash));
    if (!status)
        status = agree_same("the weights' hash", hash);
    if (status || hvd_rank() != 0)
        return status;
    printf("on %d modelled IPUs each: %.3g s, idle %.1f %%, %" PRId64
           " slots, %" PRId64 " updates\n"
           "fullest tile %" PRId64 " of %" PRId64 " bytes, most stashed on an "
           "IPU %" PRId64 " bytes, %" PRId64 " bytes between IPUs\n"
           "allreduces %" PRId64 ", %" PRId64 " of them done before they were "
           "needed, waited %.3g s\n"
           "weights %016" PRIx64 "\n",
           s.ipus, s.seconds, 100 * s.idle, s.slots, s.updates, s.tile_bytes,
           s.bytes_per_tile, s.stash_bytes, s.inter_ipu_bytes, s.averages,
           s.early, s.wait, hash);
    return job_profile(run->job, stdout);
}

int main(int argc, char **argv)
{
    struct run run = {0};
    int status;

    interrupt_install();
    status = parse(&run, argc, argv);
    if (status != OPTIONS_RUN)
        return settle(status);
    status = hvd_init();
    if (status < 0) {
        problem_set("hvd: %s", hvd_last_error());
        command_complain(program, PROBLEM_EVERYWHERE, progress_launch_rank(),
                         1);
        return 1;
    }
    status = load(&run);
    if (!status)
        status = train(&run);
    if (!status)
        status = report(&run);
    if (!status)
        status = agree(command_flush());
    if (status < 0)
        command_complain(program, status, hvd_rank(), hvd_size());
    job_free(run.job);
    dataset_fini(&run.dataset);
    hvd_shutdown();
    return status < 0;
}
