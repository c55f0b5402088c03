/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line, on argp. argp would print its own messages and exit, on
 * every rank; so it is told to be silent (ARGP_NO_ERRS), help and version are
 * options of ours, and where argp meets an option it cannot place,
 * explain_option says why. Numbers are read whole and in range or not at all:
 * "10x", "", " 5" and "1e3" for a count are errors.
 */
#include "common/options.h"

#include "common/problem.h"

#include <argp.h>
#include <errno.h>
#include <hvd_strategy.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_DATA = 'd',
    KEY_EPOCHS = 'e',
    KEY_STEPS = 's',
    KEY_BATCH = 'b',
    KEY_HELP = 'h',
    KEY_VERSION = 'V',
    KEY_LR = 256,
    KEY_OPTIMIZER,
    KEY_SEED,
    KEY_EVAL,
    KEY_CHECK,
    KEY_SUMMARY,
    KEY_WEIGHTS,
    KEY_PROFILE,
    KEY_SERIAL,
    KEY_COMPRESSION,
    KEY_THREADS,
    KEY_TRAIN,
    KEY_TEST
};

static const struct argp_option table[] = {
    {0, 0, 0, 0, "Data:", 1},
    {"data", KEY_DATA, "DIR", 0,
     "read the four MNIST files in DIR, plain or .gz (default: draw digits)",
     0},
    {"train-images", KEY_TRAIN, "N", 0,
     "train on the first N images (default: all of DIR, or 40000 drawn)", 0},
    {"test-images", KEY_TEST, "N", 0,
     "test on the first N images (default: all of DIR, or 5000 drawn)", 0},
    {0, 0, 0, 0, "Training:", 2},
    {"epochs", KEY_EPOCHS, "N", 0, "passes over the training images (5)", 0},
    {"steps", KEY_STEPS, "N", 0,
     "stop after N steps in all, whatever --epochs says (no limit)", 0},
    {"batch-size", KEY_BATCH, "N", 0, "images per rank and step (64)", 0},
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "sgd, momentum or adam (adam)", 0},
    {"lr", KEY_LR, "X", 0,
     "learning rate (per 64 images of a step, at most 4 times: adam 0.002, "
     "momentum 0.02, sgd 0.1)",
     0},
    {"seed", KEY_SEED, "N", 0,
     "seed of the first weights, the order of the images and the drawn digits "
     "(1)",
     0},
    {"compression", KEY_COMPRESSION, "NAME", 0,
     "how gradients travel: none, fp16, bf16 or topk (none)", 0},
    {"check-every", KEY_CHECK, "N", 0,
     "compare the weights of all ranks every N steps; 0: only at the end (0)",
     0},
    {"serial", KEY_SERIAL, 0, 0,
     "reduce gradients only after the backward pass, to compare with", 0},
    {"threads", KEY_THREADS, "N", 0, "threads of matrix products per rank (1)",
     0},
    {0, 0, 0, 0, "Results:", 3},
    {"eval-every", KEY_EVAL, "N", 0,
     "evaluate on the test images every N epochs and at the end; 0: only at "
     "the end (1)",
     0},
    {"summary", KEY_SUMMARY, "FILE", 0, "write the results as JSON to FILE", 0},
    {"save-weights", KEY_WEIGHTS, "FILE", 0,
     "write the trained weights to FILE (safetensors)", 0},
    {"profile", KEY_PROFILE, "DIR", 0,
     "write what the device's memory and time go to into DIR (report.html, "
     "profile.json), or print it: --profile text",
     0},
    {"help", KEY_HELP, 0, 0, "print this text", -1},
    {"version", KEY_VERSION, 0, 0, "print the version", -1},
    {0}};

/* What argp hands to parse_option. */
struct parsing {
    struct options *options;
    int outcome; /* OPTIONS_* */
};

/* A whole number in [low, high], digits only. */
static int parse_whole(const char *option, const char *value, int64_t low,
                       int64_t high, int64_t *number)
{
    const char *digits = value + (*value == '-');
    bool whole = *digits != '\0' && digits[strspn(digits, "0123456789")] == 0;

    errno = 0;
    long long parsed = whole ? strtoll(value, NULL, 10) : 0;
    if (!whole || errno != 0 || parsed < low || parsed > high)
        return problem_set("%s: '%s' is not a whole number from %lld to %lld",
                           option, value, (long long)low, (long long)high);
    *number = parsed;
    return 0;
}

static int parse_int(const char *option, const char *value, int low, int high,
                     int *number)
{
    int64_t wide = 0;

    if (parse_whole(option, value, low, high, &wide) < 0)
        return PROBLEM;
    *number = (int)wide;
    return 0;
}

/* A decimal number above 0; no hexadecimal, no "inf", no "nan". */
static int parse_rate(const char *option, const char *value, double *number)
{
    char *end = NULL;
    double parsed = strtod(value, &end);

    if (*value == '\0' || value[strspn(value, "0123456789.eE+-")] != '\0' ||
        *end != '\0' || !isfinite(parsed) || parsed <= 0)
        return problem_set("%s: '%s' is not a number above 0 (like 0.001)",
                           option, value);
    *number = parsed;
    return 0;
}

static int parse_optimizer(const char *option, const char *value, int *number)
{
    int found = hvd_optimizer_from_name(value);

    if (found < 0)
        return problem_set("%s: '%s' is none of sgd, momentum, adam", option,
                           value);
    *number = found;
    return 0;
}

static int parse_compression(const char *option, const char *value, int *number)
{
    int found = hvd_compression_from_name(value);

    if (found < 0)
        return problem_set("%s: '%s' is none of none, fp16, bf16, topk", option,
                           value);
    *number = found;
    return 0;
}

