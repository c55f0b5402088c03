/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - plays one training step in virtual time: gradients become ready
 * while the backward pass computes, are agreed on, fused and moved, and the
 * weights are updated as their averages arrive.
 */
#ifndef BENCH_PROJECT_STEP_H
#define BENCH_PROJECT_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "project/library.h"
#include "project/workload.h"

/* The library whose rules decide when tensors are agreed on, and which of them
 * move together. */
enum step_rules {
    STEP_HVD, /* libhvd's: rounds, pieces, lanes */
    STEP_RING /* Horovod's: what is ready at the end of a cycle, fused, on one
                 flat ring after another */
};

struct step_task {
    const struct workload *workload; /* borrowed */
    struct network network;
    struct library_shape shape;
    enum step_rules rules;
    double cycle; /* STEP_RING: seconds of a cycle */
};

/* A batch: tensors that move together, or go along with one round. Times are
 * seconds from the start of the backward pass. */
struct step_batch {
    const char *algorithm; /* borrowed; of data in a round "round" */
    int *tensors;          /* owned: places in the workload, ascending */
    int n;
    int64_t bytes;
    double ready;  /* when its last tensor became ready */
    double agreed; /* when all ranks knew */
    double start, end;
    struct duration alone; /* what it takes by itself */
};

struct step_result {
    struct step_batch *batches; /* owned, in the order of their start */
    int n;
    int nrounds;
    double forward, backward,
        update;    /* as long as the slowest rank takes on
                      the cores that there are, undisturbed */
    double uneven; /* of these, what a rank waits for the slowest in the mean */
    double computed;   /* end of the backward pass */
    double reduced;    /* when the last average is there */
    double total;      /* the whole step, with the forward pass */
    double busy;       /* time in which anything is on its way */
    double hidden;     /* of that, during the backward pass */
    double link_bytes; /* sent by one host in a step */
};

/* Returns the expected maximum of n independent standard normal numbers: by so
 * many deviations the slowest of n ranks is slower than their mean. */
double step_slowest(double n);

/* Plays a step. Returns 0, or -1 without memory; the caller frees the result in
 * both cases. */
int step_run(const struct step_task *task, struct step_result *result);
void step_result_fini(struct step_result *result);

/* Returns the computing of a rank in the mean. */
double step_computing(const struct step_result *result);
/* Returns the time of a step beyond the computing of its slowest rank. */
double step_exposed(const struct step_result *result);
/* Returns the share of a step in which a rank computes in the mean, 0 to 1: the
 * efficiency of scaling. */
double step_efficiency(const struct step_result *result);

/* Returns the batch that ends last; NULL: there is none. */
const struct step_batch *step_last(const struct step_result *result);

#endif
