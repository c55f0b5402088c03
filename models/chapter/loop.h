/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - a program of the device that is a loop between two queues, and the
 * perceptron that learns digits in one. All functions but fini return 0, or
 * PROBLEM with the text kept.
 */
#ifndef MODELS_CHAPTER_LOOP_H
#define MODELS_CHAPTER_LOOP_H

#include <hvd_model.h>
#include <stdbool.h>

struct hvd_dataset;

struct loop {
    ipu_infeed *infeed; /* all owned */
    ipu_outfeed *outfeed;
    ipu_graph *graph;
    ipu_executable *executable;
    ipu_engine *engine; /* NULL: others run the program */
};

/* Makes both queues, with a part for each replica, and an empty graph, and
 * starts to read. Takes data over, also on failure. */
int loop_init(struct loop *loop, struct hvd_dataset *data, const char *outfeed,
              int replicas);
int loop_compile(struct loop *loop);

/* Makes an engine, which counts if there shall be a profile. */
int loop_load(struct loop *loop, const char *profile);

/* Carries out --profile (profile.h) at the end. title is the program's name. */
int loop_profile(const struct loop *loop, const char *profile,
                 const char *title);

/* Accepts zeroed and half-built ones. */
void loop_fini(struct loop *loop);

/* 784, 128 and 10 neurons, which plain SGD trains. */
struct perceptron {
    struct loop loop; /* the outfeed has the loss of each iteration */
    hvd_net *net;     /* owned */
    int shards;       /* chips: 1, or 2 with a layer on each */
    bool averages;    /* gradients are averaged over the replicas */
    int nvariables;
    const hvd_variable *variables; /* of the net */
};

/* Compiles a loop of that many steps. The other members of p are zero, or set
 * as above. Takes digits over, also on failure. */
int perceptron_init(struct perceptron *p, struct hvd_dataset *digits,
                    int64_t steps, int replicas);
void perceptron_fini(struct perceptron *p);

/* Returns the first values of a variable, which are the same each time, until
 * the next call. */
const float *perceptron_values(const struct perceptron *p, int variable);

#endif
