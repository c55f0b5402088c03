/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - runs of the training programs as they are shipped, in processes
 * of their own, and what they say of themselves; and a plain sgemm beside them.
 *
 * Functions return 0, or -1 after a line on stderr that says what went wrong.
 */
#ifndef BENCH_TRAIN_RUN_H
#define BENCH_TRAIN_RUN_H

#include <stdbool.h>

/* One of the networks that are measured. */
struct train_network {
    const char *name;    /* "cnn" */
    const char *what;    /* of it, for people */
    const char *program; /* "mnist" */
    const char *options; /* separated by blanks */
    const char *unit;    /* "images" */
    const char *rate;    /* the summary's field: "images_per_second" */
    bool speaks;         /* it tells the size of its vocabulary */
    int batch;           /* units of a rank's step */
    int steps;           /* of a run: about a second of one core */
};

extern const struct train_network train_networks[]; /* ended by a NULL name */

/* Where programs are and what runs may need. */
struct train_place {
    char programs[4096]; /* the directory of this program */
    char launcher[4096]; /* mpi-launch.sh */
    char scratch[64];    /* a directory for results */
    const char *data;    /* for mnist --data; NULL: drawn digits */
    const char *text;    /* for char_gpt --text; NULL: documentation */
    int steps;           /* of a run; 0: as many as the network has */
};

/* Find the programs, and make the directory. */
int train_place_init(struct train_place *place);
void train_place_fini(struct train_place *place); /* removes it */

enum train_way {
    TRAIN_ALONE, /* one process */
    TRAIN_PAIR,  /* two at the same time that know nothing of each other */
    TRAIN_RANKS  /* two ranks */
};

/* Steps of a run. */
int train_steps(const struct train_place *place,
                const struct train_network *network);

/* Train for so many steps; rate: units a second, of both together. */
int train_run(const struct train_place *place,
              const struct train_network *network, enum train_way way,
              double *rate);

/* A number of the summary of the last run of one process. */
int train_summary_number(const struct train_place *place, const char *field,
                         double *value);

/* A run of train-bench-torch. */
struct train_torch {
    int steps;
    double vocabulary;           /* of networks that speak */
    double rate, parameters;     /* what it tells */
    char version[64], blas[128]; /* ... of itself */
};

int train_run_torch(const struct train_place *place,
                    const struct train_network *network,
                    struct train_torch *torch);

enum { TRAIN_MOST_OPS = 64 };

/* What a step of training is made of. */
struct train_profile {
    double seconds;       /* of a step, in the device */
    double fastest;       /* of all steps */
    double product_flops; /* of a step, in products */
    int count;
    struct train_op {
        char name[48];
        double seconds;    /* of a step */
        double flops;      /* if it is a product, else 0 */
    } ops[TRAIN_MOST_OPS]; /* most first */
};

int train_profile(const struct train_place *place,
                  const struct train_network *network,
                  struct train_profile *profile);

/* FLOP/s of float32 products of 512 x 512, on one thread, of about as many
 * flops in all. */
int train_sgemm(double flops, double *rate);

/* What OpenBLAS calls its kernels here. */
const char *train_kernels(void);

#endif
