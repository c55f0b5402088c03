/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_rows.c - one table has the options of both programs, in the order of
 * --help. A row says how the value is read, which member of struct options it
 * goes to, and what the help of each program says about it; a program without
 * a text does not have the option.
 */
#include "options/options_rows.h"

#include "networks/digit_networks.h"
#include "options/values.h"
#include "output/problem.h"
#include "trainer/strategy.h"

#include <hvd_schedule.h>
#include <hvd_strategy.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define FORM(field, ...)                                                       \
    .at = offsetof(struct options, field),                                     \
    .form = {.bytes = sizeof((struct options){0}.field), __VA_ARGS__}
#define FLAG_OF(field) FORM(field, .kind = VALUE_FLAG)
#define TEXT_TO(field) FORM(field, .kind = VALUE_TEXT)
#define PATH_TO(field) FORM(field, .kind = VALUE_PATH)
#define WHOLE_IN(field, l, h)                                                  \
    FORM(field, .kind = VALUE_WHOLE, .low = l, .high = h)
#define REAL_IN(field, z, m)                                                   \
    FORM(field, .kind = VALUE_REAL, .zero = z, .most = m)
#define NAME_OF(field, n) FORM(field, .kind = VALUE_NAME, .names = n)

#define MNIST(text) .help = {text, NULL}
#define GPT(text) .help = {NULL, text}
#define BOTH(text) .help = {text, text}
#define EACH(of_mnist, of_gpt) .help = {of_mnist, of_gpt}

static const char *const schedule_names[] = {
    [HVD_SCHEDULE_CONSTANT] = "constant",
    [HVD_SCHEDULE_STEP] = "step",
    [HVD_SCHEDULE_COSINE] = "cosine",
    [HVD_SCHEDULE_ONE_CYCLE] = "one-cycle",
    NULL};

static const char *const compression_names[] = {[HVD_COMPRESSION_NONE] = "none",
                                                [HVD_COMPRESSION_FP16] = "fp16",
                                                [HVD_COMPRESSION_BF16] = "bf16",
                                                [HVD_COMPRESSION_TOPK] = "topk",
                                                NULL};

