/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - reads the command line of mnist and char_gpt. Reading prints
 * nothing and needs no other rank, so that every rank can do it before there is
 * a world.
 */
#ifndef MODELS_OPTIONS_H
#define MODELS_OPTIONS_H

#include "networks/transformer.h"
#include "options/line.h"
#include "trainer/trainer.h"

#include <hvd_schedule.h>

/* The programs; some options belong to one of them. */
enum options_program { OPTIONS_MNIST, OPTIONS_CHAR_GPT };

/* An option as it was given. */
struct option_given {
    const char *name;  /* "seed" */
    const char *value; /* NULL: it takes none */
};

enum { OPTIONS_MOST_GIVEN = 128 };

/* Strings point into argv. */
struct options {
    enum options_program program;
    struct option_given given[OPTIONS_MOST_GIVEN]; /* each once */
    int ngiven;
    /* Options of both programs */
    const char *summary; /* JSON summary to write; NULL: none */
    const char *weights; /* file of weights to write; NULL: none */
    const char *load;    /* weights to start from; NULL: none */
    const char *losses;  /* file for the loss of every step; NULL: none */
    const char *graphs;  /* folder with the network's graphs; NULL: the program
                            builds them */
    const char *log_dir; /* folder of logs; NULL: none */
    const char *log;     /* list of their formats; NULL: all */
    uint32_t log_formats;
    int log_every, histograms_every; /* steps; the latter 0: none */
    const char *model_dir;           /* folder of checkpoints; NULL: none */
    const char *elastic; /* "MIN:MAX" ranks; NULL: a loss ends the training */
    int elastic_min, elastic_max;
    int elastic_steps;          /* updates between two commits */
    double exclude_stragglers;  /* a factor; 0: none is excluded */
    const char *elastic_log;    /* file of events; NULL: none */
    const char *elastic_replay; /* one whose losses are repeated; NULL: none */
    int checkpoint_every;       /* steps between two; 0: only at the end */
    int checkpoint_wait;        /* seconds that an evaluator waits for one */
    bool quiet;                 /* print nothing but failures */
    const char *profile;        /* directory, or "text"; NULL: none */
    int64_t steps; /* most steps in all; 0: no limit. With --stages this and
                      eval_every are whole updates */
    const char *remote; /* describes the cluster whose servers train; NULL: this
                           process trains */
    int strategy;       /* an enum strategy; -1: as the process was started */
    const char *cluster; /* file that describes a cluster; NULL: none */
    const char *task;    /* this process in it: "worker:1"; NULL: not given */
    int spawn;           /* workers that this process starts; 0: none */
    int base_port;       /* port of rank 0 of processes that mpirun or spawn
                            starts for a cluster without MPI; 0: not given */
    struct servers_settings servers; /* count 0: until the world is known, as
                                        many as the cluster has, or 1 */
    bool variables_on_host;          /* the optimiser is on the host */
    bool synchronised;         /* normalise by the batches of all replicas */
    struct sums_settings sums; /* over replicas */
    int replicas;     /* copies of the network, or of its pipeline, on IPUs of
                         their own in each process */
    int batch_size;   /* of each replica; 0 until the world is known, if
                         global_batch is given */
    int global_batch; /* rows of a step over all replicas of all ranks; 0:
                         batch_size is given */
    struct optimizer_settings optimizer;
    double ema; /* share that running averages of the weights keep; 0: none */
    double learning_rate;  /* 0 until options_set_rate: --lr was not given */
    bool rate_adapts;      /* to the ranks that there are: it was not given */
    int schedule;          /* an hvd_schedule_kind */
    int64_t warmup;        /* steps */
    int64_t boundaries[2]; /* of options_schedule */
    uint64_t seed;
    int check_every; /* updates between two comparisons of the ranks' weights;
                        0: only at the end */
    int eval_every;  /* epochs or steps between two evaluations; 0: only at the
                        end */
    bool serial;
    int compression;    /* an hvd_compression, for gradients */
    const char *recipe; /* of bfloat16 on the devices' network; NULL: none */
    int64_t pack_bytes; /* of gradients on that network; -1: the default */
    int threads;
    double proportion; /* share of a tile for products; 0: the default */
    /* Options of mnist */
    int network;      /* enum network */
    const char *data; /* MNIST files; NULL: digits are drawn */
    int epochs;
    int64_t train_images; /* 0: all, or the default number if drawn */
    int64_t test_images;
    /* Options of char_gpt */
    struct gpt_shape gpt;
    const char *text;           /* the text; NULL: the documentation */
    struct partition partition; /* stages 0: one IPU */
    int64_t eval_windows;       /* pieces of the validation text; 0: all */
    int64_t sample;             /* characters written at the end */
    double temperature;
    const char *prompt; /* NULL: the first character of the text */
};

/*
 * Returns LINE_RUN, LINE_HELP or LINE_VERSION, or PROBLEM with the text kept:
 * the option, the given value, the accepted ones.
 */
int options_parse(enum options_program program, struct options *options,
                  int argc, char **argv);

/* Returns the program's command line, for line.h's functions. It only reads
 * into options: options_parse fills in and checks the rest. For one thread at a
 * time. */
const struct line *options_line(enum options_program program,
                                struct options *options);

/* Sets the batch size of a replica to its share of --global-batch, if that was
 * given. PROBLEM with the text kept if it cannot be shared out evenly. */
int options_set_batch(struct options *options, int nranks);

/* Has the options be those of an evaluator: without the replicas of a training,
 * and without the files that it writes. PROBLEM with the text kept if there is
 * nothing that it could evaluate. */
int options_set_evaluator(struct options *options);

/*
 * Sets the learning rate, unless --lr was given, to one for 64 images a step
 * that suits the optimizer, times the images of an update over all ranks / 64
 * (Goyal et al. 2017, "Accurate, Large Minibatch SGD"), at most times 4. It
 * depends on the images of a step, not on how many ranks share them. Called
 * again, it suits another number of ranks.
 */
void options_set_rate(struct options *options, int nranks);

/* Returns the rates of so many steps: --warmup and --lr-schedule. A cosine
 * falls to a tenth in the last step; steps are after a half and after three
 * quarters, and to a tenth each. It borrows the options, and is that of one
 * training. */
hvd_schedule options_schedule(struct options *options, int64_t steps);

/* Returns "mnist" or "char_gpt". */
const char *options_name(enum options_program program);

/* Returns the options of a trainer. Rank, progress and fill are left to the
 * caller. */
struct trainer_options options_trainer(const struct options *options);

#endif
