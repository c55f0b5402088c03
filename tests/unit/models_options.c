/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: defaults, every option, and for every way to get it wrong
 * one line that names the option, what was given and what is accepted.
 */
#include "common/options.h"
#include "common/problem.h"
#include "mnist/network.h"

#include "check_main.h"

#include <hvd_strategy.h>
#include <string.h>

enum { MOST_WORDS = 16 };

/* Parse a command line given as one string, words separated by spaces. */
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

START_TEST(defaults_are_those_of_the_help)
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
END_TEST

START_TEST(every_option_is_read)
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
END_TEST

START_TEST(a_pipeline_makes_whole_updates)
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
        ck_assert_int_eq(o.cut.schedule, 0);
        ck_assert_int_eq(o.cut.replicas, 1);
    }
}
END_TEST

START_TEST(default_rate_follows_images_of_a_step)
{
    struct options o;

    ck_assert_int_eq(parse(&o, ""), LINE_RUN);
    ck_assert_double_eq_tol(options_default_rate(&o, 1), 0.002, 1e-12);
    ck_assert_double_eq_tol(options_default_rate(&o, 4), 0.008, 1e-12);
    ck_assert_double_eq_tol(options_default_rate(&o, 64), 0.008, 1e-12);
    ck_assert_int_eq(parse(&o, "--batch-size 32"), LINE_RUN);
    ck_assert_double_eq_tol(options_default_rate(&o, 2), 0.002, 1e-12);
    ck_assert_int_eq(parse(&o, "--optimizer momentum"), LINE_RUN);
    ck_assert_double_eq_tol(options_default_rate(&o, 1), 0.02, 1e-12);
    ck_assert_int_eq(parse(&o, "--optimizer sgd"), LINE_RUN);
    ck_assert_double_eq_tol(options_default_rate(&o, 1), 0.1, 1e-12);
}
END_TEST

START_TEST(help_and_version_are_outcomes)
{
    struct options o;

    ck_assert_int_eq(parse(&o, "--help"), LINE_HELP);
    ck_assert_int_eq(parse(&o, "-h"), LINE_HELP);
    ck_assert_int_eq(parse(&o, "--version"), LINE_VERSION);
}
END_TEST

START_TEST(help_names_every_option)
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
END_TEST

static const struct {
    const char *line;
    const char *says[2];
} wrong[] = {
    {"--epochs 0", {"--epochs", "from 1"}},
    {"--epochs -3", {"--epochs", "'-3'"}},
    {"--epochs 3x", {"--epochs", "'3x'"}},
    {"--epochs 1e3", {"--epochs", "'1e3'"}},
    {"--epochs 0x10", {"--epochs", "'0x10'"}},
    {"--epochs +3", {"--epochs", "'+3'"}},
    {"--epochs=", {"--epochs", "''"}},
    {"--epochs 99999999999999999999999", {"--epochs", "100000"}},
    {"--steps -1", {"--steps", "'-1'"}},
    {"--batch-size 0", {"--batch-size", "from 1 to 65536"}},
    {"--batch-size 65537", {"--batch-size", "65537"}},
    {"--seed -1", {"--seed", "from 0"}},
    {"--seed 9223372036854775808", {"--seed", "9223372036854775808"}},
    {"--eval-every -1", {"--eval-every", "from 0"}},
    {"--check-every -1", {"--check-every", "from 0"}},
    {"--threads 0", {"--threads", "from 1"}},
    {"--train-images 0", {"--train-images", "from 1"}},
    {"--test-images many", {"--test-images", "'many'"}},
    {"--lr 0", {"--lr", "above 0"}},
    {"--lr -0.1", {"--lr", "'-0.1'"}},
    {"--lr nan", {"--lr", "'nan'"}},
    {"--lr inf", {"--lr", "'inf'"}},
    {"--lr 0x1p-3", {"--lr", "'0x1p-3'"}},
    {"--lr 0.1.2", {"--lr", "'0.1.2'"}},
    {"--lr 1e999", {"--lr", "'1e999'"}},
    {"--lr=", {"--lr", "''"}},
    {"--optimizer adamw2", {"'adamw2'", "sgd, momentum, adam, adamw, lamb"}},
    {"--optimizer none", {"'none'", "sgd, momentum, adam, adamw, lamb"}},
    {"--model rnn", {"'rnn'", "cnn, mlp"}},
    {"--clip 0", {"--clip", "above 0"}},
    {"--weight-decay -1", {"--weight-decay", "at least 0"}},
    {"--layers 2", {"--layers", "there is no option"}},
    {"--optimizer Adam", {"'Adam'", "sgd, momentum, adam"}},
    {"--data=", {"--data", "not a path"}},
    {"--summary=", {"--summary", "not a path"}},
    {"--save-weights=", {"--save-weights", "not a path"}},
    {"--bogus", {"--bogus", "--help"}},
    {"--epochs 2 --bogus=3", {"--bogus=3", "--help"}},
    {"--epochs", {"--epochs", "needs a value"}},
    {"--serial=yes", {"--serial", "takes no value"}},
    {"--se 4", {"--se", "more than one"}},
    {"-q", {"-q", "--help"}},
    {"-e", {"-e", "lacks its value"}},
    {"extra", {"'extra'", "--help"}},
    {"-- extra", {"'extra'", "--help"}},
    {"-", {"'-'", "--help"}},
};

START_TEST(wrong_lines_are_explained)
{
    struct options o;

    ck_assert_int_eq(parse(&o, wrong[_i].line), PROBLEM);
    for (int k = 0; k < 2; k++)
        ck_assert_msg(strstr(problem_text(), wrong[_i].says[k]) != NULL,
                      "%s: '%s' does not say '%s'", wrong[_i].line,
                      problem_text(), wrong[_i].says[k]);
    ck_assert_ptr_null(strchr(problem_text(), '\n'));
}
END_TEST

START_TEST(control_characters_stay_out_of_messages)
{
    struct options o;
    char name[] = "mnist";
    char value[] = "--epochs=1\n2\x1b[31m";
    char *argv[] = {name, value, NULL};

    ck_assert_int_eq(options_parse(OPTIONS_MNIST, &o, 2, argv), PROBLEM);
    ck_assert_ptr_null(strchr(problem_text(), '\n'));
    ck_assert_ptr_null(strchr(problem_text(), '\x1b'));
}
END_TEST

static TCase *tcase_right(void)
{
    TCase *tcase = tcase_create("right");

    tcase_add_test(tcase, defaults_are_those_of_the_help);
    tcase_add_test(tcase, every_option_is_read);
    tcase_add_test(tcase, a_pipeline_makes_whole_updates);
    tcase_add_test(tcase, default_rate_follows_images_of_a_step);
    tcase_add_test(tcase, help_and_version_are_outcomes);
    tcase_add_test(tcase, help_names_every_option);
    return tcase;
}

static TCase *tcase_wrong(void)
{
    TCase *tcase = tcase_create("wrong");

    tcase_add_loop_test(tcase, wrong_lines_are_explained, 0,
                        (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(tcase, control_characters_stay_out_of_messages);
    return tcase;
}

HVD_TEST_MAIN("models_options", tcase_right, tcase_wrong)