static const struct row {
    const char *name; /* NULL: a heading */
    int letter;       /* 0: there is none */
    const char *argument;
    size_t at; /* place in struct options */
    struct value_form form;
    int group;           /* of a heading */
    const char *help[2]; /* of each program */
} rows[] = {
    {.group = 1, BOTH("Data:")},
    {"data", 'd', "DIR", PATH_TO(data),
     MNIST("read the four MNIST files in DIR, plain or .gz (default: draw "
           "digits)")},
    {"train-images", 0, "N", WHOLE_IN(train_images, 1, 1000000),
     MNIST(
         "train on the first N images (default: all of DIR, or 40000 drawn)")},
    {"test-images", 0, "N", WHOLE_IN(test_images, 1, 1000000),
     MNIST("test on the first N images (default: all of DIR, or 5000 drawn)")},
    {"text", 0, "FILE", PATH_TO(text),
     GPT("learn to write like FILE (default: hvd's own documentation)")},
    {.group = 2, BOTH("Network:")},
    {"model", 0, "NAME", NAME_OF(network, network_names),
     MNIST("cnn, cnn-bn (cnn with a batch normalisation) or mlp (cnn)")},
    {"layers", 0, "N", WHOLE_IN(gpt.layers, 1, 100),
     GPT("number of blocks of the transformer (4)")},
    {"heads", 0, "N", WHOLE_IN(gpt.heads, 1, 1024),
     GPT("number of attention heads, which divides the width (4)")},
    {"width", 0, "N", WHOLE_IN(gpt.width, 1, 65536),
     GPT("units for each character (128)")},
    {"context", 0, "N", WHOLE_IN(gpt.context, 2, 65536),
     GPT("characters the network looks back (128)")},
    {"dropout", 0, "X", REAL_IN(gpt.dropout, 1, 0.99),
     GPT("share of the activations that training drops at random (0)")},
    {"tie", 0, NULL, FLAG_OF(gpt.tied),
     GPT("use one table of characters for input and output")},
    {"graphs", 0, "DIR", PATH_TO(graphs),
     BOTH("train the network whose graphs and first weights are in DIR, as "
          "hvd-server gets them; its input and labels must be those of the "
          "program's own")},
    {.group = 3, BOTH("Training:")},
    {"epochs", 'e', "N", WHOLE_IN(epochs, 1, 100000),
     MNIST("passes over the training images (5)")},
    {"steps", 's', "N", WHOLE_IN(steps, 1, 1000000000),
     EACH("stop after N steps in all, whatever --epochs is (no limit)",
          "steps of training (1000)")},
    {"batch-size", 'b', "N", WHOLE_IN(batch_size, 1, 65536),
     EACH("images per replica and step (64)",
          "pieces of the text per replica and step, each of --context "
          "characters (16)")},
    {"global-batch", 0, "N", WHOLE_IN(global_batch, 1, 1000000000),
     EACH("images of a step over all replicas of all ranks, shared out evenly, "
          "instead of --batch-size",
          "pieces of the text of a step over all replicas of all ranks, shared "
          "out evenly, instead of --batch-size")},
    {"optimizer", 0, "NAME", NAME_OF(optimizer.optimizer, optimizer_names),
     EACH("sgd, momentum, adam, adamw, lamb, nesterov, rmsprop, adagrad, "
          "adadelta, lion or lars (adam)",
          "sgd, momentum, adam, adamw, lamb, nesterov, rmsprop, adagrad, "
          "adadelta, lion or lars (adamw)")},
    {"lr", 0, "X", REAL_IN(learning_rate, 0, HUGE_VAL),
     EACH("learning rate (per 64 images of a step, at most 4 times: adam and "
          "adamw 0.002, lamb 0.01, momentum and nesterov 0.02, sgd 0.1, "
          "rmsprop 0.002, adagrad 0.02, adadelta 1, lion 0.001, lars 2)",
          "highest learning rate (adam and adamw 0.003, lamb 0.01, momentum "
          "and nesterov 0.1, sgd 0.3, rmsprop 0.002, adagrad 0.05, adadelta 1, "
          "lion 0.001, lars 5)")},
    {"lr-schedule", 0, "NAME", NAME_OF(schedule, schedule_names),
     EACH("how the rate goes on: constant, step (to a tenth after half of the "
          "steps, and again after three quarters), cosine (to a tenth in the "
          "last step) or one-cycle (up in 30 % of the steps, and down, with "
          "momentum or beta1 from 0.95 to 0.85 and back) (constant)",
          "how the rate goes on: constant, step (to a tenth after half of the "
          "steps, and again after three quarters), cosine (to a tenth in the "
          "last step) or one-cycle (up in 30 % of the steps, and down, with "
          "momentum or beta1 from 0.95 to 0.85 and back) (cosine)")},
    {"warmup", 0, "N", WHOLE_IN(warmup, 0, 1000000000),
     EACH("steps in which the rate rises evenly before that (0)",
          "steps in which the rate rises evenly before that (a tenth of "
          "--steps; one-cycle: 0)")},
    {"weight-decay", 0, "X", REAL_IN(optimizer.weight_decay, 1, HUGE_VAL),
     BOTH("weight decay, not of biases and scales (adamw, lamb and lion 0.01, "
          "lars 0.0001, others 0)")},
    {"clip", 0, "X", REAL_IN(optimizer.clip, 0, HUGE_VAL),
     BOTH("shorten the gradient of all variables together to X if it is longer "
          "(never)")},
    {"ema", 0, "X", REAL_IN(ema, 1, 0.999999),
     EACH(
         "evaluate running averages of the weights, of which each update keeps "
         "the share X, such as 0.999, and save those (0: the weights)",
         "evaluate running averages of the weights, of which each update keeps "
         "the share X, such as 0.999, and save and sample from those (0: the "
         "weights)")},
    {"accumulate", 0, "N", WHOLE_IN(optimizer.accumulate, 1, 65536),
     EACH("update the weights in every Nth step only, with the mean of the "
          "gradients since the last update; ranks average only then (1)",
          "update the weights in every Nth step only, with the mean of the "
          "gradients since the last update; ranks average only then (1; with "
          "--stages a multiple of twice as many, 8 or more)")},
    {"seed", 0, "N", WHOLE_IN(seed, 0, INT64_MAX),
     EACH("seed of the first weights, the order of the images and the drawn "
          "digits (1)",
          "seed of the first weights, the pieces of text, dropout and the "
          "sample (1)")},
    {"compression", 0, "NAME", NAME_OF(compression, compression_names),
     BOTH("how gradients travel: none, fp16, bf16 or topk (none)")},
    {"check-every", 0, "N", WHOLE_IN(check_every, 0, 1000000000),
     BOTH("compare the weights of all ranks every N updates; 0: only at the "
          "end (0)")},
    {"serial", 0, NULL, FLAG_OF(serial),
     BOTH("reduce gradients only after the backward pass, for comparison")},
    {"available-memory-proportion", 0, "P", REAL_IN(proportion, 0, 1),
     BOTH("share of a tile that a matrix product or convolution may take for "
          "intermediate results; less memory takes more cycles (0.6)")},
    {"threads", 0, "N", WHOLE_IN(threads, 1, 1024),
     EACH("threads of matrix products per rank (1)",
          "threads per rank: of matrix products, or of the stages (1)")},
    {.group = 4, BOTH("Strategy:")},
    {"strategy", 0, "NAME", NAME_OF(strategy, strategy_names),
     BOTH("how processes train together: horovod (over MPI, started by mpirun) "
          "or multi-worker (without MPI, described by TF_CONFIG, or started "
          "by mpirun or --spawn) or mirrored (on several IPUs of each "
          "process) or parameter-server (started in either way; the last "
          "ranks hold variables and optimizer) or device-collective (on the "
          "network of the IPUs, one of each process) (whichever the process "
          "was started for)")},
    {"variables-on-host", 0, NULL, FLAG_OF(variables_on_host),
     BOTH("have the optimizer and the only copy of its state on the host, and "
          "give the devices new values in each step")},
    {"sync-batch-norm", 0, NULL, FLAG_OF(synchronised),
     MNIST("normalise by the batches of all replicas of all ranks together, "
           "each of which has otherwise statistics of its own; not under "
           "parameter-server")},
    {"servers", 0, "N", WHOLE_IN(servers.count, 1, 65536),
     BOTH("how many of the ranks are parameter servers, which need neither "
          "data nor a device (1)")},
    {"ps-mode", 0, "NAME", NAME_OF(servers.mode, servers_modes),
     BOTH("when servers update: sync (with the average of all workers), async "
          "(with each gradient) or stale (with each, and no worker is further "
          "ahead than --staleness) (sync)")},
    {"backups", 0, "N", WHOLE_IN(servers.backups, 0, 65536),
     BOTH("workers that a step of --ps-mode sync does not wait for (0)")},
    {"staleness", 0, "N", WHOLE_IN(servers.staleness, 0, 1000000000),
     BOTH("steps that a worker may be ahead of the slowest, in --ps-mode stale "
          "(0)")},
    {"ps-placement", 0, "NAME", NAME_OF(servers.placement, servers_placements),
     BOTH("which server holds what: turns, or bytes, the one with the fewest "
          "(turns)")},
    {"ps-part-bytes", 0, "N", WHOLE_IN(servers.part_bytes, 0, INT32_MAX),
     BOTH("split larger variables into parts of that size for several "
          "servers; 0: none is split (0)")},
    {"bf16-recipe", 0, "R", TEXT_TO(recipe),
     BOTH("what travels as bfloat16 under device-collective: full, 0, or the "
          "path of a JSON recipe, as TF_BF16_CONVERSION has it (0)")},
    {"pack-bytes", 0, "N", WHOLE_IN(pack_bytes, 0, INT64_MAX),
     BOTH("pack gradients up to N bytes under device-collective; 0: all "
          "together (4194304)")},
    {"cluster", 0, "FILE", PATH_TO(cluster),
     BOTH("train with the tasks of FILE, a description of a cluster as in "
          "TF_CONFIG, instead of that variable")},
    {"task", 0, "ROLE:N", TEXT_TO(task),
     BOTH("the task of --cluster that this process is: chief, worker:1, ... "
          "(that of the rank under mpirun, or of FILE)")},
    {"spawn", 0, "N", WHOLE_IN(spawn, 1, 1024),
     BOTH("start N workers on this host, which train together without MPI")},
    {"base-port", 0, "N", WHOLE_IN(base_port, 1, 65535),
     BOTH("port of rank 0 of processes that mpirun or --spawn started, for a "
          "cluster without MPI; rank r has the port N + r (3737 under mpirun, "
          "ports that are free with --spawn)")},
    {"replicas", 0, "N", WHOLE_IN(replicas, 1, 256),
     EACH(
         "copies of the network in each process, each on an IPU of its own (1; "
         "mirrored: 2)",
         "copies of the network, or with --stages of the pipeline, in each "
         "process, each on IPUs of its own (1; mirrored: 2)")},
    {"cross-device", 0, "NAME", NAME_OF(sums.algorithm, sums_algorithms),
     BOTH(
         "how sums travel between the IPUs of the replicas: ring, hierarchical "
         "or one-device; it changes cycles and bytes, but no number (ring)")},
    {"packs", 0, "N", WHOLE_IN(sums.packs, 0, 65536),
     BOTH("send the sums over replicas that are ready together in N packs of "
          "equal size; 0: each by itself (0)")},
    {"remote", 0, "FILE", PATH_TO(remote),
     EACH("have the servers (hvd-server) of the cluster in FILE train, and "
          "print here what they do; --data is then a folder of theirs",
          "have the servers (hvd-server) of the cluster in FILE train, and "
          "print here what they do")},
    {.group = 5, GPT("Several IPUs:")},
    {"stages", 0, "N", WHOLE_IN(partition.stages, 2, 64),
     GPT("cut the network into a pipeline of N stages, each on an IPU of its "
         "own; --accumulate is then the number of mini-batches that go through "
         "it for an update (one IPU)")},
    {"schedule", 0, "NAME", NAME_OF(partition.schedule, partition_schedules),
     GPT("schedule of the stages: grouped, interleaved or sequential "
         "(grouped)")},
    {"recompute", 0, NULL, FLAG_OF(partition.recompute),
     GPT("compute activations again on the way back, instead of keeping them")},
    {.group = 6, BOTH("Results:")},
    {"eval-every", 0, "N", WHOLE_IN(eval_every, 0, 1000000000),
     EACH("evaluate on the test images every N epochs and at the end; 0: only "
          "at the end (1)",
          "evaluate on the last tenth of the text, which is not trained on, "
          "every N steps and at the end; 0: only at the end (250)")},
    {"eval-windows", 0, "N", WHOLE_IN(eval_windows, 0, 1000000000),
     GPT("evaluate on N pieces of that part; 0: all of it (256)")},
    {"sample", 0, "N", WHOLE_IN(sample, 0, 1000000),
     GPT("write N characters at the end (300)")},
    {"temperature", 0, "X", REAL_IN(temperature, 0, HUGE_VAL),
     GPT("temperature of the sample; towards 0 it has only likely characters "
         "(0.8)")},
    {"prompt", 0, "TEXT", TEXT_TO(prompt),
     GPT("text that the sample goes on from (the first character of the "
         "text)")},
    {"summary", 0, "FILE", PATH_TO(summary),
     BOTH("write the results as JSON to FILE")},
    {"save-weights", 0, "FILE", PATH_TO(weights),
     BOTH("write the trained weights to FILE (safetensors)")},
    {"load-weights", 0, "FILE", PATH_TO(load),
     BOTH("start from the weights in FILE (safetensors)")},
    {"losses", 0, "FILE", PATH_TO(losses),
     BOTH("write the loss of every step over all ranks to FILE, a line each")},
    {"log-dir", 0, "DIR", PATH_TO(log_dir),
     BOTH("write logs of the training to DIR, and a page about it at the end: "
          "loss, rate, speed, time, ranks, histograms")},
    {"log", 0, "LIST", TEXT_TO(log),
     BOTH("what is written there: tensorboard, csv and jsonl, with commas "
          "between them, or all (all)")},
    {"log-every", 0, "N", WHOLE_IN(log_every, 1, 1000000000),
     BOTH("steps that a point of these logs stands for (10)")},
    {"histograms-every", 0, "N", WHOLE_IN(histograms_every, 0, 1000000000),
     BOTH("steps between histograms of weights and gradients in them; 0: none "
          "(100)")},
    {"model-dir", 0, "DIR", PATH_TO(model_dir),
     BOTH("write checkpoints to DIR, also for an evaluator of the cluster, and "
          "go on from the newest that is there")},
    {"checkpoint-every", 0, "N", WHOLE_IN(checkpoint_every, 0, 1000000000),
     BOTH("write one every N steps, and one at the end; 0: only at the end "
          "(100)")},
    {"elastic", 0, "MIN[:MAX]", TEXT_TO(elastic),
     BOTH(
         "go on when ranks are lost, as long as MIN are left, and with workers "
         "that come back; MAX is how many may begin (start them by "
         "mpi-launch.sh --elastic or hvd-run --elastic)")},
    {"elastic-every", 0, "N", WHOLE_IN(elastic_steps, 1, 1000000000),
     BOTH("with --elastic, commit the state in memory every N updates (10)")},
    {"exclude-stragglers", 0, "X", REAL_IN(exclude_stragglers, 1, 1e6),
     BOTH("with --elastic, go on without a rank that takes X times as long as "
          "the median for its part of the steps, 1.25 or more, as long as MIN "
          "are left; 0: with all (0)")},
    {"elastic-log", 0, "FILE", PATH_TO(elastic_log),
     BOTH("with --elastic, add a line of JSON for each commit, loss, restore "
          "and join")},
    {"elastic-replay", 0, "FILE", PATH_TO(elastic_replay),
     BOTH("with --elastic, lose ranks and gain some as such a file says, at "
          "the same steps")},
    {"checkpoint-wait", 0, "S", WHOLE_IN(checkpoint_wait, 1, 1000000),
     BOTH("seconds that an evaluator waits for the next checkpoint (600)")},
    {"profile", 0, "DIR", PATH_TO(profile), BOTH(LINE_PROFILE_HELP)},
    {"quiet", 'q', NULL, FLAG_OF(quiet), BOTH(LINE_QUIET_HELP)},
};

