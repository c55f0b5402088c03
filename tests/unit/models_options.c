/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the command line: defaults, every option, and for each mistake one line
 * that names the option, its value and the accepted values.
 */
#include "networks/digit_networks.h"
#include "options/options.h"
#include "output/problem.h"

#include "suite.h"

#include <hvd_strategy.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 16 };

/* Parses a command line given as one string, words separated by spaces. */
static int parse_for(enum options_program program, struct options *options,
                     const char *line)
{
    static char copy[400];
    char *argv[MOST_WORDS + 1] = {"mnist"};
    int argc = 1;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return options_parse(program, options, argc, argv);
}

static int parse(struct options *options, const char *line)
{
    return parse_for(OPTIONS_MNIST, options, line);
}

TEST(defaults_are_those_of_the_help)
{
    struct options o;

    ck_assert_int_eq(parse(&o, ""), LINE_RUN);
    ck_assert_ptr_null(o.data);
    ck_assert_ptr_null(o.summary);
    ck_assert_ptr_null(o.weights);
    ck_assert_int_eq(o.epochs, 5);
    ck_assert_int_eq(o.steps, 0);
    ck_assert_int_eq(o.batch_size, 64);
    ck_assert_int_eq(o.optimizer.optimizer, OPTIMIZER_ADAM);
    ck_assert_int_eq(o.network, NETWORK_CNN);
    ck_assert_double_eq(o.learning_rate, 0);
    ck_assert_uint_eq(o.seed, 1);
    ck_assert_int_eq(o.eval_every, 1);
    ck_assert_int_eq(o.check_every, 0);
    ck_assert_int_eq(o.threads, 1);
    ck_assert(!o.serial);
    ck_assert_int_eq(o.train_images, 0);
    ck_assert_int_eq(o.test_images, 0);
}

TEST(every_option_is_read)
{
    struct options o;

    ck_assert_int_eq(parse(&o, "--data d --epochs 7 --steps=8 --batch-size 9 "
                               "--lr 2.5e-2 --optimizer sgd"),
                     LINE_RUN);
    ck_assert_str_eq(o.data, "d");
    ck_assert_int_eq(o.epochs, 7);
    ck_assert_int_eq(o.steps, 8);
    ck_assert_int_eq(o.batch_size, 9);
    ck_assert_double_eq(o.learning_rate, 0.025);
    ck_assert_int_eq(o.optimizer.optimizer, OPTIMIZER_SGD);
    ck_assert_int_eq(parse(&o, "--seed 0 --eval-every 0 --summary s "
                               "--save-weights w --serial --threads 2 "
                               "--check-every 10"),
                     LINE_RUN);
    ck_assert_uint_eq(o.seed, 0);
    ck_assert_int_eq(o.eval_every, 0);
    ck_assert_int_eq(o.check_every, 10);
    ck_assert_str_eq(o.summary, "s");
    ck_assert_str_eq(o.weights, "w");
    ck_assert(o.serial);
    ck_assert_int_eq(o.threads, 2);
    ck_assert_ptr_null(o.profile);
    ck_assert_int_eq(parse(&o, "--profile p"), LINE_RUN);
    ck_assert_str_eq(o.profile, "p");
    ck_assert_int_eq(parse(&o, "--train-images 100 --test-images 20 -e3"),
                     LINE_RUN);
    ck_assert_int_eq(o.train_images, 100);
    ck_assert_int_eq(o.test_images, 20);
    ck_assert_int_eq(o.epochs, 3);
}

TEST(a_pipeline_makes_whole_updates)
{
    static const struct {
        const char *line;
        int accumulate;
        int64_t steps, warmup;
        int eval_every;
    } lines[] = {
        {"", 1, 1000, 100, 250},
        {"--stages 2", 8, 1000, 100, 256},
        {"--stages 3", 12, 1008, 100, 252},
        {"--stages 8", 16, 1008, 100, 256},
        {"--stages 4 --accumulate 24 --steps 1", 24, 24, 2, 264},
        {"--stages 2 --warmup 7 --eval-every 0", 8, 1000, 7, 0},
        {"--accumulate 3 --steps 100", 3, 100, 10, 250},
    };

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char line[100];
        struct options o;

        snprintf(line, sizeof line, "%s --layers 8", lines[i].line);
        ck_assert_int_eq(parse_for(OPTIONS_CHAR_GPT, &o, line), LINE_RUN);
        ck_assert_int_eq(o.optimizer.accumulate, lines[i].accumulate);
        ck_assert_int_eq(o.steps, lines[i].steps);
        ck_assert_int_eq(o.warmup, lines[i].warmup);
        ck_assert_int_eq(o.eval_every, lines[i].eval_every);
        ck_assert_int_eq(o.partition.schedule, 0);
        ck_assert_int_eq(o.replicas, 1);
    }
}

