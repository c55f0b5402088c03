/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - one table (options_rows.c) has the options of all programs; each
 * row names the programs that have it, and line.c gets the rows of the program
 * that runs. A second table, here, has the field and the range of each option
 * that is a whole number.
 */
#include "options/options.h"

#include "model/digit_networks.h"
#include "options/options_rows.h"
#include "options/values.h"
#include "output/problem.h"

#include <hvd_strategy.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define AT(field)                                                              \
    offsetof(struct options, field), sizeof((struct options){0}.field)

/* The options that are whole numbers. */
static const struct whole {
    int key;
    const char *option;
    int64_t low, high;
    size_t at, bytes; /* place in struct options */
} wholes[] = {
    {KEY_TRAIN, "--train-images", 1, 1000000, AT(train_images)},
    {KEY_TEST, "--test-images", 1, 1000000, AT(test_images)},
    {KEY_EPOCHS, "--epochs", 1, 100000, AT(epochs)},
    {KEY_STEPS, "--steps", 1, 1000000000, AT(steps)},
    {KEY_BATCH, "--batch-size", 1, 65536, AT(batch_size)},
    {KEY_SEED, "--seed", 0, INT64_MAX, AT(seed)},
    {KEY_EVAL, "--eval-every", 0, 1000000000, AT(eval_every)},
    {KEY_CHECK, "--check-every", 0, 1000000000, AT(check_every)},
    {KEY_ACCUMULATE, "--accumulate", 1, 65536, AT(optimizer.accumulate)},
    {KEY_THREADS, "--threads", 1, 1024, AT(threads)},
    {KEY_LAYERS, "--layers", 1, 100, AT(gpt.layers)},
    {KEY_HEADS, "--heads", 1, 1024, AT(gpt.heads)},
    {KEY_WIDTH, "--width", 1, 65536, AT(gpt.width)},
    {KEY_CONTEXT, "--context", 2, 65536, AT(gpt.context)},
    {KEY_WARMUP, "--warmup", 0, 1000000000, AT(warmup)},
    {KEY_WINDOWS, "--eval-windows", 0, 1000000000, AT(eval_windows)},
    {KEY_SAMPLE, "--sample", 0, 1000000, AT(sample)},
    {KEY_STAGES, "--stages", 2, 64, AT(partition.stages)},
    {KEY_REPLICAS, "--replicas", 1, 256, AT(partition.replicas)},
};

/* Reads an option with a whole number as its value. */
static int parse_whole(int key, const char *value, struct options *o)
{
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        const struct whole *w = &wholes[i];
        int64_t wide = 0;
        int narrow;

        if (w->key != key)
            continue;
        if (value_whole(w->option, value, w->low, w->high, &wide) < 0)
            return PROBLEM;
        narrow = (int)wide;
        memcpy((char *)o + w->at,
               w->bytes == sizeof wide ? (void *)&wide : (void *)&narrow,
               w->bytes);
        return 0;
    }
    return problem_set("this option is not read"); /* the tables differ */
}

static int parse_optimizer(const char *value, struct options *o)
{
    int found = 0;
    int status = value_name("--optimizer", value, optimizer_from_name,
                            optimizer_names, &found);

    o->optimizer.optimizer = (enum optimizer)found;
    return status;
}

/* Reads an option that has a value. */
static int parse_value(int key, const char *value, struct options *o)
{
    switch (key) {
    case KEY_DATA: return value_path("--data", value, &o->data);
    case KEY_TEXT: return value_path("--text", value, &o->text);
    case KEY_SUMMARY: return value_path("--summary", value, &o->summary);
    case KEY_WEIGHTS: return value_path("--save-weights", value, &o->weights);
    case KEY_PROFILE: return value_path("--profile", value, &o->profile);
    case KEY_LOAD: return value_path("--load-weights", value, &o->load);
    case KEY_LR:
        return value_real("--lr", value, 0, HUGE_VAL, &o->learning_rate);
    case KEY_DECAY:
        return value_real("--weight-decay", value, 1, HUGE_VAL,
                          &o->optimizer.weight_decay);
    case KEY_PROPORTION:
        return value_real("--available-memory-proportion", value, 0, 1,
                          &o->proportion);
    case KEY_CLIP:
        return value_real("--clip", value, 0, HUGE_VAL, &o->optimizer.clip);
    case KEY_DROPOUT:
        return value_real("--dropout", value, 1, 0.99, &o->gpt.dropout);
    case KEY_TEMPERATURE:
        return value_real("--temperature", value, 0, HUGE_VAL, &o->temperature);
    case KEY_OPTIMIZER: return parse_optimizer(value, o);
    case KEY_MODEL:
        return value_name("--model", value, network_from_name, "cnn, mlp",
                          &o->network);
    case KEY_SCHEDULE:
        return value_name("--schedule", value, partition_schedule_from_name,
                          partition_schedule_names, &o->partition.schedule);
    case KEY_COMPRESSION:
        return value_name("--compression", value, hvd_compression_from_name,
                          "none, fp16, bf16, topk", &o->compression);
    default: return parse_whole(key, value, o);
    }
}