enum { ROWS = sizeof rows / sizeof *rows, FIRST_KEY = 256 };

/* Returns the number by which argp calls an option. */
static int key_of(const struct row *row)
{
    return row->letter ? row->letter : FIRST_KEY + (int)(row - rows);
}

const struct argp_option *options_table(enum options_program program)
{
    static const struct argp_option ends[] = {LINE_ROWS, {0}};
    static struct argp_option table[ROWS + sizeof ends / sizeof *ends];
    int n = 0;

    for (const struct row *r = rows; r < rows + ROWS; r++)
        if (r->help[program])
            table[n++] = (struct argp_option){
                .name = r->name,
                .key = r->name ? key_of(r) : 0,
                .arg = r->argument,
                .doc = r->help[program],
                .group = r->group,
            };
    memcpy(&table[n], ends, sizeof ends);
    return table;
}

_Static_assert((int)ROWS <= (int)OPTIONS_MOST_GIVEN, "each can be given");

/* The last of several is the one that counts. */
static void note_given(struct options *options, const char *name,
                       const char *value)
{
    int i = 0;

    while (i < options->ngiven && strcmp(options->given[i].name, name) != 0)
        i++;
    options->given[i] = (struct option_given){name, value};
    options->ngiven += i == options->ngiven;
}

int options_take(void *options, int key, const char *value)
{
    for (const struct row *r = rows; r < rows + ROWS; r++)
        if (r->name && key_of(r) == key) {
            note_given(options, r->name, value);
            return value_take(&r->form, r->name, value,
                              (char *)options + r->at);
        }
    return problem_set("this option is not read"); /* the table lacks it */
}
