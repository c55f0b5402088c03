/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line of a training program. Parsing prints nothing
 * and talks to nobody, so that every rank can do it before there is a world.
 */
#ifndef MODELS_OPTIONS_H
#define MODELS_OPTIONS_H

#include "options/line.h"
#include "trainer/trainer.h"

#include <stdio.h>

/* The programs; some options are of one of them. */
enum options_program { OPTIONS_MNIST, OPTIONS_CHAR_GPT };

/* What --tie, --dropout and their like make of char_gpt's network. */
struct gpt_shape {
    int layers, heads, width, context;
    double dropout;
    bool tied;
};

/* Strings point into argv. */
struct options {
    enum options_program program;
    /* Of both */
    const char *summary; /* file for the JSON summary; NULL: none */
    const char *weights; /* file for the trained weights; NULL: none */
    const char *load;    /* file of weights to start from; NULL: none */
    const char *profile; /* directory, or "text"; NULL: none */
    int64_t steps;       /* most steps in all; 0: no limit. Of whole updates, as
                            eval_every, with --stages */
    int batch_size;
    struct optimizer_settings optimizer;
    double learning_rate; /* 0: by options_default_rate */
    uint64_t seed;
    int check_every; /* updates between comparisons of the ranks' weights; 0:
                        only at the end */
    int eval_every;  /* epochs or steps between evaluations; 0: at the end */
    bool serial;
    int compression; /* of gradients: an hvd_compression */
    int threads;
    double proportion; /* of a tile, for products; 0: the usual */
    /* Of mnist */
    int network;      /* enum network */
    const char *data; /* directory of MNIST files; NULL: draw digits */
    int epochs;
    int64_t train_images; /* 0: all there are, or the default number drawn */
    int64_t test_images;
    /* Of char_gpt */
    struct gpt_shape gpt;
    const char *text;           /* file to learn; NULL: the documentation */
    struct partition partition; /* by --stages */
    int64_t warmup;             /* steps */
    int64_t eval_windows;       /* of the validation text; 0: all */
    int64_t sample;             /* characters to write at the end */
    double temperature;
    const char *prompt; /* NULL: the first character of the text */
};

/*
 * Returns LINE_RUN, LINE_HELP or LINE_VERSION, or PROBLEM with the text kept:
 * which option, what was given, what is accepted.
 */
int options_parse(enum options_program program, struct options *options,
                  int argc, char **argv);

/* The program's command line, for line.h's functions. It reads into options,
 * without what options_parse makes of that, and is to be used by one thread. */
const struct line *options_line(enum options_program program,
                                struct options *options);

/*
 * The learning rate when --lr is not given: a rate for 64 images a step that
 * suits the optimizer, times the images of an update over all ranks / 64 (Goyal
 * et al. 2017, "Accurate, Large Minibatch SGD"), at most times 4. It depends
 * on the images of a step, not on how many ranks share them.
 */
double options_default_rate(const struct options *options, int nranks);

/* Make it the learning rate, unless one was given. */
void options_set_rate(struct options *options, int nranks);

/* "mnist" */
const char *options_name(enum options_program program);

/* What of them is the trainer's. */
struct trainer_options options_trainer(const struct options *options);

#endif