static double rate_for(struct options *options, int nranks)
{
    options_set_rate(options, nranks);
    return options->learning_rate;
}

TEST(default_rate_follows_images_of_a_step)
{
    struct options o;

    ck_assert_int_eq(parse(&o, ""), LINE_RUN);
    ck_assert_double_eq_tol(rate_for(&o, 1), 0.002, 1e-12);
    ck_assert_double_eq_tol(rate_for(&o, 4), 0.008, 1e-12);
    ck_assert_double_eq_tol(rate_for(&o, 64), 0.008, 1e-12);
    ck_assert_int_eq(parse(&o, "--batch-size 32"), LINE_RUN);
    ck_assert_double_eq_tol(rate_for(&o, 2), 0.002, 1e-12);
    ck_assert_int_eq(parse(&o, "--optimizer momentum"), LINE_RUN);
    ck_assert_double_eq_tol(rate_for(&o, 1), 0.02, 1e-12);
    ck_assert_int_eq(parse(&o, "--optimizer sgd"), LINE_RUN);
    ck_assert_double_eq_tol(rate_for(&o, 1), 0.1, 1e-12);
}

/* A given rate may be the usual one of the first ranks. */
TEST(given_rate_stays_when_ranks_come_and_go)
{
    struct options o;

    ck_assert_int_eq(parse(&o, "--lr 0.002"), LINE_RUN);
    ck_assert_double_eq_tol(rate_for(&o, 1), 0.002, 1e-12);
    ck_assert(!o.rate_adapts);
    ck_assert_double_eq_tol(rate_for(&o, 4), 0.002, 1e-12);
    ck_assert(!o.rate_adapts);
}

/* Of as many steps as the schedule says, up to 30 % and down. */
TEST(a_cycle_has_the_momentum_of_optimisers_that_have_one)
{
    static const struct {
        const char *line;
        bool cycled;
    } lines[] = {{"", false},
                 {"--lr-schedule cosine --optimizer momentum", false},
                 {"--lr-schedule one-cycle", true},
                 {"--lr-schedule one-cycle --optimizer lars", true},
                 {"--lr-schedule one-cycle --optimizer sgd", false},
                 {"--lr-schedule one-cycle --optimizer rmsprop", false}};
    struct options o;

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        ck_assert_int_eq(parse(&o, lines[i].line), LINE_RUN);
        ck_assert_msg(o.optimizer.cycled == lines[i].cycled, "%s",
                      lines[i].line);
        if (!lines[i].cycled)
            continue;
        const hvd_schedule s = options_schedule(&o, 100);
        ck_assert_double_eq_tol(hvd_schedule_momentum(&s, 0), 0.95, 1e-12);
        ck_assert_double_eq_tol(hvd_schedule_momentum(&s, 29), 0.85, 1e-12);
        ck_assert_double_eq_tol(hvd_schedule_momentum(&s, 64), 0.9, 1e-12);
        ck_assert_double_eq_tol(hvd_schedule_momentum(&s, 99), 0.95, 1e-12);
    }
}

TEST(help_and_version_are_outcomes)
{
    struct options o;

    ck_assert_int_eq(parse(&o, "--help"), LINE_HELP);
    ck_assert_int_eq(parse(&o, "-h"), LINE_HELP);
    ck_assert_int_eq(parse(&o, "--version"), LINE_VERSION);
}

TEST(help_names_every_option)
{
    static const char *const names[] = {
        "--data",        "--epochs",       "--steps",   "--batch-size",
        "--lr",          "--optimizer",    "--seed",    "--eval-every",
        "--summary",     "--save-weights", "--serial",  "--threads",
        "--test-images", "--train-images", "--version", "--help",
        "--check-every", "--profile"};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    line_help(options_line(OPTIONS_MNIST, NULL), out);
    fclose(out);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(strstr(text, names[i]) != NULL, "no %s", names[i]);
    free(text);
}

