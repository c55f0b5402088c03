/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explore.h - runs random scripts in random orders (explore.c), and measures
 * one request on many ranks (measure.c).
 */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include "sim.h"

/* Runs a seed. Returns whether all is well; if not, sim.why says what is not.
 * mask: the features that it may have. */
bool explore_seed(uint64_t seed, unsigned mask, bool verbose);

struct measure_options {
    int nhosts, nlocals; /* ranks on each host */
    int64_t bytes;
    int kind; /* hvd_kind */
    int nrequests;
    int64_t every_ns; /* between the requests of a backward pass; 0: each waits
                         for the last */
    bool by_name;     /* no ordered mode */
    bool is_csv;
    struct sim_costs costs;
};

/* Prints a row of the table. Returns whether all is well. */
bool measure(const struct measure_options *options, FILE *out);
void measure_head(bool is_csv, FILE *out);

#endif