static int take_option(void *context, int key, const char *value)
{
    struct options *o = context;

    switch (key) {
    case KEY_SERIAL: o->serial = true; return 0;
    case KEY_TIE: o->gpt.tied = true; return 0;
    case KEY_RECOMPUTE: o->partition.recompute = true; return 0;
    case KEY_PROMPT: o->prompt = value; return 0;
    default: return parse_value(key, value, o);
    }
}

static const struct {
    const char *name, *doc;
} programs[] = {
    [OPTIONS_MNIST] =
        {"mnist",
         "Train a small network to read handwritten digits, on every rank that "
         "mpirun started.\v"
         "Without --data the digits are drawn by the program and need no "
         "download. Exit status: 0 trained, 1 failed, 64 wrong command line, "
         "130 or 143 interrupted.\n\n"
         "Examples:\n"
         "  mpi-launch.sh -np 2 mnist\n"
         "  mpi-launch.sh -np 4 mnist --data mnist/ --epochs 10 --summary "
         "run.json"},
    [OPTIONS_CHAR_GPT] =
        {"char_gpt",
         "Train a small transformer to write like a text, character by "
         "character, on every rank that mpirun started.\v"
         "Exit status: 0 trained, 1 failed, 64 wrong command line, 130 or 143 "
         "interrupted.\n\n"
         "Examples:\n"
         "  mpi-launch.sh -np 2 char_gpt --text shakespeare.txt\n"
         "  char_gpt --text shakespeare.txt --layers 2 --width 64 --steps 500"},
};

const char *options_name(enum options_program program)
{
    return programs[program].name;
}

const struct line *options_line(enum options_program program,
                                struct options *options)
{
    static struct argp_option table[OPTIONS_ROWS_MOST + 1];
    static struct line line;
    int n = 0;

    for (int i = 0; i < options_nrows; i++)
        if (options_rows[i].programs & 1U << program)
            table[n++] = options_rows[i].option;
    table[n] = (struct argp_option){0};
    line = (struct line){programs[program].name,
                         programs[program].doc,
                         table,
                         take_option,
                         options,
                         NULL};
    return &line;
}

static const struct options defaults[] = {
    [OPTIONS_MNIST] = {.program = OPTIONS_MNIST,
                       .epochs = 5,
                       .batch_size = 64,
                       .optimizer = {OPTIMIZER_ADAM, 0.01, 0, 1},
                       .seed = 1,
                       .eval_every = 1,
                       .threads = 1},
    [OPTIONS_CHAR_GPT] = {.program = OPTIONS_CHAR_GPT,
                          .steps = 1000,
                          .batch_size = 16,
                          .optimizer = {OPTIMIZER_ADAMW, 0.01, 0, 0},
                          .partition = {0, -1, 0, false},
                          .seed = 1,
                          .eval_every = 250,
                          .threads = 1,
                          .gpt = {4, 4, 128, 128, 0, false},
                          .warmup = -1,
                          .eval_windows = 256,
                          .sample = 300,
                          .temperature = 0.8},
};

/* Checks options that need --stages, and those that a pipeline cannot have. */
static int check_partition(const struct options *o)
{
    const char *needs = o->partition.schedule >= 0  ? "schedule"
                        : o->partition.replicas > 0 ? "replicas"
                        : o->partition.recompute    ? "recompute"
                                                    : NULL;
    int interleaved = partition_schedule_from_name("interleaved");

    if (o->partition.stages == 0 && needs)
        return problem_set("--%s is of a pipeline: give --stages, too", needs);
    if (o->partition.stages == 0)
        return 0;
    if (o->optimizer.clip > 0)
        return problem_set("--clip does not go together with --stages: no IPU "
                           "has all of the gradient");
    if (o->partition.stages > o->gpt.layers + 2)
        return problem_set("--stages %d: --layers %d, the tables and the head "
                           "make %d stages at most",
                           o->partition.stages, o->gpt.layers,
                           o->gpt.layers + 2);
    if (o->gpt.tied &&
        (o->partition.stages == 2 || o->partition.schedule == interleaved))
        return problem_set("--tie has the first and the last stage share an "
                           "IPU: there must be 3 --stages or more, and "
                           "--schedule grouped or sequential");
    return 0;
}

