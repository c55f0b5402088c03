/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulated_run.h - a collective on simulated ranks (simulated.h), which step
 * in an order that a seed gives, and the data that these ranks have.
 */
#ifndef HVD_TESTS_SIMULATED_RUN_H
#define HVD_TESTS_SIMULATED_RUN_H

#include "simulated.h"
#include "transport/algo/algo.h"

enum { MOST_RANKS = 33 };

/* Set: ranks have less memory than they need for all partners at a time. */
extern bool has_little;

/* A rank on its way through a collective. */
struct member {
    struct hvd__workspace workspace;
    struct hvd__collective collective;
    unsigned char *input, *output; /* owned, may be the same */
    size_t bytes;                  /* of the output */
    bool done;
};

struct run {
    struct simulated *simulated;
    struct member *members;
    int size;
};

/* Hosts of different widths, which repeat. */
enum { LAYOUTS = 3 };
extern const struct layout {
    const int *widths;
    int n;
} layouts[LAYOUTS];

/* Makes ranks as simulated_new does. The caller gives each collective its
 * motion and the rest of its task. */
struct run run_begin(int size, const int *widths, int nwidths, int seed);
void run_end(struct run *run);

/* Allocates memory for so many bytes. The caller writes the input. */
void give(struct member *m, size_t in, size_t out, bool in_place);

/* NULL: the algorithm is the one that is chosen. */
void start_all(struct run *run, const struct hvd__algorithm *algorithm);
/* Steps all ranks, one that a seed chooses at a time, until all are done. */
void finish_all(struct run *run);
void run_all(struct run *run, const struct hvd__algorithm *algorithm);

/* Makes the data of all ranks, once, before any test. */
void make_data(void);
/* Returns element i of a rank's data, and of the sum of the first n ranks. */
int given(int rank, int64_t i);
int sum_of(int n, int64_t i);

/* Returns the number of ranks to try after n: of the large ones some, and all
 * if HVD_TEST_FULL is set. */
int after(int n);

/* Large blocks come from memory that is kept, which saves most of the time. */
void keep_memory(void);

#endif