static const struct {
    enum options_program program;
    const char *line, *text;
} wrong[] = {
    {OPTIONS_MNIST, "--epochs 0",
     "--epochs: '0' is not a whole number from 1 to 100000"},
    {OPTIONS_MNIST, "--epochs -3",
     "--epochs: '-3' is not a whole number from 1 to 100000"},
    {OPTIONS_MNIST, "--epochs 3x",
     "--epochs: '3x' is not a whole number from 1 to 100000"},
    {OPTIONS_MNIST, "--epochs 1e3",
     "--epochs: '1e3' is not a whole number from 1 to 100000"},
    {OPTIONS_MNIST, "--epochs 0x10",
     "--epochs: '0x10' is not a whole number from 1 to 100000"},
    {OPTIONS_MNIST, "--epochs +3",
     "--epochs: '+3' is not a whole number from 1 to 100000"},
    {OPTIONS_MNIST,
     "--epochs=", "--epochs: '' is not a whole number from 1 to 100000"},
    {OPTIONS_MNIST, "--epochs 99999999999999999999999",
     "--epochs: '99999999999999999999999' is not a whole number from 1 to "
     "100000"},
    {OPTIONS_MNIST, "--steps -1",
     "--steps: '-1' is not a whole number from 1 to 1000000000"},
    {OPTIONS_MNIST, "--batch-size 0",
     "--batch-size: '0' is not a whole number from 1 to 65536"},
    {OPTIONS_MNIST, "--batch-size 65537",
     "--batch-size: '65537' is not a whole number from 1 to 65536"},
    {OPTIONS_MNIST, "--seed -1",
     "--seed: '-1' is not a whole number from 0 to 9223372036854775807"},
    {OPTIONS_MNIST, "--seed 9223372036854775808",
     "--seed: '9223372036854775808' is not a whole number from 0 to "
     "9223372036854775807"},
    {OPTIONS_MNIST, "--eval-every -1",
     "--eval-every: '-1' is not a whole number from 0 to 1000000000"},
    {OPTIONS_MNIST, "--check-every -1",
     "--check-every: '-1' is not a whole number from 0 to 1000000000"},
    {OPTIONS_MNIST, "--threads 0",
     "--threads: '0' is not a whole number from 1 to 1024"},
    {OPTIONS_MNIST, "--train-images 0",
     "--train-images: '0' is not a whole number from 1 to 1000000"},
    {OPTIONS_MNIST, "--test-images many",
     "--test-images: 'many' is not a whole number from 1 to 1000000"},
    {OPTIONS_MNIST, "--lr 0", "--lr: '0' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--lr -0.1",
     "--lr: '-0.1' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--lr nan",
     "--lr: 'nan' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--lr inf",
     "--lr: 'inf' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--lr 0x1p-3",
     "--lr: '0x1p-3' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--lr 0.1.2",
     "--lr: '0.1.2' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--lr 1e999",
     "--lr: '1e999' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--lr=", "--lr: '' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--optimizer adamw2",
     "--optimizer: 'adamw2' is none of sgd, momentum, adam, adamw, lamb, "
     "nesterov, rmsprop, adagrad, adadelta, lion, lars"},
    {OPTIONS_MNIST, "--optimizer none",
     "--optimizer: 'none' is none of sgd, momentum, adam, adamw, lamb, "
     "nesterov, rmsprop, adagrad, adadelta, lion, lars"},
    {OPTIONS_MNIST, "--model rnn",
     "--model: 'rnn' is none of cnn, cnn-bn, mlp"},
    {OPTIONS_MNIST, "--clip 0",
     "--clip: '0' is not a number above 0 (like 0.001)"},
    {OPTIONS_MNIST, "--weight-decay -1",
     "--weight-decay: '-1' is not a number of at least 0 (like 0.001)"},
    {OPTIONS_MNIST, "--layers 2", "there is no option --layers; see --help"},
    {OPTIONS_MNIST, "--optimizer Adam",
     "--optimizer: 'Adam' is none of sgd, momentum, adam, adamw, lamb, "
     "nesterov, rmsprop, adagrad, adadelta, lion, lars"},
    {OPTIONS_MNIST, "--data=", "--data: '' is not a path"},
    {OPTIONS_MNIST, "--summary=", "--summary: '' is not a path"},
    {OPTIONS_MNIST, "--save-weights=", "--save-weights: '' is not a path"},
    {OPTIONS_MNIST, "--bogus", "there is no option --bogus; see --help"},
    {OPTIONS_MNIST, "--epochs 2 --bogus=3",
     "there is no option --bogus=3; see --help"},
    {OPTIONS_MNIST, "--epochs", "--epochs needs a value, --epochs N"},
    {OPTIONS_MNIST, "--serial=yes",
     "--serial takes no value, but --serial=yes was given"},
    {OPTIONS_MNIST, "--se 4",
     "--se may be more than one option; write it in full"},
    {OPTIONS_MNIST, "--log csv",
     "--log says what a folder of logs gets: give --log-dir, too"},
    {OPTIONS_CHAR_GPT, "--log csv,png --log-dir x",
     "--log: 'png' is no format of logs: there are tensorboard, csv, jsonl and "
     "all"},
    {OPTIONS_MNIST, "-z",
     "'-z' is not an option, or lacks its value; see --help"},
    {OPTIONS_MNIST, "-e",
     "'-e' is not an option, or lacks its value; see --help"},
    {OPTIONS_MNIST, "extra", "'extra' is not an option; see --help"},
    {OPTIONS_MNIST, "-- extra", "'extra' is not an option; see --help"},
    {OPTIONS_MNIST, "-", "'-' is not an option; see --help"},
    {OPTIONS_CHAR_GPT, "--stages 1",
     "--stages: '1' is not a whole number from 2 to 64"},
    {OPTIONS_CHAR_GPT, "--stages 65",
     "--stages: '65' is not a whole number from 2 to 64"},
    {OPTIONS_CHAR_GPT, "--stages 7",
     "--stages 7: --layers 4, the tables and the head make 6 stages at most"},
    {OPTIONS_CHAR_GPT, "--recompute",
     "--recompute is of a pipeline: give --stages, too"},
    {OPTIONS_MNIST, "--strategy mirrored --replicas 1",
     "--strategy mirrored needs 2 --replicas or more"},
    {OPTIONS_CHAR_GPT, "--schedule grouped",
     "--schedule is of a pipeline: give --stages, too"},
    {OPTIONS_CHAR_GPT, "--recompute",
     "--recompute is of a pipeline: give --stages, too"},
    {OPTIONS_CHAR_GPT, "--stages 2 --schedule fast",
     "--schedule: 'fast' is none of grouped, interleaved, sequential"},
    {OPTIONS_CHAR_GPT, "--stages 2 --clip 1",
     "--clip does not go together with --stages: no IPU has all of the "
     "gradient"},
    {OPTIONS_CHAR_GPT, "--stages 2 --tie",
     "--tie has the first and the last stage share an IPU: there must be 3 "
     "--stages or more, and --schedule grouped or sequential"},
    {OPTIONS_CHAR_GPT, "--stages 2 --replicas 0",
     "--replicas: '0' is not a whole number from 1 to 256"},
    {OPTIONS_CHAR_GPT, "--available-memory-proportion 0",
     "--available-memory-proportion: '0' is not a number above 0 and at most "
     "1"},
    {OPTIONS_MNIST, "--available-memory-proportion 1.01",
     "--available-memory-proportion: '1.01' is not a number above 0 and at "
     "most 1"},
    {OPTIONS_CHAR_GPT, "--stages 4 --tie --schedule interleaved",
     "--tie has the first and the last stage share an IPU: there must be 3 "
     "--stages or more, and --schedule grouped or sequential"},
    {OPTIONS_CHAR_GPT, "--width 100 --heads 3",
     "--width 100 cannot be shared out to --heads 3: it must be a multiple of "
     "them"},
    {OPTIONS_CHAR_GPT, "--dropout 1",
     "--dropout: '1' is not a number of at least 0 and at most 0.99"},
    {OPTIONS_CHAR_GPT, "--temperature 0",
     "--temperature: '0' is not a number above 0 (like 0.001)"},
    {OPTIONS_CHAR_GPT, "--compression zip",
     "--compression: 'zip' is none of none, fp16, bf16, topk"},
    {OPTIONS_CHAR_GPT, "--text=", "--text: '' is not a path"},
    {OPTIONS_CHAR_GPT, "--heads 0",
     "--heads: '0' is not a whole number from 1 to 1024"},
    {OPTIONS_CHAR_GPT, "--context 0",
     "--context: '0' is not a whole number from 2 to 65536"},
    {OPTIONS_CHAR_GPT, "--epochs 3", "there is no option --epochs; see --help"},
    {OPTIONS_CHAR_GPT, "--load-weights=", "--load-weights: '' is not a path"},
    {OPTIONS_CHAR_GPT, "--profile=", "--profile: '' is not a path"},
};

LOOP_TEST(wrong_lines_are_explained, 0, sizeof wrong / sizeof *wrong)
{
    struct options o;

    ck_assert_int_eq(parse_for(wrong[_i].program, &o, wrong[_i].line), PROBLEM);
    ck_assert_str_eq(problem_text(), wrong[_i].text);
}

TEST(control_characters_stay_out_of_messages)
{
    struct options o;
    char name[] = "mnist";
    char value[] = "--epochs=1\n2\x1b[31m";
    char *argv[] = {name, value, NULL};

    ck_assert_int_eq(options_parse(OPTIONS_MNIST, &o, 2, argv), PROBLEM);
    ck_assert_ptr_null(strchr(problem_text(), '\n'));
    ck_assert_ptr_null(strchr(problem_text(), '\x1b'));
}

TEST_MAIN("models_options")