static int parse_path(const char *option, const char *value, const char **path)
{
    if (*value == '\0')
        return problem_set("%s: '' is not a path", option);
    *path = value;
    return 0;
}

/* argv[next - 1] is an option argp could not place: say what is wrong. */
static int explain_option(const struct argp_state *state)
{
    const char *word = state->argv[state->next - 1];
    size_t length = strcspn(word, "=");
    const struct argp_option *match = NULL;
    int matches = 0;

    if (length <= 2 || strncmp(word, "--", 2) != 0)
        return problem_set("'%s' is not an option, or lacks its value; see "
                           "--help",
                           word);
    for (const struct argp_option *o = table; o->name || o->doc; o++) {
        if (!o->name || strncmp(o->name, word + 2, length - 2) != 0)
            continue;
        match = o;
        matches++;
        if (strlen(o->name) == length - 2) {
            matches = 1;
            break;
        }
    }
    if (matches == 0)
        return problem_set("there is no option %s; see --help", word);
    if (matches > 1)
        return problem_set("%s may be more than one option; write it in full",
                           word);
    if (match->arg)
        return problem_set("--%s needs a value, --%s %s", match->name,
                           match->name, match->arg);
    return problem_set("--%s takes no value, but %s was given", match->name,
                       word);
}

/* 0, PROBLEM, or ARGP_ERR_UNKNOWN for what is not a number option. */
static int parse_number(int key, const char *value, struct parsing *parsing)
{
    struct options *o = parsing->options;
    int64_t wide = 0;

    switch (key) {
    case KEY_TRAIN:
        return parse_whole("--train-images", value, 1, 1000000,
                           &o->train_images);
    case KEY_TEST:
        return parse_whole("--test-images", value, 1, 1000000, &o->test_images);
    case KEY_EPOCHS: return parse_int("--epochs", value, 1, 100000, &o->epochs);
    case KEY_STEPS:
        return parse_whole("--steps", value, 1, 1000000000, &o->steps);
    case KEY_BATCH:
        return parse_int("--batch-size", value, 1, 65536, &o->batch_size);
    case KEY_SEED:
        if (parse_whole("--seed", value, 0, INT64_MAX, &wide) < 0)
            return PROBLEM;
        o->seed = (uint64_t)wide;
        return 0;
    case KEY_EVAL:
        return parse_int("--eval-every", value, 0, 100000, &o->eval_every);
    case KEY_CHECK:
        return parse_int("--check-every", value, 0, 1000000000,
                         &o->check_every);
    case KEY_THREADS:
        return parse_int("--threads", value, 1, 1024, &o->threads);
    case KEY_LR: return parse_rate("--lr", value, &o->learning_rate);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    struct options *o = parsing->options;
    int status = 0;

    switch (key) {
    case KEY_DATA: status = parse_path("--data", value, &o->data); break;
    case KEY_OPTIMIZER:
        status = parse_optimizer("--optimizer", value, &o->optimizer);
        break;
    case KEY_COMPRESSION:
        status = parse_compression("--compression", value, &o->compression);
        break;
    case KEY_SUMMARY:
        status = parse_path("--summary", value, &o->summary);
        break;
    case KEY_WEIGHTS:
        status = parse_path("--save-weights", value, &o->weights);
        break;
    case KEY_PROFILE:
        status = parse_path("--profile", value, &o->profile);
        break;
    case KEY_SERIAL: o->serial = true; break;
    case KEY_HELP: parsing->outcome = OPTIONS_HELP; break;
    case KEY_VERSION: parsing->outcome = OPTIONS_VERSION; break;
    case ARGP_KEY_ARG:
        status = problem_set("'%s' is not an option; see --help", value);
        break;
    case ARGP_KEY_ERROR:
        if (*problem_text() == '\0')
            explain_option(state);
        break;
    default: status = parse_number(key, value, parsing);
    }
    if (status == PROBLEM)
        return EINVAL;
    return status;
}

static const struct argp parser = {
    table,
    parse_option,
    NULL,
    "Train a small convolutional network to read handwritten digits, on every "
    "rank that mpirun started.\v"
    "Without --data the digits are drawn by the program and need no "
    "download. Exit status: 0 trained, 1 failed, 64 wrong command line, "
    "130 or 143 interrupted.\n\n"
    "Examples:\n"
    "  mpi-launch.sh -np 2 mnist\n"
    "  mpi-launch.sh -np 4 mnist --data mnist/ --epochs 10 --summary run.json",
    NULL,
    NULL,
    NULL};

int options_parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){.epochs = 5,
                                .batch_size = 64,
                                .optimizer = HVD_ADAM,
                                .seed = 1,
                                .eval_every = 1,
                                .threads = 1};
    struct parsing parsing = {.options = options, .outcome = OPTIONS_RUN};

    problem_set("%s", "");
    error_t failed =
        argp_parse(&parser, argc, argv,
                   ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &parsing);
    if (failed == ENOMEM)
        return problem_set("out of memory");
    if (failed)
        return PROBLEM;
    return parsing.outcome;
}

double options_default_rate(const struct options *options, int nranks)
{
    static const double rates[] = {
        [HVD_SGD] = 0.1, [HVD_MOMENTUM] = 0.02, [HVD_ADAM] = 0.002};
    double scale = (double)options->batch_size * nranks / 64;

    return rates[options->optimizer] * (scale < 4 ? scale : 4);
}

void options_help(FILE *out, const char *program)
{
    char *name = strdup(program);

    argp_help(&parser, out, ARGP_HELP_STD_HELP, name);
    free(name);
}
