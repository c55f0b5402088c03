/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelined - trains a network that is spread over several software IPUs: in
 * stages, which work at the same time on different mini-batches, in replicas of
 * these, and on every rank. Gradients are averaged over all
 * of them once an update, which takes --count mini-batches for each replica;
 * those of a stage are averaged while the stages before it still go backwards.
 */
#include "command/command.h"
#include "model/optimizer.h"
#include "options/line.h"
#include "output/problem.h"
#include "pipeline/run.h"

/* Sets options that were not given and depend on others. */
static void fill_in(struct run *run)
{
    struct job_options *j = &run->job_options;
    int towers = j->net == NET_TOWERS, round;

    run->source.seed = j->seed;
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

/* Returns the outcome of the line. */
static int check_log(struct run_log *log, const char *formats, int outcome)
{
    if (outcome != LINE_RUN || !formats)
        return outcome;
    if (!log->folder.path)
        return problem_set("--log says what a folder of logs gets: give "
                           "--log-dir, too");
    if (hvd_log_read_formats(formats, &log->folder.formats) < 0)
        return problem_set("--log: %s", problem_text());
    return outcome;
}

static int run_all(struct command *command)
{
    return run_pipeline(command->context, command->progress);
}

int main(int argc, char **argv)
{
    struct run run = {.epochs = 1,
                      .log = {.folder.formats = HVD_LOG_ALL, .every = 10},
                      .job_options = {.replicas = 1,
                                      .batch = 16,
                                      .optimizer = OPTIMIZER_MOMENTUM,
                                      .seed = 1}};
    struct job_options *j = &run.job_options;
    const char *formats = NULL;
    bool quiet = false;
    const struct line_row rows[] = {
        {"model", 0, "NAME", "mlp, cnn, resnet or towers (mlp)",
         LINE_NAME(j->net, net_names)},
        {"stages", 0, "N", "number of stages: 2 to 8 (2; 4 for towers)",
         LINE_WHOLE(j->stages, 2, 8)},
        {"schedule", 0, "NAME",
         "schedule of the stages: grouped, interleaved or sequential (grouped)",
         LINE_NAME(j->schedule, partition_schedules)},
        {"count", 0, "N",
         "mini-batches of an update (8 or more, as the stages need)",
         LINE_WHOLE(j->count, 1, 1 << 20)},
        {.name = "accumulate"},
        {"replicas", 0, "N", "copies of the pipeline: 1 to 8 (1)",
         LINE_WHOLE(j->replicas, 1, 8)},
        {"recompute", 0, NULL,
         "compute activations again, instead of keeping them",
         LINE_FLAG(j->recompute)},
        {"optimizer", 0, "NAME",
         "sgd, momentum, adam, adamw, lamb, nesterov, rmsprop, adagrad, "
         "adadelta, lion or lars (momentum)",
         LINE_NAME(j->optimizer, optimizer_names)},
        {"lr", 0, "X",
         "learning rate (0.1 for sgd, 0.05 for momentum, else 0.001)",
         LINE_REAL(j->rate, 100)},
        {"batch-size", 'b', "N", "images of a mini-batch (16)",
         LINE_WHOLE(j->batch, 1, 4096)},
        {"epochs", 'e', "N", "passes over the training images (1)",
         LINE_WHOLE(run.epochs, 1, 100000)},
        {"updates", 0, "N", "most updates in all (no limit)",
         LINE_WHOLE(run.updates, 1, 1 << 30)},
        {"data", 'd', "DIR", "directory of MNIST files (digits are drawn)",
         LINE_PATH(run.source.directory)},
        {"train-images", 0, "N", "most training images (all, or 40000 drawn)",
         LINE_WHOLE(run.source.count, 1, 1 << 24)},
        {"test-images", 0, "N", "most test images (all, or 5000 drawn)",
         LINE_WHOLE(run.test_images, 1, 1 << 24)},
        {"seed", 0, "N", "seed of weights, order and drawn digits (1)",
         LINE_WHOLE(j->seed, 0, INT64_MAX)},
        {"threads", 0, "N",
         "threads that stages run on; 0: one for each, if there are cores (0)",
         LINE_WHOLE(j->threads, 0, 64)},
        {"log-dir", 0, "DIR",
         "write logs of the training to DIR, and a page about it at the end: "
         "loss, rate, speed, time, accuracy",
         LINE_PATH(run.log.folder.path)},
        {"log", 0, "LIST",
         "what is written there: tensorboard, csv and jsonl, with commas "
         "between them, or all (all)",
         LINE_TEXT(formats)},
        {"log-every", 0, "N",
         "updates that a point of these logs stands for (10)",
         LINE_WHOLE(run.log.every, 1, 1000000000)},
        LINE_PROFILE(j->profile),
        {"quiet", 'q', NULL, LINE_QUIET_HELP, LINE_FLAG(quiet)},
        {0}};
    const struct line line = {
        .program = "pipelined",
        .doc = "Train a network that reads digits, spread over several "
               "software IPUs, on every rank that mpirun started or TF_CONFIG "
               "describes.\v"
               "Exit status: 0 trained, 1 failed, 64 wrong command line, 130 "
               "or 143 interrupted.",
        .rows = rows};
    struct command command = {.run = run_all, .context = &run};
    int outcome = line_parse(&line, argc, argv);

    outcome = check_log(&run.log, formats, outcome);
    fill_in(&run);
    command.quiet = quiet;
    return command_run(&line, outcome, &command);
}
