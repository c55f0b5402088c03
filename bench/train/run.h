/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - runs of the training programs in separate processes, the results that
 * they report, and a plain sgemm for comparison.
 *
 * Functions return 0, or -1 after a line on stderr with the reason.
 */
#ifndef BENCH_TRAIN_RUN_H
#define BENCH_TRAIN_RUN_H

#include <stdbool.h>

/* One of the networks that are measured. */
struct train_network {
    const char *name;    /* "cnn" */
    const char *what;    /* a description for people */
    const char *program; /* "mnist" */
    const char *options; /* separated by blanks */
    const char *unit;    /* "images" */
    const char *rate;    /* field of the summary: "images_per_second" */
    bool speaks;         /* reports the size of its vocabulary */
    int batch;           /* units of one rank's step */
    int steps;           /* steps of a run: about a second on one core */
};

extern const struct train_network train_networks[]; /* ends with a NULL name */

/* Paths of the programs, and settings of all runs. */
struct train_place {
    char programs[4096]; /* the directory of this program */
    char launcher[4096]; /* mpi-launch.sh */
    char scratch[64];    /* a directory for results */
    const char *data;    /* argument of mnist --data; NULL: drawn digits */
    const char *text;    /* argument of char_gpt --text; NULL: documentation */
    int steps;           /* steps of a run; 0: the network's default */
};

/* Finds the programs and makes the scratch directory. */
int train_place_init(struct train_place *place);
void train_place_fini(struct train_place *place); /* removes the directory */

enum train_way {
    TRAIN_ALONE, /* one process */
    TRAIN_PAIR,  /* two unrelated processes at the same time */
    TRAIN_RANKS  /* two ranks */
};

/* Returns the steps of a run. */
int train_steps(const struct train_place *place,
                const struct train_network *network);

/* Trains for that many steps. rate: units per second, of both processes
 * together. */
int train_run(const struct train_place *place,
              const struct train_network *network, enum train_way way,
              double *rate);

/* Reads a number from the summary of the last run of one process. */
int train_summary_number(const struct train_place *place, const char *field,
                         double *value);

/* One run of train-bench-torch. The first two fields are given, the others are
 * what it reports. */
struct train_torch {
    int steps;
    double vocabulary;           /* size for networks with speaks; else 0 */
    double rate, parameters;     /* units per second, and how many */
    char version[64], blas[128]; /* versions of PyTorch and its BLAS */
};

int train_run_torch(const struct train_place *place,
                    const struct train_network *network,
                    struct train_torch *torch);

enum { TRAIN_MOST_OPS = 64 };

/* The time and the products of one training step. */
struct train_profile {
    double seconds;       /* per step, in the device */
    double fastest;       /* the fastest step */
    double product_flops; /* per step, in products */
    int count;
    struct train_op {
        char name[48];
        double seconds;    /* per step */
        double flops;      /* products only, else 0 */
    } ops[TRAIN_MOST_OPS]; /* sorted by seconds, descending */
};

int train_profile(const struct train_place *place,
                  const struct train_network *network,
                  struct train_profile *profile);

/* Measures the FLOP/s of float32 products of 512 x 512 on one thread, over
 * about that many flops in all. */
int train_sgemm(double flops, double *rate);

/* Returns OpenBLAS's name for the kernels that it uses here. */
const char *train_kernels(void);

#endif