/* Checks options that depend on each other. */
static int check_together(const struct options *o)
{
    if (o->program == OPTIONS_CHAR_GPT && o->gpt.width % o->gpt.heads != 0)
        return problem_set("--width %d cannot be shared out to --heads %d: it "
                           "must be a multiple of them",
                           o->gpt.width, o->gpt.heads);
    return o->program == OPTIONS_CHAR_GPT ? check_partition(o) : 0;
}

/* Sets options that were not given and depend on others. A multiple of twice
 * the stages suits every schedule; a pipeline makes whole updates. */
static void fill_in(struct options *o)
{
    int round = 2 * o->partition.stages;

    if (o->optimizer.accumulate == 0)
        o->optimizer.accumulate = round ? (7 + round) / round * round : 1;
    if (o->partition.schedule < 0)
        o->partition.schedule = 0;
    if (o->partition.replicas == 0)
        o->partition.replicas = 1;
    if (o->partition.stages > 0) {
        int64_t update = o->optimizer.accumulate;

        o->steps = (o->steps + update - 1) / update * update;
        o->eval_every = (int)((o->eval_every + update - 1) / update * update);
    }
    if (o->warmup < 0)
        o->warmup = o->steps / 10;
}

int options_parse(enum options_program program, struct options *options,
                  int argc, char **argv)
{
    int outcome;

    *options = defaults[program];
    outcome = line_parse(options_line(program, options), argc, argv);
    if (outcome == LINE_RUN && check_together(options) < 0)
        return PROBLEM;
    if (outcome == LINE_RUN)
        fill_in(options);
    return outcome;
}

double options_default_rate(const struct options *options, int nranks)
{
    static const double rates[][5] = {
        [OPTIONS_MNIST] = {[OPTIMIZER_SGD] = 0.1,
                           [OPTIMIZER_MOMENTUM] = 0.02,
                           [OPTIMIZER_ADAM] = 0.002,
                           [OPTIMIZER_ADAMW] = 0.002,
                           [OPTIMIZER_LAMB] = 0.01},
        [OPTIONS_CHAR_GPT] = {[OPTIMIZER_SGD] = 0.3,
                              [OPTIMIZER_MOMENTUM] = 0.1,
                              [OPTIMIZER_ADAM] = 0.003,
                              [OPTIMIZER_ADAMW] = 0.003,
                              [OPTIMIZER_LAMB] = 0.01},
    };
    double rate = rates[options->program][options->optimizer.optimizer];
    double scale = (double)options->batch_size * options->optimizer.accumulate *
                   nranks / 64;

    if (options->program == OPTIONS_CHAR_GPT)
        return rate;
    return rate * (scale < 4 ? scale : 4);
}

void options_set_rate(struct options *options, int nranks)
{
    if (options->learning_rate == 0)
        options->learning_rate = options_default_rate(options, nranks);
}

double options_rate(const struct options *o, int64_t step)
{
    const double pi = 3.14159265358979323846, least = 0.1;
    int64_t rest = o->steps - o->warmup - 1;

    if (o->program == OPTIONS_MNIST)
        return o->learning_rate;
    if (step < o->warmup)
        return o->learning_rate * (double)(step + 1) / (double)o->warmup;
    if (rest < 1)
        return o->learning_rate;
    double part = (double)(step - o->warmup) / (double)rest;
    return o->learning_rate *
           (least + (1 - least) * 0.5 * (1 + cos(pi * part)));
}

struct trainer_options options_trainer(const struct options *options)
{
    return (struct trainer_options){.optimizer = options->optimizer,
                                    .seed = options->seed,
                                    .compression = options->compression,
                                    .check_every = options->check_every,
                                    .threads = options->threads,
                                    .proportion = options->proportion,
                                    .serial = options->serial,
                                    .load = options->load,
                                    .partition = options->partition,
                                    .profile = options->profile};
}
