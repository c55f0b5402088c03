/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line of a training program. Parsing prints nothing
 * and talks to nobody, so that every rank can do it before there is a world.
 */
#ifndef MODELS_OPTIONS_H
#define MODELS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* What a wrong command line exits with: sysexits.h's EX_USAGE, as argp. */
enum { OPTIONS_EXIT_USAGE = 64 };

enum { OPTIONS_RUN = 0, OPTIONS_HELP = 1, OPTIONS_VERSION = 2 };

/* Strings point into argv. */
struct options {
    const char *data;    /* directory of MNIST files; NULL: draw digits */
    const char *summary; /* file for the JSON summary; NULL: none */
    const char *weights; /* file for the trained weights; NULL: none */
    const char *profile; /* directory, or "text"; NULL: none */
    int epochs;
    int64_t steps; /* most steps in all; 0: no limit */
    int batch_size;
    int optimizer;        /* HVD_SGD, ... */
    double learning_rate; /* 0: by options_default_rate */
    uint64_t seed;
    int check_every; /* steps between comparisons of the ranks' weights; 0:
                        only at the end */
    int eval_every;  /* epochs between evaluations; 0: only at the end */
    bool serial;
    int compression; /* of gradients: an hvd_compression */
    int threads;
    int64_t train_images; /* 0: all there are, or the default number drawn */
    int64_t test_images;
};

/*
 * Returns OPTIONS_RUN, OPTIONS_HELP or OPTIONS_VERSION, or PROBLEM with the
 * text kept: which option, what was given, what is accepted.
 */
int options_parse(struct options *options, int argc, char **argv);

/*
 * The learning rate when --lr is not given: a rate for 64 images a step that
 * suits the optimizer, times the images of a step over all ranks / 64 (Goyal
 * et al. 2017, "Accurate, Large Minibatch SGD"), at most times 4. It depends
 * on the images of a step, not on how many ranks share them.
 */
double options_default_rate(const struct options *options, int nranks);

/* What --help prints. */
void options_help(FILE *out, const char *program);

#endif
